"""Colours of jobs in Gantt pictures: by user, queue, state or cluster, the same in every picture.

A user's colour depends on the run's work alone, not on the window that is drawn: the users with
the most work have colours of their own, the others share greys. Seven colours can be told apart by
colour-blind people; the next seven users have them again, hatched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.plots import COLOURS
from environment.errors import QuantityError
from environment.jobs import UNKNOWN, Int64s, JobTable, State

#: Colours in the order in which they are given.
HUES = ("blue", "orange", "green", "vermilion", "sky", "purple", "yellow")

#: Hatches in the order in which they are given, each for all hues.
HATCHES = ("", "///")

#: Greys of the users without a colour, by their number, so that neighbours differ.
GREYS = ("#b3b3b3", "#c6c6c6", "#d6d6d6")

#: Looks of states; unfinished jobs are still running when the run ends.
OF_STATES = {
    State.COMPLETED: "blue",
    State.KILLED: "vermilion",
    State.UNFINISHED: "yellow",
    State.CANCELLED: "purple",
    State.REJECTED: "orange",
    State.RENOUNCED: "green",
    State.FAILED: "sky",
}

#: Most entries of a legend.
MOST_ENTRIES = 9


@dataclass(frozen=True)
class Look:
    """How some jobs are drawn."""

    colour: str
    hatch: str = ""
    label: str = ""  #: name in the legend; empty for those that share a colour


@dataclass(frozen=True)
class Looks:
    """The looks of all jobs of a run.

    Attributes
    ----------
    looks
        Every look.
    which
        Place of each job's look, shape (jobs,).
    others
        What those without a look of their own are, such as ``other users``.
    """

    looks: list[Look]
    which: Int64s
    others: str

    def legend(self, weight: Int64s | NDArray[np.float64], rows: Int64s) -> list[Look]:
        """Return the looks of some jobs that belong into a legend, the heaviest first.

        Parameters
        ----------
        weight
            How much each of the jobs counts, shape (rows,).
        rows
            The jobs that are drawn.
        """
        total = np.bincount(self.which[rows], weights=weight, minlength=len(self.looks))
        seen = [int(place) for place in np.argsort(-total, kind="stable") if total[place] > 0]
        named = [self.looks[place] for place in seen if self.looks[place].label]
        kept = named[:MOST_ENTRIES]
        if len(kept) < len(named):
            kept.append(Look("none", "", f"{len(named) - len(kept)} more"))
        if any(not self.looks[place].label for place in seen):
            kept.append(Look(GREYS[1], "", self.others))
        return kept


def looks_of(jobs: JobTable, by: str) -> Looks:
    """Return how each job of a run is drawn.

    Parameters
    ----------
    jobs
        All jobs of the run.
    by
        ``user``, ``queue``, ``cluster`` or ``state``.

    Raises
    ------
    QuantityError
        When it is something else.
    """
    if by not in COLOURED_BY:
        raise QuantityError(f"coloured by {by!r}: not known; choose {', '.join(COLOURED_BY)}")
    return COLOURED_BY[by](jobs)


def _by_work(column: Int64s, jobs: JobTable, what: str) -> Looks:
    """The most work comes first, as the trace has it: the same whoever schedules it."""
    numbers, which = np.unique(column, return_inverse=True)
    work = np.bincount(which, weights=jobs.processors * np.maximum(jobs.run_time, 1).astype(float))
    coloured = len(HUES) * len(HATCHES)
    order = np.argsort(-work, kind="stable") if len(numbers) > coloured else np.arange(len(numbers))
    looks = [
        Look(COLOURS[hue], hatch, _name(what, int(numbers[place])))
        for place, (hatch, hue) in zip(
            order[:coloured].tolist(), ((h, c) for h in HATCHES for c in HUES), strict=False
        )
    ]
    look = np.empty(len(numbers), np.int64)
    look[order] = np.arange(len(numbers))
    grey = len(looks) + numbers % len(GREYS)
    look = np.where(look < coloured, look, grey)
    looks += [Look(grey) for grey in GREYS]
    return Looks(looks, look[which], f"other {what}s")


def _name(what: str, number: int) -> str:
    return f"{what} unknown" if number == UNKNOWN else f"{what} {number}"


def _by_user(jobs: JobTable) -> Looks:
    return _by_work(jobs.user, jobs, "user")


def _by_queue(jobs: JobTable) -> Looks:
    return _by_work(jobs.queue, jobs, "queue")


def _by_cluster(jobs: JobTable) -> Looks:
    return _by_work(jobs.cluster, jobs, "cluster")


def _by_state(jobs: JobTable) -> Looks:
    looks = [Look(COLOURS[OF_STATES[state]], "", state.name.lower()) for state in State]
    return Looks(looks, jobs.state.copy(), "")


#: What jobs may be coloured by.
COLOURED_BY: dict[str, Callable[[JobTable], Looks]] = {
    "user": _by_user,
    "queue": _by_queue,
    "cluster": _by_cluster,
    "state": _by_state,
}
