"""Four kinds of users as behaviours: debuggers, sweepers, users of large runs, nightly scripts.

They are simple on purpose, so that you can read, change and replace them. Each has its parameters
in a frozen dataclass of *habits*; those without a source are chosen for the demonstration:
plausible, not measured. All times are drawn in seconds from the user's own stream and rounded half
up.

A behaviour remembers things about its user (its hours, its programs): one object per user.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import override

from hpcrowd.agents.behaviours.activity import ALL_DAYS, ActivityWindow
from hpcrowd.agents.behaviours.decisions import Why
from hpcrowd.agents.behaviours.think import ContinuationLaw
from hpcrowd.agents.behaviours.user import Behaviour
from hpcrowd.agents.generative.generated import GeneratedUser, LogNormal, round_request
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import QuantityError, check_choice
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.simulation import Simulation

MINUTE = 60  #: s


@dataclass(frozen=True)
class Office:
    """The working hours of a person, and the accuracy of requested times.

    Attributes
    ----------
    window
        Working days, 8 to 18 h local time; chosen for the demo (Zakay and Feitelson 2015, section
        VII-B, have 7:30 to 17:30).
    shift
        s; each user's window is moved by a uniform draw from minus to plus this: one hour (Zakay
        and Feitelson 2015, section VII-B).
    settle
        s from the opening of the window to the first submission of a day; chosen for the demo.
    factor
        Requested time over run time, uniform between the two before it is rounded up to a round
        time; chosen for the demo.
    """

    window: ActivityWindow = field(default=ActivityWindow())
    shift: int = HOUR
    settle: LogNormal = field(default=LogNormal(30 * MINUTE, 0.8, MINUTE, 3 * HOUR))
    factor: tuple[float, float] = (1.1, 4.0)


class OfficeWorker(Behaviour[GeneratedUser]):
    """A person who submits only during working hours; subclasses define the work and think times.

    Parameters
    ----------
    office
        Hours and requests.
    """

    def __init__(self, office: Office) -> None:
        self.office = office
        self.window = office.window

    @override
    def begin(self, user: GeneratedUser) -> None:
        """Draw the personal window and come to work on the first day."""
        shift = self.office.shift
        self.window = self.office.window.shifted(int(user.stream.integers(-shift, shift + 1)))
        user.unasked = Why.FIRST
        self.come_back(user, 0, None)

    @override
    def lost(self, user: GeneratedUser, rows: Int64s, now: int) -> None:
        """Submit stopped jobs again in the next of the user's hours."""
        at = self.window.next_open(user.model.clock, now + user.model.resubmit_after)
        user.model.resubmit(rows, at)

    def work(self, user: GeneratedUser, after: int | None) -> None:
        """Submit work now; ``after`` is the unit that triggered it, if any."""
        raise NotImplementedError(f"{type(self).__name__} must define work()")

    def come_back(self, user: GeneratedUser, at: int, after: int | None) -> None:
        """Work at ``at`` if that is in the user's hours, else soon after they next begin."""
        opening = self.window.next_open(user.model.clock, at)
        if opening > at:
            opening += self.office.settle.draw(user.stream)
            # A very short window may close before the user has settled.
            opening = self.window.next_open(user.model.clock, opening)
        user.put_off = opening - at
        user.call_at(opening, self.work, after)

    def request(self, user: GeneratedUser, run_time: int) -> int:
        """Return the requested time of a user who expects ``run_time``, s."""
        return round_request(run_time, user.stream.uniform(*self.office.factor))


@dataclass(frozen=True)
class DebuggerHabits:
    """Parameters of :class:`Debugger`.

    Attributes
    ----------
    office
        Hours and requests.
    processors
        Sizes to choose from, with equal probability; chosen for the demo.
    run_time
        s; chosen for the demo.
    think
        s from a result to the next test of the session; chosen for the demo, at most the 20 min
        that part sessions (Shmueli, after Zakay and Feitelson 2012).
    pause
        s from a result to the next session if the user does not continue; chosen for the demo, at
        most 8 h (Zakay and Feitelson 2015, section VII-B).
    law
        The session continues with probability limit / (decline * RT + 1), RT the response time in
        min: 0.8 and 0.05 / min (Shmueli and Feitelson, after Zakay and Feitelson 2015, section
        VII-B).
    """

    office: Office = field(default=Office())
    processors: tuple[int, ...] = (1, 2, 4, 8)
    run_time: LogNormal = field(default=LogNormal(3 * MINUTE, 1.0, 5, 30 * MINUTE))
    think: LogNormal = field(default=LogNormal(4 * MINUTE, 0.8, 5, 20 * MINUTE))
    pause: LogNormal = field(default=LogNormal(90 * MINUTE, 0.8, 20 * MINUTE, 8 * HOUR))
    law: ContinuationLaw = field(default=ContinuationLaw())


