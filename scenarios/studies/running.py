"""Common parts of reproductions: finding logs, progress, output, small changes of logs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.features.workload import Which, Workload
from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.output.guard import check_replaceable
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.engines import each_in_processes
from hpcrowd.scenarios.studies.published import csv_rows
from hpcrowd.scenarios.terminal import Progress, print_json, progress_bar, say, standard_output
from hpcrowd.scenarios.unfinished import Interrupted, Unfinished

if TYPE_CHECKING:
    from hpcrowd.analysis.run import Run
    from hpcrowd.scenarios.studies.render import Table
    from hpcrowd.scenarios.studies.study import PublishedStudy


#: Folder of the traces.
ARCHIVE = "https://www.cs.huji.ac.il/labs/parallel/workload"


@dataclass(frozen=True)
class Log:
    """A log of the Parallel Workloads Archive."""

    pattern: str  #: Name of its file there, without ``.gz``; a star stands for versions.
    page: str  #: Address of its page there.


def logs_of(study: str = "") -> dict[str, Log]:
    """Return the logs in ``logs.csv`` by the names that a study gives them, or that all share."""
    return {
        row["name"]: Log(row["pattern"], f"{ARCHIVE}/{row['page']}")
        for row in csv_rows(Path(__file__).with_name("logs.csv"))
        if row["study"] == study
    }


#: Logs by the names that studies give them; one has two.
LOGS = logs_of()


def find_logs(
    folder: str | os.PathLike[str], logs: Mapping[str, Log], required: Iterable[str] = ()
) -> dict[str, Path]:
    """Return the paths of the existing traces by log, in the order of ``logs``.

    Raises TraceError when a required one is missing, a log has several traces, or there is none.
    """
    place, found = Path(folder), {}
    for name, paths in find_versions(folder, logs, required).items():
        if len(paths) > 1:
            names = ", ".join(path.name for path in paths)
            raise TraceError(f"{place}: {names}: several traces of {name}; keep only one there")
        found[name] = paths[0]
    return found


def find_versions(
    folder: str | os.PathLike[str], logs: Mapping[str, Log], required: Iterable[str] = ()
) -> dict[str, list[Path]]:
    """Return the paths of all existing traces by log, in the order of ``logs``.

    Raises TraceError when a required one is missing, or there is none at all.
    """
    place, needed, found = Path(folder), set(required), {}
    for name, log in logs.items():
        paths = sorted({*place.glob(log.pattern), *place.glob(f"{log.pattern}.gz")})
        if paths:
            found[name] = paths
        elif name in needed:
            raise TraceError(f"{place / log.pattern}[.gz]: not found; fetch it from {log.page}")
    if not found:
        first = next(iter(logs.values()))
        raise TraceError(
            f"{place}: no trace of {', '.join(logs)}; fetch one, such as {first.pattern}.gz from "
            f"{first.page}"
        )
    return found


def nearest_versions(
    folder: str | os.PathLike[str],
    logs: Mapping[str, Log],
    jobs: Callable[[str], int],
    progress: Progress | None,
    which: Which = "completed",
) -> Iterator[tuple[str, Workload, dict[str, Any]]]:
    """Yield each existing log in the version whose number of jobs is nearest, and its file.

    ``jobs`` returns the number of jobs of a log in the paper, which counts the jobs ``which``.
    Progress is called before each log is read.
    """
    found = find_versions(folder, logs)
    steps = Steps(len(found), progress)
    for log, paths in found.items():
        steps.begin(f"{log}: reading {paths[0].name}")
        versions = [
            (path, Workload.from_trace(read_trace(path), which, name=log_name(path)))
            for path in paths
        ]
        printed = jobs(log)
        path, workload = min(versions, key=lambda one: abs(len(one[1]) - printed))
        yield (
            log,
            workload,
            {
                "source": path.name,
                "sha256": workload.sha256,
                "other_versions": [other.name for other in paths if other != path],
            },
        )
    steps.end()


def log_name(path: Path) -> str:
    """Return the name of a log's file without its suffixes."""
    return path.name.removesuffix(".gz").removesuffix(".swf")


