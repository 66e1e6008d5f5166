"""The units of work of one user at a moment: their jobs, dependencies and pauses.

For a user who replays a record, these are all its sessions or batches, including those to come; for
a user who generates work, those submitted so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.agents.behaviours.composed import Composed
from hpcrowd.agents.behaviours.decisions import Kind, kind_of
from hpcrowd.agents.behaviours.user import ReplayUser
from hpcrowd.agents.behaviours.when import BatchOrder
from hpcrowd.agents.generative.generated import GeneratedUser
from hpcrowd.analysis.pictures.plots import COLOURS, LEGEND, label_at, say_nothing, tidy
from hpcrowd.analysis.views.frames import figure_at
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, State
from hpcrowd.environment.quantities import plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcrowd.agents.work.units import Units
    from hpcrowd.analysis.views.moment import Bools, Moment


#: End of an unfinished unit.
OPEN = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class OwnUnits:
    """The units of one user, in order; indices count from 0.

    Attributes
    ----------
    moment, user
        The moment and the user's number.
    kind
        Sessions or batches.
    numbers
        Unit numbers, as in the table of jobs and in the log of decisions, shape (units,).
    rows, first
        Unit k is ``rows[first[k]:first[k + 1]]`` in the table of jobs, by submission.
    before, after
        Edges: indices of the unit waited for and of the waiting unit, shape (edges,).
    waits
        Whether the user waits at all; if not, the edges are only those of the record.
    ordered
        Whether a unit also waits for the submission of the previous one.
    units
        Recorded units of all users, if there is a record.
    """

    moment: Moment
    user: int
    kind: Kind
    numbers: Int64s
    rows: Int64s
    first: Int64s
    before: Int64s
    after: Int64s
    waits: bool = True
    ordered: bool = False
    units: Units | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def name(self) -> str:
        """The name of the units."""
        return self.kind.name.lower()

    @cached_property
    def place(self) -> Int64s:
        """The index of the unit of each of :attr:`rows`."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    @cached_property
    def over(self) -> Bools:
        """Which units have finished, that is all their jobs, shape (units,)."""
        moment = self.moment
        over = (moment.ended | moment.never_ran)[self.rows] | self._renounced
        return self._every(over)

    @cached_property
    def submitted(self) -> Bools:
        """Which units were at least partly submitted, shape (units,)."""
        return ~self._every(~self.moment.submitted[self.rows])

    @cached_property
    def started(self) -> Bools:
        """Which units have a job that has started, shape (units,)."""
        return ~self._every(~self.moment.started[self.rows])

    @cached_property
    def begin(self) -> Int64s:
        """First submission of each unit, s, including foreseen ones; -1 if unknown."""
        moment, submit = self.moment, self.moment.jobs.submit[self.rows]
        known = (moment.submitted | moment.foreseen)[self.rows]
        found = self._least(np.where(known, submit, OPEN))
        return np.where(found == OPEN, UNKNOWN, found)

    @cached_property
    def end(self) -> Int64s:
        """End of each finished unit, s; its last submission if no job ran; -1 if unfinished."""
        moment, jobs = self.moment, self.moment.jobs
        known = moment.ended | (moment.never_ran & (jobs.end != UNKNOWN))  # taken back
        end = np.where(known, jobs.end, jobs.submit)[self.rows]
        latest = -self._least(-end)
        return np.where(self.over, latest, UNKNOWN)

    @cached_property
    def free(self) -> Bools:
        """Which units have nothing left to wait for, shape (units,)."""
        free = np.ones(len(self), bool)
        if self.waits:
            free[self.after[~self.over[self.before]]] = False
        if self.waits and self.ordered:
            free[1:] &= self.submitted[:-1]
        return free

    @cached_property
    def awaited(self) -> Int64s:
        """Index of the unit that ended last among those each unit waited for; -1 none, (units,)."""
        found = np.full(len(self), UNKNOWN)
        order = np.lexsort((self.before, self.end[self.before], self.after))
        found[self.after[order]] = self.before[order]  # the last one written is kept
        return found

    @cached_property
    def response(self) -> Int64s:
        """Response time of the last job to end of each unit, s; 0 if none ran, shape (units,)."""
        jobs, moment = self.moment.jobs, self.moment
        end = np.where(moment.ended, jobs.end, UNKNOWN)[self.rows]
        order = np.lexsort((np.arange(len(end)), end, self.place))
        last = order[self.first[1:] - 1]
        ran = end[last] != UNKNOWN
        return np.where(ran, end[last] - jobs.submit[self.rows[last]], 0)

    @cached_property
    def _renounced(self) -> Bools:
        """Which jobs were renounced; in play-back only if a later job was submitted."""
        gone: Bools = self.moment.jobs.state[self.rows] == State.RENOUNCED
        if self.moment.model is None:
            submitted = np.flatnonzero(self.moment.submitted[self.rows])
            gone[submitted.max(initial=0) :] = False
        return gone

    def _every(self, which: Bools) -> Bools:
        found: Bools = np.logical_and.reduceat(which, self.first[:-1])
        return found

    def _least(self, values: Int64s) -> Int64s:
        found: Int64s = np.minimum.reduceat(values, self.first[:-1])
        return found


