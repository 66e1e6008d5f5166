"""Several clusters and a broker between them."""
