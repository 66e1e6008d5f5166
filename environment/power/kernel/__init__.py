"""Compiled code of power."""
