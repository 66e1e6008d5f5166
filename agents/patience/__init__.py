"""Patience that was fitted to logs: for how long users let their jobs wait."""
