"""Madon et al. 2024: replay with feedback."""
