"""Forecasts from the cluster as it is now: inputs, futures on all cores, judging, watching."""
