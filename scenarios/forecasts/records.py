"""How bounds of starts do with records of a certain length, and the prior that short ones need.

At moments of the second half of a log the record is cut to that length, as if accounting began
there; then everything is done as by ``hpcrowd forecast``. Of what was over before the begin nothing
is known, jobs that ran or waited then are.

The numbers of :mod:`hpcrowd.analysis.forecast.prior` are made by

    python -m hpcrowd.scenarios.forecasts.records KTH-SP2.swf.gz HPC2N.swf.gz ...

which judges each log with the prior of the others, too, and prints that to the standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.forecast.judge import Case, Subject, in_order, situation_at
from hpcrowd.analysis.forecast.prior import Prior, Seen, fit_prior, written
from hpcrowd.analysis.forecast.scores import mean_difference
from hpcrowd.analysis.forecast.site_bounds import SiteBounds
from hpcrowd.analysis.forecast.verdict import BoundScores, bound_scores
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.quantities import format_duration
from hpcrowd.environment.streams import Streams
from hpcrowd.scenarios.engines import cores, each_in_processes
from hpcrowd.scenarios.forecasts.making import hindcasts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.console import Console

#: Lengths of record that the shares of the prior are measured at, s; its numbers are of the second.
LENGTHS = (2 * HOUR, DAY, WEEK)

#: Moments of each log, and hindcasts at each, that the prior is made from.
MOMENTS, HINDCASTS = 40, 20

#: One in how many hindcasts of a moment the prior is fitted to: neighbours are alike.
THINNED = 4

KINDS = ("all", "waiting", "fresh")


@dataclass(frozen=True)
class Recorded:
    """A moment with a record of some length, and what came."""

    case: Case  #: The jobs that are judged.
    hindcasts: list[Case]  #: Of the record.

    def bounds(self, prior: Prior | None = None) -> Floats:
        """Return the final bounds of the waits of its jobs, s, shape (jobs, levels)."""
        site = SiteBounds(prior)
        site.learn(self.hindcasts)
        return site.bounds(self.case.features, self.case.fresh, self.case.now)


def recorded_at(subject: Subject, hindcasts: int, row: int) -> Recorded:
    """Return the moment of the submission of a job, with hindcasts from the record before it."""
    case, outset, *_ = situation_at(subject, row)
    return Recorded(case, hindcasts_of(outset, hindcasts, subject.seed, processes=1))


def recorded(
    subject: Subject,
    length: int,
    moments: int = 200,
    hindcasts: int = 100,
    *,
    processes: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> list[Recorded]:
    """Return moments of the second half of a log, by time, each with a record of a length, s.

    Other parameters are as of :func:`~hpcrowd.scenarios.forecasts.making.judge`. A QuantityError is
    raised if the log is not twice as long, and a week.
    """
    span = int(np.ptp(subject.jobs.recorded_submit)) if len(subject.jobs) else 0
    if span < 2 * (length + WEEK):
        raise QuantityError(
            f"--record {format_duration(length)}: a log of {span / WEEK:.1f} weeks; forecasts are "
            f"judged in its second half, which needs {2 * (length + WEEK) / WEEK:.1f} weeks"
        )
    rows = subject.moments(moments, 0).tolist()
    work = partial(recorded_at, replace(subject, record=length), hindcasts)
    found: list[Recorded] = []
    for _, one in each_in_processes(work, rows, processes or cores()):
        found.append(one)
        if progress is not None:
            progress(len(found), len(rows))
    order = {id(case): place for place, case in enumerate(in_order([one.case for one in found]))}
    return sorted(found, key=lambda one: order[id(one.case)])


@dataclass(frozen=True)
class RecordScores(BoundScores):
    """How good bounds of waits were, and how sure that is."""

    #: 95 % interval of each share within bounds, from blocks of moments drawn again, as jobs of a
    #: moment wait for the same processors; None for a few moments.
    between90: tuple[float, float] | None
    between50: tuple[float, float] | None


def scores(
    found: Sequence[Recorded], prior: Prior | None = None, seed: int = 0
) -> dict[str, RecordScores]:
    """Return how good the final bounds were, by kind of jobs; kinds without jobs are left out.

    Moments are in the order of time; the seed is of the intervals.
    """
    said, came, fresh, moments = [], [], [], []
    for place, one in enumerate(found):
        case = one.case
        there = case.start != UNKNOWN
        moments.append(np.full(int(there.sum()), place))
        said.append(one.bounds(prior)[there])
        came.append((case.start - case.now)[there].astype(np.float64))
        fresh.append(case.fresh[there])
    bounds, waits, new, moment = (np.concatenate(each) for each in (said, came, fresh, moments))
    picked: dict[str, NDArray[np.bool_]] = dict(
        zip(KINDS, (np.ones(len(new), bool), ~new, new), strict=True)
    )
    result = {}
    for kind, which in picked.items():
        if which.any():
            some, wait, when = bounds[which], waits[which], moment[which]
            sure = [
                _interval((some[:, low] <= wait) & (wait <= some[:, -1 - low]), when, seed)
                for low in (0, 1)
            ]
            result[kind] = RecordScores(**vars(bound_scores(some, wait)), between90=sure[0],
                                        between50=sure[1])  # fmt: skip
    return result


def _interval(inside: NDArray[np.bool_], moment: Int64s, seed: int) -> tuple[float, float] | None:
    """Return the interval of a share of jobs, shape (jobs,), by moments drawn again."""
    jobs = np.bincount(moment)
    hits, jobs = np.bincount(moment, inside)[jobs > 0], jobs[jobs > 0]
    share = float(inside.mean())
    # What a moment moves the share by: first order of the ratio of two sums.
    moved = share + (hits - share * jobs) / jobs.mean()
    draw = Streams(seed).generator("records", "moments")
    found = mean_difference(moved, np.zeros(len(moved)), draw)
    if found.low is None or found.high is None:
        return None
    return max(found.low, 0.0), min(found.high, 1.0)


def show(found: dict[str, RecordScores], length: int, console: Console) -> None:
    """Print scores of bounds with records of a length, s."""
    from hpcrowd.scenarios.terminal import plain_table

    def share(inside: float, between: tuple[float, float] | None) -> str:
        sure = "" if between is None else f" ({100 * between[0]:.0f} to {100 * between[1]:.0f})"
        return f"{100 * inside:.1f} %{sure}"

    rows = [
        [kind, f"{one.jobs:,}", share(one.cover90, one.between90),
         share(one.cover50, one.between50),
         f"{100 * one.below50:.1f} %", f"{100 * one.above50:.1f} %", f"{one.width90:.2f}",
         f"{one.width50:.2f}"]
        for kind, one in found.items()
    ]  # fmt: skip
    heading = ("jobs", "number", "in 90 %", "in 50 %", "below", "above", "width", "of 50 %")
    title = f"Final bounds with a record of {format_duration(length)}, waits in ln(1 + minutes)"
    console.print(plain_table(*heading, rows=rows, title=title))


# ---- the prior -----------------------------------------------------------------------------------


def seen_in(found: Sequence[Recorded]) -> Seen:
    """Return the jobs that a prior is fitted to, those of one moment with less weight each."""
    parts = []
    for one in found:
        for case in (*one.hindcasts[::THINNED], one.case):
            there = (case.start != UNKNOWN) & (case.start >= case.now)
            count = int(there.sum())
            parts.append(Seen(
                case.features[there], (case.start - case.now)[there].astype(np.float64),
                case.fresh[there], np.full(count, max(count, 1) ** -0.5),
            ))  # fmt: skip
    return Seen(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def make_prior(logs: Sequence[Path]) -> Prior:
    """Return the prior of some logs, with the shares that hold when one log is left out."""
    from hpcrowd.scenarios.forecasts.forecast import Forecast

    subjects = [Forecast(path).subject() for path in logs]
    moments = {
        length: [recorded(one, length, MOMENTS, HINDCASTS) for one in subjects]
        for length in LENGTHS
    }
    seen = [seen_in(one) for one in moments[DAY]]
    held = []
    for length, of_logs in moments.items():
        shares = []
        for place, (path, found) in enumerate(zip(logs, of_logs, strict=True)):
            others = fit_prior([*seen[:place], *seen[place + 1 :]])
            for kind, one in scores(found, others).items():
                print(
                    f"{path.name} {format_duration(length)} {kind}: {one.jobs} jobs, in 90 % "
                    f"{100 * one.cover90:.1f}, in 50 % {100 * one.cover50:.1f}, width "
                    f"{one.width90:.2f}",
                    file=sys.stderr,
                )
                shares += [one.cover90] if kind == KINDS[0] else []
        held.append((length, round(float(np.mean(shares)), 2)))
    return replace(fit_prior(seen), held=tuple(held))


if __name__ == "__main__":
    paths = [Path(one) for one in sys.argv[1:]]
    command = f"python -m hpcrowd.scenarios.forecasts.records {' '.join(one.name for one in paths)}"
    sys.stdout.write(written(make_prior(paths), f"Made by {command}"))
