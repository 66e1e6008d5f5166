"""Shapes of the pieces of a task: how many processors the next piece gets, and for how long.

The ways to cut are those of HPCMod.jl (N. A. Simakov, "HPCMod: Agent-Based Modeling Framework for
Modeling Users on High-Performance Computing Resources", AHFE 2024; its code is
``ubccr-slurm-simulator/HPCMod.jl``, ``src/hpc_user_model.jl``). A task is an amount of
processor-seconds, however many processors do them: processors work at the same speed whatever
their number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.cluster import Place
    from hpcrowd.environment.engine.public_state import PublicState

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
