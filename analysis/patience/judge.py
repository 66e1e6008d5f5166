"""How well patience that was fitted to the first half of a log foresees the second.

Expected numbers of jobs given up are sums of hazards over the waits that jobs had: of a job that
started early, little is expected. Concordance is Harrell's with a risk that changes: whenever a job
is given up, its hazard is compared with those of all jobs that waited longer, each at that wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hpcrowd.agents.patience.model import FittedPatience, band_of
from hpcrowd.agents.patience.submissions import BINS, EDGES, Floats, groups
from hpcrowd.analysis.paired import CONFIDENCE, RESAMPLES
from hpcrowd.analysis.patience.fit import Seen, Waits, fit_waits
from hpcrowd.environment.clock import DAY, WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.streams import Streams

#: Share of the submissions of a log that models are fitted to.
FIRST = 0.5

#: Share of the first part after which its weeks are foreseen from what came before, to find out how
#: much weeks vary beyond chance.
TRIAL = 0.6

#: Days before, whose jobs given up by those expected are the pace of the next day, and the jobs
#: given up that weigh as much as a pace of 1. Our choice, by the first half of SDSC-DS.
PACE, PACE_PRIOR = 7, 20.0

#: Share of the weeks that intervals are to hold.
HELD = 0.9

#: Parts of the waits of jobs given up, for calibration.
PARTS = 10

#: Hazards of jobs, by their rows, in one bin each.
Hazards = Callable[[Int64s, Int64s], Floats]

#: Models: each user's own rate in the first half, and until each submission; and fitted patience.
OWN, OWN_SO_FAR, FITTED = "own rates", "own rates so far", "fitted"


class Gain(NamedTuple):
    """A difference, and its interval of 95 % of a bootstrap over weeks of users."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Foreseen:
    """What one model foresaw of the second half.

    Attributes
    ----------
    weeks
        Expected jobs given up in each full week, shape (weeks,).
    intervals
        Ends of the interval of each, shape (weeks, 2).
    concordance
        Share of the pairs in which the job given up had the higher hazard; ties count half.
    likelihood
        Log likelihood of the waits, for each job given up.
    by_wait
        Expected jobs given up in each tenth of the waits, shape (parts,).
    gain
        By how much concordance and likelihood of fitted patience are larger; empty for itself.
    """

    weeks: Floats
    intervals: Floats
    concordance: float
    likelihood: float
    by_wait: Floats
    gain: dict[str, Gain]


@dataclass(frozen=True)
class PatienceJudgement:
    """How well models of patience foresee the second half of a log.

    Attributes
    ----------
    weeks
        Jobs given up in each full week, shape (weeks,).
    waits
        Edges of the tenths of waits, s, shape (parts + 1,).
    by_wait
        Jobs given up in each.
    jobs, given_up
        Numbers of the jobs submitted in the second half.
    changed
        Share of those given up that were replaced: as foreseen, and as recorded.
    models
        What each foresaw, by name.
    """

    weeks: Floats
    waits: Int64s
    by_wait: Floats
    jobs: int
    given_up: int
    changed: tuple[float, float]
    models: dict[str, Foreseen]

    def error(self, name: str) -> float:
        """Return the median over weeks of the error, as a share of the jobs given up."""
        there = self.weeks > 0
        return float(np.median(np.abs(self.models[name].weeks[there] / self.weeks[there] - 1)))

    def ratio(self, name: str) -> float:
        """Return the expected by the recorded jobs given up, in all weeks."""
        return float(self.models[name].weeks.sum() / self.weeks.sum())

    def held(self, name: str) -> float:
        """Return the share of weeks within their interval."""
        low, high = self.models[name].intervals.T
        return float(((low <= self.weeks) & (self.weeks <= high)).mean())

    def to_json(self) -> dict[str, Any]:
        """Return it fit for JSON."""
        return {
            "jobs": self.jobs,
            "given_up": self.given_up,
            "changed_minds": dict(zip(("foreseen", "recorded"), self.changed, strict=True)),
            "weeks": self.weeks.tolist(),
            "waits_s": self.waits.tolist(),
            "given_up_by_wait": self.by_wait.tolist(),
            "models": {
                name: {
                    "concordance": one.concordance,
                    "log_likelihood_per_job_given_up": one.likelihood,
                    "weekly_error_median": self.error(name),
                    "weeks_within_interval": self.held(name),
                    "expected_by_recorded": self.ratio(name),
                    "weeks": one.weeks.tolist(),
                    "intervals": one.intervals.tolist(),
                    "given_up_by_wait": one.by_wait.tolist(),
                    "gain_of_fitted": {what: gain._asdict() for what, gain in one.gain.items()},
                }
                for name, one in self.models.items()
            },
        }


