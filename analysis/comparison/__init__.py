"""Runs side by side, in numbers and pictures."""
