"""Several clusters and the queue of their broker, compiled."""
