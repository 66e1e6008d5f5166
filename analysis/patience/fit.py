"""Fit patience to logs: jobs given up are events at their waits, started jobs are censored then.

A row for each job and bin of waits that it saw (person-period data), with the part of the bin that
it saw, and a Poisson model of whether it was given up there: a piecewise exponential model
(Friedman, Annals of Statistics 10, 1982). Small boosted trees, each of the bin and one covariate,
add up to tables (Lou, Caruana, Gehrke and Hooker, KDD 2013). More is given up the more was before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.patience.model import (
    BANDS,
    LEVELS,
    FittedPatience,
    at_bins,
    band_of,
    bin_of,
)
from hpcrowd.agents.patience.replaced import replacements
from hpcrowd.agents.patience.submissions import BINS, COVARIATES, EDGES, Floats, Submissions
from hpcrowd.analysis.results import versions
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import QuantityError, TraceError, missing
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.trace import Trace, gave_up

#: Trees and what each adds, leaves of a tree and fewest rows in one, and the penalty on leaves, in
#: rows. Our choice, on the first half of SDSC-DS.
TREES, RATE, LEAVES, LEAST, PENALTY = 100, 0.06, 8, 300, 20.0


@dataclass(frozen=True)
class Waits:
    """How long the jobs of a log waited, and what their users knew; arrays of shape (jobs,).

    Jobs are in the order of their submissions.

    Attributes
    ----------
    found
        What users knew.
    user
        Their numbers.
    submit, wait
        s.
    gone
        Whether each was given up after its wait, rather than started.
    replaced
        Whether another took its place, see :mod:`hpcrowd.agents.patience.replaced`.
    followed
        Of users who gave up, how often another job like it was submitted as soon after one that
        started; weighted by the jobs that each gave up. Not a number without any.
    rows
        The place of each in the log.
    """

    found: Submissions
    user: Int64s
    submit: Int64s
    wait: Int64s
    gone: NDArray[np.bool_]
    replaced: NDArray[np.bool_]
    followed: float
    rows: Int64s

    @classmethod
    def of(cls, trace: Trace) -> Self:
        """Return those of a log, without jobs of unknown submission, wait or fate."""
        left, submit, wait = gave_up(trace), trace["submit"], trace["wait"]
        rows = np.flatnonzero((submit >= 0) & (wait >= 0) & (left | (trace["run"] >= 0)))
        rows = rows[np.argsort(submit[rows], kind="stable")]
        asked = trace["requested_processors"]
        size = np.where(asked > 0, asked, trace["allocated_processors"])[rows]
        user, submit, wait, asked, queue, program = (
            trace[name][rows].astype(np.int64)
            for name in ("user", "submit", "wait", "requested_time", "queue", "executable")
        )
        gone = left[rows]
        found = Submissions.of(user, size, asked, queue, submit, wait, gone)
        like = partial(replacements, user, size, asked, program, submit, wait)
        replaced = like(gone) != UNKNOWN
        theirs = ~gone & np.isin(user, user[gone])
        _, who = np.unique(user, return_inverse=True)
        started, again, given = (np.bincount(who, one) for one in (theirs, like(theirs) >= 0, gone))
        both = started > 0
        share = again[both] / started[both] @ given[both] / max(given[both].sum(), 1)
        followed = float(share) if both.any() else float("nan")
        return cls(found, user, submit, wait, gone, replaced, followed, rows)

    def __len__(self) -> int:
        return len(self.wait)

    def seen(self, before: int | None = None) -> Seen:
        """Return the bins that jobs saw, only what was known ``before`` a second if given."""
        wait, gone = self.wait, self.gone
        if before is not None:
            wait = np.minimum(wait, before - self.submit)
            gone = gone & (self.submit + self.wait < before)
        jobs = np.flatnonzero(wait >= 0)
        last = bin_of(wait[jobs])
        job = np.repeat(jobs, last + 1)
        place = np.arange(len(job)) - np.repeat(np.cumsum(last + 1) - last - 1, last + 1)
        beyond = wait[job] >= EDGES[-1]  # later than all bins: not given up in them
        left = (place == np.repeat(last, last + 1)) & gone[job] & ~beyond
        low, high = EDGES[place], EDGES[place + 1]
        # A job that left within its first second saw that second.
        return Seen(job, place, left, (np.minimum(wait[job] + 1, high) - low) / (high - low))


class Seen(NamedTuple):
    """Bins of waits that jobs saw, of shape (rows,)."""

    job: Int64s
    place: Int64s  #: the bin
    gone: NDArray[np.bool_]  #: whether the job was given up in it
    part: Floats  #: of the bin that it waited, above 0 to 1


def changed_minds(logs: Sequence[Waits], before: int | None = None) -> Floats:
    """Return the share of jobs given up that were replaced, by band of the wait.

    Bands with few have about the share of all, which weighs as much as 5 jobs (our choice). Only
    jobs that left ``before`` a second count, if given.
    """
    mine = [
        one.gone if before is None else one.gone & (one.submit + one.wait < before) for one in logs
    ]
    bands = np.concatenate([band_of(one.wait[at]) for one, at in zip(logs, mine, strict=True)])
    changed = np.concatenate([one.replaced[at] for one, at in zip(logs, mine, strict=True)])
    size, weight = len(BANDS), 5
    usual = changed.mean() if len(changed) else 0.0
    share = np.bincount(bands, changed, size) + weight * usual
    return np.asarray(share / (np.bincount(bands, minlength=size) + weight))


def fit_waits(
    waits: Sequence[Waits], before: int | None = None, provenance: dict[str, Any] | None = None
) -> FittedPatience:
    """Fit patience to the jobs of one or more logs, to what was known ``before`` a second if given.

    Raises
    ------
    TraceError
        If no job was given up.
    QuantityError
        If scikit-learn is not installed.
    """
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:
        raise QuantityError(f"patience: {missing('scikit-learn')}") from None

    seen = [one.seen(before) for one in waits]
    known = np.concatenate(
        [at_bins(one.found, each.place, each.job) for one, each in zip(waits, seen, strict=True)]
    )
    place, gone, part = (
        np.concatenate([getattr(each, name) for each in seen]) for name in ("place", "gone", "part")
    )
    if not gone.any():
        raise TraceError(
            "patience: no job was given up in the queue (status 5, no run time, a known wait), so "
            "there is none to fit"
        )
    cuts = np.quantile(known, np.linspace(0, 1, LEVELS + 1)[1:-1], axis=0).T
    levels = [np.searchsorted(at, one, side="right") for at, one in zip(cuts, known.T, strict=True)]
    each = range(1, len(COVARIATES) + 1)
    trees = HistGradientBoostingRegressor(
        loss="poisson", learning_rate=RATE, max_iter=TREES, max_leaf_nodes=LEAVES,
        min_samples_leaf=LEAST, l2_regularization=PENALTY, early_stopping=False, random_state=0,
        interaction_cst=[{0, one} for one in each], monotonic_cst=[0, *(1 for _ in each)],
    )  # fmt: skip
    with threadpool_limits(limits=1):  # the same sums on any machine
        trees.fit(np.column_stack([place, *levels]), gone / part, sample_weight=part)
    # Each tree looks at the bin and one covariate, so that the sum over trees is one over tables.
    bins, column = (one.ravel() for one in np.mgrid[:BINS, :LEVELS])
    tables = []
    for one in each:
        grid = np.zeros((len(bins), 1 + len(COVARIATES)))
        grid[:, 0], grid[:, one] = bins, column
        tables.append(np.log(trees.predict(grid)).reshape(BINS, LEVELS))
    level = tables[0][:, 0]
    added = np.stack(tables) - level[:, None]
    changed = changed_minds(waits, before)
    return FittedPatience(cuts, level, added, changed, provenance or {})


def fit_patience(
    traces: Iterable[Trace], progress: Callable[[str, int], Any] | None = None
) -> FittedPatience:
    """Fit patience to traces, each read when its turn comes.

    ``progress`` is called with a label and the number of traces that are done.

    Raises
    ------
    TraceError
        If no job was given up.
    QuantityError
        If scikit-learn is not installed.
    """
    logs, about = [], []
    for done, trace in enumerate(traces):
        name = Path(trace.source).name
        if progress is not None:
            progress(f"waits of {name}", done)
        waits = Waits.of(trace)
        logs.append(waits)
        left = waits.wait[waits.gone]
        about.append(
            {
                "name": name,
                "sha256": trace.sha256,
                "jobs": len(waits),
                "users": len(np.unique(waits.user)),
                "given_up": len(left),
                "users_who_gave_up": len(np.unique(waits.user[waits.gone])),
                "wait_median_s": float(np.median(left)) if len(left) else None,
                "changed_minds": float(waits.replaced[waits.gone].mean()) if len(left) else None,
                "followed_after_starts": waits.followed if len(left) else None,
            }
        )
    if progress is not None:
        progress(f"fitting {plural(sum(map(len, logs)), 'job')}", len(logs))
    found = fit_waits(logs, provenance={"logs": about, "versions": versions()})
    found.provenance.update(_described(found, logs))
    return found


#: Waits after which the table of a fit says how many jobs would have been given up, s.
WITHIN = (60, 600, HOUR, 6 * HOUR, DAY, 4 * DAY)


def _described(model: FittedPatience, logs: Sequence[Waits]) -> dict[str, Any]:
    """Return what was found, fit for JSON.

    How many jobs would be given up within waits if none started, and how much more often they are
    given up at a high level of each covariate, the 90th percentile of jobs, than at a low one, the
    10th, on average over the bins.
    """
    found = Submissions(np.concatenate([waits.found.covariates for waits in logs]))
    used, within = np.zeros(len(found)), {}
    spans: list[Floats] = []
    for place in range(BINS):
        bins = np.full(len(found), place)
        used += model.hazards(found, bins)
        if EDGES[place + 1] in WITHIN:
            within[str(EDGES[place + 1])] = float(1 - np.exp(-used).mean())
        values = np.quantile(at_bins(found, bins), (0.1, 0.9), axis=0)
        spans.append(np.diff(model.added(values, np.full(2, place)), axis=0)[0])
    times = np.exp(np.mean(spans, axis=0))
    effects = dict(zip(COVARIATES, times.tolist(), strict=True))
    return {"given_up_within_s": within, "times_as_often": effects}
