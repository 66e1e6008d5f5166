"""The demo: a small built-in population works for a month, with and without feedback.

Four runs: users who wait for their results before they go on (*feedback*), and the same users as if
every job started at once (*oblivious*), each under FCFS and EASY.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.agents.generative.archetypes import DEMO_USERS, GROUP_NAMES, demo_population
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.environment.quantities import format_duration
from hpcrowd.environment.simulation import Simulation
from hpcrowd.scenarios.terminal import print_json, say, say_if_compiling, standard_output

if TYPE_CHECKING:
    from rich.table import Table


#: Processors of the machine.
PROCESSORS = 128

#: The runs: whether users hear of their results, and the scheduler.
RUNS = ((False, "fcfs"), (False, "easy"), (True, "fcfs"), (True, "easy"))

#: Columns of the table: metric, heading.
COLUMNS = (
    ("jobs_in", "jobs"),
    ("utilization", "utilization"),
    ("wait_mean_s", "mean wait"),
    ("wait_max_s", "longest wait"),
    ("bounded_slowdown_mean", "bounded slowdown"),
)


def run_demo(
    days: int = 28,
    seed: int = 0,
    processors: int = PROCESSORS,
    progress: Callable[[str], Any] | None = None,
) -> list[Run]:
    """Run the demo and return its four runs, in the order of :data:`RUNS`.

    Parameters
    ----------
    days
        Days, from a Monday 00:00 on, in which the users submit; then the cluster drains.
    seed
        Of everything random: the same for all four, so that each user draws the same numbers.
    processors
        Size of the machine; the population is meant for 128.
    progress
        Called with the label of each run before it begins.

    Raises
    ------
    QuantityError
        When ``days`` or ``processors`` is less than 1, or the seed negative.
    """
    if days < 1:
        raise QuantityError(f"days {days}: must be 1 or more")
    if seed < 0:
        raise QuantityError(f"seed {seed}: must be 0 or more")
    runs = []
    for hears, scheduler in RUNS:
        if progress is not None:
            progress(_label(hears, scheduler))
        runs.append(_run(days, seed, processors, hears, scheduler))
    return runs


def _label(hears: bool, scheduler: str) -> str:
    return f"{'feedback' if hears else 'oblivious'}, {scheduler.upper()}"


def _run(days: int, seed: int, processors: int, hears: bool, scheduler: str) -> Run:
    began = time.perf_counter()
    jobs = JobTable()
    model = Simulation(jobs, processors, scheduler, seed=seed)
    users = demo_population(model, horizon=days * DAY, hears=hears)
    prepared = time.perf_counter()
    model.run()
    ended = time.perf_counter()
    after = np.full(sum(user.submitted for user in users), UNKNOWN)
    for user in users:
        for unit, before in user.after.items():
            after[unit] = before
    return Run(
        jobs=jobs,
        processors=processors,
        label=_label(hears, scheduler),
        configuration={
            "kind": "demo",
            "users": "feedback" if hears else "oblivious",
            "scheduler": scheduler,
            "days": days,
            "processors": processors,
            "population": dict(DEMO_USERS),
            "seed": seed,
        },
        clock=model.clock,
        after=after if hears else None,
        wall_s={"prepare": round(prepared - began, 3), "simulate": round(ended - prepared, 3)},
    )


def observations(runs: Sequence[Run]) -> list[str]:
    """Return what is to be seen in the four runs of :func:`run_demo`, in sentences with numbers."""
    jobs = [f"{run.metrics['jobs_in']:,}" for run in runs]
    means = [run.metrics["wait_mean_s"] for run in runs]
    if None in means:
        return ["In some of these runs no job ran; more days make more work."]
    waits = [format_duration(mean) for mean in means]
    of_oblivious, of_feedback = means[0] - means[1], means[2] - means[3]
    more = runs[3].metrics["jobs_in"] / runs[2].metrics["jobs_in"] - 1
    return [
        f"Oblivious users submit the same {jobs[0]} jobs under both schedulers, and wait "
        f"{waits[0]} on average under FCFS, {waits[1]} under EASY.",
        f"The same people, when they wait for results before they go on, submit {jobs[2]} jobs "
        f"under FCFS and {jobs[3]} under EASY, and wait {waits[2]} and {waits[3]}.",
        f"So the step from FCFS to EASY {_worth(of_oblivious)} per job if one leaves out that "
        f"people react. With people who do, it {_worth(of_feedback)}, and they submit "
        f"{abs(more):.0%} {'more' if more >= 0 else 'fewer'} jobs.",
    ]


def _worth(seconds: float) -> str:
    """Return a change of the mean wait in words."""
    if round(seconds) == 0:
        return "changes no wait"
    return f"{'saves' if seconds > 0 else 'costs'} {format_duration(abs(seconds))} of waiting"


def demo_command(out: Path, *, days: int, seed: int, as_json: bool) -> None:
    """Run the demo, print the comparison, and write tables, traces, pictures and a report.

    Parameters
    ----------
    out
        Folder to write; an earlier demo there is replaced.
    days, seed
        See :func:`run_demo`.
    as_json
        Print one JSON object on standard output instead of the table.

    Raises
    ------
    HpcrowdError
        When a choice is wrong or the folder cannot be written.
    """
    from hpcrowd.analysis.results import whole_folder

    say_if_compiling()
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
        console = standard_output(highlight=False)
        users = ", ".join(f"{count} {name}" for name, count in DEMO_USERS.items())
        console.print(f"{_days(days)} on {PROCESSORS} processors, seed {seed}; users: {users}\n")
        console.print(comparison_table(runs))
        for sentence in said:
            console.print(f"\n{sentence}")
    say(f"\nReport, pictures, tables and traces are in {out}; begin with {out / 'report.html'}")


def _days(days: int) -> str:
    return "1 day" if days == 1 else f"{days:,} days"


def comparison_table(runs: Sequence[Run]) -> Table:
    """Return the chief metrics of runs as a table for a terminal, one run a line."""
    from rich.table import Table

    from hpcrowd.analysis.metrics import format_metric

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("users, scheduler", no_wrap=True)
    for _, heading in COLUMNS:
        longest = max(len(word) for word in heading.split())
        table.add_column(heading, justify="right", min_width=longest)
    for run in runs:
        table.add_row(run.label, *(format_metric(name, run.metrics[name]) for name, _ in COLUMNS))
    return table


def _write(runs: Sequence[Run], said: Sequence[str], place: Path, days: int, seed: int) -> None:
    """Write the whole folder of the demo into ``place``."""
    from hpcrowd.analysis.comparison.pictures import draw_runs, queues
    from hpcrowd.analysis.html import (
        Picture,
        figure_of,
        html_page,
        metrics_table,
        origin_of,
        users_table,
    )
    from hpcrowd.analysis.pictures.plots import figure_png
    from hpcrowd.analysis.results import provenance, write_json, write_run

    for run in runs:
        folder = place / run.label.lower().replace(", ", "-")
        folder.mkdir()
        write_run(run, folder)
    pictures = {
        "comparison.png": Picture(
            figure_png(draw_runs(runs, GROUP_NAMES, "The demo at a glance")),
            "The chief metrics; mean waits of each kind of user (logarithmic scale); and when jobs "
            "are submitted in a mean week. Oblivious users submit the same under both schedulers.",
        ),
        "queues.png": Picture(
            figure_png(queues(runs)),
            "Jobs in the queue over time, to the same scale. Users with feedback wait for "
            "their results before they submit again.",
        ),
    }
    for name, picture in pictures.items():
        (place / name).write_bytes(picture.png)
    parts = [figure_of(picture) for picture in pictures.values()]
    parts += ["<h2>Metrics</h2>", metrics_table(runs)]
    parts += ["<h2>From user to user</h2>", users_table(runs), "<h2>Where this comes from</h2>"]
    labels, origins = [run.label for run in runs], [provenance(run) for run in runs]
    again = f"hpcrowd demo --days {days} --seed {seed}"
    parts.append(origin_of(labels, origins, runs[0].clock, again))
    report = html_page(f"hpcrowd demo: {_days(days)}, seed {seed}", said, parts)
    (place / "report.html").write_text(report, encoding="utf-8")
    shared = {"kind": "demo", "days": days, "seed": seed, "processors": PROCESSORS}
    write_json(
        {
            "configuration": shared | {"population": dict(DEMO_USERS)},
            "runs": [run.label for run in runs],
            "versions": provenance(runs[0])["versions"],
        },
        place / "provenance.json",
    )