def judge_patience(
    waits: Waits, seed: int = 0, progress: Callable[[str, int], Any] | None = None
) -> PatienceJudgement:
    """Fit patience to the first half of a log, and judge what it foresees of the second.

    It is compared with a constant rate for each second in the queue, and with each user's own rate,
    times the usual rate of all users in each bin of waits: that of the first half (new users have
    the rate of all), and that until each submission. ``progress`` is called with a label and the
    number of steps, of 3, that are done.

    Raises
    ------
    QuantityError
        If a half has too few jobs given up, or scikit-learn is not installed.
    """
    progress = progress or (lambda _label, _done: None)
    begin = int(waits.submit[int(FIRST * len(waits))]) if len(waits) else 0
    early = int(waits.submit[int(TRIAL * FIRST * len(waits))]) if len(waits) else 0
    left = (waits.submit + waits.wait)[waits.gone]
    few = [int((left < early).sum()), int(((left >= early) & (left < begin)).sum())]
    if min(*few, int((left >= begin).sum())) < PARTS or left.max() - begin < 2 * WEEK:
        raise QuantityError(
            f"patience: {len(left)} jobs given up, too few in a part of the log to judge it; fit "
            "another log, or a longer part of it"
        )
    seen = waits.seen()
    progress("fitting the weeks that show how much weeks vary", 0)
    spreads = {}
    for name, hazards in _models(waits, early, fit_waits([waits], early)).items():
        paced = _paced(waits, seen, hazards(seen.job, seen.place))
        weeks = _weekly(waits, seen, paced, early, begin)
        spreads[name] = _spread(*weeks)
    progress("fitting the first half", 1)
    fitted = fit_waits([waits], begin)
    models = _models(waits, begin, fitted)
    progress("judging the second half", 2)
    return _judged(waits, seen, models, spreads, begin, _changed(waits, begin, fitted), seed)


def _changed(waits: Waits, begin: int, fitted: FittedPatience) -> tuple[float, float]:
    """Return the share of jobs replaced of those given up in the second half: foreseen, recorded.

    Foreseen is the share in the first half of those given up in the same band of waits.
    """
    later = waits.gone & (waits.submit >= begin)
    foreseen = fitted.changed[band_of(waits.wait[later])].mean()
    return float(foreseen), float(waits.replaced[later].mean())


def _models(waits: Waits, before: int, fitted: FittedPatience) -> dict[str, Hazards]:
    """Return the models, fitted to what was known before a second."""
    seen = waits.seen(before)
    seconds = np.diff(EDGES)
    rate = seen.gone.sum() / (seen.part * seconds[seen.place]).sum()

    def bins(theirs: Floats) -> Floats:
        """Return the usual rate in each bin, of users whose own rates are relative to it."""
        part = np.bincount(seen.place, seen.part * theirs[seen.job], BINS)
        usual = np.bincount(seen.place, seen.gone, BINS) / np.maximum(part, 1)
        return np.asarray(np.maximum(usual, rate * seconds / BINS))  # never impossible

    # A user's last submission in the first half knows what came before; new users know nothing.
    known = np.ones(len(waits))
    early = np.flatnonzero(waits.submit < before)
    for rows in groups(waits.user):
        last = np.searchsorted(rows, len(early)) - 1
        if last >= 0:
            known[rows] = np.exp(waits.found.covariates[rows[last], 0])
    so_far = np.exp(waits.found.covariates[:, 0])
    levels = bins(known), bins(so_far)
    return {
        "constant rate": lambda _jobs, place: rate * seconds[place],
        OWN: lambda jobs, place: levels[0][place] * known[jobs],
        OWN_SO_FAR: lambda jobs, place: levels[1][place] * so_far[jobs],
        FITTED: lambda jobs, place: fitted.hazards(waits.found, place, jobs),
    }


