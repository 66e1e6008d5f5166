"""What-ifs of machines of nodes: runs before and after a change, for two kinds of users.

A script names a change of the machine, and perhaps of what jobs ask of it. The log is replayed on
the machine before and after, by users who submit as recorded (rigid) and by users who keep their
think times; one table compares the runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.curves import Floats
from hpcrowd.environment.clock import HOUR, WEEK
from hpcrowd.environment.jobs import Int64s, JobTable, name_of
from hpcrowd.environment.machine.demand import partitions_asked
from hpcrowd.environment.machine.files.reading import machine_given
from hpcrowd.environment.machine.layout import Layout
from hpcrowd.environment.machine.model import Machine
from hpcrowd.environment.requests import Ask, Requests
from hpcrowd.environment.traces.formats.common.base import FormatOptions
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.requests import requests_of
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.whatif.machine.made_up import made_up_log, made_up_machine
from hpcrowd.scenarios.whatif.scripts import USERS, ScriptTable, script

if TYPE_CHECKING:
    from hpcrowd.analysis.run import Run

#: Called with the jobs after they have been read: changes ``jobs.requests``, what they ask of the
#: machine.
Asks = Callable[[JobTable], None]

#: Most accounts with a line of their own, those with the most work.
MOST_ACCOUNTS = 8

SCHEDULER = "slurm"


@dataclass(frozen=True)
class Site:
    """A log, and the machine that it comes from."""

    trace: Trace
    machine: Machine

    @property
    def name(self) -> str:
        """The name for titles."""
        return Path(self.trace.source).name


@dataclass(frozen=True)
class Change:
    """A change of a machine."""

    title: str  #: of the table
    machine: Machine  #: the machine after it
    asks: Asks | None = None  #: what the change does to the requests of jobs; None for nothing


def made_up_site() -> Site:
    """Return the site of :mod:`hpcrowd.scenarios.whatif.machine.made_up`."""
    with TemporaryDirectory() as folder:
        log = Path(folder, "made-up site")
        log.write_text(made_up_log(), encoding="utf-8")
        return Site(read_trace(log, options=FormatOptions(zone="UTC")), made_up_machine())


def read_site(log: str, machine: str) -> Site:
    """Return the site of a log in any format, and of a machine as ``--machine`` takes it."""
    return Site(read_trace(log), machine_given(machine))


def site_of(*files: str) -> Site:
    """Return the site of a log and a machine, or the made-up site without them."""
    return read_site(*files) if files else made_up_site()


@dataclass(frozen=True)
class MachineWhatIf:
    """Runs before and after a change of a machine, by users, see ``USERS``."""

    before: dict[str, Run]
    after: dict[str, Run]

    def pairs(self) -> Iterator[tuple[Run, Run | None]]:
        """Yield each run, after a change with the one before it."""
        for users in self.before:
            yield self.before[users], None
            yield self.after[users], self.before[users]

    def table(self, title: str) -> ScriptTable:
        """Return the comparison as a table: a line for each number, a column for each run."""
        columns = [lines_of(run, before) for run, before in self.pairs()]
        names = [
            name
            for name in dict.fromkeys(name for column in columns for name in column)
            if not name.startswith(COUNTS) or any(one.get(name, "0") != "0" for one in columns)
        ]
        names.sort(key=_section)
        rows = [(name, *(column.get(name, "-") for column in columns)) for name in names]
        head = [f"{users}\n{when}" for users in self.before for when in ("before", "after")]
        return ScriptTable(title, ["", *head], rows, words=1)


def machine_what_if(
    site: Site, change: Change, *, users: Sequence[str] = USERS, **common: Any
) -> MachineWhatIf:
    """Replay a log on its machine, and on the changed one.

    Parameters
    ----------
    site
        The log and the machine.
    change
        The change.
    users
        Behaviours to compare.
    **common
        Fields of :class:`~hpcrowd.scenarios.kinds.replay.ReplayConfig` that all runs have in
        common.
    """
    from hpcrowd.scenarios.kinds.replay import ReplayConfig, prepare

    def run(behaviour: str, machine: Machine, asks: Asks | None) -> Run:
        settings = {"scheduler": SCHEDULER, **common, "users": behaviour, "machine": machine}
        config = ReplayConfig.configure(**settings)
        prepared = prepare(site.trace, config, follows=behaviour != "rigid")
        if asks is not None:
            jobs = prepared.record.jobs
            found = requests_of(site.trace, prepared.converted.source_row)
            jobs.requests = plain_requests(jobs) if found is None else found
            asks(jobs)
        return config.stage(prepared).run()

    return MachineWhatIf(
        {behaviour: run(behaviour, site.machine, None) for behaviour in users},
        {behaviour: run(behaviour, change.machine, change.asks) for behaviour in users},
    )


def ask_for_partitions(
    machine: Machine, choose: Callable[[JobTable, int, tuple[str, ...]], Sequence[str]]
) -> Asks:
    """Return a change of the partitions that jobs ask for; the machine is that before the change.

    ``choose`` is called with the jobs, a row and the partitions it asks for; returns those of now.
    """
    layout = Layout(machine)

    def asks(jobs: JobTable) -> None:
        assert jobs.requests is not None
        jobs.requests.set_texts(
            Ask.PARTITIONS,
            [
                ",".join(choose(jobs, row, partitions_asked(layout, jobs, row)))
                for row in range(len(jobs))
            ],
        )

    return asks


def plain_requests(jobs: JobTable) -> Requests:
    """Return what jobs of a log without requests ask for: memory, and the account of the group."""
    requests = Requests(len(jobs))
    known = jobs.requested_memory > 0
    requests[Ask.MEMORY_PER_CORE][known] = -(-jobs.requested_memory[known] // 1024)
    names = jobs.names.get("group", {})
    requests.set_texts(Ask.ACCOUNT, [names.get(group, "") for group in jobs.group.tolist()])
    return requests


def gpus_of(jobs: JobTable, row: int) -> int:
    """Return how many GPUs a job asks for, in all or on each node; 0 for none."""
    if jobs.requests is None:
        return 0
    asked = (Ask.GPUS, Ask.GPUS_PER_NODE, Ask.GPUS_PER_TASK)
    return max(0, *(int(jobs.requests[ask][row]) for ask in asked))


# ---- the table --------------------------------------------------------------------------------

#: The order of the lines, by how their names begin.
SECTIONS = (
    "mean wait (h)", "median wait", "wait in", "wait of", "cores", "GPUs", "work done",
    "mean lateness", "jobs rejected", "rejected", "runs preempted", "work preempted", "users",
)  # fmt: skip

#: Lines that are left out if they are 0 in all runs.
COUNTS = ("jobs rejected", "runs preempted", "work preempted")


def _section(name: str) -> int:
    return next(place for place, begin in enumerate(SECTIONS) if name.startswith(begin))


def lines_of(run: Run, before: Run | None) -> dict[str, str]:
    """Return the numbers of a run by name, with their units.

    ``before`` is the run before the change, by the same users; None if it is that run itself.
    """
    metrics, jobs = run.metrics, run.jobs
    wait = (jobs.start - jobs.submit)[jobs.over]
    home = next(iter(run.parts["nodes"].account.values()))
    lost = metrics["preempted_processor_h"]
    lines = {
        "mean wait (h)": _hours(metrics["wait_mean_s"]),
        "median wait (h)": _hours(float(np.median(wait)) if len(wait) else None),
        **{
            f"wait in {name} (h)": _hours(one["wait_mean_s"])
            for name, one in home["partitions"].items()
        },
        **{f"wait of {name} (h)": _hours(mean) for name, mean in account_waits(run).items()},
        "cores in use (%)": _percent(metrics["utilization"]),
        "GPUs in use (%)": _percent(metrics["gpu_utilization"]),
        "work done (proc-h per week)": f"{work_per_week(run):,.0f}",
        "mean lateness (h)": _hours(metrics["lateness_mean_s"]),
        "jobs rejected": f"{metrics['jobs_rejected']:,}",
        **{f"rejected: {reason}": f"{count:,}" for reason, count in home["rejected"].items()},
        "runs preempted": f"{metrics['runs_preempted']:,}",
        "work preempted (proc-h)": f"{lost:,.0f}",
    }
    return lines if before is None else lines | paired_lines(before, run)


def paired_lines(before: Run, run: Run) -> dict[str, str]:
    """Return how much longer users wait than the same users did before, each counted once."""
    from hpcrowd.analysis.metrics import per_user
    from hpcrowd.analysis.paired import user_difference

    waits = [per_user(one.jobs)["wait_mean_s"] for one in (before, run)]
    found = user_difference(waits[0], waits[1])
    if found is None:
        return {}
    low, high = found.estimate.low, found.estimate.high
    lines = {"users' change of wait (h)": _signed(found.estimate.mean)}
    if low is not None and high is not None:
        lines["users' 95 % interval (h)"] = f"{_signed(low)} to {_signed(high)}"
    lines["users better off (%)"] = _percent(found.better)
    lines["users worse off (%)"] = _percent(found.worse)
    return lines


def account_waits(run: Run) -> dict[str, float | None]:
    """Return the mean wait of each account, s, those with the most work first."""
    jobs = run.jobs
    names = accounts_of(jobs)
    work: dict[str, int] = {}
    size = (jobs.processors * jobs.run_time).tolist()
    for name, processor_seconds in zip(names.tolist(), size, strict=True):
        work[name] = work.get(name, 0) + processor_seconds
    largest = sorted(work, key=lambda name: (-work[name], name))[:MOST_ACCOUNTS]
    waits = jobs.start - jobs.submit
    return {name: _mean(waits[(names == name) & jobs.over]) for name in sorted(largest)}


def accounts_of(jobs: JobTable) -> Any:
    """Return the name of each job's account, or else of its group, shape (jobs,)."""
    asked = [""] * len(jobs) if jobs.requests is None else jobs.requests.texts(Ask.ACCOUNT)
    groups = [name_of(jobs.names, "group", group) for group in jobs.group.tolist()]
    return np.array([one or group for one, group in zip(asked, groups, strict=True)], np.object_)


