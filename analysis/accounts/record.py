"""Whether a run stays in the range of its record, and what a record cannot show about users.

Users who generate their work may submit many times as much as was recorded. Queues, waits and
utilization of such a run are those of another site. A run is in the *range of its record* if the
mean number of jobs a day, and the mean work submitted a day, are

* within a factor of :data:`RANGE` of the record's means, or
* not beyond what the record itself has in some stretch of as many days: short runs vary more.

Days count from the first submission to the last one of the record, or of the run if that is
earlier. If users are resampled, the record's jobs and work are multiplied by the size of the
population.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.analysis.curves import Floats
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable

#: Largest factor between the means a day of a run and of its record. Chosen here: jobs and work of
#: the halves of a log differ by less in seven of the nine logs of the Parallel Workloads Archive
#: that were looked at; jobs by more in CEA-Curie-2011 (2.1) and DAS2-fs1-2003 (3.1).
RANGE = 2.0

#: Share of the jobs, from which one session or one user holds too many. Chosen here: the largest
#: shares in these logs are 0.04 and 0.29, but for the eleven days of LCG-2005 (both 0.32).
SESSION_SHARE, USER_SHARE = 0.25, 0.5

#: Fewest recorded jobs that are judged: means and shares of fewer mean little. Work is judged if it
#: is spread over at least as many: their effective number is the squared sum over the sum of
#: squares (Kish, Survey Sampling, 1965).
LEAST_JOBS = 100

#: What to do about a load out of the range of a recorded log.
REPLAY = "compare with users who replay the record, such as think-time"

#: What to do about a load out of the range of a model's own workload.
OBLIVIOUS = "compare with --oblivious users, who submit what the model says"


@dataclass(frozen=True)
class Record:
    """What a run is compared with."""

    submit: Int64s  #: s; submission of each job, shape (jobs,)
    work: Floats  #: its processor-seconds, shape (jobs,); all 0 if work is not judged
    concentrated: tuple[str, ...] = ()  #: remarks on its concentration
    name: str = "the record"  #: what it is called
    cure: str = REPLAY  #: what to do about a load out of its range

    @classmethod
    def of(cls, jobs: JobTable, *, thinks: bool = True) -> Record | None:
        """Measure a record; None if it has too few jobs to be judged.

        ``thinks`` is whether users think between sessions or batches, so that their number matters.
        """
        found = cls.of_columns(jobs.recorded_submit, jobs.processors, jobs.run_time)
        if found is None or not thinks:
            return found
        return replace(found, concentrated=tuple(_concentrated(jobs)))

    @classmethod
    def of_columns(
        cls, submit: ArrayLike, processors: ArrayLike, run_time: ArrayLike
    ) -> Record | None:
        """Measure a workload given by its columns; None if it has too few jobs to be judged."""
        at = np.asarray(submit, np.int64)
        if len(at) < LEAST_JOBS:
            return None
        work = np.asarray(processors, np.float64) * np.asarray(run_time, np.float64)
        if work.sum() ** 2 < LEAST_JOBS * (work * work).sum():
            work[:] = 0  # a few jobs are most of it
        return cls(at, work)

    def remarks(
        self, run: JobTable, users: str, *, days: int | None = None, factor: float = 1.0
    ) -> list[str]:
        """Return remarks on a run, one line each; none on an ordinary run of an ordinary record.

        ``users`` is the name of their behaviour, ``days`` the length of a run that begins at 0 s,
        None if it has the times of the record, and ``factor`` the size of the population, as a
        multiple of the record's.
        """
        submit = run.submit
        last = int(submit.max(initial=UNKNOWN))
        if last == UNKNOWN:
            return list(self.concentrated)
        first = int(self.submit.min())
        length = int(self.submit.max() - first) // DAY + 1
        begin = first if days is None else 0
        ran = max(1, min(length if days is None else days, (last - begin) // DAY + 1))
        inside = (submit >= begin) & (submit < begin + ran * DAY) & (submit != UNKNOWN)
        work = float((run.processors * run.run_time.astype(np.float64) * inside).sum())
        outside = []
        for what, mine, each in (
            ("jobs", float(inside.sum()), np.ones(len(self.submit))),
            ("processor-hours", work / HOUR, self.work / HOUR),
        ):
            mean, usual = mine / ran, factor * float(each.sum()) / length
            if usual == 0 or usual / RANGE <= mean <= usual * RANGE:
                continue
            low, high = self._stretches(each, length, ran)
            if not factor * low <= mean <= factor * high:
                outside.append(
                    f"{mean:,.1f} {what} a day, {mean / usual:.3g} times the {usual:,.1f}"
                )
        if not outside:
            return list(self.concentrated)
        line = (
            f"load: {users} users submit {' and '.join(outside)} of {self.name}, whose range is "
            f"{1 / RANGE:g} to {RANGE:g} times as much; queues, waits and utilization are not "
            f"those of {self.name}: {self.cure}"
        )
        return [line, *self.concentrated]

    def _stretches(self, values: Floats, length: int, days: int) -> tuple[float, float]:
        """Return the smallest and the largest mean a day over stretches of as many days."""
        day = (self.submit - self.submit.min()) // DAY
        sums = np.concatenate([[0.0], np.cumsum(np.bincount(day, values, minlength=length))])
        days = min(days, length)
        means = (sums[days:] - sums[:-days]) / days
        return float(means.min()), float(means.max())


def _concentrated(jobs: JobTable) -> list[str]:
    """Return a remark if one session, or else one user, holds most of a record."""
    total = len(jobs)
    known = jobs.session[jobs.session != UNKNOWN]
    if len(known):
        most = int(np.bincount(known).max())
        if most > SESSION_SHARE * total:
            return [
                f"concentration: one session holds {most:,} of {total:,} jobs "
                f"({most / total:.0%}); think times between sessions say nothing about these jobs, "
                "and a model of users decides only when the first of them comes: split it with a "
                "smaller threshold of --sessions, or remove it with hpcrowd clean --flurries"
            ]
    # A user with more than half of the jobs has the middle one in the order of users.
    mine = jobs.user == np.partition(jobs.user, total // 2)[total // 2]
    most = int(mine.sum())
    if USER_SHARE * total < most < total:
        return [
            f"concentration: one user submitted {most:,} of {total:,} jobs ({most / total:.0%}); "
            "results are mostly those of this user, and models have little to learn others from: "
            "look at results by user, or remove its jobs with hpcrowd clean --flurries"
        ]
    return []
