"""A comparison as a folder with its tables and pictures, and as parts of a report.

=================== ==============================================================================
comparison.json     :meth:`hpcrowd.analysis.comparison.numbers.Comparison.to_json`
metrics.csv         metrics of each group of runs
differences.csv     differences to the first group
users.csv           differences over users, paired
*.png               :data:`PICTURES`
provenance.json     which runs, by which versions
=================== ==============================================================================

:mod:`hpcrowd.analysis.report.runs` makes a page of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hpcrowd.analysis.comparison.groups import ALL_METRICS, Group
from hpcrowd.analysis.comparison.numbers import Comparison
from hpcrowd.analysis.comparison.pictures import bars, course, queues, users_apart, weeks
from hpcrowd.analysis.comparison.words import (
    OF_USERS,
    format_difference,
    format_estimate,
    format_users,
    shown_metrics,
)
from hpcrowd.analysis.html import Section, paragraphs, table_of
from hpcrowd.analysis.pictures.plots import GROUP_COLOURS, figure_png
from hpcrowd.analysis.results import provenance, versions, whole_folder, write_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Drawing(NamedTuple):
    """A picture of a comparison and what is to be seen on it."""

    draw: Callable[[Sequence[Group]], Figure]
    title: str
    caption: str


def _queues(groups: Sequence[Group]) -> Figure:
    return queues(groups, colours=GROUP_COLOURS)


#: Pictures by the names of their files.
PICTURES = {
    "glance.png": Drawing(
        bars,
        "Chief metrics",
        "The chief metrics. The weekly distance is the share of jobs that would have to move to "
        "other hours of the week to give the recorded profile.",
    ),
    "course.png": Drawing(
        course,
        "The course of the work",
        "How many jobs had been submitted and had ended by when, and how many more than in the "
        "first. Bands reach from the lowest to the highest seed.",
    ),
    "week.png": Drawing(weeks, "The week", "In which hours of the week jobs are submitted."),
    "users.png": Drawing(
        users_apart,
        "From user to user",
        "Each user counts once. Left: how late users submit against the record; a curve far to "
        "the left is of users who come earlier. Right: how much longer they wait than in the "
        "first; left of 0 are users who are better off.",
    ),
    "queue.png": Drawing(_queues, "Queues", "Jobs in the queue over time, to the same scale."),
}


def write_comparison(comparison: Comparison, folder: str | os.PathLike[str]) -> None:
    """Write tables and pictures into a folder that appears only when it is complete."""
    with whole_folder(folder) as place:
        for name, drawing in PICTURES.items():
            (place / name).write_bytes(figure_png(drawing.draw(comparison.groups)))
        write_json(comparison.to_json(), place / "comparison.json")
        write_tables(comparison, place)
        write_json(
            {
                "configuration": {
                    "kind": "compare",
                    "seed": comparison.seed,
                    "runs": [run.configuration for run in comparison.runs],
                },
                "runs": [run.label for run in comparison.runs],
                "versions": versions(),
            },
            place / "provenance.json",
        )


def write_tables(comparison: Comparison, place: Path) -> None:
    """Write the tables of a comparison into an existing folder."""
    for name in ("metrics", "differences", "users"):
        getattr(comparison, name).to_csv(place / f"{name}.csv", lineterminator="\n")


def comparison_tables(comparison: Comparison) -> Iterator[Section]:
    """Yield the tables as sections of a page."""
    groups = comparison.groups
    yield Section("numbers", "Metrics", [_metrics_table(comparison)])
    if len(groups) > 1:
        title = f"Differences to {groups[0].label}"
        yield Section("differences", title, [_differences_table(comparison)])
    if not comparison.users.empty:
        told = (
            "The same user on both sides; each counts once, however many jobs. Better off are "
            "users with less. The interval is of 95 %, by bootstrap over users."
        )
        title = f"Users against those of {groups[0].label}"
        yield Section("users", title, [*paragraphs([told]), _users_table(comparison)])


def group_origins(groups: Sequence[Group]) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the labels of groups and where they come from, with all their seeds."""
    found = []
    for group in groups:
        one = provenance(group.first)
        if len(group.runs) > 1:
            one = one | {"configuration": one["configuration"] | {"seed": group.seeds}}
        found.append(one)
    return [group.label for group in groups], found


def _metrics_table(comparison: Comparison) -> str:
    meanings = {metric.name: metric.meaning for metric in ALL_METRICS}
    rows = [
        (name, [format_estimate(name, e) for e in comparison.estimates[name]], meanings[name])
        for name in shown_metrics(comparison)
    ]
    return table_of([group.title for group in comparison.groups], rows, "meaning")


def _differences_table(comparison: Comparison) -> str:
    found = comparison.seed_differences
    rows = [
        (name, [format_difference(name, difference) for difference in found[name]], "")
        for name in shown_metrics(comparison)
    ]
    return table_of([group.title for group in comparison.groups[1:]], rows, "")


def _users_table(comparison: Comparison) -> str:
    rows = []
    for name in OF_USERS:
        found = comparison.user_differences[name]
        for group, difference in zip(comparison.groups[1:], found, strict=True):
            if difference is not None:
                shown = [f"{difference.estimate.count:,}", *format_users(name, difference)]
                rows.append((name, shown, group.title))
    head = ["users", "mean difference", "interval", "better off", "worse off"]
    return table_of(head, rows, "")
