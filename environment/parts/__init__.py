"""What may act in a run beside users, clusters and schedulers."""
