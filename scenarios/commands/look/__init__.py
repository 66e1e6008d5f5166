"""Commands that show runs and traces."""
