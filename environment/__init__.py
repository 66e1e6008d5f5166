"""What users submit to: jobs, traces, the clock, clusters and their schedulers."""