def own_units(moment: Moment, user: int) -> OwnUnits:
    """Return the units of a user.

    Raises
    ------
    QuantityError
        When there is no such user.
    """
    agent = moment.users.get(user)
    if isinstance(agent, ReplayUser):
        behaviour = agent.behaviour
        units = behaviour.units or agent.work.by_session
        when = behaviour.when if isinstance(behaviour, Composed) else None
        waits = behaviour.reacts if when is None else when.reacts
        kind = kind_of(behaviour.units, agent.work)
        if agent.changed_graph is not None:
            return _of_graph(moment, agent, kind, isinstance(when, BatchOrder))
        return _recorded(moment, agent.place, units, kind, waits, isinstance(when, BatchOrder))
    work = moment.work
    if agent is None and work is not None:
        place = int(np.searchsorted(work.sessions.users, user))
        if place < len(work.sessions.users) and work.sessions.users[place] == user:
            for units, which in moment.waits:
                mine = slice(*units.user_first[place : place + 2].tolist())
                if which[mine].any():
                    kind = kind_of(units, work)
                    return _recorded(moment, place, units, kind, True, kind == Kind.BATCH)
            return _recorded(moment, place, work.by_session, Kind.SESSION, False, False)
    return _made_up(moment, user, agent)


def _recorded(
    moment: Moment, place: int, units: Units, kind: Kind, waits: bool, ordered: bool
) -> OwnUnits:
    """Return the units of a user who replays a record."""
    begin, end = units.user_first[place : place + 2].tolist()
    first = units.first[begin : end + 1]
    edges = units.dependencies
    count = np.diff(edges.first[begin : end + 1])
    mine = slice(int(edges.first[begin]), int(edges.first[end]))
    return OwnUnits(
        moment=moment,
        user=int(units.users[place]),
        kind=kind,
        numbers=np.arange(begin, end),
        rows=units.rows[first[0] : first[-1]],
        first=first - first[0],
        before=np.repeat(np.arange(end - begin), count),
        after=edges.successor[mine] - begin,
        waits=waits,
        ordered=ordered,
        units=units,
    )


def _of_graph(moment: Moment, agent: ReplayUser, kind: Kind, ordered: bool) -> OwnUnits:
    """Return the units of a user who goes by a changed graph."""
    graph = agent.graph
    numbers = sorted(graph)
    rows = [graph.rows_of(unit) for unit in numbers]
    place = {unit: index for index, unit in enumerate(numbers)}
    edges = [
        (place[before], place[after])
        for before, after, times in graph.edges(data=True)
        if "think_time" in times
    ]
    before, after = np.array(edges, np.int64).reshape(-1, 2).T
    recorded = all(unit in agent.units for unit in numbers)
    return OwnUnits(
        moment=moment,
        user=agent.number,
        kind=kind,
        numbers=np.array(numbers, np.int64),
        rows=np.concatenate([np.zeros(0, np.int64), *rows]),
        first=np.cumsum([0, *map(len, rows)]),
        before=before,
        after=after,
        ordered=ordered,
        units=(agent.behaviour.units or agent.work.by_session) if recorded else None,
    )


def _made_up(moment: Moment, user: int, agent: object) -> OwnUnits:
    """Return the units that a user has generated until now."""
    jobs = moment.jobs
    rows = moment.rows_of(user)
    if not len(rows) and user not in moment.users:
        raise QuantityError(f"user {user}: not in this run")
    rows = rows[(jobs.unit[rows] != UNKNOWN)]
    rows = rows[np.lexsort((rows, jobs.submit[rows], jobs.unit[rows]))]
    numbers, first = np.unique(jobs.unit[rows], return_index=True)
    # Units whose first job is still to come have not been generated yet.
    there = moment.submitted[rows[first]]
    size = np.diff(np.append(first, len(rows)))
    rows = rows[np.repeat(there, size)]
    numbers, size = numbers[there], size[there]
    if isinstance(agent, GeneratedUser):
        after = np.array([agent.after.get(unit, UNKNOWN) for unit in numbers.tolist()], np.int64)
    elif moment.after is not None:
        after = moment.after[numbers]
    else:
        after = np.full(len(numbers), UNKNOWN)
    known = np.isin(after, numbers)
    return OwnUnits(
        moment=moment,
        user=user,
        kind=Kind.BATCH,
        numbers=numbers,
        rows=rows,
        first=np.concatenate([[0], np.cumsum(size)]),
        before=np.searchsorted(numbers, after[known]),
        after=np.flatnonzero(known),
    )


