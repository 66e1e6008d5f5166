"""Pictures of one or several workloads, and the report: one HTML file with them and all features.

:data:`PICTURES` names all pictures with their captions. Each takes workloads and returns a
matplotlib ``Figure``; what cannot be drawn says why. Lines of several workloads share a panel; maps
and fits have one panel each, to the same scales.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hpcrowd.analysis.features import draw
from hpcrowd.analysis.features.arrivals import span_s
from hpcrowd.analysis.features.draw import MOST_DAYS
from hpcrowd.analysis.features.feature import Feature, Features, Group, Value
from hpcrowd.analysis.features.panels import LETTERS, name_of, nothing, plain_name, title_of
from hpcrowd.analysis.features.stats import GROUPS
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.html import Picture, figure_of, html_page, rows_table, small_print, table_html
from hpcrowd.analysis.pictures.plots import figure_png, legend_figure, new_figure, tidy
from hpcrowd.analysis.results import version_of, versions
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import UnavailableError
from hpcrowd.environment.quantities import format_duration, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Inches: width of all pictures; room below and above the panels.
WIDTH, BELOW, ABOVE = 12, 0.75, 0.72

#: Part of the hours of the week that the darkest shade leaves above it.
BRIGHTEST = 0.05


def arrivals(workloads: Sequence[Workload]) -> Figure:
    """Return jobs per local day and the hours of the week, one row per workload."""
    row = 2.9 if len(workloads) == 1 else 2.2
    figure = new_figure(WIDTH, row * len(workloads) + 0.55, "Arrivals over days and weeks")
    height = figure.get_figheight()
    grid = figure.add_gridspec(
        len(workloads), 2, left=0.05, right=0.91, width_ratios=(2.1, 1), wspace=0.13,
        bottom=0.52 / height, top=1 - 0.78 / height, hspace=0.95 / (row - 0.8),
    )  # fmt: skip
    most, mesh = _busiest_hours(workloads), None
    for place, workload in enumerate(workloads):
        days, week = (figure.add_subplot(grid[place, column]) for column in (0, 1))
        draw.draw_days(days, workload, title_of(days, workload, "jobs submitted per day"))
        found = draw.draw_week(week, workload, most, "Submissions by hour of the week")
        mesh = found if found is not None else mesh
    if mesh is not None:
        _bar(figure, mesh, "jobs over the mean hour", extend="max")
    return figure


def correlations(workloads: Sequence[Workload]) -> Figure:
    """Return the autocorrelation of the counts of jobs and bags; Minh 2012, Fig. 3.7."""
    panels, figure = _multiples(workloads, "Arrivals that remember: autocorrelation", 1, most=2)
    for axes, workload in zip(panels, workloads, strict=True):
        minutes = workload.settings.time_scale_s / 60
        draw.draw_acf(axes, workload, title_of(axes, workload, f"counts of {minutes:g} minutes"))
    _same_scales(panels)
    return figure


def gaps(workloads: Sequence[Workload]) -> Figure:
    """Return the CCDFs of times between jobs and between bags; Minh 2012, Figs. 3.1 and 3.6 (a)."""
    panels, figure = _shared(workloads, "Times between arrivals", 2, 3.6)
    for axes, column in zip(panels, draw.BETWEEN.values(), strict=True):
        draw.draw_ccdf(axes, workloads, column, tail=True)
    return figure


def jobs(workloads: Sequence[Workload]) -> Figure:
    """Return the CCDFs of run time, processors, requested time and wait."""
    panels, figure = _shared(workloads, "How long, how wide, how patient", 2, 3.0, rows=2)
    for axes, column in zip(panels, draw.COLUMNS.values(), strict=True):
        draw.draw_ccdf(axes, workloads, column)
    return figure


def run_time_processors(workloads: Sequence[Workload]) -> Figure:
    """Return maps of run time x processors, by jobs and by occupation; Minh 2012, Fig. 2.6."""
    panels, figure = _multiples(
        workloads, "Run time and processors", 2, most=2 if len(workloads) <= 2 else 4, right=0.91
    )
    try:
        grid = draw.grid_of(workloads)
    except UnavailableError as error:
        for axes in panels:
            tidy(axes)
            nothing(axes, str(error))
        return figure
    mesh, most = None, draw.darkest(workloads, grid)
    for place, axes in enumerate(panels):
        workload, weighted = workloads[place // 2], bool(place % 2)
        name = "the same, by occupation" if weighted else title_of(axes, workload, "by jobs")
        found = draw.draw_cells(axes, workload, grid, name, weighted=weighted, most=most)
        mesh = found if found is not None else mesh
        if not weighted and (place == 0 or len(workloads) <= 2):
            axes.set_ylabel("processors", fontsize=LETTERS)
    if mesh is not None:
        bar = _bar(figure, mesh, "share of jobs, or of occupation", extend="neither")
        ticks = [tick for tick in (1e-4, 1e-3, 1e-2, 1e-1, 1) if tick <= most]
        bar.set_ticks(ticks, labels=[f"{100 * tick:g} %" for tick in ticks])
    return figure


def bag_gaps(workloads: Sequence[Workload]) -> Figure:
    """Return the distributions of times between bags with the fitted ones; Minh 2012, Fig. 3.6."""
    panels, figure = _multiples(workloads, "Times between bags of tasks", 1, most=2)
    for axes, workload in zip(panels, workloads, strict=True):
        draw.draw_bag_gaps(axes, workload, title_of(axes, workload, "share up to ..."))
    _same_scales(panels)
    return figure


def repetitions(workloads: Sequence[Workload]) -> Figure:
    """Return histograms of run lengths and bag sizes with Zipf's law; Minh 2012, Fig. 3.2, 3.5."""
    panels, figure = _multiples(workloads, "Repetitions: similar run times, bags of tasks", 2)
    for place, axes in enumerate(panels):
        workload, of = workloads[place // 2], ("runs", "bags")[place % 2]
        what = f"number of {of}"
        name = f"the same: {what}" if place % 2 else title_of(axes, workload, what)
        draw.draw_repetitions(axes, workload, of, name)
    _same_scales(panels)
    return figure


def users(workloads: Sequence[Workload]) -> Figure:
    """Return users by rank, the share of the busiest, and think times against response times."""
    panels, figure = _shared(workloads, "Busy and rare users, and how long they think", 3, 3.5)
    draw.draw_users(panels[0], workloads, together=False)
    draw.draw_users(panels[1], workloads, together=True)
    draw.draw_think_times(panels[2], workloads)
    return figure


def _busiest_hours(workloads: Sequence[Workload]) -> float | None:
    """Return what the darkest shade stands for: nearly the busiest hour of all weeks."""
    found = []
    for workload in workloads:
        try:
            found.append(np.quantile(draw.week_shares(workload), 1 - BRIGHTEST))
        except UnavailableError:
            continue
    return max(float(max(found)), 2.0) if found else None


def _bar(figure: Figure, mesh: Any, text: str, extend: str) -> Any:
    """Add a colour bar at the right edge; return it."""
    height = figure.get_figheight()
    place = figure.add_axes((0.93, BELOW / height, 0.01, 1 - (BELOW + ABOVE) / height))
    bar = figure.colorbar(mesh, cax=place, extend=extend)
    bar.set_label(text, fontsize=LETTERS)
    bar.ax.tick_params(labelsize=8, length=3, color="#888888")
    bar.outline.set_visible(False)
    return bar


def _same_scales(panels: Sequence[Axes]) -> None:
    """Give panels that show something the same axes: those of the largest extent."""
    drawn = [axes for axes in panels if axes.lines or axes.collections]
    if not drawn:
        return
    across, up = (
        np.array([getattr(axes, limits)() for axes in drawn]) for limits in ("get_xlim", "get_ylim")
    )
    # Labels are those of the panel that reaches farthest.
    widest, highest = drawn[across[:, 1].argmax()], drawn[up[:, 1].argmax()]
    for axes in drawn:
        for axis, model in ((axes.xaxis, widest.xaxis), (axes.yaxis, highest.yaxis)):
            if axis is not model:
                axis.set_major_locator(copy(model.get_major_locator()))
                axis.set_major_formatter(copy(model.get_major_formatter()))
        axes.set_xlim(across[:, 0].min(), across[:, 1].max())
        axes.set_ylim(up[:, 0].min(), up[:, 1].max())


def _multiples(
    workloads: Sequence[Workload], title: str, each: int, most: int = 4, right: float = 0.985
) -> tuple[list[Axes], Figure]:
    """Return so many panels for each workload, at most ``most`` side by side, and their figure."""
    count = each * len(workloads)
    columns = min(count, most)
    if count > most and count % columns and count % (columns - 1) == 0:
        columns -= 1
    rows = -(-count // columns)
    body = {1: 3.4, 2: 3.2}.get(columns, 2.8)
    figure = new_figure(WIDTH, rows * body + 0.45, title)
    height = figure.get_figheight()
    grid = figure.add_gridspec(
        rows, columns, left=0.055, right=right, wspace=0.2,
        bottom=BELOW / height, top=1 - ABOVE / height, hspace=0.98 / (body - 0.85),
    )  # fmt: skip
    cells = [figure.add_subplot(grid[divmod(place, columns)]) for place in range(count)]
    return cells, figure


def _shared(
    workloads: Sequence[Workload], title: str, columns: int, body: float, rows: int = 1
) -> tuple[list[Axes], Figure]:
    """Return panels that all workloads share, with a legend above, and their figure."""
    names = [name_of(workload) for workload in workloads]
    figure, _, top = legend_figure(WIDTH, body * rows, title, names)
    grid = figure.add_gridspec(
        rows, columns, left=0.06, right=0.985, wspace=0.2, hspace=0.5,
        bottom=BELOW / figure.get_figheight(), top=top - 0.08 / figure.get_figheight(),
    )  # fmt: skip
    return [figure.add_subplot(grid[divmod(n, columns)]) for n in range(rows * columns)], figure


class Drawing(NamedTuple):
    """A picture of workloads."""

    group: str  #: name of the group of features that it belongs to
    draw: Callable[[Sequence[Workload]], Figure]
    caption: str  #: how to read it


#: Pictures by name, in the order they are shown in.
PICTURES = {
    "arrivals": Drawing(
        "arrivals", arrivals, "Left: jobs submitted on each day by local date; the line is the "
        "mean of the seven days around it. Right: when in the week they are submitted; a shade of "
        "2 is an hour with twice the jobs of the mean hour."
    ),
    "correlations": Drawing(
        "arrivals", correlations, "How alike the numbers of arrivals in two intervals are, by the "
        "time between them: 1 alike, 0 not related. Waves of a day (thin lines) or a week (dark "
        "line) are cycles; a slow decay is long range dependence. Bags of tasks count once, "
        "whatever their size."
    ),
    "gaps": Drawing(
        "arrivals", gaps, "Which share of the times between two arrivals is longer than so long, "
        "both on logarithmic axes. Poisson arrivals would drop steeply soon after their mean; a "
        "line that falls slowly has bursts and long pauses."
    ),
    "jobs": Drawing(
        "jobs", jobs, "Which share of the jobs has more than so much. A steep step is a value "
        "that many jobs have in common."
    ),
    "run_time_processors": Drawing(
        "jobs", run_time_processors, "Each cell holds jobs of like run time (to the right) and "
        "processors (upwards). Its shade tells its share of the jobs, or of the occupation (run "
        "time x processors); white is less than 0.01 %. Both on logarithmic axes, as are the "
        "shades."
    ),
    "bag_gaps": Drawing(
        "bags", bag_gaps, "Which share of the times between two bags is not longer than so long, "
        "and five distributions fitted to them. KS is the largest vertical distance to the data: "
        "the smaller, the better the fit."
    ),
    "repetitions": Drawing(
        "locality", repetitions, "How often something repeats so many times, on logarithmic axes. "
        "Runs: jobs after each other whose run times are of one class. Bags: jobs of one user that "
        "ask for the same and follow each other closely, single jobs among them. Points near the "
        "falling line follow Zipf's law; the smaller its exponent, the more is repeated."
    ),
    "users": Drawing(
        "users", users, "Left: the jobs of each user, the busiest first, on logarithmic axes. "
        "Middle: the share of all jobs that the busiest users have together. Right: how long users "
        "think before they go on, by how long their last batch took; lines are medians, bands (of "
        "up to three traces) reach from the lower to the upper quartile."
    ),
}  # fmt: skip

#: s; shorter times are told in seconds with digits after the point.
SHORT_S = 120

#: Numbers nearer to 0 are told with as many digits as they need.
SMALL = 0.001


def format_value(feature: Feature, value: Value) -> str:
    """Return what a feature is, for people, with its unit; or ``not available: reason``.

    Times are told in the unit that suits them (``12.4 min``), shares in percent, whole numbers
    with separators of thousands, others with three or four digits.
    """
    number = value.number
    if number is None:
        return str(value)
    if feature.unit == "s":
        return _time(number)
    if feature.name.endswith("_share"):
        return f"{_digits(100 * number, most=1)} %"
    if feature.unit.startswith("1/"):
        return f"{_digits(number)} per {feature.unit.removeprefix('1/')}"
    return " ".join(filter(None, (_digits(number), feature.unit)))


def _time(seconds: float) -> str:
    if abs(seconds) >= SHORT_S or float(seconds).is_integer():
        return format_duration(seconds)
    return f"{_digits(seconds, most=2 if abs(seconds) < 10 else 1)} s"


def _digits(number: float, most: int = 3) -> str:
    """Return a number with three or four digits; ``most`` digits after the point, if not tiny."""
    if float(number).is_integer():
        return f"{number:,.0f}"
    size = abs(number)
    if size < SMALL:
        return f"{number:.2g}"
    wanted = 3 if size < 1 else 2 if size < 100 else 1 if size < 1000 else 0
    return f"{number:,.{min(wanted, most)}f}"


#: Distributions whose versions decide about the numbers, beside those of a run.
ALSO_BY = ("scipy", "scikit-learn", "matplotlib")

#: Names in the heading; of more only their number is told.
IN_HEADING = 3


def features_html(measured: Sequence[Features], *, again: str = "") -> str:
    """Return the report as one HTML file without scripts, which loads nothing.

    Parameters
    ----------
    measured
        Features of one or several workloads, which stand side by side.
    again
        Command that makes the same again.
    """
    workloads = [features.workload for features in measured]
    names = [plain_name(workload) for workload in workloads]
    named = {name for features in measured for name in features}
    groups = [group for group in GROUPS if any(one.name in named for one in group.features)]
    links = [f'<a href="#{group.name}">{escape(group.title)}</a>' for group in groups]
    parts = [
        f"<p>{' · '.join([*links, '<a href="#origin">Where this comes from</a>'])}</p>",
        "<h2>What was measured</h2>",
        _facts_table(workloads),
    ]
    for group in groups:
        parts.append(f'<h2 id="{group.name}">{escape(group.title)}</h2>')
        parts += [*pictures_of(group, workloads), _features_table(group, measured)]
    parts += ['<h2 id="origin">Where this comes from</h2>', _origin(workloads, again)]
    title = ", ".join(names[:IN_HEADING])
    if len(names) > IN_HEADING:
        title += f" and {len(names) - IN_HEADING} more"
    return html_page(f"Workload statistics: {title}", map(_lead, workloads), parts)


def pictures_of(group: Group, workloads: Sequence[Workload]) -> list[str]:
    """Return the pictures that belong to a group of features, as HTML."""
    return [
        figure_of(Picture(figure_png(picture.draw(workloads)), picture.caption))
        for picture in PICTURES.values()
        if picture.group == group.name
    ]


def _lead(workload: Workload) -> str:
    """Return a sentence on a workload."""
    users = len(set(workload.user[workload.user >= 0].tolist()))
    words = f"{workload.name}: {plural(len(workload), 'job')}"
    if users:
        words += f" of {plural(users, 'user')}"
    with suppress(UnavailableError):
        words += f" in {format_duration(span_s(workload))}"
    return words + (f", on {workload.machine:,} processors." if workload.machine else ".")


def _facts_table(workloads: Sequence[Workload]) -> str:
    """Return what was measured of each workload, and what was left out."""
    facts = [dict(_facts(workload)) for workload in workloads]
    rows = [
        (name, [of_one.get(name, "0" if name.startswith("left out") else "") for of_one in facts])
        for name in dict.fromkeys(name for of_one in facts for name in of_one)
    ]
    names = [plain_name(workload) for workload in workloads]
    return rows_table(
        ("", *names), ((name, *values) for name, values in rows), words=1 + len(names)
    )


def _facts(workload: Workload) -> Iterator[tuple[str, str]]:
    yield "jobs measured", f"{len(workload):,}"
    for reason, count in workload.left_out.items():
        yield f"left out: {reason}", f"{count:,}"
    if workload.machine:
        yield "processors of the machine", f"{workload.machine:,}"
    clock = workload.clock
    if len(workload) and not clock.nominal and abs(workload.submit).max() < MOST_DAYS * DAY:
        first, last = (clock.local(int(workload.submit[at])) for at in (0, -1))
        yield "first submission", f"{first:%a %Y-%m-%d %H:%M}"
        yield "last submission", f"{last:%a %Y-%m-%d %H:%M}"
        yield "local time", str(clock.zone)
    told = (*workload.notes, clock.note, *workload.remarks)
    for place, note in enumerate(filter(None, told), 1):
        yield "note" if place == 1 else f"note {place}", note


def _features_table(group: Group, measured: Sequence[Features]) -> str:
    """Return the features of a group: one column per workload, then definition and source."""
    head = "".join(
        f'<th scope="col" class="number">{escape(plain_name(features.workload))}</th>'
        for features in measured
    )
    lines = []
    for one in group.features:
        cells = []
        for features in measured:
            if one.name not in features:
                cells.append('<td class="reason">not measured</td>')
                continue
            value = features[one.name]
            kind = "reason" if value.number is None else "number"
            cells.append(f'<td class="{kind}">{escape(format_value(one, value))}</td>')
        # Blanks at the beginning tell that it belongs to the one above.
        title = escape(one.title.strip())
        inset = ' style="padding-left: 1.2rem"' if one.title.startswith(" ") else ""
        tip = escape(f"{one.name}, in {one.unit}" if one.unit else one.name)
        lines.append(
            f'<tr><th scope="row" class="title" title="{tip}"{inset}>{title}</th>{"".join(cells)}'
            f'<td class="meaning" title="{tip}">{escape(one.definition)}; '
            f"<small>{escape(one.source)}</small></td></tr>"
        )
    return table_html(f'<th></th>{head}<th scope="col">definition; source</th>', lines)


def _origin(workloads: Sequence[Workload], again: str) -> str:
    """Return scales, versions and the command."""
    used = list(dict.fromkeys(workload.settings for workload in workloads))
    lines = [
        f"Arrivals counted per {format_duration(one.time_scale_s)}, bags with pauses of up to "
        f"{format_duration(one.bag_gap_s)}, sessions with pauses of up to "
        f"{format_duration(one.session_gap_s)}, up to {one.components} classes of run times"
        for one in used
    ]
    if len(used) == 1:
        lines = [f"{lines[0]}."]
    else:
        of = [(lines[used.index(workload.settings)], workload.name) for workload in workloads]
        lines = [f"{escape(name)}: {line}." for line, name in of]
    for workload in workloads:
        if workload.sha256:
            lines.append(f"{escape(workload.name)}: sha256 {workload.sha256}.")
    found = versions() | {name: version_of(name) for name in ALSO_BY}
    return small_print(lines, found, [again])
