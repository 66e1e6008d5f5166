"""Reproduce the tables and figures of a paper from the traces it used.

Madon, Da Costa and Pierson 2024 replay two logs of the Parallel Workloads Archive under six
platforms, each with rigid users, with think times between jobs (a0) and between sessions (a60).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.scenarios.kinds.replay import replay
from hpcrowd.scenarios.studies.madon2024.measures import EXPERIMENTS, REPLAYS, LogRuns
from hpcrowd.scenarios.studies.madon2024.report import Reproduction
from hpcrowd.scenarios.studies.options import TRACES
from hpcrowd.scenarios.studies.running import LOGS, Steps, find_logs, run_study
from hpcrowd.scenarios.terminal import Progress

if TYPE_CHECKING:
    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.traces.trace import Trace


#: The logs of the study (section 5.1).
STUDIED = {"KTH": LOGS["KTH"], "SDSC": LOGS["SDSC-SP2"]}

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
    traces: Annotated[str | os.PathLike[str], TRACES], progress: Progress | None = None
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
    steps = Steps(len(paths) * (1 + len(EXPERIMENTS) * len(REPLAYS)), progress)
    logs = {}
    for log, path in paths.items():
        steps.begin(f"{log}: reading {path.name}")
        trace = read_trace(path)
        runs: dict[tuple[str, str], Run] = {}
        for experiment in EXPERIMENTS:
            for users in REPLAYS:
                steps.begin(f"{log}: {experiment} {users}")
                runs[experiment, users] = simulate(trace, experiment, users)
        logs[log] = LogRuns(log, runs)
    steps.end()
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
    return find_logs(folder, STUDIED, ["KTH"])


def run_madon2024(traces: Path, *, out: Path | None, as_json: bool) -> bool:
    """Reproduce the study for the command line; return whether every bound holds.

    Parameters
    ----------
    traces
        Folder with the traces.
    out
        Folder to write; None writes nothing.
    as_json
        Print exactly one JSON object instead of tables.
    """
    return run_study(
        lambda progress: reproduce_madon2024(traces, progress), out=out, as_json=as_json
    )
