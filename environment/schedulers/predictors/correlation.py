"""Do longer jobs need more processors? Spearman's correlation of the two, week by week.

:class:`WeeklyCorrelation` forecasts it as the mean of the previous two weeks. T. N. Minh (Workload
modeling and performance evaluation in parallel systems, thesis, Leiden 2012, section 7.4) found the
sign of this forecast right in about 74 % of the weeks of twelve traces.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.jobs import Int64s

#: Number of weeks whose mean is the forecast for the next one (Minh 2012, section 7.4).
WEEKS_LOOKED_BACK = 2

#: Value where there is no correlation.
NO_CORRELATION = float("nan")


def rank_correlation(first: ArrayLike, second: ArrayLike) -> float:
    """Return Spearman's rank correlation of two series, ties included; nan if there is none.

    There is none for fewer than two pairs, or if all values of one series are equal.

    Parameters
    ----------
    first, second
        Shape (n,).
    """
    from scipy.stats import rankdata

    a, b = rankdata(first), rankdata(second)
    a -= a.mean() if len(a) else 0.0
    b -= b.mean() if len(b) else 0.0
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0 else NO_CORRELATION


def weekly_correlations(
    submit: Int64s, run_time: Int64s, processors: Int64s, origin: int | None = None
) -> NDArray[np.float64]:
    """Return the correlation of run time and processors in each week; nan where there is none.

    Parameters
    ----------
    submit
        Submissions, s, shape (jobs,).
    run_time, processors
        Of the same jobs.
    origin
        Second at which the first week begins; the first submission unless given. Jobs before it
        are left out.

    Returns
    -------
    ndarray
        Shape (weeks,), up to the week of the last submission.
    """
    if not len(submit):
        return np.zeros(0)
    begin = int(submit.min()) if origin is None else origin
    week = (submit - begin) // WEEK
    order = np.argsort(week, kind="stable")
    weeks = int(week.max()) + 1
    edges = np.searchsorted(week[order], np.arange(max(weeks, 0) + 1))
    return np.array(
        [
            rank_correlation(run_time[order[low:high]], processors[order[low:high]])
            for low, high in pairwise(edges)
        ]
    )


def expected_correlation(before: Sequence[float] | NDArray[np.float64]) -> float:
    """Return the forecast for the week after those given: the mean of the last two of them.

    If one of the two has no correlation, the forecast is the other one; nan if neither has one.

    Parameters
    ----------
    before
        Correlations of the weeks so far, in order.
    """
    last = np.asarray(before, np.float64)[-WEEKS_LOOKED_BACK:]
    known = last[~np.isnan(last)]
    return float(known.mean()) if len(known) else NO_CORRELATION


class WeeklyCorrelation:
    """Forecast of this week's correlation from jobs that have ended.

    Jobs belong to the week in which they were submitted. Only jobs passed to :meth:`ended` are
    known, so that nothing is used before it could be observed. The forecast is computed once a
    week, at the first call in it; jobs of an earlier week that end later count from the next week
    on.

    Parameters
    ----------
    origin
        Second at which the first week begins.
    """

    def __init__(self, origin: int = 0) -> None:
        self.origin = origin
        self._jobs: dict[int, list[tuple[Int64s, Int64s]]] = {}
        self._asked = -1
        self._answer = NO_CORRELATION

    def ended(self, submit: Int64s, run_time: Int64s, processors: Int64s) -> None:
        """Take note of jobs that have ended, one value a job."""
        weeks = (submit - self.origin) // WEEK
        for week in np.unique(weeks):
            which = weeks == week
            jobs = self._jobs.setdefault(int(week), [])
            jobs.append((run_time[which], processors[which]))

    def expected(self, now: int) -> float:
        """Return the forecast for the week of ``now``; nan while nothing is known."""
        week = (now - self.origin) // WEEK
        if week != self._asked:
            self._asked = week
            first = week - WEEKS_LOOKED_BACK
            self._jobs = {one: jobs for one, jobs in self._jobs.items() if one >= first}
            self._answer = expected_correlation(
                [self._correlation(one) for one in range(first, week)]
            )
        return self._answer

    def _correlation(self, week: int) -> float:
        jobs = self._jobs.get(week)
        if not jobs:
            return NO_CORRELATION
        run_time, processors = (np.concatenate(part) for part in zip(*jobs, strict=True))
        return rank_correlation(run_time, processors)
