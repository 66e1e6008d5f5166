"""The base class of compiled scheduling passes, and the schedulers that have one.

The compiled engine runs FCFS and EASY in its own loop. Any other compiled policy is a
:class:`CompiledPass`: it owns the queue and whatever else it plans with, in arrays, and is called
once at each instant at which the plain scheduler would be called.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hpcrowd.environment.engine.kernel.cluster import Cluster, ClusterState
from hpcrowd.environment.jobs import Int64s, JobTable
from hpcrowd.environment.registry import imported
from hpcrowd.environment.schedulers.base import Scheduler
from hpcrowd.environment.schedulers.easy import EASY
from hpcrowd.environment.schedulers.estimates import Predictor
from hpcrowd.environment.schedulers.order import FCFS

if TYPE_CHECKING:
    from hpcrowd.environment.schedulers.past import Past


class Machine(Protocol):
    """The part of an engine that a pass may use, ``engine.compiled.CompiledEngine``.

    Arrays may be others at the next pass.
    """

    jobs: JobTable
    state: ClusterState
    up: int
    latency: int
    kill_every: int
    kill_phase: int
    windows: tuple[tuple[int, int], ...]
    predictor: Predictor | None

    @property
    def now(self) -> int:
        """The present second."""

    @property
    def running(self) -> Int64s:
        """Rows of the jobs that run."""

    def arrays(self) -> Cluster:
        """Return its arrays as compiled code takes them."""

    def predict(self) -> None:
        """Let the predictor hear of jobs that ended, and predict those that arrived."""

    def note_preempted(self, row: int, start: int, now: int, fate: str) -> None:
        """Note a run of a job that was stopped to make room, see ``engine.attempts``."""


class CompiledPass(ABC):
    """The compiled form of one scheduler on one engine.

    Parameters
    ----------
    scheduler
        The plain scheduler, for its options.
    engine
        The engine. If jobs already run (``engine.running``), because the policy was switched, they
        are taken over; waiting jobs are passed as arrivals to the first pass.
        The machine has ``engine.up`` processors; when that changes there is a new pass object.
        A pass starts jobs through ``hpcrowd.environment.engine.kernel.scheduling.start_job`` with
        ``engine.arrays()``, in which there is room for all that wait.
    """

    #: Whether it keeps to announced maintenance (``engine.windows``) as ``Scheduler.drains`` says;
    #: otherwise the plain scheduler runs where there is some.
    drains = False

    #: Whether a pass may look at every waiting job, so that its time grows with the queue and is
    #: not counted by the pass itself (``ALLOWANCE``).
    looks_at_all = False

    #: Rows, lower first, of jobs that the last pass of :meth:`schedule` ended.
    ended_now: list[int]

    def __init__(self, scheduler: Any, engine: Machine) -> None:
        self.scheduler = scheduler
        self.engine = engine
        self.ended_now: list[int] = []

    def inherit(self, before: Any, ended: Int64s) -> None:  # noqa: B027
        """Take over state that must not be lost, such as decaying usage, when platforms change.

        Called on a new object under the same scheduler.

        Parameters
        ----------
        before
            The pass object until now, of the same class.
        ended
            Rows of the jobs that ended since its last pass, which :meth:`schedule` does not get.
        """

    def remember(self, ended: Int64s) -> None:  # noqa: B027
        """Hear of the jobs that ended before this policy took over, see ``Scheduler.remembers``.

        Parameters
        ----------
        ended
            Rows by end, then by row.
        """

    def go_on(self, past: Past) -> None:
        """Go on from a state, after the jobs that run and wait have been taken over.

        See ``Scheduler.go_on``.
        """
        if self.scheduler.remembers:
            self.remember(past.over)

    def tell(self) -> None:  # noqa: B027
        """Bring the plain scheduler, which has just begun, up to date.

        Called for ``Scheduler.reasons``.
        """

    @property
    def refused(self) -> dict[int, str]:
        """Why jobs were rejected that asked a machine of nodes for what it refuses, by row."""
        return {}

    @property
    @abstractmethod
    def waiting(self) -> Int64s:
        """Rows of the jobs in the queue, in its order."""

    @property
    def suspended(self) -> Int64s:
        """Rows of the jobs that it suspended."""
        return np.zeros(0, np.int64)

    @abstractmethod
    def schedule(self, ended: Int64s, arrived: Int64s) -> int:
        """Do one pass; return when the next is wanted though nothing ends or arrives.

        Parameters
        ----------
        ended
            Rows of the jobs that ended since the last pass, in the order of their ends.
        arrived
            Rows of the jobs that arrived since, by submission and number; their estimates are in
            the column ESTIMATE. The array is the engine's: copy what is to be kept.

        Returns
        -------
        int
            ``hpcrowd.environment.stops.FOREVER`` for no such time.
        """

    @abstractmethod
    def advance(self, cluster: Cluster, remaining: Int64s, halt: int) -> int:
        """Let the engine's loop run, and the passes within; return why it stopped.

        Parameters
        ----------
        cluster, remaining, halt
            The arrays of the engine; unfinished jobs of each unit;
            when to stop.
        """


class PassOnNodes(CompiledPass):
    """One of a machine of nodes, which has its own rules for completions and arrivals."""

    @abstractmethod
    def complete(self, cluster: Cluster, remaining: Int64s) -> bool:
        """Complete the jobs that end now; return False if an array is full."""

    @abstractmethod
    def arrive(self, cluster: Cluster, remaining: Int64s) -> bool:
        """Process the arrivals of now; return False if an array is full."""


def compiled_pass(scheduler: Scheduler) -> type[CompiledPass] | None:
    """Return the compiled pass of a scheduler; None where it has none, as one's own has."""
    place = _place(scheduler)
    if not place:
        return None
    found: type[CompiledPass] = imported(place)
    return found


def runs_compiled(scheduler: Scheduler) -> bool:
    """Return whether the compiled engine can run a scheduler."""
    return bool(_place(scheduler))


def _place(scheduler: Scheduler) -> str:
    """Return ``module:class`` of the compiled pass that a scheduler's own class names, or empty."""
    own = type(scheduler)
    place: str = own.compiled if own.compiled_only else vars(own).get("compiled", "")
    return place


def is_built_in(scheduler: Scheduler) -> bool:
    """Return whether the engine's own loop runs a scheduler: FCFS or EASY without options."""
    return type(scheduler) in (FCFS, EASY) and str(scheduler) == scheduler.name
