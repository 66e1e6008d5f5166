"""Reports on a comparison: in words, as a folder of tables and pictures, as report sections.

=================== ==============================================================================
comparison.json     :meth:`hpcrowd.analysis.comparison.numbers.Comparison.to_json`
metrics.csv         metrics of each group of runs
differences.csv     differences to the first group
users.csv           differences over users, paired
*.png               :data:`PICTURES`
provenance.json     the runs, and the versions that made them
=================== ==============================================================================

:mod:`hpcrowd.analysis.report.runs` makes a page of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hpcrowd.analysis.comparison.given_up import WORDS, amount_of
from hpcrowd.analysis.comparison.multiples import MOST_OVERLAID, wait_shares
from hpcrowd.analysis.comparison.numbers import ALL_METRICS, Comparison, Group, named_work
from hpcrowd.analysis.comparison.pictures import bars, course, queues, users_apart, weeks
from hpcrowd.analysis.html import Section, paragraphs, table_of
from hpcrowd.analysis.metrics import PER_USER, format_metric, words_of
from hpcrowd.analysis.paired import Difference, Estimate, UserDifference
from hpcrowd.analysis.pictures.plots import GROUP_COLOURS, figure_png
from hpcrowd.analysis.results import provenance, write_json, write_origin
from hpcrowd.environment.output.whole import whole_folder
from hpcrowd.environment.quantities import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Per-user metrics in printed tables.
OF_USERS = ("wait_mean_s", "response_mean_s", "bounded_slowdown_mean", "lateness_mean_s")

#: Units of times, as :func:`hpcrowd.environment.quantities.format_duration` writes them, s.
TIME_UNITS = {"s": 1, "min": 60, "h": 3600, "days": 86400}

#: Metrics whose 0 is arbitrary: no differences in percent.
WITHOUT_PERCENT = ("lateness_mean_s", "relative_lateness", "additional_lateness_s")

#: Most seeds listed one by one.
MOST_SEEDS = 8


def headline(comparison: Comparison) -> list[str]:
    """Return sentences on what is compared and how intervals were made."""
    groups = comparison.groups
    found = []
    if all(comparison.paired):
        jobs = _range({len(run.jobs) for run in comparison.runs})
        users = _range({len(group.users[PER_USER[0]][0]) for group in groups})
        found.append(f"All runs use {named_work(groups[0].first)}: {jobs} jobs of {users} users.")
    told: dict[str, list[str]] = {}
    for group in groups:
        if len(group.runs) > 1:
            told.setdefault(_seeds(group), []).append(group.label)
    if told:
        found.append("± is half the 95 % interval of a mean over seeds (Student).")
        differences = comparison.seed_differences["jobs_in"]
        for group, difference in zip(groups[1:], differences, strict=True):
            how = _pairing(groups[0], group, "" if difference is None else difference.by)
            if how:
                told.setdefault(how, []).append(group.label)
    return [*found, *(f"{'; '.join(labels)}: {text}." for text, labels in told.items())]


def _pairing(first: Group, group: Group, by: str) -> str:
    """Return how the intervals of a group's differences to the first are made."""
    if by == "pairs":
        both = [seed for seed in first.seeds if seed in group.seeds]
        if len(both) == len(first.seeds) == len(group.seeds):
            return f"differences to {first.label} are paired by seed"
        return f"differences to {first.label} use the {len(both)} seeds that both have"
    if by == "groups":
        return f"differences to {first.label} are not paired, as the seeds differ (Welch)"
    return f"differences to {first.label} have no interval, as one side has a single run"


