"""Logs of the Parallel Workloads Archive by name."""