def run_study(
    reproduce: Callable[[Progress | None], PublishedStudy], *, out: Path | None, as_json: bool
) -> bool:
    """Run a study for the command line: print it, and write it to ``out`` if given.

    With ``as_json``, print exactly one JSON object instead of tables. Returns whether every
    required figure was reached.
    """
    if out is not None:
        check_replaceable(out)
    with progress_bar() as progress:
        study = reproduce(progress)
        if out is not None:
            study.write(out)
    if as_json:
        print_json(study.to_json())
        return study.reached

    console = standard_output()
    study.show(console)
    if out is not None:
        console.print(f"Written to {out}", highlight=False, soft_wrap=True)
    return study.reached


def study_script(
    name: str, measured: Callable[[Trace, Progress], Iterable[Table]]
) -> Callable[..., int]:
    """Return the main function of a study without a paper, which prints tables of a trace.

    It is in the module ``run`` of the study's folder; ``measured`` returns the tables of a trace,
    of which those for a terminal are printed.
    """
    from hpcrowd.scenarios.whatif.scripts import ScriptTable, script

    def shown(trace: Trace) -> list[ScriptTable]:
        with progress_bar() as progress:
            tables = measured(trace, progress)
        return [
            ScriptTable(one.title, one.heading, one.rows, one.left)
            for one in tables
            if one.terminal
        ]

    return script(name, shown, module=f"{__package__}.{name}.run")


def run_tasks[Task, Result](
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    processes: int,
    progress: Progress | None,
    label: Callable[[Task], str],
    *,
    unfinished: Unfinished | None = None,
) -> Iterator[tuple[Task, Result]]:
    """Yield each task with its result, in the order in which they finish.

    Progress is called before the first task and after each, with its label. Results of finished
    tasks may be kept in ``unfinished``, as plain data by the ``name`` of the task; Interrupted is
    raised when Ctrl-C ends the work then. For the rest see
    :func:`~hpcrowd.scenarios.engines.each_in_processes`.
    """
    names = {} if unfinished is None else {task.name: task for task in tasks}  # type: ignore[attr-defined]
    kept = {} if unfinished is None else unfinished.results(names)
    if kept:
        say(f"Continuing: {len(kept)} of {len(tasks)} tasks are done.")
    yield from ((names[name], result) for name, result in kept.items())
    todo = [task for name, task in names.items() if name not in kept] if names else tasks
    if progress is not None:
        progress("simulating", len(kept), len(tasks))
    done = len(kept)
    try:
        for task, result in each_in_processes(work, todo, processes):
            done += 1
            if unfinished is not None:
                unfinished.keep(task.name, result)  # type: ignore[attr-defined]
            if progress is not None:
                progress(label(task), done, len(tasks))
            yield task, result
    except KeyboardInterrupt:
        if unfinished is None:
            raise
        raise Interrupted(
            f"interrupted: {done:,} of {plural(len(tasks), 'task')} are done and kept; the "
            "same command does the rest"
        ) from None


class Steps:
    """Counts steps and reports each before it begins."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.total = total
        self.done = 0
        self._progress = progress

    def begin(self, label: str) -> None:
        """Report that the next step begins."""
        if self._progress is not None:
            self._progress(label, self.done, self.total)
        self.done += 1

    def end(self) -> None:
        """Report that all steps are done."""
        if self._progress is not None:
            self._progress("done", self.total, self.total)


def swap_ties(trace: Trace, seed: int) -> Trace:
    """Return the trace with the job numbers shuffled among the jobs of each second.

    The log is unchanged within its resolution; how far a figure moves shows how stable it is.
    """
    random = np.random.default_rng(seed)
    submit, number = trace["submit"], trace["number"]
    drawn = random.permutation(len(trace))
    shuffled = np.lexsort((drawn, submit))
    sorted_ = np.lexsort((number, submit))
    numbers = number.copy()
    numbers[shuffled] = number[sorted_]
    return replace(trace, columns={**trace.columns, "number": numbers})


def trace_facts(run: Run) -> dict[str, Any]:
    """Return the trace that a run replays, and what was dropped or repaired when reading it."""
    trace = run.reading.trace
    return {
        "source": None if trace is None else Path(trace.source).name,
        "sha256": None if trace is None else trace.sha256,
        "jobs": len(run.jobs),
        "users": len(np.unique(run.jobs.user)),
        "jobs_dropped": dict(run.reading.dropped),
        "jobs_repaired": dict(run.reading.repaired),
    }
