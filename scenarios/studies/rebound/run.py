"""A capacity upgrade with rebound: throughput against the speed of the machine.

Covers: populations resampled from a trace; users who come and go by their satisfaction; several
seeds with intervals; how a forecast depends on the users it assumes.

Story: the nodes are to be replaced by faster ones, and the question is how much more work will be
done. Rigid users submit the same at any speed. Users who wait for their jobs submit earlier, but
their think times stay (Madon et al. 2024, section 7.3.3). In a semi-open population satisfied
users pause for less time and begin again, and unsatisfied ones leave, so that throughput is an
outcome: the faster machine is used for more work (rebound), the slower one loses its users.

Run: ``python -m hpcrowd.scenarios.studies.rebound.run TRACE``; its page, which also shows how close
populations drawn from logs are to these: ``python -m hpcrowd.scenarios.studies.refresh rebound``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.agents.work.recorded import Work
from hpcrowd.analysis.pictures.plots import COLOURS, LEGEND, TITLE, new_figure, panels, tidy
from hpcrowd.environment.clock import HOUR, WEEK, Clock
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import Trace, jobs_from_trace
from hpcrowd.scenarios.studies.rebound.draws import KINDS, draws_of, draws_rows, logs_rows
from hpcrowd.scenarios.studies.rebound.measures import MEASURES, Rebound, pause_slope
from hpcrowd.scenarios.studies.render import Picture, Table, markdown_table, page_parts
from hpcrowd.scenarios.studies.running import LOGS, Steps, find_logs, study_script
from hpcrowd.scenarios.terminal import Progress, progress_bar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcrowd.analysis.run import Run


# ---- tables, sentences and a picture ---------------------------------------------------------

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


def relative_rows(found: Rebound, measure: str) -> list[list[str]]:
    """Return a row for each kind of users: a measure at each speed, as a multiple of that at 1."""
    return [
        [users, *(found.relative(users, speed, measure).text(2) for speed in found.speeds)]
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
                found.estimate(users, speed, measure).text(digits, per) for speed in found.speeds
            ]
            rows.append([users, f"{title}, %" if share else title, *texts])
    return rows


def rebound_rows(found: Rebound) -> list[list[str]]:
    """Return a row for each kind of users: the rebound at each speed above 1, in percent."""
    return [
        [
            users,
            *(
                found.rebound(users, speed).text(0, 0.01) if speed > 1 else ALONE
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
        base = found.estimate(name, 1.0, WORK).text(0)
        texts = [found.relative(name, speed, WORK).text(2) for speed in others]
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
    room = {"left": 0.05, "bottom": 0.13, "top": 0.73, "wspace": 0.2}
    drawn_on = panels(figure, 1, len(PANELS), **room)
    for place, (axes, (measure, title, per)) in enumerate(zip(drawn_on, PANELS, strict=True)):
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
            f"**{users}**: at {fast:g}x the speed {more.text(2)} times the jobs and "
            f"{done.text(2)} times the work per week, a rebound of {back.text(0, 0.01)} %; "
            f"at {slow:g}x {less.text(2)} times the jobs"
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


# ---- runs ------------------------------------------------------------------------------------

SPEEDS = (0.5, 0.75, 1.0, 1.5, 2.0, 4.0)  # of the nodes, as multiples of the recorded one
SEEDS = 10  # populations drawn; the same ones for each kind of users and each speed
WARMUP = 4  # first weeks that throughput leaves out, and as many last ones of replays
SCHEDULER = "easy"
REQUESTED = "at-least:2x"  # requested times cover run times at half the speed, everywhere

#: Kinds of users: fields of :class:`~hpcrowd.scenarios.kinds.populations.resample.ResampleConfig`.
USERS: dict[str, dict[str, Any]] = {
    "rigid": {"users": "rigid"},
    "think-time": {"users": "think-time-windows"},
    "semi-open": {"users": "think-time-windows", "satisfaction": "habit"},
}

#: The replay that cannot show rebound: the same log, with think times.
REPLAY = "replay"

#: What is varied in semi-open populations, at :data:`VARIED_AT` times the speed.
VARIANTS: dict[str, dict[str, Any]] = {
    "habit": {"satisfaction": "habit"},
    "habit, pauses stay (elasticity 0)": {
        "satisfaction": "habit", "consequences": {"elasticity": 0},
    },
    "habit, pauses follow (elasticity 1)": {
        "satisfaction": "habit", "consequences": {"elasticity": 1},
    },
    "habit, no user leaves or begins again": {
        "satisfaction": "habit", "consequences": {"leave": 0, "again": 0},
    },
    "requested": {"satisfaction": "requested"},
    "alea": {"satisfaction": "alea"},
}  # fmt: skip
VARIED_AT = (0.5, 1.0, 2.0)

#: The log of the page, and others that populations are drawn from if available.
STUDIED, OTHERS = "KTH", ("SDSC-DS", "LANL-CM5", "HPC2N")


def run_rebound(
    trace: Trace,
    users: Mapping[str, Mapping[str, Any]] = USERS,
    speeds: Sequence[float] = SPEEDS,
    *,
    seeds: int = SEEDS,
    replayed: bool = True,
    weeks: int | None = None,
    progress: Progress | None = None,
) -> Rebound:
    """Run every kind of users at every speed with every seed.

    Parameters
    ----------
    trace
        What was recorded.
    users
        Kinds of users by name: fields of the configuration.
    speeds
        Multiples of the recorded one; 1 is among them.
    seeds
        Number of populations, from seed 0 on.
    replayed
        Whether the log itself is replayed too, with think times.
    weeks
        How long users submit; as the log unless given.
    progress
        Called before each run.
    """
    from hpcrowd.scenarios.kinds.populations.resample import resample
    from hpcrowd.scenarios.kinds.replay import replay

    common: dict[str, Any] = {"scheduler": SCHEDULER, "requested": REQUESTED}
    steps = Steps(len(speeds) * (len(users) * seeds + replayed), progress)
    found: dict[str, dict[float, list[dict[str, Any]]]] = {}
    for speed in speeds:
        for name, choices in users.items():
            for seed in range(seeds):
                steps.begin(f"{name}, {speed:g}x, seed {seed}")
                run = resample(
                    trace, speed=f"{speed:g}x", seed=seed, warm_up=WARMUP * WEEK,
                    days=None if weeks is None else 7 * weeks, **common, **choices,
                )  # fmt: skip
                found.setdefault(name, {}).setdefault(speed, []).append(
                    run.parts["population"].account
                )
        if replayed:
            steps.begin(f"{REPLAY}, {speed:g}x")
            run = replay(trace, speed=f"{speed:g}x", users="think-time", **common)
            found.setdefault(REPLAY, {})[speed] = [replayed_accounts(run, trace, speed)]
    settings = {
        **common, "seeds": seeds, "warmup_weeks": WARMUP, "weeks": weeks,
        "users": {name: dict(choices) for name, choices in users.items()},
    }  # fmt: skip
    return Rebound(Path(trace.source).name, found, settings)


def replayed_accounts(run: Run, trace: Trace, speed: float) -> dict[str, float]:
    """Return the throughput of a replay in the weeks of the log, without the first and last."""
    from hpcrowd.analysis.curves import processors_in_use

    submit = run.jobs.recorded_submit
    clock = Clock.of(trace.header)
    first = int(submit.min()) - clock.wall(int(submit.min())) % WEEK
    weeks = (int(submit.max()) - first) // WEEK + 1
    edges = first + WEEK * np.arange(WARMUP, max(weeks - WARMUP, WARMUP + 1) + 1)
    ended = np.histogram(run.jobs.end[run.jobs.over], edges)[0]
    used = float(processors_in_use(run.runs, edges).mean())
    hours = used * WEEK / HOUR
    return {
        "throughput_jobs_per_week": float(ended.mean()),
        "throughput_node_h_per_week": hours,
        "work_recorded_node_h_per_week": hours * speed,
        "utilization_weeks": used / run.processors,
    }


def page_contents(traces: Path) -> tuple[dict[str, str], list[Picture]]:
    """Run the study; return the generated parts of its page by name, and its picture."""
    paths = find_logs(traces, {name: LOGS[name] for name in (STUDIED, *OTHERS)}, [STUDIED])
    trace = read_trace(paths[STUDIED])
    with progress_bar() as progress:
        found = run_rebound(trace, progress=progress)
        shapes = {
            name: {"users": "think-time-windows", **choices} for name, choices in VARIANTS.items()
        }
        variants = run_rebound(trace, shapes, VARIED_AT, replayed=False, progress=progress)
        draws = {STUDIED: draws_of(trace, progress=progress)}
        for name in OTHERS:
            if name in paths:
                only = {"draw": KINDS["draw"]}
                draws[name] = draws_of(read_trace(paths[name]), only, progress=progress)
    parts = {
        **page_parts(summary_lines(found), [*tables(found), variant_table(variants)]),
        "draws": draws_rows(draws[STUDIED]),
        "logs": logs_rows(draws),
        "slopes": slopes_rows(paths),
    }
    return parts, [Picture.of("rebound", draw_rebound, found)]


def slopes_rows(paths: Mapping[str, Path]) -> str:
    """Return the slopes of pauses over responses of logs, as a table in Markdown."""
    rows = []
    for name, path in paths.items():
        work = Work.of(jobs_from_trace(read_trace(path)).jobs)
        rows.append([name, *(f"{pause_slope(u):.2f}" for u in (work.by_session, work.by_batch))])
    return markdown_table(["log", "between sessions", "between batches"], rows, 1)


#: Runs the scenario on a trace; prints tables; returns the exit code.
main = study_script(
    "rebound", lambda trace, progress: tables(run_rebound(trace, progress=progress))
)

if __name__ == "__main__":
    sys.exit(main())
