"""Calibration of the parameters of a scenario: what is free, and the simulations."""
