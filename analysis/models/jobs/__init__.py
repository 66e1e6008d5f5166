"""What jobs are like: run times, processors, users, for each model."""
