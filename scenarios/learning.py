"""A Gymnasium environment in which a scheduler learns, on users who react to what it does.

An episode is a run of a scenario, or of a stretch of its log. Whenever jobs wait and at least one
of them fits, the run halts and the agent says which job is next, or what each is worth. The rest of
the pass is that of the library's policies: limits, nodes, maintenance and backfilling.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, override

import numpy as np

from hpcrowd.analysis.metrics import bounded_slowdown
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import QuantityError, check_choice, missing
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.limits.numbers import LARGEST_SEED
from hpcrowd.environment.quantities import format_duration, parse_duration
from hpcrowd.environment.schedulers.base import Look, RunningJob, WaitingJob
from hpcrowd.environment.schedulers.ordered import OrderedScheduler, check_backfill
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.environment.traces.window import window
from hpcrowd.scenarios.kinds.files import KINDS

try:
    import gymnasium
    from greenlet import greenlet
    from gymnasium import spaces
except ImportError as error:
    raise QuantityError(missing(error.name or "gymnasium", "gym")) from error

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hpcrowd.analysis.run import Run
    from hpcrowd.scenarios.kinds.base import Staged

#: Waiting jobs that an agent sees, the oldest; our choice.
SEEN = 32

#: s, times of which observations count as 1; our choice: few jobs wait or run for longer.
LONGEST = 30 * DAY

#: Waiting jobs that count as 1 in observations; our choice.
LONGEST_QUEUE = 1_000

#: Stretches, or populations, that are drawn until one has something to decide; our choice.
DRAWS = 100

#: What an action is, by name.
ACTIONS = {
    "next": "the place of the job that is next, among the oldest; it starts, or gets a reservation",
    "priority": "a number for each of the oldest jobs: the queue is by them, the highest first",
}


class Step(NamedTuple):
    """What a decision led to, up to the next one, for rewards."""

    before: int  #: s since the origin, when it was made
    now: int  #: s since the origin, when the next one is due
    waited: Int64s  #: s, waits of the jobs that have started since
    run: Int64s  #: s, run times of these
    processors: Int64s  #: of these
    total: int  #: processors of the machine


#: Rewards by name: sums over the jobs that started.
REWARDS: dict[str, Callable[[Step], float]] = {
    # minus their bounded slowdowns
    "slowdown": lambda step: -float(bounded_slowdown(step.waited + step.run, step.run).sum()),
    # minus the hours that they waited
    "wait": lambda step: -float(step.waited.sum()) / HOUR,
    # hours of work of the whole machine
    "work": lambda step: float(step.run @ step.processors) / (HOUR * step.total),
}


class Observe(Protocol):
    """What an agent sees; the default is :class:`Observation`."""

    @property
    def space(self) -> spaces.Space[Any]:
        """The space of all that it returns."""

    def __call__(self, look: Look) -> Any:
        """Return an element of the space; of ``look.waiting``, the first are offered."""


class Observation:
    """The oldest waiting jobs and the machine as numbers from 0 to 1.

    Attributes
    ----------
    space
        ``jobs`` has a row for each of the oldest waiting jobs, of zeros where there is none: wait
        so far, requested time as the scheduler sees it, share of the machine, 1 if as many
        processors are free, and the share of the machine that its user holds. ``cluster`` has the
        share of free processors, the length of the queue, and time until the first running job is
        expected to end. Times and lengths are logarithmic.
    """

    def __init__(self, seen: int = SEEN) -> None:
        self.seen = seen
        self.space = spaces.Dict(
            {
                "jobs": spaces.Box(0.0, 1.0, (seen, 5), np.float32),
                "cluster": spaces.Box(0.0, 1.0, (3,), np.float32),
            }
        )

    def __call__(self, look: Look) -> dict[str, NDArray[np.float32]]:
        """Return the observation."""
        total = max(look.total, 1)
        held: dict[int, int] = {}
        for one in look.running:
            held[one.user] = held.get(one.user, 0) + one.processors
        jobs = np.zeros((self.seen, 5), np.float32)
        for row, job in zip(jobs, look.waiting, strict=False):
            row[:] = (
                _scaled(look.now - job.submit, LONGEST),
                _scaled(job.estimate, LONGEST),
                job.processors / total,
                job.processors <= look.free,
                held.get(job.user, 0) / total,
            )
        until = look.running[0].expected_end - look.now if look.running else 0
        cluster = [
            max(look.free, 0) / total,
            _scaled(len(look.waiting), LONGEST_QUEUE),
            _scaled(until, LONGEST),
        ]
        return {
            "jobs": np.clip(jobs, 0.0, 1.0),
            "cluster": np.clip(np.array(cluster, np.float32), 0.0, 1.0),
        }


class Learner(OrderedScheduler):
    """Asks an agent which of the waiting jobs is next, or for their priorities.

    Parameters
    ----------
    action
        One of :data:`ACTIONS`.
    seen
        How many of the oldest jobs the agent chooses from.
    backfill
        As for ``OrderedScheduler``.
    """

    name = "learner"

    def __init__(self, action: str = "next", seen: int = SEEN, backfill: str = "queue") -> None:
        check_choice("action", action, ACTIONS)
        check_backfill(backfill, none=True)
        self.action, self.seen, self.backfill = action, seen, backfill
        self.started: list[tuple[WaitingJob, int]] = []
        self._worth: dict[int, float] = {}

    @override
    def key(self, job: WaitingJob, now: int) -> float:
        return -self._worth.get(job.row, -math.inf)

    @override
    def select(self, look: Look) -> Iterator[WaitingJob]:
        for job in self._chosen(look):
            self.started.append((job, look.now))
            yield job

    def _chosen(self, look: Look) -> Iterator[WaitingJob]:
        while len(look.waiting) > 1 and any(self._fits(job, look) for job in look.waiting):
            # The agent is in another stack: the run halts here until it has decided.
            answer = greenlet.getcurrent().parent.switch(look)
            offered = look.waiting[: self.seen]
            if self.action == "priority":
                worth = np.asarray(answer, float).ravel().tolist()
                self._worth = {job.row: one for job, one in zip(offered, worth, strict=False)}
                break
            place = int(answer)
            job = offered[place if place < len(offered) else 0]
            self._worth = {job.row: 1.0}
            if not self._fits(job, look):
                break
            yield job
            look = _without(job, look)
        yield from self._walk(look)

    def _fits(self, job: WaitingJob, look: Look) -> bool:
        if look.nodes is not None:
            return look.nodes.fits(job)
        return job.processors <= look.free and look.now + job.estimate <= self.closes


class SchedulingEnv(gymnasium.Env[Any, Any]):
    """Learn to schedule users who react: an episode is a run, in which the agent is the scheduler.

    Parameters
    ----------
    source
        What the scenario begins with: a trace, the path of one, or ``archive:NAME``; for
        ``populate`` a workload model, its file or name.
    kind
        The scenario: ``replay``, ``resample`` or ``populate``.
    length
        Length of the stretch of the log that an episode is, which begins at a random second, such
        as ``7d``; None for all of the log.
    action
        One of :data:`ACTIONS`.
    seen
        How many waiting jobs the agent is offered, the oldest.
    reward
        For the jobs that started since the last decision, one of :data:`REWARDS`, or your own
        function of a :class:`Step`.
    observe
        What the agent sees; an :class:`Observation` unless given.
    backfill
        Order in which jobs overtake one that does not fit, as for the policies; ``none`` for no
        overtaking.
    **settings
        Settings of the scenario, such as ``users`` and ``processors``, but not ``scheduler``.

    Raises
    ------
    HpcrowdError
        If a setting is wrong, or the log is shorter than the stretch.

    Notes
    -----
    ``info`` has ``now``, s since the origin of the run, and ``action_mask``, which places have a
    job; after the last decision it has ``run``. A place without a job means the oldest one. With
    the same seed an episode is the same.
    """

    def __init__(
        self,
        source: Any,
        *,
        kind: Literal["replay", "resample", "populate"] = "replay",
        length: str | None = None,
        action: str = "next",
        seen: int = SEEN,
        reward: str | Callable[[Step], float] = "slowdown",
        observe: Observe | None = None,
        backfill: str = "queue",
        **settings: Any,
    ) -> None:
        check_choice("kind", kind, ("replay", "resample", "populate"))
        if not callable(reward):
            check_choice("reward", reward, REWARDS)
        if "scheduler" in settings:
            raise QuantityError("scheduler: the agent is the scheduler; leave it out")
        self.learner = Learner(action, seen, backfill)
        settings_of: Any = KINDS[kind]
        self.config = settings_of.configure(scheduler=self.learner, **settings)
        if kind != "populate":
            self.source = self.config.given(source)
        else:
            self.source = self.config.read(source) if isinstance(source, str) else source
        self.length = None if length is None else parse_duration(length, "length")
        if self.length is not None:
            self._check_length(self.length)
        self.reward = reward if callable(reward) else REWARDS[reward]
        self.observe: Observe = observe or Observation(seen)
        self.observation_space = self.observe.space
        self.action_space = (
            spaces.Discrete(seen) if action == "next" else spaces.Box(-1.0, 1.0, (seen,))
        )
        self._look: Look | None = None
        self._playing: Any = None  # the greenlet in which the episode runs

    def __repr__(self) -> str:
        length = "" if self.length is None else f", {format_duration(self.length)} of it"
        return f"<SchedulingEnv {self.config.label()}{length}: {self.source!r}>"

    def _check_length(self, length: int) -> None:
        if not isinstance(self.source, Trace):
            raise QuantityError("length: this scenario has no log to cut; set its days")
        if (spans := int(np.ptp(self.source.columns["submit"]))) < length:
            raise QuantityError(
                f"length {format_duration(length)}: longer than the log, {format_duration(spans)}"
            )

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, and return what the agent sees at its first decision.

        Parameters
        ----------
        seed
            Seed of all episodes from now on; None goes on with the last one.
        options
            Not used.

        Raises
        ------
        QuantityError
            If there is nothing to decide, in many draws: never a choice of jobs, of which one fits.
        """
        super().reset(seed=seed)
        whole = self.config.kind == "replay" and self.length is None  # each draw is the same log
        for _ in range(1 if whole else DRAWS):
            self.close()
            staged = self._staged()
            if staged is None:
                continue
            self._jobs = staged.model.jobs
            self._playing = greenlet(lambda _, staged=staged: staged.run())
            found = self._went_on(None)
            if isinstance(found, Look):
                return self.observe(found), self._info(found)
        raise QuantityError("nothing to decide: there are never two jobs waiting of which one fits")

    def _staged(self) -> Staged | None:
        """Return the simulation of an episode before it begins; None for a stretch without jobs."""
        source = self.source
        if self.length is not None:
            submit = source.columns["submit"]
            last = int(submit.max()) - self.length
            begin = int(self.np_random.integers(int(submit.min()), last + 1))
            if not ((submit >= begin) & (submit < begin + self.length)).any():
                return None
            source = window(source, begin, begin + self.length)[0]
        seed = int(self.np_random.integers(LARGEST_SEED))
        staged: Staged = self.config.model_copy(update={"seed": seed}).stage(source)
        return staged

    def _went_on(self, answer: Any) -> Look | Run:
        """Run to the next decision, or to the end."""
        self.learner.started.clear()
        found: Look | Run = self._playing.switch(answer)
        self._look = found if isinstance(found, Look) else None
        return found

    @override
    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Decide, and return what the agent sees at the next decision, or at the end.

        Raises
        ------
        QuantityError
            If no episode goes on: call :meth:`reset`.
        """
        last = self._look
        if last is None:
            raise QuantityError("step: no episode goes on; call reset() first")
        found = self._went_on(action)
        if isinstance(found, Look):
            look, info = found, self._info(found)
        else:
            now = int(self._jobs.end.max())
            look = last._replace(now=now, waiting=(), running=(), free=last.total)
            info = self._info(look) | {"run": found}
        started = self.learner.started
        rows = np.array([job.row for job, _ in started], np.int64)
        waited = np.array([at - job.submit for job, at in started], np.int64)
        run, processors = self._jobs.run_time[rows], self._jobs.processors[rows]
        reward = self.reward(Step(last.now, look.now, waited, run, processors, last.total))
        return self.observe(look), float(reward), look is not found, False, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which places have a job, as agents with masks ask for it."""
        waiting = 0 if self._look is None else len(self._look.waiting)
        return np.arange(self.learner.seen) < waiting

    def _info(self, look: Look) -> dict[str, Any]:
        return {"now": look.now, "action_mask": self.action_masks()}

    @override
    def close(self) -> None:
        """Give up the episode that goes on, if one does."""
        if self._playing is not None:
            self._playing.throw()
        self._playing = self._look = None


def _without(job: WaitingJob, look: Look) -> Look:
    """Return the state after a job has started."""
    running = RunningJob(job.row, job.processors, look.now + job.estimate, look.now, *job[-3:])
    return look._replace(
        waiting=tuple(one for one in look.waiting if one is not job),
        running=tuple(sorted((*look.running, running), key=lambda one: one.expected_end)),
        free=look.free - job.processors,
    )


def _scaled(value: float, longest: float) -> float:
    return min(math.log1p(max(value, 0)) / math.log1p(longest), 1.0)
