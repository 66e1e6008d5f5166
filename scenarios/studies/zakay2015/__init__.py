"""Zakay and Feitelson 2015: preserving user behaviour in simulation."""