class Debugger(OfficeWorker):
    """Tests a program: one short job at a time, looks at the result, tries again.

    The longer a test takes, the sooner the session ends. The user then does something else and
    comes back later during working hours.
    """

    def __init__(self, habits: DebuggerHabits | None = None) -> None:
        self.habits = habits or DebuggerHabits()
        super().__init__(self.habits.office)
        self.program = 0

    @override
    def work(self, user: GeneratedUser, after: int | None) -> None:
        """Submit one test."""
        run_time = self.habits.run_time.draw(user.stream)
        user.submit(
            run_time,
            processors=int(user.stream.choice(self.habits.processors)),
            requested_time=self.request(user, run_time),
            program=self.program,
            after=after,
        )

    @override
    def finished(self, user: GeneratedUser, unit: int, now: int) -> None:
        """Continue the session, or leave it for later."""
        think = self.habits.think.draw(user.stream)
        goes_on = user.stream.random() < self.habits.law.probability(user.response(unit, now))
        user.rests = not (goes_on and self.window.is_open(user.model.clock, now + think))
        if not user.rests:
            user.put_off = 0
            user.call_at(now + think, self.work, unit)
        else:
            self.program = int(user.stream.integers(0, 10))
            self.come_back(user, now + self.habits.pause.draw(user.stream), unit)


@dataclass(frozen=True)
class SweeperHabits:
    """Parameters of :class:`ParameterSweeper`; all chosen for the demo.

    Attributes
    ----------
    office
        Hours and requests; users who write bags start later in the day.
    jobs
        Least and most jobs of a bag, uniform between them.
    processors
        Sizes to choose from, one per bag.
    run_time
        s; of a bag.
    unlike
        Spread within a bag: standard deviation of the logarithm of the run time.
    think
        s from the end of a bag to the next.
    """

    office: Office = field(default=Office(settle=LogNormal(HOUR, 0.8, 5 * MINUTE, 6 * HOUR)))
    jobs: tuple[int, int] = (20, 60)
    processors: tuple[int, ...] = (1, 2)
    run_time: LogNormal = field(default=LogNormal(24 * MINUTE, 0.6, 5 * MINUTE, 6 * HOUR))
    unlike: float = 0.1
    think: LogNormal = field(default=LogNormal(8 * HOUR, 0.7, 30 * MINUTE, 2 * DAY))


class ParameterSweeper(OfficeWorker):
    """Submits bags of similar jobs, waits for all, and thinks for hours about the results."""

    def __init__(self, habits: SweeperHabits | None = None) -> None:
        self.habits = habits or SweeperHabits()
        super().__init__(self.habits.office)

    @override
    def work(self, user: GeneratedUser, after: int | None) -> None:
        """Submit a bag."""
        stream = user.stream
        least, most = self.habits.jobs
        count = int(stream.integers(least, most + 1))
        typical = self.habits.run_time.draw(stream)
        each = LogNormal(typical, self.habits.unlike)
        run_times = [each.draw(stream) for _ in range(count)]
        user.submit(
            run_times,
            processors=int(stream.choice(self.habits.processors)),
            requested_time=self.request(user, max(run_times)),
            program=int(stream.integers(0, 3)),
            after=after,
        )

    @override
    def finished(self, user: GeneratedUser, unit: int, now: int) -> None:
        """Think, then come back with the next bag."""
        self.come_back(user, now + self.habits.think.draw(user.stream), unit)


@dataclass(frozen=True)
class LargeRunHabits:
    """Parameters of :class:`LargeRuns`; all chosen for the demo.

    Attributes
    ----------
    office
        Hours and requests; users of long runs know their run times better.
    share
        Part of the machine that a run takes.
    run_time
        s.
    look
        s that the user looks at results before the next run.
    """

    office: Office = field(default=Office(factor=(1.05, 1.6)))
    share: float = 0.5
    run_time: LogNormal = field(default=LogNormal(12 * HOUR, 0.4, 2 * HOUR, 36 * HOUR))
    look: LogNormal = field(default=LogNormal(20 * HOUR, 0.5, 4 * HOUR, 4 * DAY))


class LargeRuns(OfficeWorker):
    """Runs one simulation on much of the machine, looks at it for about a day, runs the next."""

    def __init__(self, habits: LargeRunHabits | None = None) -> None:
        self.habits = habits or LargeRunHabits()
        super().__init__(self.habits.office)

    @override
    def work(self, user: GeneratedUser, after: int | None) -> None:
        """Submit one large run."""
        run_time = self.habits.run_time.draw(user.stream)
        user.submit(
            run_time,
            processors=max(1, int(self.habits.share * user.model.cluster.processors)),
            requested_time=self.request(user, run_time),
            after=after,
        )

    @override
    def finished(self, user: GeneratedUser, unit: int, now: int) -> None:
        """Look at the results, then come back with the next run."""
        self.come_back(user, now + self.habits.look.draw(user.stream), unit)


