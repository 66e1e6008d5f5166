"""Batch schedulers in plain Python: :mod:`.base` has the base class, :mod:`.names` the list."""
