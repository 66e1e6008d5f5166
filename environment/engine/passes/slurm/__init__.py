"""The compiled form of Slurm's controller."""
