"""The HTML report on runs."""
