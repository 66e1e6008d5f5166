"""The study: tables, required figures and pictures of plans and their recorded runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from hpcrowd.analysis.features.panels import begin
from hpcrowd.analysis.pictures.plots import COLOURS, LEGEND, new_figure
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.limits.numbers import check_within
from hpcrowd.scenarios.studies.options import SEED, SHARED_BY, Option
from hpcrowd.scenarios.studies.render import Picture, Rows, Table, markdown_table, range_text
from hpcrowd.scenarios.studies.running import run_tasks
from hpcrowd.scenarios.studies.slurm.forecasts import FUTURES, Forecasts, forecasts_of, weeks_before
from hpcrowd.scenarios.studies.slurm.measures import (
    CAUSES,
    Comparison,
    Difference,
    Distance,
    by_cause,
    mean,
    parting,
)
from hpcrowd.scenarios.studies.slurm.outcomes import (
    Effect,
    Outcome,
    Simulate,
    Spread,
    Waits,
    effect_rows,
    effects_of,
    outcome,
    pairs_of,
    plans_of,
)
from hpcrowd.scenarios.studies.slurm.recorded_logs import FILES, load_any
from hpcrowd.scenarios.studies.slurm.records import Record, file_of
from hpcrowd.scenarios.studies.slurm.schedules import Simulated
from hpcrowd.scenarios.studies.study import PublishedStudy, plain
from hpcrowd.scenarios.terminal import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# ---- pictures --------------------------------------------------------------------------------

#: Labels of waits, s.
TIMES = {1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", HOUR: "1 h", 10 * HOUR: "10 h"}


def starts_figure(one: Outcome) -> Figure:
    """Return simulated starts by those of the run, and the distribution of differences.

    On the left is the typical simulation, on the right each of them.
    """
    figure = new_figure(
        11, 5.2, f"Starts of {one.ours.starts.jobs:,} jobs",
        f"{one.name}; left: typical simulation; right: each simulation",
    )  # fmt: skip
    left, right = figure.subplots(1, 2)
    figure.subplots_adjust(left=0.07, right=0.98, bottom=0.11, top=0.82, wspace=0.2)
    begin(left, "start of each job, h since the plan's start")
    starts = np.array(one.ours.starts_of, float).reshape(-1, 2) / HOUR
    most = float(starts.max(initial=1.0))
    left.plot([0, most], [0, most], color=COLOURS["grey"], linewidth=0.8)
    left.scatter(starts[:, 1], starts[:, 0], s=7, color=COLOURS["blue"], alpha=0.6, linewidths=0)
    left.set(xlabel=f"recorded, {one.name}", ylabel="simulated")
    begin(right, "cumulative distribution of the differences between starts")
    for pairs, colour, width, label in (
        (one.draws, "blue", 0.5, "simulated and recorded"),
        (one.own, "orange", 1.6, "between recorded runs"),
    ):
        for place, pair in enumerate(pairs):
            apart = np.sort([abs(a - b) for a, b in pair.starts_of])
            share = np.arange(1, len(apart) + 1) / len(apart)
            right.step(np.maximum(apart, 1), 100 * share, where="post", color=COLOURS[colour],
                       linewidth=width, label=label if not place else None)  # fmt: skip
    right.set_xscale("log")
    right.set_xticks(list(TIMES), labels=list(TIMES.values()))
    right.set(ylabel="jobs, %", ylim=(0, 100))
    right.legend(**LEGEND, loc="lower right")
    return figure


def waits_figure(one: Outcome) -> Figure:
    """Return the mean wait in each partition and of each user, with that of each recorded run."""
    figure = new_figure(
        11, 4.4, "Mean waits", f"{one.name}; bars: the recorded range; points: each simulation"
    )
    panels = figure.subplots(
        1, 2, width_ratios=[max(len(one.partitions), 1), max(len(one.users), 1)]
    )
    figure.subplots_adjust(left=0.07, right=0.98, bottom=0.1, top=0.8, wspace=0.16)
    for axes, what, waits in zip(
        panels, ("partition", "user"), (one.partitions, one.users), strict=True
    ):
        begin(axes, f"mean wait by {what}, min")
        for place, found in enumerate(waits.values()):
            low, high = min(found.runs) / 60, max(found.runs) / 60
            axes.bar(place, high - low, 0.5, bottom=low, color=COLOURS["grey"], alpha=0.35)
            axes.scatter([place - 0.12] * len(found.runs), np.array(found.runs) / 60, s=14,
                         color=COLOURS["grey"], label=None if place else "recorded")  # fmt: skip
            axes.scatter([place + 0.12] * len(found.draws), np.array(found.draws) / 60, s=5,
                         color=COLOURS["blue"], alpha=0.6)  # fmt: skip
            axes.scatter([place + 0.12], [found.ours / 60], s=30, marker="D",
                         color=COLOURS["blue"],
                         label=None if place else "simulated, median")  # fmt: skip
        axes.set_xticks(range(len(waits)), labels=list(waits))
        axes.set_ylim(bottom=0)
    panels[0].legend(**LEGEND)
    return figure


# ---- the study -------------------------------------------------------------------------------

#: Jobs in the tables of differences.
LISTED = 10

#: Simulations of each plan, with other phases each; and of each mechanism on the study's page.
PHASES, PAGE_PHASES = 9, 2

#: Most of them, so that a mistyped number does not run for days.
MOST_PHASES = 1000


@dataclass
class Slurm(PublishedStudy):
    """Recorded runs of a real Slurm, replayed."""

    #: What the replays of each run reached, by its name.
    traces: dict[str, Outcome]
    #: Replays of each run, and the first of their seeds.
    phases: int = 1
    seed: int = 0
    #: What mechanisms do that were switched off, if that was asked for.
    effects: Sequence[Effect] = field(default_factory=list)
    #: Forecasts at the samples, Slurm's and ours, if that was asked for.
    forecasts: Forecasts | None = None

    def tables(self) -> Sequence[Table]:
        """Return starts, partitions, users, reasons, priorities, causes and single jobs."""
        ones = self.traces.values()
        found = {
            "starts": [row for one in ones for row in start_rows(one)],
            "partitions": [row for one in ones for row in partition_rows(one)],
            "users": [
                [one.name, name, waits.spread.text(), range_text(waits.runs, ".0f")]
                for one in ones
                for name, waits in one.users.items()
            ],
            "reasons": [row for one in ones for row in reason_rows(one)],
            "priorities": [
                [one.name, part.name, f"{part.compared:,}", f"{100 * part.near:.1f}",
                 f"{part.mean:.4g}", f"{part.most:.4g}"]
                for one in ones for part in one.parts.values()
            ],
            "causes": [row for one in ones for row in cause_rows(one)],
            "largest": [
                difference_row(one, found) for one in ones for found in one.differences[:LISTED]
            ],
            "earliest": [
                difference_row(one, found)
                for one in ones
                for found in parting(one.differences)[:LISTED]
            ],
        }  # fmt: skip
        if self.effects:
            found["mechanisms"] = effect_rows(self.effects)
        if self.forecasts:
            found["forecasts"] = self.forecasts.rows()
        return self.tables_of(found)

    def summary(self) -> list[str]:
        """Return what was reached, and what recorded runs themselves differ by."""
        lines = [f"{self.score} required figures reached"]
        for one in self.traces.values():
            reached = sum(need.holds for need in one.requirements)
            middle = {what: _spread(one, what).text() for what in ("mean", "median")}
            said = (
                f"{one.name}: {reached} of {len(one.requirements)}; starts {middle['mean']} s "
                f"apart in the mean, {middle['median']} s in the median"
            )
            if one.own:
                whose = "recorded runs of other plans" if one.borrowed else "recorded runs"
                said += (
                    f"; {whose} {_mean(one.own, 'mean'):.0f} s and "
                    f"{_mean(one.own, 'median'):.0f} s from each other"
                )
            if one.among:
                apart = Spread.of([pair.mean for pair in one.among])
                said += f"; simulations {apart.text()} s from each other"
            lines.append(said)
        if self.phases > 1:
            lines.append(
                f"Simulated figures are medians of {self.phases} simulations with other phases "
                "each, and their range"
            )
        return lines

    def pictures(self) -> Sequence[Picture]:
        """Return the pictures of each run."""
        return [
            Picture.of(f"{one.name.lower()}-{kind}", draw, one)
            for one in self.traces.values()
            for kind, draw in (("starts", starts_figure), ("waits", waits_figure))
        ]

    def data(self) -> dict[str, Any]:
        """Return the figures of each run, and every job whose starts differ."""
        return {
            "phases": self.phases,
            "seed": self.seed,
            "runs": {name: {**one.facts, **plain(one)} for name, one in self.traces.items()},
            "effects": plain(self.effects),
            "forecasts": None if self.forecasts is None else self.forecasts.to_dict(),
        }

    def more_parts(self, traces: Path) -> dict[str, str]:
        """Return the tables of mechanisms and of forecasts for the page, from additional runs."""
        records = load_all([traces])
        tables = self.tables_of(
            {
                "mechanisms": effect_rows(effects_of(records, PAGE_PHASES, self.seed)),
                "forecasts": forecasts_of(records, FUTURES, self.seed).rows(),
            }
        )
        return {one.part: markdown_table(one.heading, one.rows, one.left) for one in tables}

    def rows(self) -> Rows:
        """Return every job whose starts differ."""
        return self.row_heading, [
            [one.name, str(found.key), found.line.user, found.line.partition, found.mine.start,
             found.theirs.start, found.cause, found.detail, str(found.mine), str(found.theirs)]
            for one in self.traces.values()
            for found in one.differences
        ]  # fmt: skip


def reproduce_slurm(
    records: Annotated[
        str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        Option("Folder of recorded runs, or of one.", kind=Path),
    ],
    progress: Progress | None = None,
    *,
    phases: Annotated[int, Option("Replays of each run, with other timers each.", 1)] = PHASES,
    mechanisms: Annotated[
        int, Option("Simulations with each mechanism off, for a table; 0 for none.", 0)
    ] = 0,
    forecasts: Annotated[
        int, Option("Futures at each sample, for a table of forecasts; 0 for none.", 0)
    ] = 0,
    seed: Annotated[int, SEED] = 0,
    workers: Annotated[int, SHARED_BY] = 1,
) -> Slurm:
    """Replay recorded runs of a real Slurm, and set the starts beside Slurm's.

    Records are folders of runs, or folders with such folders in them; runs with the same plan are
    compared with each other too. Replays are those of ``hpcrowd replay`` with seeds from ``seed``
    on, by which timers are drawn; 20 futures at each sample
    take some minutes. Raises QuantityError if a number is too small, and TraceError if a folder
    holds no recorded run, something is missing or malformed, or, for forecasts, no run has samples
    of ``squeue --start``.
    """
    from hpcrowd.scenarios.studies.slurm.simulated import replay

    check_within("phases", phases, 1, MOST_PHASES)
    check_within("mechanisms", mechanisms, 0, MOST_PHASES)
    check_within("forecasts", forecasts, 0, MOST_PHASES)
    folders = [records] if isinstance(records, str | os.PathLike) else list(records)
    runs = load_all([Path(one) for one in folders])
    if forecasts:
        weeks_before(runs)  # says what is missing before the work begins
    study = compare_records(runs, partial(replay, seed=seed), phases, progress, workers)
    study.seed = seed
    if mechanisms:
        study.effects = effects_of(runs, mechanisms, seed, progress, workers)
    if forecasts:
        study.forecasts = forecasts_of(runs, forecasts, seed, progress, workers)
    return study


def compare_records(
    records: Iterable[Path | Record],
    simulate: Simulate,
    phases: int = 1,
    progress: Progress | None = None,
    workers: int = 1,
) -> Slurm:
    """Simulate recorded runs, or those of folders, and compare.

    Progress is called before the first simulation and after each. Raises TraceError as
    :func:`load_all`.
    """
    loaded = [one for one in records if isinstance(one, Record)]
    plans = plans_of(loaded + load_all(one for one in records if not isinstance(one, Record)))
    runs = [run for group in plans for run in group]
    pairs = [pair for group in plans for pair in pairs_of(group)]
    tasks = [(place, number) for place in range(len(runs)) for number in range(phases)]
    work = partial(_simulated, runs, simulate)
    done = dict(run_tasks(work, tasks, workers, progress, lambda task: runs[task[0]].name))
    found = {}
    for place, run in enumerate(runs):
        others = next([one for one in group if one is not run] for group in plans if run in group)
        simulations = [done[place, number] for number in range(phases)]
        found[run.name] = outcome(run, others, simulations, () if run.is_log else pairs)
    return Slurm(found, phases)


def _simulated(records: Sequence[Record], simulate: Simulate, task: tuple[int, int]) -> Simulated:
    """Return a draw of a run, by the places of both."""
    return simulate(records[task[0]], task[1])


def load_all(folders: Iterable[Path]) -> list[Record]:
    """Return the recorded runs in folders: each is one, has some in it, or both.

    Raises TraceError if one holds none, or something is missing or malformed.
    """
    found: dict[Path, Record] = {}
    for folder in folders:
        inside = sorted(
            {
                path.parent
                for depth in ("", "*/", "*/*/")
                for path in folder.glob(f"{depth}plan.csv*")
            }
        )
        if folder not in inside and any(file_of(folder, name) for name in FILES):
            inside.append(folder)
        if not inside and folder.is_dir():
            raise TraceError(f"{folder}: no recorded run in it; a run is a folder with a plan.csv")
        for place in inside or [folder]:
            found.setdefault(place.resolve(), load_any(place))
    return list(found.values())


# ---- rows of tables ----------------------------------------------------------------------------


def start_rows(one: Outcome) -> list[list[str]]:
    """Return how far starts are apart."""
    rows = [_start_row(one, f"simulated - {one.name}", [pair.starts for pair in one.draws])]
    if one.among:
        rows.append(_start_row(one, "simulated - simulated", one.among))
    other = " (another plan)" if one.borrowed else ""
    return rows + [
        _start_row(one, f"{pair.first} - {pair.second}{other}", [pair.starts]) for pair in one.own
    ]


def _start_row(one: Outcome, name: str, found: Sequence[Distance]) -> list[str]:
    def text(of: Callable[[Distance], float], form: str = ".0f") -> str:
        return Spread.of([of(pair) for pair in found]).text(form)

    return [
        one.name, name, text(lambda pair: pair.jobs, ",.0f"), text(lambda pair: pair.mean),
        text(lambda pair: pair.median), text(lambda pair: pair.p90),
        text(lambda pair: 100 * pair.within[0]), text(lambda pair: 100 * pair.within[1]),
        text(lambda pair: pair.pearson, ".3f"), text(lambda pair: pair.spearman, ".3f"),
        text(lambda pair: 100 * pair.nodes),
    ]  # fmt: skip


def partition_rows(one: Outcome) -> list[list[str]]:
    """Return differences and waits by partition."""
    return [_partition_row(one, name, waits) for name, waits in one.partitions.items()]


def _partition_row(one: Outcome, name: str, waits: Waits) -> list[str]:
    own = () if one.borrowed else one.own
    theirs = [pair.partitions[name] for pair in own if name in pair.partitions]
    return [
        one.name, name, f"{one.ours.partitions[name].jobs:,}",
        one.spread(lambda pair: pair.partitions[name].mean).text(),
        range_text([found.mean for found in theirs], ".0f"), waits.spread.text(),
        range_text(waits.runs, ".0f"),
        one.spread(lambda pair: pair.partitions[name].pearson).text(".2f"),
        range_text([found.pearson for found in theirs], ".2f"),
    ]  # fmt: skip


def reason_rows(one: Outcome) -> list[list[str]]:
    """Return what was said of waiting jobs.

    The last rows are how often another recorded run says the same.
    """
    pairs = one.ours.reasons.pairs
    compared = sum(pairs.values())
    same = sum(count for (mine, theirs), count in pairs.items() if mine == theirs)
    rows = [(("all", "the same"), same)] if compared else []
    different = sorted((-count, words) for words, count in pairs.items() if words[0] != words[1])
    rows += [(words, -count) for count, words in different[:LISTED]]
    own = [] if one.borrowed else [(pair, pair.reasons) for pair in one.own]
    return [
        *([one.name, *words, f"{count:,}", f"{100 * count / compared:.1f}"]
          for words, count in rows),
        *([one.name, f"all, {pair.first} for it", f"the same, {pair.second}", f"{found.same:,}",
           f"{100 * found.share:.1f}"] for pair, found in own if found.compared),
    ]  # fmt: skip


def cause_rows(one: Outcome) -> list[list[str]]:
    """Return the causes of differences."""
    found = by_cause(one.differences)
    whole = sum(seconds for _, _, seconds in found)
    return [
        [one.name, CAUSES[cause], f"{jobs:,}", f"{100 * seconds / whole:.1f}"]
        for cause, jobs, seconds in found
    ]


def difference_row(one: Outcome, found: Difference) -> list[str]:
    """Return what both schedules did with a job."""
    cause = found.cause + (f": {found.detail}" if found.detail else "")
    return [
        one.name, str(found.key), found.line.partition, found.line.user, f"{found.later:+,}",
        str(found.mine), str(found.theirs), cause,
    ]  # fmt: skip


def _spread(one: Outcome, what: str) -> Spread:
    return one.spread(lambda pair: float(getattr(pair.starts, what)))


def _mean(pairs: Sequence[Comparison], what: str) -> float:
    return mean([getattr(pair.starts, what) for pair in pairs])
