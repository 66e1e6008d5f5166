"""Several clusters with a broker, and the grids that come with hpcrowd."""
