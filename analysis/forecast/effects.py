"""What a change does: differences of two sets of futures, paired by number.

Futures of the same number have the same users and run times up to the change, so that their
difference varies much less than either. All is measured up to the horizon: a wait or a start that
lies beyond it counts as the horizon, which makes differences smaller, not larger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.forecast.answers import check_futures, name_of_asked, starts_of
from hpcrowd.analysis.forecast.bounds import (
    BOUNDS,
    Waits,
    bounds,
    by_step,
    flat_frame,
    over_futures,
    series_of,
)
from hpcrowd.analysis.paired import CONFIDENCE, RESAMPLES, Estimate, t_interval
from hpcrowd.analysis.pictures.waits import ALL
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.streams import Streams

if TYPE_CHECKING:
    import pandas as pd

    from hpcrowd.analysis.forecast.futures import Future, Outset

#: What is compared of the whole horizon, by name with unit.
MEASURES = {
    "load": "mean share of the processors that are busy",
    "busy_processors": "mean processors that are busy",
    "queue": "mean jobs in the queue",
    "queued_processors": "mean processors that these jobs request",
    "jobs": "jobs that users submit",
    "mean_wait_s": "mean wait of the jobs that users submit",
    "mean_wait_now_s": "mean wait, from now on, of the jobs that wait now",
    "start_s": "start of a job",
}


@dataclass(frozen=True)
class Effect:
    """The effect of a change on one number, future by future."""

    measure: str  #: One of :data:`MEASURES`.
    of: str  #: Class of processors, or the job, that it is measured for; empty for all.
    #: Without and with the change; shape (pairs,), NaN where a future has no value.
    first: Floats
    second: Floats
    #: Share of the pairs in which a start lies beyond the horizon, with or without the change.
    beyond: float = 0.0

    @property
    def differences(self) -> Floats:
        """With minus without the change, in each pair that has both; shape (some pairs,)."""
        return (self.second - self.first)[self._both]

    @property
    def _both(self) -> NDArray[np.bool_]:
        return ~(np.isnan(self.first) | np.isnan(self.second))

    @property
    def bounds(self) -> Floats:
        """Bounds of the difference in one future, shape (levels,); NaN without a pair."""
        found = self.differences
        return over_futures(found[:, None])[:, 0] if len(found) else np.full(len(BOUNDS), np.nan)

    @property
    def mean(self) -> Estimate:
        """The mean difference with its interval (Student), which shrinks with more futures."""
        found = self.differences
        if not len(found):
            return Estimate(float("nan"), None, None, 0)
        return t_interval(found.tolist())

    @property
    def error(self) -> float | None:
        """Standard error of the mean difference; None with fewer than two pairs."""
        found = self.differences
        if len(found) < 2:
            return None
        return float(found.std(ddof=1) / np.sqrt(len(found)))

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data: the means of both, and the difference."""
        mean, both = self.mean, self._both
        some = mean.count > 0
        return {
            "measure": self.measure,
            "of": self.of,
            "pairs": mean.count,
            "first_mean": float(self.first[both].mean()) if some else None,
            "second_mean": float(self.second[both].mean()) if some else None,
            "difference_mean": mean.mean if some else None,
            "standard_error": self.error,
            "difference_mean_low": mean.low,
            "difference_mean_high": mean.high,
            **{f"difference_{name}": value for name, value in bounds(self.bounds).items()},
            "beyond_horizon_share": self.beyond,
        }