#: Labels of time axes, s.
LABELS = {1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", HOUR: "1 h", 6 * HOUR: "6 h",
          DAY: "1 day", WEEK: "1 week", 30 * DAY: "30 days", 365 * DAY: "1 year"}  # fmt: skip

#: s; shorter times are drawn as this, since a logarithmic axis has no 0.
LEAST = 1


def pauses_table(moment: Moment, user: int) -> pd.DataFrame:
    """Return the pauses of a user before the units submitted until now.

    Returns
    -------
    frame
        A row for each unit that waited for another: ``unit``; ``after``, the unit waited for that
        ended last; ``response_s`` of its last job to end (0 if none ran); ``pause_s`` from its end
        to the submission; and ``recorded_response_s`` and ``recorded_pause_s`` of the same unit,
        missing without a record. For users who do not wait, pauses may be negative.
    """
    import pandas as pd

    own = own_units(moment, user)
    places = np.flatnonzero(own.submitted & (own.awaited >= 0))
    awaited = own.awaited[places]
    good = own.over[awaited]  # for a rigid user it may still run
    places, awaited = places[good], awaited[good]
    missing = np.full(len(places), np.nan)
    recorded = {"recorded_response_s": missing, "recorded_pause_s": missing}
    if own.units is not None:
        units, numbers = own.units, own.numbers[places]
        recorded = {
            "recorded_response_s": units.response[units.awaited[numbers]].astype(float),
            "recorded_pause_s": units.think_time[numbers].astype(float),
        }
    return pd.DataFrame(
        {
            "unit": own.numbers[places],
            "after": own.numbers[awaited],
            "response_s": own.response[awaited],
            "pause_s": own.begin[places] - own.end[awaited],
            **recorded,
        }
    )


def pauses_picture(moment: Moment, user: int, *, width: float = 5.2, height: float = 4.4) -> Figure:
    """Return a picture of :func:`pauses_table`, on logarithmic axes; sizes in inches."""
    frame = pauses_table(moment, user)
    words = f"{plural(len(frame), 'pause')} until now"
    early = int((frame["pause_s"] < 0).sum())
    if early:
        words += f"; {early:,} negative ones not drawn"
    figure = figure_at(moment, f"Pauses of user {moment.jobs.who(user)}", width, height, words)
    axes = figure.add_axes((0.85 / width, 0.72 / height, 1 - 1.05 / width, 1 - 1.72 / height))
    tidy(axes)
    if not len(frame):
        say_nothing(axes, "the user has not waited for anything yet")
        return figure
    pairs: list[Any] = [("response_s", "pause_s", "simulated", "blue", "x", 14, 0.8)]
    if frame["recorded_pause_s"].notna().any():
        pairs.insert(
            0, ("recorded_response_s", "recorded_pause_s", "recorded", "grey", "o", 18, 0.7)
        )
    highest = 1.0
    for x, y, label, colour, marker, size, alpha in pairs:
        good = (frame[y] >= 0).to_numpy()
        values = [np.maximum(frame[name].to_numpy(float)[good], LEAST) for name in (x, y)]
        highest = max(highest, *(float(some.max(initial=1)) for some in values))
        axes.scatter(
            values[0], values[1], marker=marker, color=COLOURS[colour],
            alpha=alpha, label=label, linewidths=0 if marker == "o" else 1.0, s=size,
        )  # fmt: skip
    axes.legend(**LEGEND, loc="lower left", bbox_to_anchor=(0.0, 0.985), ncols=2)
    label_times(axes, highest)
    axes.set_xlabel("response time of what the user waited for (at least 1 s)", fontsize=8.5)
    axes.set_ylabel("think time", fontsize=8.5)
    return figure


def label_times(axes: Axes, highest: float) -> None:
    """Give both axes the same logarithmic time scale up to ``highest`` s."""
    top = max(2.0 * highest, HOUR)
    axes.set(xscale="log", yscale="log", xlim=(0.7 * LEAST, top), ylim=(0.7 * LEAST, top))
    shown = {second: text for second, text in LABELS.items() if second <= top}
    label_at(axes.yaxis, shown)
    label_at(axes.xaxis, shown, rotation=30, ha="right", rotation_mode="anchor")
