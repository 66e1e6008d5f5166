"""The run loop: merges the events of the clusters with Mesa's own events.

At one instant: completions, users' reactions, events (a user's alarm clock), arrivals, changes of
the platform, then one scheduling pass per cluster. Ties go by job number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from hpcrowd.environment.clock import HOUR, Clock
from hpcrowd.environment.cluster import HOME, Cluster, ClusterSpec, Place, to_take_back
from hpcrowd.environment.engine.units import UnitTable
from hpcrowd.environment.errors import HpcrowdError, QuantityError, SimulationError, not_one_of
from hpcrowd.environment.frame import Frame, mesa
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable, State
from hpcrowd.environment.parts.part import Part, Parts
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.registry import raised_by, said
from hpcrowd.environment.schedulers.base import Scheduler
from hpcrowd.environment.schedulers.estimates import Predictor
from hpcrowd.environment.stops import FOREVER, Stop

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from hpcrowd.environment.engine.attempts import Attempt
    from hpcrowd.environment.engine.base import Engine
    from hpcrowd.environment.engine.lock_step import LockStep

#: Events between two checks of the keyboard and the progress bar, at first and at most; between
#: them it is adapted so that about :data:`SLICE_S` pass.
FIRST_SLICE = 2**10
SLICE = 2**16

#: Time between two checks, s.
SLICE_S = 0.05

#: Reactions between two updates of the progress bar.
REACTIONS = 2**14

#: s until users notice that a job was stopped and submit it again (unconfirmed).
RESUBMIT_AFTER = 600

#: Rounds of reactions in one second before that counts as an endless loop.
LARGEST_STANDSTILL = 1_000_000


class Owner(Protocol):
    """Receives the notification that a unit has finished."""

    def on_finished(self, unit: int, now: int) -> None:
        """React to the completion of the last job of ``unit``."""


@contextmanager
def own_errors(model: Simulation) -> Iterator[None]:
    """Say in one line which of your own functions or classes fails, and when.

    Raises
    ------
    SimulationError
        For an exception that comes from your own code; others stay as they are.
    """
    try:
        yield
    except HpcrowdError:
        raise
    except Exception as error:
        name = raised_by(error)
        if not name:
            raise
        raise SimulationError(f"{name} at {model.time} s: {said(error)}") from error


class Simulation(Frame):
    """Users and one or more clusters.

    Parameters
    ----------
    jobs
        The table of jobs; users may add to it.
    processors
        The size of the only cluster, or its description; or several clusters by name, of which the
        first is where users submit to unless they say another. If speeds differ, run times in the
        table change; keep a ``jobs.copy()`` to run the same jobs again.
    scheduler
        That of the only cluster, if only its size is given.
    overrun, plain
        How all clusters run; see :class:`~hpcrowd.environment.cluster.Cluster`.
    clock
        Local time; by default the run begins on a Monday, 00:00.
    seed
        Seed of everything random, see :class:`~hpcrowd.environment.streams.Streams`; None draws
        one.
    parts
        What else acts in the run; see :mod:`hpcrowd.environment.parts.part`.

    Attributes
    ----------
    cluster
        The first cluster, ``home`` unless it has another name.
    clusters
        All clusters by name.
    places
        Where users may submit to, by name: the clusters, and what parts add.
    resubmit_after
        s after which a user submits a job again that was stopped and is not queued again;
        :data:`RESUBMIT_AFTER` unless a part sets it.
    units
        The units that users wait for.
    parts
        What else acts in the run.
    streams
        Named random streams.
    time
        The present second.
    steps
        Simulated hours so far, begun ones included.
    running
        False when nothing is left to happen.

    Raises
    ------
    QuantityError
        If a cluster is not valid, or two share a predictor.
    """

    def __init__(
        self,
        jobs: JobTable,
        processors: int | ClusterSpec | Mapping[str, ClusterSpec],
        scheduler: str | Scheduler = "easy",
        *,
        overrun: Literal["keep", "kill"] = "keep",
        plain: bool = False,
        clock: Clock | None = None,
        seed: int | None = 0,
        parts: Sequence[Part] = (),
    ) -> None:
        super().__init__(seed)
        self.jobs = jobs
        self.clock = clock or Clock()
        self.resubmit_after = RESUBMIT_AFTER
        self.parts = Parts()
        for part in parts:
            self.parts.add(part)
        specs = _specs(processors, scheduler)
        together = len(specs) > 1 or bool(self.parts.at("broker"))
        units = UnitTable(jobs) if together else None
        self.clusters = {
            name: Cluster(self, jobs, spec, overrun, plain, name, number, units)
            for number, (name, spec) in enumerate(specs.items())
        }
        self.places: dict[str, Place] = {**self.clusters}
        self.cluster = next(iter(self.clusters.values()))
        self.units = self.cluster.engine.units
        self._owners: list[Owner] = []
        for part in parts:
            part.attach(self)
        self._engine: Engine | LockStep = self.cluster.engine
        if units is not None:
            from hpcrowd.environment.engine.lock_step import lock_step

            queue = next((part.broker(self) for part in self.parts.at("broker")), None)
            engines = [cluster.engine for cluster in self.clusters.values()]
            self._engine = lock_step(engines, units, queue)
        self._hourly: Any = None  # the alarm for agents with a step of their own
        self._ended = False

    def __repr__(self) -> str:
        users = sum(not isinstance(agent, Cluster) for agent in self.agents)
        jobs, found = plural(len(self.jobs), "job"), plural(users, "user")
        return f"<Simulation at {self.time:,} s: {jobs}, {found}, on {', '.join(self.clusters)}>"

    def place(self, name: str | None) -> Place:
        """Return the place called ``name``, such as a cluster; None for the first cluster.

        Raises
        ------
        QuantityError
            If there is none of that name.
        """
        if name is None:
            return self.cluster
        if name not in self.places:
            raise QuantityError(f"cluster {name!r}: {not_one_of(name, list(self.places))}")
        return self.places[name]

    def own_units(self, first: Int64s, rows: Int64s, owners: Sequence[Owner]) -> None:
        """Define all units at once, with their owners; see ``UnitTable.define``."""
        self.units.define(first, rows)
        self._owners = list(owners)
        for part in self.parts.at("on_unit"):
            part.on_unit(None, rows)

    def attach(self, part: Part) -> None:
        """Let a part act in the run from now on; before users join."""
        self.parts.add(part)
        part.attach(self)

    def add_unit(self, owner: Owner, rows: Int64s) -> int:
        """Define one more unit of ``owner`` and return its number; submit its jobs separately."""
        unit = self.units.add(rows)
        self._owners.append(owner)
        for part in self.parts.at("on_unit"):
            part.on_unit(owner, rows)
        return unit

    def submit(self, owner: Owner, rows: Int64s, at: ArrayLike, cluster: str | None = None) -> int:
        """Submit jobs as one new unit of ``owner`` and return the unit's number.

        Parameters
        ----------
        owner
            Gets notified when the unit has finished.
        rows, at
            The jobs, and their arrival times, s (one, or one per job).
        cluster
            The name of a cluster, or ``grid``; None for the first cluster.

        Raises
        ------
        QuantityError
            If there is no cluster of that name.
        """
        place = self.place(cluster)
        unit = self.add_unit(owner, rows)
        place.submit(rows, at)
        return unit

    def cancel(self, rows: ArrayLike) -> None:
        """Take jobs back that wait or run anywhere, or were submitted for later.

        See :meth:`~hpcrowd.environment.cluster.Cluster.cancel`. Components of one job are taken
        back together.

        Raises
        ------
        SimulationError
            If a job is over, or was never submitted.
        """
        rows = np.atleast_1d(np.asarray(rows, np.int64))
        for part in self.parts.at("whole"):
            rows = part.whole(rows)
        where = self.jobs.cluster[rows]
        for place in self.places.values():
            place.cancel(rows[where == place.number])
        to_take_back(self.jobs, rows[where == UNKNOWN], UNKNOWN, "")

    def put_off(self, rows: Int64s, at: int, change: Callable[[], None] | None = None) -> None:
        """Take waiting jobs out of their queues, and submit them there again at second ``at``.

        Their users go on waiting for them. ``change`` is called in between, to change what they ask
        for.
        """
        jobs, where = self.jobs, self.jobs.cluster[rows]
        for place in self.places.values():
            mine = rows[where == place.number]
            if len(mine):
                place.take_out(mine)
                jobs.column(Column.STATE)[mine] = State.UNFINISHED
                jobs.end[mine] = jobs.enqueued[mine] = jobs.estimate[mine] = UNKNOWN
        if change is not None:
            change()
        for place in self.places.values():
            mine = rows[where == place.number]
            if len(mine):
                place.submit_again(mine, at)

    def withdraw(self, rows: Int64s) -> None:
        """Let jobs not arrive that were submitted for later, as if they had not been submitted."""
        where = self.jobs.cluster[rows]
        for place in self.places.values():
            place.withdraw(rows[where == place.number])
        self.jobs.submit[rows] = self.jobs.cluster[rows] = UNKNOWN

    def end(self) -> dict[str, Any]:
        """End the run, and return what its parts account for, by name."""
        found: dict[str, Any] = {}
        for part in self.parts.at("end"):
            found |= part.end()
        return found

    def leave_out(self, rows: Int64s) -> None:
        """Note that users decided not to submit these jobs, which are renounced."""
        self.jobs.column(Column.STATE)[rows] = State.RENOUNCED
        for part in self.parts.at("on_left_out"):
            part.on_left_out(rows)

    def on_taken_back(self, rows: Int64s) -> None:
        """Notify users of units that are over because jobs were taken back, after this."""
        self._engine.look_again()
        finished = self.units.count_over(self.units.awaited(rows.tolist()))
        for unit in finished:
            self.call_at(self.time, self.tell, unit)

    def count_over(self, unit: int) -> None:
        """Count one more job of a unit as over, and notify its owner if that was the last."""
        self.units.remaining[unit] -= 1
        if self.units.remaining[unit] == 0:
            self.tell(unit)

    def tell(self, unit: int) -> None:
        """Notify the owner of a unit that it is over."""
        self._owners[unit].on_finished(unit, self.time)

    def resubmit(self, rows: Int64s, at: int) -> None:
        """Submit stopped jobs again, each to the place that it is at."""
        for place in self.places.values():
            mine = rows[self.jobs.cluster[rows] == place.number]
            if len(mine):
                place.submit_again(mine, at)

    def on_lost(self, rows: Int64s, now: int) -> None:
        """Notify users that their jobs were stopped; resubmit jobs that no user waits for.

        If an owner has a method ``on_lost(rows, now)``, it is called.
        """
        self.time = now
        mine: dict[int, list[int]] = {}
        for row in rows.tolist():
            unit = self.unit_of(row)
            owner = None if unit == UNKNOWN else self._owners[unit]
            hears = id(owner) if hasattr(owner, "on_lost") else UNKNOWN
            mine.setdefault(hears, []).append(row)
        for hears, lost in mine.items():
            if hears == UNKNOWN:
                self.resubmit(np.array(lost), now + self.resubmit_after)
            else:
                who: Any = self._owners[self.unit_of(lost[0])]
                who.on_lost(np.array(lost), now)

    def unit_of(self, row: int) -> int:
        """Return the unit of a user that a job belongs to; -1 for none."""
        unit = int(self.jobs.unit[row])
        for part in self.parts.at("unit_of"):
            unit = part.unit_of(row, unit)
        return unit

    @property
    def events(self) -> int:
        """Completions and arrivals so far, on all clusters."""
        return self._engine.events

    @property
    def attempts(self) -> list[Attempt]:
        """The stopped runs of jobs on all clusters, by time, then by job."""
        found = [one for cluster in self.clusters.values() for one in cluster.attempts]
        return sorted(found, key=lambda one: (one.end, one.row, one.start))

    @property
    def next_time(self) -> int:
        """Time of the next known event, s; FOREVER if there is none."""
        return min(self._engine.next_time(), self.next_event_time())

    @property
    def over(self) -> bool:
        """Whether nothing is left to happen.

        While jobs wait, that is only known once :meth:`run` has returned without ``until``.
        """
        if self.next_time != FOREVER:
            return False
        # When it halted in the second of the last completion, a pass is still to come.
        waits = any(len(one.waiting) for one in self.clusters.values())
        keeps = any(part.keeps_jobs() for part in self.parts.at("keeps_jobs"))
        return self._ended or not (waits or keeps)

    def run(
        self,
        until: int | None = None,
        progress: Callable[[Simulation], Any] | None = None,
    ) -> Simulation:
        """Run to ``until``, or until nothing is left to happen, and return the simulation.

        Parameters
        ----------
        until
            Second to stop at: its completions have happened, its arrivals have not.
        progress
            Called from time to time with the simulation.

        Raises
        ------
        SchedulerError
            If a scheduler makes an impossible decision, or leaves jobs waiting for ever.
        """
        with own_errors(self):
            return self._run(FOREVER if until is None else until, progress)

    def _run(self, end: int, progress: Callable[[Simulation], Any] | None) -> Simulation:
        engine = self._engine
        owners = self._owners
        standstill, last = 0, -1
        rounds = 0
        self._ended = False
        self._expect_hour()
        events, began = min(FIRST_SLICE, SLICE), perf_counter()
        while True:
            due = self.next_event_time()
            stop = engine.advance(min(due, end), events)
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
                if any(part.go_on() for part in self.parts.at("go_on")):
                    continue
                for place in self.places.values():
                    place.check_none_lost()
                self._ended = True
                break
            else:
                if progress is not None:
                    progress(self)
                until_now = perf_counter()
                events = _slice(events, until_now - began)
                began = until_now
            rounds += 1
            if progress is not None and rounds % REACTIONS == 0:
                progress(self)
            if now > last:
                standstill, last = 0, now
            else:
                standstill += 1
                if standstill > LARGEST_STANDSTILL:
                    raise SimulationError(
                        f"endless loop at {now} s: users submit jobs without run time and react at "
                        "once; give them a think time or a run time"
                    )
        self.running = not self.over
        self.steps = -(-self.time // HOUR)
        return self

    def step(self) -> None:
        """Run one simulated hour."""
        self.run(until=self.time + HOUR)

    def _expect_hour(self) -> None:
        """Set the alarm for the next full hour, if agents have a ``step`` and more is to happen."""
        stepping = self._hourly is None and any(map(_steps, self.agents_by_type))
        if stepping and self.next_time != FOREVER:
            self._hourly = self.call_at((self.time // HOUR + 1) * HOUR, self._hour)

    def _hour(self) -> None:
        """Call the ``step`` of agents that define one, up to the hour in which all is over."""
        self._hourly = None
        for agent in list(self.agents):
            if _steps(type(agent)):
                agent.step()
        self._expect_hour()


def _steps(kind: type[mesa.Agent]) -> bool:
    """Return whether agents of a class define what they do at each step."""
    return kind.step is not mesa.Agent.step


def _slice(events: int, took: float) -> int:
    """Return how many events to allow next, if so many took ``took`` seconds or less."""
    if took < SLICE_S:
        return min(2 * events, SLICE)
    return max(1, int(events * max(SLICE_S / took, 1 / 8)))


def _specs(
    processors: int | ClusterSpec | Mapping[str, ClusterSpec], scheduler: str | Scheduler
) -> dict[str, ClusterSpec]:
    """Return the descriptions of the clusters by name.

    Raises
    ------
    QuantityError
        If there is none, or two share a predictor: each learns from its own jobs.
    """
    if isinstance(processors, Mapping):
        specs = dict(processors)
    elif isinstance(processors, ClusterSpec):
        specs = {HOME: processors}
    else:
        specs = {HOME: ClusterSpec(processors, scheduler)}
    if not specs:
        raise QuantityError("simulation without clusters: give it at least one")
    found = [one.estimates for one in specs.values() if isinstance(one.estimates, Predictor)]
    for place, predictor in enumerate(found):
        if any(predictor is other for other in found[:place]):
            raise QuantityError(
                f"estimates {predictor.name}: one predictor for two clusters; use one per cluster, "
                "as each learns from the jobs of its cluster"
            )
    return specs
