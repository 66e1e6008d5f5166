"""Slurm's own files about a machine: configuration, accounts and what ``scontrol`` shows."""
