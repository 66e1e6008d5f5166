"""What users may see of a cluster before they submit: its queue, and when a job would start."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hpcrowd.environment.engine.base import Engine
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.schedulers.estimates import Estimates
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.schedulers.outlook import Outlook


class PublicState(NamedTuple):
    """A cluster, or a grid, at one second: after its completions and before its arrivals."""

    now: int  #: s since the origin
    up: int  #: processors that are neither down nor in maintenance
    free: int  #: processors without a job; negative while more are held than are up
    waiting: int  #: jobs in the queue
    asked: int  #: processors that they request
    engines: tuple[Engine, ...]  #: that one or those whose plans are asked

    @property
    def has_nodes(self) -> bool:
        """Whether it is a machine of nodes."""
        scheduler = self.engines[0].scheduler
        return len(self.engines) == 1 and scheduler is not None and scheduler.nodes

    @property
    def machine(self) -> Outlook:
        """What there is to see of a machine of nodes: partitions, standing, starts.

        Raises
        ------
        QuantityError
            If it is none.
        """
        scheduler, engine = self.engines[0].scheduler, self.engines[0]
        if not self.has_nodes or scheduler is None:
            raise QuantityError(
                "partitions: a pool of equal processors has none; give --machine FILE, such as a "
                "slurm.conf"
            )
        return scheduler.outlook(self.now, engine.waiting, engine.running)

    def expected_start_of(self, row: int, partition: str = "") -> int:
        """Return when a job of the table would start, s; ``FOREVER`` if no start is foretold.

        Parameters
        ----------
        row
            The job.
        partition
            On a machine of nodes, where it would be submitted instead.
        """
        if self.has_nodes or partition:
            return self.machine.forecast(row, partition).start
        jobs = self.engines[0].jobs
        return self.expected_start(int(jobs.processors[row]), int(jobs.requested_time[row]))

    def expected_start(self, processors: int, requested_time: int) -> int:
        """Return when a job would start, s; ``FOREVER`` if too large for what is up.

        On a machine of nodes, see
        :meth:`~hpcrowd.environment.schedulers.outlook.Outlook.forecast_of`.

        That is its place in a conservative plan: behind all that wait, each as early as it can
        without delaying one before it, with the run times that the scheduler expects. Of a grid it
        is the earliest place on any of its clusters. It costs time with the square of the queue.

        Raises
        ------
        QuantityError
            Under the recorded schedule, which nobody plans.
        """
        if self.has_nodes:
            return self.machine.forecast_of(processors, requested_time).start
        return min(_planned(engine, processors, requested_time) for engine in self.engines)


def public_state(engines: tuple[Engine, ...], held: int = 0, asked: int = 0) -> PublicState:
    """Return the state of clusters together, whose broker holds some jobs more."""
    return PublicState(
        engines[0].now,
        sum(0 if one.closed else one.up for one in engines),
        sum(one.free for one in engines),
        held + sum(one.queue_length for one in engines),
        asked + sum(one.asked for one in engines),
        engines,
    )


def _planned(engine: Engine, processors: int, requested_time: int) -> int:
    from hpcrowd.environment.engine.kernel.cluster import Jobs
    from hpcrowd.environment.engine.kernel.outlook import expected_start

    if engine.scheduler is None:
        raise QuantityError(
            "expected start: under the recorded schedule jobs start as recorded; choose a scheduler"
        )
    if processors > engine.up:
        return FOREVER
    length = requested_time
    if isinstance(engine.estimates, Estimates) and engine.estimates.kind == "factor":
        length = engine.estimates.of(requested_time, requested_time)
    running, waiting = engine.running, engine.waiting
    windows = np.array(engine.windows, np.int64).reshape(-1, 2)
    room = 2 + 2 * (len(running) + len(waiting) + len(windows))
    start = expected_start(
        Jobs(engine.jobs.matrix), engine.now, engine.up, running, waiting, windows,
        np.zeros((2, room), np.int64), processors, length,
    )  # fmt: skip
    return int(start)
