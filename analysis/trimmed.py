"""Metrics of a run without its beginning and its end, and a run as one row of a table.

A run begins with an empty machine and ends with users who have gone. Of a trimmed run only the jobs
count that were submitted in a window: from a warm-up after the first submission to a cool-down
before the last one. What is measured over time, utilization and throughput, is measured in that
window, whichever jobs were then on the machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcrowd.analysis.accounts.platform import processor_seconds, sizes_of
from hpcrowd.analysis.metrics import METRICS, PER_USER, PERCENTILES, summarize
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.environment.quantities import format_duration

#: Metrics over users in a row, by name: metric and percentile.
USER_METRICS = {f"{name}_users_p{p}": (name, f"p{p}") for name in PER_USER for p in PERCENTILES}

#: Every number that each row has, in its order.
ROW_METRICS = (*(metric.name for metric in METRICS), *USER_METRICS)


def window_of(jobs: JobTable, warm_up: int, cool_down: int) -> tuple[int, int]:
    """Return the first and the last second in which a submission counts.

    Parameters
    ----------
    jobs
        The simulated jobs, at least one of them submitted.
    warm_up
        s after the first submission.
    cool_down
        s before the last submission.

    Raises
    ------
    QuantityError
        When nothing was submitted, or nothing is left between the two.
    """
    times = jobs.submit[jobs.submit != UNKNOWN]
    if not len(times):
        raise QuantityError("trim: nothing was submitted in the run, so there is no window")
    first, last = int(times.min()), int(times.max())
    if first + warm_up > last - cool_down:
        raise QuantityError(
            f"trim: warm_up {format_duration(warm_up)} and cool_down {format_duration(cool_down)} "
            f"leave nothing of submissions over {format_duration(last - first)}; take less"
        )
    return first + warm_up, last - cool_down


def trimmed_metrics(run: Run, warm_up: int = 0, cool_down: int = 0) -> dict[str, Any]:
    """Return the metrics of a run, :func:`hpcrowd.analysis.metrics.summarize`, without its ends.

    Parameters
    ----------
    run
        The run.
    warm_up, cool_down
        s that are left out, see :func:`window_of`; without both, all jobs count.

    Raises
    ------
    QuantityError
        When nothing is left.
    """
    if not warm_up and not cool_down:
        return run.metrics
    jobs = run.jobs
    begin, end = window_of(jobs, warm_up, cool_down)
    sizes = sizes_of(run.platform)
    rows = np.flatnonzero((jobs.submit >= begin) & (jobs.submit <= end))
    found = summarize(jobs.take(rows), run.processors, run.dropped.total(), sizes)
    span = end - begin
    if span:
        ran = jobs.over
        inside = np.minimum(jobs.end[ran], end) - np.maximum(jobs.start[ran], begin)
        work = float(jobs.processors[ran].astype(np.float64) @ np.maximum(inside, 0))
        ended = np.count_nonzero((jobs.end[ran] > begin) & (jobs.end[ran] <= end))
        found["utilization"] = work / processor_seconds(run.processors, sizes, begin, end)
        found["throughput_jobs_per_day"] = float(ended * DAY / span)
    else:
        found["utilization"] = found["throughput_jobs_per_day"] = None
    return found


def row_of(run: Run, warm_up: int = 0, cool_down: int = 0) -> dict[str, int | float | None]:
    """Return a run as one row: :data:`ROW_METRICS`, then what reactions and the platform did,
    and what became of the sites of a grid, or of a population.

    Parameters
    ----------
    run
        The run.
    warm_up, cool_down
        s that are left out of the metrics, see :func:`window_of`; the rest is of the whole run.
    """
    found = trimmed_metrics(run, warm_up, cool_down)
    row: dict[str, int | float | None] = {metric.name: found[metric.name] for metric in METRICS}
    row |= {name: found["per_user"][one][p] for name, (one, p) in USER_METRICS.items()}
    sites = {f"site.{name}": account for name, account in run.sites.items()}
    population = {"population": run.population} if run.population else {}
    accounts = {"reactions": run.accounts, **run.platform, **sites, **population}
    for part, numbers in accounts.items():
        for name, value in numbers.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                row[f"{part}.{name}"] = value
    return row
