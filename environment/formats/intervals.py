"""Sets of resources as Batsim writes them, ``0-3 5``: intervals apart by blanks.

Source: documentation of Batsim (Interval set).
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from environment.jobs import Int64s
from environment.placement import place
from environment.trace import Trace

# Numbers of resources have 15 digits at most, so that their counts are exact.
_SETS = re.compile(r"[0-9]{1,15}(-[0-9]{1,15})?( [0-9]{1,15}(-[0-9]{1,15})?)*", re.ASCII)


def count_of(text: str) -> int | None:
    """Return how many resources a set has, 0 for empty text, None where it is no set."""
    if not text:
        return 0
    if not _SETS.fullmatch(text):
        return None
    count, done = 0, -1  # resources up to ``done`` are counted
    for first, last in sorted(_intervals(text)):
        if last < first:
            return None
        count += max(0, last - max(first - 1, done))
        done = max(done, last)
    return count


def last_of(text: str) -> int:
    """Return the resource with the largest number of a set, -1 if it is empty."""
    return max((last for _, last in _intervals(text)), default=-1)


def _intervals(text: str) -> list[tuple[int, int]]:
    found = []
    for word in text.split():
        first, _, last = word.partition("-")
        found.append((int(first), int(last or first)))
    return found


def interval_texts(trace: Trace, placed: NDArray[np.bool_], size: Int64s) -> list[str]:
    """Return which processors jobs are on, by first fit, shape (jobs,).

    Parameters
    ----------
    trace
        Tells when jobs run, and the size of the machine.
    placed
        Which jobs run, shape (jobs,); the others get empty sets.
    size
        Processors of each job, shape (jobs,).
    """
    rows = np.flatnonzero(placed)
    begin: Any = (trace["submit"].astype(np.float64) + trace["wait"])[rows]
    end = begin + trace["run"][rows]
    machine = trace.header.processors or int(size.max(initial=1))
    found = place(begin, end, size[rows], machine)
    pieces: list[list[tuple[int, int]]] = [[] for _ in rows]
    for job, row, height in zip(
        found.job.tolist(), found.row.tolist(), found.height.tolist(), strict=True
    ):
        pieces[job].append((row, row + height - 1))
    texts = [""] * len(trace)
    for job, row in enumerate(rows.tolist()):
        texts[row] = _text(sorted(pieces[job]))
    return texts


def _text(pieces: list[tuple[int, int]]) -> str:
    """Return pieces that do not overlap as intervals as large as possible."""
    joined: list[tuple[int, int]] = []
    for first, last in pieces:
        if joined and joined[-1][1] + 1 == first:
            joined[-1] = joined[-1][0], last
        else:
            joined.append((first, last))
    return " ".join(f"{a}-{b}" if a < b else f"{a}" for a, b in joined)
