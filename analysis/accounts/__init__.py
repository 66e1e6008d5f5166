"""What happened in a run, added up: platform, grid, population, reactions."""
