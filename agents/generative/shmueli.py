"""Users who generate their work: the session-continuation model of Shmueli and Feitelson.

======== ======================================================== ==================================
state    until                                                    then
======== ======================================================== ==================================
asleep   its hours begin                                          submits a batch and waits
waiting  all jobs of the batch have finished                      with probability
                                                                  0.8 / (0.05 RT + 1) draws a think
                                                                  time, else a break; RT is the
                                                                  response time of the job that
                                                                  ended last, min
thinking the think time or break has passed                       submits a batch and waits
======== ======================================================== ==================================

A user whose think time or break would end outside working hours sleeps until these next begin.

Sources: the law and the hours are in Zakay and Feitelson 2015, section VII-B, after Shmueli and
Feitelson (MASCOTS 2007; TPDS 20(7), 2009). The state machine, the repetition of jobs and the drawn
quantities are those of STARS, a simulator that states that it follows Shmueli and Feitelson 2009.
The distributions come from the trace, :mod:`hpcrowd.agents.generative.empirical`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Literal, cast, override

import numpy as np

from hpcrowd.agents.behaviours.activity import Activity, Shifts, WorkPattern
from hpcrowd.agents.behaviours.decisions import Why
from hpcrowd.agents.behaviours.think import (
    LONGEST_BREAK,
    Continuation,
    ContinuationLaw,
    response_time,
)
from hpcrowd.agents.behaviours.user import Behaviour
from hpcrowd.agents.behaviours.when import Reason, Release
from hpcrowd.agents.generative import empirical
from hpcrowd.agents.generative.generated import GeneratedUser, Generating
from hpcrowd.agents.work.recorded import Work
from hpcrowd.agents.work.sessions import SessionDefinition
from hpcrowd.environment.clock import DAY, WEEK
from hpcrowd.environment.errors import QuantityError, not_one_of
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s
from hpcrowd.environment.limits.numbers import MOST_DAYS, check_within

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.parts import Parameter, Part
    from hpcrowd.environment.simulation import Simulation


#: Think times above this end a session, s: 20 min (Shmueli, after Zakay and Feitelson 2012).
SESSION_THRESHOLD = 1200

#: Least number of values for which ``generative`` users have their own distribution; our choice.
OWN_VALUES = 20


@dataclass(frozen=True)
class SiteModel:
    """Parameters of :class:`ShmueliFeitelson`; called with the recorded work, it makes one.

    Attributes
    ----------
    law
        Probability to continue a session.
    shifts
        Working hours of users.
    presence
        The days on which users come. ``always``: on each day of their hours, from the first on, as
        published. ``recorded``: from the day of the first to that of the last recorded submission,
        each day with a probability so that they come on as many days as recorded.
    wakes
        When a user first wakes: at its ``recorded`` first submission, or at a second drawn from
        the ``first-week``.
    horizon
        s; no submissions from then on. None for the span of the record: one second after its last
        submission.
    sessions
        How the record is cut: Last with :data:`SESSION_THRESHOLD`.
    longest_break
        s; pauses between sessions are drawn from recorded ones below this: 8 h (Zakay and Feitelson
        2015, section VII-B).
    longest_gap
        s; gaps in batches are drawn from recorded ones up to this, see
        :data:`hpcrowd.agents.generative.empirical.LONGEST_GAP`. None for all.
    least
        A user with at least this many pauses, gaps, widths or repetitions draws from their own,
        others from those of all users; None for always those of all users, as published.
    does, source
        What users keep, in a few words, and the source of the model; of a named behaviour.

    Raises
    ------
    QuantityError
        If a choice is not known, or a number is out of range.
    """

    law: ContinuationLaw = field(default=ContinuationLaw())
    shifts: Shifts = field(default=Shifts())
    presence: Literal["always", "recorded"] = "always"
    wakes: Literal["recorded", "first-week"] = "recorded"
    horizon: int | None = None
    sessions: SessionDefinition = field(default=SessionDefinition("last", SESSION_THRESHOLD))
    longest_break: int = LONGEST_BREAK
    longest_gap: int | None = empirical.LONGEST_GAP
    least: int | None = None
    does: str = field(default="", compare=False, repr=False)
    source: str = field(default="", compare=False, repr=False)

    generates: ClassVar = True

    #: What it has in common with behaviours that replay: parts whose settings it has.
    parts: ClassVar[tuple[type[Part], ...]] = (Continuation, WorkPattern)
    when: ClassVar = "made up"
    think: ClassVar = Continuation.name
    window: ClassVar = WorkPattern.name
    waits: ClassVar = False

    def __post_init__(self) -> None:
        for name, known in (
            ("presence", ("always", "recorded")),
            ("wakes", ("recorded", "first-week")),
        ):
            value = getattr(self, name)
            if value not in known:
                raise QuantityError(f"{name} {value!r}: {not_one_of(value, known)}")
        for name, floor in (("horizon", 1), ("longest_break", 1), ("longest_gap", 0)):
            value = getattr(self, name)
            if value is not None and value < floor:
                raise QuantityError(f"{name} {value} s: at least {floor}")
        if self.least is not None and self.least < 1:
            raise QuantityError(f"least {self.least}: must be 1 value or more, or None")

    def check(self) -> None:
        """Read the files of its parts, of which it has none."""

    @classmethod
    def parameters(cls) -> list[Parameter]:
        """Return the parameters of law and shifts, with their defaults."""
        return [one for part in cls.parts for one in part.parameters() if one not in part.others]

    def __call__(self, work: Work, fit: Work | None = None) -> ShmueliFeitelson:
        """Return the behaviour.

        Parameters
        ----------
        work
            The record whose users take part.
        fit
            The record that habits are taken from; the same unless given.
        """
        return ShmueliFeitelson(work, fit, self)


#: Columns that a job has in common with the recorded one that it repeats.
COPIED = (
    Column.EXECUTABLE,
    Column.QUEUE,
    Column.PROCESSORS,
    Column.RUN_TIME,
    Column.REQUESTED_TIME,
)


class Doing(StrEnum):
    """The state of a user."""

    ASLEEP = "asleep"  #: absent, or gone
    WAITING = "waiting"  #: for the jobs of its batch
    THINKING = "thinking"  #: for a think time or a break


class SiteUser(GeneratedUser):
    """A user who submits batches of jobs from the record of a site.

    Parameters
    ----------
    model, number, behaviour, group, horizon
        See :class:`~hpcrowd.agents.generative.generated.GeneratedUser`.
    habits
        What it draws from.
    wakes
        s; when it is first awake.
    like
        Number of the recorded user whose habits it has; its own unless given.

    Attributes
    ----------
    state
        Its state.
    until
        s; when its think time, break or sleep ends; -1 while it waits, and when it has gone.
    think, pauses, gaps, widths, repeats, own_jobs
        Its distributions, see :class:`~hpcrowd.agents.generative.empirical.Habits`.
    attendance
        Probability to come on one of its days.
    turn
        s after local midnight at which its days begin.
    day
        The day on which it came last, counted from a Monday; -1 none.
    batch
        Rows of the jobs that it submitted last.
    """

    unasked = Why.FIRST

    def __init__(
        self,
        model: Simulation,
        number: int,
        behaviour: Behaviour[GeneratedUser],
        habits: empirical.Habits,
        *,
        group: int = UNKNOWN,
        horizon: int,
        wakes: int = 0,
        like: int | None = None,
    ) -> None:
        super().__init__(model, number, behaviour, group=group, horizon=horizon)
        self.wakes = wakes
        self.state = Doing.ASLEEP
        self.until = UNKNOWN
        self.like = number if like is None else like
        place = empirical.place_of(self.like, habits.users)
        self.think = habits.think.of(place)
        self.pauses = habits.pauses.of(place)
        self.gaps = habits.gaps.of(place)
        self.widths = habits.widths.of(place)
        self.repeats = habits.repeats.of(place)
        self.own_jobs = habits.jobs_of(self.like, group)
        self._asked = habits.table.requests
        self.attendance = 1.0
        self.turn = 0
        self.day = UNKNOWN
        self._job, self._left = UNKNOWN, 0
        self.batch = slice(0, 0)

    def day_of(self, second: int) -> int:
        """Return the day of a second, counted from a Monday; days begin at :attr:`turn`."""
        return (self.model.clock.wall(second) - self.turn) // DAY

    def begin_of_day(self, day: int) -> int:
        """Return the second at which a day begins."""
        return self.model.clock.second_at(day * DAY + self.turn)

    def next_jobs(self, count: int) -> list[int]:
        """Return the next ``count`` jobs of the user, rows of the record.

        The number of repetitions of a job is drawn, and may span several batches.
        """
        jobs: list[int] = []
        while len(jobs) < count:
            if not self._left:
                self._job = empirical.draw(self.own_jobs, self.stream)
                self._left = empirical.draw(self.repeats, self.stream)
            times = min(self._left, count - len(jobs))
            self._left -= times
            jobs += [self._job] * times
        return jobs

    def next_batch(self, now: int) -> tuple[list[int], list[int]]:
        """Return the jobs of the next batch, rows of the record, and when each is submitted, s.

        Jobs at the horizon or later are left out.
        """
        count = empirical.draw(self.widths, self.stream)
        jobs, at = self.next_jobs(count), [now]
        for _ in range(count - 1):
            at.append(at[-1] + (empirical.draw(self.gaps, self.stream) if self.gaps else 0))
        if at[-1] >= self.horizon:
            at = [second for second in at if second < self.horizon]
        return jobs[: len(at)], at

    def submit_batch(
        self, record: Int64s, jobs: Sequence[int], at: Sequence[int], after: int | None = None
    ) -> int:
        """Submit copies of recorded jobs as one unit and return its number.

        Parameters
        ----------
        record
            The columns :data:`COPIED` of the record, shape (recorded jobs, columns).
        jobs
            Rows of the record.
        at
            s, one per job.
        after
            The unit whose end triggered this one.
        """
        table, count = self.model.jobs, len(jobs)
        first = len(table)
        number = 1 + (int(table.number[-1]) if first else 0)
        rows = table.append(
            count, number=np.arange(number, number + count), user=self.number, group=self.group
        )
        table.matrix[COPIED, first : first + count] = record[jobs].T
        if table.requests is not None and self._asked is not None:
            table.requests.repeat(first, self._asked.take(np.array(jobs, np.int64)))
        self.batch = slice(first, first + count)
        return self.hand_in(rows, at, after)


class ShmueliFeitelson(Generating):
    """The users of a site, asleep, waiting or thinking; see the module.

    Missing data is not invented: without any think time in the record, users do not continue
    sessions; without any break, a break lasts ``longest_break``; without gaps, a batch comes at
    once.

    Parameters
    ----------
    work
        The record: there are as many users, with the same numbers and groups.
    fit
        The record that habits and jobs are taken from; the same unless given. A user that is not in
        it draws from the jobs of its group, else from all.
    model
        Parameters.
    window
        When users are at work; drawn by ``model.shifts`` unless given.

    Attributes
    ----------
    habits
        The distributions that users draw from.
    """

    def __init__(
        self,
        work: Work,
        fit: Work | None = None,
        model: SiteModel | None = None,
        window: Activity | None = None,
    ) -> None:
        super().__init__(work)
        self.model = model = model or SiteModel()
        self.window = window or WorkPattern(model.shifts)
        # A copy, since cutting a record into sessions writes to its table.
        self._fit = Work.of((fit or work).jobs.copy(), model.sessions)
        self.habits = empirical.Habits.fit(
            self._fit,
            longest_break=model.longest_break,
            longest_gap=model.longest_gap,
            least=model.least,
        )
        table = self._fit.jobs
        self._record = np.ascontiguousarray(table.matrix[COPIED, : len(table)].T)
        self._attendance: empirical.Attendance | None = None

    @override
    def join(
        self,
        model: Simulation,
        place: int,
        *,
        number: int | None = None,
        wakes: int | None = None,
        until: int | None = None,
    ) -> SiteUser:
        """Return a new user in the model, like the one at ``place`` among those of the record.

        Parameters
        ----------
        model, place
            The simulation, and the index of the recorded user that it follows.
        number
            Its number, if it is not that of the record.
        wakes, until
            s; when it first wakes, and from when on it submits nothing more, unless the model
            decides that.
        """
        sessions, jobs = self.work.sessions, self.work.jobs
        first, last = sessions.session_first[sessions.user_first[place : place + 2]].tolist()
        mine = sessions.rows[[first, last - 1]]
        like = int(sessions.users[place])
        number = like if number is None else number
        begins, ends = jobs.recorded_submit[mine].tolist()
        if wakes is None:
            wakes = begins
            if self.model.wakes == "first-week":
                wakes = int(model.streams.generator("first wake", number).integers(WEEK))
        horizon = self.model.horizon if until is None else until
        if horizon is None:
            last = int(np.argmax(jobs.recorded_submit))
            horizon = int(jobs.recorded_submit[last]) + 1
            check_within(
                f"job {jobs.number[last]} is submitted on day",
                horizon // DAY,
                0,
                MOST_DAYS,
                "users who generate their work would go on until then; correct or remove it",
            )
        user = SiteUser(
            model,
            number,
            self,
            self.habits,
            group=int(jobs.group[mine[0]]),
            horizon=horizon,
            wakes=wakes,
            like=like,
        )
        self.window.begin(user)
        if self.model.presence == "recorded":
            self._limit(user, wakes + ends - begins if until is None else until - 1)
        return user

    @override
    def begin(self, user: GeneratedUser) -> None:
        """Sleep until the first day."""
        user = cast(SiteUser, user)
        self._wait_until(user, user.wakes, Doing.ASLEEP, UNKNOWN)

    def wake(self, user: SiteUser, after: int) -> None:
        """Submit a batch now; ``after`` is the unit before it, -1 none."""
        cause = None if after == UNKNOWN else after
        user.submit_batch(self._record, *user.next_batch(user.model.time), cause)
        user.state, user.until = Doing.WAITING, UNKNOWN

    @override
    def finished(self, user: GeneratedUser, unit: int, now: int) -> None:
        """Stay in the session, or take a break."""
        user = cast(SiteUser, user)
        response = response_time(user.model.jobs, user.batch)
        stays = user.stream.random() < self.model.law.probability(response)
        user.rests = not stays
        if stays and user.think:
            pause = empirical.draw(user.think, user.stream)
        elif user.pauses:
            pause = empirical.draw(user.pauses, user.stream)
        else:
            pause = self.model.longest_break
        self._wait_until(user, now + user.paused(pause), Doing.THINKING, unit)

    @override
    def lost(self, user: GeneratedUser, rows: Int64s, now: int) -> None:
        """Submit stopped jobs again when the user is next at work."""
        at = self._opens(cast(SiteUser, user), now + user.model.resubmit_after)
        user.model.resubmit(rows, at)

    def _wait_until(self, user: SiteUser, at: int, state: Doing, unit: int) -> None:
        """Do nothing until ``at``, or sleep until the user next comes where that is later."""
        opens = self._opens(user, at)
        if user.attendance < 1:
            while (day := user.day_of(opens)) != user.day and opens < user.horizon:
                if user.stream.random() < user.attendance:
                    user.day = day
                    break
                opens = self._opens(user, user.begin_of_day(day + 1))
        user.put_off = opens - at
        user.state, user.until = (state if opens == at else Doing.ASLEEP), opens
        if opens >= user.horizon:
            user.state, user.until = Doing.ASLEEP, UNKNOWN
        user.call_at(opens, self.wake, unit)

    def _opens(self, user: SiteUser, at: int) -> int:
        """Return ``at`` if the user's hours are then, else when they next begin."""
        return self.window.next_open(user, at, Release(UNKNOWN, at, Reason.ENDED, 0, UNKNOWN))

    def _limit(self, user: SiteUser, last: int) -> None:
        """Let a user come on as many days as recorded, up to the day of second ``last``.

        The night of who works over midnight is one day, from noon to noon.
        """
        clock = user.model.clock
        if self._attendance is None:
            self._attendance = empirical.Attendance.fit(self._fit, clock)
        if self._works_over_midnight(user):
            user.turn = DAY // 2
        user.day = user.day_of(self._opens(user, user.wakes))
        user.horizon = min(user.horizon, user.begin_of_day(max(user.day, user.day_of(last)) + 1))
        begins = [user.begin_of_day(user.day + day) for day in range(empirical.DAYS + 1)]
        open_days = sum(self._opens(user, at) < end for at, end in pairwise(begins))
        place = empirical.place_of(user.like, self.habits.users)
        user.attendance = self._attendance.probability(place, max(1, open_days))

    def _works_over_midnight(self, user: SiteUser) -> bool:
        """Return whether a user is at work at some midnight of the week, and at no noon."""
        begins = [user.begin_of_day(user.day_of(user.wakes) + day) for day in range(empirical.DAYS)]
        return any(self.window.is_open(user, at) for at in begins) and not any(
            self.window.is_open(user, at + DAY // 2) for at in begins
        )


#: As published: everybody comes on every day of its hours.
PUBLISHED = SiteModel(
    does="no submission: work is made up of recorded jobs",
    source="Shmueli and Feitelson 2007 and 2009, as STARS has it",
)

#: With what a record tells of each user: its days, and distributions of its own.
CALIBRATED = SiteModel(
    presence="recorded",
    least=OWN_VALUES,
    does="days of presence: work is made up of recorded jobs",
    source="the same; days of presence: own",
)
