"""Reproduce the tables and figures of a paper from the traces it used.

Madon, Da Costa and Pierson 2024 replay two logs of the Parallel Workloads Archive under six
platforms, each with rigid users, with think times between jobs (a0) and between sessions (a60).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.madon2024 import EXPERIMENTS, REPLAYS, LogRuns
from analysis.madon2024_study import Reproduction
from analysis.results import check_replaceable
from environment.errors import TraceError
from environment.swf import read_swf
from scenarios.replay import replay
from scenarios.terminal import print_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analysis.run import Run
    from environment.trace import Trace

#: Called before each step with its label, how many are done, and how many there are.
Progress = Callable[[str, int, int], Any]

#: The archive page of each log, and how its file is called there (section 5.1).
LOGS = {
    "KTH": (
        "KTH-SP2-1996-2.1-cln.swf",
        "https://www.cs.huji.ac.il/labs/parallel/workload/l_kth_sp2/",
    ),
    "SDSC": (
        "SDSC-SP2-1998-4*.swf",
        "https://www.cs.huji.ac.il/labs/parallel/workload/l_sdsc_sp2/",
    ),
}

#: What all simulations have in common. The paper does not say which processors and requested
#: times it took; these come closest to its figures.
COMMON = {"processors": "requested", "requested": "at-least:2x", "overrun": "keep"}

#: What each experiment changes (section 5.2).
SETTINGS: dict[str, dict[str, str]] = {
    "easy": {},
    "fcfs": {"scheduler": "fcfs"},
    "perf*2": {"speed": "2x"},
    "perf/2": {"speed": "0.5x"},
    "infra*2": {"nodes": "2x"},
    "infra/2": {"nodes": "0.5x"},
}

#: How users behave in each replay (section 5.1).
USERS = {
    "rigid": {"users": "rigid"},
    "a0": {"users": "think-time", "sessions": "arrival:job"},
    "a60": {"users": "think-time", "sessions": "arrival:60m"},
}


def reproduce_madon2024(
    traces: str | os.PathLike[str], progress: Progress | None = None
) -> Reproduction:
    """Run the 18 simulations on KTH, and on SDSC when its trace is there.

    Parameters
    ----------
    traces
        Folder with the traces, plain or gzipped.
    progress
        Called before each step.

    Raises
    ------
    TraceError
        When the KTH trace is missing or cannot be read.
    """
    paths = find_traces(traces)
    total = len(paths) * (1 + len(EXPERIMENTS) * len(REPLAYS))
    done = 0

    def step(label: str) -> None:
        nonlocal done
        if progress is not None:
            progress(label, done, total)
        done += 1

    logs = {}
    for log, path in paths.items():
        step(f"{log}: reading {path.name}")
        trace = read_swf(path)
        runs: dict[tuple[str, str], Run] = {}
        for experiment in EXPERIMENTS:
            for users in REPLAYS:
                step(f"{log}: {experiment} {users}")
                runs[experiment, users] = simulate(trace, experiment, users)
        logs[log] = LogRuns(log, runs)
    if progress is not None:
        progress("done", total, total)
    return Reproduction(logs)


def simulate(trace: Trace, experiment: str, kind: str, **changes: Any) -> Run:
    """Run one of the simulations; ``changes`` replace fields of the configuration.

    Parameters
    ----------
    trace
        The log.
    experiment, kind
        Names of :data:`SETTINGS` and :data:`USERS`.
    """
    choices: dict[str, Any] = {**COMMON, **SETTINGS[experiment], **USERS[kind], **changes}
    compiled = isinstance(choices["users"], str) and isinstance(
        choices.get("scheduler", "easy"), str
    )
    return replay(trace, compiled=compiled, **choices)


def find_traces(folder: str | os.PathLike[str]) -> dict[str, Path]:
    """Return the path of each log's trace; SDSC only where it is there.

    Raises
    ------
    TraceError
        When KTH is missing, or a log is there more than once.
    """
    place, found = Path(folder), {}
    for log, (pattern, page) in LOGS.items():
        paths = sorted({*place.glob(pattern), *place.glob(f"{pattern}.gz")})
        if len(paths) > 1:
            names = ", ".join(path.name for path in paths)
            raise TraceError(f"{place}: {names}: several traces of {log}; leave one there")
        if paths:
            found[log] = paths[0]
        elif log == "KTH":
            raise TraceError(f"{place / pattern}[.gz]: not there; fetch it from {page}")
    return found


def run_madon2024(traces: Path, *, out: Path | None, as_json: bool) -> None:
    """Reproduce the study for the command line: print it, and write it to ``out`` if given.

    Parameters
    ----------
    traces
        Folder with the traces.
    out
        Folder to write; None writes nothing.
    as_json
        Print exactly one JSON object instead of tables.
    """
    if out is not None:
        check_replaceable(out)
    with _progress_bar() as progress:
        study = reproduce_madon2024(traces, progress)
        if out is not None:
            study.write(out)
    if as_json:
        print_json(study.to_json())
        return
    from rich.console import Console

    console = Console() if sys.stdout.isatty() else Console(width=100)
    study.show(console)
    if out is not None:
        console.print(f"Written to {out}", highlight=False, soft_wrap=True)


@contextmanager
def _progress_bar() -> Iterator[Progress | None]:
    """Give a progress callback that draws on stderr; None when that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading")

        def draw(label: str, done: int, total: int) -> None:
            bar.update(task, description=escape(label), completed=done, total=total)

        yield draw
