"""Slurm's controller: multifactor priority, limits, main passes, backfilling, preemption."""
