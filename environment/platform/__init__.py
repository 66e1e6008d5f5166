"""Changes of a cluster during a run, and the placement of its jobs in pictures."""
