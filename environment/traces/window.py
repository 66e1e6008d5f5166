"""The jobs of a trace that were submitted in a window of time, or by some of its users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.clock import WEEK, Clock, Moment, second_of
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.headers import true_header
from hpcrowd.environment.traces.trace import Trace, cut_references, smallest, take_jobs, tally


@dataclass(frozen=True)
class Windowed:
    """The outcome of :func:`window`.

    Attributes
    ----------
    begin, end
        The window, in s of the original trace; None if open.
    moved
        How much later the new origin is, in s.
    left_out
        Jobs that were left out, by reason; each counts for the first reason that applies.
    cut
        Number of references to jobs that were left out, which become -1.
    """

    begin: int | None
    end: int | None
    moved: int
    left_out: Counter[str]
    cut: int


def window(
    trace: Trace,
    begin: Moment | None = None,
    end: Moment | None = None,
    *,
    only_users: Iterable[int | range] | None = None,
) -> tuple[Trace, Windowed]:
    """Return the jobs submitted from ``begin`` on and before ``end``, with an updated header.

    The beginning of the window is the new origin: submit times are counted from it, and
    ``UnixStartTime`` moves along. If the header has none, times move only by whole weeks, so that
    days of the week are preserved. The origin never moves back.

    Parameters
    ----------
    trace
        All jobs.
    begin, end
        Seconds of the trace, or local dates and times; open unless given.
    only_users
        Numbers of users, or ranges of them (of step 1); all unless given.

    Raises
    ------
    QuantityError
        If the window is empty, is given by dates but the trace has none, or a user has no job.
    TraceError
        If no job is left.
    """
    clock = Clock.of(trace.header)
    first, last = (None if each is None else second_of(each, clock) for each in (begin, end))
    if first is not None and last is not None and first >= last:
        raise QuantityError(f"window from {begin} to {end}: empty; it must end after it begins")
    wanted = None if only_users is None else list(only_users)
    submit = trace["submit"]
    keep = np.ones(len(trace), bool)
    left_out: Counter[str] = Counter()

    def leave_out(reason: str, which: NDArray[np.bool_]) -> None:
        tally(left_out, reason, which & keep)
        keep[which] = False

    if first is not None or last is not None:
        leave_out("no submit time", submit < 0)
    if first is not None:
        leave_out("submitted before the window", submit < first)
    if last is not None:
        leave_out("submitted after the window", submit >= last)
    if wanted is not None:
        leave_out("of other users", ~_of_users(trace, wanted))
    if not keep.any():
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        raise TraceError(f"{trace.source}: no job is left of {len(trace):,}: {reasons}")

    part, cut = cut_references(trace, take_jobs(trace, keep))
    moved = max(first or 0, 0)
    if clock.nominal:
        moved -= moved % WEEK
    kept = part["submit"]
    if moved:
        moved_submit = np.where(kept >= 0, kept.astype(np.float64) - moved, kept)
        part = replace(part, columns=part.columns | {"submit": smallest(moved_submit)})
    note = (
        f"hpcrowd window: {_words(clock, first, last, wanted)}; {len(part):,} of "
        f"{plural(len(trace), 'job')}"
    )
    part.header = true_header(trace, part, moved=moved, note=note)
    return part, Windowed(first, last, moved, left_out, cut)


def _of_users(trace: Trace, wanted: list[int | range]) -> NDArray[np.bool_]:
    """Return which jobs are of these users; a single user without a job is an error."""
    user = trace["user"]
    found = np.zeros(len(trace), bool)
    for each in wanted:
        if isinstance(each, range):
            mine = (user >= each.start) & (user < each.stop)
        else:
            mine = user == each
            if not mine.any():
                raise QuantityError(f"user {each}: has no job in {trace.source}")
        found |= mine
    return found


def _words(
    clock: Clock, first: int | None, last: int | None, wanted: list[int | range] | None
) -> str:
    """Return the request in words."""

    def when(second: int) -> str:
        try:
            return f"{second} s" if clock.nominal else f"{clock.local(second):%Y-%m-%d %H:%M:%S}"
        except (OverflowError, ValueError):  # beyond the calendar
            return f"{second} s"

    edges = [
        f"{word} {when(edge)}" for word, edge in (("from", first), ("to", last)) if edge is not None
    ]
    words = ["submitted", *edges] if edges else []
    if wanted is not None:
        numbers = (f"{u.start}-{u.stop - 1}" if isinstance(u, range) else str(u) for u in wanted)
        words += ["of users", ", ".join(numbers)]
    return " ".join(words) or "all jobs"
