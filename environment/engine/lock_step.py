"""Several clusters: their engines advance from instant to instant together.

At one instant jobs end on all clusters, then users react, then jobs arrive on all clusters, then
platforms change, then each cluster at which something happened has its scheduling pass. So a user
who is notified of an end on one cluster may submit to any other within the same second, and no
cluster is ever ahead.

If the clusters make up a grid, its jobs arrive at the broker with the arrivals of the clusters.
After the passes the broker sends jobs on, each into the queue of a cluster, which then has another
pass.

This is the order of ``docs/background/time.md`` in plain Python. A single plain engine uses it too;
a single compiled engine runs the same order in compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hpcrowd.environment.engine.base import Engine
from hpcrowd.environment.engine.units import UnitTable
from hpcrowd.environment.registry import Registry
from hpcrowd.environment.stops import FOREVER, Stop


class BrokerQueue:
    """What the lock-step asks of a broker, see ``hpcrowd.environment.grid.broker.Dispatch``.

    This one is that of no grid: nothing ever arrives at it.

    Attributes
    ----------
    now
        The present second.
    events
        Arrivals so far.
    """

    now = 0
    events = 0

    @property
    def at_once(self) -> bool:
        """Whether jobs go on before the scheduling passes too."""
        return False

    def next_time(self) -> int:
        """Return when the next job arrives, FOREVER when none is to."""
        return FOREVER

    def pass_to(self, time: int) -> None:
        """Move the clock."""
        self.now = time

    def arrive(self) -> list[int]:
        """Process the arrivals of now; return the finished rows among them that users wait for."""
        return []

    def place(self) -> list[Engine]:
        """Send one job on; return the engines that it went to, none if all must wait."""
        return []

    @property
    def holding(self) -> bool:
        """Whether it holds jobs."""
        return False

    def regroup(self) -> tuple[list[int], list[Engine]]:
        """Stop jobs of which the platform stopped components.

        Returns the finished rows among them that users wait for, and the engines that they ran on.
        """
        return [], []


def lock_step(
    engines: Sequence[Engine], units: UnitTable, queue: BrokerQueue | None = None
) -> LockStep:
    """Return what advances engines together, with a broker's queue if there is one.

    It is one of :data:`FASTER` if possible.
    """
    made = (make(engines, units, queue) for make in FASTER.installed())
    return next((one for one in made if one is not None), None) or LockStep(engines, units, queue)


class LockStep:
    """Advances engines together, as :class:`~environment.engine.base.Engine` advances alone.

    Parameters
    ----------
    engines
        The engines, in the order of the clusters, over one table of jobs.
    units
        What users wait for; the engines leave it to this to count.
    dispatch
        The broker's queue, where the clusters make up a grid.

    Attributes
    ----------
    now
        The present second, the same for all engines.
    finished
        Units that are over at this instant, after :attr:`~environment.stops.Stop.FINISHED`, by the
        number of their last job.
    """

    def __init__(
        self, engines: Sequence[Engine], units: UnitTable, dispatch: BrokerQueue | None = None
    ) -> None:
        self.engines = engines
        self.dispatch = dispatch or BrokerQueue()
        self.units = units
        self.now = 0
        self.finished: Sequence[int] = ()
        # A broker sees the platforms of all clusters, so that those change when nothing runs too.
        seen = [engine.timeline for engine in engines] if dispatch is not None else []
        self._timelines = [timeline for timeline in seen if timeline is not None]
        for timeline in self._timelines:
            timeline.expecting = self._expecting
        self._expects = False
        self._again = FOREVER  # when the broker is to look again though nothing happens
        #: Whether this instant is not over, and the engines that have something to do in it.
        self._within = False
        self._busy: list[Engine] = []

    @property
    def events(self) -> int:
        """Completions and arrivals so far."""
        return self.dispatch.events + sum([engine.events for engine in self.engines])

    def next_time(self) -> int:
        """Return when the next completion or arrival happens, FOREVER when none is left.

        Changes of platforms count while something is left to happen, and while the broker holds
        jobs and more is to come than random failures.
        """
        return self._next([engine.next_time() for engine in self.engines])

    def _next(self, times: Sequence[int]) -> int:
        time = min(self.dispatch.next_time(), self._again, *times)
        if self._timelines:
            change = min(timeline.step_at for timeline in self._timelines)
            if change < time and (time < FOREVER or (self.dispatch.holding and self._planned())):
                return change
        return time

    def look_again(self) -> None:
        """Let the broker look again now, since processors may have become free."""
        if self.dispatch.holding:
            self._again = self.now

    def _planned(self) -> bool:
        return any(timeline.planned for timeline in self._timelines)

    def _expecting(self) -> bool:
        """Return whether more than random failures was to happen at the start of this instant."""
        return self._expects

    def _look_ahead(self) -> None:
        """Bring clusters without jobs to this instant, and note whether more is to happen."""
        changing = [engine for engine in self.engines if engine.change_at <= self.now]
        if not changing:
            return
        engines = self.engines
        self._expects = (
            self._planned()
            or self.dispatch.next_time() < FOREVER
            or any(engine.arriving or len(engine.running) for engine in engines)
        )
        for engine in changing:
            if engine.change_at < self.now:
                engine.catch_up()

    def advance(self, halt: int = FOREVER, events: int = FOREVER) -> Stop:
        """Run until users must be notified, ``halt``, or about ``events`` events have passed."""
        engines, active = self.engines, self._busy
        allowed = min(self.events + events, FOREVER)
        while True:
            if not self._within:
                times = [engine.next_time() for engine in engines]
                time = self._next(times)
                if time > halt:
                    self._pass_to(max(self.now, halt))
                    return Stop.HALT
                if time == FOREVER:
                    return Stop.DONE
                if self.events >= allowed:
                    return Stop.PAUSE
                self._pass_to(time)
                self._again = FOREVER
                if self._timelines:
                    self._look_ahead()
                active[:] = [
                    engine for engine, due in zip(engines, times, strict=True) if due == time
                ]
                self._within = True
                if self._count([row for engine in active for row in engine.complete()]):
                    return Stop.FINISHED
            if halt <= self.now:
                return Stop.HALT
            if self._arrive(active) or self._change(active):
                if self.finished:
                    return Stop.FINISHED
                continue
            self._within = False
            if self.dispatch.at_once:
                while more := self.dispatch.place():
                    active += [engine for engine in more if engine not in active]
            for engine in active:
                engine.schedule()
            while more := self.dispatch.place():
                for engine in more:
                    engine.schedule()
            if self._count([row for engine in active for row in engine.ended_in_pass]):
                return Stop.FINISHED

    def _arrive(self, active: list[Engine]) -> bool:
        """Process the arrivals of now; return whether a unit finishes because of them.

        Engines that had nothing to do at this instant so far are put among the ``active``.
        """
        over = self.dispatch.arrive()
        for engine in self.engines:
            if engine.next_time() == self.now:
                over += engine.arrive()
                if engine not in active:
                    active.append(engine)
        return self._count(over)

    def _change(self, active: list[Engine]) -> bool:
        """Apply the platform changes of now; return whether there were any.

        What users do about it may arrive now too.
        """
        changing = [engine for engine in self.engines if engine.change_at == self.now]
        over: list[int] = []
        for engine in changing:
            over += engine.change()
            if engine not in active:
                active.append(engine)
        if changing:
            more, touched = self.dispatch.regroup()
            over += more
            active += [engine for engine in touched if engine not in active]
        self._count(over)
        return bool(changing)

    def _count(self, rows: list[int]) -> bool:
        """Count jobs as finished, lower numbers first; return whether a unit has finished."""
        self.finished = self.units.count_over(sorted(rows)) if rows else ()
        return bool(self.finished)

    def _pass_to(self, time: int) -> None:
        self.now = time
        for engine in self.engines:
            engine.pass_to(time)
        self.dispatch.pass_to(time)


#: Forms of the lock-step that are faster and do the same: functions of engines, units and queue
#: that return one, or None if it cannot advance these; tried in order.
FASTER: Registry[Callable[[Sequence[Engine], UnitTable, BrokerQueue | None], LockStep | None]] = (
    Registry({"compiled": "hpcrowd.environment.grid.compiled:compiled_lock_step"})
)
