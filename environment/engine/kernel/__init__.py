"""The compiled engine's functions on plain arrays."""