@dataclass(frozen=True)
class Effects:
    """The effects of a change."""

    label: str  #: The change, in words.
    #: As in :class:`~hpcrowd.analysis.forecast.answers.Answers`.
    now: int
    until: int
    clock: Clock
    pairs: Int64s  #: Numbers of the futures, shape (pairs,).
    totals: tuple[Effect, ...]  #: Effects on the whole horizon.
    #: Effects on the starts of the jobs that wait now in both, then on those that one would submit,
    #: by their order.
    jobs: tuple[Effect, ...]
    edges: Int64s  #: Edges of the steps of ``fans``.
    #: Bounds of the differences by step, shape (levels, steps), by name.
    fans: Mapping[str, Floats]

    def __getitem__(self, measure: str) -> Effect:
        """Return the effect on a measure of the whole horizon, over all jobs."""
        for one in self.totals:
            if one.measure == measure and one.of in ("", ALL):
                return one
        raise KeyError(measure)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data, fit for JSON."""
        return {
            "label": self.label,
            "now_s": self.now,
            "until_s": self.until,
            "futures": self.pairs.tolist(),
            "confidence": CONFIDENCE,
            "totals": [one.to_dict() for one in self.totals],
            "jobs": [one.to_dict() for one in self.jobs],
            "fans": by_step(self.clock, self.edges, self.fans),
            "meaning": MEASURES,
        }

    def frame(self) -> pd.DataFrame:
        """Return the effects on the whole horizon, and those on jobs, as a table."""
        return flat_frame([one.to_dict() for one in (*self.totals, *self.jobs)])


def effects_of(
    first: Outset,
    second: Outset,
    first_futures: Sequence[Future],
    second_futures: Sequence[Future],
    label: str = "",
) -> Effects:
    """Compare the futures of two outsets, in pairs of the same number.

    The first is without and the second with the change, which the label says in words; both have
    the same second and horizon. Jobs that one would submit are compared by their order, so that a
    change can be how a job is submitted. A QuantityError is raised if the futures are not pairs, in
    any order, or not those of the outsets.
    """
    check_futures(first, first_futures)
    check_futures(second, second_futures)
    for what, one, other in (
        ("second", first.state.now, second.state.now),
        ("horizon", first.horizon, second.horizon),
        ("jobs_only", first.jobs_only, second.jobs_only),
    ):
        if one != other:
            raise QuantityError(f"{what} {one} without and {other} with the change: must be equal")
    futures = [sorted(one, key=attrgetter("number")) for one in (first_futures, second_futures)]
    numbers, others = (np.array([one.number for one in some], np.int64) for some in futures)
    if not np.array_equal(numbers, others):
        lone = np.setxor1d(numbers, others)
        which = f"future {lone[0]} is in one only" if len(lone) else "a number is there twice"
        raise QuantityError(f"futures in pairs: {which}; simulate the same numbers of both")
    outsets = (first, second)
    until = first.state.now + first.horizon
    steps = 0 if first.jobs_only else first.horizon // first.step
    series = [series_of(o, some, steps) for o, some in zip(outsets, futures, strict=True)]
    fans = {name: over_futures(series[1][name] - series[0][name]) for name in series[0]}
    starts = [_starts(o, some, until) for o, some in zip(outsets, futures, strict=True)]
    totals = tuple(_totals(outsets, futures, series, starts, until)) if steps else ()
    return Effects(
        label, first.state.now, until, first.state.clock, numbers, totals,
        tuple(_jobs(*starts)), first.state.now + first.step * np.arange(steps + 1),
        fans if steps else {},
    )  # fmt: skip


class _Starts(NamedTuple):
    """Starts of the jobs of an outset, by what they are paired by: number, or place if asked."""

    cut: dict[str, Floats]  #: s since the origin, up to the horizon, shape (futures,)
    beyond: dict[str, NDArray[np.bool_]]  #: whether they lie beyond it, shape (futures,)
    names: dict[str, str]
    waiting: list[str]  #: those that wait now


def _starts(outset: Outset, futures: Sequence[Future], until: int) -> _Starts:
    start, _ = starts_of(outset, futures)
    rows = outset.rows[len(outset.state.running) :]
    jobs = outset.state.jobs
    called = {
        f"job {number}": f"job {jobs.who(number, 'job')}" for number in jobs.number[rows].tolist()
    }
    waiting = list(called)
    asked = {f"asked {place}": name_of_asked(one) for place, one in enumerate(outset.asked)}
    keys = [*waiting, *asked]
    return _Starts(
        {key: np.minimum(row, until) for key, row in zip(keys, start, strict=True)},
        {key: np.isinf(row) for key, row in zip(keys, start, strict=True)},
        called | asked,
        waiting,
    )


def _jobs(first: _Starts, second: _Starts) -> Iterator[Effect]:
    """Yield the effects on the starts of jobs."""
    for key, values in first.cut.items():
        if key in second.cut:
            names = dict.fromkeys((first.names[key], second.names[key]))
            late = first.beyond[key] | second.beyond[key]
            label = ", then ".join(names)
            yield Effect("start_s", label, values, second.cut[key], float(late.mean()))


def _totals(
    outsets: Sequence[Outset],
    futures: Sequence[Sequence[Future]],
    series: Sequence[Mapping[str, Floats]],
    starts: Sequence[_Starts],
    until: int,
) -> Iterator[Effect]:
    """Yield the effects on the whole horizon."""

    def means(name: str) -> tuple[Floats, Floats]:
        return series[0][name].mean(axis=1), series[1][name].mean(axis=1)

    load = means("load")
    yield Effect("load", "", *load)
    sizes = [one.processors or one.state.processors for one in outsets]
    yield Effect("busy_processors", "", load[0] * sizes[0], load[1] * sizes[1])
    for name in ("queue", "queued_processors"):
        yield Effect(name, "", *means(name))
    largest = max(int(one.processors.max(initial=1)) for some in futures for one in some)
    days = np.array([outsets[0].state.now, until], np.int64)
    first, second = (Waits.of(some, until, days, largest) for some in futures)
    counts = [one.jobs[:, -1, -1].astype(np.float64) for one in (first, second)]
    yield Effect("jobs", "", counts[0], counts[1])
    for place in (len(first.classes) - 1, *range(len(first.classes) - 1)):
        one, other = first.mean[:, place, -1], second.mean[:, place, -1]
        if not (np.isnan(one).all() and np.isnan(other).all()):
            yield Effect("mean_wait_s", first.classes[place], one, other)
    both = [name for name in starts[0].waiting if name in starts[1].cut]
    if both:
        now = outsets[0].state.now
        left = [np.mean([found.cut[name] for name in both], axis=0) - now for found in starts]
        late = np.any([found.beyond[name] for name in both for found in starts], axis=0)
        yield Effect("mean_wait_now_s", "", left[0], left[1], float(late.mean()))


# ---- users who react ----------------------------------------------------------------------------


@dataclass(frozen=True)
class EatenUp:
    """How much of the effect of a change is eaten up by the reaction of users."""

    measure: str  #: What the effect is on.
    #: Mean effect without and with users who react, with intervals over futures.
    rigid: Estimate
    reacting: Estimate
    #: ``1 - reacting / rigid``: 0, users do not matter; 1, nothing is left of the effect; above 1,
    #: it is turned around; below 0, users add to it. With its interval; None if the effect on rigid
    #: users cannot be distinguished from 0, so that there is nothing to eat up.
    share: Estimate | None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "measure": self.measure,
            "confidence": CONFIDENCE,
            **{name: _wire(getattr(self, name)) for name in ("rigid", "reacting", "share")},
        }


def _wire(one: Estimate | None) -> dict[str, Any] | None:
    if one is None:
        return None
    return {"mean": one.mean, "low": one.low, "high": one.high, "pairs": one.count}


def eaten_up(
    rigid: Effects, reacting: Effects, measure: str = "mean_wait_s", seed: int = 0
) -> EatenUp:
    """Return how much of the effect of a change is eaten up by the reaction of users.

    Both effects are of the same change: on users who do not react, and on those who do; the measure
    is one of :data:`MEASURES`, but for starts. The interval is the percentile interval of a
    bootstrap over numbers of futures; all four futures of a number stay together. A QuantityError
    is raised if the numbers differ, or fewer than two futures have the measure in all four sets.
    """
    if not np.array_equal(rigid.pairs, reacting.pairs):
        raise QuantityError(
            f"futures of users who react: {len(reacting.pairs)}, of rigid users "
            f"{len(rigid.pairs)}, or of other numbers; simulate the same numbers of both"
        )
    both = [effects[measure] for effects in (rigid, reacting)]
    raw = np.array([one.second - one.first for one in both])
    raw = raw[:, ~np.isnan(raw).any(axis=0)]
    count = raw.shape[1]
    if count < 2:
        raise QuantityError(
            f"{measure}: {count} futures have it in all four sets; two or more are needed"
        )
    stiff, soft = (t_interval(one.tolist()) for one in raw)
    share = None
    if stiff.low is not None and stiff.high is not None and stiff.low * stiff.high > 0:
        stream = Streams(seed).generator("eaten up")
        drawn = stream.integers(count, size=(RESAMPLES, count))
        below, above = (one[drawn].mean(axis=1) for one in raw)
        shares = 1 - above[below != 0] / below[below != 0]
        tail = (1 - CONFIDENCE) / 2
        low, high = np.quantile(shares, (tail, 1 - tail))
        share = Estimate(1 - soft.mean / stiff.mean, float(low), float(high), count)
    return EatenUp(measure, stiff, soft, share)
