"""The rebound study in tables, in sentences and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hpcrowd.analysis.paired import Estimate
from hpcrowd.analysis.pictures.plots import COLOURS, LEGEND, TITLE, new_figure, tidy
from hpcrowd.environment.quantities import plural
from hpcrowd.scenarios.studies.rebound.measures import MEASURES, Rebound
from hpcrowd.scenarios.studies.render import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Look of each kind of users: colour, marker, line.
LOOKS = {
    "rigid": ("grey", "s", "-"),
    "replay": ("purple", "v", ":"),
    "think-time": ("blue", "o", "-"),
    "semi-open": ("vermilion", "D", "-"),
}

#: The measures that tables and sentences compare.
JOBS, WORK = "throughput_jobs_per_week", "work_recorded_node_h_per_week"

#: Panels of the picture: measure, title, divisor.
PANELS = (
    (JOBS, "Jobs ended per week", 1.0),
    (WORK, "Work per week (1,000 node-hours at recorded speed)", 1e3),
    ("utilization_weeks", "Processors in use (%)", 0.01),
)

#: Counts of users who come and go, with headings.
COUNTS = {
    "users_there": "there at first",
    "users_arrived": "arrived",
    "users_done": "left when done",
    "users_gave_up": "gave up",
    "users_went_away": "went away",
    "users_came_back": "came back",
    "users_went_on": "began again",
}

#: Points of different users at one speed are moved apart by this factor, to show intervals.
APART = 1.018

#: The mark of a single value, which has no interval.
ALONE = "-"


def number(found: Estimate, digits: int, per: float = 1.0) -> str:
    """Return a mean with half its interval, ``591 ± 20``; without one the mean alone."""
    text = f"{round(found.mean / per, digits) + 0.0:,.{digits}f}"  # no minus before a zero
    half = found.half_width
    return text if half is None else f"{text} ± {half / per:,.{digits}f}"


def relative_rows(found: Rebound, measure: str) -> list[list[str]]:
    """Return a row for each kind of users: a measure at each speed, as a multiple of that at 1."""
    return [
        [users, *(number(found.relative(users, speed, measure), 2) for speed in found.speeds)]
        for users in found.accounts
    ]


def absolute_rows(found: Rebound) -> list[list[str]]:
    """Return a row for each kind of users and measure, at each speed."""
    rows = []
    for users in found.accounts:
        for measure, title in MEASURES.items():
            share = measure == "utilization_weeks"
            per, digits = (0.01, 1) if share else (1.0, 0)
            texts = [
                number(found.estimate(users, speed, measure), digits, per) for speed in found.speeds
            ]
            rows.append([users, f"{title}, %" if share else title, *texts])
    return rows


def rebound_rows(found: Rebound) -> list[list[str]]:
    """Return a row for each kind of users: the rebound at each speed above 1, in percent."""
    return [
        [
            users,
            *(
                number(found.rebound(users, speed), 0, 0.01) if speed > 1 else ALONE
                for speed in found.speeds
            ),
        ]
        for users in found.accounts
    ]


def visit_rows(found: Rebound, users: str) -> list[list[str]]:
    """Return a row for each speed: counts of users who came and went, averaged over seeds."""
    return [
        [f"{speed:g}x", *(f"{found.mean_count(users, speed, what):,.1f}" for what in COUNTS)]
        for speed in found.speeds
    ]


def headings(found: Rebound, *first: str) -> list[str]:
    """Return headings: words, then the speeds."""
    return [*first, *(f"{speed:g}x" for speed in found.speeds)]


def tables(found: Rebound) -> list[Table]:
    """Return the tables of the study, on a terminal or on the page."""
    seeds, by_users = plural(found.settings["seeds"], "seed"), headings(found, "users")
    shown = [
        Table(
            f"{found.trace}: {MEASURES[measure]}, as a multiple of that at 1x; {seeds}, 95 %",
            by_users, relative_rows(found, measure), part=part,
        )
        for measure, part in ((JOBS, "jobs"), (WORK, "work"))
    ]  # fmt: skip
    shown.append(
        Table(
            "Rebound: part of the saved node-hours that is used up, %",
            by_users, rebound_rows(found), part="rebound",
        )
    )  # fmt: skip
    if "semi-open" in found.accounts:
        rows = visit_rows(found, "semi-open")
        heading = ["speed", *COUNTS.values()]
        shown.append(Table("Users of the semi-open population", heading, rows, part="visits"))
    heading = headings(found, "users", "measure")
    return [
        *shown,
        Table("All measures", heading, absolute_rows(found), 2, "absolute", terminal=False),
    ]


def variant_table(found: Rebound) -> Table:
    """Return a row for each variant: work per week, and users who gave up or went away."""
    slowest, others = min(found.speeds), [speed for speed in found.speeds if speed != 1.0]
    rows = []
    for name in found.accounts:
        left = found.mean_count(name, slowest, "users_gave_up")
        away = found.mean_count(name, slowest, "users_went_away")
        base = number(found.estimate(name, 1.0, WORK), 0)
        texts = [number(found.relative(name, speed, WORK), 2) for speed in others]
        rows.append([name, base, *texts, f"{left:.1f}", f"{away:.1f}"])
    columns = [f"at {speed:g}x" for speed in others]
    heading = [
        "satisfaction",
        "at 1x",
        *columns,
        f"gave up, {slowest:g}x",
        f"went away, {slowest:g}x",
    ]
    return Table("Variants of semi-open populations", heading, rows, part="variants")


def draw_rebound(found: Rebound) -> Figure:
    """Throughput, work and processors in use against the speed, by kind of users."""
    seeds, policy = found.settings["seeds"], found.settings["scheduler"].upper()
    figure = new_figure(
        12,
        4.5,
        "What a faster machine brings depends on its users",
        f"{found.trace}, {policy}; means over {seeds} populations with 95 % intervals; replay: the "
        "log itself, once",
    )
    grid = figure.add_gridspec(
        1, len(PANELS), left=0.05, right=0.985, bottom=0.13, top=0.73, wspace=0.2
    )
    for place, (measure, title, per) in enumerate(PANELS):
        axes = figure.add_subplot(grid[0, place])
        _draw_panel(axes, found, measure, per)
        axes.set_title(title, **TITLE)
        if not place:
            figure.legend(
                *axes.get_legend_handles_labels(), loc="upper left", ncols=4,
                bbox_to_anchor=(0.005, 0.875), **(LEGEND | {"fontsize": 9, "handlelength": 2.4}),
            )  # fmt: skip
    return figure


def _draw_panel(axes: Axes, found: Rebound, measure: str, per: float) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    tidy(axes)
    speeds = found.speeds
    drawn = [each for each in LOOKS if each in found.accounts]
    for place, name in enumerate(drawn):
        colour, marker, line = LOOKS[name]
        aside = APART ** (place - (len(drawn) - 1) / 2)
        estimates = [found.estimate(name, speed, measure) for speed in speeds]
        halves: Sequence[Any] = [(each.half_width or 0.0) / per for each in estimates]
        axes.errorbar(
            [speed * aside for speed in speeds], [each.mean / per for each in estimates],
            yerr=halves, color=COLOURS[colour], marker=marker, markersize=5, linestyle=line,
            linewidth=1.6, capsize=2.5, label=name,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(speeds))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([f"{speed:g}x" for speed in speeds])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("speed of the nodes, 1x as recorded (log scale)", fontsize=8.5)


def summary_lines(found: Rebound) -> list[str]:
    """Return the results of each kind of users at high and low speed, without the full stop."""
    fast = 2.0 if 2.0 in found.speeds else max(found.speeds)
    slow = min(found.speeds)
    lines = []
    for users in found.accounts:
        more, done = found.relative(users, fast, JOBS), found.relative(users, fast, WORK)
        less = found.relative(users, slow, JOBS)
        back = found.rebound(users, fast)
        lines.append(
            f"**{users}**: at {fast:g}x the speed {number(more, 2)} times the jobs and "
            f"{number(done, 2)} times the work per week, a rebound of {number(back, 0, 0.01)} %; "
            f"at {slow:g}x {number(less, 2)} times the jobs"
        )
    if "semi-open" in found.accounts:
        gave = found.mean_count("semi-open", slow, "users_gave_up")
        away = found.mean_count("semi-open", slow, "users_went_away")
        again = found.mean_count("semi-open", fast, "users_went_on")
        lines.append(
            f"At {slow:g}x the speed {gave:.0f} users of a semi-open population give up and "
            f"{away:.0f} stay away for some weeks; at {fast:g}x {again:.0f} begin their work again "
            "(means over seeds)"
        )
    return lines
