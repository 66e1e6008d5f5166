"""Bounds over futures: how they are computed, named and written.

A bound is a quantile over futures: the smallest value with at least that share of the futures at or
below it. A bound beyond the horizon is infinite, ``None`` in JSON and empty in tables: all that is
known is that it is later.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.forecast.conformal import LEVELS
from hpcrowd.analysis.forecast.scores import quantiles
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.jobs import UNKNOWN

if TYPE_CHECKING:
    import pandas as pd

#: Names of the bounds in files, by :data:`~hpcrowd.analysis.forecast.conformal.LEVELS`.
BOUNDS = tuple(f"p{round(100 * level)}" for level in LEVELS)


def over_futures(values: Floats) -> Floats:
    """Return the bounds over futures, those without a value left out; NaN where none has one.

    Parameters
    ----------
    values
        Shape (futures, ...); NaN where there is none.

    Returns
    -------
    bounds
        Shape (levels, ...).
    """
    flat = values.reshape(len(values), -1).T
    there = ~np.isnan(flat)
    found = np.full((len(flat), len(LEVELS)), np.nan)
    some = there.any(axis=1)
    if some.any():
        filled = np.where(there, flat, 0)[some]
        found[some] = quantiles(filled, LEVELS, there[some].astype(np.float64))
    return found.T.reshape(len(LEVELS), *values.shape[1:])


def known(number: int) -> int | None:
    """Return a number; None for unknown."""
    return None if number == UNKNOWN else number


def bounds(values: Floats, *, whole: bool = False) -> dict[str, Any]:
    """Return bounds by name, None where they are not finite."""
    found = [float(one) if math.isfinite(one) else None for one in values]
    if whole:
        found = [None if one is None else round(one) for one in found]
    return dict(zip(BOUNDS, found, strict=True))


def local_time(clock: Clock, second: float) -> str | None:
    """Return a second as local time in ISO 8601; None if it is infinite or the start unknown."""
    if clock.nominal or not math.isfinite(second):
        return None
    return clock.local(round(second)).isoformat()


def local_bounds(clock: Clock, values: Floats) -> dict[str, str | None]:
    """Return bounds as local times by name."""
    return {name: local_time(clock, one) for name, one in zip(BOUNDS, values, strict=True)}


def flat_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows of plain data as a table, bounds as one column each: ``start_p50_s``."""
    import pandas as pd

    flat = []
    for row in rows:
        cells: dict[str, Any] = {}
        for key, value in row.items():
            stem, _, unit = key.removesuffix("_local_time").rpartition("_")
            if key.endswith("_local_time"):
                stem, unit = key.removesuffix("_local_time"), "local_time"
            if isinstance(value, Mapping):
                cells |= {f"{stem}_{name}_{unit}": one for name, one in value.items()}
            elif value is None and key in ("end_s", "end_local_time"):
                cells |= {f"{stem}_{name}_{unit}": None for name in BOUNDS}
            else:
                cells[key] = value
        flat.append(cells)
    frame = pd.DataFrame(flat)
    for name in map(str, frame.columns):
        # Seconds stay whole numbers where some are missing.
        if {type(one[name]) for one in flat} == {int, type(None)}:
            frame[name] = frame[name].astype("Int64")
    return frame
