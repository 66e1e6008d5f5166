"""Kinds of runs: the settings of each, and how it is run."""
