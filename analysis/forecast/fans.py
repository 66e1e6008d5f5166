"""Load and queue over time, over all futures, with the record of the time before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.analysis import curves
from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.forecast.conformal import LEVELS
from hpcrowd.analysis.forecast.scores import quantiles
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.jobs import UNKNOWN, Int64s

if TYPE_CHECKING:
    from hpcrowd.analysis.forecast.futures import Future, Outset

#: How far the record before now is kept for pictures: at most, s, and in horizons.
BEFORE, HORIZONS = WEEK, 2

#: Of which there is a fan: what it is, in words.
FANS = {
    "load": "mean share of the processors that are busy in the step",
    "queue": "jobs in the queue at the end of the step",
    "queued_processors": "processors that these jobs request",
}


@dataclass(frozen=True)
class Fan:
    """A quantity over time.

    Attributes
    ----------
    name
        One of :data:`FANS`.
    bounds, mean
        Bounds, shape (levels, steps), and mean over futures, shape (steps,).
    before
        What the record had in the steps before now, shape (steps before,).
    """

    name: str
    bounds: Floats
    mean: Floats
    before: Floats


def series_of(outset: Outset, futures: Sequence[Future], steps: int) -> dict[str, Floats]:
    """Return the values of :data:`FANS` in whole steps, each of shape (futures, steps)."""
    size = outset.processors or outset.state.processors
    return {
        "load": np.array([one.busy[:steps] for one in futures]) / size,
        "queue": np.array([one.queued[:steps] for one in futures], np.float64),
        "queued_processors": np.array([one.asked[:steps] for one in futures], np.float64),
    }


def fans_of(
    outset: Outset, futures: Sequence[Future], steps: int, edges_before: Int64s
) -> dict[str, Fan]:
    """Return the fans of all quantities, in whole steps."""
    before = _before(outset, edges_before)
    return {
        name: Fan(name, quantiles(values.T, LEVELS).T, values.mean(axis=0), before[name])
        for name, values in series_of(outset, futures, steps).items()
    }


def edges_before_now(outset: Outset) -> Int64s:
    """Return the edges of the steps before now, as far as the record goes."""
    state = outset.state
    first = int(state.jobs.recorded_submit.min(initial=state.now))
    steps = min(BEFORE, HORIZONS * outset.horizon, state.now - first) // outset.step
    return state.now - outset.step * np.arange(steps, -1, -1)


def _before(outset: Outset, edges: Int64s) -> dict[str, Floats]:
    """Return the values of :data:`FANS` in steps of the record."""
    state, jobs = outset.state, outset.state.jobs
    submit, start, end = jobs.recorded_submit, jobs.recorded_start, jobs.recorded_end
    # Of jobs that left the queue without a start, that is their end.
    left = np.where(start == UNKNOWN, end, start)
    left = np.where(left == UNKNOWN, state.now + 1, left)
    ran = start != UNKNOWN
    busy = curves.mean_level(
        start[ran], np.where(end == UNKNOWN, state.now, end)[ran], jobs.processors[ran], edges
    )
    ends = edges[1:]
    return {
        "load": busy / state.processors,
        "queue": _present(submit, left, np.ones(len(jobs)), ends),
        "queued_processors": _present(submit, left, jobs.processors.astype(np.float64), ends),
    }


def _present(enters: Int64s, leaves: Int64s, weight: Floats, at: Int64s) -> Floats:
    """Return the weight of what has entered and not left at some seconds."""
    found = np.zeros(len(at))
    for times, sign in ((enters, 1), (leaves, -1)):
        order = np.argsort(times)
        sums = np.concatenate(([0.0], np.cumsum(weight[order])))
        found += sign * sums[np.searchsorted(times[order], at, side="right")]
    return found
