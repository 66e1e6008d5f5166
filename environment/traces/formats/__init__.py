"""Formats of traces: each file knows one of them, :mod:`formats.registry` knows all."""
