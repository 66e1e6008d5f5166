"""The command ``hpcrowd stats``: features of workloads side by side, and their distance."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcrowd.agents.work.sessions import SessionDefinition
from hpcrowd.analysis.features.feature import Feature, Features
from hpcrowd.analysis.features.report import features_html, format_value
from hpcrowd.analysis.features.stats import (
    FEATURES,
    GROUPS,
    VARIABLES,
    Difference,
    Distance,
    distance_of,
    measure_all,
    read_workload,
    stats_json,
)
from hpcrowd.analysis.features.workload import Settings
from hpcrowd.analysis.numbers import letter
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.quantities import format_duration, parse_duration, plural
from hpcrowd.scenarios.commands.options import (
    AsJson,
    Reading,
    ReportFile,
    WhichJobs,
    all_at_hand,
    reads_traces,
)
from hpcrowd.scenarios.kinds.trace_settings import reading_options, reading_words
from hpcrowd.scenarios.outputs import check_writable, write_whole
from hpcrowd.scenarios.terminal import (
    Reasons,
    plain_table,
    print_json,
    progress_bar,
    reading,
    say,
    standard_output,
)

if TYPE_CHECKING:
    from rich.console import Console


Traces = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="TRACE",
        help="Traces, or folders of results.",
        show_default=False,
        callback=all_at_hand,
    ),
]

BagGap = Annotated[str, typer.Option(help="Longest gap between two jobs of a bag of tasks.")]

Sessions = Annotated[
    str,
    typer.Option(metavar="arrival:GAP", help="Longest gap between two submissions of a session."),
]

DistanceOption = Annotated[
    bool, typer.Option("--distance", help="Show how far two traces are apart.")
]

ListAll = Annotated[
    bool, typer.Option("--list", help="List all features with definition and source, and exit.")
]


@reads_traces
def command(
    traces: Traces = None,
    *,
    how: Reading,
    which: WhichJobs = "completed",
    time_scale: Annotated[
        str,
        typer.Option(
            help="Length of the intervals in which arrivals are counted, for long-range dependence."
        ),
    ] = "15m",
    bag_gap: BagGap = "100s",
    sessions: Sessions = "arrival:60m",
    distance: DistanceOption = False,
    out: ReportFile = None,
    list_all: ListAll = False,
    as_json: AsJson = False,
) -> None:
    """Measure workloads: arrivals, jobs, bags of tasks, users.

    \b
    hpcrowd stats log.swf.gz
    hpcrowd stats log.swf.gz runs/fluid --out report.html
    hpcrowd stats log.swf.gz synthetic.swf.gz --distance
    """
    if list_all:
        _list(as_json=as_json)
        return
    scale, gap = parse_duration(time_scale, "--time-scale"), parse_duration(bag_gap, "--bag-gap")
    settings = Settings(scale, gap, gap_of(sessions))
    if not traces:
        raise QuantityError("stats: no trace given; name one or several, or use --list")
    if distance and len(traces) != 2:
        raise QuantityError(f"--distance: {plural(len(traces), 'trace')} given; it compares two")
    if distance and out is not None:
        raise QuantityError("--out: no report is drawn with --distance; leave out one of the two")
    if out is not None:
        check_writable(out)
    with progress_bar() as progress:
        options = reading_options(**how)
        workloads = [
            read_workload(path, which, settings, options) for path in reading(traces, progress)
        ]
        measured = measure_all(workloads, progress=progress)
        if out is not None:
            progress("drawing", 1, 1)
            words = ["hpcrowd", "stats", *map(str, traces), *reading_words(how), "--out", str(out)]
            write_whole(out, features_html(measured, again=shlex.join(words)))
    if out is not None:
        say(f"The report is {out}")
    if distance:
        apart = distance_of(*measured)
        if as_json:
            print_json(apart.to_json())
        else:
            show_distance(apart)
    elif as_json:
        print_json(stats_json(measured))
    else:
        show(measured)


def gap_of(sessions: str) -> int:
    """Return the gap that ends a session, s; features are defined for no other sessions."""
    definition = SessionDefinition.parse(sessions)
    if definition.kind != "arrival" or definition.threshold is None:
        raise QuantityError(
            f"sessions {sessions!r}: features need sessions that end with a gap between "
            "submissions; write for example arrival:60m"
        )
    return definition.threshold


def _list(*, as_json: bool) -> None:
    """Print all features: name, definition, source."""
    if as_json:
        print_json(
            {
                one.name: {
                    "group": group.name,
                    "title": one.title.strip(),
                    "unit": one.unit,
                    "definition": one.definition,
                    "source": one.source,
                }
                for group in GROUPS
                for one in group.features
            }
        )
        return
    console = standard_output()
    for group in GROUPS:
        columns = ("feature", "definition", "source")
        rows = [(one.name, one.definition, one.source) for one in group.features]
        console.print(plain_table(*columns, rows=rows, words=3, whole=1, title=group.title))
        console.print()


def show(measured: Sequence[Features]) -> None:
    """Print what was measured, then a table for each group of features."""
    console = standard_output()
    many = len(measured) > 1
    for place, features in enumerate(measured):
        _say_what(console, features, f"{letter(place)}  " if many else "")
    reasons = Reasons()
    for group in GROUPS:
        table = plain_table("", *map(letter, range(len(measured))), title=group.title)
        table.show_header = many
        for one in group.features:
            cells = []
            for features in measured:
                value = features[one.name]
                cells.append(
                    format_value(one, value)
                    if value.number is not None
                    else reasons.mark(value.reason)
                )
            table.add_row(one.title, *cells)
        console.print()
        console.print(table)
    reasons.say(console)


def show_distance(apart: Distance) -> None:
    """Print the distances of distributions, then the differences of all features."""
    console = standard_output()
    for place, features in enumerate((apart.first, apart.second)):
        _say_what(console, features, f"{letter(place)}  ")
    reasons = Reasons()
    title = "Distances of distributions"
    table = plain_table("", "KS", "Wasserstein", "of the mean of A", title=title)
    for name, found in apart.distributions.items():
        variable = VARIABLES[name]
        if isinstance(found, str):
            table.add_row(variable.title, reasons.mark(found), "", "")
            continue
        moved, of_mean = found.wasserstein, found.wasserstein_relative
        table.add_row(
            variable.title,
            f"{found.ks:.3f}",
            format_duration(moved) if variable.unit == "s" else f"{moved:,.3g}",
            "" if of_mean is None else f"{100 * of_mean:,.1f} %",
        )
    console.print()
    console.print(table)
    differences = apart.differences
    for group in GROUPS:
        table = plain_table("", "A", "B", "B - A", title=group.title)
        for one in group.features:
            difference = differences[one.name]
            if isinstance(difference, str):
                table.add_row(one.title, reasons.mark(difference), "", "")
                continue
            table.add_row(
                one.title,
                format_value(one, apart.first[one.name]),
                format_value(one, apart.second[one.name]),
                _difference(one, difference),
            )
        console.print()
        console.print(table)
    assert set(differences) == set(FEATURES)
    reasons.say(console)


def _difference(feature: Feature, found: Difference) -> str:
    """Return a difference as text: relative, or absolute where values may be near 0."""
    if feature.name.endswith("_share"):
        return f"{100 * found.difference:+.1f} points"
    if not feature.unit and max(abs(found.first), abs(found.second)) <= 1:
        return f"{found.difference:+.3f}"
    return "" if found.relative is None else f"{100 * found.relative:+,.1f} %"


def _say_what(console: Console, features: Features, letter: str) -> None:
    workload = features.workload
    console.print(f"{letter}{workload.name}: {plural(len(workload), 'job')} measured")
    for reason, count in workload.left_out.items():
        console.print(f"  {plural(count, 'job')} left out: {reason}")
    for note in (*workload.notes, workload.clock.note, *workload.remarks):
        if note:
            console.print(f"  {note}")
