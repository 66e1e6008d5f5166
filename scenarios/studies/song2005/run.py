"""Reproduce Song et al. 2005, the user group model MUGM, from the logs it used.

Several versions of a log may be there. The one with as nearly as many jobs as Table I says is
measured; the others are named.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from hpcrowd.analysis.features.workload import Workload
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.scenarios.processes import each_in_processes
from hpcrowd.scenarios.studies.options import TRACES, Option
from hpcrowd.scenarios.studies.running import (
    ARCHIVE,
    Log,
    Steps,
    find_versions,
    log_name,
    run_study,
)
from hpcrowd.scenarios.studies.song2005.measures import KINDS, Jobs, Quality
from hpcrowd.scenarios.studies.song2005.report import Reproduction
from hpcrowd.scenarios.studies.song2005.study import SEEDS, outcomes, published_log
from hpcrowd.scenarios.terminal import Progress

#: The logs of Table I by name. The paper leaves out NASA, as unusual.
STUDIED = {
    "SDSC96": Log("SDSC-Par-1996-*.swf", f"{ARCHIVE}/l_sdsc_par/"),
    "CTC": Log("CTC-SP2-1996-*.swf", f"{ARCHIVE}/l_ctc_sp2/"),
    "KTH": Log("KTH-SP2-1996-*.swf", f"{ARCHIVE}/l_kth_sp2/"),
    "LANL-CM5": Log("LANL-CM5-1994-*.swf", f"{ARCHIVE}/l_lanl_cm5/"),
    "SDSC-SP2": Log("SDSC-SP2-1998-*.swf", f"{ARCHIVE}/l_sdsc_sp2/"),
    "SDSC95": Log("SDSC-Par-1995-*.swf", f"{ARCHIVE}/l_sdsc_par/"),
}

#: How many share the work unless said otherwise.
PROCESSES = 2


class Task(NamedTuple):
    """A fit and what is generated from it.

    Attributes
    ----------
    trace, kind
        On which log, and how users are grouped.
    seed
        Of everything random.
    """

    trace: str
    kind: str
    seed: int


@dataclass(frozen=True)
class Experiment:
    """What is measured on the logs.

    Attributes
    ----------
    traces
        Their jobs by name.
    """

    traces: dict[str, Workload]

    def __call__(self, task: Task) -> Quality:
        """Return how near generated jobs come."""
        return Jobs(self.traces[task.trace]).quality(task.kind, task.seed)


def reproduce_song2005(
    traces: Annotated[str | os.PathLike[str], TRACES],
    progress: Progress | None = None,
    *,
    seeds: Annotated[int | None, Option("Seeds of each fit; by default 8.", least=1)] = None,
    processes: int = PROCESSES,
    only: Iterable[str] = STUDIED,
) -> Reproduction:
    """Run the study on every log of it that is there.

    Parameters
    ----------
    traces
        Folder with the traces, plain or gzipped.
    progress
        Called before each step.
    seeds
        How many of each fit; :data:`~hpcrowd.scenarios.studies.song2005.study.SEEDS` unless given.
    processes
        How many share the work; the results do not depend on it.
    only
        Names of the logs to look for.

    Raises
    ------
    TraceError
        When there is no log at all, or one that cannot be read or has no job.
    QuantityError
        When a number makes no sense.
    ModelFitError
        When a library is not installed.
    """
    count = SEEDS if seeds is None else seeds
    if count < 1:
        raise QuantityError(f"seeds {count}: must be 1 or more")
    wanted = set(only)
    logs = {name: log for name, log in STUDIED.items() if name in wanted}
    found = find_versions(traces, logs)
    steps = Steps(2 * len(found) + len(found) * len(KINDS) * count, progress)
    read, facts = {}, {}
    for name, paths in found.items():
        steps.begin(f"{name}: {paths[0].name}")
        read[name], facts[name] = read_version(name, paths)
    tasks = [Task(name, kind, seed) for name in read for kind in KINDS for seed in range(count)]
    qualities: dict[str, dict[str, dict[int, Quality]]] = defaultdict(lambda: defaultdict(dict))
    for place, quality in each_in_processes(Experiment(read), tasks, processes):
        task = tasks[place]
        qualities[task.trace][task.kind][task.seed] = quality
        steps.begin(f"{task.trace}: fitted and generated")
    measured = {}
    for name, workload in read.items():
        steps.begin(f"{name}: groups")
        ordered = {
            kind: [by_seed[seed] for seed in sorted(by_seed)]
            for kind, by_seed in qualities[name].items()
        }
        measured[name] = outcomes(name, workload, ordered, range(count), facts[name])
    steps.end()
    return Reproduction(measured, count)


def read_version(name: str, paths: Sequence[Path]) -> tuple[Workload, dict[str, Any]]:
    """Return the jobs of a log, of several versions the one that comes nearest to Table I.

    Parameters
    ----------
    name
        Its name, one of :data:`STUDIED`.
    paths
        The versions, at least one.
    """
    published = int(published_log(name)["jobs"])
    read = [(path, read_trace(path)) for path in paths]
    path, trace = min(read, key=lambda one: abs(len(one[1]) - published))
    workload = Workload.from_trace(trace, "all", name=log_name(path))
    return workload, {
        "source": path.name,
        "sha256": trace.sha256,
        "other_versions": [other.name for other in paths if other != path],
    }


def run_song2005(traces: Path, *, seeds: int | None, out: Path | None, as_json: bool) -> bool:
    """Reproduce the study for the command line; return whether all required figures are reached.

    Parameters
    ----------
    traces
        Folder with the traces.
    seeds
        How many of each fit; None takes the usual number.
    out
        Folder to write; None writes nothing.
    as_json
        Print exactly one JSON object instead of tables.
    """
    return run_study(
        lambda progress: reproduce_song2005(traces, progress, seeds=seeds), out=out, as_json=as_json
    )
