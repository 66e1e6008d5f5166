"""Clusters side by side and the queue of their broker, compiled."""
