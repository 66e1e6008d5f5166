"""Users who draw each batch from a pool of their group, and wait for it before the next one.

A workload model makes a pool for each group of users: batches of jobs with run times and
processors. A user draws one at random, submits it, waits until all of it has finished, pauses, and
draws the next one. So the number of jobs is an outcome of the run: a slow machine gets fewer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, override

import numpy as np

from hpcrowd.agents.behaviours.decisions import Why
from hpcrowd.agents.behaviours.user import Behaviour
from hpcrowd.agents.generative.generated import GeneratedUser
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.quantities import time_at_speed
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.requests import Requests


@dataclass(frozen=True)
class BatchPool:
    """Batches to draw from; each consists of the jobs from ``first[k]`` to ``first[k + 1]``.

    Attributes
    ----------
    first
        Where each batch begins, and the end, shape (batches + 1,).
    run_time, requested_time
        s, shape (jobs,).
    processors
        Shape (jobs,).
    requests
        What the jobs ask of a machine of nodes; None if that is not known.
    """

    first: Int64s
    run_time: Int64s
    requested_time: Int64s
    processors: Int64s
    requests: Requests | None = None

    def __post_init__(self) -> None:
        if len(self) < 1:
            raise QuantityError("pool: empty; it needs at least one batch")

    def __len__(self) -> int:
        return len(self.first) - 1

    def at_speed(self, speed: float) -> BatchPool:
        """Return the same batches on nodes ``speed`` times as fast; requested times stay."""
        return replace(self, run_time=time_at_speed(self.run_time, speed))


@dataclass(frozen=True)
class PoolMember:
    """One user of a generated population.

    Attributes
    ----------
    number, group
        Numbers of the user and of the group, whose pool it draws from.
    wakes
        s; when it submits its first batch.
    pauses
        s; from the end of a batch to the next one, drawn at random; at least one.
    submits
        s; when its batches come in the workload that it is made from, ascending, the first at
        ``wakes``; None if there is none.
    """

    number: int
    group: int
    wakes: int
    pauses: Int64s
    submits: Int64s | None = None


class DrawFromPool(Behaviour[GeneratedUser]):
    """Submit a batch, wait for it, pause, repeat; it keeps no state and may be shared.

    Parameters
    ----------
    members
        The users.
    pools
        The pool of each group.
    """

    def __init__(self, members: Sequence[PoolMember], pools: Mapping[int, BatchPool]) -> None:
        self.members = {member.number: member for member in members}
        self.pools = pools

    @override
    def begin(self, user: GeneratedUser) -> None:
        user.unasked = Why.FIRST
        user.call_at(self.members[user.number].wakes, self.wake)

    @override
    def finished(self, user: GeneratedUser, unit: int, now: int) -> None:
        pauses = self.members[user.number].pauses
        pause = int(pauses[user.stream.integers(len(pauses))])
        user.call_at(now + user.paused(pause), self.wake, unit)

    def wake(self, user: GeneratedUser, after: int | None = None) -> None:
        """Submit a batch now; ``after`` is the unit that it follows."""
        pool = self.pools[self.members[user.number].group]
        self.submit_batch(user, pool, int(user.stream.integers(len(pool))), after)

    @staticmethod
    def submit_batch(
        user: GeneratedUser, pool: BatchPool, place: int, after: int | None = None
    ) -> int:
        """Submit the batch at a place in a pool now, and return the number of the unit."""
        begin, end = pool.first[place : place + 2].tolist()
        jobs, asked = slice(begin, end), pool.requests
        return user.submit(
            pool.run_time[jobs],
            processors=pool.processors[jobs],
            requested_time=pool.requested_time[jobs],
            after=after,
            asked=None if asked is None else asked.take(np.arange(begin, end)),
        )


def add_pool_users(
    model: Simulation,
    members: Sequence[PoolMember],
    pools: Mapping[int, BatchPool],
    *,
    horizon: int = FOREVER,
    hears: bool = True,
    behaviour: DrawFromPool | None = None,
) -> list[GeneratedUser]:
    """Add a generated population to a simulation, before it runs, and return its users.

    Parameters
    ----------
    model
        The simulation.
    members
        The users.
    pools
        By group.
    horizon
        s; no submissions from then on.
    hears
        False makes them oblivious: they act as if each job had started at once.
    behaviour
        Their behaviour; :class:`DrawFromPool` unless given.

    Raises
    ------
    QuantityError
        If a user's group has no pool, or a user has no pause.
    """
    behaviour = behaviour or DrawFromPool(members, pools)
    users = []
    for member in members:
        if member.group not in pools:
            known = ", ".join(map(str, sorted(pools)))
            raise QuantityError(
                f"user {member.number}, group {member.group}: no pool for this group, only for "
                f"{known}"
            )
        if not len(member.pauses) or np.min(member.pauses) < 0:
            raise QuantityError(f"user {member.number}: needs pauses, each of 0 s or more")
        user = GeneratedUser(
            model, member.number, behaviour, group=member.group, horizon=horizon, hears=hears
        )
        behaviour.begin(user)
        users.append(user)
    return users
