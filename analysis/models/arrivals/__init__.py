"""Models of how jobs arrive."""
