"""Minh 2012, chapter 6: effects of arrivals on clusters and grids."""
