"""Zakay and Feitelson 2015: the study, its output, and how it is run.

Every log is simulated with conventional (rigid), adjusted, distribution and fluid users under EASY,
and with the first and the last also under FIFO. A seed changes the draws of the users and, except
for the first seed, the order of the jobs that were submitted in the same second, which is not in
the log. So models without random draws have a range too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from hpcrowd.analysis.run import Run
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.kinds.replay import replay
from hpcrowd.scenarios.studies.options import TRACES, Option
from hpcrowd.scenarios.studies.render import (
    Picture,
    Rows,
    Table,
    required_table,
    statement_table,
)
from hpcrowd.scenarios.studies.running import LOGS, Steps, find_logs, swap_ties, trace_facts
from hpcrowd.scenarios.studies.study import PublishedStudy
from hpcrowd.scenarios.studies.zakay2015.figures import pictures_of
from hpcrowd.scenarios.studies.zakay2015.measures import (
    COLUMNS,
    MODELS,
    SIMULATIONS,
    Cell,
    LogOutcomes,
    Spread,
    cells_of,
    outcome_of,
    recorded_outcome,
)
from hpcrowd.scenarios.studies.zakay2015.statements import RULES
from hpcrowd.scenarios.terminal import Progress

#: The logs of the study, in the order in which they are shown.
STUDIED = {name: LOGS[name] for name in COLUMNS}

#: Settings of all simulations: the defaults of a replay. The paper does not give its settings; see
#: the readings in ``docs/studies/zakay2015.md``.
COMMON = {"job_processors": "requested", "requested": "given", "overrun": "keep"}

#: Settings that differ by log. The jobs of CEA Curie ran on 80,640 processors in thin nodes;
#: the other 12,672 of the header's MaxProcs are in fat and hybrid nodes (note in its header).
SETTINGS = {"CEA": {"processors": "80640"}}

#: Number of seeds of a log, and of one with more lines than this.
SEEDS, SEEDS_OF_LARGE, LARGE = 10, 5, 50_000

#: Steps of a log: reading, the identity, and its simulations.
STEPS = 2

#: The paper.
PAPER = (
    "N. Zakay, D. G. Feitelson: Preserving User Behavior Characteristics in Trace-Based Simulation "
    "of Parallel Job Scheduling. MASCOTS 2014, 51-60, published 2015, doi:10.1109/MASCOTS.2014.15"
)

#: Headings of Table I with ours.
TABLE1 = (
    "log", "users", "mean wait (s)", "least to largest", "published",
    "to conventional", "published", "to adjusted", "least to largest", "published",
)  # fmt: skip

#: The columns that fit on a terminal.
NARROW = {
    0: "log", 1: "users", 2: "wait", 3: "least to largest", 4: "paper", 5: "/ conv.", 6: "paper",
    7: "/ adj.", 9: "paper",
}  # fmt: skip

#: Headings of all simulations.
SIMULATION = (
    "log", "users", "scheduler", "seed", "wait_mean_s", "published_s", "queue_mean_jobs",
)  # fmt: skip


@dataclass
class Zakay2015(PublishedStudy):
    """User models on every available log of Table I.

    Attributes
    ----------
    traces
        The simulations by log.
    """

    name = "zakay2015"
    about = "Zakay and Feitelson 2015: Table I, Figures 5 to 10 and the text's statements."
    title = "User behaviour in trace-based simulation, reproduced"
    source = PAPER
    published: ClassVar = {
        "zakay2015_table1": f"{PAPER}, Table I: mean wait by user model and log, s"
    }
    setting = "log"
    rules = RULES
    listed = COLUMNS
    picture_colours = 64

    traces: dict[str, LogOutcomes]

    @cached_property
    def cells(self) -> list[Cell]:
        """Every figure of Table I of the available logs."""
        return [cell for log in self.traces.values() for cell in cells_of(log)]

    def tables(self) -> Sequence[Table]:
        """Return Table I with ours, the requirements, and the statements."""
        return (
            Table(
                "Table I: mean wait by user model under EASY, s", TABLE1,
                list(map(table1_row, self.cells)), 2, "table 1", columns=NARROW, once=True,
            ),
            required_table(self.requirements, "log", part="required", bold=True),
            statement_table(self.claims, self.traces, part="statements"),
        )  # fmt: skip

    def summary(self) -> list[str]:
        """Return what was reached, what holds, and which logs were missing."""
        lines = [
            f"{self.score} required figures reached; "
            f"{self.verdicts[True]} of {len(self.claims)} statements hold"
        ]
        lines.append(
            "The paper gives no numbers of jobs, so whether a log is the same version is not known"
        )
        if self.absent:
            lines.append(f"Logs of Table I that are not available: {', '.join(self.absent)}")
        return lines

    def pictures(self) -> Sequence[Picture]:
        """Return Figures 5 to 10."""
        return pictures_of(list(self.traces.values()))

    def data(self) -> dict[str, Any]:
        """Return every simulation with its seed, and Table I."""
        return {
            "logs": {name: _plain_log(log) for name, log in self.traces.items()},
            "absent": self.absent,
            "table1": [asdict(cell) for cell in self.cells],
        }

    def rows(self) -> Rows:
        """Return every simulation, one seed a row, with the published figure."""
        published = {(cell.log, cell.model): cell.published for cell in self.cells}
        return SIMULATION, [
            (
                name, model, scheduler, one.seed, one.wait_mean_s,
                published[name, model] if scheduler == "easy" else None, one.queue_mean,
            )
            for name, log in self.traces.items()
            for (model, scheduler), outcomes in log.outcomes.items()
            for one in outcomes
        ]  # fmt: skip

    def origin(self) -> dict[str, Any]:
        """Return the traces, and the settings of their simulations."""
        return {
            **super().origin(),
            "settings": {
                name: {**log.settings, "seeds": log.seeds} for name, log in self.traces.items()
            },
        }

    def more_parts(self, traces: Path) -> dict[str, str]:
        """Return other readings of the text, and the effects of the fluid model one by one."""
        from hpcrowd.scenarios.studies.zakay2015.readings import readings_parts

        return readings_parts(traces)


def table1_row(cell: Cell) -> list[str]:
    """Return a figure of Table I as the texts of :data:`TABLE1`."""
    return [
        cell.log,
        cell.model,
        f"{cell.ours.mean:,.0f}",
        _range(cell.ours, ",.0f"),
        f"{cell.published:,}",
        _text(cell.to_conventional.mean),
        f"{cell.published_to_conventional:.2f}",
        _text(cell.to_adjusted.mean),
        _range(cell.to_adjusted, ".2f"),
        f"{cell.published_to_adjusted:.2f}",
    ]


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _range(spread: Spread, form: str) -> str:
    if spread.low is None or spread.high is None:
        return "-"
    return f"{spread.low:{form}} to {spread.high:{form}}"


def _plain_log(log: LogOutcomes) -> dict[str, Any]:
    return {
        "trace": log.facts,
        "settings": log.settings,
        "seeds": log.seeds,
        "simulations": [
            {
                "users": model,
                "scheduler": scheduler,
                "seed": one.seed,
                "wait_mean_s": one.wait_mean_s,
                "lateness_mean_s": one.lateness_mean_s,
                "queue_mean_jobs": one.queue_mean,
                "submitted_after_last_recorded": one.after_last_share,
            }
            for (model, scheduler), outcomes in log.outcomes.items()
            for one in outcomes
        ],
    }


def reproduce_zakay2015(
    traces: Annotated[str | os.PathLike[str], TRACES],
    progress: Progress | None = None,
    *,
    seeds: Annotated[
        int | None, Option("Seeds of each simulation; by default 10, 5 for large logs.", least=1)
    ] = None,
    only: Iterable[str] = COLUMNS,
) -> Zakay2015:
    """Run the study on every available log.

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
    return Zakay2015(logs)


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
        Called before each step.
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
    return replay(trace, **choices)