def _when(waits: Waits, seen: Seen) -> tuple[Int64s, Int64s]:
    """Return the middle of each bin seen, and when a job left in it, s."""
    submit, part = waits.submit[seen.job], seen.part * np.diff(EDGES)[seen.place]
    return submit + EDGES[seen.place] + (part / 2).astype(np.int64), submit + waits.wait[seen.job]


def _paced(waits: Waits, seen: Seen, rates: Floats) -> Floats:
    """Return the jobs expected to be given up in each bin seen, at the pace of the days before."""
    expected = seen.part * rates
    middle, left = (when // DAY for when in _when(waits, seen))
    days = int(left.max()) + 2
    foreseen, happened = (
        np.cumsum(np.bincount(when + 1, number, days))
        for when, number in ((middle, expected), (left, seen.gone))
    )
    first = np.maximum(np.arange(days) - PACE, 0)
    pace = (happened - happened[first] + PACE_PRIOR) / (foreseen - foreseen[first] + PACE_PRIOR)
    return np.asarray(expected * pace[middle])


def _weekly(waits: Waits, seen: Seen, expected: Floats, begin: int, end: int) -> Floats:
    """Return the expected, and recorded, jobs given up in full weeks, shape (2, weeks)."""
    weeks, found = (end - begin) // WEEK, []
    for when, number in zip(_when(waits, seen), (expected, seen.gone * 1.0), strict=True):
        week = (when - begin) // WEEK
        mine = (week >= 0) & (week < weeks)
        found.append(np.bincount(week[mine], number[mine], weeks))
    return np.stack(found)


def _spread(expected: Floats, recorded: Floats) -> float:
    """Return by how much weeks vary beyond chance: the variance of their ratios to the expected."""
    beyond = (recorded - expected) ** 2 - expected
    return float(max(beyond.sum() / (expected**2).sum(), 0.0))


def _intervals(expected: Floats, spread: float) -> Floats:
    """Return the intervals of numbers around the expected, negative binomial with a spread."""
    from scipy import stats

    tail = (1 - HELD) / 2
    mean = np.maximum(expected, 1e-9)
    if spread == 0:
        found = [stats.poisson(mean).ppf(share) for share in (tail, 1 - tail)]
    else:
        size = 1 / spread
        found = [stats.nbinom(size, size / (size + mean)).ppf(one) for one in (tail, 1 - tail)]
    return np.column_stack(found)


def _judged(
    waits: Waits,
    seen: Seen,
    models: Mapping[str, Hazards],
    spreads: Mapping[str, float],
    begin: int,
    changed: tuple[float, float],
    seed: int,
) -> PatienceJudgement:
    late = np.flatnonzero(waits.submit >= begin)
    events = late[waits.gone[late] & (waits.wait[late] < EDGES[-1])]
    cuts = np.quantile(waits.wait[events], np.linspace(0, 1, PARTS + 1)[1:-1])
    edges = np.concatenate([[0], np.unique(cuts.astype(np.int64)) + 1, EDGES[-1:]])
    end = int(waits.submit[-1])
    rows = np.flatnonzero(waits.submit[seen.job] >= begin)
    later = Seen(seen.job[rows], seen.place[rows], seen.gone[rows], seen.part[rows])
    # Weeks of users are what the bootstrap draws.
    when = _when(waits, later)[0] // WEEK
    _, cluster = np.unique(
        np.column_stack([waits.user[later.job], when]), axis=0, return_inverse=True
    )
    cluster, scores, drafts = cluster.ravel(), {}, {}
    for name, hazards in models.items():
        rates = hazards(seen.job, seen.place)
        rate, paced = rates[rows], _paced(waits, seen, rates)
        likelihood = later.gone * np.log(rate) - rate * later.part
        pairs = _by_cluster(later, cluster, events, _pairs(waits, hazards, late, events))
        scores[name] = np.stack([np.bincount(cluster, likelihood), *pairs])
        weekly = _weekly(waits, seen, paced, begin, end)
        by_wait = [_between(later, paced[rows], low, high) for low, high in pairwise(edges)]
        drafts[name] = weekly[0], np.array(by_wait)
    happened = np.bincount(cluster, later.gone)
    gains = _gains(scores, happened, seed)
    return PatienceJudgement(
        weekly[1],
        edges,
        np.histogram(waits.wait[events], edges)[0].astype(float),
        len(late),
        len(events),
        changed,
        {
            name: Foreseen(
                expected,
                _intervals(expected, spreads[name]),
                float(scores[name][1].sum() / scores[name][2].sum()),
                float(scores[name][0].sum() / happened.sum()),
                by_wait,
                gains.get(name, {}),
            )
            for name, (expected, by_wait) in drafts.items()
        },
    )


def _pairs(waits: Waits, hazards: Hazards, late: Int64s, events: Int64s) -> Floats:
    """Return, for each job given up, the pairs that it wins and their number, shape (events, 2)."""
    order = late[np.argsort(waits.wait[late], kind="stable")]
    wait = waits.wait[order]
    found = np.zeros((len(events), 2))
    place = np.searchsorted(EDGES, waits.wait[events], side="right") - 1
    for one in range(BINS):
        mine = np.flatnonzero(place == one)
        if not len(mine):
            continue
        others = order[np.searchsorted(wait, EDGES[one]) :]
        there, waited = np.full(len(others), one), waits.wait[others]
        rates = hazards(others, there)
        theirs = hazards(events[mine], there[: len(mine)])
        for event, rate in zip(mine.tolist(), theirs.tolist(), strict=True):
            longer = rates[np.searchsorted(waited, waits.wait[events[event]], side="right") :]
            wins = (longer < rate).sum() + (longer == rate).sum() / 2
            found[event] = wins, len(longer)
    return found


def _by_cluster(seen: Seen, cluster: Int64s, events: Int64s, pairs: Floats) -> list[Floats]:
    """Return the pairs won, and all, of each week of a user; the rows of events are in order."""
    rows = np.flatnonzero(seen.gone)
    mine = cluster[rows[np.argsort(seen.job[rows], kind="stable")]]
    size = int(cluster.max()) + 1
    return [np.bincount(mine, one, size) for one in pairs[np.argsort(events)].T]


def _between(seen: Seen, expected: Floats, low: int, high: int) -> float:
    """Return the jobs expected to be given up in waits from ``low`` to ``high``, s."""
    first = EDGES[seen.place]
    waited = seen.part * (EDGES[seen.place + 1] - first)
    inside = np.maximum(np.minimum(first + waited, high) - np.maximum(first, low), 0)
    return float((expected * inside / waited).sum())


def _gains(scores: Mapping[str, Floats], happened: Floats, seed: int) -> dict[str, dict[str, Gain]]:
    """Return by how much fitted patience is better than each other model.

    Intervals are of a bootstrap over weeks of users.
    """
    generator = Streams(seed).generator("patience", "bootstrap")
    count, tail = len(happened), (1 - CONFIDENCE) / 2
    weights = [np.ones(count)]
    weights += [
        np.bincount(generator.integers(count, size=count), minlength=count).astype(float)
        for _ in range(RESAMPLES)
    ]
    drawn = {name: np.empty((len(weights), 2)) for name in scores}
    for row, weight in enumerate(weights):
        given = weight @ happened
        for name, sums in scores.items():
            likelihood, won, pairs = sums @ weight
            drawn[name][row] = won / pairs, likelihood / given
    found = {}
    for name in scores:
        if name != FITTED:
            differences = drawn[FITTED] - drawn[name]
            low, high = np.quantile(differences[1:], (tail, 1 - tail), axis=0)
            found[name] = {
                measure: Gain(*(float(each[one]) for each in (differences[0], low, high)))
                for one, measure in enumerate(("concordance", "likelihood"))
            }
    return found
