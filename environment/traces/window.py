"""A part of a trace: by time, user, group, queue, state and size."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.clock import BETWEEN, WEEK, Clock, Moment, parse_window, second_of
from hpcrowd.environment.errors import QuantityError, TraceError, not_one_of
from hpcrowd.environment.jobs import UNKNOWN, name_of, numbers_of
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.headers import true_header
from hpcrowd.environment.traces.trace import (
    Trace,
    as_trace,
    cut_references,
    smallest,
    take_jobs,
    tally,
)

#: Numbers of states in a trace, field 11, by word.
STATES = {"completed": (1,), "failed": (0,), "cancelled": (5,), "unknown": (UNKNOWN,)}

#: What jobs are chosen by, as numbers and names or ranges of them.
Chosen = Iterable[int | str | range] | str

#: Column of ``Trace.extra`` with states as the resource manager calls them.
FINAL_STATE = "final_state"

_SIZES = re.compile(r"(\d+)(-(\d*))?|-(\d+)", re.ASCII)


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
    begin: Moment | str | None = None,
    end: Moment | str | None = None,
    *,
    only_users: Chosen | None = None,
    only_groups: Chosen | None = None,
    only_queues: Chosen | None = None,
    only_states: Iterable[str] | str | None = None,
    only_processors: str | int | None = None,
) -> tuple[Trace, Windowed]:
    """Return the jobs submitted from ``begin`` on and before ``end``, with an updated header.

    If jobs are also chosen by user, queue and so on, those remain that every choice accepts.

    The beginning of the window is the new origin: submit times are counted from it, and
    ``UnixStartTime`` moves along. If the header has none, times move only by whole weeks, so that
    days of the week are preserved. The origin never moves back.

    Parameters
    ----------
    trace
        All jobs.
    begin, end
        Seconds of the trace, local dates and times, or texts such as ``2d`` or
        ``1996-10-14 16:00``; open unless given. ``begin`` may be both, such as ``2d..3d``.
    only_users, only_groups, only_queues
        Names, numbers, or ranges of numbers (of step 1), as a list or as a text such as
        ``ada,17,20-30``; all unless given. Groups are the accounts of most logs.
    only_states
        ``completed``, ``failed``, ``cancelled`` or ``unknown``, or states as the resource manager
        calls them (``TIMEOUT``), as a list or separated by commas.
    only_processors
        Sizes of jobs: ``64``, ``1-64``, or ``128-`` for at least 128. Requested processors, or the
        allocated ones where no request is known.

    Raises
    ------
    QuantityError
        If the window is empty, is given by dates but the trace has none, something is not known,
        or a user, group or queue has no job.
    TraceError
        If no job is left.
    """
    trace = as_trace(trace)
    if isinstance(begin, str) and BETWEEN in begin and end is None:
        begin, end = parse_window(begin)
    clock = Clock.of(trace.header)
    first, last = (None if each is None else second_of(each, clock) for each in (begin, end))
    if first is not None and last is not None and first >= last:
        raise QuantityError(f"window from {begin} to {end}: empty; it must end after it begins")
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
    chosen: list[str] = []
    for field, asked in (("user", only_users), ("group", only_groups), ("queue", only_queues)):
        if asked is not None:
            wanted = _wanted(trace, field, asked)
            leave_out(f"of other {field}s", ~_with(trace, field, wanted))
            chosen.append(f"of {field}s {_listed(trace, field, wanted)}")
    if only_states is not None:
        words = only_states.split(",") if isinstance(only_states, str) else list(only_states)
        wanted_states = np.zeros(len(trace), bool)
        for word in words:
            wanted_states |= _in_state(trace, word.strip())
        leave_out("in other states", ~wanted_states)
        chosen.append(f"in states {', '.join(word.strip() for word in words)}")
    if only_processors is not None:
        least, most = _sizes(str(only_processors))
        size = np.where(
            trace["requested_processors"] > 0,
            trace["requested_processors"],
            trace["allocated_processors"],
        )
        leave_out("of other sizes", (size < least) | (size > most))
        chosen.append(f"on {only_processors} processors")
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
        f"hpcrowd window: {_words(clock, first, last, chosen)}; {len(part):,} of "
        f"{plural(len(trace), 'job')}"
    )
    part.header = true_header(trace, part, moved=moved, note=note)
    return part, Windowed(first, last, moved, left_out, cut)


def _wanted(trace: Trace, field: str, asked: Chosen) -> list[int | range]:
    """Return the numbers of a field that are asked for, ranges as ranges."""
    found: list[int | range] = []
    for one in [asked] if isinstance(asked, str) else asked:
        found += numbers_of(trace.names, field, one) if isinstance(one, str) else [one]
    return found


def _with(trace: Trace, field: str, wanted: list[int | range]) -> NDArray[np.bool_]:
    """Return which jobs have these numbers; a single number without a job is an error."""
    values = trace[field]
    found = np.zeros(len(trace), bool)
    for each in wanted:
        if isinstance(each, range):
            mine = (values >= each.start) & (values < each.stop)
        else:
            mine = values == each
            if not mine.any():
                name = name_of(trace.names, field, each)
                raise QuantityError(f"{field} {name}: has no job in {trace.source}")
        found |= mine
    return found


def _listed(trace: Trace, field: str, wanted: list[int | range]) -> str:
    return ", ".join(
        f"{each.start}-{each.stop - 1}"
        if isinstance(each, range)
        else name_of(trace.names, field, each)
        for each in wanted
    )


def _in_state(trace: Trace, word: str) -> NDArray[np.bool_]:
    """Return which jobs are in a state: by status, or as the resource manager calls it.

    Raises QuantityError if there is no such state.
    """
    if word in STATES:
        return np.isin(trace["status"], STATES[word])
    final = trace.extra.get(FINAL_STATE, np.array([], np.object_))
    states = {text for text in final.tolist() if text}
    if word not in states:
        raise QuantityError(f"only-states {word!r}: {not_one_of(word, [*STATES, *sorted(states)])}")
    return np.asarray(final == word)


def _sizes(text: str) -> tuple[int, float]:
    """Return the smallest and the largest size that a text such as ``1-64`` names.

    Raises QuantityError if it is not a size or a range of sizes.
    """
    match = _SIZES.fullmatch(text.strip())
    least, most = 0, float("inf")
    if match and match[4]:
        most = int(match[4])
    elif match:
        least = int(match[1])
        most = least if match[2] is None else int(match[3]) if match[3] else most
    if match is None or least > most:
        raise QuantityError(
            f"only-processors {text!r}: not a size or a range; write 64, 1-64 or 128-"
        )
    return least, most


def _words(clock: Clock, first: int | None, last: int | None, chosen: list[str]) -> str:
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
    return " ".join([*words, ", ".join(chosen)]).strip() or "all jobs"
