"""What changes of a cluster during a run, and where its jobs are drawn."""
