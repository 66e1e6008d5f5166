"""Users who generate their work during the run, from their own random stream.

A :class:`GeneratedUser` adds jobs to the table when it submits them, and sets alarms for itself. It
may *hear* when its jobs have finished and react to the cluster; or it may be *oblivious*: it acts
as if each job had started at once, so that its submissions do not depend on the scheduler. The same
behaviour works for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast, override

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.agents.behaviours.decisions import Kind, What, Why
from hpcrowd.agents.behaviours.user import Behaviour, User
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    import networkx as nx

    from hpcrowd.agents.behaviours.parts import Reaction
    from hpcrowd.agents.behaviours.user import ReplayUser
    from hpcrowd.agents.work.recorded import Work
    from hpcrowd.environment.cluster import Cluster
    from hpcrowd.environment.requests import Requests


#: Requested times that people choose, s. Up to 18 h those that Tsafrir, Etsion and Feitelson (2005)
#: find to be the most popular; the longer ones are our choice.
ROUND_TIMES = (
    *(minutes * 60 for minutes in (5, 10, 15, 20, 30)),
    *(hours * HOUR for hours in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18, 24, 36, 48, 72)),
)


@dataclass(frozen=True)
class LogNormal:
    """A log-normal time, cut off at both ends.

    Attributes
    ----------
    median
        s.
    sigma
        Standard deviation of its natural logarithm.
    least, most
        s; draws outside are set to the nearer of the two.
    """

    median: float
    sigma: float
    least: int = 1
    most: int = FOREVER

    def draw(self, stream: np.random.Generator) -> int:
        """Return one time, rounded half up to whole seconds."""
        drawn = self.median * math.exp(self.sigma * stream.standard_normal())
        return max(self.least, min(self.most, round_half_up(drawn)))


def round_request(run_time: int, factor: float) -> int:
    """Return ``factor`` times ``run_time`` (s), rounded up to a time that people request, s.

    That is one of :data:`ROUND_TIMES`, beyond them whole days.
    """
    wanted = max(run_time, math.ceil(run_time * factor))
    return next((t for t in ROUND_TIMES if t >= wanted), -(-wanted // DAY) * DAY)


class GeneratedUser(User):
    """A user without a record.

    Parameters
    ----------
    model, number, behaviour
        See :class:`User`. A behaviour that stores something about its user must not be shared.
    group
        Group number of its jobs.
    horizon
        s; from then on the user submits nothing more.
    hears
        False makes the user oblivious: it assumes that each job ends its run time after submission,
        whatever the cluster does.

    Attributes
    ----------
    asked
        Second at which each of its units was submitted, by unit.
    after
        The unit that triggered each unit, by unit.
    mood
        How bad the service is, in doublings: 0 is as usual; see
        :mod:`hpcrowd.agents.populations.satisfaction`.
    pace
        Factor on its pauses, if they are shorter than ``absence``.
    absence
        s; longer pauses are absences, which are not changed.
    again
        Probability to begin its work again when it is done.
    done
        Whether its work is done and it has left.
    unasked
        The reason of a unit that no other unit triggered.
    rests
        Whether the present pause is a break.
    paced, put_off, late
        s; how much longer the present pause is at the pace of the user's week; how long the next
        submission is put off because the user is not at work; and how much later than it was set
        the present alarm rings, since the user was away. What sets none of them leaves them 0.
    absent_until
        s; it is away until then and submits nothing. Its alarms ring on the same day of the week
        at the same local time, after that.
    reactions
        What it does instead of submitting a unit as usual, in order.
    """

    unasked: Why = Why.OWN
    reactions: tuple[Reaction, ...] = ()
    leaving = None  # its jobs wait for as long as it takes

    def __init__(
        self,
        model: Simulation,
        number: int,
        behaviour: Behaviour[GeneratedUser],
        *,
        group: int = UNKNOWN,
        horizon: int = FOREVER,
        hears: bool = True,
    ) -> None:
        super().__init__(model, number, behaviour)
        self.group = group
        self.horizon = horizon
        self.hears = hears
        self.asked: dict[int, int] = {}
        self.after: dict[int, int] = {}
        self._graph: nx.DiGraph[int] | None = None
        self.mood = 0.0
        self.pace = 1.0
        self.absence = FOREVER
        self.again = 0.0
        self.done = False
        self.absent_until = 0
        self.paced = self.put_off = self.late = 0
        self.rests = False
        self._over: dict[int, int] = {}  # of a user who notes its decisions: ends of its units

    @property
    def graph(self) -> nx.DiGraph[int]:
        """Its units so far, ``submitted`` at a second; edges lead to what their ends triggered.

        The same object each time, brought up to date. It cannot be changed: what comes next is made
        up when it comes.
        """
        if self._graph is None:
            import networkx as nx

            self._graph = nx.freeze(nx.DiGraph(user=self.number))
        graph, kind = self._graph, type(self._graph)
        for unit in [unit for unit in self.asked if unit not in graph]:
            kind.add_node(graph, unit, submitted=self.asked[unit])
            if unit in self.after:
                kind.add_edge(graph, self.after[unit], unit)
        return graph

    @override
    def remove(self) -> None:
        super().remove()
        self.horizon = self.model.time

    def call_at(self, time: int, function: Callable[..., None], *arguments: Any) -> None:
        """Set an alarm: call ``function(user, *arguments)`` at ``time``; never from the horizon."""
        if time < self.horizon:
            self.model.call_at(time, self._ring, function, arguments)

    def _ring(
        self, function: Callable[..., None], arguments: tuple[Any, ...], late: int = 0
    ) -> None:
        """Run an alarm; if the user is away, a whole number of weeks later, after the absence."""
        now = self.model.time
        if now >= self.horizon:  # removed meanwhile
            return
        if now >= self.absent_until:
            self.late = late
            function(self, *arguments)
            self.late = 0  # of what is submitted without an alarm
        elif self.absent_until < self.horizon:
            clock, weeks = self.model.clock, -(-(self.absent_until - now) // WEEK)
            then = clock.second_at(clock.wall(now) + weeks * WEEK)
            if then < self.horizon:
                self.model.call_at(then, self._ring, function, arguments, late + then - now)

    def paused(self, seconds: int) -> int:
        """Return the length of a pause of ``seconds`` at the user's present pace, s."""
        if self.pace == 1 or seconds >= self.absence:
            return seconds
        return round_half_up(seconds * self.pace)

    def submit(
        self,
        run_time: ArrayLike,
        *,
        processors: ArrayLike = 1,
        requested_time: ArrayLike,
        program: int = 0,
        after: int | None = None,
        asked: Requests | None = None,
    ) -> int:
        """Submit new jobs now as one unit, whose end is notified, and return its number.

        Parameters
        ----------
        run_time
            s, one per job.
        processors, requested_time
            One for all or one per job; no more processors than the cluster has.
        program
            Number of the user's program, from 0 to 9; executables get the number
            10 * user + program.
        after
            The unit whose end triggered this one.
        asked
            What the jobs ask of a machine of nodes; it counts if the table has such requests.
        """
        model, now = self.model, self.model.time
        run_time = np.atleast_1d(np.asarray(run_time, np.int64))
        rows: Int64s = model.jobs.append(
            len(run_time),
            user=self.number,
            group=self.group,
            executable=10 * self.number + program,
            processors=np.minimum(processors, model.cluster.processors),
            run_time=run_time,
            requested_time=requested_time,
        )
        if asked is not None and model.jobs.requests is not None:
            model.jobs.requests.repeat(int(rows[0]), asked)
        unit = self.hand_in(rows, now, after)
        if not self.hears:
            over = now + int(run_time.max())
            if self.log is not None:
                self._over[unit] = over
            model.call_at(over, self._go_on, unit, over)
        return unit

    def _go_on(self, unit: int, now: int) -> None:
        """Go on as if a unit were over; its end in the cluster is not waited for."""
        self.behaviour.finished(self, unit, now)

    def hand_in(self, rows: Int64s, at: ArrayLike, after: int | None) -> int:
        """Submit new rows of the table, the last ones, as one unit, as :meth:`submit`."""
        before = len(self.notes)
        if self.reactions:
            at = self._react(rows, at)
        unit: int = self.model.submit(self, rows, at)
        self.model.jobs.batch[rows] = unit
        self.submitted += 1
        self.asked[unit] = self.model.time
        if after is not None:
            self.after[unit] = after
        if self.log is not None:
            self._note_reactions(before)
            self.note_submitted(unit, after)
        return unit

    @property
    def site(self) -> Cluster:
        """The cluster that it submits to."""
        return self.model.cluster

    def jobs_of(self, unit: int) -> Int64s:
        """Return the rows of the jobs of a unit, which are adjacent in the table.

        The jobs of a unit are added at once; units are numbered in that order.
        """
        first, last = np.searchsorted(self.model.jobs.unit, (unit, unit + 1))
        return np.arange(first, last)

    def _react(self, rows: Int64s, at: ArrayLike) -> Int64s:
        """Apply the reactions to new jobs, and return when they are to be submitted, s."""
        from hpcrowd.agents.behaviours.reactions import Intention

        user = cast("ReplayUser", self)
        planned = Intention(user, int(rows[0]), rows, at)  # no other unit begins with that row
        for reaction in self.reactions:
            reaction.react(user, planned)
        return planned.at

    def _note_reactions(self, before: int) -> None:
        """Note what reactions did to the unit that is being submitted; there must be a log."""
        for note in self.notes[before:]:
            what, seconds = note.logged
            self.note_jobs(what, Why.REACTION, np.array([note.row]), [seconds], note.reaction)

    def note_submitted(self, unit: int, after: int | None) -> None:
        """Note that a unit is submitted now, and what put it off; there must be a log."""
        log, now, mood = self.log, self.model.time, self.mood
        assert log is not None
        pause, why, cause = UNKNOWN, self.unasked, UNKNOWN
        since = now - self.paced - self.put_off - self.late
        if after is not None and after != UNKNOWN:
            why, cause = (Why.BREAK if self.rests else Why.ENDED), after
            if after in self._over:
                pause = since - self._over[after]
        for waited, reason in (
            (self.paced, Why.PACE),
            (self.put_off, Why.WINDOW),
            (self.late, Why.AWAY),
        ):
            if waited:
                # What shortens a pause is noted when the pause has ended, not later.
                log.note(
                    since + min(waited, 0), self.number, What.WAITS, reason, Kind.BATCH, unit,
                    cause, waited, mood=mood,
                )  # fmt: skip
                since += waited
        log.note(now, self.number, What.SUBMITTED, why, Kind.BATCH, unit, cause, pause, mood=mood)

    def response(self, unit: int, now: int) -> int:
        """Return the time since a unit was submitted, s."""
        return now - self.asked[unit]

    @override
    def on_finished(self, unit: int, now: int) -> None:
        if self.hears:
            if self.log is not None:
                self._over[unit] = now
            for reaction in self.reactions:
                if reaction.listens:
                    reaction.heard(cast("ReplayUser", self), unit, now)
            super().on_finished(unit, now)
        else:
            self.finished += 1


class Generating(Behaviour[GeneratedUser]):
    """A behaviour of the users of a record who generate their work; subclass it.

    Their recorded jobs are not part of the run; :class:`Casting` leaves them out.

    Parameters
    ----------
    work
        The record.
    """

    #: What tells a maker of such a behaviour from others; also this class may be one.
    generates = True

    def __init__(self, work: Work) -> None:
        self.work = work

    def join(self, model: Simulation, place: int) -> GeneratedUser:
        """Return a new user in the model: the one at ``place`` among those of the record."""
        raise NotImplementedError(f"{type(self).__name__} must define join()")
