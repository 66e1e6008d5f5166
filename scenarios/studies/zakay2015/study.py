"""Zakay and Feitelson 2015: the study, its output, and how it is run.

Every log is simulated with conventional (rigid), adjusted, distribution and fluid users under EASY,
and with the first and the last also under FIFO. A seed changes the draws of the users and, except
for the first seed, the order of the jobs that were submitted in the same second, which is not in
the log. So models without random draws have a range too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from hpcrowd.analysis.curves import WEEK_HOURS, Floats, profile_distance, unevenness
from hpcrowd.analysis.features.stats import apart
from hpcrowd.analysis.pictures.plots import COLOURS, legend_above, margins, new_figure, panels, tidy
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.studies.options import TRACES, Option
from hpcrowd.scenarios.studies.render import Picture, Rows, Table, range_text
from hpcrowd.scenarios.studies.running import Steps, find_logs, swap_ties, trace_facts
from hpcrowd.scenarios.studies.study import Finding, PublishedStudy, rules_of
from hpcrowd.scenarios.studies.zakay2015.measures import (
    COLUMNS,
    COMMON,
    SETTINGS,
    SIMULATIONS,
    STUDIED,
    Cell,
    LogOutcomes,
    Outcome,
    cells_of,
    mean_shares,
    outcome_of,
    readings_parts,
    recorded_outcome,
    share_distance,
    simulate,
)
from hpcrowd.scenarios.terminal import Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# ---- pictures --------------------------------------------------------------------------------
# Each function takes the simulations of some logs and returns a figure with a panel for each log;
# :func:`pictures_of` names them. Curves are means over seeds.

#: Days of the week, for the axis.
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

#: Number of narrow panels side by side.
SIDE_BY_SIDE = 3

#: Styles of the record and the simulation.
RECORDED: dict[str, Any] = {"color": COLOURS["grey"], "linewidth": 2.6, "label": "recorded"}
SIMULATED: dict[str, Any] = {"color": COLOURS["blue"], "linewidth": 1.3}

#: Styles of the four lines of Figure 10: black FIFO and blue EASY, feedback dashed.
QUEUES: dict[tuple[str, str], dict[str, Any]] = {
    ("conventional", "easy"): {"color": COLOURS["sky"], "label": "conventional, EASY"},
    ("conventional", "fcfs"): {"color": "black", "label": "conventional, FIFO"},
    ("fluid", "easy"): {"color": COLOURS["sky"], "label": "fluid, EASY", "dashes": (4, 1.5)},
    ("fluid", "fcfs"): {"color": "black", "label": "fluid, FIFO", "dashes": (4, 1.5)},
}


def _panels(
    logs: Sequence[LogOutcomes], columns: int, size: tuple[float, float], title: str, below: str
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel for each log; ``size`` of a panel in inches."""
    columns = min(columns, len(logs))
    rows = -(-len(logs) // columns)
    width, height = max(columns * size[0], 6.0), rows * size[1] + 1.25
    figure = new_figure(width, height, title, below)
    room = margins(figure, 0.62, 0.15, 0.55, 1.05)
    axes = panels(figure, rows, columns, **room, hspace=0.52, wspace=0.22)
    for panel in axes[len(logs) :]:
        panel.remove()
    for panel, log in zip(axes, logs, strict=False):
        tidy(panel, log.log)
    return figure, axes[: len(logs)]


def _week(logs: Sequence[LogOutcomes], model: str, number: int) -> Figure:
    """Draw the week of a model and the recorded one."""
    figure, axes = _panels(
        logs, 1, (7.6, 1.25), f"Fig. {number}: arrivals in the week, {model} users",
        "jobs in each hour of the local week",
    )  # fmt: skip
    edges = np.arange(WEEK_HOURS + 1)
    for panel, log in zip(axes, logs, strict=True):
        jobs = int(log.user_jobs.sum())
        mean: Floats = np.mean([one.profile for one in log.of(model)], axis=0)
        panel.stairs(jobs * log.recorded.profile, edges, baseline=None, **RECORDED)
        panel.stairs(jobs * mean, edges, baseline=None, **SIMULATED, label=model)
        panel.set_xlim(0, WEEK_HOURS)
        panel.set_ylim(bottom=0)
        panel.set_xticks(range(0, WEEK_HOURS, DAY // HOUR), DAYS)
        for label in panel.get_xticklabels():
            label.set_horizontalalignment("left")
    axes[-1].set_xlabel("local time", fontsize=8.5)
    legend_above(figure, axes[0])
    return figure


def _activity(logs: Sequence[LogOutcomes], model: str, number: int) -> Figure:
    """Draw the distribution over users of their activity lengths."""
    figure, axes = _panels(
        logs, SIDE_BY_SIDE, (2.6, 1.9), f"Fig. {number}: activity length of users, {model}",
        "share of users active for at most so long",
    )  # fmt: skip
    for panel, log in zip(axes, logs, strict=True):
        pooled = np.concatenate([one.activity_s for one in log.of(model)])
        longest = max(int(pooled.max()), int(log.recorded.activity_s.max()), DAY) / DAY
        lines = ((log.recorded.activity_s, RECORDED), (pooled, {**SIMULATED, "label": model}))
        for lengths, style in lines:
            days = np.concatenate([[0.0], np.sort(lengths) / DAY, [1.02 * longest]])
            share = np.concatenate([[0.0], np.arange(1, len(lengths) + 1) / len(lengths), [1.0]])
            panel.step(days, share, where="post", **style)
        panel.set_xlim(0, 1.02 * longest)
        panel.set_ylim(0, 1.02)
    for panel in axes[-min(SIDE_BY_SIDE, len(axes)) :]:
        panel.set_xlabel("days from first to last submission", fontsize=8.5)
    legend_above(figure, axes[0])
    return figure


def figure10(logs: Sequence[LogOutcomes]) -> Figure:
    """Queue lengths, conventional and fluid users under EASY and FIFO (Fig. 10)."""
    figure, axes = _panels(
        logs, SIDE_BY_SIDE, (2.6, 1.9), "Fig. 10: queue lengths, with and without feedback",
        "share of time with at most so many jobs waiting",
    )  # fmt: skip
    for panel, log in zip(axes, logs, strict=True):
        drawn = {key: mean_shares([one.queue for one in log.of(*key)]) for key in QUEUES}
        longest = max(max(map(len, drawn.values())) - 1, 1)
        for key, style in QUEUES.items():
            share = np.minimum(np.cumsum(drawn[key]), 1.0)
            jobs = np.append(np.arange(len(share)), longest)
            panel.step(jobs, np.append(share, share[-1]), where="post", linewidth=1.5, **style)
        panel.set_xscale("symlog", linthresh=1, linscale=0.35)
        panel.set_xlim(0, 1.1 * longest)
        ticks = [0, *(10**power for power in range(6) if 10**power <= 1.1 * longest)]
        panel.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        panel.minorticks_off()
        panel.set_ylim(0, 1.02)
    for panel in axes[-min(SIDE_BY_SIDE, len(axes)) :]:
        panel.set_xlabel("jobs waiting", fontsize=8.5)
    legend_above(figure, axes[0])
    return figure


#: Figures that compare a model with the record, by number.
BESIDE_RECORD = {
    5: (_week, "adjusted"),
    6: (_week, "distribution"),
    7: (_activity, "distribution"),
    8: (_week, "fluid"),
    9: (_activity, "fluid"),
}

#: Captions of these.
WORDS = {_week: "Arrivals in the week", _activity: "Activity length per user"}


def pictures_of(logs: Sequence[LogOutcomes]) -> list[Picture]:
    """Return Figures 5 to 10."""
    found = [
        Picture(
            f"figure{number}",
            f"{WORDS[draw]}, {model} users and the record (Fig. {number}).",
            partial(draw, logs, model, number),
        )
        for number, (draw, model) in BESIDE_RECORD.items()
    ]
    return [*found, Picture.of("figure10", figure10, logs)]


# ---- statements of the text ------------------------------------------------------------------
# The paper shows most of it in pictures and gives no numbers. Each statement becomes a measure and
# a rule; the bounds of the rules are ours. All figures are means over seeds.

#: A quantity is much smaller than another when it is less than this share of it.
MUCH_SMALLER = 0.5

#: Two distributions are close up to this Kolmogorov-Smirnov distance.
CLOSE = 0.15

#: The slots in which windows open are peaks from this multiple of their recorded share on.
SHARP = 1.5

#: Users are hyperactive when they have this many times as many jobs as the median user.
HYPERACTIVE = 10

#: "A few" users are fewer than this share of them.
FEW = 0.1


#: The finding on ratios of waits if there are none.
NOBODY_WAITED: Finding = ({}, "-", False)


def _identity(log: LogOutcomes) -> Finding:
    jobs = int(log.user_jobs.sum())
    return {"jobs_moved": log.moved}, f"{log.moved:,} of {jobs:,}", log.moved == 0


def _flattened(log: LogOutcomes) -> Finding:
    trace = unevenness(log.recorded.profile)
    run = log.mean(lambda one: unevenness(one.profile), "adjusted")
    numbers = {"recorded": trace, "adjusted": run}
    return numbers, f"{trace:.2f} to {run:.2f}", run < MUCH_SMALLER * trace


def _waits(log: LogOutcomes, *, model: str, side: Callable[[float], bool]) -> Finding:
    """Return a check of the mean wait of a model over that of conventional users."""
    ratio = log.ratio(model, "conventional").mean
    if ratio is None:
        return NOBODY_WAITED
    return {f"{model}_over_conventional": ratio}, f"{ratio:.2f}", side(ratio)


def _peaks(log: LogOutcomes) -> Finding:
    trace = log.recorded.slot_share
    run = log.mean(lambda one: one.slot_share, "distribution")
    numbers = {"recorded": trace, "distribution": run}
    return numbers, f"{100 * trace:.0f} % to {100 * run:.0f} %", run >= SHARP * trace


def _throughput(log: LogOutcomes) -> Finding:
    trace = float(np.median(log.recorded.activity_s)) / DAY
    run = log.mean(lambda one: float(np.median(one.activity_s)), "distribution") / DAY
    numbers = {"recorded_days": trace, "distribution_days": run}
    return numbers, f"{trace:.0f} to {run:.0f} days", run < trace


def _hyperactive(log: LogOutcomes) -> Finding:
    longest = int(log.recorded.activity_s.max(initial=0))
    typical = float(np.median(log.user_jobs))
    longer = [one.activity_s > longest for one in log.of("distribution")]
    count = float(np.mean([which.sum() for which in longer]))
    jobs = np.concatenate([log.user_jobs[which] for which in longer])
    median = float(np.median(jobs)) if len(jobs) else 0.0
    numbers = {"users": count, "their_median_jobs": median, "median_jobs": typical}
    words = f"{count:.1f} users, {median:,.0f} jobs (all {typical:,.0f})"
    return numbers, words, median >= HYPERACTIVE * typical > 0


def _cycle(log: LogOutcomes) -> Finding:
    def distance(one: Outcome) -> float:
        return profile_distance(one.profile, log.recorded.profile)

    fluid, adjusted = log.mean(distance, "fluid"), log.mean(distance, "adjusted")
    numbers = {"fluid": fluid, "adjusted": adjusted}
    return numbers, f"{fluid:.2f}, adjusted {adjusted:.2f}", fluid < MUCH_SMALLER * adjusted


def _fluid_throughput(log: LogOutcomes) -> Finding:
    def distance(one: Outcome) -> float:
        return apart(one.activity_s, log.recorded.activity_s).ks

    fluid, other = log.mean(distance, "fluid"), log.mean(distance, "distribution")
    numbers = {"fluid": fluid, "distribution": other}
    return numbers, f"{fluid:.2f}, distribution {other:.2f}", fluid <= CLOSE


def _few_long(log: LogOutcomes) -> Finding:
    longest = int(log.recorded.activity_s.max(initial=0))
    share = log.mean(lambda one: float((one.activity_s > longest).mean()), "fluid")
    furthest = log.mean(lambda one: float(one.activity_s.max(initial=0)), "fluid")
    times = furthest / max(longest, 1)
    words = f"{100 * share:.0f} % of users, up to {times:.1f} times"
    return {"share": share, "longest_over_recorded": times}, words, 0 < share < FEW


def _order(log: LogOutcomes) -> Finding:
    models = ("fluid", "adjusted", "conventional")
    waits = {model: float(log.waits(model).mean()) for model in models}
    values = [*waits.values()]
    text = ", ".join(f"{wait:,.0f}" for wait in values)
    return waits, f"{text} s", values[0] < values[1] < values[2]


def _gap(log: LogOutcomes, model: str) -> tuple[float, float, float]:
    """Return the distance of the queues of FIFO and EASY, and the mean length under each."""
    pairs = zip(log.of(model, "fcfs"), log.of(model, "easy"), strict=True)
    distance = float(np.mean([share_distance(fifo.queue, easy.queue) for fifo, easy in pairs]))
    fifo, easy = (log.mean(lambda one: one.queue_mean, model, name) for name in ("fcfs", "easy"))
    return distance, fifo, easy


def _queues(log: LogOutcomes, *, model: str, close: bool) -> Finding:
    distance, fifo, easy = _gap(log, model)
    numbers = {"distance": distance, "fifo_mean_jobs": fifo, "easy_mean_jobs": easy}
    text = f"{distance:.2f}; mean {easy:,.1f} to {fifo:,.1f}"
    return numbers, text, (distance <= CLOSE) is close


def _narrower(log: LogOutcomes) -> Finding:
    (fluid, fifo, easy), (rigid, rigid_fifo, rigid_easy) = (
        _gap(log, model) for model in ("fluid", "conventional")
    )
    numbers = {"fluid": fluid, "conventional": rigid}
    holds = fluid < rigid and abs(fifo - easy) < abs(rigid_fifo - rigid_easy)
    return numbers, f"{fluid:.2f}, conventional {rigid:.2f}", holds


def _shorter(log: LogOutcomes) -> Finding:
    fluid, rigid = (
        log.mean(lambda one: one.queue_mean, model) for model in ("fluid", "conventional")
    )
    return {"fluid": fluid, "conventional": rigid}, f"{rigid:.1f} to {fluid:.1f}", fluid < rigid


#: Every statement that is checked, in the order of the text.
RULES = rules_of(
    "zakay2015/statements",
    {
        "identity": _identity,
        "adjusted flattens the week": _flattened,
        "adjusted waits less": partial(_waits, model="adjusted", side=lambda ratio: ratio < 1),
        "distribution has peaks": _peaks,
        "distribution waits long": partial(
            _waits, model="distribution", side=lambda ratio: ratio > 1
        ),
        "distribution has high throughput": _throughput,
        "hyperactive users take long": _hyperactive,
        "fluid keeps the week": _cycle,
        "fluid keeps the throughput": _fluid_throughput,
        "a few fluid users take long": _few_long,
        "order of waits": _order,
        "FIFO close to EASY with feedback": partial(_queues, model="fluid", close=True),
        "FIFO far from EASY without": partial(_queues, model="conventional", close=False),
        "feedback narrows the gap": _narrower,
        "shorter queues with feedback": _shorter,
    },
)


# ---- the study -------------------------------------------------------------------------------

#: Number of seeds of a log, and of one with more lines than this.
SEEDS, SEEDS_OF_LARGE, LARGE = 10, 5, 50_000

#: Steps of a log: reading, the identity, and its simulations.
STEPS = 2


@dataclass
class Zakay2015(PublishedStudy):
    """User models on every available log of Table I."""

    rules = RULES
    listed = COLUMNS
    written: ClassVar = {"logs": "traces", "table1": "cells"}

    traces: dict[str, LogOutcomes]  #: The simulations by log.

    @cached_property
    def cells(self) -> list[Cell]:
        """Every figure of Table I of the available logs."""
        return [cell for log in self.traces.values() for cell in cells_of(log)]

    def tables(self) -> Sequence[Table]:
        """Return Table I with ours."""
        return self.tables_of({"table 1": map(table1_row, self.cells)})

    def summary(self) -> list[str]:
        """Return what was reached and what holds."""
        return [
            f"{self.score} required figures reached; "
            f"{self.verdicts[True]} of {len(self.claims)} statements hold",
            "The paper gives no numbers of jobs, so whether a log is the same version is not known",
        ]

    def pictures(self) -> Sequence[Picture]:
        """Return Figures 5 to 10."""
        return pictures_of(list(self.traces.values()))

    def rows(self) -> Rows:
        """Return every simulation, one seed a row, with the published figure."""
        published = {(cell.log, cell.model): cell.published for cell in self.cells}
        return self.row_heading, [
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
        return readings_parts(traces)


def table1_row(cell: Cell) -> list[str]:
    """Return a figure of Table I."""
    return [
        cell.log,
        cell.model,
        f"{cell.ours.mean:,.0f}",
        range_text((cell.ours.low, cell.ours.high), ",.0f", once=False),
        f"{cell.published:,}",
        _text(cell.to_conventional.mean),
        f"{cell.published_to_conventional:.2f}",
        _text(cell.to_adjusted.mean),
        range_text((cell.to_adjusted.low, cell.to_adjusted.high), ".2f", once=False),
        f"{cell.published_to_adjusted:.2f}",
    ]


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


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
    """Run all simulations of a log, a name of :data:`COLUMNS`; progress is by steps."""
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
