"""A population of users from a model: who there is, what they submit, how long they pause."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hpcrowd.agents.generative.pool_users import BatchPool, PoolMember
from hpcrowd.analysis.models.generation import Generated
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.quantities import round_half_up


@dataclass(frozen=True)
class Population:
    """Users and what they draw from.

    Attributes
    ----------
    members
        The users.
    pools
        By group: the batches that its users submit.
    """

    members: tuple[PoolMember, ...]
    pools: dict[int, BatchPool]


def population(made: Generated) -> Population:
    """Return the users of a generated workload, as agents can be made of them.

    Each user of the workload becomes a member of the same group. It submits its first batch when
    the workload has it, and draws the others from the batches of all users of its group. Its pauses
    are those between its own batches in the workload, from the end of one, had it not waited, to
    the next submission; 0 where they overlap. After its last batch it pauses until its first one
    comes again, as if the workload wrapped around. So on a machine without waits it submits about
    as often as in the workload, and less often where it has to wait.

    Raises
    ------
    QuantityError
        When jobs of the workload have no user.
    """
    jobs = made.drawn
    if not len(jobs) or (jobs.user < 1).any():
        raise QuantityError(f"model {made.model.name}: its jobs have no users to make agents of")
    # Jobs of a bag stand together: bags may interleave in the workload.
    order = np.lexsort((np.arange(len(jobs)), jobs.bag))
    new = np.ones(len(order), bool)
    new[1:] = np.diff(jobs.bag[order]) != 0
    first = np.append(np.flatnonzero(new), len(order))
    run = _whole(jobs.run_time)[order]
    submit = _whole(jobs.submit)[order]
    asked = np.where(jobs.requested_time < 0, jobs.run_time, jobs.requested_time)
    requested = np.maximum(_whole(asked)[order], 1)
    processors = jobs.processors[order]
    start = submit[first[:-1]]
    end = np.maximum.reduceat(submit + run, first[:-1])
    user, group = jobs.user[order][first[:-1]], jobs.group[order][first[:-1]]

    pools = {}
    for number in np.unique(group).tolist():
        bags = np.flatnonzero(group == number)
        sizes = np.diff(first)[bags]
        rows = np.repeat(first[bags] - np.append(0, np.cumsum(sizes)[:-1]), sizes)
        rows = rows + np.arange(int(sizes.sum()))
        pools[number] = BatchPool(
            np.append(0, np.cumsum(sizes)).astype(np.int64),
            run[rows],
            requested[rows],
            processors[rows],
        )
    by_user = np.lexsort((start, user))
    edges = np.append(np.flatnonzero(np.diff(user[by_user], prepend=-1)), len(by_user))
    length = int(submit.max() - submit.min()) if len(submit) else 0
    members = []
    for one, other in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        mine = by_user[one:other]
        # The workload wraps around: after its last batch a user pauses until its first comes again.
        again = np.append(start[mine][1:], start[mine[0]] + length)
        pauses = np.maximum(again - end[mine], 0)
        members.append(
            PoolMember(
                number=int(user[mine[0]]),
                group=int(group[mine[0]]),
                wakes=int(start[mine[0]]),
                pauses=pauses,
            )
        )
    return Population(tuple(members), pools)


def _whole(times: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Int64s:
    return np.asarray(round_half_up(times))
