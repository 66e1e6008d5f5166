"""Pictures of one or several workloads, and a report with them and all features as HTML.

:data:`PICTURES` lists all pictures with their captions. Each takes workloads and returns a
matplotlib ``Figure``; a panel that cannot be drawn says why. Lines of several workloads share a
panel; maps and fits have a panel each, on the same scales.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hpcrowd.analysis.features import draw
from hpcrowd.analysis.features.draw import MOST_DAYS
from hpcrowd.analysis.features.feature import Feature, Features, Group, Value
from hpcrowd.analysis.features.jobs import span_s
from hpcrowd.analysis.features.panels import LETTERS, name_of, nothing, plain_name, title_of
from hpcrowd.analysis.features.stats import GROUPS
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.html import figure_of, html_page, rows_table, small_print, table_html
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

#: Share of the hours of the week that may be above the darkest shade.
BRIGHTEST = 0.05


def arrivals(workloads: Sequence[Workload]) -> Figure:
    """Return a picture of jobs per local day and of the week, one row per workload."""
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
    """Return the autocorrelation of the counts of jobs and bags (Minh 2012, Fig. 3.7)."""
    panels, figure = _multiples(workloads, "Autocorrelation of arrivals", 1, most=2)
    for axes, workload in zip(panels, workloads, strict=True):
        minutes = workload.settings.time_scale_s / 60
        draw.draw_acf(axes, workload, title_of(axes, workload, f"counts of {minutes:g} minutes"))
    _same_scales(panels)
    return figure


def gaps(workloads: Sequence[Workload]) -> Figure:
    """Return CCDFs of times between jobs and between bags (Minh 2012, Figs. 3.1 and 3.6 (a))."""
    panels, figure = _shared(workloads, "Times between arrivals", 2, 3.6)
    for axes, column in zip(panels, draw.BETWEEN.values(), strict=True):
        draw.draw_ccdf(axes, workloads, column, tail=True)
    return figure


def jobs(workloads: Sequence[Workload]) -> Figure:
    """Return CCDFs of run time, processors, requested time and wait."""
    panels, figure = _shared(workloads, "Run times, processors, requests and waits", 2, 3.0, rows=2)
    for axes, column in zip(panels, draw.COLUMNS.values(), strict=True):
        draw.draw_ccdf(axes, workloads, column)
    return figure


def run_time_processors(workloads: Sequence[Workload]) -> Figure:
    """Return maps of run time and processors, by jobs and by occupation (Minh 2012, Fig. 2.6)."""
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
    """Return distributions of times between bags with their fits (Minh 2012, Fig. 3.6)."""
    panels, figure = _multiples(workloads, "Times between bags of tasks", 1, most=2)
    for axes, workload in zip(panels, workloads, strict=True):
        draw.draw_bag_gaps(axes, workload, title_of(axes, workload, "share up to ..."))
    _same_scales(panels)
    return figure


def repetitions(workloads: Sequence[Workload]) -> Figure:
    """Return histograms of run lengths and bag sizes with Zipf fits (Minh 2012, Figs. 3.2, 3.5)."""
    panels, figure = _multiples(workloads, "Repetitions: similar run times, bags of tasks", 2)
    for place, axes in enumerate(panels):
        workload, of = workloads[place // 2], ("runs", "bags")[place % 2]
        what = f"number of {of}"
        name = f"the same: {what}" if place % 2 else title_of(axes, workload, what)
        draw.draw_repetitions(axes, workload, of, name)
    _same_scales(panels)
    return figure


def users(workloads: Sequence[Workload]) -> Figure:
    """Return jobs by rank of user, the share of the busiest, and think over response times."""
    panels, figure = _shared(workloads, "Users and their think times", 3, 3.5)
    draw.draw_users(panels[0], workloads, together=False)
    draw.draw_users(panels[1], workloads, together=True)
    draw.draw_think_times(panels[2], workloads)
    return figure


def _busiest_hours(workloads: Sequence[Workload]) -> float | None:
    """Return the value of the darkest shade: close to the busiest hour of all weeks."""
    found = []
    for workload in workloads:
        with suppress(UnavailableError):
            found.append(np.quantile(draw.week_shares(workload), 1 - BRIGHTEST))
    return max(float(max(found)), 2.0) if found else None


def _bar(figure: Figure, mesh: Any, text: str, extend: str) -> Any:
    """Add a colour bar at the right edge, and return it."""
    height = figure.get_figheight()
    place = figure.add_axes((0.93, BELOW / height, 0.01, 1 - (BELOW + ABOVE) / height))
    bar = figure.colorbar(mesh, cax=place, extend=extend)
    bar.set_label(text, fontsize=LETTERS)
    bar.ax.tick_params(labelsize=8, length=3, color="#888888")
    bar.outline.set_visible(False)
    return bar


def _same_scales(panels: Sequence[Axes]) -> None:
    """Give all panels that are not empty the same axes, those of the largest extent."""
    drawn = [axes for axes in panels if axes.lines or axes.collections]
    if not drawn:
        return
    across, up = (
        np.array([getattr(axes, limits)() for axes in drawn]) for limits in ("get_xlim", "get_ylim")
    )
    # Take the labels of the panel with the largest extent.
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
    """Return panels for each workload, at most ``most`` side by side, and their figure."""
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


#: Pictures by name, in the order in which they are shown.
PICTURES = {
    "arrivals": Drawing(
        "arrivals", arrivals, "Left: jobs submitted on each day by local date; the line is the "
        "mean of the seven days around it. Right: the hours of the week in which jobs are "
        "submitted; a shade of 2 is an hour with twice the jobs of the mean hour."
    ),
    "correlations": Drawing(
        "arrivals", correlations, "Correlation of the numbers of arrivals in two intervals, by the "
        "time between them: 1 equal, 0 unrelated. Waves of a day (thin lines) or a week (dark "
        "line) are cycles; a slow decay is long range dependence. A bag of tasks counts once, "
        "whatever its size."
    ),
    "gaps": Drawing(
        "arrivals", gaps, "Share of the times between two arrivals that are longer than the time "
        "on the x axis; both axes are logarithmic. Poisson arrivals would drop steeply soon after "
        "their mean; a line that falls slowly means bursts and long pauses."
    ),
    "jobs": Drawing(
        "jobs", jobs, "Share of the jobs whose value is larger than that on the x axis. A steep "
        "step is a value that many jobs have in common."
    ),
    "run_time_processors": Drawing(
        "jobs", run_time_processors, "Each cell holds jobs of similar run time (to the right) and "
        "processors (upwards). Its shade is its share of the jobs, or of the occupation (run time "
        "x processors); white is less than 0.01 %. Axes and shades are logarithmic."
    ),
    "bag_gaps": Drawing(
        "bags", bag_gaps, "Share of the times between two bags that are not longer than the time "
        "on the x axis, and five distributions fitted to them. KS is the largest vertical distance "
        "to the data: the smaller, the better the fit."
    ),
    "repetitions": Drawing(
        "locality", repetitions, "Number of runs, or bags, by their length in jobs, on logarithmic "
        "axes. Runs: successive jobs whose run times are in the same class. Bags: jobs of one user "
        "with the same requests in close succession, including single jobs. Points near the "
        "falling line follow Zipf's law; the smaller its exponent, the more repetition."
    ),
    "users": Drawing(
        "users", users, "Left: the jobs of each user, the busiest first, on logarithmic axes. "
        "Middle: the joint share of the busiest users in all jobs. Right: think times by the "
        "response time of the previous batch; lines are medians, bands (for up to three traces) "
        "reach from the lower to the upper quartile."
    ),
}  # fmt: skip

#: s; shorter times are printed in seconds with decimals.
SHORT_S = 120

#: Numbers closer to 0 are printed with two significant digits.
SMALL = 0.001


def format_value(feature: Feature, value: Value) -> str:
    """Return the value of a feature as text with its unit, or ``not available: reason``.

    Times get a suitable unit (``12.4 min``), shares are in percent, whole numbers have thousands
    separators, others have three or four digits.
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
    """Return a number with three or four digits and at most ``most`` decimals, unless tiny."""
    if float(number).is_integer():
        return f"{number:,.0f}"
    size = abs(number)
    if size < SMALL:
        return f"{number:.2g}"
    wanted = 3 if size < 1 else 2 if size < 100 else 1 if size < 1000 else 0
    return f"{number:,.{min(wanted, most)}f}"


