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

#: Percent of energy for the same work: a measure saves much from here on, and nearly nothing if it
#: saves or needs less than this.
MUCH, LITTLE = 5.0, 3.0

#: What is saved for the same work, with words: attribute of a run.
SAVED = {"kwh_per_work": "energy", "kg_per_work": "carbon", "cost_per_work": "cost"}

#: Look of each of them.
LOOKS = {"kwh_per_work": "blue", "kg_per_work": "green", "cost_per_work": "orange"}


def number(found: Estimate, digits: int = 1) -> str:
    """Return a mean with half its interval, such as ``5.9 ± 0.2``; without one the mean alone."""
    text = f"{round(found.mean, digits) + 0.0:,.{digits}f}"  # no minus before a zero
    half = found.half_width
    return text if half is None else f"{text} ± {half:,.{digits}f}"


#: Columns of :func:`saving_rows` that compare a measure with as usual: percent less of something.
LESS = {
    "kwh": "energy, % less",
    "kg": "carbon",
    "cost": "cost",
    "work_h": "work done",
    "kwh_per_work": "energy per work",
    "kg_per_kwh": "carbon per kWh",
    "cost_per_kwh": "price per kWh",
}


def saving_rows(found: Savings) -> list[list[str]]:
    """Return a row for each measure: what it saves, and its price."""
    return [
        [
            measure,
            *(number(found.saved(measure, what)) for what in LESS),
            number(found.more(measure, "wait_h")),
            f"{100 * found.mean(measure, 'lost').mean:.1f}",
            f"{100 * found.mean(measure, 'asked').mean:.0f}",
        ]
        for measure in found.runs
        if measure != USUAL
    ]


SAVING_HEAD = ["measure", *LESS.values(), "wait, h more", "given up, %", "jobs changed, %"]


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
    names = [name for name in found[0].runs if name != USUAL]

    def span(name: str, what: str) -> tuple[float, float]:
        values = [one.saved(name, what).mean for one in found]
        return min(values), max(values)

    def waits(name: str) -> str:
        values = [one.more(name, "wait_h").mean for one in found]
        least, most = (round(value, 1) + 0.0 for value in (min(values), max(values)))  # no -0.0
        return f"{least:+.1f} to {most:+.1f} h"

    def described(name: str) -> str:
        (least, most), (low, high) = span(name, "kwh_per_work"), span(name, "work_h")
        price = f"mean wait {waits(name)}"
        if high >= 1:
            price += f", {low:.0f} to {high:.0f} % less work in the same time"
        return f"{name} ({least:.1f} to {most:.1f} %; {price})"

    much = [name for name in names if span(name, "kwh_per_work")[0] >= MUCH]
    little = [name for name in names if max(map(abs, span(name, "kwh_per_work"))) < LITTLE]
    other = [name for name in names if name not in (*much, *little)]
    more = [name for name in other if span(name, "kwh_per_work")[0] < 0]
    some = [name for name in other if name not in more]
    lines = [
        f"**{verdict}**: {'; '.join(map(described, chosen))}"
        for verdict, chosen in (
            ("Saves much energy for the same work", much),
            ("Saves some energy for the same work", some),
            (f"Saves nearly nothing, within {LITTLE:g} % either way", little),
            ("Needs more energy for the same work, on one log at least", more),
        )
        if chosen
    ]
    for what, words in (("kg_per_kwh", "cleaner"), ("cost_per_kwh", "cheaper")):
        best = sorted(names, key=lambda name, what=what: -span(name, what)[1])[:3]  # type: ignore[misc]
        said = "; ".join(
            f"{name} {span(name, what)[0]:.1f} to {span(name, what)[1]:.1f} %" for name in best
        )
        most = span(best[0], what)[1]
        lines.append(f"**Energy becomes {words}** by {most:.1f} % at most: {said}")
    return lines


def draw_savings(found: Sequence[Savings]) -> Figure:
    """Energy, carbon and cost saved by each measure, a panel for each log."""
    names = [name for name in found[0].runs if name != USUAL]
    figure = new_figure(
        12, 1.5 + 0.42 * len(names), "What saves energy, carbon and money, for the same work",
        "percent less than as usual for the same work; means over populations with 95 % intervals",
    )  # fmt: skip
    grid = figure.add_gridspec(
        1, len(found), left=0.27, right=0.985, bottom=0.1, top=0.83, wspace=0.08
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
