"""The command ``hpcrowd report``: one HTML file on a run, or on several side by side."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from hpcrowd.analysis.comparison.numbers import Comparison, group_runs
from hpcrowd.analysis.report.interactive import check_bokeh
from hpcrowd.analysis.report.runs import report_html, write_report_figures
from hpcrowd.analysis.results import read_run
from hpcrowd.analysis.run import Run
from hpcrowd.environment.errors import ResultsError
from hpcrowd.environment.output.whole import whole_folder
from hpcrowd.scenarios.commands.options import AsJson, Reading, all_at_hand, reads_traces
from hpcrowd.scenarios.kinds.replay import ReplayConfig
from hpcrowd.scenarios.kinds.trace_settings import reading_options, reading_words
from hpcrowd.scenarios.outputs import check_folder, check_writable, write_whole
from hpcrowd.scenarios.terminal import print_json, progress_bar, reading, say

#: Characters at the beginning of a report that contain the name of its generator.
HEAD = 2000

#: Names for files whose settings are in the report but whose own names are not.
FILES = {"users": "USERS.toml", "platform": "PLATFORM.toml"}

#: Options that are shown in a command even if they have their defaults.
ALWAYS = ("users", "scheduler")


Title = Annotated[
    str,
    typer.Option(help="Title of the page; the names of the runs unless given.", show_default=False),
]

Figures = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", help="Folder for every picture as PNG and SVG, and its data as CSV."
    ),
]

Interactive = Annotated[
    bool,
    typer.Option(
        "--interactive",
        help="Charts to move, zoom and point at instead of some pictures; one file, too.",
    ),
]


@reads_traces
def command(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="Folders of results, folders that hold several of them, or recorded traces.",
            callback=all_at_hand,
        ),
    ],
    how: Reading,
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the report.")] = Path(
        "report.html"
    ),
    title: Title = "",
    figures: Figures = None,
    interactive: Interactive = False,
    as_json: AsJson = False,
) -> None:
    """Write a report on one or more runs as an HTML page.

    The page is a single file that loads nothing, and prints well. It has no scripts unless it is
    interactive. The same runs give the same bytes.

    \b
    hpcrowd report runs/fluid
    hpcrowd report runs/rigid runs/fluid -o both.html --title "Do users notice?"
    hpcrowd report log.swf.gz -o log.html --figures log-figures
    hpcrowd report runs/fluid -o charts.html --interactive
    """
    check_writable(out, "--out")
    if interactive:
        check_bokeh()
    found = [folder for path in runs for folder in runs_in(path)]
    if figures is not None:
        check_folder(figures, (*found, out), "--figures")
    with progress_bar() as progress:
        options = reading_options(**how)
        read = [read_run(path, options) for path in reading(found, progress)]
        comparison = Comparison(group_runs(read))
        commands = [_command([*map(str, runs), *reading_words(how)], out, title, figures)]
        commands[0] += " --interactive" if interactive else ""
        commands += dict.fromkeys(filter(None, map(command_of, comparison.runs)))
        page = report_html(
            comparison, title=title, again=commands, interactive=interactive, progress=progress
        )
        if figures is None:
            write_whole(out, page)
        else:
            progress("writing pictures and data", 1, 1)
            with whole_folder(figures) as place:
                write_report_figures(comparison, place)
                write_whole(out, page)
    if as_json:
        shown = [{"label": run.label, "metrics": run.metrics} for run in comparison.runs]
        written = {"report": str(out), "figures": None if figures is None else str(figures)}
        print_json({**written, "runs": shown})
        return
    say(f"The report is {out} ({out.stat().st_size / 1e6:.1f} MB)")
    if figures is not None:
        say(f"Pictures and their data are in {figures}")


def runs_in(path: Path) -> list[Path]:
    """Return the runs at a path: itself, or the folders of results in a folder; not of a sweep."""
    if path.is_dir() and not (path / "jobs.parquet").exists():
        if (path / "study.json").exists():
            raise ResultsError(
                f"{path}: the folder of a sweep, which keeps the metrics of its runs but not what "
                "a report draws; see its summary.csv and pictures, or write runs with --out"
            )
        inside = sorted(file.parent for file in path.glob("*/jobs.parquet"))
        if inside:
            return inside
    return [path]


def command_of(run: Run) -> str:
    """Return the command that repeats a replay; empty for other runs."""
    if run.configuration.get("kind") != "replay" or run.reading.source is None:
        return ""
    words = ["hpcrowd", "replay", run.reading.source["source"]]
    for name, field in ReplayConfig.settings().items():
        value: Any = run.configuration.get(name, field.default)
        is_default = value == field.default and name not in ALWAYS
        if is_default or value is None or value is False:
            continue
        words.append(f"--{name.replace('_', '-')}")
        if isinstance(value, dict):
            words.append(FILES.get(name) or str(value.get("name")))
        elif value is not True:
            words.append(str(value))
    return shlex.join(words)


def _command(paths: Sequence[str], out: Path, title: str, figures: Path | None) -> str:
    words = ["hpcrowd", "report", *paths, "-o", str(out)]
    words += ["--title", title] if title else []
    words += ["--figures", str(figures)] if figures is not None else []
    return shlex.join(words)
