"""The metrics of a record beside those of a run, and whether a base case is far from its record.

A replay in which nothing of the cluster is changed is a *base case*. It may be far from the record,
because the site scheduled otherwise, or because users submit otherwise than they did.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hpcrowd.analysis.metrics import format_metric, of_ran, words_of
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable, State
from hpcrowd.environment.quantities import parse_factor
from hpcrowd.environment.traces.trace import Trace, gave_up

#: Metrics that a record has as well as a run; the second ones only of jobs with a recorded wait.
RECORDED_USE = ("makespan_s", "utilization", "throughput_jobs_per_day")
RECORDED_WAITS = (
    "wait_mean_s", "wait_max_s", "response_mean_s", "slowdown_mean", "bounded_slowdown_mean",
)  # fmt: skip

#: A base case is far from its record if mean waits differ by more than this factor and by more than
#: these seconds, or shares of the machine in use by more than the last. Chosen here: under EASY
#: with its defaults, rigid users wait 0.45, 0.57 and 0.20 times as long as recorded on KTH,
#: SDSC-DS and HPC2N; differences between policies are often smaller.
FAR_WAIT, FAR_WAIT_S, FAR_USE = 1.5, 60.0, 0.05

#: Fewest jobs of a base case that is judged: means of fewer say little. Chosen here.
LEAST_JOBS = 100


def as_recorded(jobs: JobTable) -> JobTable:
    """Return jobs whose recorded times take the place of simulated ones; changes them."""
    jobs.submit[:] = jobs.enqueued[:] = jobs.recorded_submit
    jobs.start[:] = jobs.recorded_start
    jobs.end[:] = jobs.recorded_end
    jobs.paused[:] = UNKNOWN
    jobs.column(Column.STATE)[:] = State.COMPLETED  # not through its guard
    return jobs


def recorded_metrics(jobs: JobTable, trace: Trace, rows: Int64s) -> dict[str, Any]:
    """Return the metrics of a record by name; empty if it has no waits.

    Parameters
    ----------
    jobs
        The jobs of a run; those that were given up in the record do not count.
    trace, rows
        The record, and the row of each job in it, -1 for none.
    """
    there = np.flatnonzero(rows != UNKNOWN)
    there = there[~gave_up(trace)[rows[there]]]
    waited = trace["wait"][rows[there]] >= 0
    if not waited.any():
        return {}
    record = as_recorded(jobs.take(there))
    use = of_ran(record, trace.processors)
    waits = use if waited.all() else of_ran(record.take(np.flatnonzero(waited)), 1)
    found = {name: waits.get(name) for name in RECORDED_WAITS}
    return found | {name: use.get(name) for name in RECORDED_USE}


def far_from(record: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    """Return in which metrics a run is far from its record, in a line; empty if in none."""
    found = []
    for name in ("wait_mean_s", "utilization"):
        old, new = record.get(name), run.get(name)
        if old is None or new is None:
            continue
        if name == "utilization":
            far = abs(old - new) > FAR_USE
        else:
            low, high = sorted((old, new))
            far = high > FAR_WAIT * low and high - low > FAR_WAIT_S
        if far:
            found.append(
                f"{words_of(name)} {format_metric(name, new)}, recorded {format_metric(name, old)}"
            )
    if not found:
        return ""
    return (
        f"far from the record, with nothing changed: {'; '.join(found)}; compare a change with "
        "this base case, not with the record"
    )


def is_base(configuration: Mapping[str, Any], processors: int, recorded: int) -> bool:
    """Return whether a replay with these settings changes nothing of the cluster.

    ``processors`` is its size, and ``recorded`` that of the trace. The scheduler is the default
    one, or it runs the machine that is given.
    """
    if configuration.get("platform") or parse_factor(str(configuration.get("speed", "1x"))) != 1:
        return False
    if configuration.get("machine"):
        return True
    return processors == recorded and configuration.get("scheduler") == "easy"
