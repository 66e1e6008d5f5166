"""Minh 2012, chapter 8: predictors of run times."""
