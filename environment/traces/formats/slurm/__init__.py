"""Slurm's accounting, as ``sacct`` prints it."""
