"""Madon et al. 2024: the study, its output, and how it is run.

Madon, Da Costa and Pierson replay two logs of the Parallel Workloads Archive under six platforms,
each with rigid users, with think times between jobs (a0) and between sessions (a60).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.scenarios.kinds.replay import replay
from hpcrowd.scenarios.studies.madon2024.figures import DPI, FIGURES, NAMES
from hpcrowd.scenarios.studies.madon2024.measures import (
    EXPERIMENTS,
    QUANTITIES,
    REPLAYS,
    ROUNDING,
    TITLES,
    WINDOW_MONTHS,
    Cell,
    LogRuns,
    Reading,
    figure5c_readings,
    statements,
    window_of,
)
from hpcrowd.scenarios.studies.options import TRACES
from hpcrowd.scenarios.studies.render import Picture, Rows, Table, record_rows
from hpcrowd.scenarios.studies.running import LOGS, Steps, find_logs, trace_facts
from hpcrowd.scenarios.studies.study import PublishedStudy, Requirement
from hpcrowd.scenarios.studies.versions import Version
from hpcrowd.scenarios.terminal import Progress

if TYPE_CHECKING:
    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.traces.trace import Trace


#: The logs of the study (section 5.1).
STUDIED = {"KTH": LOGS["KTH"], "SDSC": LOGS["SDSC-SP2"]}

#: Settings of all simulations. The paper does not say which processors and requested times it uses;
#: these come closest to its figures.
COMMON = {"job_processors": "requested", "requested": "at-least:2x", "overrun": "keep"}

#: What each experiment changes (section 5.2).
SETTINGS: dict[str, dict[str, str]] = {
    "easy": {},
    "fcfs": {"scheduler": "fcfs"},
    "perf*2": {"speed": "2x"},
    "perf/2": {"speed": "0.5x"},
    "infra*2": {"processors": "2x"},
    "infra/2": {"processors": "0.5x"},
}

#: How users behave in each replay (section 5.1).
USERS = {
    "rigid": {"users": "rigid"},
    "a0": {"users": "think-time", "sessions": "arrival:job"},
    "a60": {"users": "think-time", "sessions": "arrival:60m"},
}

#: Jobs of each log (section 5.1).
JOBS = {"KTH": 28_475, "SDSC": 67_667}

#: The paper.
PAPER = (
    "M. Madon, G. Da Costa, J.-M. Pierson: Replay with Feedback: How does the performance of HPC "
    "system impact user submission behavior? Future Generation Computer Systems 155, 2024, "
    "66-79, doi:10.1016/j.future.2024.01.024"
)

#: Headings of the ranges in the text, and of the readings of Fig. 5c.
RANGE = ("what", "ours", "published", "where")
READING = ("users with one job", "divisor", "jobs", "method", "distance", "equal as printed")


@dataclass
class Madon2024(PublishedStudy):
    """Our simulations compared with the published figures.

    Attributes
    ----------
    logs
        The simulations by log, KTH first.
    """

    name = "madon2024"
    about = (
        "Madon et al. 2024: Tables 1 and 2, Fig. 5c and the pictures, on KTH-SP2 (and SDSC-SP2)."
    )
    title = "Replay with feedback, reproduced"
    source = PAPER
    published: ClassVar = {
        "madon2024_table1": f"{PAPER}, Table 1: makespan and waits, days",
        "madon2024_table2": f"{PAPER}, Table 2: lateness",
        "madon2024_figure5c": f"{PAPER}, Fig. 5c: percentiles over users of additional lateness, s",
        "madon2024_text": f"{PAPER}, ranges given in the text",
    }
    verdict_names: ClassVar = {}  # the requirements are in the cells
    counted_in = "section 5.1"

    logs: dict[str, LogRuns]

    @cached_property
    def cells(self) -> list[Cell]:
        """Every published figure with ours."""
        return [cell for log in self.logs.values() for cell in log.cells()]

    @cached_property
    def readings(self) -> list[Reading]:
        """Every reading of Fig. 5c on every log, nearest to the published one first."""
        return figure5c_readings(self.logs.values())

    @cached_property
    def requirements(self) -> list[Requirement]:
        """The cells that have a bound."""
        return [
            Requirement(
                cell.log,
                f"{name_of(cell.experiment)} {cell.replay} {cell.quantity}",
                str(cell.ours),
                f"{cell.printed}, within {cell.tolerance}",
                cell.holds,
            )
            for cell in self.cells
            if cell.holds is not None
        ]

    def tables(self) -> Sequence[Table]:
        """Return the published tables with ours, ranges of the text, and readings of Fig. 5c."""
        return (
            *(self._table(table, log) for table in TITLES for log in self.logs),
            Table("Ranges in the text, KTH", RANGE, self._range_rows(), 4, "tables"),
            Table(
                "Readings of Fig. 5c, KTH", READING, self._reading_rows(), 4, "readings",
                terminal=False, html=False,
            ),
        )  # fmt: skip

    def _table(self, table: str, log: str) -> Table:
        """Return a published table with our figures of a log; those out of bounds are bold."""
        short = table.partition("_")[2]
        cells = [cell for cell in self.cells if (cell.table, cell.log) == (short, log)]
        rows = []
        for (experiment, users), group in groupby(cells, lambda one: (one.experiment, one.replay)):
            row, held = [name_of(experiment), users], []
            for cell in group:
                ours, *others = texts(cell)
                row += [f"**{ours}**" if cell.holds is False else ours, *others]
                held += [] if cell.holds is None else [cell.holds]
            rows.append([*row, "-" if not held else "yes" if all(held) else "no"])
        heading, narrow = ["experiment", "users"], ["experiment", "users"]
        for quantity in QUANTITIES:
            if quantity.table == table:
                heading += [quantity.heading, "published", "deviation"]
                narrow += [quantity.narrow, "paper", "off by"]
        if any(cell.holds is not None for cell in cells):
            narrow.append("holds")
        return Table(
            f"{TITLES[table]}, {log}", [*heading, "bounds hold"], rows, 2, "tables",
            columns=dict(enumerate(narrow)), once=True,
        )  # fmt: skip

    def _range_rows(self) -> list[list[str]]:
        """Return our ranges and the published ones as printed, as :data:`RANGE`."""
        return [
            [
                found.what,
                f"{found.our_low:.1f} to {found.our_high:.1f} {found.unit}",
                f"{found.low:g} to {found.high:g} {found.unit}",
                found.place,
            ]
            for found in statements(self.logs["KTH"])
        ]

    def _reading_rows(self, most: int = 6) -> list[list[str]]:
        """Return the nearest readings of Fig. 5c and the best of each other kind."""
        readings = [reading for reading in self.readings if reading.log == "KTH"]
        shown = readings[:most]
        for kind in ("singles", "divisor", "jobs", "method"):
            seen = {getattr(reading, kind) for reading in shown}
            for reading in readings:
                if getattr(reading, kind) not in seen:
                    seen.add(getattr(reading, kind))
                    shown.append(reading)
        shown.sort(key=lambda reading: reading.distance)
        return [
            [one.singles, one.divisor, one.jobs, one.method, f"{one.distance:.3f}", str(one.exact)]
            for one in shown
        ]

    def summary(self) -> list[str]:
        """Return how many bounds hold, and how rounding is treated."""
        return [
            f"{self.score} bounds hold; {len(self.cells)} figures compared",
            ROUNDING[0].upper() + ROUNDING[1:],
        ]

    def versions(self) -> Sequence[Version]:
        """Return the jobs of each log."""
        return [
            Version(name, len(log.baseline.jobs), JOBS[name]) for name, log in self.logs.items()
        ]

    def pictures(self) -> Sequence[Picture]:
        """Return the figures of the paper, of each log."""
        return [
            Picture.of(f"{name}_{log.log.lower()}", draw, log, dpi=DPI)
            for log in self.logs.values()
            for name, draw in FIGURES.items()
        ]

    def data(self) -> dict[str, Any]:
        """Return every figure, range and reading, and the simulations with their metrics."""
        return {
            **self.origin(),
            "rounding": ROUNDING,
            "bounds": {
                "cells": len(self.requirements),
                "hold": len(self.requirements) - len(self.failures),
            },
            "cells": [asdict(cell) for cell in self.cells],
            "statements": [asdict(found) for found in statements(self.logs["KTH"])],
            "figure5c_readings": [asdict(found) for found in self.readings],
            "runs": [
                {
                    "log": log.log,
                    "experiment": experiment,
                    "replay": replay,
                    "processors": run.processors,
                    "configuration": run.configuration,
                    "metrics": run.metrics,
                    "windows": [asdict(window_of(run, months)) for months in WINDOW_MONTHS],
                }
                for log in self.logs.values()
                for (experiment, replay), run in log.runs.items()
            ],
        }

    def rows(self) -> Rows:
        """Return every cell."""
        return record_rows([asdict(cell) for cell in self.cells])

    def origin(self) -> dict[str, Any]:
        """Return the traces."""
        return {"traces": {name: trace_facts(log.baseline) for name, log in self.logs.items()}}

    def page_parts(self) -> dict[str, str]:
        """Return the generated parts of its page; the tables end with how many bounds hold."""
        parts = super().page_parts()
        return parts | {"tables": f"{parts['tables']}\n\n{self.summary()[0]}."}

    def more_parts(self, traces: Path) -> dict[str, str]:
        """Return the spread under small changes of the log, and the results of other readings."""
        from hpcrowd.scenarios.studies.madon2024.sensitivity import sensitivity_parts

        return sensitivity_parts(read_trace(find_logs(traces, STUDIED, ["KTH"])["KTH"]))


def texts(cell: Cell) -> tuple[str, str, str]:
    """Return ours, published and the deviation of a cell as printed.

    Ours has the digits of the published one. The deviation is in percent of the published figure
    where that has a unit and is at least a hundred units of its last digit, else in its unit.
    """
    decimals = len(cell.printed.partition(".")[2])
    if cell.ours is None or cell.deviation is None:
        return "-", cell.printed, "-"
    ours = f"{round(cell.ours, decimals) + 0.0:.{decimals}f}"
    large = cell.unit and abs(cell.published) >= 100 * 10**-decimals
    if cell.relative_deviation is not None and large:
        percent = 100 * cell.relative_deviation
        places = 1 if abs(percent) < 100 else 0
        deviation = f"{round(percent, places) + 0.0:+.{places}f} %"
    else:
        places = decimals + 1 if decimals else 0
        deviation = f"{round(cell.deviation, places) + 0.0:+.{places}f}"
    return ours, cell.printed, deviation


def name_of(experiment: str) -> str:
    """Return the name of an experiment as printed."""
    return NAMES.get(experiment, "recorded log")


def reproduce_madon2024(
    traces: Annotated[str | os.PathLike[str], TRACES], progress: Progress | None = None
) -> Madon2024:
    """Run the 18 simulations on KTH, and on SDSC if its trace is available.

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
    paths = find_logs(traces, STUDIED, ["KTH"])
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
    return Madon2024(logs)


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
    return replay(trace, **choices)
