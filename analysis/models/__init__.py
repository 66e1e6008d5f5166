"""Workload models: fit to a trace, save, generate workloads, and judge against the trace."""