@dataclass(frozen=True)
class Stage:
    """One stage of a nightly script: jobs that are submitted together.

    Attributes
    ----------
    jobs
        Number of jobs.
    processors
        Processors of each.
    run_time
        s.
    requested_time
        s; the same every night.
    """

    jobs: int
    processors: int
    run_time: LogNormal
    requested_time: int


@dataclass(frozen=True)
class NightScriptHabits:
    """Parameters of :class:`NightScript`; all chosen for the demo.

    Attributes
    ----------
    hour
        s after local midnight at which the script starts, every night of the week.
    shift
        s; each script starts up to this much later, by a uniform draw made once.
    stages
        The stages, each submitted when the one before has finished.
    """

    hour: int = 21 * HOUR
    shift: int = 2 * HOUR
    stages: tuple[Stage, ...] = (
        Stage(1, 4, LogNormal(15 * MINUTE, 0.2, 5 * MINUTE, HOUR), HOUR),
        Stage(1, 32, LogNormal(4 * HOUR, 0.2, HOUR, 8 * HOUR), 8 * HOUR),
        Stage(4, 4, LogNormal(20 * MINUTE, 0.2, 5 * MINUTE, HOUR), HOUR),
    )


class NightScript(Behaviour[GeneratedUser]):
    """Starts the same chain of jobs at the same hour every night, whatever happened before."""

    def __init__(self, habits: NightScriptHabits | None = None) -> None:
        self.habits = habits or NightScriptHabits()
        self.start = ActivityWindow(self.habits.hour, self.habits.hour + 1, ALL_DAYS)
        self.stage_of: dict[int, int] = {}

    @override
    def begin(self, user: GeneratedUser) -> None:
        """Draw the second of the day, and set the alarm for the first night."""
        user.unasked = Why.HOUR
        self.start = self.start.shifted(int(user.stream.integers(0, self.habits.shift + 1)))
        user.call_at(self.start.next_open(user.model.clock, 0), self.night)

    def night(self, user: GeneratedUser) -> None:
        """Submit the first stage, and set the alarm for the next night."""
        now = user.model.time
        user.call_at(self.start.next_open(user.model.clock, now + 1), self.night)
        self._submit(user, 0, None)

    @override
    def finished(self, user: GeneratedUser, unit: int, now: int) -> None:
        """Submit the next stage, if any."""
        stage = self.stage_of.pop(unit) + 1
        if stage < len(self.habits.stages) and now < user.horizon:
            user.call_at(now, self._submit, stage, unit)

    def _submit(self, user: GeneratedUser, stage: int, after: int | None) -> None:
        what = self.habits.stages[stage]
        unit = user.submit(
            [min(what.run_time.draw(user.stream), what.requested_time) for _ in range(what.jobs)],
            processors=what.processors,
            requested_time=what.requested_time,
            program=stage % 10,
            after=after,
        )
        self.stage_of[unit] = stage


#: The archetypes by name. Group numbers of their jobs count from 1 in this order.
ARCHETYPES: dict[str, Callable[[], Behaviour[GeneratedUser]]] = {
    "debugger": Debugger,
    "sweeper": ParameterSweeper,
    "large-runs": LargeRuns,
    "night-script": NightScript,
}

#: The archetypes' names by group number.
GROUP_NAMES = dict(enumerate(ARCHETYPES, 1))

#: How many users of each archetype the demo has: enough to keep 128 processors busy.
DEMO_USERS = {"debugger": 30, "sweeper": 4, "large-runs": 4, "night-script": 4}


def demo_population(
    model: Simulation,
    counts: dict[str, int] | None = None,
    *,
    horizon: int,
    hears: bool = True,
) -> list[GeneratedUser]:
    """Put generative users into the model and start them.

    Users are numbered from 100 * group + 1 on, so that an additional user of an archetype does not
    change the numbers of the others, and so their random streams.

    Parameters
    ----------
    model
        The simulation; its table of jobs may be empty.
    counts
        How many users of each archetype of :data:`ARCHETYPES`, at most 99; :data:`DEMO_USERS` is
        meant for 128 processors.
    horizon
        s; users submit nothing from then on.
    hears
        Whether users react to what the cluster does, see :class:`GeneratedUser`.

    Raises
    ------
    QuantityError
        If an archetype is not known, or there are too many users of one.
    """
    counts = DEMO_USERS if counts is None else counts
    for name, count in counts.items():
        check_choice("archetype", name, ARCHETYPES)
        if not 0 <= count < 100:
            raise QuantityError(f"{name} {count}: the number of users must be 0 to 99")
    users = [
        GeneratedUser(
            model,
            100 * group + place,
            ARCHETYPES[name](),
            group=group,
            horizon=horizon,
            hears=hears,
        )
        for group, name in GROUP_NAMES.items()
        for place in range(1, counts.get(name, 0) + 1)
    ]
    for user in users:
        user.behaviour.begin(user)
    return users
