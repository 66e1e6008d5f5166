"""When nodes fail and how long repairs take: renewal processes from named streams."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from environment.quantities import round_half_up
from environment.stops import FOREVER

if TYPE_CHECKING:
    import numpy as np

    from environment.platform import Failures


def failure_times(failures: Failures, stream: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Yield when each failure happens and when it is repaired, s since the origin, for ever.

    All times are rounded half up, at least 1 s. What happens in the run does not change them.

    Parameters
    ----------
    failures
        The process; from its end on nothing fails.
    stream
        Where the times are drawn from: one between failures, one to repair, in turn.
    """
    at = failures.start
    until = FOREVER if failures.until is None else failures.until
    while True:
        at += _draw(stream, failures.distribution, failures.mean, failures.shape)
        repair = _draw(stream, failures.repair, failures.repair_mean, failures.repair_shape)
        if at >= until:
            return
        yield at, at + repair


def _draw(stream: np.random.Generator, family: str, mean: float, shape: float) -> int:
    if family == "exponential":
        drawn = mean * stream.exponential()
    else:
        drawn = mean / math.gamma(1 + 1 / shape) * stream.weibull(shape)
    return max(1, round_half_up(drawn))
