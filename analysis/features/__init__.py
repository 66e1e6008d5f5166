"""Features of a workload: arrivals, run times, processors, bags of tasks, users, as numbers."""
