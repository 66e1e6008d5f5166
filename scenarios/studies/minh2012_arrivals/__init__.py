"""Minh 2012, chapter 6: what arrivals do to clusters and grids."""
