"""The report on workloads: pictures and all features in one HTML file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from html import escape
from importlib.metadata import PackageNotFoundError, version

from hpcrowd.analysis.features.arrivals import span
from hpcrowd.analysis.features.draw import MOST_DAYS
from hpcrowd.analysis.features.feature import Feature, Features, Group, Value
from hpcrowd.analysis.features.panels import plain_name
from hpcrowd.analysis.features.pictures import PICTURES
from hpcrowd.analysis.features.stats import GROUPS
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.html import Picture, figure_of, html_page
from hpcrowd.analysis.pictures.plots import figure_png
from hpcrowd.analysis.results import versions
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import UnavailableError
from hpcrowd.environment.quantities import format_duration, plural

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
    groups = [group for group in GROUPS if _features_in(group, measured)]
    links = [f'<a href="#{group.name}">{escape(group.title)}</a>' for group in groups]
    parts = [
        f"<p>{' · '.join([*links, '<a href="#origin">Where this comes from</a>'])}</p>",
        "<h2>What was measured</h2>",
        _facts_table(workloads),
    ]
    for group in groups:
        parts.append(f'<h2 id="{group.name}">{escape(group.title)}</h2>')
        for picture in PICTURES.values():
            if picture.group == group.name:
                png = figure_png(picture.draw(workloads))
                parts.append(figure_of(Picture(png, picture.caption)))
        parts.append(_features_table(group, measured))
    parts += ['<h2 id="origin">Where this comes from</h2>', _origin(workloads, again)]
    title = ", ".join(names[:IN_HEADING])
    if len(names) > IN_HEADING:
        title += f" and {len(names) - IN_HEADING} more"
    return html_page(f"Workload statistics: {title}", map(_lead, workloads), parts)


def _features_in(group: Group, measured: Sequence[Features]) -> bool:
    return any(one.name in features for one in group.features for features in measured)


def _lead(workload: Workload) -> str:
    """Return a sentence on a workload."""
    users = len(set(workload.user[workload.user >= 0].tolist()))
    words = f"{workload.name}: {plural(len(workload), 'job')}"
    if users:
        words += f" of {plural(users, 'user')}"
    with suppress(UnavailableError):
        words += f" in {format_duration(span(workload))}"
    return words + (f", on {workload.machine:,} processors." if workload.machine else ".")


def _facts_table(workloads: Sequence[Workload]) -> str:
    """Return what was measured of each workload, and what was left out."""
    facts = [dict(_facts(workload)) for workload in workloads]
    rows = [
        (name, [of_one.get(name, "0" if name.startswith("left out") else "") for of_one in facts])
        for name in dict.fromkeys(name for of_one in facts for name in of_one)
    ]
    head = "".join(f'<th scope="col">{escape(plain_name(workload))}</th>' for workload in workloads)
    lines = [
        f'<tr><th scope="row" class="title">{escape(name)}</th>'
        + "".join(f"<td>{escape(value)}</td>" for value in values)
        + "</tr>"
        for name, values in rows
    ]
    return (
        f'<div class="wide"><table>\n<thead><tr><th></th>{head}</tr></thead>\n<tbody>\n'
        + "\n".join(lines)
        + "\n</tbody></table></div>"
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
    lines = [
        f'<div class="wide"><table>\n<thead><tr><th></th>{head}'
        '<th scope="col">definition; source</th></tr></thead>\n<tbody>'
    ]
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
    return "\n".join([*lines, "</tbody></table></div>"])


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
    found = versions()
    for name in ALSO_BY:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    told = ", ".join(f"{name} {text}" for name, text in found.items())
    lines.append(f"Versions: {escape(told)}.")
    if again:
        lines.append(f"Again: <code>{escape(again)}</code>")
    return "<p class='quiet'>" + "<br>\n".join(lines) + "</p>"
