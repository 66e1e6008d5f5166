"""A finished run: its jobs, its origin, and its output as a trace.

:class:`Reading` is what was read for it: the replayed trace, or the folder that it comes from.
:class:`Precedence` is which job was waited for before each job was submitted: fields 17 and 18 of
the trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.work.recorded import Work
from hpcrowd.agents.work.units import Units
from hpcrowd.analysis.metrics import (
    LEAST_JOBS,
    METRICS,
    bounded_slowdown,
    far_from,
    format_metric,
    is_base,
    per_user,
    recorded_metrics,
    slowdown,
    submitted,
    summarize,
)
from hpcrowd.analysis.parts import RunParts
from hpcrowd.environment.clock import HOUR, Clock
from hpcrowd.environment.engine.attempts import RECORDED, runs_of
from hpcrowd.environment.errors import ResultsError, echo, no_attribute
from hpcrowd.environment.header import Header, without_found_size
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable, State
from hpcrowd.environment.quantities import is_multiple, notebook_table, plural, round_half_up
from hpcrowd.environment.traces.headers import date_in, notes_marked, with_values
from hpcrowd.environment.traces.trace import FIELDS, Trace, assumed, counted, jobs_in, smallest

if TYPE_CHECKING:
    import pandas as pd

    from hpcrowd.environment.engine.attempts import Attempt


@dataclass
class Reading:
    """What was read for a run."""

    #: The replayed trace, and the row of each job in it, -1 for generated jobs; None without a
    #: trace.
    trace: Trace | None = None
    rows: Int64s | None = None

    #: Number of jobs repaired and dropped when the trace was read, by reason.
    repaired: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)

    #: What the size of the machine is if the trace does not give it; empty if it does, or if the
    #: run sets its own.
    size_note: str = ""

    #: The metrics of the record, see :func:`recorded_of`; None if they have not been needed yet.
    metrics: dict[str, Any] | None = None

    #: The provenance in the folder that the run was read from; None otherwise.
    stored: dict[str, Any] | None = None

    @property
    def source(self) -> dict[str, str] | None:
        """Name and SHA-256 checksum of the replayed trace; None for generated users."""
        if self.stored is not None:
            return self.stored.get("trace")
        if self.trace is None:
            return None
        return {"source": Path(self.trace.source).name, "sha256": self.trace.sha256}

    @property
    def counted(self) -> list[str]:
        """What was repaired and dropped, one line each."""
        return counted(self.repaired, self.dropped)

    def made_up(self, jobs: int) -> NDArray[np.bool_]:
        """Return which of the jobs are not in the trace, shape (jobs,)."""
        if self.trace is None or self.rows is None:
            return np.ones(jobs, bool)
        made: NDArray[np.bool_] = self.rows == UNKNOWN
        return made

    def recorded(self, name: str, jobs: int) -> NDArray[Any]:
        """Return a field of the trace for each of the jobs, -1 if it is not in it."""
        made = self.made_up(jobs)
        if self.trace is None or self.rows is None or made.all():
            return np.full(jobs, UNKNOWN)
        return np.where(made, UNKNOWN, self.trace[name][self.rows])


@dataclass
class Precedence:
    """What jobs waited for before they were submitted."""

    #: For users who generate work: the unit that triggered each unit, shape (units,), -1 for none;
    #: None if users did not react.
    after: Int64s | None = None

    #: Sessions and batches, each with a mask of the units whose users waited for earlier units,
    #: shape (units,); only for these do think times hold in the run.
    waits: Sequence[tuple[Units, NDArray[np.bool_]]] = ()

    #: The job that each job waited for last of those that it depends on, by row.
    depends: Mapping[int, int] = field(default_factory=dict)

    def fill(
        self, columns: dict[str, NDArray[Any]], jobs: JobTable, made: NDArray[np.bool_]
    ) -> None:
        """Put preceding jobs and think times into the columns of a trace, in the order of the jobs.

        ``made`` is which jobs are not in the replayed trace, shape (jobs,).
        """
        found = [] if self.after is None else [(made, preceding_of_units(jobs, self.after))]
        for units, which in self.waits:
            mine = np.zeros(len(jobs), bool)
            mine[units.rows] = np.repeat(which, np.diff(units.first))
            found.append((mine, preceding_jobs(jobs, units, which)))
        for mine, both in found:
            for name, values in zip(("preceding", "think_time"), both, strict=True):
                columns[name] = np.where(mine, values, columns[name])
        for row, before in self.depends.items():
            if columns["preceding"][row] == UNKNOWN:
                columns["preceding"][row] = jobs.number[before]
                columns["think_time"][row] = max(0, int(jobs.submit[row] - jobs.end[before]))


def preceding_jobs(jobs: JobTable, units: Units, which: NDArray[np.bool_]) -> tuple[Int64s, Int64s]:
    """Return for each job the number of the job whose end released its unit, and the think time.

    Only the first job of a unit with predecessors has them, and only in units whose users waited
    (``which``); others get -1. The think time counts from the end of the preceding job, or from its
    submission if it never ran.
    """
    dependencies = units.dependencies
    over = np.where(jobs.end != UNKNOWN, jobs.end, jobs.submit)
    rows = units.rows
    # The last job of each unit to finish: the last in an order by unit, end and row.
    unit = np.repeat(np.arange(len(units)), np.diff(units.first))
    order = np.lexsort((rows, over[rows], unit))
    last = rows[order[units.first[1:] - 1]]
    ready = over[last][dependencies.predecessor] + dependencies.think
    # The edge that releases each unit: the last in an order by unit and time.
    decisive = np.lexsort((ready, dependencies.successor))
    successor = dependencies.successor[decisive]
    ends = np.append(successor[1:] != successor[:-1], True)[: len(successor)]
    edges = decisive[ends]
    edges = edges[which[dependencies.successor[edges]]]
    first = rows[units.first[dependencies.successor[edges]]]
    before = last[dependencies.predecessor[edges]]
    return _preceded(jobs, over, first, before)


def preceding_of_units(jobs: JobTable, after: Int64s) -> tuple[Int64s, Int64s]:
    """Return the same as :func:`preceding_jobs` for units of work, to which all jobs belong.

    ``after`` is the unit that triggered each unit, shape (units,), -1 for none.
    """
    over = np.where(jobs.end != UNKNOWN, jobs.end, jobs.submit)
    units = np.arange(len(after))
    # A job that was never submitted is not the first of its unit.
    by_submit = np.lexsort((jobs.submit, jobs.submit == UNKNOWN, jobs.unit))
    by_end = np.lexsort((over, jobs.unit))
    first = by_submit[np.searchsorted(jobs.unit[by_submit], units, side="left")]
    last = by_end[np.searchsorted(jobs.unit[by_end], units, side="right") - 1]
    known = after != UNKNOWN
    first, before = first[known], last[after[known]]
    return _preceded(jobs, over, first, before)


def _preceded(jobs: JobTable, over: Int64s, first: Int64s, before: Int64s) -> tuple[Int64s, Int64s]:
    """Return numbers and think times for all jobs, given the jobs ``before`` the ``first`` ones."""
    known = (jobs.submit[first] != UNKNOWN) & (over[before] != UNKNOWN)
    first, before = first[known], before[known]
    number, think = (np.full(len(jobs), UNKNOWN) for _ in range(2))
    number[first] = jobs.number[before]
    think[first] = jobs.submit[first] - over[before]
    return number, think


#: What :meth:`Run.to_frame` computes of each job.
OF_JOBS = ("wait", "response", "slowdown", "bounded_slowdown", "lateness")


@dataclass
class Run:
    """The result of a simulation.

    Attributes
    ----------
    jobs
        Every job with its simulated times and state.
    processors
        Initial size of the machine, or of all clusters together if there are several.
    label
        A short name for tables and pictures.
    configuration
        Everything needed to repeat the run, fit for JSON.
    clock
        Local time of the cluster.
    work
        The sessions of users who replay a record; None if there are none.
    precedence
        What jobs waited for before they were submitted.
    attempts
        Runs of jobs that the platform stopped, or that were preempted.
    reading
        What was read: the replayed trace, or the folder of the run.
    parts
        What parts contributed by name, such as ``parts["power"].account``, see
        :mod:`hpcrowd.analysis.parts`.
    remarks
        That its load is out of the range of its record, or that the record is concentrated, one
        line each, see :mod:`hpcrowd.analysis.accounts.record`.
    wall_s
        Wall time of each part of the run, s.
    """

    jobs: JobTable
    processors: int
    label: str
    configuration: dict[str, Any]
    clock: Clock = field(default_factory=Clock)
    work: Work | None = None
    precedence: Precedence = field(default_factory=Precedence)
    attempts: Sequence[Attempt] = ()
    reading: Reading = field(default_factory=Reading)
    parts: RunParts = field(default_factory=RunParts)
    remarks: Sequence[str] = ()
    wall_s: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        asked, read = self.configuration, self.reading
        own = bool(asked.get("machine")) or not is_multiple(str(asked.get("processors", "1x")))
        if read.trace is not None and not own and not read.size_note:
            read.size_note = read.trace.size.note
        if read.stored is None and len(self.jobs) and np.all(self.jobs.state == State.REJECTED):
            self.remarks = [self._all_rejected(), *self.remarks]

    def _all_rejected(self) -> str:
        """Return why no job could run."""
        smallest = int(self.jobs.processors.min())
        why = "each is larger than the cluster that it was submitted to"
        if reasons := [found for part in self.parts.values() if (found := part.rejected_for())]:
            why = reasons[0]
        elif smallest > self.processors:
            why = f"the smallest asks for {plural(smallest, 'processor')} of {self.processors:,}"
        cure = "check MaxProcs in the header of the trace, or set the size of the machine"
        return f"all {plural(len(self.jobs), 'job')} rejected: {why}; {cure}"

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self.jobs)

    def __bool__(self) -> bool:
        """Return True, also without jobs."""
        return True

    if not TYPE_CHECKING:  # which would take every name for one that is there

        def __getattr__(self, name: str) -> Any:
            """Say in one line how to get what people try."""
            if name.startswith("_"):
                raise AttributeError(name)
            frame = [column.name.lower() for column in Column]
            ways = {
                one: f"run.to_frame()[{one!r}] has it, job by job" for one in (*frame, *OF_JOBS)
            }
            ways |= {metric.name: f"it is run.metrics[{metric.name!r}]" for metric in METRICS}
            ways |= dict.fromkeys(
                ("plot", "show", "gantt"), "hc.gantt(run) and hc.pictures draw runs"
            )
            raise no_attribute(self, name, ways)

    def __repr__(self) -> str:
        return f"<Run {self.label}: {len(self.jobs):,} jobs>"

    def _repr_html_(self) -> str:
        """Return a table of the most important metrics, for notebooks."""
        rows = [
            (one.words, format_metric(one.name, self.metrics[one.name]), one.meaning)
            for one in METRICS
            if self.metrics[one.name] not in (None, 0)
        ]
        return notebook_table(repr(self), rows)

    def to_frame(self) -> pd.DataFrame:
        """Return the jobs as a frame, with what is most often computed from them.

        Returns
        -------
        frame
            The columns of :class:`~hpcrowd.environment.jobs.JobTable`, and, missing where a job has
            none: ``wait`` (s, from submission to start, or until it was taken back), ``response``
            (s, from submission to end), ``slowdown`` (response over run time, at least 1 s),
            ``bounded_slowdown`` (with run times of at least 10 s, never below 1), and ``lateness``
            (s, simulated minus recorded submission). Names of users, groups and so on are in
            columns such as ``user_name``, if the trace has them. ``rejected_for`` is the reason of
            jobs that can never run, if a machine of nodes rejected any. With a description of power
            ``energy_kwh``, ``wasted_kwh``, ``carbon_kg`` and ``cost``.
        """
        jobs = self.jobs
        frame = jobs.to_frame()
        ran, late = jobs.ran, submitted(jobs)
        left, response = jobs.wait_ended, jobs.end - jobs.submit
        lasted = jobs.lasted
        for name, values, known in (
            ("wait", left - jobs.submit, left != UNKNOWN),
            ("response", response, ran),
            ("slowdown", slowdown(response, lasted), ran),
            ("bounded_slowdown", bounded_slowdown(response, lasted), ran),
            ("lateness", jobs.submit - jobs.recorded_submit, late),
        ):
            frame[name] = np.where(known, values, np.nan)
        for part in self.parts.values():
            for name, values in part.job_columns().items():
                frame[name] = frame.index.map(values) if isinstance(values, Mapping) else values
        return frame

    def users(self) -> pd.DataFrame:
        """Return a row for each user.

        Returns
        -------
        frame
            By ``user`` number: ``name`` if the trace has names; ``jobs``, and how many were
            ``jobs_completed``, ``jobs_cancelled`` and ``jobs_renounced``; ``sessions`` (if known);
            ``work_processor_h`` of the jobs that ran, and its ``share_of_work``; ``first_submit_s``
            and ``last_end_s`` since the origin; with a description of power their energy, carbon
            and cost; and the metrics that are also computed for each
            user, with units in their names, see :data:`hpcrowd.analysis.metrics.PER_USER`. Missing
            where a user has none.
        """
        import pandas as pd

        jobs = self.to_frame()
        ran = jobs["state"].isin(["completed", "killed"])
        work = (self.jobs.lasted * jobs["processors"]).where(ran, 0) / HOUR
        by_user = jobs.assign(work=work).groupby("user", sort=True)
        frame = pd.DataFrame({"jobs": by_user.size()})
        if names := self.jobs.names.get("user"):
            frame.insert(0, "name", frame.index.map(names))
        for state in ("completed", "cancelled", "renounced"):
            frame[f"jobs_{state}"] = (jobs["state"] == state).groupby(jobs["user"]).sum()
        if (self.jobs.session != UNKNOWN).any():
            known = jobs[jobs["session"] != UNKNOWN]
            frame["sessions"] = known.groupby("user")["session"].nunique()
        frame["work_processor_h"] = by_user["work"].sum()
        frame["share_of_work"] = frame["work_processor_h"] / max(work.sum(), 1e-300)
        there = jobs[jobs["submit"] != UNKNOWN].groupby("user")
        frame["first_submit_s"] = there["submit"].min()
        frame["last_end_s"] = jobs[jobs["end"] != UNKNOWN].groupby("user")["end"].max()
        for part in self.parts.values():
            for name in part.user_sums():
                frame[name] = by_user[name].sum()
        for name, (users, values) in per_user(self.jobs).items():
            frame[name] = pd.Series(values, index=users)
        return frame

    @cached_property
    def runs(self) -> JobTable:
        """All runs of its jobs, see :attr:`hpcrowd.environment.engine.attempts.Runs.table`."""
        return runs_of(self.jobs, self.attempts).table

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """The metrics by name, see :func:`hpcrowd.analysis.metrics.summarize`."""
        sizes = self.parts.sizes
        found = summarize(self.jobs, self.processors, jobs_in(self.reading.dropped), sizes)
        for part in self.parts.values():
            found |= part.metrics(self.jobs, found)
        return found

    @property
    def notes(self) -> list[str]:
        """What reading the input dropped, repaired or assumed, and remarks, one line each."""
        return [
            *(line for part in self.parts.values() for line in part.notes()),
            *self.reading.counted,
            *assumptions_of(self),
            *warnings_of(self),
        ]

    @property
    def is_record(self) -> bool:
        """Whether it is a recorded trace that was read, not a simulation."""
        return self.configuration.get("kind") == "recorded"

    def summary(self) -> dict[str, Any]:
        """Return the metrics and totals with their context, fit for JSON, without wall times."""
        read, recorded, warnings = self.reading, recorded_of(self), warnings_of(self)
        return {
            **self.metrics,
            **({"recorded": recorded} if recorded else {}),
            **{part.key: part.account for part in self.parts.values() if part.key and part.account},
            "trace": None if read.source is None else read.source["source"],
            "processors": self.processors,
            **({"size_note": read.size_note} if read.size_note else {}),
            **({"remarks": warnings} if warnings else {}),
            "configuration": self.configuration,
            "clock": {
                "unix_start_s": self.clock.unix_start,
                "zone": str(self.clock.zone),
                "note": self.clock.note,
            },
            "repaired": dict(read.repaired),
            "dropped": dict(read.dropped),
        }

    def to_trace(self) -> Trace:
        """Return the run as a trace: simulated times, and think times in fields 17 and 18.

        Fields 17 and 18 of the first job of a session hold the job whose end released it and the
        time since then; for users who do not react they stay as recorded. Other jobs that depend on
        jobs name the last of those to end, with a think time of 0 unless it ended before.
        """
        jobs, read = self.jobs, self.reading
        order = np.lexsort((np.arange(len(jobs)), jobs.submit))
        started, left = jobs.start != UNKNOWN, jobs.wait_ended
        columns: dict[str, NDArray[Any]] = {name: read.recorded(name, len(jobs)) for name in FIELDS}
        columns |= {
            "number": jobs.number,
            "submit": jobs.submit,
            "wait": np.where(left != UNKNOWN, left - jobs.submit, UNKNOWN),
            "run": np.where(started, jobs.end - jobs.start, UNKNOWN),
            "allocated_processors": jobs.processors,
            "requested_time": jobs.requested_time,
            "status": self._status(),
            "user": jobs.user,
            "group": jobs.group,
            "executable": jobs.executable,
            "queue": jobs.queue,
        }
        made = changed = read.made_up(len(jobs))
        for part in self.parts.values():
            changed = changed | part.resized(jobs)
        columns["requested_processors"] = np.where(
            changed, jobs.processors, columns["requested_processors"]
        )
        self.precedence.fill(columns, jobs, made)
        for name in columns:  # one at a time, so that each large column is freed at once
            columns[name] = smallest(columns[name][order])
        names = {field: dict(known) for field, known in jobs.names.items()}
        return Trace(self._header(), columns, source=self.label, names=names)

    def _status(self) -> NDArray[Any]:
        """Status in the Standard Workload Format; jobs that ended as recorded keep theirs."""
        recorded = self.reading.recorded("status", len(self.jobs))
        completed = np.where(recorded == UNKNOWN, 1, recorded)
        state = self.jobs.state
        status = np.select(
            [
                state == State.COMPLETED,
                (state == State.KILLED) | (state == State.FAILED),
                state == State.UNFINISHED,
            ],
            [completed, 0, UNKNOWN],
            default=5,
        )
        return status

    def _header(self) -> Header:
        """Return the header of the trace, updated by the simulation."""
        count, size = str(len(self.jobs)), str(self.processors)
        replaced = {"MaxJobs": count, "MaxRecords": count}
        if self.reading.trace is None:
            lines = [b"; Version: 2.2", b"; Computer: simulated"]
            lines += [f"; UnixStartTime: {self.clock.unix_start}".encode()]
            lines += [f"; TimeZoneString: {self.clock.zone}".encode()]
            lines += [b"; MaxJobs: 0", b"; MaxRecords: 0", f"; MaxProcs: {size}".encode()]
        else:
            header = self.reading.trace.header
            lines = [line.rstrip(b"\r") for line in notes_marked(header).lines]
            replaced["EndTime"] = date_in(header, self.clock, int(self.jobs.end.max(initial=0)))
            if self.processors != header.processors:
                lines = without_found_size(Header(lines)).lines
                replaced["MaxProcs"] = size
                nodes, recorded = header.integer("MaxNodes"), header.processors
                if nodes and recorded:
                    replaced["MaxNodes"] = str(round_half_up(nodes * self.processors / recorded))
                if header.get("MaxProcs") is None:
                    lines.append(b"; MaxProcs: 0")
        header = with_values(Header(lines), replaced)
        header.lines.append(f"; Note: simulated by hpcrowd: {self.label}".encode())
        return header


def recorded_of(run: Run) -> dict[str, Any]:
    """Return the metrics of the record of a replay by name; empty without one that has waits.

    See :func:`hpcrowd.analysis.metrics.recorded_metrics`.
    """
    read = run.reading
    if read.metrics is None:
        read.metrics = {}
        replayed = run.configuration.get("kind") == "replay"
        if replayed and read.trace is not None and read.rows is not None:
            read.metrics = recorded_metrics(run.jobs, read.trace, read.rows)
    return read.metrics


def warnings_of(run: Run) -> list[str]:
    """Return its remarks, and that it is far from its record although nothing is changed."""
    trace = run.reading.trace
    if trace is None or len(run.jobs) < LEAST_JOBS or not recorded_of(run):
        return list(run.remarks)
    base = is_base(run.configuration, run.processors, trace.processors)
    far = far_from(recorded_of(run), run.metrics) if base else ""
    return [*run.remarks, *([far] if far else [])]


def check_run(given: Any) -> None:
    """Check that something is a run; a ResultsError says how one is had."""
    if not isinstance(given, Run):
        raise ResultsError(
            f"{echo(given)}: not a run; hc.replay(trace) makes one, and hc.read_run(path) reads one"
        )


def assumptions_of(run: Run) -> list[str]:
    """Return what was assumed about what the trace does not give, in words, one line each."""
    read = run.reading.source is not None
    read = read or not {"trace", "files_sha256"}.isdisjoint(run.configuration)
    return assumed(run.reading.size_note, run.clock.note if read else "")


def headline(run: Run) -> list[str]:
    """Return lines on what was run, what was repaired or dropped, and what users did."""
    size = f"{len(run.jobs):,} jobs on {run.processors:,} processors"
    read = run.reading.trace
    trace = run.configuration.get("trace") if read is None else Path(read.source).name
    if trace:
        lines = [f"{trace}: {size}, {run.label}"]
    else:
        users = plural(len(np.unique(run.jobs.user)), "user")
        lines = [f"{run.label}: {size.replace('jobs', f'jobs of {users}', 1)}"]
    of_parts = [line for part in run.parts.values() for line in part.lines(run.configuration)]
    more = [*run.reading.counted, *again_lines(run.attempts), *of_parts]
    return lines + [f"  {line}" for line in (*more, *assumptions_of(run), *warnings_of(run))]


def again_lines(attempts: Sequence[Attempt]) -> list[str]:
    """Return a printed line on runs after which jobs were run again, as in the record."""
    stopped = [one for one in attempts if one.cause == RECORDED]
    if not stopped:
        return []
    hours = sum(one.processor_seconds for one in stopped) / HOUR
    jobs = plural(len({one.row for one in stopped}), "job")
    return [
        f"{jobs} run again as recorded, after {plural(len(stopped), 'earlier run')} of "
        f"{hours:,.1f} processor-hours"
    ]
