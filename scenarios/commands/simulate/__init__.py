"""Commands that run something: a replay, a population, a grid, a sweep."""
