"""Recorded and simulated logs: traces, their formats, windows, cleaning, the archive."""
