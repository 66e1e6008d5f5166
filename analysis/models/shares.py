"""Draw by shares."""

from __future__ import annotations

import numpy as np

from analysis.models.part import Floats
from environment.jobs import Int64s


def draw_from(shares: Floats, count: int, random: np.random.Generator) -> Int64s:
    """Return so many places, each with its share, which need not add up to 1."""
    ends = np.cumsum(shares)
    drawn = np.searchsorted(ends, random.random(count) * ends[-1], side="right")
    places: Int64s = np.minimum(drawn, len(shares) - 1).astype(np.int64)
    return places