def work_per_week(run: Run) -> float:
    """Return the processor-hours per week that jobs asked for and ran, while work was to come.

    From the first to the last recorded submission, so that the time in which the last jobs run out
    does not count. Neither do preempted runs, nor cores of whole nodes that a job did not ask for.
    """
    jobs, ran = run.jobs, run.jobs.ran
    begin, end = int(jobs.recorded_submit.min()), int(jobs.recorded_submit.max())
    inside = np.minimum(jobs.end[ran], end) - np.maximum(jobs.start[ran], begin)
    processors = jobs.processors
    asked = run.reading.recorded("requested_processors", len(jobs)).astype(np.int64)
    processors = np.where(asked > 0, asked, processors)
    used = float(processors[ran] @ np.maximum(inside, 0))
    return used / HOUR * WEEK / max(end - begin, 1)


def _mean(values: Int64s | Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _hours(seconds: float | None) -> str:
    return "-" if seconds is None else f"{round(seconds / HOUR, 2) + 0.0:,.2f}"


def _signed(seconds: float) -> str:
    return f"{round(seconds / HOUR, 2) + 0.0:+,.2f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


# ---- the command line -------------------------------------------------------------------------


def machine_script(name: str, change: Callable[[Site], Change]) -> Callable[..., int]:
    """Return the main function of a script, which asks about a change of a site.

    It takes a log and a machine, or none for the made-up site, and prints the table.
    """

    def tables(site: Site) -> list[ScriptTable]:
        asked = change(site)
        return [machine_what_if(site, asked).table(f"{asked.title}: {site.name}")]

    module = f"{__package__}.{name}"
    return script(name, tables, module=module, takes="[LOG MACHINE]", read=site_of)
