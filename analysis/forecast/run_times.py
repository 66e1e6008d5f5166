"""Run times of jobs that run or wait, drawn from what such jobs did before.

A job is like those that are over in four ways, from the closest on: the same user, processors and
requested time; the same user and requested time; the same user; the same requested time, of any
user. All of them are candidates, closer ones with larger weights; where requested times differ,
the share of the request that was used is taken over. Of a job that has run for some time only
candidates count that ran longer: the weights then say by themselves how sure its user's other jobs
make us.

The weights are our choice, as in :mod:`hpcrowd.environment.schedulers.predictors.history` several
templates are used at once (Smith, Foster and Taylor, JSSPP 1998); a prediction there is a mean,
here it is the whole distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.analysis.curves import Floats
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable

if TYPE_CHECKING:
    from hpcrowd.environment.state.state import ClusterState

#: Weight of one candidate of each kind; the last one is the weight of all jobs of other users.
WEIGHTS = (1.0, 0.5, 0.2, 1.0)

#: Jobs after which the weight of an own job has fallen by the factor e, as users' work changes.
MEMORY = 60.0

#: Latest jobs of a user, and of all users, that are looked at.
OWN, COMMON = 300, 20_000

#: Candidates of other users, at most.
OTHERS = 200

#: Probability that jobs alike (same user, processors and request) get the same place in their
#: distribution, since they are often runs of the same program on like inputs.
ALIKE = 0.5

#: Jobs that have outrun all that is known, and their request, go on for a share of what they have
#: run already, uniformly up to this.
BEYOND = 1.0


@dataclass(frozen=True)
class RunTimes:
    """Distributions of the run times of jobs."""

    rows: Int64s  #: The jobs, rows in the table of the state.
    #: For each of them possible run times in ascending order, s, and the cumulative weights, up to
    #: 1.
    values: list[Floats]
    weights: list[Floats]
    group: Int64s  #: For each of them a number that jobs alike have in common.

    @classmethod
    def of(cls, state: ClusterState, rows: Int64s | None = None) -> RunTimes:
        """Learn from the jobs of a state that are over, for jobs in some rows.

        These are all that run or wait unless given.
        """
        if rows is None:
            rows = np.concatenate((state.running, state.waiting))
        jobs = state.jobs
        started = jobs.recorded_start[rows]
        elapsed = np.where(started == UNKNOWN, -1, state.now - started)
        return cls._learned(jobs, state.over, rows, elapsed)

    @classmethod
    def _learned(cls, jobs: JobTable, over: Int64s, rows: Int64s, elapsed: Int64s) -> RunTimes:
        ran = over[jobs.recorded_start[over] != UNKNOWN]
        ran = ran[np.argsort(jobs.recorded_end[ran], kind="stable")][-COMMON:]
        lasted = (jobs.recorded_end[ran] - jobs.recorded_start[ran]).astype(np.float64)
        user, processors = jobs.user[ran], jobs.processors[ran]
        asked = jobs.requested_time[ran]
        keys = np.stack((jobs.user[rows], jobs.requested_time[rows], jobs.processors[rows]))
        unique, first, group = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        # By first appearance: more jobs at the end do not change what those before them draw.
        order = np.argsort(first)
        unique, group = unique[:, order], np.argsort(order)[group]
        known = [
            _candidates(one[0], one[1], one[2], user, asked, processors, lasted)
            for one in unique.T.tolist()
        ]
        values, weights = [], []
        for job, which in enumerate(group.tolist()):
            found = _beyond(known[which], int(elapsed[job]), int(unique[1, which]))
            values.append(found[0])
            weights.append(found[1])
        return cls(rows, values, weights, group)

    def draw(self, stream: np.random.Generator) -> Int64s:
        """Return one run time for each job, s, at least 1, shape (jobs,)."""
        count = len(self.rows)
        each, together, which = stream.spawn(3)  # each has a number for every job
        own = each.random(count)
        common = together.random(int(self.group.max(initial=-1)) + 1)
        places = np.where(which.random(count) < ALIKE, common[self.group], own)
        drawn = [
            values[min(int(np.searchsorted(weights, place)), len(values) - 1)]
            for values, weights, place in zip(
                self.values, self.weights, places.tolist(), strict=True
            )
        ]
        return np.maximum(np.floor(np.array(drawn, np.float64) + 0.5).astype(np.int64), 1)


def _candidates(
    who: int, request: int, width: int, user: Int64s, asked: Int64s, processors: Int64s,
    lasted: Floats,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Return the run times of jobs that a job is like, s, and their weights."""
    mine = np.flatnonzero(user == who)[-OWN:]
    alike = asked[mine] == request
    weight = np.where(alike, np.where(processors[mine] == width, *WEIGHTS[:2]), WEIGHTS[2])
    weight *= np.exp(-np.arange(len(mine))[::-1] / MEMORY)
    others = np.flatnonzero(asked == request)[-OTHERS:]
    if not len(others):
        others = np.arange(len(asked))[-OTHERS:]
    rows = np.concatenate((mine, others))
    times = lasted[rows]
    if request > 0:
        other = (asked[rows] > 0) & (asked[rows] != request)
        times = np.where(other, times * request / np.where(other, asked[rows], 1), times)
    common = np.full(len(others), WEIGHTS[3] / max(len(others), 1))
    return times, np.concatenate((weight, common))


def _beyond(known: tuple[Floats, Floats], elapsed: int, request: int) -> tuple[Floats, Floats]:
    """Return the run times that are longer than what a job has run already, with sums of weights.

    If none is, they are spread evenly up to the request, or beyond it.
    """
    times, weights = known
    longer = times >= elapsed + 0.5  # what rounds to no more has passed
    if longer.any():
        times, weights = times[longer], weights[longer]
    else:
        most = request if request > elapsed else elapsed * (1 + BEYOND) + 60
        times = np.linspace(max(elapsed, 0) + 1, most, 20)
        weights = np.ones(len(times))
    order = np.argsort(times, kind="stable")
    sums = np.cumsum(weights[order])
    return times[order], sums / sums[-1]
