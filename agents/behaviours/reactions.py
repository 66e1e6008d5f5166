"""Reactions beyond the submission time: the fourth part of a composed behaviour.

See :mod:`composed`. When a unit of work is due, each reaction gets the planned submission, an
:class:`Intention`, and may change it. The user keeps a :class:`Note` of each change. The reactions
are responses to a trigger, instead of the usual submission:

================ ================================ ========================================
do               a job that the trigger concerns  its work, processors times run time
================ ================================ ========================================
``delay``        is submitted later               the same, later
``degrade``      gets fewer processors            less: the run time stays
``reconfigure``  gets fewer processors            the same (or more): it runs longer
``renounce``     is never run                     lost
``switch``       is submitted to another cluster  there
``look-again``   is looked at again later         the same, later
================ ================================ ========================================

The first four are the behaviours of Madon et al. 2022 (Euro-Par, "Characterization of different
user behaviors for demand response in data centers"), whose exact rules are unconfirmed here; each
parameter has its default. The last one is mentioned in Madon et al. 2024, section 4.1.
Triggers are in :mod:`hpcrowd.agents.behaviours.triggers`; the three by which users need less are in
:mod:`hpcrowd.agents.behaviours.energy.sufficiency`, responses on a machine of nodes in
:mod:`hpcrowd.agents.behaviours.on_nodes`, and jobs are cut into pieces in
:mod:`hpcrowd.agents.behaviours.cut`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, ClassVar, override

import numpy as np

from hpcrowd.agents.behaviours.decisions import What
from hpcrowd.agents.behaviours.parts import Note, Reaction, Trigger, setting
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import QuantityError, SimulationError
from hpcrowd.environment.jobs import Column, JobTable, State
from hpcrowd.environment.registry import check_objects
from hpcrowd.environment.requests import resize

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from hpcrowd.agents.behaviours.composed import Composed
    from hpcrowd.agents.behaviours.user import ReplayUser
    from hpcrowd.agents.behaviours.when import Release
    from hpcrowd.environment.jobs import Int64s
    from hpcrowd.environment.requests import Ask


class Intention:
    """A unit that its user is about to submit.

    Parameters
    ----------
    user
        The user.
    unit
        The unit, due now.
    rows, at
        Its jobs, and when they are to be submitted, s (one, or one per job); those of the unit,
        from now on and spaced as recorded, unless given.

    Attributes
    ----------
    rows
        Its jobs, rows in the table, by submission.
    at
        s; planned submission of each, shape (jobs,), now or later.
    cluster
        The name of the cluster for each, shape (jobs,); None if all go to the first one.
    again
        s; when the user looks again, if nothing is submitted now; None if it is.
    kept
        Places of jobs that a reaction submits itself; see :meth:`keep`.
    """

    def __init__(
        self,
        user: ReplayUser,
        unit: int,
        rows: Int64s | None = None,
        at: ArrayLike | None = None,
    ) -> None:
        self.user = user
        self.unit = unit
        self.rows = user.jobs_of(unit) if rows is None else rows
        self.at: Int64s
        if at is None:
            recorded = user.model.jobs.recorded_submit[self.rows]
            self.at = recorded - recorded[0] + user.model.time
        else:
            self.at = np.broadcast_to(np.asarray(at, np.int64), self.rows.shape).copy()
        self.cluster: list[str] | None = None
        self.again: int | None = None
        self.kept: set[int] = set()
        self._switched: dict[int, str] = {}

    @property
    def stands(self) -> NDArray[np.bool_]:
        """Which jobs have not been renounced, shape (jobs,)."""
        stands: NDArray[np.bool_] = self.user.model.jobs.state[self.rows] != State.RENOUNCED
        return stands

    def look_again(self, at: int) -> None:
        """Submit nothing now, and ask all reactions again at second ``at``.

        Raises
        ------
        SimulationError
            If that is not later than now.
        """
        now = self.user.model.time
        if at <= now:
            raise SimulationError(f"look again at {at} s: it is {now} s; name a later second")
        self.again = at

    def keep(self, place: int) -> None:
        """Do not submit a job with its unit: the reaction that calls this submits it."""
        self.kept.add(place)

    def delay(self, place: int, at: int, reaction: str) -> None:
        """Submit a job of the unit later, at second ``at``, and note it."""
        later = at - int(self.at[place])
        if later > 0:
            self.at[place] = at
            self._note(place, reaction, "delay", delay=later)

    def resize(
        self,
        place: int,
        processors: int,
        run_time: int,
        requested_time: int,
        reaction: str,
        response: str,
    ) -> None:
        """Change the processors and times of a job of the unit, and note it."""
        jobs, row = self.user.model.jobs, self.rows[place]
        before = int(jobs.processors[row]), int(jobs.run_time[row])
        jobs.processors[row] = processors
        jobs.run_time[row] = run_time
        jobs.requested_time[row] = requested_time
        resize(jobs, int(row), before[0])
        self._note(place, reaction, response, before=before)

    def ask(
        self,
        place: int,
        asked: Mapping[Ask, int | str],
        change: tuple[str, str, str],
        reaction: str,
        response: str,
        times: Sequence[int] | None = None,
    ) -> None:
        """Change what a job of the unit asks for besides processors, and note it.

        Parameters
        ----------
        place
            Of the job in the unit.
        asked
            New values of ``jobs.requests``.
        change
            What was changed, and its values before and after, for the note.
        reaction, response
            Name and kind of the reaction.
        times
            New run time and requested time, s; None for those before.
        """
        jobs, row = self.user.model.jobs, int(self.rows[place])
        before = int(jobs.processors[row]), int(jobs.run_time[row])
        for ask, value in asked.items():
            assert jobs.requests is not None  # see check_nodes()
            jobs.requests.set(row, ask, value)
        if times is not None:
            jobs.run_time[row], jobs.requested_time[row] = times
        self._note(place, reaction, response, before=before, change=change)

    def renounce(self, place: int, reaction: str) -> None:
        """Renounce a job of the unit, and note it; it counts as finished when it would arrive."""
        jobs, row = self.user.model.jobs, self.rows[place]
        before = int(jobs.processors[row]), int(jobs.run_time[row])
        jobs.state[row] = State.RENOUNCED
        if place in self._switched:
            self.switch(place, self.user.site.name, reaction)  # it goes nowhere
        self._note(place, reaction, "renounce", before=before, after=(0, 0))

    def switch(self, place: int, cluster: str, reaction: str) -> None:
        """Submit a job of the unit to another cluster; noted when it is submitted.

        If several reactions switch a job, the last one counts.
        """
        home = self.user.site.name
        if self.cluster is None:
            self.cluster = [home] * len(self.rows)
        self.cluster[place] = cluster
        self._switched.pop(place, None)
        if cluster != home:
            self._switched[place] = reaction

    def submit(self) -> int:
        """Submit the jobs as they are now, and return the last submission, s."""
        user, at = self.user, self.at
        if self.cluster is None and not self.kept and self._is_as_due():
            user.submit(self.unit, user.model.time)  # the shortest way
            return int(at[-1])
        user.submitted += 1
        if self.cluster is None:
            comes = self._comes
            user.send(self.rows[comes], at[comes])
        else:
            self._submit_apart(self.cluster)
        return int(at.max())

    @property
    def _comes(self) -> NDArray[np.bool_]:
        """Which jobs are submitted with the unit, shape (jobs,)."""
        comes = np.ones(len(self.rows), bool)
        comes[list(self.kept)] = False
        return comes

    def _is_as_due(self) -> bool:
        """Return whether the first job comes now and the others are spaced as recorded."""
        now, rows = self.user.model.time, self.rows
        if len(rows) == 1:
            return int(self.at[0]) == now
        recorded = self.user.model.jobs.recorded_submit[rows]
        return bool((self.at == recorded - recorded[0] + now).all())

    def _submit_apart(self, clusters: list[str]) -> None:
        """Submit each job to its own cluster; note the run time at that cluster's speed."""
        model = self.user.model
        run_time = model.jobs.run_time[self.rows]
        for name in dict.fromkeys(clusters):
            which = np.array([cluster == name for cluster in clusters]) & self._comes
            if name == self.user.site.name:
                self.user.send(self.rows[which], self.at[which])
            else:
                model.place(name).submit(self.rows[which], self.at[which])
        for place, reaction in self._switched.items():
            before = int(model.jobs.processors[self.rows[place]]), int(run_time[place])
            self._note(place, reaction, "switch", before=before, cluster=clusters[place])

    def _note(
        self,
        place: int,
        reaction: str,
        response: str,
        *,
        before: tuple[int, int] | None = None,
        after: tuple[int, int] | None = None,
        delay: int = 0,
        cluster: str = "",
        change: tuple[str, str, str] = ("", "", ""),
    ) -> None:
        jobs, row = self.user.model.jobs, int(self.rows[place])
        after = after or (int(jobs.processors[row]), int(jobs.run_time[row]))
        now = self.user.model.time
        self.user.notes.append(
            Note(
                row, reaction, response, now, *(before or after), *after, delay, cluster, 0, *change
            )
        )


