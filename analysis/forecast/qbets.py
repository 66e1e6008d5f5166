"""QBETS: bounds of the wait of a job from the waits of the jobs before it (Nurmi et al. 2007).

Nothing is simulated and nothing about the machine is known: the bound is an order statistic of the
waits of similar jobs, chosen such that it is above the wanted quantile with the wanted confidence.
The history is cut where the waits change, and jobs are similar if they are in one queue and in one
cluster by what they request.

Sources, and what each rule below rests on:

- [QBETS] D. Nurmi, J. Brevik, R. Wolski: QBETS: Queue Bounds Estimation from Time Series.
  JSSPP 2007, LNCS 4942. Its abstract names four parts: the nonparametric predictor, the detector
  of change points, model-based clustering of jobs, a detector of downtimes.
- [BMBP] J. Brevik, D. Nurmi, R. Wolski: Predicting bounds on queuing delay for batch-scheduled
  parallel machines. PPoPP 2006.
- [code] The authors' program ``schmib_q``, in the repository ``garethgeorge/sip-processor``. The
  full text of the papers was not at hand, so "confirmed" means: found in this program.

The rules:

- Order statistic: confirmed (``jbindex.c``), but for one. The program takes the order statistic
  just below the index of theory; here theory decides, so that of 59 waits the largest is the bound.
- Normal approximation: confirmed; above 500 waits, the rounded mean plus normal quantile.
- Least history: confirmed; the smallest n with quantile^n <= 1 - confidence (59 for 0.95 and 0.95).
- Misses: confirmed; judged by the bound given at submission, counted in the order of starts
  (``schmib_q_sim.c``: "the time when the job will exit the queue").
- Longest run of misses: confirmed for the quantile 0.95 (``rare_event.c``, by autocorrelation). For
  other quantiles the program uses the same table, which would cut a history of the quantile 0.5
  all the time; here runs of the same rarity count (our choice).
- Autocorrelation: confirmed; at lag 1, of normal scores of the last 100 waits. Equal waits, such as
  those of jobs that start at once, rank in the order of starts and so look correlated.
- Cut: confirmed; to the least history, which then slides until as many new waits have come.
- Runs of hits: left out. A later state of the program also cuts after a long run of hits.
- Clusters: confirmed (``schmib-means.c``); neighbours in the attribute are merged by the Bayesian
  information criterion of exponential ranks, at most 3 clusters.
- Attribute of the clustering: the three choices are confirmed, and that the program takes the time
  by default (``-E``); the one that the paper used is not.
- Small clusters: unconfirmed; here no cluster is smaller than the least history. The program has a
  function for that, and another that borrows waits from neighbours.
- New clusters: confirmed every 100 waits from all waits. Here from the last 10,000, and only after
  the history has grown by a tenth (our choice, for speed).
- One history for each queue: unconfirmed.
- Downtimes: left out. The program does not count jobs submitted during one; here all count.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.analysis.curves import Floats
from hpcrowd.environment.errors import QuantityError, echo, not_one_of

#: Waits above which the index comes from the normal distribution ([code] ``JBIndex``).
MOST_EXACT = 500

#: Autocorrelations at lag 1, and misses in a row at which the history has changed, for the quantile
#: 0.95 ([code] ``arwrongs``). The entry of the grid point below applies; below 0, the first.
GRID = tuple(step / 10 for step in range(10))
MISSES = (3, 3, 4, 4, 5, 6, 8, 10, 14, 28)

#: Quantile that :data:`MISSES` belongs to.
TABULATED = 0.95

#: Probability of a run that has changed the history: three independent misses of the quantile 0.95
#: ([code]: "3 wrongs in a row at 0.05").
RARITY = (1 - TABULATED) ** 3

#: Waits whose autocorrelation counts ([code] ``ConsecutiveWrongRight``).
CORRELATED = 100

#: Most clusters ([code] ``MAX_B``).
MOST_CLUSTERS = 3

#: Waits between two clusterings ([code] ``rebin_at``), and as a share of all waits (our choice).
RECLUSTERED_AFTER = 100
RECLUSTERED_SHARE = 0.1

#: Most recent waits of a queue that a clustering looks at and keeps (our choice, for speed).
REMEMBERED = 10_000

#: Most groups of jobs with similar requests that the merging begins with (our choice, for speed).
MOST_GROUPS = 64

#: Longest run that is searched for; a longer one changes nothing (our choice).
LONGEST_RUN = 10_000

Attribute = Literal["time", "processors", "area", "none"]
ATTRIBUTES = get_args(Attribute)


class Request(NamedTuple):
    """What is known of a job when it is submitted."""

    processors: float  #: Processors requested.
    time: float  #: Requested time, in seconds; any value below 0 counts as 0.
    queue: Hashable = 0  #: Queue or partition; each has a history of its own.


# ---- order statistics ---------------------------------------------------------------------------


def least_history(quantile: float, confidence: float) -> int:
    """Return how many waits a bound needs: the least n with ``quantile**n <= 1 - confidence``."""
    return max(1, math.ceil(math.log(1 - confidence) / math.log(quantile) - 1e-9))


def index(count: int, quantile: float, confidence: float) -> int | None:
    """Return which order statistic bounds a quantile from above, counted from 1; None if none does.

    The k-th smallest of n independent values is above their q-quantile with a probability of at
    least P(B <= k - 1) for a binomial B of n trials with q. The answer is the smallest k for which
    that is the confidence or more; above :data:`MOST_EXACT` values by the normal approximation.
    """
    if count < least_history(quantile, confidence):
        return None
    if count > MOST_EXACT:
        return approximate_index(count, quantile, confidence)
    return _exact(count, quantile, confidence)


def approximate_index(count: int, quantile: float, confidence: float) -> int:
    """Return :func:`index` by the normal approximation of the binomial distribution."""
    width = math.sqrt(count * quantile * (1 - quantile))
    successes = math.floor(count * quantile + _normal(confidence) * width + 0.5)
    return min(max(successes, 0) + 1, count)


@cache
def _exact(count: int, quantile: float, confidence: float) -> int:
    from scipy.stats import binom

    below = int(binom.ppf(confidence, count, quantile))
    # The inverse may be off by one where the distribution meets the confidence exactly.
    while below > 0 and binom.cdf(below - 1, count, quantile) >= confidence:
        below -= 1
    while binom.cdf(below, count, quantile) < confidence:
        below += 1
    return below + 1


@cache
def _normal(probability: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(probability))


# ---- change points ------------------------------------------------------------------------------


def longest_run(quantile: float, autocorrelation: float) -> int:
    """Return at how many misses in a row of a bound of a quantile a history has changed.

    The autocorrelation of the waits is at lag 1; not a number counts as 0. For the quantile 0.95,
    the authors' table :data:`MISSES`. For others, the shortest run of a stationary Gaussian AR(1)
    process above its quantile that is at most as rare as :data:`RARITY`. For 0.95 this gives 3, 4,
    4, 5, 5, 6, 7, 9, 12, 23.
    """
    place = bisect_right(GRID, autocorrelation) - 1 if autocorrelation > 0 else 0
    return MISSES[place] if quantile == TABULATED else rare_run(quantile, GRID[place])


@cache
def rare_run(quantile: float, autocorrelation: float) -> int:
    """Return the shortest run above a quantile whose probability is at most :data:`RARITY`.

    The process is Gaussian and AR(1); the joint probability is integrated by Gauss-Legendre
    quadrature over the values above the quantile, one step of the process after the other.
    """
    points, weights = np.polynomial.legendre.leggauss(200)
    low, high = _normal(quantile), 8.0  # above 8 standard deviations there is 1e-15
    values = (high - low) / 2 * points + (high + low) / 2
    weights = (high - low) / 2 * weights
    spread = math.sqrt(1 - autocorrelation**2)
    distance = (values[:, None] - autocorrelation * values) / spread
    step = np.exp(-(distance**2) / 2) / (spread * math.sqrt(2 * math.pi)) * weights
    density = np.exp(-(values**2) / 2) / math.sqrt(2 * math.pi)
    for length in range(1, LONGEST_RUN):
        # Rounding must not decide where the probability meets the rarity, as without correlation.
        if density @ weights <= RARITY * (1 + 1e-9):
            return length
        density = step @ density
    return LONGEST_RUN


def autocorrelation(values: Sequence[float] | Floats) -> float:
    """Return the autocorrelation at lag 1 of the normal scores of values; not a number below 3.

    Equal values have ascending ranks in the order given, as in the program of the authors.
    """
    count = len(values)
    if count < 3:
        return math.nan
    scores = np.empty(count)
    scores[np.argsort(np.asarray(values), kind="stable")] = _scores(count)
    before, after = scores[:-1], scores[1:]
    covariance = (before * after).mean() - before.mean() * after.mean()
    return float(covariance / ((scores**2).mean() - scores.mean() ** 2))


@cache
def _scores(count: int) -> Floats:
    from scipy.special import ndtri

    found: Floats = ndtri(np.arange(1, count + 1) / (count + 1))
    return found


# ---- clusters -----------------------------------------------------------------------------------


def cluster_edges(
    attribute: ArrayLike, waits: ArrayLike, least: int, most: int = MOST_CLUSTERS
) -> tuple[float, ...]:
    """Return where clusters of jobs end, by what they request and how they waited.

    The edges are the largest attribute in each cluster but the last, ascending; there is none for
    one cluster. A job belongs to the first cluster whose edge is not below its attribute. Attribute
    and wait, s, of each job have shape (jobs,); a cluster has at least ``least`` jobs, and there
    are at most ``most``.

    Jobs with the same attribute stay together. The waits enter as ``-log(rank / jobs)``, with equal
    waits at their lowest rank; all together these are exponential, and each cluster is fitted by an
    exponential distribution of its own. Neighbouring groups are merged, always the two that cost
    the least likelihood, until one is left; of the clusterings on the way with at most ``most``
    clusters the one with the best Bayesian information criterion, log-likelihood minus (2 clusters
    - 1) / 2 log(jobs), is kept.
    """
    attribute, waits = np.asarray(attribute, float), np.asarray(waits, float)
    jobs = len(waits)
    if jobs < 2 * least:
        return ()
    lowest = np.searchsorted(np.sort(waits), waits, "left") + 1
    order = np.argsort(attribute, kind="stable")
    sorted_attribute, values = attribute[order], -np.log(lowest / jobs)[order]
    # Groups of equal attributes, as small as allowed.
    smallest = max(least, -(-jobs // MOST_GROUPS))
    ends: list[int] = []
    begin = 0
    for end in (*(np.flatnonzero(np.diff(sorted_attribute) > 0) + 1).tolist(), jobs):
        if end - begin >= smallest:
            ends.append(end)
            begin = end
    if ends[-1] != jobs:  # there are 2 * least jobs, so the last are not the only ones
        ends[-1] = jobs
    sums = np.diff(np.concatenate(([0.0], np.cumsum(values)))[[0, *ends]])
    counts = np.diff([0, *ends]).astype(float)
    sums, counts = sums.tolist(), counts.tolist()
    best, kept = -math.inf, [jobs]
    while True:
        clusters = len(counts)
        if clusters <= most:
            fit = sum(map(_log_likelihood, counts, sums))
            score = fit - (2 * clusters - 1) / 2 * math.log(jobs)
            if score > best:
                best, kept = score, list(ends)
        if clusters == 1:
            break
        losses = [
            _log_likelihood(counts[i], sums[i])
            + _log_likelihood(counts[i + 1], sums[i + 1])
            - _log_likelihood(counts[i] + counts[i + 1], sums[i] + sums[i + 1])
            for i in range(clusters - 1)
        ]
        at = losses.index(min(losses))
        counts[at : at + 2] = [counts[at] + counts[at + 1]]
        sums[at : at + 2] = [sums[at] + sums[at + 1]]
        del ends[at]
    return tuple(float(sorted_attribute[end - 1]) for end in kept[:-1])


def _log_likelihood(count: float, total: float) -> float:
    # Of the best exponential distribution; a mean of 0 is one of the longest wait alone.
    return -count * (math.log(max(total, 1e-9) / count) + 1)


# ---- the predictor ------------------------------------------------------------------------------


class _Wait(NamedTuple):
    """A wait that has ended."""

    wait: float
    attribute: float
    miss: bool


class _History:
    """The waits of one cluster since its last change point, with its bounds over time."""

    def __init__(self, quantile: float, confidence: float, adapts: bool) -> None:
        self.quantile, self.confidence, self.adapts = quantile, confidence, adapts
        self.least = least_history(quantile, confidence)
        self.waits: list[float] = []
        self.sorted: list[float] = []
        self.run = 0
        self.since_cut = self.least + 1
        self.cuts = 0
        self.times: list[float] = []
        self.bounds: list[float | None] = []

    def add(self, ended: _Wait) -> None:
        """Add a wait; cut the history if it is one miss too many in a row."""
        self.since_cut += 1
        self.run = self.run + 1 if ended.miss else 0
        if self.adapts and len(self.waits) >= self.least:
            self._cut()
        self.waits.append(ended.wait)
        insort(self.sorted, ended.wait)

    def _cut(self) -> None:
        if self.since_cut > self.least and self.run < longest_run(self.quantile, 0.0):
            return
        longest = longest_run(self.quantile, autocorrelation(self.waits[-CORRELATED:]))
        if self.since_cut > self.least - longest:
            if self.run < longest:
                return
            self.since_cut = 0
            self.cuts += 1
        # The wait that ends now follows, so the history has one more than the least, as published.
        if len(self.waits) > self.least:
            self.waits = self.waits[-self.least :]
            self.sorted = sorted(self.waits)

    def upper(self) -> float | None:
        """Return the upper bound."""
        k = index(len(self.sorted), self.quantile, self.confidence)
        return None if k is None else self.sorted[k - 1]

    def note(self, at: float) -> None:
        """Write down the bound from a time on."""
        self.times.append(at)
        self.bounds.append(self.upper())


class _Clusters(NamedTuple):
    """The clusters of one queue from a time on."""

    since: float
    edges: tuple[float, ...]
    histories: list[_History]

    def history(self, attribute: float) -> _History:
        """Return the history that a job belongs to."""
        return self.histories[bisect_left(self.edges, attribute)]


class _Queue:
    """One queue: its recent waits, and its clusters now and before."""

    def __init__(self, first: _Clusters) -> None:
        self.clusters = [first]
        self.recent: list[_Wait] = []
        self.total = self.since_clustering = 0

    def promised(self, attribute: float, submitted: float) -> float | None:
        """Return the bound that a job got when it was submitted."""
        at = len(self.clusters) - 1
        while at > 0 and self.clusters[at].since > submitted:
            at -= 1
        history = self.clusters[at].history(attribute)
        place = bisect_right(history.times, submitted) - 1
        return None if place < 0 else history.bounds[place]


class QBETS:
    """Bounds of waits from the waits before, online.

    The quantile, and the confidence that a bound is above it, lie between 0 and 1. Jobs are
    clustered by an attribute of what they request: ``"time"``, ``"processors"``, ``"area"``
    (processors times requested time), or ``"none"`` for one cluster a queue. Change points cut the
    history where it ``adapts``. A QuantityError is raised if a parameter is out of range.

    Examples
    --------
    >>> forecaster = QBETS(attribute="none")
    >>> for number in range(59):
    ...     forecaster.ended_wait(Request(1, 3600), wait=number, at=1000.0 + number)
    >>> forecaster.bound(Request(1, 3600))
    58.0

    Notes
    -----
    The rules, and which of them are confirmed, are listed in the module. The confidence is that
    the bound is above the quantile, so more than ``quantile`` of the waits are below it.
    """

    def __init__(
        self,
        quantile: float = 0.95,
        confidence: float = 0.95,
        *,
        attribute: Attribute = "time",
        adapts: bool = True,
    ) -> None:
        for name, value in (("quantile", quantile), ("confidence", confidence)):
            if not 0 < value < 1:
                raise QuantityError(f"{name} {echo(value)}: it lies between 0 and 1, such as 0.95")
        if attribute not in ATTRIBUTES:
            raise QuantityError(f"attribute {echo(attribute)}: {not_one_of(attribute, ATTRIBUTES)}")
        self.quantile, self.confidence = float(quantile), float(confidence)
        self.attribute, self.adapts = attribute, adapts
        self.least = least_history(self.quantile, self.confidence)
        self._queues: dict[Hashable, _Queue] = {}
        self._now = -math.inf

    def ended_wait(
        self, features: Request, wait: float, at: float, promised: float | None = None
    ) -> None:
        """Learn the wait, s, of a job with these requests that starts at a second.

        Starts never go back. The bound that was promised at the submission is that which
        :meth:`bound` would have given then unless given, s. A QuantityError is raised if the wait
        is negative or not finite, or the time goes back.
        """
        if not 0 <= wait < math.inf:
            raise QuantityError(f"wait {echo(wait)}: a wait is 0 s or more, and finite")
        if not at >= self._now:
            raise QuantityError(
                f"start {echo(at)}: earlier than {self._now}; give the waits in the order of starts"
            )
        self._now = at
        queue = self._queues.get(features.queue)
        if queue is None:
            first = _Clusters(-math.inf, (), [self._history()])
            queue = self._queues[features.queue] = _Queue(first)
        attribute, submitted = self._value(features), at - wait
        if promised is None:
            promised = queue.promised(attribute, submitted)
        miss = promised is not None and wait > promised
        ended = _Wait(float(wait), attribute, miss)
        if self.attribute != "none":
            queue.recent.append(ended)
            self._cluster(queue, at)
        history = queue.clusters[-1].history(attribute)
        history.add(ended)
        history.note(at)
        queue.total += 1

    def bound(self, features: Request) -> float | None:
        """Return the upper bound of the wait of a job submitted now, in seconds.

        None while fewer waits are known than a bound needs.
        """
        history = self._find(features)
        return None if history is None or not history.bounds else history.bounds[-1]

    def _find(self, features: Request) -> _History | None:
        queue = self._queues.get(features.queue)
        return None if queue is None else queue.clusters[-1].history(self._value(features))

    def _history(self) -> _History:
        return _History(self.quantile, self.confidence, self.adapts)

    def _value(self, features: Request) -> float:
        time = max(float(features.time), 0.0)
        if self.attribute == "area":
            return float(features.processors) * time
        if self.attribute == "time":
            return time
        return float(features.processors) if self.attribute == "processors" else 0.0

    def _cluster(self, queue: _Queue, at: float) -> None:
        """Cluster the jobs of a queue again if it is time to."""
        queue.since_clustering += 1
        if queue.since_clustering < max(RECLUSTERED_AFTER, RECLUSTERED_SHARE * queue.total):
            return
        queue.since_clustering = 0
        # The wait that ends now is not in a history yet.
        queue.recent = queue.recent[-REMEMBERED:]
        known = queue.recent[:-1]
        edges = cluster_edges(
            [one.attribute for one in known], [one.wait for one in known], self.least
        )
        if edges == queue.clusters[-1].edges:
            return
        clusters = _Clusters(at, edges, [self._history() for _ in range(len(edges) + 1)])
        for one in known:
            clusters.history(one.attribute).add(one)
        for history in clusters.histories:
            history.note(at)
        queue.clusters.append(clusters)


def bounds_over(
    forecaster: QBETS,
    submitted: ArrayLike,
    wait: ArrayLike,
    processors: ArrayLike,
    requested: ArrayLike,
    queue: Sequence[Hashable] | NDArray[Any] | None = None,
) -> Floats:
    """Return the bounds that the jobs of a log get one after the other, each from those before.

    A new forecaster learns each wait at the second it ends. Submissions are in s, ascending; waits
    in s, infinite for a job that never started; requested times in s; all of shape (jobs,). Without
    queues there is one. Bounds are given at submission, s; not a number where there was none yet.
    """
    submitted, wait = np.asarray(submitted, float), np.asarray(wait, float)
    if len(submitted) and (np.diff(submitted) < 0).any():
        late = int(np.flatnonzero(np.diff(submitted) < 0)[0]) + 1
        raise QuantityError(f"job {late}: submitted before the job above it; sort by submission")
    columns = np.asarray(processors, float).tolist(), np.asarray(requested, float).tolist()
    queues = [0] * len(submitted) if queue is None else list(np.asarray(queue).tolist())
    requests = [Request(*request) for request in zip(*columns, queues, strict=True)]
    starts = submitted + wait
    order = np.argsort(starts, kind="stable")
    order = order[np.isfinite(starts[order])].tolist()
    upper = np.full(len(submitted), np.nan)
    arrivals, begins, waits = submitted.tolist(), starts.tolist(), wait.tolist()
    known = 0
    for job, request in enumerate(requests):
        # A job that starts at once is not known to itself.
        while known < len(order) and begins[order[known]] <= arrivals[job] and order[known] < job:
            one = order[known]
            bound = None if math.isnan(upper[one]) else float(upper[one])
            forecaster.ended_wait(requests[one], waits[one], begins[one], bound)
            known += 1
        high = forecaster.bound(request)
        if high is not None:
            upper[job] = high
    return upper
