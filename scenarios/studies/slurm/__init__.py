"""A real Slurm's recorded runs of a plan, replayed and compared."""
