"""Reproduce Zakay and Feitelson 2015 from the traces it used.

Every log is simulated with conventional (rigid), adjusted, distribution and fluid users under EASY,
and with the first and the last also under FIFO. What a seed changes: the draws of the users, and,
but for the first seed, the order of the jobs that were submitted in the same second, which the log
leaves open. So models that draw nothing have a range too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from hpcrowd.analysis.run import Run
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.kinds.replay import replay
from hpcrowd.scenarios.studies.pages import trace_facts
from hpcrowd.scenarios.studies.running import LOGS, Steps, find_logs, run_study, swap_ties
from hpcrowd.scenarios.studies.zakay2015.measures import (
    COLUMNS,
    MODELS,
    SIMULATIONS,
    LogOutcomes,
    outcome_of,
    recorded_outcome,
)
from hpcrowd.scenarios.studies.zakay2015.report import Reproduction
from hpcrowd.scenarios.terminal import Progress

#: The logs of the study, in the order in which they are shown.
STUDIED = {name: LOGS[name] for name in COLUMNS}

#: What all simulations have in common: the defaults of a replay. The paper does not say what it
#: took; see the readings in ``docs/studies/zakay2015.md``.
COMMON = {"processors": "requested", "requested": "given", "overrun": "keep"}

#: What differs by log. The jobs of CEA Curie ran on 80,640 processors in thin nodes; the other
#: 12,672 of the header's MaxProcs are in fat and hybrid nodes (note in the header of the log).
SETTINGS = {"CEA": {"nodes": "80640"}}

#: Seeds of a log, and of one that has more lines than this.
SEEDS, SEEDS_OF_LARGE, LARGE = 10, 5, 50_000

#: Steps of a log: reading, the identity, and its simulations.
STEPS = 2


def reproduce_zakay2015(
    traces: str | os.PathLike[str],
    progress: Progress | None = None,
    *,
    seeds: int | None = None,
    only: Iterable[str] = COLUMNS,
) -> Reproduction:
    """Run the study on every log of it that is there.

    Parameters
    ----------
    traces
        Folder with the traces, plain or gzipped.
    progress
        Called before each step.
    seeds
        Seeds of each simulation; 10 unless given, 5 for logs of more than 50,000 lines.
    only
        Names of the logs to look for.

    Raises
    ------
    TraceError
        When there is no trace at all, or one that cannot be read.
    QuantityError
        When ``seeds`` is less than 1.
    """
    if seeds is not None and seeds < 1:
        raise QuantityError(f"seeds {seeds}: at least 1")
    wanted = set(only)
    paths = find_logs(traces, {name: log for name, log in STUDIED.items() if name in wanted})
    steps = Steps(len(paths) * (STEPS + len(SIMULATIONS)), progress)
    logs = {}
    for log, path in paths.items():
        steps.begin(f"{log}: reading {path.name}")
        logs[log] = study_log(log, read_trace(path), seeds, steps)
    steps.end()
    return Reproduction(logs)


def study_log(
    log: str, trace: Trace, seeds: int | None = None, steps: Steps | None = None
) -> LogOutcomes:
    """Run all simulations of a log.

    Parameters
    ----------
    log
        A name of :data:`hpcrowd.scenarios.studies.zakay2015.measures.COLUMNS`.
    trace
        Its trace.
    seeds
        See :func:`reproduce_zakay2015`.
    steps
        To be told of each step.
    """
    steps = steps or Steps(0, None)
    if seeds is None:
        seeds = SEEDS if len(trace) <= LARGE else SEEDS_OF_LARGE
    steps.begin(f"{log}: recorded schedule")
    base = simulate(trace, log, "adjusted", "recorded")
    traces = [trace, *(swap_ties(trace, seed) for seed in range(1, seeds))]
    outcomes = {}
    for model, scheduler in SIMULATIONS:
        steps.begin(f"{log}: {model}, {'FIFO' if scheduler == 'fcfs' else 'EASY'}, {seeds} seeds")
        outcomes[model, scheduler] = [
            outcome_of(simulate(one, log, model, scheduler, seed=seed), seed)
            for seed, one in enumerate(traces)
        ]
    jobs = base.jobs
    return LogOutcomes(
        log=log,
        recorded=recorded_outcome(base),
        outcomes=outcomes,
        moved=int(np.count_nonzero(jobs.submit != jobs.recorded_submit)),
        user_jobs=np.unique(jobs.user, return_counts=True)[1],
        facts={**trace_facts(base), "processors": base.processors},
        settings={**COMMON, **SETTINGS.get(log, {})},
    )


def simulate(trace: Trace, log: str, model: str, scheduler: str = "easy", **changes: Any) -> Run:
    """Run one simulation; ``changes`` replace fields of the configuration.

    Parameters
    ----------
    trace
        The log.
    log, model, scheduler
        Its name, a name of :data:`MODELS`, and a scheduler of a replay.
    """
    choices: dict[str, Any] = {
        "users": MODELS[model],
        "scheduler": scheduler,
        **COMMON,
        **SETTINGS.get(log, {}),
        **changes,
    }
    return replay(trace, compiled=choices["users"] == "rigid", **choices)


def run_zakay2015(traces: Path, *, seeds: int | None, out: Path | None, as_json: bool) -> bool:
    """Reproduce the study for the command line; return whether all required figures are reached.

    Parameters
    ----------
    traces
        Folder with the traces.
    seeds
        Seeds of each simulation; None chooses by the size of the log.
    out
        Folder to write; None writes nothing.
    as_json
        Print exactly one JSON object instead of tables.
    """
    return run_study(
        lambda progress: reproduce_zakay2015(traces, progress, seeds=seeds),
        out=out,
        as_json=as_json,
    )
