"""Calibration: parameters of users with uncertainty, from the statistics of a log."""
