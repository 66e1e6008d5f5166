"""Predictors of run times, one file each, all behind one base class in ``base``."""
