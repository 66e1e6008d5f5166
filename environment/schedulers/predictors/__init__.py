"""Predictors of run times, one file each, with their base class in ``base``."""
