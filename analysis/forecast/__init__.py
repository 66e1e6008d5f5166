"""Forecasts from the state of a cluster: futures, answers, and how good they were."""
