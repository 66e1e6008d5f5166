"""Compiled code of machines of nodes under Slurm's controller."""
