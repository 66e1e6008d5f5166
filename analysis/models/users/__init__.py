"""Models of users that are fitted to records."""
