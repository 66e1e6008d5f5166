"""Kinds of runs: what each is made of, and how it is run."""
