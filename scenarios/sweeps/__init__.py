"""Sweeps: many runs with many settings, in parallel."""
