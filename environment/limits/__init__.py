"""Limits: of numbers, of memory, of what is read, and of what a message repeats."""
