"""Tasks: work that its owner cuts into jobs."""
