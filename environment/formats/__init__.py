"""Formats of traces: each file knows one of them, :mod:`environment.formats.registry` knows all."""
