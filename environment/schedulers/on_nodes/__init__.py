"""Policies of a pool of processors on a machine of nodes."""
