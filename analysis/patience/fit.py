"""Fit patience to logs: jobs given up are events at their waits, started jobs are censored then.

A row for each job and bin of waits that it saw (person-period data), with the part of the bin that
it saw, and a Poisson model of whether it was given up there: a piecewise exponential model
(Friedman, Annals of Statistics 10, 1982). Small boosted trees, each of the bin and one covariate,
add up to tables (Lou, Caruana, Gehrke and Hooker, KDD 2013). More is given up the more was before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.patience.model import BINS, EDGES, LEVELS, FittedPatience, at_bins, bin_of
from hpcrowd.agents.patience.submissions import COVARIATES, Floats, Submissions
from hpcrowd.analysis.results import versions
from hpcrowd.environment.errors import QuantityError, TraceError, missing
from hpcrowd.environment.jobs import Int64s
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
    rows
        The place of each in the log.
    """

    found: Submissions
    user: Int64s
    submit: Int64s
    wait: Int64s
    gone: NDArray[np.bool_]
    rows: Int64s

    @classmethod
    def of(cls, trace: Trace) -> Self:
        """Return those of a log, without jobs of unknown submission, wait or fate."""
        left, submit, wait = gave_up(trace), trace["submit"], trace["wait"]
        rows = np.flatnonzero((submit >= 0) & (wait >= 0) & (left | (trace["run"] >= 0)))
        rows = rows[np.argsort(submit[rows], kind="stable")]
        asked = trace["requested_processors"]
        size = np.where(asked > 0, asked, trace["allocated_processors"])[rows]
        user, submit, wait, asked, queue = (
            trace[name][rows].astype(np.int64)
            for name in ("user", "submit", "wait", "requested_time", "queue")
        )
        gone = left[rows]
        found = Submissions.of(user, size, asked, queue, submit, wait, gone)
        return cls(found, user, submit, wait, gone, rows)

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


def fit_waits(
    logs: Iterable[tuple[Waits, Seen]], provenance: dict[str, Any] | None = None
) -> FittedPatience:
    """Fit patience to what was seen of the jobs of one or more logs.

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

    together = [(waits.found.take(seen.job), seen) for waits, seen in logs]
    known = np.concatenate([at_bins(found, seen.place) for found, seen in together])
    place, gone, part = (
        np.concatenate([getattr(seen, name) for _, seen in together])
        for name in ("place", "gone", "part")
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
    return FittedPatience(cuts, level, added, provenance or {})


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
        logs.append((waits, waits.seen()))
        about.append(
            {
                "name": name,
                "sha256": trace.sha256,
                "jobs": len(waits),
                "given_up": int(waits.gone.sum()),
                "users": len(np.unique(waits.user)),
            }
        )
    if progress is not None:
        progress(f"fitting {plural(sum(len(one) for one, _ in logs), 'job')}", len(logs))
    return fit_waits(logs, {"logs": about, "versions": versions()})
