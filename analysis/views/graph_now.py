"""A user's graph at a moment: what is over, what runs, what is free, and what waits for whom."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from analysis.views.own_units import OwnUnits, own_units
from environment.jobs import UNKNOWN, Int64s

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from analysis.views.moment import Moment

#: States of units, and what they mean.
UNIT_STATES = {
    "finished": "all of its jobs are over",
    "running": "a job of it has started, not all are over",
    "queued": "it is submitted, nothing of it has started",
    "free": "all it waits for is over, the user thinks",
    "waits": "something it waits for is not over",
}

#: The states by their places.
STATE_NAMES = np.array(list(UNIT_STATES))
FINISHED, RUNNING, QUEUED, FREE, WAITS = range(len(STATE_NAMES))

#: Most units of a window, and the part of them that lies before the first that is not over.
MOST, BEHIND = 60, 0.4


def unit_states(own: OwnUnits) -> Int64s:
    """Return the place of the state of each unit in :data:`STATE_NAMES`, shape (units,)."""
    return np.select(
        [own.over, own.started, own.submitted, own.free],
        [FINISHED, RUNNING, QUEUED, FREE],
        WAITS,
    ).astype(np.int64)


def window_around_now(own: OwnUnits, most: int | None = MOST) -> range:
    """Return the places of at most ``most`` units around the first one that is not over."""
    if most is None or len(own) <= most:
        return range(len(own))
    open_ones = np.flatnonzero(~own.over)
    at = int(open_ones[0]) if len(open_ones) else len(own)
    begin = max(0, min(at - int(BEHIND * most), len(own) - most))
    return range(begin, begin + most)


#: Most units that are named in a cell of a table.
MOST_NAMES = 12


@dataclass(frozen=True, eq=False)
class GraphNow:
    """The units of a user in a window around now.

    Attributes
    ----------
    own
        All units of the user.
    shown
        Places of those in the window.
    state
        Of each unit of the window, :data:`STATE_NAMES`, shape (shown,).
    before, after
        Edges between units of the window, their places in the window, shape (edges,).
    """

    own: OwnUnits
    shown: range
    state: Int64s
    before: Int64s
    after: Int64s

    @property
    def which(self) -> str:
        """Which units are shown: ``sessions 2,310 to 2,369 of 5,000``, counted from 1."""
        many = {"session": "sessions", "batch": "batches"}[self.own.name]
        total = len(self.own)
        if len(self.shown) == total:
            return f"{total:,} {many if total != 1 else self.own.name}"
        return f"{many} {self.shown.start + 1:,} to {self.shown.stop:,} of {total:,}"


def graph_now(moment: Moment, user: int, most: int | None = MOST) -> GraphNow:
    """Return the units of a user around now with what each does and waits for.

    Parameters
    ----------
    moment, user
        When and whose.
    most
        Most units, around the first that is not over; None for all.

    Raises
    ------
    QuantityError
        When there is no such user.
    """
    own = own_units(moment, user)
    shown = window_around_now(own, most)
    inside = (own.before >= shown.start) & (own.before < shown.stop)
    inside &= (own.after >= shown.start) & (own.after < shown.stop)
    return GraphNow(
        own,
        shown,
        unit_states(own)[shown.start : shown.stop],
        own.before[inside] - shown.start,
        own.after[inside] - shown.start,
    )


def graph_table(moment: Moment, user: int, most: int | None = MOST) -> pd.DataFrame:
    """Return the units of a user around now.

    Parameters
    ----------
    moment, user, most
        See :func:`graph_now`.

    Returns
    -------
    frame
        ``place`` among the units of the user from 1, ``unit`` number, ``state`` (one of
        :data:`UNIT_STATES`), ``jobs``, ``processors`` of its largest job, ``submitted_s`` first,
        ``due_s`` where it is free and its submission is known, ``ended_s``, s since the origin, and
        the numbers of the units that are not over and that it ``waits_for``, and of those that are
        ``awaiting`` it.
    """
    import pandas as pd

    graph = graph_now(moment, user, most)
    own, shown = graph.own, slice(graph.shown.start, graph.shown.stop)
    begin, end = own.begin[shown], own.end[shown]
    submitted = own.submitted[shown]
    due = (graph.state == FREE) & (begin != UNKNOWN)
    processors = moment.jobs.processors[own.rows]
    size = np.maximum.reduceat(processors, own.first[:-1]) if len(own) else processors
    numbers = own.numbers[shown]
    waits_for, awaiting = _names(own, graph.shown)
    return pd.DataFrame(
        {
            "place": np.arange(graph.shown.start, graph.shown.stop) + 1,
            "unit": numbers,
            "state": STATE_NAMES[graph.state],
            "jobs": np.diff(own.first)[shown],
            "processors": size[shown],
            "submitted_s": _known(begin, submitted),
            "due_s": _known(begin, due),
            "ended_s": _known(end, end != UNKNOWN),
            "waits_for": pd.Series(waits_for, dtype="str"),
            "awaiting": pd.Series(awaiting, dtype="str"),
        }
    )


def graph_network(moment: Moment, user: int, most: int | None = MOST) -> nx.DiGraph[int]:
    """Return the same as a graph of networkx.

    Nodes are numbers of units with the columns of :func:`graph_table` but ``unit``, what is missing
    as None; edges lead from a unit to those that wait for it.
    """
    import networkx as nx

    graph = graph_now(moment, user, most)
    network: nx.DiGraph[int] = nx.DiGraph(user=user, now=moment.now, units=graph.which)
    frame = graph_table(moment, user, most)
    for row in frame.astype(object).where(frame.notna(), None).to_dict("records"):
        network.add_node(row.pop("unit"), **{str(name): value for name, value in row.items()})
    numbers = graph.own.numbers[graph.shown.start : graph.shown.stop]
    network.add_edges_from(
        zip(numbers[graph.before].tolist(), numbers[graph.after].tolist(), strict=True)
    )
    return network


def _names(own: OwnUnits, shown: range) -> tuple[list[str], list[str]]:
    """Return, for units of a window, what each waits for and what awaits it, as text."""
    if not own.waits:
        return [""] * len(shown), [""] * len(shown)
    held = ~own.over[own.before]
    before, after = own.before[held], own.after[held]
    if own.ordered:  # a unit that is not submitted holds up the next one, too
        late = np.flatnonzero(~own.submitted[:-1])
        pairs = np.stack([np.append(before, late), np.append(after, late + 1)])
        before, after = np.unique(pairs, axis=1)
    return _listed(own.numbers[before], after, shown), _listed(own.numbers[after], before, shown)


def _listed(numbers: Int64s, places: Int64s, shown: range) -> list[str]:
    """Return the numbers that belong to each place of a window, as text, and how many more."""
    inside = np.flatnonzero((places >= shown.start) & (places < shown.stop))
    inside = inside[np.lexsort((numbers[inside], places[inside]))]
    first = np.searchsorted(places[inside], np.arange(shown.start, shown.stop + 1)).tolist()
    texts = []
    for begin, end in pairwise(first):
        text = ", ".join(map(str, numbers[inside[begin : min(end, begin + MOST_NAMES)]].tolist()))
        more = end - begin - MOST_NAMES
        texts.append(f"{text} and {more:,} more" if more > 0 else text)
    return texts


def _known(values: Int64s, known: np.ndarray) -> pd.api.extensions.ExtensionArray:
    import pandas as pd

    return pd.arrays.IntegerArray(np.where(known, values, 0), ~known)
