"""The report on runs: one HTML file with numbers and pictures, for screen and print.

A report on one run shows everything. A report on several compares the others with the first, then
shows the most important results of each. The file has no scripts and loads nothing; the same runs
give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from hpcrowd.analysis import html
from hpcrowd.analysis.comparison.multiples import headed
from hpcrowd.analysis.comparison.numbers import Comparison, Group, group_runs
from hpcrowd.analysis.comparison.report import (
    PICTURES,
    comparison_tables,
    format_estimate,
    group_origins,
    headline,
    write_tables,
)
from hpcrowd.analysis.curves import span_of
from hpcrowd.analysis.metrics import METRICS, PERCENTILES, format_metric, words_of
from hpcrowd.analysis.numbers import letter
from hpcrowd.analysis.pictures.platform_marks import MOST, marks_of
from hpcrowd.analysis.pictures.plots import figure_png, run_name, trace_name, write_picture
from hpcrowd.analysis.pictures.waits import users_data
from hpcrowd.analysis.report.figures import (
    SCALE,
    SUFFIXES,
    Images,
    Tell,
    figures_of,
    write_figures,
)
from hpcrowd.analysis.results import provenance, version_of, write_origin
from hpcrowd.analysis.run import Run, again_lines, recorded_of, warnings_of
from hpcrowd.environment.clock import moment
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import State
from hpcrowd.environment.quantities import format_duration, plural

#: Rows of the users' table: the users with the most work.
MOST_USERS = 12

#: Metrics in that table.
OF_USERS = ("wait_mean_s", "recorded_wait_mean_s", "bounded_slowdown_mean", "lateness_mean_s")

#: Called before each picture with its title, the number done and the total.
Progress = Callable[[str, int, int], Any]

#: Packages whose versions affect the bytes of a report, in addition to those of the runs.
DRAWN_BY = ("hpcrowd", "matplotlib", "numpy")

#: Most groups of runs that get their own section in a report on several.
MOST_PARTS = 8

#: Pictures in the section of each of several runs.
OF_EACH = ("use", "classes", "users")

#: Groups named in the heading; of the others it gives only the number.
IN_HEADING = 3


def report_html(
    runs: Sequence[Run] | Comparison,
    *,
    title: str = "",
    again: Sequence[str] = (),
    interactive: bool = False,
    progress: Progress | None = None,
) -> str:
    """Return the report on one run, or on several side by side, as one HTML file.

    Parameters
    ----------
    runs
        One or several runs, or the result of ``hc.compare``. The others are compared
        with the first.
    title
        Heading; by default the labels of the runs.
    again
        Commands that reproduce the report and the runs.
    interactive
        Whether some pictures are charts, see :mod:`hpcrowd.analysis.report.interactive`; the page
        then has scripts, and still loads nothing.
    progress
        Called before each picture.

    Raises
    ------
    QuantityError
        If there is no run.
    UnavailableError
        If it is to be interactive and Bokeh is not installed.

    Examples
    --------
    >>> report_html([])
    Traceback (most recent call last):
    ...
    hpcrowd.environment.errors.QuantityError: no run: nothing to report on; give one or several
    """
    comparison = _compared(runs)
    groups = comparison.groups
    total = sum(_pictures(comparison))
    done = iter(range(total))

    def tell(what: str) -> None:
        if progress is not None:
            progress(what, next(done, total), total)

    images = Images(tell)
    if interactive:
        from hpcrowd.analysis.report.interactive import Charts

        images = Charts(tell)
    first = groups[0].first
    if len(groups) == 1 and len(groups[0].runs) == 1:
        lead = told(first)
        sections = list(sections_of_run(first, images))
        title = title or run_name(first)
    else:
        lead = [*headline(comparison), *comparison.notes]
        sections = [*_side_by_side(comparison, tell), *_parts(comparison, images)]
        names = "; ".join(group.label for group in groups[:IN_HEADING])
        more = f" and {len(groups) - IN_HEADING} more" if len(groups) > IN_HEADING else ""
        title = title or f"{headed('Comparison', groups)}: {names}{more}"
    sections.append(_origin(comparison, again))
    note = [first.clock.note[0].upper() + first.clock.note[1:] + "."] if first.clock.note else []
    scripts = images.scripts()
    lead = [*lead, *note, *(images.lead if scripts else ())]
    return html.html_page(title, lead, html.sections_of(sections), scripts)


def write_report_figures(runs: Sequence[Run] | Comparison, folder: str | Path) -> None:
    """Write every picture of a report as PNG and SVG, and its data as CSV, into a folder.

    For one run they go into the folder itself. For several, the folder gets the pictures of the
    comparison, and subfolders ``A``, ``B`` and so on get those of each group's first run.

    Parameters
    ----------
    runs
        As for :func:`report_html`.
    folder
        An existing folder; it also gets a ``provenance.json``.
    """
    comparison, place = _compared(runs), Path(folder)
    groups = comparison.groups
    if len(groups) == 1 and len(groups[0].runs) == 1:
        write_figures(groups[0].first, place)
    else:
        for name, drawing in PICTURES.items():
            figure = drawing.draw(groups)
            for suffix in SUFFIXES:
                write_picture(figure, (place / name).with_suffix(suffix))
        write_tables(comparison, place)
        for number, group in enumerate(groups):
            part = place / letter(number)
            part.mkdir()
            write_figures(group.first, part)
    origins = [provenance(run) for run in comparison.runs]
    write_origin(
        place,
        {"kind": "report", "runs": [one["configuration"] for one in origins]},
        runs=[run.label for run in comparison.runs],
        traces=[one["trace"] for one in origins],
    )


def _compared(runs: Sequence[Run] | Comparison) -> Comparison:
    """Return the comparison of the runs."""
    if isinstance(runs, Comparison):
        return runs
    if not runs:
        raise QuantityError("no run: nothing to report on; give one or several")
    return Comparison(group_runs(runs))


def _pictures(comparison: Comparison) -> Iterator[int]:
    """Yield the number of pictures of each section."""
    groups = comparison.groups
    if len(groups) == 1 and len(groups[0].runs) == 1:
        yield len(list(figures_of(groups[0].first)))
        return
    yield len(PICTURES)
    for group in groups[:MOST_PARTS]:
        names = {name for name, _ in figures_of(group.first)}
        yield len(names & {*OF_EACH, "visits", "power"})


def _side_by_side(comparison: Comparison, tell: Tell) -> Iterator[html.Section]:
    yield from comparison_tables(comparison)
    parts = []
    for drawing in PICTURES.values():
        tell(drawing.title)
        png = figure_png(drawing.draw(comparison.groups), SCALE)
        parts.append(html.figure_of(png, drawing.caption, drawing.title))
    yield html.Section("pictures", "Side by side", parts)


def _parts(comparison: Comparison, images: Images) -> Iterator[html.Section]:
    """Yield the section of each group: configuration, load, waits, users."""
    groups = comparison.groups
    for number, group in enumerate(groups[:MOST_PARTS]):
        run = group.first
        parts = html.paragraphs(told(run))
        if len(group.runs) > 1:
            parts += html.paragraphs(
                [f"This is the first of {plural(len(group.runs), 'run')} with different seeds."]
            )
        if len(run.jobs):
            parts += [*images.of("use", run), *marks(run)]
            parts += [*images.of("classes", run), *images.of("users", run)]
            parts += users_part(run)
        for section in accounts(run, images):
            parts += [f"<h3>{escape(section.title)}</h3>", *section.parts]
        yield html.Section(f"run-{letter(number)}", f"{letter(number)}: {group.title}", parts)
    if len(groups) > MOST_PARTS:
        yield html.Section("others", "Other runs", _others(groups))


#: Metrics of the runs that have no part of their own.
OF_OTHERS = ("jobs_in", "wait_mean_s", "bounded_slowdown_mean", "utilization", "makespan_s")


def _others(groups: Sequence[Group]) -> list[str]:
    """Return a table of the groups that have no part of their own."""
    rows = [
        [letter(number), group.title, *(format_estimate(name, group.estimate(name))
                                        for name in OF_OTHERS)]
        for number, group in enumerate(groups[MOST_PARTS:], MOST_PARTS)
    ]  # fmt: skip
    caption = (
        f"The first {MOST_PARTS} runs have a part each; the numbers of "
        f"{plural(len(rows), 'more run')} are here, and in the tables and pictures above. Report "
        "on them separately to see more of them."
    )
    head = ["", "run", *map(words_of, OF_OTHERS)]
    return [html.rows_table(head, rows, words=2, caption=caption)]


def _origin(comparison: Comparison, again: Sequence[str]) -> html.Section:
    """Return the section on origins: dropped jobs, configurations, versions."""
    groups = comparison.groups
    lines = [
        line if len(groups) == 1 else f"{letter(number)}: {line}"
        for number, group in enumerate(groups)
        for line in group.first.reading.counted
    ]
    parts = ["<h3>Reading the trace</h3>", html.list_of(lines)] if lines else []
    labels, found = group_origins(groups)
    parts += ["<h3>Configuration</h3>", html.origin_of(labels, found, groups[0].first.clock, again)]
    drawn = ", ".join(f"{name} {version_of(name)}" for name in DRAWN_BY)
    clean = [] if lines else ["When the trace was read, nothing was dropped or repaired."]
    parts += html.paragraphs(
        [
            *clean,
            f"This page was made by {drawn}.",
            "hpcrowd report with --figures FOLDER writes every picture as PNG and SVG, with its "
            "data as CSV.",
        ]
    )
    return html.Section("origin", "Where this comes from", parts)


def sections_of_run(run: Run, images: Images) -> Iterator[html.Section]:
    """Yield the sections of a report on one run."""
    if len(run.jobs):
        yield html.Section("numbers", "Key numbers", [metric_table(run)])
        yield from _sections_of_jobs(run, images)
    else:
        yield html.Section("numbers", "Why there is nothing to see", _empty(run))
    yield from accounts(run, images)


def _sections_of_jobs(run: Run, images: Images) -> Iterator[html.Section]:
    """Yield the sections with the pictures of the jobs; those without any are left out."""
    of_time = [*images.of("use", run), *marks(run), *images.of("submissions", run)]
    for section in (
        html.Section("time", "Over time", [*of_time, *images.of("whole", run)]),
        html.Section("waits", "Who waits", [*images.of("waits", run), *images.of("classes", run)]),
        html.Section("rhythm", "Week and day", [*images.of("week", run), *images.of("day", run)]),
        html.Section(
            "users",
            "Users",
            [*images.of("users", run), *users_part(run), *images.of("think", run)],
        ),
    ):
        if section.parts:
            yield section


def _empty(run: Run) -> list[str]:
    """Return what a run without jobs can be due to."""
    lines = run.reading.counted or ["no job was dropped when the trace was read"]
    told = [
        f"The run has no jobs, so there are no numbers and no pictures. Its machine has "
        f"{plural(run.processors, 'processor')}.",
        "Three things make such a run: a trace whose jobs were all dropped as they cannot run, a "
        "window or a filter that leaves none of them, and users who submit nothing. The settings "
        "are below; of the trace:",
    ]
    return [*html.paragraphs(told), html.list_of(lines)]


def metric_table(run: Run) -> str:
    """Return the metrics of a run, of its record and over users, and what they mean."""
    rows, recorded = [], recorded_of(run)
    beside = ["recorded"] if recorded else []
    for metric in METRICS:
        value = run.metrics[metric.name]
        counted = metric.name.startswith("jobs_") and metric.name != "jobs_completed"
        # A record has no lateness.
        if value is None or (counted and not value) or (run.is_record and "late" in metric.name):
            continue
        users = run.metrics["per_user"].get(metric.name, {})
        spread = [format_metric(metric.name, users[f"p{p}"]) if users else "" for p in PERCENTILES]
        words, meaning = (text[0].upper() + text[1:] for text in (metric.words, metric.meaning))
        meaning = "" if meaning == words else meaning
        known = recorded.get(metric.name)
        record = ["" if known is None else format_metric(metric.name, known) for _ in beside]
        rows.append([words, format_metric(metric.name, value), *record, *spread, meaning])
    shares = ", ".join(f"{p}" for p in PERCENTILES)
    return html.rows_table(
        ["", "whole run", *beside, *(f"users' p{p}" for p in PERCENTILES), "meaning"],
        rows,
        remark=True,
        caption=f"p10, p50 and p90: {shares} % of the users are below this value; every user "
        "counts once. The same numbers are in summary.json, with their units.",
    )


def marks(run: Run) -> list[str]:
    """Return a table of the platform changes that are marked in pictures."""
    found = marks_of(run)
    rows = [
        [
            str(number),
            moment(run.clock, mark.begin),
            format_duration(mark.end - mark.begin) if mark.end > mark.begin else "",
            mark.text,
        ]
        for number, mark in enumerate(found[:MOST], 1)
    ]
    if not rows:
        return []
    more = f"; {len(found) - MOST:,} later ones are not marked" if len(found) > MOST else ""
    return [
        html.rows_table(
            ["mark", "from (local time)", "for", "what"],
            rows,
            words=4,
            caption=f"Changes of the platform, as numbered in the picture{more}",
        )
    ]


def users_part(run: Run) -> list[str]:
    """Return a table of the users with the most work."""
    found = users_data(run)
    shown = range(min(MOST_USERS, len(found["user"])))
    columns: dict[str, list[str]] = {
        "user": [run.jobs.who(int(found["user"][n])) for n in shown],
        "jobs": [f"{found['jobs'][n]:,}" for n in shown],
        "processor-hours": [f"{found['work_processor_h'][n]:,.0f}" for n in shown],
        "share of work": [f"{100 * found['share_of_work'][n]:.1f} %" for n in shown],
    }
    for name in OF_USERS:
        if name in found:
            values = [None if np.isnan(value) else float(value) for value in found[name]]
            columns[words_of(name)] = [format_metric(name, values[n]) for n in shown]
    if "behaviour" in found:
        columns["behaviour"] = [found["behaviour"][n] for n in shown]
    rest = 100 * (1 - float(found["share_of_work"][: len(shown)].sum()))
    others = len(found["user"]) - len(shown)
    told = f"; {plural(others, 'other')} have {rest:.1f} % of the work" if others else ""
    return [
        html.rows_table(
            list(columns),
            list(zip(*columns.values(), strict=True)),
            remark="behaviour" in columns,
            caption=f"Users with the most work{told}",
        )
    ]


def accounts(run: Run, images: Images) -> Iterator[html.Section]:
    """Yield a section for each part that contributed to a run and has one."""
    for part in run.parts.values():
        if not part.title:
            continue
        lines = part.lines(run.configuration)
        tables = [
            html.rows_table(one.heads, one.rows, words=one.words, caption=one.caption)
            for one in part.reported(run)
        ]
        drawn = [picture for name in part.drawn for picture in images.of(name, run)]
        listed = [html.list_of(lines)] if lines else []
        yield html.Section(part.key or part.name, part.title, [*listed, *drawn, *tables])


def told(run: Run) -> list[str]:
    """Return sentences for the top of a report: what was run, and the main results."""
    users = plural(len(np.unique(run.jobs.user)), "user")
    name = trace_name(run)
    of = f" of {name}" if name else ""
    how = "as recorded" if run.is_record else "simulated"
    first = (
        f"{run.label[0].upper() + run.label[1:]}: {plural(len(run.jobs), 'job')}{of} by {users}, "
        f"{how}, on {plural(run.processors, 'processor')}{_when(run)}."
    )
    lost = "; ".join(run.reading.counted)
    note = run.reading.size_note
    size = [f"{note[0].upper()}{note[1:]}."] if note else []
    held = [f"{line}." for line in again_lines(run.attempts)]
    for part in run.parts.values():
        if part.leads:
            lines = part.lines(run.configuration)
            held += [f"{line[0].upper()}{line[1:]}." for line in lines]
    return [
        first,
        *size,
        *_came_out(run),
        *held,
        *(f"{line[0].upper()}{line[1:]}." for line in warnings_of(run)),
        *([f"When the trace was read: {lost}."] if lost else []),
    ]


def _when(run: Run) -> str:
    """Return the period of a run, in local time where that is known."""
    span = span_of(run.jobs)
    if span is None:
        return ""
    first, last = span
    if run.clock.nominal:
        return f", in {format_duration(last - first)}"
    begin, end = run.clock.local(first), run.clock.local(last)
    return f", from {begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} (local time, {run.clock.zone})"


def _came_out(run: Run) -> list[str]:
    found, users = run.metrics, run.metrics["per_user"]["wait_mean_s"]
    if found["wait_mean_s"] is None:
        ended = [(run.jobs.count(state), state.name.lower()) for state in State]
        told = ", ".join(f"{plural(count, 'job')} {name}" for count, name in ended if count)
        return [f"No job ran: {told}." if told else "No job ran, as nothing was submitted."]
    lines = [
        f"A job waited {_shown(run, 'wait_mean_s')} on average and {_shown(run, 'wait_max_s')} at "
        "most. Half of the users have a mean wait below "
        f"{format_metric('wait_mean_s', users['p50'])}, nine in ten below "
        f"{format_metric('wait_mean_s', users['p90'])}. "
        f"{_shown(run, 'utilization')} of the processor time was in use."
    ]
    late = found["lateness_mean_s"]
    if late is not None and not run.is_record:
        when = "as recorded" if abs(late) < 0.5 else (
            f"{format_duration(abs(late))} {'later' if late > 0 else 'earlier'} than recorded"
        )  # fmt: skip
        lines.append(f"On average a job was submitted {when}.")
    return lines


def _shown(run: Run, name: str) -> str:
    return format_metric(name, run.metrics[name])
