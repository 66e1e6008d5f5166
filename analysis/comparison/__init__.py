"""Comparison of runs in numbers and pictures."""
