"""A forecast as a folder: data, tables, pictures and a page.

=====================  =========================================================================
``forecast.json``      everything, with the meaning of its keys
``jobs.csv``           starts and ends of the jobs that wait, and of those that one would submit
``fans.csv``           load and queue over time, a row for each step and quantity
``waits.csv``          waits of the jobs that users submit, by day and class of processors
``effects.csv``        the effects of a change, if there is one
``fans.png`` ...       the pictures of :mod:`hpcrowd.analysis.pictures.fan`
``report.html``        tables and pictures as a page
``provenance.json``    configuration and versions: enough to make it again
=====================  =========================================================================
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from hpcrowd.analysis import html
from hpcrowd.analysis.forecast.bounds import over_futures
from hpcrowd.analysis.forecast.effects import MEASURES
from hpcrowd.analysis.pictures import fan
from hpcrowd.analysis.pictures.plots import figure_png
from hpcrowd.analysis.results import versions, write_json, write_origin
from hpcrowd.environment.clock import moment
from hpcrowd.environment.errors import printable
from hpcrowd.environment.output.whole import whole_folder
from hpcrowd.environment.quantities import format_duration, plural

if TYPE_CHECKING:
    from hpcrowd.analysis.forecast.answers import Answers, JobAnswer
    from hpcrowd.analysis.forecast.effects import EatenUp, Effect, Effects
    from hpcrowd.environment.clock import Clock

#: Pixels of a picture of the page per pixel of a screen.
SCALE = 2

#: Most rows of a table of jobs on a page; the tables in files have all.
MOST_ROWS = 200

#: Heading of the table of jobs.
JOB_HEADING = (
    "job", "user", "processors and time", "start: median", "50 %", "90 %", "at once, at all",
    "end: median", "why it waits now",
)  # fmt: skip

#: Heading of the table of effects.
EFFECT_HEADING = (
    "", "without", "with the change", "difference", "its 95 % interval", "50 % of the futures",
    "90 %",
)  # fmt: skip

#: Users of :data:`~hpcrowd.analysis.forecast.futures.USERS`, in words.
USERS_WORDS = {
    "think-time": "users who wait for their jobs before they go on",
    "think-time-windows": "users who wait for their jobs, and keep their working hours",
    "learned": "users who pause as a learned model says",
    "rigid": "users who submit as they did before, whatever happens",
    "none": "nobody who submits more jobs",
}

#: What is beyond the horizon, in tables.
LATER = "later"


def write(
    answers: Answers,
    folder: str | os.PathLike[str],
    *,
    effects: Sequence[Effects] = (),
    eaten: EatenUp | None = None,
    configuration: Mapping[str, Any] | None = None,
    trace: Mapping[str, Any] | None = None,
    again: Sequence[str] = (),
) -> None:
    """Write a forecast to a folder that appears only when it is complete.

    There are the effects of changes, one after the other, and how much of the effect of the first
    is eaten up by users who react. The configuration, and the trace, where the state comes from
    (such as its file and checksum), are fit for JSON; ``again`` are commands that make the forecast
    again. An HpcrowdError is raised if the folder cannot be written, or holds something else.
    """
    pngs = pictures(answers, effects)
    found = answers.to_dict()
    found["effects"] = [one.to_dict() for one in effects]
    found["eaten_up"] = None if eaten is None else eaten.to_dict()
    tables = answers.frames()
    if effects:
        import pandas as pd

        parts = [one.frame().assign(change=one.label) for one in effects]
        tables["effects"] = pd.concat(parts, ignore_index=True)
    text = page(answers, effects=effects, eaten=eaten, again=again, pngs=pngs)
    with whole_folder(folder) as place:
        write_json(found, place / "forecast.json")
        for name, frame in tables.items():
            frame.to_csv(place / f"{name}.csv", index=False, lineterminator="\n")
        for name, (png, _) in pngs.items():
            (place / f"{name}.png").write_bytes(png)
        (place / "report.html").write_text(text, encoding="utf-8")
        origin = None if trace is None else dict(trace)
        write_origin(place, configuration or {}, trace=origin)


def pictures(
    answers: Answers, effects: Sequence[Effects] = (), scale: float = SCALE
) -> dict[str, tuple[bytes, str]]:
    """Return the pictures by name, each as a PNG file and the name of its caption.

    Without fans or jobs there are no pictures of them.
    """
    figures = {}
    if answers.fans:
        figures["fans"] = (fan.fans(answers), "fans")
    if answers.jobs:
        figures["starts"] = (fan.starts(answers), "starts")
    for number, one in enumerate(effects, 1):
        name = "effects" if len(effects) == 1 else f"effects-{number}"
        figures[name] = (fan.effects(one), "effects")
    with catch_warnings():
        # Names of users may be in any script.
        filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        return {name: (figure_png(one, scale), what) for name, (one, what) in figures.items()}


def page(
    answers: Answers,
    *,
    effects: Sequence[Effects] = (),
    eaten: EatenUp | None = None,
    again: Sequence[str] = (),
    pngs: Mapping[str, tuple[bytes, str]] | None = None,
) -> str:
    """Return a forecast as an HTML page that loads nothing; parameters as of :func:`write`.

    ``pngs`` are the results of :func:`pictures`, if they have been made.
    """
    shown = pictures(answers, effects) if pngs is None else pngs
    figures = {
        name: html.figure_of(png, fan.CAPTIONS[what][1], fan.CAPTIONS[what][0])
        for name, (png, what) in shown.items()
    }
    sections = [*_sections(answers, effects, eaten, figures), _origin(answers, again)]
    title = f"Forecast: {printable(answers.source)}" if answers.source else "Forecast"
    return html.html_page(title, headline(answers), html.sections_of(sections))


def headline(answers: Answers) -> list[str]:
    """Return the forecast in a few sentences."""
    clock, now = answers.clock, answers.now
    zone = "" if clock.nominal else f" ({clock.zone})"
    waiting = sum(one.number is not None for one in answers.jobs)
    words = USERS_WORDS.get(answers.users, f"users {printable(answers.users)}")
    lines = [
        f"The cluster as it was on {moment(clock, now)}{zone}, with "
        f"{plural(answers.processors, 'processor')} and {plural(waiting, 'waiting job')}, and "
        f"{plural(answers.futures, 'future')} of {format_duration(answers.until - now)} under "
        f"{printable(answers.scheduler)}, with {words}."
    ]
    if answers.fans and answers.users != "none":
        lines.append(answers.submissions.words)
    if answers.fans:
        load, queue = answers.fans["load"], answers.fans["queue"]
        last = queue.bounds[:, -1]
        lines.append(
            f"On average {100 * float(load.mean.mean()):.0f} % of the processors will be busy. At "
            f"the end {plural(round(last[2]), 'job')} will wait in the median future, and "
            f"{_range(f'{last[0]:,.0f}', f'{last[4]:,.0f}')} in 90 % of the futures."
        )
    if answers.promise:
        lines.append(f"{answers.promise}.")
    return lines


def job_rows(answers: Answers) -> list[list[str]]:
    """Return a row for each job, with the columns :data:`JOB_HEADING`; ends in plain words."""
    return [_job_row(one, answers.clock, answers.now) for one in answers.jobs]


def _job_row(one: JobAnswer, clock: Clock, now: int) -> list[str]:
    low, lower, middle, upper, high = (_at(clock, second, now) for second in one.start)
    several = f"{one.count:,} x " if one.count > 1 else ""
    lasts = "" if one.requested < 0 else f", {format_duration(one.requested)}"
    return [
        printable(one.name.removeprefix("job ")),
        printable(one.user_name),
        f"{several}{one.processors:,}{lasts}",
        middle,
        _range(lower, upper),
        _range(low, high),
        f"{100 * one.at_once:.0f}, {100 * one.within:.0f} %",
        "" if one.end is None else _at(clock, one.end[2], now),
        printable(one.reason),
    ]


def _at(clock: Clock, second: float, now: int) -> str:
    if math.isnan(second):
        return ""
    if math.isinf(second):
        return LATER
    return "now" if round(second) <= now else moment(clock, round(second), near=now)


def _range(low: str, high: str) -> str:
    """Return a range of texts; a day that both have is written once."""
    if low == high:
        return low
    day, _, time = high.rpartition(" ")
    return f"{low} to {time if ':' in time and low.startswith(f'{day} ') else high}"


def effect_rows(effects: Effects) -> list[list[str]]:
    """Return a row for each effect on the whole horizon, with :data:`EFFECT_HEADING`."""
    return [_effect_row(one, effects) for one in effects.totals]


def start_rows(effects: Effects) -> list[list[str]]:
    """Return a row for each effect on the start of a job, with :data:`EFFECT_HEADING`."""
    return [_effect_row(one, effects) for one in effects.jobs]


def _effect_row(one: Effect, effects: Effects) -> list[str]:
    found, mean, bounds = one.to_dict(), one.mean, one.bounds
    is_start, measure = one.measure == "start_s", one.measure
    name = printable(one.of) if is_start else _of(one)
    if not mean.count:
        return [name, "", "", "", "", "", ""]
    first, second = found["first_mean"], found["second_mean"]
    values = (
        [_at(effects.clock, at, effects.now) for at in (first, second)]
        if is_start
        else [_number(measure, at) for at in (first, second)]
    )
    signed = [_signed(measure, at) for at in bounds]
    interval = ""
    if mean.low is not None and mean.high is not None:
        interval = _range(_signed(measure, mean.low), _signed(measure, mean.high))
    return [
        name, *values, _signed(measure, mean.mean), interval, _range(signed[1], signed[3]),
        _range(signed[0], signed[4]),
    ]  # fmt: skip


def _of(one: Effect) -> str:
    words = MEASURES[one.measure]
    if one.of in ("", "all"):
        return words
    return f"... of {one.of} {'processor' if one.of == '1' else 'processors'}"


def _number(measure: str, value: float) -> str:
    if measure.endswith("_s"):
        return format_duration(value)
    if measure == "load":
        return f"{100 * value:.1f} %"
    return f"{value:,.1f}"


def _signed(measure: str, value: float) -> str:
    text = _number(measure, value)
    if measure == "load":
        text = text.replace("%", "points")
    return f"+{text}" if value > 0 else text


def eaten_words(eaten: EatenUp) -> list[str]:
    """Return in sentences how much of an effect is eaten up by users who react."""
    measure, words = eaten.measure, MEASURES[eaten.measure]
    rigid, reacting = (
        f"{_signed(measure, one.mean)} ({_signed(measure, one.low or 0)} to "
        f"{_signed(measure, one.high or 0)})"
        for one in (eaten.rigid, eaten.reacting)
    )
    lines = [
        f"Effect of the change on the {words}: {rigid} if users do not react, {reacting} "
        "if they do. Intervals hold the mean with 95 % confidence."
    ]
    share = eaten.share
    if share is None:
        lines.append(
            "The effect on users who do not react cannot be distinguished from 0, so no share of "
            "it can be given; simulate more futures."
        )
    elif share.low is not None and share.high is not None:
        lines.append(
            f"The reaction eats up {100 * share.mean:.0f} % of the effect "
            f"({100 * share.low:.0f} to {100 * share.high:.0f} %); below 0 it adds to it, above "
            "100 % it turns it around."
        )
    return lines


def wait_rows(answers: Answers) -> tuple[list[str], list[list[str]]]:
    """Return heading and rows of the mean waits by class (rows) and day (columns)."""
    waits = answers.waits
    if waits is None:
        return [], []
    bounds = over_futures(waits.mean)
    jobs, started = waits.jobs.sum(axis=0), waits.started.sum(axis=0)
    days = [f"{answers.clock.local(int(at)):%a %d}" for at in waits.days[:-1]]
    rows = []
    for size, name in enumerate(waits.classes):
        if not jobs[size, -1]:
            continue
        cells = [name]
        for day in range(len(waits.days)):
            if not jobs[size, day]:
                cells.append("")
                continue
            low, middle, high = (format_duration(bounds[place, size, day]) for place in (0, 2, 4))
            more = "+" if started[size, day] < jobs[size, day] else ""
            cells.append(f"{middle}{more} ({_range(low, high)})")
        rows.append(cells)
    return ["processors", *days, "all days"], rows


def _sections(
    answers: Answers,
    effects: Sequence[Effects],
    eaten: EatenUp | None,
    figures: Mapping[str, str],
) -> Iterator[html.Section]:
    """Yield the sections of a page."""
    rows = job_rows(answers)
    asked = [row for row, one in zip(rows, answers.jobs, strict=True) if one.number is None]
    waiting = [row for row, one in zip(rows, answers.jobs, strict=True) if one.number is not None]
    horizon = ""
    if any(LATER in cell for row in rows for cell in row[3:8]):
        horizon = f"; {LATER}: beyond {moment(answers.clock, answers.until, near=answers.now)}"
    if asked:
        caption = (
            "At once, at all: probabilities that it starts at once and within the horizon. Of "
            f"several jobs: the first start and the last end{horizon}."
        )
        # The names of these jobs say how large they are.
        shown = [[row[0], *row[3:]] for row in asked]
        columns = (JOB_HEADING[0], *JOB_HEADING[3:])
        table = html.rows_table(columns, shown, remark=True, caption=caption)
        yield html.Section("asked", "If you submit now", [table])
    parts = []
    if waiting:
        caption = (
            "By submission. At once, at all: probabilities that it starts at once and within the "
            f"horizon{horizon}."
        )
        if len(waiting) > MOST_ROWS:
            caption = f"The first {MOST_ROWS:,} of {len(waiting):,} jobs. {caption}"
        parts.append(
            html.rows_table(JOB_HEADING, waiting[:MOST_ROWS], words=2, remark=True, caption=caption)
        )
    else:
        parts += html.paragraphs(["No job waits."])
    if "starts" in figures:
        parts.insert(0, figures["starts"])
    yield html.Section("jobs", "Waiting jobs", parts)
    if "fans" in figures:
        yield html.Section("load", "Load and queue", [figures["fans"]])
    heading, cells = wait_rows(answers)
    if cells:
        caption = (
            "Mean wait of the jobs that users submit on each day: median over futures, and 90 % of "
            "the futures. +: some have not started by the horizon, and count up to it."
        )
        table = html.rows_table(heading, cells, caption=caption)
        yield html.Section("waits", "Waits by size and day", [table])
    for number, one in enumerate(effects, 1):
        yield _effects_section(one, number, len(effects), eaten if number == 1 else None, figures)


def _effects_section(
    one: Effects, number: int, count: int, eaten: EatenUp | None, figures: Mapping[str, str]
) -> html.Section:
    name = "effects" if count == 1 else f"effects-{number}"
    parts = html.paragraphs(eaten_words(eaten)) if eaten is not None else []
    if name in figures:
        parts.append(figures[name])
    caption = (
        f"Means over {plural(len(one.pairs), 'pair')} of futures, up to the horizon. Differences "
        "are with minus without the change."
    )
    if one.totals:
        parts.append(html.rows_table(EFFECT_HEADING, effect_rows(one), caption=caption))
    if one.jobs:
        rows = start_rows(one)[:MOST_ROWS]
        caption = "Starts of jobs; those beyond the horizon count as the horizon."
        parts.append(html.rows_table(EFFECT_HEADING, rows, caption=caption))
    title = printable(one.label) if one.label else "the change"
    return html.Section(name, f"Effect of {title}", parts)


def _origin(answers: Answers, again: Sequence[str]) -> html.Section:
    parts = []
    if answers.notes:
        parts.append(html.list_of(map(printable, answers.notes)))
    if answers.clock.note:
        parts += html.paragraphs([f"{answers.clock.note[0].upper()}{answers.clock.note[1:]}."])
    parts.append(html.small_print([], versions(), again))
    return html.Section("origin", "Where this comes from", parts)
