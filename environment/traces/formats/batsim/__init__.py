"""Batsim's workloads, and its table of simulated jobs."""