def _range(counts: set[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _seeds(group: Group) -> str:
    numbers = [str(seed) for seed in group.seeds]
    if len(numbers) > MOST_SEEDS:
        return f"{len(numbers)} runs with different seeds"
    return f"{plural(len(numbers), 'run')} with seeds {', '.join(numbers[:-1])} and {numbers[-1]}"


def shown_metrics(comparison: Comparison) -> list[str]:
    """Return the metrics to print: not those without values, nor counts that are 0 everywhere."""
    return [
        metric.name
        for metric in ALL_METRICS
        if any(e is not None and e.mean for e in comparison.estimates[metric.name])
    ]


def format_estimate(name: str, estimate: Estimate | None) -> str:
    """Return a mean with half its interval in the same unit: ``79.0 ± 4.0 min``."""
    if estimate is None:
        return "-"
    return _with_half_width(format_metric(name, estimate.mean), estimate.half_width)


def format_difference(name: str, difference: Difference | None) -> str:
    """Return a difference as text: ``-34.9 ± 4.1 min (-30.7 %)``."""
    if difference is None:
        return "-"
    estimate, relative = difference.estimate, difference.relative
    text = _with_half_width(signed(name, estimate.mean), estimate.half_width)
    if name.endswith("utilization"):
        text = text.replace("%", "points")
    if relative is None or not estimate.mean or name in WITHOUT_PERCENT:
        return text
    return f"{text} ({_percent(relative)})"


def format_users(name: str, difference: UserDifference) -> tuple[str, str, str, str]:
    """Return the mean difference, its interval, and the shares of users better and worse off."""
    estimate = difference.estimate
    interval = "-"
    if estimate.low is not None and estimate.high is not None:
        low, high = estimate.low, estimate.high
        _, _, unit = format_metric(name, max(low, high, key=abs)).partition(" ")
        ends = [signed(name, end) for end in (low, high)]
        if unit in TIME_UNITS:
            digits, size = 0 if unit == "s" else 1, TIME_UNITS[unit]
            ends = [_with_sign(f"{abs(end) / size:,.{digits}f}", end) for end in (low, high)]
        interval = f"{' to '.join(ends)} {unit}".rstrip()
    better, worse = (f"{100 * share:.0f} %" for share in (difference.better, difference.worse))
    return signed(name, estimate.mean), interval, better, worse


def signed(name: str, value: float) -> str:
    """Return the value of a metric with its sign; a value shown as 0 has none."""
    return _with_sign(format_metric(name, abs(value)), value)


def _percent(relative: float) -> str:
    return _with_sign(f"{100 * abs(relative):,.{1 if abs(relative) < 10 else 0}f} %", relative)


def _with_sign(text: str, value: float) -> str:
    zero = not any(digit in text for digit in "123456789")
    return text if zero else ("+" if value > 0 else "-") + text


def _with_half_width(text: str, half: float | None) -> str:
    """Return a formatted value with half its interval, in the unit of the text."""
    if not half:
        return text
    number, _, unit = text.partition(" ")
    scale = 0.01 if unit == "%" else TIME_UNITS.get(unit, 1)
    digits = len(number.partition(".")[2])
    return f"{number} ± {half / scale:,.{digits}f} {unit}".rstrip()


class Drawing(NamedTuple):
    """A picture of a comparison, with its caption."""

    draw: Callable[[Sequence[Group]], Figure]
    title: str
    caption: str


#: Pictures by file name.
PICTURES = {
    "glance.png": Drawing(
        bars,
        "Main metrics",
        "The main metrics. The weekly distance is the share of jobs that would have to move to "
        "other hours of the week to match the recorded profile.",
    ),
    "course.png": Drawing(
        course,
        "Progress of the work",
        "Jobs submitted and jobs ended so far; below, the difference to the first. With many runs: "
        "the difference in jobs ended, a panel each. Bands reach from the lowest to the highest "
        "seed.",
    ),
    "waits.png": Drawing(
        wait_shares,
        "Waits of jobs",
        "How long jobs wait: the share of all jobs that waited longer than a time. The further "
        "left and the lower a curve, the shorter the waits.",
    ),
    "week.png": Drawing(weeks, "The week", "The hours of the week in which jobs are submitted."),
    "users.png": Drawing(
        users_apart,
        "Differences between users",
        "Each user counts once. Left: how much later than recorded users submit; the further left "
        "the curve, the earlier they come. Right: how much longer they wait than in the first; "
        "users left of 0 are better off. With many runs: only the waits, a panel each.",
    ),
    "queue.png": Drawing(
        partial(queues, colours=GROUP_COLOURS),
        "Queues",
        "Jobs in the queue over time, on the same scale.",
    ),
}


def write_comparison(comparison: Comparison, folder: str | os.PathLike[str]) -> None:
    """Write tables and pictures into a folder that appears only when it is complete."""
    with whole_folder(folder) as place:
        for name, drawing in PICTURES.items():
            (place / name).write_bytes(figure_png(drawing.draw(comparison.groups)))
        write_json(comparison.to_json(), place / "comparison.json")
        write_tables(comparison, place)
        configurations = [run.configuration for run in comparison.runs]
        write_origin(
            place,
            {"kind": "compare", "seed": comparison.seed, "runs": configurations},
            runs=[run.label for run in comparison.runs],
        )


def write_tables(comparison: Comparison, place: Path) -> None:
    """Write the tables of a comparison into an existing folder."""
    for name in ("metrics", "differences", "users"):
        getattr(comparison, name).to_csv(place / f"{name}.csv", lineterminator="\n")


def comparison_tables(comparison: Comparison) -> Iterator[Section]:
    """Yield the tables as sections of a page."""
    groups = comparison.groups
    titles, names = [group.title for group in groups], shown_metrics(comparison)
    meanings = {metric.name: metric.meaning for metric in ALL_METRICS}
    means, differences = comparison.estimates, comparison.seed_differences
    explained = len(groups) <= MOST_OVERLAID  # more columns leave no room for it
    rows = [
        (
            words_of(name),
            [format_estimate(name, e) for e in means[name]],
            meanings[name] if explained else "",
        )
        for name in names
    ]
    last = "meaning" if explained else ""
    yield Section("numbers", "Metrics", [table_of(titles, rows, last)])
    if waits := comparison.partition_waits:
        rows = [
            (name, [format_estimate("wait_mean_s", one) for one in found], "")
            for name, found in waits.items()
        ]
        yield Section("partitions", "Mean wait by partition", [table_of(titles, rows, "")])
    if comparison.given_up:
        rows = [(WORDS[name], found, "") for name, found in given_up_cells(comparison)]
        yield Section("given-up", "Jobs given up in the queue", [table_of(titles, rows, "")])
    if len(groups) > 1:
        rows = [
            (words_of(name), [format_difference(name, d) for d in differences[name]], "")
            for name in names
        ]
        title = f"Differences to {groups[0].label}"
        yield Section("differences", title, [table_of(titles[1:], rows, "")])
    if not comparison.users.empty:
        told = (
            "The same users on both sides; each counts once, however many jobs they have. Users "
            "with a lower value are better off. 95 % interval, by bootstrap over users."
        )
        title = f"Users compared with {groups[0].label}"
        yield Section("users", title, [*paragraphs([told]), _users_table(comparison)])


def given_up_cells(comparison: Comparison) -> Iterator[tuple[str, list[str]]]:
    """Yield the names of what was given up in the queue, and the texts of all groups."""
    for name, found in comparison.given_up.items():
        yield (
            name,
            [
                "-" if one is None else _with_half_width(amount_of(name, one.mean), one.half_width)
                for one in found
            ],
        )


def group_origins(groups: Sequence[Group]) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the labels and the provenance of groups, with all their seeds."""
    found = []
    for group in groups:
        one = provenance(group.first)
        if len(group.runs) > 1:
            one = one | {"configuration": one["configuration"] | {"seed": group.seeds}}
        found.append(one)
    return [group.label for group in groups], found


def _users_table(comparison: Comparison) -> str:
    rows = []
    for name in OF_USERS:
        found = comparison.user_differences[name]
        for group, difference in zip(comparison.groups[1:], found, strict=True):
            if difference is not None:
                shown = [f"{difference.estimate.count:,}", *format_users(name, difference)]
                rows.append((words_of(name), shown, group.title))
    head = ["users", "mean difference", "interval", "better off", "worse off"]
    return table_of(head, rows, "")
