"""Minh 2012, a study for a chapter or two: features, models, arrivals, correlation, predictor."""
