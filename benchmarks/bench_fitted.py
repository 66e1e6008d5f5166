"""Schedulers fitted to logs: how near starts come at later moments, and what a fit takes.

How near they can come shows a scheduler that knows in which order the jobs started in the record.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, override

import numpy as np
import pytest

from hpcrowd import Clock, read_swf
from hpcrowd.analysis.forecast.judge import Subject
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.schedulers.base import Look, Scheduler, WaitingJob
from hpcrowd.environment.state.moments import Moment, Score, moments_of
from hpcrowd.environment.state.site_fit import fit_site
from hpcrowd.environment.state.state import ClusterState
from hpcrowd.scenarios.forecasts.inputs import known_jobs

#: Logs with recorded waits.
LOGS = (
    "KTH-SP2-1996-2.1-cln", "LANL-CM5-1994-4.1-cln", "HPC2N-2002-2.2-cln", "SDSC-DS-2004-2.1-cln",
    "DAS2-fs1-2003-1", "CEA-Curie-2011-2.1-cln",
)  # fmt: skip

#: Moments after those of the fit.
LATER = 60


class RecordedOrder(Scheduler):
    """Starts jobs in the order of their starts in the record, each as soon as it fits."""

    name = "recorded-order"

    def __init__(self, begun: Int64s | None = None) -> None:
        self._begun = begun

    @override
    def select(self, look: Look) -> Iterable[WaitingJob]:
        free, begun = look.free, self._begun
        assert begun is not None
        for job in sorted(look.waiting, key=lambda one: (begun[one.row], one.row)):
            if job.processors > free:
                return
            free -= job.processors
            yield job


def later_moments(trace: Any, jobs: Any) -> list[Moment]:
    """Return moments of the second half of a log."""
    clock = Clock.of(trace.header)
    rows = np.unique(Subject(jobs, clock, trace.processors).moments(LATER, 0))
    return moments_of(jobs, clock, trace.processors, rows)


@pytest.mark.parametrize("log", LOGS)
def bench_recorded_order(
    trace_path: Callable[[str], Path], figure: Callable[..., None], log: str
) -> None:
    """The order of the record in the second half of a log."""
    trace = read_swf(trace_path(log))
    moments = later_moments(trace, known_jobs(trace))
    score = Score.of_starts(moments, [one.starts(RecordedOrder(one.start)) for one in moments])
    for within, share in zip(("1 min", "10 min", "1 h"), score.shares, strict=True):
        figure(f"{log}: recorded order, waiting, {within}", 100 * share, "%", "")


@pytest.mark.parametrize("log", LOGS)
def bench_starts(trace_path: Callable[[str], Path], figure: Callable[..., None], log: str) -> None:
    """When jobs of the first half that waited for more than a minute start."""
    trace = read_swf(trace_path(log))
    known = known_jobs(trace)
    middle = int(np.median(known.recorded_submit))
    jobs = ClusterState.of(known, middle, Clock.of(trace.header), trace.processors).jobs
    submit, start, end = jobs.recorded_submit, jobs.recorded_start, jobs.recorded_end
    ran = (start >= 0) & (end >= start)
    times = np.concatenate((start[ran], end[ran]))
    order = np.argsort(times, kind="stable")
    held = np.concatenate((jobs.processors[ran], -jobs.processors[ran]))[order].cumsum()
    rows = np.flatnonzero(ran & (start - submit > 60))
    ends = np.sort(end[ran])
    since = start[rows] - ends[np.maximum(np.searchsorted(ends, start[rows], "right") - 1, 0)]
    for limit in (5, 60, 600):
        share = 100 * (since <= limit).mean()
        figure(f"{log}: start within {limit} s of the end of another", share, "%", "")
    for before in (1, 60, 3600):
        at = np.searchsorted(times[order], start[rows] - before, "left") - 1
        used = np.where(at >= 0, held[np.maximum(at, 0)], 0)
        waited = (start - submit)[rows] > before
        fits = (used + jobs.processors[rows] <= trace.processors)[waited].mean()
        figure(f"{log}: would have fitted {before} s before", 100 * fits, "%", "")


@pytest.mark.parametrize("log", LOGS)
def bench_fitted(trace_path: Callable[[str], Path], figure: Callable[..., None], log: str) -> None:
    """Fit to the first half of a log, and try what was found in the second."""
    trace = read_swf(trace_path(log))
    jobs, clock = known_jobs(trace), Clock.of(trace.header)
    middle = int(np.median(jobs.recorded_submit))
    before = ClusterState.of(jobs, middle, clock, trace.processors).jobs
    began: Any = time.process_time()
    fit = fit_site(before, clock, trace.processors)
    figure(f"{log}: fit to {len(before):,} jobs", time.process_time() - began, "s", "<= 120")
    moments = later_moments(trace, jobs)
    print("\n".join([log, *fit.lines()]))
    for one in (fit.single, fit.best):
        score = Score.of(moments, one.text)
        for kind, shares in (("waiting", score.shares), ("new", score.new_shares)):
            for within, share in zip(("1 min", "10 min", "1 h"), shares, strict=True):
                figure(f"{log}: {one.text[:30]}, {kind}, {within}", 100 * share, "%", "")
