"""A finished run: its jobs, its origin, and its output as a trace."""

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
from hpcrowd.analysis.accounts.platform import sizes_of
from hpcrowd.analysis.metrics import (
    METRICS,
    bounded_slowdown,
    format_metric,
    per_user,
    slowdown,
    submitted,
    summarize,
)
from hpcrowd.environment.clock import HOUR, Clock
from hpcrowd.environment.engine.attempts import Runs, runs_of
from hpcrowd.environment.header import Header
from hpcrowd.environment.jobs import UNKNOWN, Float64s, Int64s, JobTable, State
from hpcrowd.environment.quantities import notebook_table, plural, round_half_up
from hpcrowd.environment.traces.headers import with_values
from hpcrowd.environment.traces.machine_size import without_found_size
from hpcrowd.environment.traces.trace import FIELDS, Trace, assumed, counted, jobs_in, smallest

if TYPE_CHECKING:
    import pandas as pd

    from hpcrowd.agents.behaviours.decisions import Decisions
    from hpcrowd.agents.behaviours.reactions import Note
    from hpcrowd.agents.populations.openness import Visit
    from hpcrowd.analysis.energy.account import EnergyAccount
    from hpcrowd.environment.engine.attempts import Attempt


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
    trace, source_row
        The replayed trace, and the row of each job in it, -1 for generated jobs; None without a
        trace.
    work
        The sessions of users who replay a record; None if there are none.
    after
        For users who generate work: the unit that triggered each unit, shape (units,), -1 for
        none; None if users did not react.
    waits
        Sessions and batches, each with a mask of the units whose users waited for earlier units,
        shape (units,); only for these do think times hold in the run.
    reactions
        What reactions changed in jobs, see :mod:`analysis.accounts.reactions`.
    decisions
        Decisions of users with their reasons; None if they were not logged.
    platform
        Totals of platform changes by cluster name, see
        :mod:`hpcrowd.analysis.accounts.platform`; empty without changes.
    attempts
        Runs of jobs that the platform stopped, or that were preempted.
    machines
        Totals of machines of nodes by cluster name, see :mod:`hpcrowd.analysis.accounts.nodes`;
        empty without any.
    rejections
        Why jobs can never run on a machine of nodes, by row, in Slurm's words.
    energy_account
        Energy, carbon and cost, with power over time; None without a description of power, or if
        the run was read from a folder.
    sites
        Totals of the clusters of a grid and of its grid jobs, see
        :func:`hpcrowd.analysis.accounts.platform.grid_accounts`.
    components
        If a grid split jobs: row of the first component of each row's job, shape (jobs,), see
        :mod:`hpcrowd.scenarios.kinds.grid_components`.
    population
        If users come and go: totals of arrivals, departures and weekly work, see
        :mod:`hpcrowd.analysis.accounts.population`.
    visits
        Each arrival and departure, in order of time.
    holds
        If jobs were held before they were eligible: how many, how long and why, see
        :meth:`hpcrowd.environment.holds.held.Holds.account`.
    remarks
        That its load is out of the range of its record, or that the record is concentrated, one
        line each, see :mod:`hpcrowd.analysis.accounts.record`.
    depends
        The job that each job waited for last of those that it depends on, by row.
    repaired, dropped
        Number of jobs repaired and dropped when the trace was read, by reason.
    size_note
        What the size of the machine is if the trace does not give it; empty if it does, or if the
        run sets its own.
    wall_s
        Wall time of each part of the run, s.
    stored
        The provenance in the folder that the run was read from; None otherwise.
    """

    jobs: JobTable
    processors: int
    label: str
    configuration: dict[str, Any]
    clock: Clock = field(default_factory=Clock)
    trace: Trace | None = None
    source_row: Int64s | None = None
    work: Work | None = None
    after: Int64s | None = None
    waits: Sequence[tuple[Units, NDArray[np.bool_]]] = ()
    reactions: Sequence[Note] = ()
    decisions: Decisions | None = None
    platform: dict[str, dict[str, Any]] = field(default_factory=dict)
    attempts: Sequence[Attempt] = ()
    machines: dict[str, dict[str, Any]] = field(default_factory=dict)
    rejections: Mapping[int, str] = field(default_factory=dict)
    energy_account: EnergyAccount | None = None
    sites: dict[str, dict[str, Any]] = field(default_factory=dict)
    components: Int64s | None = None
    population: dict[str, Any] = field(default_factory=dict)
    visits: Sequence[Visit] = ()
    holds: dict[str, Any] = field(default_factory=dict)
    remarks: Sequence[str] = ()
    depends: Mapping[int, int] = field(default_factory=dict)
    repaired: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    size_note: str = ""
    wall_s: dict[str, float] = field(default_factory=dict)
    stored: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        asked = self.configuration
        own = bool(asked.get("machine")) or "x" not in str(asked.get("processors", "1x"))
        if self.trace is not None and not own and not self.size_note:
            self.size_note = self.trace.size.note
        if self.stored is None and len(self.jobs) and np.all(self.jobs.state == State.REJECTED):
            self.remarks = [self._all_rejected(), *self.remarks]

    def _all_rejected(self) -> str:
        """Return why no job could run."""
        smallest = int(self.jobs.processors.min())
        why = "each is larger than the cluster that it was submitted to"
        if self.rejections:
            [(why, _)] = Counter(self.rejections.values()).most_common(1)
        elif smallest > self.processors:
            why = f"the smallest asks for {plural(smallest, 'processor')} of {self.processors:,}"
        cure = "check MaxProcs in the header of the trace, or set the size of the machine"
        return f"all {plural(len(self.jobs), 'job')} rejected: {why}; {cure}"

    def __repr__(self) -> str:
        return f"<Run {self.label}: {len(self.jobs):,} jobs>"

    def _repr_html_(self) -> str:
        """Return a table of the most important metrics, for notebooks."""
        rows = [
            (one.name, format_metric(one.name, self.metrics[one.name]), one.meaning)
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
        for name, values in self.energy_of_jobs.items():
            frame[name] = values
        if self.rejections:
            frame["rejected_for"] = frame.index.map(self.rejections)
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
        for name in self.energy_of_jobs:
            frame[name] = by_user[name].sum()
        for name, (users, values) in per_user(self.jobs).items():
            frame[name] = pd.Series(values, index=users)
        return frame

    @cached_property
    def every_run(self) -> Runs:
        """All runs of its jobs, each once, and of which job each is."""
        return runs_of(self.jobs, self.attempts)

    @property
    def runs(self) -> JobTable:
        """The table of :attr:`every_run`."""
        return self.every_run.table

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """The metrics by name, see :func:`hpcrowd.analysis.metrics.summarize`."""
        found = summarize(
            self.jobs,
            self.processors,
            jobs_in(self.dropped),
            sizes_of(self.platform),
            held=bool(self.holds),
        )
        if self.energy:
            from hpcrowd.analysis.energy.words import metrics_of as energy_metrics

            found |= energy_metrics(self.energy)
        if not self.machines:
            return found
        from hpcrowd.analysis.accounts.nodes import metrics_of

        return found | metrics_of(self.machines, found["makespan_s"])

    @property
    def source(self) -> dict[str, str] | None:
        """Name and SHA-256 checksum of the replayed trace; None for generated users."""
        if self.stored is not None:
            source: dict[str, str] | None = self.stored.get("trace")
            return source
        if self.trace is None:
            return None
        return {"source": Path(self.trace.source).name, "sha256": self.trace.sha256}

    @property
    def assumptions(self) -> list[str]:
        """What was assumed about what the trace does not give, in words, one line each."""
        read = self.source is not None or not {"trace", "files_sha256"}.isdisjoint(
            self.configuration
        )
        return assumed(self.size_note, self.clock.note if read else "")

    @property
    def notes(self) -> list[str]:
        """What reading the input dropped, repaired or assumed, and remarks, one line each."""
        from hpcrowd.analysis.accounts.population import dropped_users

        return [
            *dropped_users(self.population),
            *counted(self.repaired, self.dropped),
            *self.assumptions,
            *self.remarks,
        ]

    @property
    def is_record(self) -> bool:
        """Whether it is a recorded trace that was read, not a simulation."""
        return self.configuration.get("kind") == "recorded"

    @cached_property
    def accounts(self) -> dict[str, Any]:
        """The totals of :mod:`hpcrowd.analysis.accounts.reactions`; empty if there were none."""
        if not self.reactions:
            return {}
        from hpcrowd.analysis.accounts.reactions import account

        return account(self.jobs, self.reactions)

    @cached_property
    def energy(self) -> dict[str, Any]:
        """The totals of :meth:`hpcrowd.analysis.energy.account.EnergyAccount.summary`, if any."""
        return {} if self.energy_account is None else self.energy_account.summary()

    @cached_property
    def energy_of_jobs(self) -> Mapping[str, Float64s]:
        """The same by job: :data:`hpcrowd.analysis.energy.account.JOB_MEANING`, shape (jobs,)."""
        return {} if self.energy_account is None else self.energy_account.columns()

    def summary(self) -> dict[str, Any]:
        """Return the metrics and totals with their context, fit for JSON, without wall times."""
        return {
            **self.metrics,
            **({"reactions": self.accounts} if self.accounts else {}),
            **({"platform": self.platform} if self.platform else {}),
            **({"machines": self.machines} if self.machines else {}),
            **({"energy": self.energy} if self.energy else {}),
            **({"sites": self.sites} if self.sites else {}),
            **({"population": self.population} if self.population else {}),
            **({"holds": self.holds} if self.holds else {}),
            "trace": None if self.source is None else self.source["source"],
            "processors": self.processors,
            **({"size_note": self.size_note} if self.size_note else {}),
            **({"remarks": list(self.remarks)} if self.remarks else {}),
            "configuration": self.configuration,
            "clock": {
                "unix_start_s": self.clock.unix_start,
                "zone": str(self.clock.zone),
                "note": self.clock.note,
            },
            "repaired": dict(self.repaired),
            "dropped": dict(self.dropped),
        }

    def to_trace(self) -> Trace:
        """Return the run as a trace: simulated times, and think times in fields 17 and 18.

        Fields 17 and 18 of the first job of a session hold the job whose end released it and the
        time since then; for users who do not react they stay as recorded. Other jobs that depend on
        jobs name the last of those to end, with a think time of 0 unless it ended before.
        """
        jobs = self.jobs
        order = np.lexsort((np.arange(len(jobs)), jobs.submit))
        started, left = jobs.start != UNKNOWN, jobs.wait_ended
        columns: dict[str, NDArray[Any]] = {name: self._recorded(name) for name in FIELDS}
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
        made = self._made_up
        changed = made
        if self.reactions:
            from hpcrowd.analysis.accounts.reactions import resized

            changed = made | resized(jobs, self.reactions)
        columns["requested_processors"] = np.where(
            changed, jobs.processors, columns["requested_processors"]
        )
        if self.after is not None:
            found = preceding_of_units(jobs, self.after)
            for name, values in zip(("preceding", "think_time"), found, strict=True):
                columns[name] = np.where(made, values, columns[name])
        for units, which in self.waits:
            found = preceding_jobs(jobs, units, which)
            mine = np.zeros(len(jobs), bool)
            mine[units.rows] = np.repeat(which, np.diff(units.first))
            for name, values in zip(("preceding", "think_time"), found, strict=True):
                columns[name] = np.where(mine, values, columns[name])
        for row, before in self.depends.items():
            if columns["preceding"][row] == UNKNOWN:
                columns["preceding"][row] = jobs.number[before]
                columns["think_time"][row] = max(0, int(jobs.submit[row] - jobs.end[before]))
        for name in columns:  # one at a time, so that each large column is freed at once
            columns[name] = smallest(columns[name][order])
        names = {field: dict(known) for field, known in jobs.names.items()}
        return Trace(self._header(), columns, source=self.label, names=names)

    @property
    def _made_up(self) -> NDArray[np.bool_]:
        """Which jobs are not in the trace."""
        if self.trace is None or self.source_row is None:
            return np.ones(len(self.jobs), bool)
        made: NDArray[np.bool_] = self.source_row == UNKNOWN
        return made

    def _recorded(self, name: str) -> NDArray[Any]:
        made = self._made_up
        if self.trace is None or self.source_row is None or made.all():
            return np.full(len(self.jobs), UNKNOWN)
        values: NDArray[Any] = np.where(made, UNKNOWN, self.trace[name][self.source_row])
        return values

    def _status(self) -> NDArray[Any]:
        """Status in the Standard Workload Format; jobs that ended as recorded keep theirs."""
        recorded = self._recorded("status")
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
        if self.trace is None:
            lines = [b"; Version: 2.2", b"; Computer: simulated"]
            lines += [f"; UnixStartTime: {self.clock.unix_start}".encode()]
            lines += [f"; TimeZoneString: {self.clock.zone}".encode()]
            lines += [b"; MaxJobs: 0", b"; MaxRecords: 0", f"; MaxProcs: {size}".encode()]
        else:
            header = self.trace.header
            lines = [line.rstrip(b"\r") for line in header.lines]
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


def preceding_jobs(jobs: JobTable, units: Units, which: NDArray[np.bool_]) -> tuple[Int64s, Int64s]:
    """Return for each job the number of the job whose end released its unit, and the think time.

    Only the first job of a unit with predecessors has them; others get -1. The think time counts
    from the end of the preceding job, or from its submission if it never ran.

    Parameters
    ----------
    jobs
        The simulated jobs.
    units
        Sessions or batches.
    which
        The units whose users waited, shape (units,).
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
    """Return the same as :func:`preceding_jobs` for units of work.

    Parameters
    ----------
    jobs
        The jobs; each belongs to a unit.
    after
        The unit that triggered each unit, shape (units,), -1 for none.
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
