"""The command ``hpcrowd demo``: run the demo, print a comparison, and write a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcrowd.analysis.html import figure_of, html_page, origin_of, table_of
from hpcrowd.analysis.metrics import METRICS, PERCENTILES, format_metric, words_of
from hpcrowd.environment.limits.numbers import MOST_DAYS
from hpcrowd.scenarios.commands.options import AsJson, Seed
from hpcrowd.scenarios.terminal import (
    plain_table,
    print_json,
    say,
    standard_output,
)

if TYPE_CHECKING:
    from rich.table import Table

    from hpcrowd.analysis.run import Run


#: Columns of the table: metric, heading.
COLUMNS = (
    ("jobs_in", "jobs"),
    ("utilization", "utilization"),
    ("wait_mean_s", "mean wait"),
    ("wait_max_s", "longest wait"),
    ("bounded_slowdown_mean", "bounded slowdown"),
)

#: Metrics whose distribution over users the report shows.
OVER_USERS = ("wait_mean_s", "response_mean_s", "bounded_slowdown_mean")


def command(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("hpcrowd-demo"),
    days: Annotated[
        int, typer.Option(min=1, max=MOST_DAYS, help="Days in which the users work.")
    ] = 28,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Simulate a small built-in population for a month, with and without feedback."""
    from hpcrowd.agents.generative.archetypes import DEMO_USERS
    from hpcrowd.environment.output.whole import whole_folder
    from hpcrowd.scenarios.demo import PROCESSORS, observations, run_demo

    with whole_folder(out) as place:
        runs = run_demo(days, seed)
        said = observations(runs)
        _write(runs, said, place, days, seed)
    if as_json:
        print_json(
            {
                "days": days,
                "seed": seed,
                "processors": PROCESSORS,
                "runs": [
                    {"label": run.label, "configuration": run.configuration, **run.metrics}
                    for run in runs
                ],
                "observations": said,
                "folder": str(out),
            }
        )
    else:
        console = standard_output()
        users = ", ".join(f"{count} {name}" for name, count in DEMO_USERS.items())
        console.print(f"{_days(days)} on {PROCESSORS} processors, seed {seed}; users: {users}\n")
        console.print(comparison_table(runs))
        for sentence in said:
            console.print(f"\n{sentence}")
    say(f"\nReport, pictures, tables and traces are in {out}; begin with {out / 'report.html'}")


def _days(days: int) -> str:
    return "1 day" if days == 1 else f"{days:,} days"


def comparison_table(runs: Sequence[Run]) -> Table:
    """Return the main metrics of runs as a table for a terminal, one run a line."""
    headings = [heading for _, heading in COLUMNS]
    table = plain_table("users, scheduler", *headings, whole=1)
    for column, heading in zip(table.columns[1:], headings, strict=True):
        column.min_width = max(len(word) for word in heading.split())
    for run in runs:
        table.add_row(run.label, *(format_metric(name, run.metrics[name]) for name, _ in COLUMNS))
    return table


def _write(runs: Sequence[Run], said: Sequence[str], place: Path, days: int, seed: int) -> None:
    """Write the whole folder of the demo into ``place``."""
    from hpcrowd.agents.generative.archetypes import DEMO_USERS, GROUP_NAMES
    from hpcrowd.analysis.comparison.pictures import draw_runs, queues
    from hpcrowd.analysis.pictures.plots import figure_png
    from hpcrowd.analysis.results import provenance, write_origin, write_run
    from hpcrowd.scenarios.demo import PROCESSORS

    for run in runs:
        folder = place / run.label.lower().replace(", ", "-")
        folder.mkdir()
        write_run(run, folder)
    pictures = {
        "comparison.png": (
            figure_png(draw_runs(runs, GROUP_NAMES, "The demo at a glance")),
            "The main metrics; mean waits of each kind of user (logarithmic scale); and when jobs "
            "are submitted in a mean week. Oblivious users submit the same under both schedulers.",
        ),
        "queues.png": (
            figure_png(queues(runs)),
            "Jobs in the queue over time, to the same scale. Users with feedback wait for "
            "their results before they submit again.",
        ),
    }
    for name, (png, _) in pictures.items():
        (place / name).write_bytes(png)
    parts = [figure_of(png, caption) for png, caption in pictures.values()]
    parts += ["<h2>Metrics</h2>", metrics_table(runs)]
    parts += ["<h2>Differences between users</h2>", users_table(runs)]
    parts += ["<h2>Where this comes from</h2>"]
    labels, origins = [run.label for run in runs], [provenance(run) for run in runs]
    again = f"hpcrowd demo --days {days} --seed {seed}"
    parts.append(origin_of(labels, origins, runs[0].clock, again))
    report = html_page(f"hpcrowd demo: {_days(days)}, seed {seed}", said, parts)
    (place / "report.html").write_text(report, encoding="utf-8")
    shared = {"kind": "demo", "days": days, "seed": seed, "processors": PROCESSORS}
    settings = shared | {"population": dict(DEMO_USERS)}
    write_origin(place, settings, runs=[run.label for run in runs])


def metrics_table(runs: Sequence[Run]) -> str:
    """Return the metrics, without those that no run has and counts that are 0 everywhere."""
    rows = []
    for metric in METRICS:
        values = [run.metrics[metric.name] for run in runs]
        if any(values) or metric.name in ("jobs_in", "jobs_completed", "wait_mean_s"):
            shown = [format_metric(metric.name, value) for value in values]
            rows.append((metric.words, shown, metric.meaning))
    return table_of([run.label for run in runs], rows, "meaning")


def users_table(runs: Sequence[Run]) -> str:
    """Return percentiles over users of :data:`OVER_USERS`, a column for each run."""
    meanings = {metric.name: metric.meaning for metric in METRICS}
    rows = [
        (
            words_of(f"{name}_users_p{p}"),
            [format_metric(name, run.metrics["per_user"][name][f"p{p}"]) for run in runs],
            f"{p} % of the users have less" + ("" if place else f"; {meanings[name]}"),
        )
        for name in OVER_USERS
        for place, p in enumerate(PERCENTILES)
    ]
    return table_of([run.label for run in runs], rows, "")
