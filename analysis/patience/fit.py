"""Fit patience to logs: jobs given up are events at their waits, started jobs are censored then.

A row for each job and bin of waits that it saw (person-period data), with the part of the bin that
it saw, and a Poisson regression of whether it was given up there: a piecewise exponential model
(Friedman, Annals of Statistics 10, 1982).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.patience.model import BINS, EDGES, HOURS, FittedPatience, bin_of, hour_of
from hpcrowd.agents.patience.submissions import Floats, Submissions
from hpcrowd.analysis.results import versions
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError, TraceError, missing
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.trace import Trace, gave_up

#: Strength of the ridge penalty on standardised covariates, in events; our choice.
RIDGE = 1.0

#: Log of the widths of the bins, s.
WIDTHS = np.log(np.diff(EDGES))


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
        clock, gone = Clock.of(trace.header), left[rows]
        found = Submissions.of(user, size, asked, queue, submit, wait, gone, clock)
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
        from sklearn.linear_model import PoissonRegressor
    except ModuleNotFoundError:
        raise QuantityError(f"patience: {missing('scikit-learn')}") from None
    from scipy.sparse import csr_array, hstack

    covariates, places, hours, gone, parts = [], [], [], [], []
    for waits, seen in logs:
        covariates.append(waits.found.covariates[seen.job])
        places.append(seen.place)
        hours.append(hour_of(waits.found.wall[seen.job] + EDGES[seen.place]))
        gone.append(seen.gone)
        parts.append(seen.part)
    known, happened = np.concatenate(covariates), np.concatenate(gone)
    if not happened.any():
        raise TraceError(
            "patience: no job was given up in the queue (status 5, no run time, a known wait), so "
            "there is none to fit"
        )
    bins = np.concatenate(places)
    # Levels of bins deviate from a constant rate: the log of their widths is a covariate.
    known = np.column_stack([known, WIDTHS[bins]])
    mean, spread = known.mean(axis=0), np.maximum(known.std(axis=0), 1e-9)
    table = hstack(
        [
            csr_array((known - mean) / spread),
            _indicators(bins, BINS),
            _indicators(np.concatenate(hours), HOURS),
        ]
    ).tocsr()
    part = np.concatenate(parts)
    found = PoissonRegressor(alpha=RIDGE / part.sum(), solver="newton-cholesky")
    found.fit(table, happened / part, sample_weight=part)
    weights, level = found.coef_[: len(mean)] / spread, found.coef_[len(mean) : -HOURS]
    level = level + weights[-1] * WIDTHS + found.intercept_ - weights @ mean
    return FittedPatience(level, found.coef_[-HOURS:], weights[:-1], provenance or {})


def _indicators(values: Int64s, size: int) -> Any:
    from scipy.sparse import csr_array

    count = len(values)
    return csr_array((np.ones(count), values, np.arange(count + 1)), shape=(count, size))


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
