"""Metrics of runs and of records, and statistics of sessions; names include the unit.

A replay in which nothing of the cluster is changed is a *base case*. It may be far from its record,
because the site scheduled otherwise, or because users submit otherwise than they did.

Waits, responses, slowdowns and the makespan count jobs that ran; lateness counts every submitted
job, including rejected ones (Madon et al. 2024, section 6).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.agents.work.graph import longest_paths
from hpcrowd.agents.work.recorded import Work
from hpcrowd.analysis.curves import Floats, processor_seconds, processors_in_use
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable, State
from hpcrowd.environment.quantities import parse_factor
from hpcrowd.environment.traces.trace import Trace, gave_up

#: Run times below this count as this long in the bounded slowdown, s.
BOUND = 10

#: Run times below this count as this long in the slowdown, s; the log's resolution.
RESOLUTION = 1

#: Percentiles over users, or sessions.
PERCENTILES = (10, 50, 90)

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


@dataclass(frozen=True)
class Metric:
    """A number that describes a run."""

    name: str  #: name, with the unit at the end
    words: str  #: name in reports, tables and pictures for people
    meaning: str  #: definition in one line

    #: Whether most runs do not have it; tables leave it out where it has no value.
    optional: bool = False


#: The metrics of :func:`summarize`, in order.
METRICS = (
    Metric("jobs_in", "jobs", "jobs that users had to submit"),
    Metric("jobs_completed", "completed jobs", "jobs that ran to their end"),
    Metric("jobs_killed", "killed jobs", "jobs stopped at their requested time"),
    Metric("jobs_rejected", "rejected jobs", "jobs that can never run on the machine"),
    Metric("jobs_cancelled", "cancelled jobs", "jobs taken back"),
    Metric("jobs_renounced", "renounced jobs", "jobs that users decided not to run"),
    Metric("jobs_failed", "failed jobs", "jobs that a failure or a preemption ended for good"),
    Metric("jobs_unfinished", "unfinished jobs", "jobs not finished when the run ended"),
    Metric("jobs_dropped", "dropped jobs", "jobs of the trace that could not be simulated"),
    Metric("makespan_s", "makespan", "first submission to last end"),
    Metric("wait_mean_s", "mean wait", "mean time from submission to start"),
    Metric("wait_max_s", "longest wait", "longest wait"),
    Metric(
        "eligible_wait_mean_s",
        "mean wait once eligible",
        "mean time from when jobs were eligible to their start; none if no job was held",
        optional=True,
    ),
    Metric("response_mean_s", "mean response time", "mean time from submission to end"),
    Metric("slowdown_mean", "mean slowdown", "mean of response over run time (at least 1 s)"),
    Metric(
        "bounded_slowdown_mean",
        "mean bounded slowdown",
        "the same with run times of at least 10 s, never below 1",
    ),
    Metric(
        "utilization",
        "utilization",
        "share of processor-seconds in use over the makespan, jobs stopped by their users included",
    ),
    Metric(
        "gpu_utilization",
        "GPU utilization",
        "share of GPU-seconds that jobs held over the makespan; none without GPUs",
        optional=True,
    ),
    Metric(
        "memory_utilization",
        "memory utilization",
        "the same of the nodes' memory; none without a machine of nodes",
        optional=True,
    ),
    Metric(
        "runs_preempted",
        "preempted runs",
        "runs stopped to make room for other jobs",
        optional=True,
    ),
    Metric(
        "preempted_processor_h",
        "preempted processor-hours",
        "processor-hours used by these runs",
        optional=True,
    ),
    Metric(
        "energy_kwh",
        "energy, kWh",
        "energy of the machine, cooling included; none without a description of its power",
        optional=True,
    ),
    Metric(
        "energy_wasted_kwh",
        "wasted energy, kWh",
        "the part of idle and sleeping nodes, of switching, and of jobs that brought no result",
        optional=True,
    ),
    Metric("energy_idle_kwh", "idle energy, kWh", "the part of nodes without a job", optional=True),
    Metric(
        "power_peak_kw",
        "highest power, kW",
        "highest power of the machine, cooling included",
        optional=True,
    ),
    Metric(
        "carbon_kg",
        "carbon, kg",
        "carbon dioxide equivalents of the energy, by the carbon intensity when it was used",
        optional=True,
    ),
    Metric(
        "energy_cost",
        "cost of energy",
        "price of the energy when it was used, and of monthly peaks unless the run is trimmed; in "
        "the tariff's currency",
        optional=True,
    ),
    Metric(
        "throughput_jobs_per_day",
        "throughput, jobs per day",
        "jobs that ended per day of the makespan",
    ),
    Metric(
        "lateness_mean_s",
        "mean lateness",
        "mean of simulated minus recorded submission (Madon Eq. 3)",
    ),
    Metric(
        "relative_lateness",
        "relative lateness",
        "1 + mean lateness over the span of submissions (Madon Eq. 4)",
    ),
    Metric(
        "additional_lateness_s",
        "additional lateness per job",
        "lateness added per job, 2 mean / (n - 1) (Madon Eq. 6)",
    ),
)

#: Metrics that are also computed for each user.
PER_USER = (
    "wait_mean_s",
    "wait_max_s",
    "response_mean_s",
    "slowdown_mean",
    "bounded_slowdown_mean",
    "lateness_mean_s",
    "relative_lateness",
    "additional_lateness_s",
)

#: Words of numbers that are not metrics of a run.
OTHER_WORDS = {
    "recorded_wait_mean_s": "mean wait as recorded",
    "week_distance": "weekly distance, 0 to 1",
}

#: Numbers over users in sweeps: name of a metric and percentile.
_OVER_USERS = re.compile(r"(?P<name>\w+)_users_p(?P<percent>\d+)")


#: How names of numbers with a unit end, and how their words do; times are shown with their own.
_ENDS = {"_processor_s": "", "_processor_h": ", processor-hours", "_s": "", "_kwh": ", kWh",
         "_kw": ", kW", "_kg": ", kg"}  # fmt: skip


def words_of(name: str) -> str:
    """Return what people call a number: its words in :data:`METRICS`, or else those of its name.

    All tables for people have these words; files and JSON have the names.

    Examples
    --------
    >>> words_of("wait_mean_s")
    'mean wait'
    >>> words_of("wait_mean_s_users_p90")
    'mean wait, 90th percentile of users'
    >>> words_of("partition.gpu.wait_mean_s")
    'mean wait (partition gpu)'
    >>> words_of("reactions.work_lost_processor_s")
    'work lost (reactions)'
    """
    if found := _OVER_USERS.fullmatch(name):
        return f"{words_of(found['name'])}, {found['percent']}th percentile of users"
    where, dot, last = name.rpartition(".")
    if dot:
        return f"{words_of(last)} ({where.replace('.', ' ')})"
    known = next((metric.words for metric in METRICS if metric.name == name), None)
    if known := known or OTHER_WORDS.get(name):
        return known
    end = next((end for end in _ENDS if name.endswith(end)), "")
    return name.removesuffix(end).replace("_", " ") + _ENDS.get(end, "")


def summarize(
    jobs: JobTable,
    processors: int,
    dropped: int = 0,
    sizes: Iterable[tuple[int, int, int]] = (),
) -> dict[str, Any]:
    """Return the metrics of a run by name; None if undefined.

    Parameters
    ----------
    jobs
        The simulated jobs.
    processors
        Initial size of the machine, or of all clusters together if there are several.
    dropped
        Number of jobs of the trace that could not be simulated.
    sizes
        Changes of the size of a cluster: s, processors before, processors after.

    Returns
    -------
    dict
        The names of :data:`METRICS`, and ``per_user``: for each of :data:`PER_USER` the 10th, 50th
        and 90th percentile over users as ``p10``, ``p50``, ``p90``. Those of the parts of a run are
        None; :attr:`hpcrowd.analysis.run.Run.metrics` adds them.
    """
    values: dict[str, Any] = {
        **dict.fromkeys(metric.name for metric in METRICS),
        "jobs_in": len(jobs),
        **{f"jobs_{state.name.lower()}": jobs.count(state) for state in State},
        "jobs_dropped": dropped,
        # In functions of their own, so that their arrays are not in memory at the same time.
        **of_ran(jobs, processors, sizes),
        **_of_lateness(jobs),
    }
    values["per_user"] = {
        name: {
            f"p{p}": _number(np.percentile(of_users, p)) if len(of_users) else None
            for p in PERCENTILES
        }
        for name, (_, of_users) in per_user(jobs).items()
    }
    return values


def of_ran(
    jobs: JobTable, processors: int, sizes: Iterable[tuple[int, int, int]] = ()
) -> dict[str, Any]:
    """Return the metrics of jobs that ran, as :func:`summarize`; empty if none did."""
    ran = jobs.over
    if not ran.any():
        return {}
    submit, start, end = jobs.submit[ran], jobs.start[ran], jobs.end[ran]
    first, last = int(submit.min()), int(end.max())
    makespan = last - first
    wait, response, run = start - submit, end - submit, jobs.lasted[ran]
    del submit, start, end
    values = {
        "makespan_s": makespan,
        "wait_mean_s": _number(wait.mean()),
        "wait_max_s": int(wait.max()),
        "response_mean_s": _number(response.mean()),
        "slowdown_mean": _number(slowdown(response, run).mean()),
        "bounded_slowdown_mean": _number(bounded_slowdown(response, run).mean()),
    }
    if makespan:
        # Not as a product of vectors: BLAS would wake its threads, which spin on after it.
        work = float((jobs.processors[ran].astype(np.float64) * run).sum()) + taken_back(
            jobs, first, last
        )
        there = processor_seconds(processors, sizes, first, last)
        values["utilization"] = _number(work / there)
        values["throughput_jobs_per_day"] = _number(len(run) * DAY / makespan)
    return values


def taken_back(jobs: JobTable, first: int, last: int) -> float:
    """Return the processor-seconds between two seconds of jobs taken back while they ran."""
    rows = np.flatnonzero((jobs.state == State.CANCELLED) & (jobs.start != UNKNOWN))
    held = processors_in_use(jobs.take(rows), np.array([first, last]))
    return float(held[0]) * (last - first)


def _of_lateness(jobs: JobTable) -> dict[str, Any]:
    """Return the metrics of submitted jobs that have a recorded submission; empty without any."""
    late = lateness(jobs)
    if late is None:
        return {}
    recorded = jobs.recorded_submit[submitted(jobs)]
    return {
        "lateness_mean_s": _number(late.mean()),
        "relative_lateness": _number(relative_lateness(late, recorded)),
        "additional_lateness_s": _number(additional_lateness(late)),
    }


def slowdown(response: Int64s, run: Int64s) -> Floats:
    """Return response time over run time; run times of 0 count as 1 s."""
    return response / np.maximum(run, RESOLUTION)


def bounded_slowdown(response: Int64s, run: Int64s) -> Floats:
    """Return max(1, response / max(run, 10 s)) (Feitelson et al. 1997)."""
    return np.maximum(1.0, response / np.maximum(run, BOUND))


def submitted(jobs: JobTable) -> NDArray[np.bool_]:
    """Return which jobs were submitted both in the record and in the simulation."""
    known: NDArray[np.bool_] = (jobs.submit != UNKNOWN) & (jobs.recorded_submit != UNKNOWN)
    return known


def lateness(jobs: JobTable) -> Int64s | None:
    """Return simulated minus recorded submission of submitted jobs, s; None without a record."""
    which = submitted(jobs)
    if not which.any():
        return None
    return jobs.submit[which] - jobs.recorded_submit[which]


def relative_lateness(late: Int64s, recorded: Int64s) -> float:
    """Return 1 + mean lateness / recorded span of submissions (Madon Eq. 4)."""
    span = float(recorded.max() - recorded.min())
    return 1 + float(late.mean()) / span if span else math.nan


def additional_lateness(late: Int64s) -> float:
    """Return 2 * mean lateness / (n - 1), s (Madon Eq. 6); NaN for a single job."""
    return 2 * float(late.mean()) / (len(late) - 1) if len(late) > 1 else math.nan


def per_user(jobs: JobTable) -> dict[str, tuple[Int64s, Floats]]:
    """Return the users that have each metric of :data:`PER_USER`, and their values.

    Users with a single job have no relative or additional lateness.
    """
    return {**_users_who_ran(jobs), **_users_who_submitted(jobs)}


def _users_who_ran(jobs: JobTable) -> dict[str, tuple[Int64s, Floats]]:
    """Return the metrics of users whose jobs ran."""
    ran = jobs.over
    owners, groups = _groups(jobs.user[ran])

    def means(values: NDArray[Any]) -> tuple[Int64s, Floats]:
        return owners, groups(values, np.add) / groups(np.ones(len(values)), np.add)

    wait = (jobs.start - jobs.submit)[ran]
    found = {
        "wait_mean_s": means(wait),
        "wait_max_s": (owners, groups(wait, np.maximum).astype(np.float64)),
    }
    del wait
    response, run = (jobs.end - jobs.submit)[ran], jobs.lasted[ran]
    return found | {
        "response_mean_s": means(response),
        "slowdown_mean": means(slowdown(response, run)),
        "bounded_slowdown_mean": means(bounded_slowdown(response, run)),
    }


def _users_who_submitted(jobs: JobTable) -> dict[str, tuple[Int64s, Floats]]:
    """Return the lateness metrics of users."""
    which = submitted(jobs)
    recorded = jobs.recorded_submit[which]
    late = jobs.submit[which] - recorded
    owners_late, groups_late = _groups(jobs.user[which])
    count = groups_late(np.ones(len(late)), np.add)
    mean = groups_late(late, np.add) / count
    span = groups_late(recorded, np.maximum) - groups_late(recorded, np.minimum)
    long, many = span > 0, count > 1
    return {
        "lateness_mean_s": (owners_late, mean),
        "relative_lateness": (owners_late[long], 1 + mean[long] / span[long]),
        "additional_lateness_s": (owners_late[many], 2 * mean[many] / (count[many] - 1)),
    }


def format_metric(name: str, value: float | None) -> str:
    """Return the value of a metric as text, formatted by the unit in its name."""
    from hpcrowd.analysis.numbers import number_text, share_text, time_text

    if name.endswith("_s"):
        return time_text(value)
    if name.endswith("utilization"):
        return share_text(value)
    if value is not None and name.startswith(("jobs_", "runs_")):
        return f"{value:,.0f}"
    return number_text(value)


def _groups(users: Int64s) -> tuple[Int64s, Callable[[NDArray[Any], np.ufunc], Floats]]:
    """Return the distinct users, and a function that reduces values by user."""
    order = np.argsort(users, kind="stable").astype(np.int32 if len(users) < 2**31 else np.int64)
    ordered = users[order]
    first = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    distinct = ordered[first]

    def reduce(values: NDArray[Any], how: np.ufunc) -> Floats:
        if not len(first):
            return np.zeros(0)
        return how.reduceat(values[order].astype(np.float64), first)

    return distinct, reduce


def _number(value: Any) -> float | None:
    """Return a float fit for JSON; None if it is not finite."""
    value = float(value)
    return value if math.isfinite(value) else None


def session_stats(jobs: JobTable, work: Work, user: int | None = None) -> dict[str, Any]:
    """Return counts and distributions of sessions, batches and dependencies.

    Parameters
    ----------
    jobs, work
        The jobs and their sessions.
    user
        Count only this user; None for all.

    Returns
    -------
    dict
        Names include the unit; a distribution has ``p10``, ``p50``, ``p90`` and ``max``. *Arity* is
        the number of sessions that wait directly for a session.

    Raises
    ------
    QuantityError
        When the trace has no such user.
    """
    sessions, edges = work.sessions, work.dependencies
    which = range(len(sessions)) if user is None else sessions.of_user(user)
    first, last = which.start, which.stop
    jobs_in = np.diff(sessions.session_first)[first:last]
    rows = sessions.rows[sessions.session_first[first] : sessions.session_first[last]]
    batches = jobs.batch[rows]
    batch_sizes = np.unique(batches, return_counts=True)[1]
    first_of_batch = np.diff(batches, prepend=-1) != 0
    batches_in = np.unique(jobs.session[rows][first_of_batch], return_counts=True)[1]
    leaving = slice(edges.first[first], edges.first[last])
    places = np.unique(sessions.user_of_session[first:last])
    return {
        "sessions_definition": str(sessions.definition),
        "jobs": len(rows),
        "users": len(places),
        "sessions": len(which),
        "batches": len(batch_sizes),
        "dependencies": len(edges.successor[leaving]),
        "sessions_without_predecessor": int(np.count_nonzero(edges.count[first:last] == 0)),
        "jobs_per_session": _spread(jobs_in),
        "batches_per_session": _spread(batches_in),
        "jobs_per_batch": _spread(batch_sizes),
        "sessions_per_user": _spread(np.diff(sessions.user_first)[places]),
        "session_length_s": _spread((sessions.end - sessions.start)[first:last]),
        "think_time_s": _spread(edges.think[leaving]),
        "longest_path_sessions": _spread(longest_paths(sessions)[places]),
        "arity": _spread(np.diff(edges.first)[first:last]),
    }


def _spread(values: ArrayLike) -> dict[str, float] | None:
    """Return percentiles and maximum; None if there are no values."""
    numbers = np.asarray(values, np.float64)
    if not len(numbers):
        return None
    spread = {f"p{p}": float(np.percentile(numbers, p)) for p in PERCENTILES}
    return spread | {"max": float(numbers.max())}


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
