"""Trace formats: one module or folder each; :mod:`formats.registry` lists them all."""
