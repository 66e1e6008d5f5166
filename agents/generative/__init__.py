"""Users who make up their work."""
