"""Batch schedulers in plain Python, one policy a file; :mod:`.base` says what a scheduler is."""
