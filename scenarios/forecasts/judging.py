"""Judging forecasts of a log on all cores, and hindcasts of the past of a state."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.forecast.hindsight import Hindsight
from hpcrowd.analysis.forecast.judge import Case, Subject, case_at, hindcast_at, in_order
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.limits.numbers import check_within
from hpcrowd.scenarios.engines import cores, each_in_processes

if TYPE_CHECKING:
    from rich.console import Console

    from hpcrowd.analysis.forecast.futures import Outset
    from hpcrowd.analysis.forecast.verdict import Verdict

#: Most moments of a judgement, and of hindcasts.
MOST_MOMENTS = 10_000

#: Shortest log that is judged, s: three weeks of past, and a week to foresee.
SHORTEST = 6 * WEEK

#: Weeks before now from which hindcasts are made.
BACK = 8

#: Hindcasts below which one process does everything: others need some seconds to begin.
FEW = 40


def judge(
    subject: Subject,
    moments: int = 200,
    warm_up: int = 80,
    *,
    processes: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> Verdict:
    """Judge forecasts at moments of the second half of a log.

    Parameters
    ----------
    subject
        The log, and how it is forecast.
    moments
        How many count.
    warm_up
        How many before them corrections learn from first.
    processes
        How many share the work; one for each core unless given.
    progress
        Called with moments done, and all.

    Raises
    ------
    QuantityError
        If the log is too short.
    """
    from hpcrowd.analysis.forecast.verdict import verdict

    check_within("moments", moments, 1, MOST_MOMENTS)
    check_within("warm_up", warm_up, 0, MOST_MOMENTS)
    length = int(np.ptp(subject.jobs.recorded_submit)) if len(subject.jobs) else 0
    if length < SHORTEST:
        raise QuantityError(
            f"judge: a log of {length / WEEK:.1f} weeks; forecasts are judged in its second half, "
            f"a week ahead, which needs {SHORTEST // WEEK} weeks: give a longer one"
        )
    rows = subject.moments(moments, warm_up).tolist()
    cases: list[Case] = []
    for _, case in each_in_processes(partial(case_at, subject), rows, processes or cores()):
        cases.append(case)
        if progress is not None:
            progress(len(cases), len(rows))
    return verdict(subject, cases, warm_up)


def hindsight_of(
    outset: Outset,
    hindcasts: int = 100,
    seed: int = 0,
    *,
    processes: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> Hindsight:
    """Learn from forecasts at earlier seconds of the record of a state.

    Parameters
    ----------
    outset
        Of the forecast.
    hindcasts
        At how many submissions of the last :data:`BACK` weeks.
    seed
        Of everything random.
    processes, progress
        As for :func:`judge`.
    """
    subject, found = Subject.of(outset, seed), Hindsight(seed=seed)
    jobs, now = subject.jobs, outset.state.now
    started = np.flatnonzero(jobs.recorded_start != UNKNOWN)
    recent = started[jobs.recorded_submit[started] > now - BACK * WEEK]
    recent = recent[np.argsort(jobs.recorded_submit[recent], kind="stable")]
    if not len(recent):
        return found
    rows = np.unique(recent[np.linspace(0, len(recent) - 1, hindcasts).astype(np.int64)]).tolist()
    count = 1 if len(rows) < FEW else processes or cores()
    cases: list[Case] = []
    for _, case in each_in_processes(partial(hindcast_at, subject), rows, count):
        cases.append(case)
        if progress is not None:
            progress(len(cases), len(rows))
    for case in in_order(cases):
        found.add(case.features, case.now, case.start)
    return found


def show(found: Verdict, console: Console) -> None:
    """Print what a judge finds."""
    from hpcrowd.analysis.forecast.verdict import tables
    from hpcrowd.scenarios.terminal import plain_table

    for title, heading, rows in tables(found):
        console.print(plain_table(*heading, rows=rows, title=title))
        console.print()


def write(found: Verdict, folder: Path, configuration: dict[str, Any]) -> None:
    """Write what a judge finds: ``judgement.json``, and ``provenance.json``."""
    from hpcrowd.analysis.results import write_json, write_origin
    from hpcrowd.environment.output.whole import whole_folder

    with whole_folder(folder) as place:
        write_json(found.to_dict(), place / "judgement.json")
        write_origin(place, configuration)