#: Packages whose versions affect the numbers, in addition to those of a run.
ALSO_BY = ("scipy", "scikit-learn", "matplotlib")

#: Names in the heading; of the others it gives only the number.
IN_HEADING = 3


def features_html(measured: Sequence[Features], *, again: str = "") -> str:
    """Return the report as one HTML file that has no scripts and loads nothing.

    Parameters
    ----------
    measured
        Features of one or several workloads, shown side by side.
    again
        Command that makes the report again.
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
    """Return the pictures of a group of features as HTML."""
    return [
        figure_of(figure_png(picture.draw(workloads)), picture.caption)
        for picture in PICTURES.values()
        if picture.group == group.name
    ]


def _lead(workload: Workload) -> str:
    """Return a sentence about a workload."""
    users = len(set(workload.user[workload.user >= 0].tolist()))
    words = f"{workload.name}: {plural(len(workload), 'job')}"
    if users:
        words += f" of {plural(users, 'user')}"
    with suppress(UnavailableError):
        words += f" in {format_duration(span_s(workload))}"
    return words + (f", on {workload.machine:,} processors." if workload.machine else ".")


def _facts_table(workloads: Sequence[Workload]) -> str:
    """Return a table of what was measured of each workload and what was left out."""
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
        # A title that begins with blanks belongs to the one above.
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
    """Return the scales, versions and command."""
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
