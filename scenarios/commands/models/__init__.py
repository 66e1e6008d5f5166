"""Commands on models: fit, generate, judge, predict, validate."""
