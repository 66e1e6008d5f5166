"""Batch schedulers in plain Python: :mod:`.base` says what one is, :mod:`.names` lists them."""