class Reacting:
    """Asks the reactions of users with one behaviour about each unit that is due.

    Parameters
    ----------
    behaviour
        The behaviour.
    """

    def __init__(self, behaviour: Composed) -> None:
        self.behaviour = behaviour

    def plan(self, user: ReplayUser, release: Release, at: int) -> None:
        """Ask at second ``at``, since whether to react is decided at that moment."""
        user.due[release.unit] = user.model.call_at(at, self._decide, user, release)

    def _decide(self, user: ReplayUser, released: Release) -> None:
        """Apply the reactions to a unit that was released and is due now."""
        behaviour, unit = self.behaviour, released.unit
        if user.behaviour is not behaviour:  # the user was removed meanwhile
            return
        del user.due[unit]
        intention = Intention(user, unit)
        before = len(user.notes)
        for reaction in behaviour.reactions:
            reaction.react(user, intention)
            if intention.again is not None:
                self.plan(user, released, intention.again)
                if behaviour.noting is not None:
                    behaviour.noting.looks_again(user, unit, intention.again, reaction)
                return
        last = intention.submit()
        if behaviour.noting is not None:
            behaviour.noting.decided(user, unit, intention.rows, intention.at, user.notes[before:])
        behaviour.submitted(user, released, intention.rows, user.model.time, last)
        behaviour.go_on_after(user, unit, int(intention.at[0]), last)


