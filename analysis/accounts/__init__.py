"""Totals of what happened in a run: platform, grid, population, reactions."""
