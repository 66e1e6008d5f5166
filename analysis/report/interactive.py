"""Charts of an interactive report: to move, zoom and point at, in a page that loads nothing.

Five pictures of a report become charts (:data:`CHARTS`); the others stay images. The charts are
drawn by BokehJS, which the page holds once. All charts are in one document, so that those over time
move together. The same runs give the same bytes: the names of Bokeh's objects, which depend on what
a process has drawn before, are numbered anew.

Bokeh is in the extra ``page``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, Literal, NamedTuple

import numpy as np

from hpcrowd.analysis import curves
from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.pictures import over_time, plots, waits
from hpcrowd.analysis.pictures.gantt import find_window, looks_of, running_between, window_name
from hpcrowd.analysis.pictures.plots import run_name
from hpcrowd.analysis.report.figures import RUN_FIGURES, Images, Tell
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY, FIRST_MONDAY, HOUR, Clock
from hpcrowd.environment.errors import UnavailableError, missing
from hpcrowd.environment.jobs import UNKNOWN, Int64s, State
from hpcrowd.environment.platform.placement import place
from hpcrowd.environment.quantities import format_duration

#: Height of a chart over time, and of another, pixels.
HEIGHT, TALL = 240, 380

#: Most jobs of the Gantt chart; those with the most work are drawn.
MOST_JOBS = 4000

#: Bins of a curve over time.
BINS = 540

#: Waits shorter than this are drawn here on a logarithmic axis, s.
LEAST = 1

#: Smallest and largest dot of a user, pixels.
DOTS = 5, 16

#: Labels of logarithmic axes of time, s.
TIMES = {1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", HOUR: "1 h", 10 * HOUR: "10 h",
         DAY: "1 day", 10 * DAY: "10 days", 100 * DAY: "100 days"}  # fmt: skip

#: Returns the time axis of a chart of a run, from and to a second; charts may share one.
TimeAxis = Callable[[Run, int, int], Any]

#: Directions in which a chart is moved and zoomed.
Directions = Literal["width", "both"]


def wall_of(clock: Clock, seconds: Int64s) -> Floats:
    """Return where seconds are on the time axis of a chart.

    Bokeh's axes show times without zones, so that local times are given as if they were UTC, in ms;
    in the hour that is repeated when clocks are put back, two hours share a place. Without a known
    start it is days since the origin.
    """
    if clock.nominal:
        days: Floats = seconds.astype(np.float64) / DAY
        return days
    walls: Floats = 1000.0 * (clock.walls(seconds) + FIRST_MONDAY).astype(np.float64)
    return walls


def texts_of(clock: Clock, seconds: Int64s) -> list[str]:
    """Return local times in words, or seconds since the origin where those are not known."""
    if clock.nominal:
        return [f"{second / HOUR:,.1f} h since the origin" for second in seconds.tolist()]
    found = [clock.local(second) for second in seconds.tolist()]
    return [f"{one:%a %Y-%m-%d %H:%M}" for one in found]


def duration_texts(seconds: Floats | Int64s) -> list[str]:
    """Return durations in words; those that are not a number are ``-``."""
    return ["-" if one != one else format_duration(one) for one in seconds.tolist()]


def _known(seconds: Int64s) -> Floats:
    """Return times with NaN instead of the unknown ones."""
    return np.where(seconds == UNKNOWN, np.nan, seconds)


class Panel(NamedTuple):
    """A chart with its title."""

    title: str
    model: Any


class Chart(NamedTuple):
    """A picture of a report as charts."""

    #: Returns the panels, one below the other; none if an image is to be shown.
    draw: Callable[[Run, TimeAxis], list[Panel]]
    caption: str  #: what they show


def _figure(*, height: int = HEIGHT, zoom: Directions = "both", **more: Any) -> Any:
    """Return an empty chart with the tools."""
    from bokeh.models import BoxZoomTool, PanTool, ResetTool, WheelZoomTool
    from bokeh.plotting import figure

    pan, wheel = PanTool(dimensions=zoom), WheelZoomTool(dimensions=zoom, modifiers="ctrl")
    tools = [pan, wheel, BoxZoomTool(dimensions=zoom), ResetTool()]
    found: Any = figure(
        height=height, sizing_mode="stretch_width", tools=tools, active_drag=pan,
        active_scroll=wheel, toolbar_location="above", **more,
    )  # fmt: skip
    found.toolbar.logo = None
    found.min_border_left = 60
    found.output_backend = "canvas"
    for axis in found.axis:
        axis.axis_label_text_font_style = "normal"
        axis.minor_tick_line_color = None
    return found


def _time_chart(run: Run, *, height: int = HEIGHT, zoom: Directions = "width", **more: Any) -> Any:
    """Return an empty chart over the time of a run."""
    if not run.clock.nominal:
        more["x_axis_type"] = "datetime"
    found = _figure(height=height, zoom=zoom, **more)
    nominal, zone = run.clock.nominal, run.clock.zone
    found.xaxis.axis_label = "days since the origin" if nominal else f"local time, {zone}"
    return found


def _hover(
    renderers: Sequence[Any], rows: dict[str, str], mode: Literal["mouse", "vline"] = "mouse"
) -> Any:
    """Return a tool that shows rows of (name, column) at the pointer."""
    from bokeh.models import HoverTool

    cells = "".join(
        f'<span style="color: #555; text-align: right">{name}</span><span>{text}</span>'
        for name, text in rows.items()
    )
    table = "display: grid; grid-template-columns: auto auto; gap: 0 .6em; color: #1a1a1a"
    return HoverTool(
        renderers=list(renderers), mode=mode, tooltips=f'<div style="{table}">{cells}</div>'
    )


def _count_axis(chart: Any) -> None:
    """Label the vertical axis with whole numbers."""
    from bokeh.models import NumeralTickFormatter

    chart.yaxis.formatter = NumeralTickFormatter(format="0,0")


def _log_labels(axis: Any, labels: dict[int, str], low: float, high: float) -> None:
    shown = {value: text for value, text in labels.items() if low <= value <= high}
    axis.ticker = list(shown)
    axis.major_label_overrides = shown


def _inked(renderer: Any) -> Any:
    """Mark lines that have the colour of the text, whatever that is."""
    renderer.tags = ["ink"]
    return renderer


def use_chart(run: Run, axis: TimeAxis) -> list[Panel]:
    """Return processors in use and the queue over time, with the record if known."""
    from bokeh.models import ColumnDataSource

    span = curves.span_of(run.runs)
    if span is None:
        return []
    edges = curves.time_edges(*span, BINS)
    there = axis(run, int(edges[0]), int(edges[-1]))
    before = over_time.recorded_jobs(run)
    parts = (
        ("Processors in use", "sky", curves.processors_in_use),
        ("Jobs in the queue", "orange", curves.jobs_waiting),
    )
    columns: dict[str, Any] = {
        "left": wall_of(run.clock, edges[:-1]),
        "right": wall_of(run.clock, edges[1:]),
        "time": texts_of(run.clock, edges[:-1]),
    }
    for number, (_, _, measure) in enumerate(parts):
        columns[f"level{number}"] = np.round(measure(run.runs, edges), 2)
        if before is not None:
            columns[f"record{number}"] = np.round(measure(before, edges), 2)
    source = ColumnDataSource(columns)
    found = []
    for number, (name, colour, _) in enumerate(parts):
        chart = _time_chart(run, x_range=there, height=HEIGHT - 40 * number)
        fill = plots.COLOURS[colour]
        bars = chart.quad(
            left="left", right="right", bottom=0, top=f"level{number}", source=source,
            fill_color=fill, line_color=fill, line_width=0.5,
        )  # fmt: skip
        rows = {"from": "@time", name.lower(): f"@level{number}{{0,0.0}}"}
        title = f"{name}, {plots.averaged(edges)}"
        title += f" (of {run.processors:,})" if not number else ""
        if before is not None:
            rows["as recorded"] = f"@record{number}{{0,0.0}}"
            title += "; line: as recorded"
            _inked(chart.step("left", f"record{number}", source=source, mode="after", line_width=1))
        chart.add_tools(_hover([bars], rows, "vline"))
        chart.y_range.start = 0
        _count_axis(chart)
        found.append(Panel(title, chart))
    return found


def submissions_chart(run: Run, axis: TimeAxis) -> list[Panel]:
    """Return jobs so far and, of a simulation of recorded jobs, their lateness."""
    from bokeh.models import ColumnDataSource

    if curves.span_of(run.jobs) is None:
        return []
    found = over_time.submissions_data(run)
    ends = found["end_s"]
    late = over_time.is_late(run)
    lines = [("submitted", "blue", 2.0), ("recorded" if late else "ended", "vermilion", 2.0)]
    if late:
        lines = [("recorded", "grey", 4.0), ("submitted", "blue", 2.0)]
    columns: dict[str, Any] = {"x": wall_of(run.clock, ends), "time": texts_of(run.clock, ends)}
    columns |= {name: found[f"{name}_until_then"] for name, *_ in lines}
    if late:
        for p in over_time.LATENESS:
            columns[f"late{p}"] = found[f"lateness_p{p}_s"] / DAY
            columns[f"late{p}_text"] = duration_texts(found[f"lateness_p{p}_s"])
    source = ColumnDataSource(columns)
    there = axis(run, int(ends[0]), int(ends[-1]))
    chart = _time_chart(run, x_range=there)
    drawn = [
        chart.line("x", name, source=source, legend_label=name, line_width=width,
                   line_color=plots.COLOURS[colour])
        for name, colour, width in lines
    ]  # fmt: skip
    rows = {"until": "@time"} | {name: f"@{name}{{0,0}}" for name, *_ in lines}
    chart.add_tools(_hover(drawn[-1:], rows, "vline"))
    chart.legend.location = "top_left"
    _count_axis(chart)
    panels = [Panel("Jobs so far", chart)]
    if late and not np.isnan(columns["late50"]).all():
        chart = _time_chart(run, x_range=there)
        chart.varea("x", "late10", "late90", source=source, fill_color=plots.COLOURS["sky"],
                    fill_alpha=0.5)  # fmt: skip
        median = chart.line("x", "late50", source=source, line_width=2,
                            line_color=plots.COLOURS["blue"])  # fmt: skip
        rows = {"submitted as recorded until": "@time"}
        rows |= {f"{p} % are later by at most": f"@late{p}_text" for p in over_time.LATENESS}
        chart.add_tools(_hover([median], rows, "vline"))
        title = "Lateness in days, by recorded submission: median, and 10 to 90 % of the jobs"
        panels.append(Panel(title, chart))
    return panels


def waits_chart(run: Run, axis: TimeAxis) -> list[Panel]:
    """Return the shares of jobs, and of users, that waited longer than a time."""
    from bokeh.models import ColumnDataSource, NumeralTickFormatter

    found = waits.waits_data(run)
    at = found["wait_s"]
    shares = {name: one for name, one in found.items() if name != "wait_s"}
    top = max((float(at[one > 0].max()) for one in shares.values() if (one > 0).any()), default=0)
    if top <= LEAST:
        return []
    shown = (at >= LEAST) & (at <= 1.6 * top)
    chart = _figure(
        height=TALL - 60, x_axis_type="log", x_range=(LEAST, 1.6 * top), y_range=(0, 1.02),
    )  # fmt: skip
    drawn = []
    for name, share in shares.items():
        _, _, what, which = name.split("_")
        label = f"{what}, {which}"
        source = ColumnDataSource({
            "x": at[shown], "y": share[shown], "wait": duration_texts(at[shown]),
        })  # fmt: skip
        line = chart.line(
            "x", "y", source=source, legend_label=label,
            line_color=plots.COLOURS["grey" if which == "recorded" and not run.is_record else "blue"
                                     if what == "jobs" else "vermilion"],
            line_width=3 if which == "recorded" and not run.is_record else 2,
            line_dash="solid" if what == "jobs" else "dashed",
        )  # fmt: skip
        rows = {"of": label, "waited longer than": "@wait", "share": "@y{0.0 %}"}
        chart.add_tools(_hover([line], rows))
        drawn.append(line)
    _log_labels(chart.xaxis[0], TIMES, LEAST, 1.6 * top)
    chart.yaxis.formatter = NumeralTickFormatter(format="0 %")
    chart.xaxis.axis_label = "wait"
    title = "Share of jobs, and of users by their mean wait, that waited longer than ..."
    return [Panel(title, chart)]


def day_chart(run: Run, axis: TimeAxis) -> list[Panel]:
    """Return the Gantt chart of the busiest day."""
    from bokeh.models import ColumnDataSource

    jobs = run.runs
    first, last = find_window(run, None)
    rows = running_between(jobs, first, last)
    if not len(rows):
        return []
    end = np.where(jobs.end == UNKNOWN, last, jobs.end)
    where = place(jobs.start[rows], end[rows], jobs.processors[rows], run.processors)
    dropped = 0
    job = where.job
    kept = np.arange(len(job))
    if len(rows) > MOST_JOBS:
        held = np.minimum(end[rows], last) - np.maximum(jobs.start[rows], first)
        work = jobs.processors[rows] * held
        largest = np.sort(np.argsort(-work, kind="stable")[:MOST_JOBS])
        kept = np.flatnonzero(np.isin(job, largest))
        dropped = len(rows) - MOST_JOBS
    mine = rows[job[kept]]
    looks = looks_of(jobs, "user", len(run.jobs))
    colours = np.array([look.colour for look in looks.looks])
    paler = [bool(look.hatch) for look in looks.looks]
    begin, finish = np.maximum(jobs.start[mine], first), np.minimum(end[mine], last)
    waited = np.where(jobs.submit[mine] == UNKNOWN, UNKNOWN, jobs.start[mine] - jobs.submit[mine])
    source = ColumnDataSource({
        "left": wall_of(run.clock, begin), "right": wall_of(run.clock, finish),
        "bottom": where.row[kept], "top": where.row[kept] + where.height[kept],
        "colour": colours[looks.which[mine]].tolist(),
        "alpha": np.where(np.array(paler)[looks.which[mine]], 0.55, 1.0),
        "job": jobs.number[mine],
        "user": [jobs.who(user) for user in jobs.user[mine].tolist()],
        "processors": jobs.processors[mine],
        "asked": duration_texts(_known(jobs.requested_time[mine])),
        "waited": duration_texts(_known(waited)),
        "ran": duration_texts(end[mine] - jobs.start[mine]),
        "began": texts_of(run.clock, jobs.start[mine]),
        "state": [State(state).name.lower() for state in jobs.state[mine].tolist()],
    })  # fmt: skip
    title = f"Jobs on processors, {window_name(run, first, last)}"
    if dropped:
        title += f"; the {MOST_JOBS:,} largest, {dropped:,} more are not drawn"
    chart = _time_chart(
        run, height=TALL, zoom="both", y_range=(0, max(where.rows, run.processors)),
        x_range=tuple(wall_of(run.clock, np.array([first, last])).tolist()),
    )  # fmt: skip
    bars = chart.quad(
        left="left", right="right", bottom="bottom", top="top", source=source,
        fill_color="colour", fill_alpha="alpha", line_color="white", line_width=0.5,
        hover_line_color="#000000",
    )  # fmt: skip
    tooltip = {
        "job": "@job", "user": "@user", "processors": "@processors{0,0}", "asked for": "@asked",
        "waited": "@waited", "started": "@began", "ran": "@ran", "state": "@state",
    }  # fmt: skip
    chart.add_tools(_hover([bars], tooltip))
    chart.grid.visible = False
    return [Panel(title, chart)]


def users_chart(run: Run, axis: TimeAxis) -> list[Panel]:
    """Return users' mean waits by their work, with the record if known."""
    from bokeh.models import ColumnDataSource

    found = waits.users_data(run)
    work, wait = found["work_processor_h"], found["wait_mean_s"]
    known = (work > 0) & ~np.isnan(wait)
    if not known.any():
        return []
    columns: dict[str, Any] = {
        "work": work[known],
        "y": np.maximum(wait[known], LEAST),
        "user": [run.jobs.who(user) for user in found["user"][known].tolist()],
        "jobs": found["jobs"][known],
        "share": found["share_of_work"][known],
        "wait": duration_texts(wait[known]),
        "slowdown": found["bounded_slowdown_mean"][known],
        "size": DOTS[0] + (DOTS[1] - DOTS[0]) * np.sqrt(found["jobs"][known] / found["jobs"].max()),
    }
    tooltip = {
        "user": "@user", "jobs": "@jobs{0,0}", "work": "@work{0,0.0} processor-hours",
        "share of work": "@share{0.0 %}", "mean wait": "@wait",
        "mean bounded slowdown": "@slowdown{0,0.0}",
    }  # fmt: skip
    top = float(columns["y"].max())
    if "recorded_wait_mean_s" in found:
        before = found["recorded_wait_mean_s"][known]
        columns["before"] = np.maximum(np.nan_to_num(before, nan=LEAST), LEAST)
        columns["recorded"] = duration_texts(before)
        columns["late"] = duration_texts(found["lateness_mean_s"][known])
        tooltip |= {"mean wait as recorded": "@recorded", "mean lateness": "@late"}
        top = max(top, float(columns["before"].max()))
    source = ColumnDataSource(columns)
    title = "Users: mean wait by their work; larger dots have more jobs"
    title += "; rings: as recorded" if "before" in columns else ""
    chart = _figure(
        height=TALL, x_axis_type="log", y_axis_type="log",
        y_range=(0.6 * LEAST, 2 * max(top, 60.0)),
    )  # fmt: skip
    if "before" in columns:
        chart.segment(
            "work", "y", "work", "before", source=source, line_color="#999999", line_alpha=0.6
        )
        _inked(chart.scatter("work", "before", source=source, size=6, fill_color=None))
    dots = chart.scatter(
        "work", "y", source=source, size="size", fill_color=plots.COLOURS["blue"],
        fill_alpha=0.8, line_color="white", line_width=0.5,
        hover_fill_color=plots.COLOURS["orange"],
    )  # fmt: skip
    chart.add_tools(_hover([dots], tooltip))
    _log_labels(chart.yaxis[0], TIMES | {1: "1 s or less"}, 0, 2 * max(top, 60.0))
    ten = 10.0 ** np.arange(-4, 13)
    inside = ten[(ten > 0.5 * columns["work"].min()) & (ten < 2 * columns["work"].max())]
    chart.xaxis.ticker = inside.tolist()
    chart.xaxis.major_label_overrides = {float(one): f"{one:,.10g}" for one in inside}
    chart.xaxis.axis_label = "work of the user, processor-hours"
    chart.min_border_left = 80
    return [Panel(title, chart)]