#: Share of the processors that users still request: half of them, unconfirmed (Madon et al. 2022).
FACTOR = 0.5


@dataclass(eq=False)
class Response(Reaction):
    """A reaction to a trigger. Subclass it and define :meth:`respond`.

    A subclass with settings is a dataclass whose fields have descriptions.

    Parameters
    ----------
    trigger
        When to react.
    share
        Probability that a user reacts to the trigger at all, drawn once for each user.
    probability
        Probability that a user who reacts does so for a job, drawn for each of its jobs.
    fatigue
        Factor on the probability for each request that the user has seen before and not forgotten.
        A request is a unit of work for which the trigger is active, whether the user follows it or
        not. 1 for users who never tire.
    recovery
        s after which a request is forgotten.
    name
        Name in the accounts; by default the response and its trigger. Draws depend on the name:
        with the same name the same users react, also in another run.

    Raises
    ------
    QuantityError
        If a probability or the fatigue is not between 0 and 1.
    """

    seam = Reaction.seam._replace(given=1)

    #: One word for tables and files.
    response: ClassVar[str] = "own"

    trigger: Trigger
    _: KW_ONLY
    share: float = setting(1.0, "probability that a user reacts at all", least=0, most=1)
    probability: float = setting(1.0, "for each job of a user who reacts", least=0, most=1)
    fatigue: float = setting(
        1.0,
        "factor on the probability for each request seen before and not forgotten (unconfirmed)",
        least=0,
        most=1,
    )
    recovery: int = setting(
        30 * DAY, "time after which a request is forgotten (our choice; unconfirmed)", "s", above=0
    )
    name: str = setting(
        "", "for the accounts and the draws; by default the response and the trigger"
    )

    def __post_init__(self) -> None:
        check_objects("trigger", [self.trigger], Trigger)
        for what in ("share", "probability", "fatigue"):
            value = getattr(self, what)
            if not 0 <= value <= 1:
                raise QuantityError(f"{what} {value:g}: must be between 0 and 1")
        if self.recovery <= 0:
            raise QuantityError(f"recovery {self.recovery} s: must be more than 0")
        self.name = self.name or f"{self.response} {self.trigger.when}"
        self.listens = self.trigger.listens
        self._unwilling: set[int] = set()
        self._chances = Draws()
        # By user: second and unit of the requests that are not forgotten.
        self._requests: dict[int, deque[tuple[int, int]]] = {}

    @override
    def begin(self, user: ReplayUser) -> None:
        self.trigger.begin(user)
        if self.share == 1 and not self._draws:
            return
        stream = user.model.streams.generator("reaction", self.name, user.number)
        self._unwilling.discard(user.number)
        if stream.random() >= self.share:
            self._unwilling.add(user.number)
        elif self._draws:
            self._chances.begin(user, stream)
            self._requests[user.number] = deque()

    @property
    def _draws(self) -> bool:
        """Whether it depends on the job if its user reacts."""
        return self.probability < 1 or self.fatigue < 1

    @override
    def heard(self, user: ReplayUser, unit: int, now: int) -> None:
        self.trigger.heard(user, unit, now)

    @override
    def react(self, user: ReplayUser, intention: Intention) -> None:
        if user.number in self._unwilling:
            return
        which = self.trigger.which(user, intention)
        if not which.any():
            return
        which &= intention.stands
        if self._draws:
            chance = self.probability
            if self.fatigue < 1:
                chance *= self.fatigue ** self._seen(user, intention.unit)
            which &= self._chances.of(user, intention.rows) < chance
        for place in np.flatnonzero(which).tolist():
            self.respond(user, intention, place)

    def _seen(self, user: ReplayUser, unit: int) -> int:
        """Return how many requests the user had seen before the one for a unit; count this one."""
        seen, now = self._requests[user.number], user.model.time
        while seen and seen[0][0] <= now - self.recovery:
            seen.popleft()
        for place, (_, asked) in enumerate(seen):
            if asked == unit:  # the user looks again
                return place
        seen.append((now, unit))
        return len(seen) - 1

    def respond(self, user: ReplayUser, intention: Intention, place: int) -> None:
        """Change one job of an intention."""
        raise NotImplementedError(f"{type(self).__name__} must define respond()")


