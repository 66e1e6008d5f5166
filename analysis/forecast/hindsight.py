"""What past forecasts came to: bounds of waits, learned from jobs that waited in such a situation.

A simulation knows the policy, the requests and who runs. It does not know what else keeps a job
from its processors at a site: limits, dependencies, nodes that are down, an operator. In four
logs of the archive half of the jobs that wait would start at once if the rules were all there is.
Therefore the simulated waits are one *feature* of a job among others, and the bounds come from what
jobs with such features waited for: a forest of regression trees puts jobs together that are alike,
and the waits of those in the same leaves, with weights, are the distribution (quantile regression
forest: Meinshausen, JMLR 7, 2006; for ensembles of simulations: Taillardat et al., Monthly Weather
Review 144, 2016). Jobs that still wait are counted as long as they have waited (Kaplan and Meier,
JASA 53, 1958).

The cases come from *hindcasts*: forecasts from earlier seconds, with what was known then.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.curves import Floats, log_minutes
from hpcrowd.analysis.forecast.conformal import LEVELS
from hpcrowd.analysis.forecast.futures import Outset
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import HpcrowdError, missing
from hpcrowd.environment.jobs import UNKNOWN, Int64s

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from hpcrowd.environment.state.state import ClusterState

#: The features of a job that waits, in order.
FEATURES = {
    "simulated median": "log minutes; remaining wait in futures without new jobs",
    "simulated mean": "log minutes; mean over these futures",
    "simulated spread": "log minutes; standard deviation over these futures",
    "waited": "log minutes since the submission",
    "width": "log2 of the share of the machine that it asks",
    "request": "log minutes of its requested time",
    "own jobs running": "log jobs of its user that run",
    "own processors": "log processors of its user that are busy",
    "own jobs ahead": "log jobs of its user that wait and were submitted before",
    "place": "log place in the queue by submission",
    "free": "share of the machine that is free",
    "queue": "log jobs that wait",
    "similar jobs": "log minutes; recent waits of jobs of about its size and request",
    "user": "log minutes; recent waits of its user",
    "partition": "log minutes; recent waits in its queue or partition",
    "all jobs": "log minutes; recent waits",
    "overtaken": "log jobs submitted after it that have started",
    "overtaken by larger": "the same, of jobs at least as wide",
    "work ahead": "log hours of the whole machine that waits before it",
    "time of day, sine": "local time of day",
    "time of day, cosine": "local time of day",
    "weekend": "1 on Saturday and Sunday",
    "would fit": "1 if it asks no more processors than are free",
}

#: Futures without new jobs behind the simulated features, and how far they go, s.
SKETCHES, FAR = 8, 14 * DAY

#: Starts that recent waits are computed from, and days after which their weight has fallen by e.
STARTS, RECENT_DAYS = 2000, 2.0

#: Doublings of width, and of request, within which jobs are similar.
SIMILAR = 0.7

#: Trees, least jobs in a leaf, and share of the features tried at each split (our choice).
TREES, LEAF, TRIED = 40, 5, 0.4

#: Cases that are learned from at most, the latest ones, and at least.
MOST_CASES, LEAST_CASES = 5000, 150

#: Bounds beyond all known waits, s.
ENDLESS = 60 * DAY


def features_of(outset: Outset, seed: int = 0) -> Floats:
    """Return the features of all jobs that wait, then of those that one would submit.

    The shape is (jobs, features), as in :data:`FEATURES`. The users of the outset are left out; the
    seed is of the futures behind the simulated features.
    """
    alone = replace(outset, users="none", horizon=FAR, jobs_only=True)
    running = len(outset.state.running)
    futures = [alone.simulate(number, seed) for number in range(SKETCHES)]
    starts = np.array([one.start[running:] for one in futures], np.float64)
    simulated = np.where(starts == UNKNOWN, FAR, starts - outset.state.now)
    state = outset.with_asked
    return np.column_stack((
        log_minutes(np.median(simulated, axis=0)),
        log_minutes(simulated).mean(axis=0),
        log_minutes(simulated).std(axis=0),
        _situation(state, np.concatenate((outset.state.waiting, outset.asked_rows))),
    ))  # fmt: skip


def _situation(state: ClusterState, waiting: Int64s) -> Floats:
    """Return the features that need no simulation, shape (jobs, features - 3)."""
    jobs, now, total = state.jobs, state.now, max(state.processors, 1)
    running = state.running
    user, width = jobs.user[waiting], jobs.processors[waiting]
    request = jobs.requested_time[waiting]
    used = int(jobs.processors[running].sum())
    people = np.unique(np.concatenate((jobs.user[running], user)))
    of_running = np.searchsorted(people, jobs.user[running])
    mine = np.searchsorted(people, user)
    run = np.bincount(of_running, minlength=len(people))[mine]
    busy = np.bincount(of_running, jobs.processors[running], len(people))[mine]
    order = np.argsort(mine, kind="stable")
    place = np.arange(len(waiting))
    first = np.searchsorted(mine[order], mine[order])
    ahead = np.zeros(len(waiting), np.int64)
    ahead[order] = place - first
    area = np.cumsum(width * np.maximum(request, 0)) - width * np.maximum(request, 0)
    started = np.flatnonzero(jobs.recorded_start != UNKNOWN)
    started = started[np.argsort(jobs.recorded_start[started], kind="stable")][-STARTS:]
    waits = log_minutes(jobs.recorded_start[started] - jobs.recorded_submit[started])
    fresh = np.exp(-(now - jobs.recorded_start[started]) / DAY / RECENT_DAYS)
    wide, long = np.log2(np.maximum(jobs.processors, 1)), log_minutes(jobs.requested_time)

    def recent(alike: Floats) -> Floats:
        weights = alike * fresh + 1e-9
        if not len(started):
            return np.zeros(len(waiting))
        return (weights * waits).sum(axis=1) / weights.sum(axis=1)

    def same(column: Int64s) -> Floats:
        alike: NDArray[np.bool_] = column[waiting][:, None] == column[started]
        return alike.astype(np.float64)

    gaps = ((wide[waiting][:, None] - wide[started]) / SIMILAR) ** 2
    gaps += ((long[waiting][:, None] - long[started]) / SIMILAR) ** 2
    later = jobs.recorded_submit[started] > jobs.recorded_submit[waiting][:, None]
    larger = later & (jobs.processors[started] >= width[:, None])
    wall = state.clock.wall(now)
    angle, count = 2 * np.pi * wall / DAY, len(waiting)
    found: Floats = np.column_stack((
        log_minutes(now - jobs.recorded_submit[waiting]),
        wide[waiting] - np.log2(total),
        long[waiting],
        np.log1p(run), np.log1p(busy), np.log1p(ahead), np.log1p(place),
        np.full(count, 1 - used / total), np.full(count, np.log1p(count)),
        recent(np.exp(-0.5 * gaps)), recent(same(jobs.user)), recent(same(jobs.queue)),
        recent(np.ones((count, len(started)))),
        np.log1p(later.sum(axis=1)), np.log1p(larger.sum(axis=1)),
        np.log1p(area / HOUR / total),
        np.full(count, np.sin(angle)), np.full(count, np.cos(angle)),
        np.full(count, float(wall // DAY % 7 >= 5)),
        (width <= total - used).astype(np.float64),
    ))  # fmt: skip
    return found


@dataclass
class Hindsight:
    """Cases of the past, and the bounds that follow from them."""

    #: Shape (cases, features).
    features: Floats = field(default_factory=lambda: np.zeros((0, len(FEATURES))))
    #: Second of each forecast, and of the start of the job, s; -1 if that is not known yet.
    asked_at: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    start: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    #: Of each case; those of one forecast are alike and count less each.
    weight: Floats = field(default_factory=lambda: np.zeros(0))
    seed: int = 0  #: Of the forest.
    fits: int = 0  #: How often it was grown.
    _forest: Any = field(default=None, repr=False)
    _leaves: Any = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.start)

    def add(self, features: Floats, asked_at: int, start: Int64s) -> None:
        """Add the jobs of one forecast, asked at a second; features have shape (jobs, features).

        Their starts are in s, -1 if not known. What is later than the second of a later question
        does not count there.
        """
        count = len(start)
        if not count:
            return
        keep = slice(max(0, len(self) + count - MOST_CASES), None)
        self.features = np.concatenate((self.features, features))[keep]
        self.asked_at = np.concatenate((self.asked_at, np.full(count, asked_at)))[keep]
        self.start = np.concatenate((self.start, start))[keep]
        self.weight = np.concatenate((self.weight, np.full(count, count**-0.5)))[keep]
        self._leaves = None

    def fit(self, now: int) -> None:
        """Grow the forest from what is known at a second; an HpcrowdError without scikit-learn."""
        try:
            from sklearn.ensemble import RandomForestRegressor
        except ImportError:
            raise HpcrowdError(
                f"bounds learned from past forecasts: {missing('scikit-learn', 'fits')}, or give "
                "--hindcasts 0"
            ) from None
        waited, _ = self.known(now)
        forest = RandomForestRegressor(
            TREES, min_samples_leaf=LEAF, max_features=TRIED, random_state=self.seed
        )
        forest.fit(self.features, log_minutes(waited), sample_weight=self.weight)
        self._forest, self._leaves = forest, None
        self.fits += 1

    @property
    def ready(self) -> bool:
        """Whether there are enough cases to learn from."""
        return len(self) >= LEAST_CASES

    def known(self, now: int) -> tuple[Floats, NDArray[np.bool_]]:
        """Return how long each case has waited at a second, s, and whether it still waits."""
        open_still = (self.start == UNKNOWN) | (self.start > now)
        waited = np.where(open_still, now, self.start) - self.asked_at
        return waited.astype(np.float64), open_still

    def bounds(self, features: Floats, now: int, levels: Any = LEVELS) -> Floats:
        """Return quantiles of the remaining waits of jobs, s, shape (jobs, levels).

        Features have shape (jobs, features); what was known at the second ``now`` counts.
        """
        levels = np.asarray(levels)
        found = np.empty((len(features), len(levels)))
        for job, (waited, below) in enumerate(self._distributions(features, now)):
            place = np.searchsorted(below, levels - 1e-12)
            last = len(waited) - 1
            found[job] = np.where(place <= last, waited[np.minimum(place, last)], ENDLESS)
        return found

    def _distributions(self, features: Floats, now: int) -> Iterator[tuple[Floats, Floats]]:
        """Yield for each job the waits of all cases, ascending, and the share of it below each."""
        if self._forest is None:
            self.fit(now)
        if self._leaves is None:
            self._leaves = self._forest.apply(self.features)
        mine = self._forest.apply(features)
        waited, open_still = self.known(now)
        order = np.lexsort((open_still, waited))
        waited, closed = waited[order], ~open_still[order]
        leaves, weight = self._leaves[order], self.weight[order]
        for job in range(len(features)):
            same = leaves == mine[job]
            near = (same / np.maximum(same.sum(axis=0), 1)).mean(axis=1) * weight
            yield waited, _below(near, closed)


def _below(weight: Floats, closed: NDArray[np.bool_]) -> Floats:
    """Return the estimate of Kaplan and Meier, with weights, of waits in ascending order."""
    at_risk = np.cumsum(weight[::-1])[::-1]
    hazard = np.where(closed & (at_risk > 0), weight / np.maximum(at_risk, 1e-300), 0.0)
    return 1 - np.cumprod(1 - np.minimum(hazard, 1.0))