#: The pictures of :data:`~hpcrowd.analysis.report.figures.RUN_FIGURES` that become charts.
CHARTS = {
    "use": Chart(
        use_chart,
        "Both have the same time axis; the other charts over time have it, too. Numbers are "
        "averages over the time that is given in the titles.",
    ),
    "submissions": Chart(
        submissions_chart,
        "Where jobs are late, those submitted in each stretch of time are shown by the recorded "
        "submission; a lateness below 0 means earlier than recorded.",
    ),
    "waits": Chart(
        waits_chart,
        "Solid: jobs; dashed: users by their mean wait, each counted once, however many jobs they "
        "have.",
    ),
    "day": Chart(
        day_chart,
        "The day with the most processors in use; jobs are coloured by user. Which processors a "
        "job holds is computed for the picture.",
    ),
    "users": Chart(
        users_chart,
        "Each dot is a user: the further right, the more work; the higher, the longer the wait. "
        "Rings, if there are any, are the same users as recorded.",
    ),
}


#: How charts are moved, in words.
HOW = (
    "Charts are interactive. Point at one to see its numbers; drag to move it; hold Ctrl and turn "
    "the wheel, or choose the box above the chart, to zoom; the circular arrow shows all again. "
    "Charts over time move together."
)

#: Puts the colours of the page on all charts, and again when the reader's system changes them.
PAINT = """
(function () {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  function paint() {
    const css = getComputedStyle(document.documentElement);
    const get = (name) => css.getPropertyValue("--" + name).trim();
    const [ground, ink, quiet, line, rule] = ["ground", "ink", "quiet", "line", "rule"].map(get);
    for (const doc of Bokeh.documents) {
      for (const model of doc.all_models) {
        if (model.type === "Figure") {
          model.setv({background_fill_color: ground, border_fill_color: ground,
            outline_line_color: rule});
        } else if (/Axis$/.test(model.type)) {
          model.setv({axis_label_text_color: quiet, major_label_text_color: quiet,
            axis_line_color: rule, major_tick_line_color: rule, minor_tick_line_color: null});
        } else if (model.type === "Grid") {
          model.setv({grid_line_color: line});
        } else if (model.type === "Title") {
          model.setv({text_color: ink});
        } else if (model.type === "Legend") {
          model.setv({label_text_color: ink, background_fill_color: ground,
            background_fill_alpha: 0.8, border_line_color: null});
        } else if (model.tags.includes("ink")) {
          const glyph = model.glyph || model;
          glyph.setv({line_color: ink});
        }
      }
    }
  }
  Bokeh.set_log_level("error");
  Bokeh.embed.embed_items(DOCS, ITEMS).then(() => {
    paint();
    dark.addEventListener("change", paint);
    document.documentElement.dataset.charts = "drawn";
  });
})();
"""


