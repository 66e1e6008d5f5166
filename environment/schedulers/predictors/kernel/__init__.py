"""Predictors of run times, compiled."""
