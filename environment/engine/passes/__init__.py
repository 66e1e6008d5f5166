"""Compiled scheduling passes, one policy a file, for the compiled engine."""