class Charts(Images):
    """The pictures of a report, five of them as charts."""

    lead = (HOW,)

    def __init__(self, tell: Tell) -> None:
        super().__init__(tell)
        check_bokeh()
        from bokeh.document import Document
        from bokeh.models import Range1d

        self._document = Document()
        self._ids: list[tuple[str, str]] = []
        self._shared: Any = None
        self._range = Range1d

    def of(self, name: str, run: Run) -> list[str]:
        """Return a picture of :data:`~hpcrowd.analysis.report.figures.RUN_FIGURES` as HTML."""
        one = RUN_FIGURES[name]
        if name not in CHARTS or not one.shown(run):
            return super().of(name, run)
        self.tell(f"{run.label}: {one.title}")
        chart = CHARTS[name]
        panels = chart.draw(run, self.over_time)
        if not panels:
            return super().of(name, run)
        parts = []
        for panel in panels:
            place = f"chart-{len(self._ids) + 1}"
            self._document.add_root(panel.model)
            self._ids.append((place, panel.model.id))
            parts.append(
                f'<p class="chart-title">{escape(panel.title)}</p>'
                f'<div id="{place}" style="min-height: {panel.model.height}px"></div>'
            )
        title = escape(f"{one.title}, {run_name(run)}")
        return [
            f'<figure class="chart" role="group" aria-label="{title}">{"".join(parts)}'
            "<noscript><p>This chart needs scripts; a report without --interactive has pictures."
            f"</p></noscript><figcaption>{escape(chart.caption)}</figcaption></figure>"
        ]

    def over_time(self, run: Run, first: int, last: int) -> Any:
        """Return the time axis that all charts over time share; it covers all runs.

        Runs whose trace does not say when it began do not share one with the others.
        """
        begin, end = wall_of(run.clock, np.array([first, last])).tolist()
        if run.clock.nominal:
            return self._range(begin, end, bounds=None)
        if self._shared is None:
            self._shared = self._range(begin, end)
        self._shared.start = min(self._shared.start, begin)
        self._shared.end = max(self._shared.end, end)
        return self._shared

    def scripts(self) -> list[str]:
        """Return BokehJS and the charts."""
        if not self._ids:
            return []
        from bokeh.resources import Resources

        document = self._document.to_json(deferred=False)
        named, names = _renumbered(document)
        roots = {names[root]: place for place, root in self._ids}
        items = [{"docid": "report", "roots": roots, "root_ids": list(roots)}]
        docs = _safe(json.dumps({"report": named}, separators=(",", ":"), allow_nan=True))
        code = PAINT.replace("DOCS", docs).replace("ITEMS", _safe(json.dumps(items)))
        library, *_ = Resources(mode="inline", components=["bokeh"], minified=True).js_raw
        return [_safe(library), code]


def check_bokeh() -> None:
    """Check that charts can be drawn; an UnavailableError says that Bokeh is not installed."""
    try:
        import bokeh.document  # noqa: F401
    except ImportError:
        raise UnavailableError(
            f"hpcrowd report --interactive: {missing('Bokeh', 'page')}"
        ) from None


def _safe(text: str) -> str:
    """Return a script that cannot end its element too early."""
    return text.replace("</", "<\\/").replace("<!--", "<\\!--")


def _renumbered(document: Any) -> tuple[Any, dict[str, str]]:
    """Return a document with its objects named by their order, and the new names by the old."""
    names: dict[str, str] = {}

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("id"), str):
                names.setdefault(value["id"], f"m{len(names) + 1}")
            for one in value.values():
                collect(one)
        elif isinstance(value, list):
            for one in value:
                collect(one)

    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: renamed(one) for key, one in value.items()} | (
                {"id": names[value["id"]]} if isinstance(value.get("id"), str) else {}
            )
        return [renamed(one) for one in value] if isinstance(value, list) else value

    collect(document)
    return renamed(document), names
