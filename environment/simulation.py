"""The run loop: it merges what happens in the cluster with Mesa's own events.

At one instant: completions, users' reactions, events (a user's alarm clock), arrivals, then one
scheduling pass. Ties go by job number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from environment.clock import HOUR, Clock
from environment.cluster import Cluster
from environment.errors import SimulationError
from environment.frame import Frame
from environment.jobs import Int64s, JobTable
from environment.schedulers import Scheduler
from environment.stops import FOREVER, Stop
from environment.streams import Streams

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

#: Events between two looks at the keyboard and the progress bar: a hundredth of a second compiled,
#: a second in plain Python.
SLICE = 50_000

#: Reactions between two looks at the progress bar.
REACTIONS = 2**14

#: Times that the clock may stand still, at reactions in one second, before that is an error.
LARGEST_STANDSTILL = 1_000_000


class Owner(Protocol):
    """Who hears that a unit is over."""

    def on_finished(self, unit: int, now: int) -> None:
        """React to the completion of the last job of ``unit``."""


class Simulation(Frame):
    """Users and a cluster.

    Parameters
    ----------
    jobs
        The table of jobs; users may add to it.
    processors, scheduler, overrun, plain
        See :class:`~environment.cluster.Cluster`.
    clock
        What local time it is; the default begins on a Monday, 00:00.
    seed
        Seed of everything random, see :class:`~environment.streams.Streams`.

    Attributes
    ----------
    cluster
        The cluster.
    streams
        Named random streams.
    time
        The present second.
    """

    def __init__(
        self,
        jobs: JobTable,
        processors: int,
        scheduler: str | Scheduler = "easy",
        *,
        overrun: Literal["keep", "kill"] = "keep",
        plain: bool = False,
        clock: Clock | None = None,
        seed: int = 0,
    ) -> None:
        streams = Streams(seed)  # first, since it refuses a wrong seed in plain words
        super().__init__(seed)
        self.jobs = jobs
        self.clock = clock or Clock()
        self.streams = streams
        self.cluster = Cluster(self, jobs, processors, scheduler, overrun=overrun, plain=plain)
        self._owners: list[Owner] = []

    def own_units(self, first: Int64s, rows: Int64s, owners: Sequence[Owner]) -> None:
        """Define all units at once and who waits for each; see ``Engine.set_units``."""
        self.cluster.engine.set_units(first, rows)
        self._owners = list(owners)

    def submit(self, owner: Owner, rows: Int64s, at: ArrayLike) -> int:
        """Submit jobs as one new unit of ``owner`` and return the unit's number."""
        unit = self.cluster.engine.add_unit(rows)
        self._owners.append(owner)
        self.cluster.submit(rows, at)
        return unit

    def run(
        self,
        until: int | None = None,
        progress: Callable[[Simulation], Any] | None = None,
    ) -> Simulation:
        """Run to ``until``, or until nothing is left to happen, and return the simulation.

        Parameters
        ----------
        until
            Second to stop at: completions of that second have happened, arrivals have not.
        progress
            Called now and then with the simulation.
        """
        engine = self.cluster.engine
        end = FOREVER if until is None else until
        owners = self._owners
        standstill, last = 0, -1
        rounds = 0
        while True:
            due = self.next_event_time()
            stop = engine.advance(min(due, end), SLICE)
            self.time = now = engine.now
            if stop == Stop.FINISHED:
                for unit in engine.finished:
                    owners[unit].on_finished(unit, now)
            elif stop == Stop.HALT:
                if due <= now:
                    self.run_events(now)
                else:
                    break
            elif stop == Stop.DONE:
                break
            elif progress is not None:
                progress(self)
            rounds += 1
            if progress is not None and rounds % REACTIONS == 0:
                progress(self)
            if now > last:
                standstill, last = 0, now
            else:
                standstill += 1
                if standstill > LARGEST_STANDSTILL:
                    raise SimulationError(
                        f"the clock stands at {now} s: users submit jobs without run time and "
                        "react at once, for ever; give them a think time or a run time"
                    )
        return self

    def step(self) -> None:
        """Run one simulated hour."""
        self.run(until=self.time + HOUR)
        self.steps += 1
