"""Libraries that the core install does without."""

from __future__ import annotations


def missing(library: str, extra: str = "fits") -> str:
    """Return what is wrong and the cure, where a library of an extra is not installed."""
    return f'{library} is not installed; pip install "hpcrowd[{extra}]"'
