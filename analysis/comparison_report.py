"""The report of a comparison: one HTML file, or a folder with its tables and pictures beside it.

=================== ==============================================================================
report.html         everything below in one file
comparison.json     :meth:`analysis.comparison_numbers.Comparison.to_json`
metrics.csv         metrics of each group of runs
differences.csv     differences to the first group
users.csv           differences over users, paired
*.png               :data:`PICTURES`
provenance.json     which runs, by which versions
=================== ==============================================================================
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from analysis.comparison import queues
from analysis.comparison_groups import ALL_METRICS, Group
from analysis.comparison_numbers import Comparison
from analysis.comparison_plots import bars, course, weeks
from analysis.comparison_style import GROUP_COLOURS
from analysis.comparison_text import (
    OF_USERS,
    format_difference,
    format_estimate,
    format_users,
    headline,
    shown_metrics,
)
from analysis.comparison_users import users_apart
from analysis.plots import figure_png
from analysis.report import Picture, figure_of, html_page, origin_of, table_of
from analysis.results import provenance, versions, whole_folder, write_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Drawing(NamedTuple):
    """A picture of a comparison and what is to be seen on it."""

    draw: Callable[[Sequence[Group]], Figure]
    caption: str


def _queues(groups: Sequence[Group]) -> Figure:
    return queues(groups, colours=GROUP_COLOURS)


#: Pictures by the names of their files.
PICTURES = {
    "glance.png": Drawing(
        bars, "The chief metrics. The weekly distance is the share of jobs that would have to move "
        "to other hours of the week to give the recorded profile."
    ),
    "course.png": Drawing(
        course, "How many jobs had been submitted and had ended by when, and how many more than in "
        "the first. Bands reach from the lowest to the highest seed."
    ),
    "week.png": Drawing(weeks, "In which hours of the week jobs are submitted."),
    "users.png": Drawing(
        users_apart, "Each user counts once. Left: how late users submit against the record; a "
        "curve far to the left is of users who come earlier. Right: how much longer they wait than "
        "in the first; left of 0 are users who are better off."
    ),
    "queue.png": Drawing(_queues, "Jobs in the queue over time, to the same scale."),
}  # fmt: skip


def comparison_html(comparison: Comparison, *, title: str = "", again: str = "") -> str:
    """Return the report as one HTML file; see :func:`analysis.report.html_report`.

    Parameters
    ----------
    comparison
        The runs.
    title
        Heading; the labels unless given.
    again
        Command that makes the same again.
    """
    return _html(comparison, (picture for _, picture in _draw(comparison)), title, again)


def write_comparison(
    comparison: Comparison, folder: str | os.PathLike[str], *, again: str = ""
) -> None:
    """Write report, tables and pictures into a folder that appears only when it is complete."""
    with whole_folder(folder) as place:
        pictures = dict(_draw(comparison))
        for name, picture in pictures.items():
            (place / name).write_bytes(picture.png)
        (place / "report.html").write_text(
            _html(comparison, pictures.values(), "", again), encoding="utf-8"
        )
        write_json(comparison.to_json(), place / "comparison.json")
        for name in ("metrics", "differences", "users"):
            getattr(comparison, name).to_csv(place / f"{name}.csv", lineterminator="\n")
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


def _draw(comparison: Comparison) -> Iterator[tuple[str, Picture]]:
    for name, (draw, caption) in PICTURES.items():
        yield name, Picture(figure_png(draw(comparison.groups)), caption)


def _html(comparison: Comparison, pictures: Iterable[Picture], title: str, again: str) -> str:
    groups = comparison.groups
    title = title or " and ".join(group.label for group in groups[:3]) + (
        f" and {len(groups) - 3} more" if len(groups) > 3 else ""
    )
    parts = ["<h2>Metrics</h2>", _metrics_table(comparison)]
    if len(groups) > 1:
        parts += [
            f"<h2>Differences to {escape(groups[0].label)}</h2>",
            _differences_table(comparison),
        ]
    if not comparison.users.empty:
        parts += [
            f"<h2>Users against those of {escape(groups[0].label)}</h2>",
            "<p>The same user on both sides; each counts once, however many jobs. Better off are "
            "users with less. The interval is of 95 %, by bootstrap over users.</p>",
            _users_table(comparison),
        ]
    parts += [figure_of(picture) for picture in pictures]
    found = []
    for group in groups:
        one = provenance(group.first)
        if len(group.runs) > 1:
            one = one | {"configuration": one["configuration"] | {"seed": group.seeds}}
        found.append(one)
    labels = [group.label for group in groups]
    parts += [
        "<h2>Where this comes from</h2>",
        origin_of(labels, found, groups[0].first.clock, again),
    ]
    return html_page(title, [*headline(comparison), *comparison.notes], parts)


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