class Draws:
    """A uniform number for each job of users.

    The numbers of recorded jobs are drawn before the run, so that the same jobs react whenever they
    come; those of added ones when they come first, and those of made-up ones when they come.
    """

    def __init__(self) -> None:
        self._jobs: JobTable | None = None
        self._drawn = np.zeros(0)
        self._streams: dict[int, np.random.Generator] = {}

    def begin(self, user: ReplayUser, stream: np.random.Generator) -> None:
        """Draw the numbers of the recorded jobs of a user, and keep the stream."""
        self._streams[user.number] = stream
        jobs = user.model.jobs
        if self._jobs is not jobs:
            self._jobs, self._drawn = jobs, np.full(len(jobs), np.nan)
        if hasattr(user, "work"):
            units = user.behaviour.units or user.work.by_session
            first, last = units.first[user.units.start], units.first[user.units.stop]
            # By row, whatever the units are.
            self._drawn[np.sort(units.rows[first:last])] = stream.random(last - first)

    def of(self, user: ReplayUser, rows: Int64s) -> NDArray[np.float64]:
        """Return the numbers of some jobs of a user."""
        if not hasattr(user, "work"):
            return self._streams[user.number].random(len(rows))
        more = len(user.model.jobs) - len(self._drawn)
        if more > 0:
            self._drawn = np.append(self._drawn, np.full(max(more, len(self._drawn)), np.nan))
        new = rows[np.isnan(self._drawn[rows])]
        self._drawn[new] = self._streams[user.number].random(len(new))
        found: NDArray[np.float64] = self._drawn[rows]
        return found


