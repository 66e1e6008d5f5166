"""The energy study in tables, in sentences and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hpcrowd.analysis.paired import Estimate
from hpcrowd.analysis.pictures.plots import COLOURS, LEGEND, TITLE, new_figure, tidy
from hpcrowd.scenarios.studies.energy.measures import USUAL, Savings
from hpcrowd.scenarios.studies.render import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Percent saved above which a measure saves much, and below which nearly nothing.
MUCH, LITTLE = 5.0, 1.0

#: What is saved for the same work, with words: attribute of a run.
SAVED = {"kwh_per_work": "energy", "kg_per_work": "carbon", "cost_per_work": "cost"}

#: Look of each of them.
LOOKS = {"kwh_per_work": "blue", "kg_per_work": "green", "cost_per_work": "orange"}


def number(found: Estimate, digits: int = 1) -> str:
    """Return a mean with half its interval, such as ``5.9 ± 0.2``; without one the mean alone."""
    text = f"{round(found.mean, digits) + 0.0:,.{digits}f}"  # no minus before a zero
    half = found.half_width
    return text if half is None else f"{text} ± {half:,.{digits}f}"


def saving_rows(found: Savings) -> list[list[str]]:
    """Return a row for each measure: what it saves, and its price."""
    rows = []
    for measure in found.runs:
        if measure == USUAL:
            continue
        lost, asked = found.mean(measure, "lost"), found.mean(measure, "asked")
        rows.append(
            [
                measure,
                number(found.saved(measure, "kwh")),
                number(found.saved(measure, "work_h")),
                *(number(found.saved(measure, what)) for what in SAVED),
                number(found.more(measure, "wait_h")),
                f"{100 * lost.mean:.1f}",
                f"{100 * asked.mean:.0f}",
            ]
        )
    return rows


SAVING_HEAD = [
    "measure", "energy in all, % less", "work done, % less", "energy per work, % less",
    "carbon per work", "cost per work", "wait, h more", "work given up, %", "jobs changed, %",
]  # fmt: skip


def usual_rows(found: Sequence[Savings]) -> list[list[str]]:
    """Return a row for each log: what it uses as usual."""
    return [
        [
            one.log, f"{one.facts['processors']:,}", str(one.facts["seeds"]),
            f"{one.facts['weeks']}", number(one.mean(USUAL, "kwh"), 0),
            f"{100 * one.mean(USUAL, 'wasted_kwh').mean / one.mean(USUAL, 'kwh').mean:.0f}",
            number(one.mean(USUAL, "wait_h")), number(one.mean(USUAL, "kwh_per_work"), 0),
        ]
        for one in found
    ]  # fmt: skip


USUAL_HEAD = [
    "log", "processors", "populations", "weeks", "energy, kWh", "of it wasted, %", "mean wait, h",
    "kWh per 1,000 processor-hours",
]  # fmt: skip


def call_rows(found: Sequence[Savings]) -> list[list[str]]:
    """Return a row for each log and answer to calls for less load."""
    return [
        [
            one.log, answer, number(one.saved(answer, "window_kwh", call=True)),
            number(one.saved(answer, "after_kwh", call=True)),
            number(one.saved(answer, "kwh", call=True), 2),
            number(one.more(answer, "wait_h", call=True), 2),
            number(one.more(answer, "slowdown", call=True)),
            f"{100 * one.mean(answer, 'lost', call=True).mean:.2f}",
        ]
        for one in found
        for answer in one.calls
        if answer != USUAL
    ]  # fmt: skip


CALL_HEAD = [
    "log", "users", "energy in the windows, % less", "in the 24 h after", "in all",
    "wait, h more", "slowdown more", "work given up, %",
]  # fmt: skip


def tables(found: Sequence[Savings]) -> list[Table]:
    """Return the tables of the study, on a terminal or on the page."""
    shown = [Table("As usual", USUAL_HEAD, usual_rows(found), part="usual")]
    shown += [
        Table(
            f"{one.log}: saved, and its price; means over populations with 95 % intervals",
            SAVING_HEAD, saving_rows(one), part=f"saved-{one.log.lower()}",
        )
        for one in found
    ]  # fmt: skip
    if any(one.calls for one in found):
        shown.append(Table("Calls for less load", CALL_HEAD, call_rows(found), 2, "calls"))
    return shown


def summary_lines(found: Sequence[Savings]) -> list[str]:
    """Return what saves much and what saves nearly nothing, without the full stop."""
    lines = []
    names = [name for name in found[0].runs if name != USUAL]

    def span(name: str, what: str) -> tuple[float, float]:
        values = [one.saved(name, what).mean for one in found]
        return min(values), max(values)

    def listed(chosen: Sequence[str], what: str) -> str:
        return "; ".join(
            f"{name} ({span(name, what)[0]:.1f} to {span(name, what)[1]:.1f} %)" for name in chosen
        )

    for what, words in SAVED.items():
        much = [name for name in names if span(name, what)[0] >= MUCH]
        some = [name for name in names if span(name, what)[1] >= LITTLE and name not in much]
        rest = [name for name in names if name not in (*much, *some)]
        for verdict, chosen in (
            (f"Saves much {words} for the same work", much),
            (f"Saves some {words} for the same work, on one log at least", some),
            (f"Saves nearly no {words} for the same work, or needs more", rest),
        ):
            if chosen:
                lines.append(f"**{verdict}**: {listed(chosen, what)}")
    less = [name for name in names if span(name, "kwh")[1] >= LITTLE]
    less = [name for name in less if span(name, "kwh_per_work")[1] < LITTLE]
    if less:
        lines.append(
            "**Needs less energy only because less work is done in the same time**: "
            f"{listed(less, 'kwh')}"
        )
    return lines


def draw_savings(found: Sequence[Savings]) -> Figure:
    """Energy, carbon and cost saved by each measure, a panel for each log."""
    names = [name for name in found[0].runs if name != USUAL]
    figure = new_figure(
        12, 1.5 + 0.42 * len(names), "What saves energy, carbon and money, for the same work",
        "percent less than as usual for the same work; means over populations with 95 % intervals",
    )  # fmt: skip
    grid = figure.add_gridspec(
        1, len(found), left=0.25, right=0.985, bottom=0.1, top=0.83, wspace=0.08
    )
    for place, one in enumerate(found):
        axes = figure.add_subplot(grid[0, place])
        tidy(axes)
        axes.axvline(0, color="#999999", linewidth=0.8)
        for offset, (what, words) in zip((-0.25, 0.0, 0.25), SAVED.items(), strict=True):
            estimates = [one.saved(name, what) for name in names]
            halves: Any = [each.half_width or 0.0 for each in estimates]
            axes.errorbar(
                [each.mean for each in estimates], [at + offset for at in range(len(names))],
                xerr=halves, fmt="o", markersize=4.5, capsize=2, linewidth=1.3,
                color=COLOURS[LOOKS[what]], label=words,
            )  # fmt: skip
        axes.set_yticks(range(len(names)), names if not place else [""] * len(names), fontsize=8.5)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_title(one.log, **TITLE)
        axes.set_xlabel("saved, %", fontsize=8.5)
        if not place:
            figure.legend(
                *axes.get_legend_handles_labels(), loc="upper right", ncols=3,
                bbox_to_anchor=(0.985, 0.95), **(LEGEND | {"fontsize": 9}),
            )  # fmt: skip
    return figure
