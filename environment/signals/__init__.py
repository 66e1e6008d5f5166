"""Signals over time: prices, carbon intensity, temperatures, limits."""