@dataclass(eq=False, kw_only=True)
class Delay(Response):
    """Submit when the trigger has ended, or some time later.

    Parameters
    ----------
    trigger, share, probability, fatigue, recovery, name
        See :class:`Response`.
    by
        s later; None for the end of the period that triggers.

    Raises
    ------
    QuantityError
        If the trigger has no end and no time is given.
    """

    response = "delay"
    logged = What.DELAYED

    by: int | None = setting(
        None,
        "so much later instead, needed when = recent-waits, queue, expected-wait, fair-share, "
        "at-limit or always",
        "s",
        above=0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.by is None and not self.trigger.ends:
            raise QuantityError(f"delay {self.trigger.when}: has no end to wait for; give by, s")
        if self.by is not None and self.by <= 0:
            raise QuantityError(f"delay by {self.by} s: must be more than 0")

    @override
    def respond(self, user: ReplayUser, intention: Intention, place: int) -> None:
        at = int(intention.at[place])
        later = self.trigger.until(user, at) if self.by is None else at + self.by
        intention.delay(place, later, self.name)


@dataclass(eq=False, kw_only=True)
class LookAgain(Response):
    """Submit nothing now, and look again later.

    If the trigger concerns one job of a unit, the whole unit waits.

    Parameters
    ----------
    trigger, share, probability, fatigue, recovery, name
        See :class:`Response`.
    every
        s until the user looks again.
    most
        How often it looks again before it submits anyway; None for no limit.
    """

    response = "look-again"
    looks = True

    every: int = setting(600, "until the user looks again (unconfirmed)", "s", above=0)
    most: int | None = setting(
        None, "how often it looks again before it submits anyway; by default without limit", least=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.every <= 0:
            raise QuantityError(f"look-again every {self.every} s: must be more than 0")
        self._looks: dict[int, dict[int, int]] = {}  # by user and unit

    @override
    def begin(self, user: ReplayUser) -> None:
        super().begin(user)
        self._looks[user.number] = {}

    @override
    def respond(self, user: ReplayUser, intention: Intention, place: int) -> None:
        looks, unit = self._looks[user.number], intention.unit
        looked = looks.get(unit, 0)
        if intention.again is not None or looked == self.most:
            return
        looks[unit] = looked + 1
        intention.look_again(user.model.time + self.every)


@dataclass(eq=False)
class Switch(Response):
    """Submit to another cluster of the simulation.

    Parameters
    ----------
    trigger, share, probability, fatigue, recovery, name
        See :class:`Response`.
    to
        Its name, see ``hpcrowd.Simulation``.

    Raises
    ------
    QuantityError
        Before the run, if there is no cluster of this name.
    """

    response = "switch"
    logged = What.SWITCHED
    elsewhere = True

    to: str = setting(..., "name of the cluster")

    @override
    def begin(self, user: ReplayUser) -> None:
        user.model.place(self.to)
        super().begin(user)

    @override
    def respond(self, user: ReplayUser, intention: Intention, place: int) -> None:
        intention.switch(place, self.to, self.name)


#: What a new job has in common with the one that it is a copy of.
SHARED = [
    Column.USER, Column.GROUP, Column.EXECUTABLE, Column.QUEUE, Column.PROCESSORS,
    Column.REQUESTED_MEMORY, Column.SESSION, Column.BATCH,
]  # fmt: skip


class NewJobs:
    """Adds jobs to the table of a run; each gets a number that no other job has.

    Parameters
    ----------
    jobs
        The table.
    """

    def __init__(self, jobs: JobTable) -> None:
        self.jobs = jobs
        self._known = self._highest = 0  # jobs of which the highest number is known, and that one

    def add(self, of: int) -> int:
        """Add a job for the user and the request of job ``of``, without run times; return its row.

        Both are rows of the table.
        """
        jobs = self.jobs
        unseen = jobs.number[self._known :]
        self._known, self._highest = len(jobs), max(self._highest, int(unseen.max(initial=0)))
        row = int(jobs.append(1, number=self._highest + 1)[0])
        jobs.matrix[SHARED, row] = jobs.matrix[SHARED, of]
        if jobs.requests is not None:
            jobs.requests.repeat(row, jobs.requests.take(np.array([of])))
        return row
