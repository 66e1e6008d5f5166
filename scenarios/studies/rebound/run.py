"""A capacity upgrade with rebound: throughput against the speed of the machine.

Covers: populations resampled from a trace; users who come and go by their satisfaction; several
seeds with intervals; how a forecast depends on the users it assumes.

Story: the nodes are to be replaced by faster ones, and the question is how much more work will be
done. Rigid users submit the same at any speed. Users who wait for their jobs submit earlier, but
their think times stay (Madon et al. 2024, section 7.3.3). In a semi-open population satisfied
users pause for less time and begin again, and unsatisfied ones leave, so that throughput is an
outcome: the faster machine is used for more work (rebound), the slower one loses its users.

If users submit more to a faster machine, part of the expected saving is used up: the *rebound*

    rebound = 1 - (N(1) - N(s)) / (N(1) - N(1) / s)

with N(s) the node-hours in use per week at s times the speed. It is 0 if the same work is done
in less time, and 1 if the machine is as busy as before.

Run: ``python -m hpcrowd.scenarios.studies.rebound.run TRACE``; its page, which also shows how close
populations drawn from logs are to these: ``python -m hpcrowd.scenarios.studies.refresh rebound``.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.agents.populations.component_users import AsRecorded
from hpcrowd.agents.populations.openness import Openness
from hpcrowd.agents.populations.semi_open import ComponentWork, add_members, draw_roster
from hpcrowd.agents.work.recorded import Work
from hpcrowd.agents.work.units import Units
from hpcrowd.analysis.curves import profile_distance, weekly_profile
from hpcrowd.analysis.features.stats import apart
from hpcrowd.analysis.paired import Estimate, t_interval
from hpcrowd.analysis.pictures.plots import COLOURS, LEGEND, TITLE, new_figure, panels, tidy
from hpcrowd.environment.clock import HOUR, WEEK, Clock
from hpcrowd.environment.errors import ModelFitError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.streams import Streams
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import Trace, jobs_from_trace
from hpcrowd.scenarios.kinds.populations.resample import ResampleConfig, pool_of, resample
from hpcrowd.scenarios.studies.render import Picture, Table, markdown_table, page_parts
from hpcrowd.scenarios.studies.running import LOGS, Steps, find_logs, study_script
from hpcrowd.scenarios.terminal import Progress, progress_bar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcrowd.analysis.run import Run


#: Kinds of users and populations, variants, and names of measures.
SETTINGS = tomllib.loads(Path(__file__).with_name("settings.toml").read_text("utf-8"))

SEEDS = 10  # populations drawn; the same ones for each kind of users and each speed

#: Measures of each run, by their accounts, with their titles on a page.
MEASURES: dict[str, str] = SETTINGS["measures"]


@dataclass(frozen=True)
class Rebound:
    """The results by kind of users, speed and seed.

    Attributes
    ----------
    trace
        Name of the trace.
    accounts
        For each kind of users and each speed the accounts of a run by each seed, see
        :mod:`hpcrowd.analysis.accounts.population`.
    settings
        The settings of all runs.
    """

    trace: str
    accounts: Mapping[str, Mapping[float, Sequence[Mapping[str, Any]]]]
    settings: Mapping[str, Any]

    @property
    def speeds(self) -> list[float]:
        """The speeds, as multiples of the recorded one."""
        return sorted({speed for runs in self.accounts.values() for speed in runs})

    def values(self, users: str, speed: float, measure: str) -> list[float]:
        """Return a measure by seed."""
        return [float(one[measure]) for one in self.accounts[users][speed]]

    def estimate(self, users: str, speed: float, measure: str) -> Estimate:
        """Return the mean over seeds with its interval."""
        return t_interval(self.values(users, speed, measure))

    def relative(self, users: str, speed: float, measure: str) -> Estimate:
        """Return a measure as a multiple of that at speed 1, seed by seed, with its interval."""
        pairs = zip(
            self.values(users, speed, measure), self.values(users, 1.0, measure), strict=True
        )
        return t_interval([value / base for value, base in pairs])

    def rebound(self, users: str, speed: float) -> Estimate:
        """Return the rebound at a speed above 1, seed by seed, with its interval."""
        used = "throughput_node_h_per_week"
        pairs = zip(self.values(users, speed, used), self.values(users, 1.0, used), strict=True)
        return t_interval([rebound_of(there, base, speed) for there, base in pairs])

    def mean_count(self, users: str, speed: float, account: str) -> float:
        """Return an account that counts, averaged over seeds."""
        found = self.values(users, speed, account)
        return sum(found) / len(found)


def rebound_of(used: float, base: float, speed: float) -> float:
    """Return the part of the expected saving that is used up; see the module's docstring.

    Node-hours in use are those at a speed above 1, and at speed 1.
    """
    return 1 - (base - used) / (base - base / speed)


# ---- pauses after responses ------------------------------------------------------------------
# The slope of log2(pause + grace) over log2(response + grace) within users: at 0.5 a user pauses
# 1.4 times as long after a response twice as long. It corresponds to the elasticity of
# :class:`hpcrowd.agents.populations.openness.Consequences` for a user who reacts to the machine; in
# a log it also contains how the length of jobs depends on the hour and on the work.

#: s; added to pauses and responses, so that a few seconds do not count as a multiple; as in
#: :class:`hpcrowd.agents.populations.satisfaction.Habit`.
GRACE = 600

#: s; pauses from this on are absences; as in :class:`Consequences`.
ABSENCE = WEEK


def pause_slope(units: Units, grace: int = GRACE) -> float:
    """Return the slope of pauses over the responses before them, within users, least squares.

    Pauses are the think times of recorded sessions or batches, and responses those of the last job
    to end among those that they waited for; see :data:`GRACE` and :data:`ABSENCE`. Raises
    ModelFitError when no user paused after two different responses.
    """
    there = (units.think_time >= 0) & (units.think_time < ABSENCE)
    pause = np.log2(grace + units.think_time[there])
    response = np.log2(grace + units.response[units.awaited[there]])
    user = units.user[there]
    count = np.maximum(np.bincount(user, minlength=1), 1)
    x = response - (np.bincount(user, response, minlength=1) / count)[user]
    y = pause - (np.bincount(user, pause, minlength=1) / count)[user]
    spread = float(x @ x)
    if spread <= 1e-9 * max(len(x), 1):  # rounding errors of equal numbers
        raise ModelFitError(
            f"pauses: {len(x)} of them",
            "no user paused after two different responses; take a longer trace",
        )
    return float(x @ y) / spread


# ---- populations drawn from a log -------------------------------------------------------------
# How close they are to it: jobs per week, rhythm, think times. A draw is a run of the rigid
# population with recorded waits: the record, moved by whole weeks. It is compared with the log, and
# with the same draw in which each user is also moved by a random part of a week, which keeps
# everything but day and hour. Closed loops under a scheduler are compared too.

#: Kinds of populations by name: settings of
#: :class:`~hpcrowd.scenarios.kinds.populations.resample.ResampleConfig`.
KINDS: dict[str, dict[str, Any]] = SETTINGS["kinds"]

#: The draw without day and hour, for comparison.
SHUFFLED = "draw, shuffled in the week"


@dataclass(frozen=True)
class Draw:
    """The measures of one population."""

    jobs_per_week: float  #: Submitted jobs per week.
    week: float  #: Total variation distance of its weekly profile of submissions from the log's.
    think: float  #: Kolmogorov-Smirnov distance of its think times between sessions from the log's.


@dataclass(frozen=True)
class Draws:
    """Populations drawn from a trace."""

    jobs_per_week: float  #: Jobs of the log in its calendar weeks.
    kinds: Mapping[str, Sequence[Draw]]  #: Draws by kind, one for each seed.


def draws_of(
    trace: Trace,
    kinds: Mapping[str, Mapping[str, Any]] = KINDS,
    *,
    seeds: int = SEEDS,
    progress: Progress | None = None,
) -> Draws:
    """Draw populations as long as the log and measure them.

    Parameters
    ----------
    trace
        The log.
    kinds
        Kinds of populations by name; the shuffled draw is added.
    seeds
        Number of draws of each kind, from seed 0 on.
    progress
        Called before each draw.
    """
    pool, converted = pool_of(trace, ResampleConfig())
    log_week = weekly_profile(converted.jobs.recorded_submit, pool.recorded_clock)
    log_think = think_times(converted.jobs, pool.work)

    def measured(jobs: JobTable) -> Draw:
        return Draw(
            len(jobs) / pool.weeks,
            profile_distance(weekly_profile(jobs.submit, pool.clock), log_week),
            apart(think_times(jobs), log_think).ks,
        )

    found: dict[str, list[Draw]] = {}
    steps = Steps(len(kinds) * seeds, progress)
    for seed in range(seeds):
        for name, choices in kinds.items():
            steps.begin(f"{name}, seed {seed}")
            run = resample(trace, seed=seed, **choices)
            found.setdefault(name, []).append(measured(run.jobs))
        roster = draw_roster(pool, pool.weeks, Openness(shuffled=True), Streams(seed))
        model = Simulation(JobTable(), trace.processors, "recorded", clock=pool.clock, seed=seed)
        horizon = pool.clock.second_at(pool.clock.wall(0) + pool.weeks * WEEK)
        add_members(model, ComponentWork(pool, AsRecorded()), roster, horizon=horizon)
        model.run()
        found.setdefault(SHUFFLED, []).append(measured(model.jobs))
    return Draws(len(converted.jobs) / pool.weeks, found)


def draws_rows(found: Draws) -> str:
    """Return the table in Markdown: means, and the smallest and largest of the draws."""
    rows = [["log", f"{found.jobs_per_week:,.1f}", "", "", ""]]
    for name, draws in found.kinds.items():
        jobs = np.array([draw.jobs_per_week for draw in draws])
        texts = [f"{jobs.mean():,.1f}", f"{jobs.min():,.0f} to {jobs.max():,.0f}"]
        for values in ([draw.week for draw in draws], [draw.think for draw in draws]):
            texts.append(f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})")
        rows.append([name, *texts])
    heading = ["population", "jobs per week", "smallest to largest", "weekly profile", "think time"]
    return markdown_table(heading, rows, 1)


def logs_rows(found: Mapping[str, Draws]) -> str:
    """Return a table in Markdown with a row for each log: draws against the log, by name."""
    rows = []
    for name, draws in found.items():
        jobs = np.array([draw.jobs_per_week for draw in draws.kinds["draw"]])
        week, shuffled = (
            np.mean([draw.week for draw in draws.kinds[kind]]) for kind in ("draw", SHUFFLED)
        )
        think = [draw.think for draw in draws.kinds["draw"]]
        rows.append(
            [
                name, f"{draws.jobs_per_week:,.1f}", f"{jobs.mean():,.1f}",
                f"{jobs.mean() / draws.jobs_per_week - 1:+.1%}", f"{jobs.std(ddof=1):,.1f}",
                f"{week:.3f}", f"{shuffled:.3f}", f"{np.mean(think):.3f}", f"{max(think):.3f}",
            ]
        )  # fmt: skip
    heading = [
        "log", "jobs per week", "of draws", "off by", "sd", "weekly profile", "of shuffled",
        "think time", "largest",
    ]  # fmt: skip
    return markdown_table(heading, rows, 1)


def think_times(jobs: JobTable, work: Work | None = None) -> Int64s:
    """Return the think times between the sessions of the jobs that ended, as simulated, s.

    With a record, its sessions are used as recorded instead.
    """
    if work is None:
        ended = jobs.take(np.flatnonzero(jobs.end != UNKNOWN))
        ended.recorded_submit[:], ended.recorded_start[:] = ended.submit, ended.start
        ended.recorded_end[:] = ended.end
        work = Work.of(ended)
    think = work.by_session.think_time
    known: Int64s = think[think != UNKNOWN]
    return known


# ---- tables, sentences and a picture ---------------------------------------------------------

#: Look of each kind of users: colour, marker, line.
LOOKS: dict[str, list[str]] = SETTINGS["looks"]

#: The measures that tables and sentences compare.
JOBS, WORK = "throughput_jobs_per_week", "work_recorded_node_h_per_week"

#: Panels of the picture: measure, title, divisor.
PANELS = (
    (JOBS, "Jobs ended per week", 1.0),
    (WORK, "Work per week (1,000 node-hours at recorded speed)", 1e3),
    ("utilization_weeks", "Processors in use (%)", 0.01),
)

#: Counts of users who come and go, with headings.
COUNTS: dict[str, str] = SETTINGS["counts"]

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
WARMUP = 4  # first weeks that throughput leaves out, and as many last ones of replays
SCHEDULER = "easy"
REQUESTED = "at-least:2x"  # requested times cover run times at half the speed, everywhere

#: Kinds of users: fields of :class:`~hpcrowd.scenarios.kinds.populations.resample.ResampleConfig`.
USERS: dict[str, dict[str, Any]] = SETTINGS["users"]

#: The replay that cannot show rebound: the same log, with think times.
REPLAY = "replay"

#: What is varied in semi-open populations, at :data:`VARIED_AT` times the speed.
VARIANTS: dict[str, dict[str, Any]] = SETTINGS["variants"]
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
            run = replay(trace, speed=f"{speed:g}x", users="think-time", given_up="drop", **common)
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
