"""Minh 2012, chapters 4 and 5: models of arrivals and of jobs."""
