"""Users who cut a task into jobs: each recorded job is a task, an amount of work.

=============== ===================================== ==============================================
how             size and run time of a piece          pieces of a task
=============== ===================================== ==============================================
``preferred``   as the user prefers, within limits    one after the other
``adaptive``    with which the task would end first   one after the other
``at-once``     as the user prefers, within limits    all at once, or as many as allowed
=============== ===================================== ==============================================

The recorded job is the last piece; the others are added to the table of jobs when they are
submitted, with no recorded submission. They have the session and the batch of the recorded job,
and their user goes on when all of them are over.

The ways to cut are those of HPCMod.jl (N. A. Simakov, "HPCMod: Agent-Based Modeling Framework for
Modeling Users on High-Performance Computing Resources", AHFE 2024; its code is
``ubccr-slurm-simulator/HPCMod.jl``, ``src/hpc_user_model.jl``). A task is an amount of
processor-seconds, however many processors do them: processors work at the same speed whatever
their number.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, override

import numpy as np

from hpcrowd.agents.behaviours.decisions import What, Why
from hpcrowd.agents.behaviours.parts import Note, setting
from hpcrowd.agents.behaviours.reactions import NewJobs, Response
from hpcrowd.agents.behaviours.user import Gone
from hpcrowd.environment.errors import QuantityError, check_choice
from hpcrowd.environment.holds.held import Holds
from hpcrowd.environment.jobs import UNKNOWN, Column, State
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.requests import resize
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.reactions import Intention
    from hpcrowd.agents.behaviours.user import ReplayUser
    from hpcrowd.environment.cluster import Place
    from hpcrowd.environment.engine.public_state import PublicState
    from hpcrowd.environment.jobs import Int64s
    from hpcrowd.environment.simulation import Simulation


#: Processors that adaptive users try, as multiples of the preferred number: the ends of the range
#: of HPCMod.jl (``adaptive_factor_nodes``), and the number itself. Of equally good ones the first.
WIDTHS = (1.0, 2.0, 0.5)

#: Run times that they try, as multiples of the preferred one: the ends of the range of HPCMod.jl
#: (``adaptive_factor_walltime``), and what doubling reaches between them.
LENGTHS = (1.0, 4.0, 2.0, 0.5, 0.25)


class Shape(NamedTuple):
    """A piece of a task."""

    processors: int
    run_time: int  #: s
    useful: int  #: s of the run time that the task advances


class Rules(NamedTuple):
    """What the pieces of a task must keep to, and what they cost."""

    limit: int = FOREVER  #: s; longest run time of a job
    processors: int = FOREVER  #: most processors of a job
    time: int | None = None  #: s; preferred run time of a piece, None for as long as allowed
    overhead: int = 0  #: s that each piece of a task in pieces runs longer
    pause: int = 0  #: s between the end of a piece and the submission of the next


@dataclass(eq=False)
class Task:
    """The work of one recorded job.

    Attributes
    ----------
    row
        The job; it is the last piece.
    site
        Where its pieces are submitted.
    unit
        The engine's number of the unit that its user waits for; -1 for none.
    processors, run_time, requested_time
        Of the job before it was cut, times in s.
    left
        Work of which no piece was submitted yet, processor-seconds.
    rules
        What its pieces keep to.
    pieces
        Rows of the pieces, as they were submitted.
    running
        Pieces that wait or run.
    """

    row: int
    site: Place
    unit: int
    processors: int
    run_time: int
    requested_time: int
    left: int
    rules: Rules
    pieces: list[int] = field(default_factory=list)
    running: int = 0

    def piece(self, processors: int, most: int) -> Shape | None:
        """Return the next piece on a number of processors, of at most ``most`` s.

        None if there is no time for anything but the overhead. The last piece does what is left,
        rounded up to a whole second. A task in one piece has no overhead.
        """
        needs = -(-self.left // processors)
        if needs <= most and not self.pieces:
            return Shape(processors, needs, needs)
        overhead = self.rules.overhead
        if needs <= most - overhead:
            return Shape(processors, needs + overhead, needs)
        return Shape(processors, most, most - overhead) if most > overhead else None

    def asks(self, run_time: int) -> int:
        """Return the time that a piece asks for, s: as much too long as the job did, or the limit.

        If the job asked for less than it needed, so does the piece.
        """
        asked = -(-run_time * self.requested_time // self.run_time)
        return max(1, min(asked, self.rules.limit))

    @property
    def narrowed(self) -> int:
        """The preferred number of processors, or the most that are allowed."""
        return min(self.processors, self.rules.processors)


def preferred(task: Task) -> Shape | None:
    """Return the next piece in the preferred size and time, or the largest that is allowed."""
    rules = task.rules
    time = rules.limit if rules.time is None else min(rules.time, rules.limit)
    return task.piece(task.narrowed, time)


def adaptive(task: Task, state: PublicState) -> Shape | None:
    """Return the next piece in the shape with which the task would be done first.

    Expected is that each later piece waits as long as this one would now.
    """
    rules, best, first = task.rules, preferred(task), FOREVER
    whole = -(-task.processors * task.run_time // task.narrowed)
    time = min(whole if rules.time is None else rules.time, rules.limit)
    tried: set[Shape] = set()
    for width in WIDTHS:
        processors = max(1, min(round_half_up(width * task.processors), rules.processors))
        for length in LENGTHS:
            shape = task.piece(processors, min(round_half_up(length * time), rules.limit))
            if shape is None or shape in tried:
                continue
            tried.add(shape)
            start = state.expected_start(processors, task.asks(shape.run_time))
            if start < FOREVER and (end := _done(task, shape, start, state.now)) < first:
                best, first = shape, end
    return best


def _done(task: Task, shape: Shape, start: int, now: int) -> int:
    """Return when a task would be done whose next piece starts at a second, s."""
    later = max(0, task.left - shape.processors * shape.useful)
    pieces = -(-later // (shape.processors * shape.useful))
    each = start - now + task.rules.overhead + task.rules.pause
    return start + shape.run_time + pieces * each + -(-later // shape.processors)


#: Ways to cut a task.
HOW = ("preferred", "adaptive", "at-once")


@dataclass(eq=False, kw_only=True)
class Cut(Response):
    """Cut the job into pieces that keep to the limits.

    A job that keeps to the limits and is neither adaptive nor counted stays as it is. If a piece
    leaves the queue for good, what is left of the task is renounced. Reactions before this one
    change the task; those after it, when and where its first piece is submitted.

    Parameters
    ----------
    trigger, share, probability, name
        See :class:`~hpcrowd.agents.behaviours.reactions.Response`.
    how
        See the module.
    limit
        s; longest run time of a job, at the speed of the first cluster. None for ``MaxTime`` of
        its partition on a machine of nodes, and for no limit elsewhere.
    processors
        Most processors of a job; None for no limit.
    time
        s; preferred run time of a piece. None for as long as the limit allows; to adaptive users,
        that of the job.
    overhead
        s that each piece runs longer, such as to write and to read a checkpoint. Not in tasks of
        one piece.
    pause
        s between the end of a piece and the submission of the next, which comes when the user is at
        work. By default the scheduler submits it, as with a dependency.
    most
        Jobs of the user in the system at once, of those that the reaction concerns; further ones
        are submitted when those end. None for no limit.

    Attributes
    ----------
    tasks
        The tasks of the run so far, by the row of the recorded job.

    Raises
    ------
    QuantityError
        If a number is out of range; before the run, under the recorded schedule, or if jobs are
        held before they are eligible.
    """

    response = "cut"
    logged = What.CUT
    submits = True

    how: Literal["preferred", "adaptive", "at-once"] = setting(
        "preferred", "shape and order of the pieces: preferred, adaptive or at-once"
    )
    limit: int | None = setting(
        None,
        "longest run time of a job; by default MaxTime of its partition, or none",
        "s",
        above=0,
    )
    processors: int | None = setting(None, "most processors of a job; by default any", least=1)
    time: int | None = setting(
        None, "preferred run time of a piece; by default as long as allowed", "s", above=0
    )
    overhead: int = setting(0, "each piece of several runs longer by this (own)", "s", least=0)
    pause: int = setting(
        0, "from the end of a piece to the next submission (HPCMod.jl)", "s", least=0
    )
    most: int | None = setting(
        None, "jobs of the user in the system at once; by default any number", least=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("cut how", self.how, HOW)
        for name, least in (("overhead", 0), ("pause", 0), ("most", 1), ("processors", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise QuantityError(f"cut {name} {value}: at least {least}")
        for name in ("limit", "time"):
            value = getattr(self, name)
            if value is not None and value <= self.overhead:
                raise QuantityError(
                    f"cut {name} {value} s: must be more than the overhead of a piece, "
                    f"{self.overhead} s"
                )
        self.tasks: dict[int, Task] = {}
        self._model: Simulation | None = None
        self._desks: dict[int, Desk] = {}
        self._longest: dict[str, int | None] | None = None  # by partition, s

    @override
    def begin(self, user: ReplayUser) -> None:
        super().begin(user)
        state = user.site.look()
        if any(engine.scheduler is None for engine in state.engines):
            raise QuantityError(
                f"reaction {self.name}: under the recorded schedule jobs start as recorded, and "
                "pieces of tasks have no record; choose a scheduler"
            )
        holds = user.model.parts.of(Holds)
        if holds is not None and holds.rules.concerned.any():
            raise QuantityError(
                f"reaction {self.name}: jobs of this log are held, such as for the end of others, "
                "and pieces of tasks would not be; give holds = none"
            )
        if self._model is not user.model:
            self._model, self.tasks, self.new_jobs = user.model, {}, NewJobs(user.model.jobs)
            self._longest = None
            if state.has_nodes and self.limit is None:
                known = state.machine.partitions.values()
                self._longest = {one.name: one.max_time for one in known}
        self._desks[user.number] = Desk(self, user)

    @override
    def is_busy(self, user: ReplayUser) -> bool:
        return self._desks[user.number].is_busy

    @override
    def respond(self, user: ReplayUser, intention: Intention, place: int) -> None:
        jobs, row = user.model.jobs, int(intention.rows[place])
        run, asked = int(jobs.run_time[row]), int(jobs.requested_time[row])
        if place in intention.kept or run <= 0:
            return
        rules = self.rules(user, row)
        time = rules.limit if rules.time is None else min(rules.time, rules.limit)
        fits = run <= time and jobs.processors[row] <= rules.processors
        if not fits or self.how == "adaptive" or self.most is not None:
            intention.keep(place)
            self._desks[user.number].expect(intention, place)
        elif asked > rules.limit:
            change = "requested_time", str(asked), str(rules.limit)
            intention.ask(place, {}, change, self.name, self.response, (run, rules.limit))

    def rules(self, user: ReplayUser, row: int) -> Rules:
        """Return what the pieces of a job must keep to."""
        limit = FOREVER if self.limit is None else self.limit
        if self._longest is not None:
            asked = user.site.look().machine.asked(row)
            longest = [self._longest.get(name) for name in asked]
            limit = max((one for one in longest if one is not None), default=FOREVER)
            if None in longest:
                limit = FOREVER
        processors = FOREVER if self.processors is None else self.processors
        return Rules(limit, processors, self.time, self.overhead, self.pause)

    def shape(self, task: Task) -> Shape:
        """Return the next piece of a task.

        Raises
        ------
        QuantityError
            If the limit leaves no time for anything but the overhead.
        """
        found = adaptive(task, task.site.look()) if self.how == "adaptive" else preferred(task)
        if found is None:
            raise QuantityError(
                f"reaction {self.name}: overhead {self.overhead} s of a piece: the limit is "
                f"{task.rules.limit} s; it must be shorter than that"
            )
        return found


class Desk:
    """The tasks of one user: submits their pieces, and counts those in the system.

    Parameters
    ----------
    cut
        How the user cuts tasks.
    user
        The user.
    """

    def __init__(self, cut: Cut, user: ReplayUser) -> None:
        self.cut = cut
        self.user = user
        self._coming = 0  # tasks and pieces that have an alarm
        self._queue: deque[Task] = deque()  # with a piece to be submitted as soon as allowed
        self._pieces: dict[int, tuple[Task, int]] = {}  # those in the system, by their unit

    @property
    def is_busy(self) -> bool:
        """Whether a task has begun, or is to begin, and is not over."""
        return bool(self._coming or self._queue or self._pieces)

    def expect(self, intention: Intention, place: int) -> None:
        """Begin a task when all reactions have decided about its job."""
        self._coming += 1
        self.user.model.call_at(self.user.model.time, self._begin, intention, place)

    def _begin(self, intention: Intention, place: int) -> None:
        user, jobs, row = self.user, self.user.model.jobs, int(intention.rows[place])
        at = int(intention.at[place])
        if at > user.model.time:
            user.model.call_at(at, self._begin, intention, place)
            return
        self._coming -= 1
        home = intention.cluster is None or intention.cluster[place] == user.site.name
        site = user.site if home else user.model.place(intention.cluster[place])  # type: ignore[index]
        if jobs.state[row] != State.UNFINISHED:  # renounced: it is over when it would arrive
            if not isinstance(user.behaviour, Gone):
                site.submit(np.array([row]), user.model.time)
            return
        processors, run = int(jobs.processors[row]), int(jobs.run_time[row])
        task = Task(
            row,
            site,
            user.model.unit_of(row),
            processors,
            run,
            int(jobs.requested_time[row]),
            processors * run,
            self.cut.rules(user, row),
        )
        self.cut.tasks[row] = task
        self._queue.append(task)
        self._go_on()

    def _come(self, task: Task | None) -> None:
        """Submit the next piece of a task, or whatever piece is next, as the user is at work."""
        self._coming -= 1
        if task is not None:
            self._queue.append(task)
        self._go_on()

    def _go_on(self) -> None:
        """Submit pieces as long as the limit on jobs in the system allows."""
        if isinstance(self.user.behaviour, Gone):
            self._queue.clear()
        most, at_once = self.cut.most, self.cut.how == "at-once"
        while self._queue and (most is None or len(self._pieces) < most):
            task = self._queue[0]
            self._submit(task, self.cut.shape(task))
            if not (at_once and task.left):
                self._queue.popleft()

    def _submit(self, task: Task, shape: Shape) -> None:
        """Submit a piece of a task now."""
        user, jobs, model = self.user, self.user.model.jobs, self.user.model
        task.left = max(0, task.left - shape.processors * shape.useful)
        whole = int(jobs.processors[task.row]), int(jobs.run_time[task.row])
        row, before = task.row, whole
        if task.left:
            row, before = self.cut.new_jobs.add(task.row), (0, 0)
            jobs.run_time[task.row] = -(-task.left // whole[0])
        jobs.processors[row] = shape.processors
        jobs.run_time[row] = shape.run_time
        jobs.requested_time[row] = task.asks(shape.run_time)
        resize(jobs, row, whole[0])
        rows = np.array([row])
        self._pieces[model.add_unit(self, rows)] = task, row
        task.site.submit(rows, model.time)
        if task.pieces and self.cut.how != "at-once":
            user.preceded[row] = task.pieces[-1]
        task.pieces.append(row)
        task.running += 1
        if user.leaving is not None:
            user.leaving.submitted(user, rows)
        self._note(row, before, str(jobs.number[task.row]) if task.left else "")
        if task.left:
            self._note(task.row, whole)
        if len(task.pieces) > 1 or task.left:
            user.note_jobs(What.CUT, Why.REACTION, rows, [UNKNOWN], self.cut.name)

    def _note(self, row: int, before: tuple[int, int], of: str = "") -> None:
        """Note the change of a job, or the new piece of the job with the number ``of``."""
        jobs, now = self.user.model.jobs, self.user.model.time
        after = int(jobs.processors[row]), int(jobs.run_time[row])
        if after != before:
            task = ("task", "", of) if of else ("", "", "")
            self.user.notes.append(
                Note(row, self.cut.name, "cut", now, *before, *after, 0, "", 0, *task)
            )

    def on_finished(self, unit: int, now: int) -> None:
        """Go on with the task whose piece is over."""
        task, row = self._pieces.pop(unit)
        task.running -= 1
        if task.left and self.user.model.jobs.state[row] == State.CANCELLED:
            self._give_up(task)
        goes_on = task if task.left and self.cut.how != "at-once" else None
        if goes_on or self._queue:
            self._coming += 1
            at = self.user.behaviour.at_work(self.user, now, self.cut.pause)
            if at > now:
                self.user.model.call_at(at, self._come, goes_on)
            else:
                self._come(goes_on)
        if not task.left and not task.running:
            self.user.model.jobs.column(Column.UNIT)[task.row] = task.unit
            if task.unit != UNKNOWN:
                self.user.model.count_over(task.unit)

    def on_lost(self, rows: Int64s, now: int) -> None:
        """Let the user decide about pieces that were stopped."""
        self.user.on_lost(rows, now)

    def _give_up(self, task: Task) -> None:
        """Renounce what is left of a task."""
        jobs, row = self.user.model.jobs, task.row
        before = int(jobs.processors[row]), int(jobs.run_time[row])
        jobs.state[row] = State.RENOUNCED
        task.left = 0
        if task in self._queue:
            self._queue.remove(task)
        now = self.user.model.time
        self.user.notes.append(Note(row, self.cut.name, "renounce", now, *before, 0, 0))
