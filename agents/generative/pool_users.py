"""Users who draw each batch from a pool of their group, and wait for it before they go on.

A pool is what a workload model made for one group of users: batches of jobs with run times and
processors. A user takes one at random, submits it, waits until all of it is over, pauses, and takes
the next one. So the number of jobs comes out of the run: a slow machine gets fewer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import override

import numpy as np

from hpcrowd.agents.behaviours.decisions import Why
from hpcrowd.agents.behaviours.user import Behaviour
from hpcrowd.agents.generative.generated import GeneratedUser
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.quantities import time_at_speed
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.stops import FOREVER


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
    """

    first: Int64s
    run_time: Int64s
    requested_time: Int64s
    processors: Int64s

    def __post_init__(self) -> None:
        if len(self) < 1:
            raise QuantityError("pool: no batch in it; a user draws from at least one")

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
        Of the user; the group says which pool it draws from.
    wakes
        s; when it submits its first batch.
    pauses
        s; from the end of a batch to the next one, drawn at random; at least one.
    """

    number: int
    group: int
    wakes: int
    pauses: Int64s


class PoolUser(GeneratedUser):
    """A user who draws from a pool.

    Parameters
    ----------
    model, behaviour, horizon, hears
        See :class:`~hpcrowd.agents.generative.generated.GeneratedUser`.
    member
        Who it is.
    pool
        What it draws from.
    """

    unasked = Why.FIRST

    def __init__(
        self,
        model: Simulation,
        behaviour: Behaviour[GeneratedUser],
        member: PoolMember,
        pool: BatchPool,
        *,
        horizon: int = FOREVER,
        hears: bool = True,
    ) -> None:
        super().__init__(
            model, member.number, behaviour, group=member.group, horizon=horizon, hears=hears
        )
        self.member = member
        self.pool = pool

    def wake(self, after: int | None = None) -> int:
        """Submit a batch now and return its unit; ``after`` is the one it follows."""
        place = int(self.stream.integers(len(self.pool)))
        jobs = slice(*self.pool.first[place : place + 2].tolist())
        return self.submit(
            self.pool.run_time[jobs],
            processors=self.pool.processors[jobs],
            requested_time=self.pool.requested_time[jobs],
            after=after,
        )


class DrawFromPool(Behaviour[GeneratedUser]):
    """Submit a batch, wait for it, pause, go on; it remembers nothing and may be shared."""

    @override
    def begin(self, user: GeneratedUser) -> None:
        assert isinstance(user, PoolUser)
        user.call_at(user.member.wakes, self._wake)

    @override
    def finished(self, user: GeneratedUser, unit: int, now: int) -> None:
        assert isinstance(user, PoolUser)
        pauses = user.member.pauses
        pause = int(pauses[user.stream.integers(len(pauses))])
        user.call_at(now + user.paused(pause), self._wake, unit)

    @staticmethod
    def _wake(user: GeneratedUser, after: int | None = None) -> None:
        assert isinstance(user, PoolUser)
        user.wake(after)


def add_pool_users(
    model: Simulation,
    members: Sequence[PoolMember],
    pools: Mapping[int, BatchPool],
    *,
    horizon: int = FOREVER,
    hears: bool = True,
) -> list[PoolUser]:
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
        s; from then on nobody submits.
    hears
        False makes them oblivious: they act as if each job had started at once.

    Raises
    ------
    QuantityError
        When a user's group has no pool, or a user has no pause.
    """
    behaviour = DrawFromPool()
    users = []
    for member in members:
        if member.group not in pools:
            known = ", ".join(map(str, sorted(pools)))
            raise QuantityError(
                f"user {member.number}, group {member.group}: no pool of that group; pools are of "
                f"{known}"
            )
        if not len(member.pauses) or np.min(member.pauses) < 0:
            raise QuantityError(f"user {member.number}: needs pauses, each of 0 s or more")
        user = PoolUser(model, behaviour, member, pools[member.group], horizon=horizon, hears=hears)
        behaviour.begin(user)
        users.append(user)
    return users
