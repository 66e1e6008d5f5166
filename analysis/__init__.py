"""Analysis: metrics, runs and their results, pictures."""
