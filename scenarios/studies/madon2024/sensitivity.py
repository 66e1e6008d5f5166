"""How far the figures of Madon et al. 2024 depend on what the paper does not say.

Covers: the spread of each experiment under changes below the resolution of the log, and how many of
our bounds hold under other readings of the text.

Story: a published figure can be reached only as closely as the simulation is stable. Two changes
are below the resolution of the log: jobs of the same second change places in the queue; every job
runs 0 or 1 s longer. If a figure moves as far as ours lies from the published one, the
difference says nothing about the readings. If it does not move, a wrong reading shows.

The tables are generated parts of the study's page, and take one to two minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, override

import numpy as np

from hpcrowd.agents.behaviours.composed import Composed
from hpcrowd.agents.behaviours.user import ReplayUser
from hpcrowd.agents.behaviours.when import Release, SessionGraph
from hpcrowd.agents.work.recorded import Work
from hpcrowd.analysis.run import Run
from hpcrowd.environment.schedulers.easy import EASY
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.studies.madon2024.measures import (
    EXPERIMENTS,
    QUANTITIES,
    REPLAYS,
    LogRuns,
    Quantity,
)
from hpcrowd.scenarios.studies.madon2024.study import name_of, simulate
from hpcrowd.scenarios.studies.published import Printed, published_rows
from hpcrowd.scenarios.studies.render import markdown_table
from hpcrowd.scenarios.studies.running import swap_ties

#: Variations of each kind.
SEEDS = 20

#: The figures shown, in the order of the columns.
SHOWN = tuple(
    quantity
    for quantity in QUANTITIES
    if quantity.metric in ("makespan_s", "wait_mean_s", "wait_max_s", "lateness_mean_s")
)


def add_seconds(trace: Trace, seed: int) -> Trace:
    """Return the trace with every job that ran 0 or 1 s longer, drawn with even chances."""
    random = np.random.default_rng(seed)
    run = trace["run"].astype(np.int64)
    run += random.integers(0, 2, len(run)) * (run > 0)
    return replace(trace, columns={**trace.columns, "run": run})


class LastPredecessorGraph(SessionGraph):
    """Count the think time from the end of the last predecessor only."""

    @override
    def finished(self, user: ReplayUser, unit: int, now: int) -> Sequence[Release]:
        edges = self.units.dependencies
        first, last = edges.first[unit : unit + 2]
        think = dict(zip(edges.successor[first:last], edges.think[first:last], strict=True))
        free = super().finished(user, unit, now)
        return [release._replace(pause=int(think[release.unit])) for release in free]


class LastPredecessor(Composed):
    """Users for whom only the last predecessor counts."""

    def __init__(self, work: Work) -> None:
        super().__init__(LastPredecessorGraph(work))


class ShadowOnly(EASY):
    """Backfill only what ends before the shadow time, as footnote 6 of the paper says."""

    name = "easy without spare processors"

    @override
    def reserve(
        self, now: int, processors: int, free: int, ends: Iterable[tuple[int, int]]
    ) -> tuple[int, int]:
        return super().reserve(now, processors, free, ends)[0], 0


#: Small changes of the log, by description.
CHANGES: dict[str, Callable[[Trace, int], Trace]] = {
    "ties": swap_ties,
    "seconds": add_seconds,
}


def spread_row(traces: Iterable[Trace], experiment: str, replay: str) -> list[str]:
    """Run one simulation on several variations of a log; return a row of the table of spreads.

    It has the range and the published figure of each of :data:`SHOWN`.
    """
    runs = [simulate(trace, experiment, replay) for trace in traces]
    cells = [name_of(experiment), replay]
    for quantity in SHOWN:
        values = np.array([_value(run, quantity) for run in runs])
        printed = _printed(experiment, replay, quantity)
        if printed is None:
            cells += ["-", "-"]
        else:
            cells += [f"{values.min():.2f} to {values.max():.2f}", printed.text]
    return cells


def _value(run: Run, quantity: Quantity) -> float:
    found = run.metrics[quantity.metric]
    return float("nan") if found is None else found / quantity.per


def _printed(experiment: str, replay: str, quantity: Quantity) -> Printed | None:
    """Return the published figure for KTH, None where there is none."""
    for row in published_rows(quantity.table):
        if (row["experiment"], row["replay"]) == (experiment, replay):
            return Printed(row[f"kth_{quantity.column}"])
    return None


@dataclass(frozen=True)
class Reading:
    """Another reading of the text."""

    words: str  #: The reading in words.
    changes: dict[str, Any] = field(default_factory=dict)  #: Fields of the configuration.
    #: The simulations that it changes; the others stay the same.
    kinds: tuple[str, ...] = REPLAYS
    experiments: tuple[str, ...] = EXPERIMENTS


_REACTING = ("a0", "a60")
_EASY = tuple(name for name in EXPERIMENTS if name != "fcfs")

#: What was tried, the chosen reading first.
READINGS = (
    Reading("as chosen"),
    Reading("requested times as given (field 9)", {"requested": "given"}),
    Reading(
        "requested times as given, jobs killed there", {"requested": "given", "overrun": "kill"}
    ),
    Reading("allocated processors (field 5)", {"job_processors": "allocated"}),
    Reading(
        "a0: jobs of the same second are one session", {"sessions": "arrival:0s"}, kinds=("a0",)
    ),
    Reading(
        "think time from the last predecessor only", {"users": LastPredecessor}, kinds=_REACTING
    ),
    Reading(
        "no backfilling past the shadow time (footnote 6 to the letter)",
        {"scheduler": ShadowOnly()},
        experiments=_EASY,
    ),
)


def try_reading(trace: Trace, reading: Reading) -> LogRuns:
    """Run the 18 simulations of KTH under another reading."""
    runs = {}
    for experiment in EXPERIMENTS:
        for kind in REPLAYS:
            touched = experiment in reading.experiments and kind in reading.kinds
            changes = reading.changes if touched else {}
            runs[experiment, kind] = simulate(trace, experiment, kind, **changes)
    return LogRuns("KTH", runs)


def reading_row(trace: Trace, reading: Reading) -> list[str]:
    """Return a row of the table of readings: bounds that hold, figures equal as printed."""
    cells = [cell for cell in try_reading(trace, reading).cells() if cell.holds is not None]
    equal = 0
    for cell in cells:
        half = Printed(cell.printed).half_unit
        equal += cell.deviation is not None and abs(cell.deviation) <= half
    hold = sum(1 for cell in cells if cell.holds)
    return [reading.words, f"{hold} of {len(cells)}", f"{equal} of {len(cells)}"]


def sensitivity_parts(trace: Trace) -> dict[str, str]:
    """Return the generated parts of the page that come from this file."""
    heading = ["experiment", "users"]
    for quantity in SHOWN:
        heading += [quantity.heading, "published"]
    parts = {}
    for kind, change in CHANGES.items():
        traces = [change(trace, seed) for seed in range(SEEDS)]
        rows = [
            spread_row(traces, experiment, replay)
            for experiment in EXPERIMENTS
            for replay in REPLAYS
        ]
        parts[f"spread of {kind}"] = markdown_table(heading, rows, 2)
    rows = [reading_row(trace, reading) for reading in READINGS]
    parts["other readings"] = markdown_table(
        ["reading", "bounds hold", "equal as printed"], rows, 1
    )
    return parts
