"""How close populations drawn from a trace are to it: jobs per week, rhythm, think times.

A draw is a run of the rigid population with recorded waits: the record, moved by whole weeks. It is
compared with the log, and with the same draw in which each user is also moved by a random part of a
week, which keeps everything but day and hour. Closed loops under a scheduler are compared too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcrowd.agents.populations.component_users import AsRecorded
from hpcrowd.agents.populations.openness import Openness
from hpcrowd.agents.populations.semi_open import ComponentWork, add_members, draw_roster
from hpcrowd.agents.work.recorded import Work
from hpcrowd.analysis.curves import profile_distance, weekly_profile
from hpcrowd.analysis.features.distance import apart
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.streams import Streams
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.kinds.populations.resample import ResampleConfig, pool_of, resample
from hpcrowd.scenarios.studies.render import markdown_table
from hpcrowd.scenarios.studies.running import Steps
from hpcrowd.scenarios.terminal import Progress

SEEDS = 10  # draws

#: Kinds of populations by name: settings of
#: :class:`~hpcrowd.scenarios.kinds.populations.resample.ResampleConfig`.
KINDS: dict[str, dict[str, Any]] = {
    "draw": {"users": "rigid", "scheduler": "recorded"},
    "think-time, EASY": {"users": "think-time"},
    "think-time-windows, EASY": {"users": "think-time-windows"},
}

#: The draw without day and hour, for comparison.
SHUFFLED = "draw, shuffled in the week"


@dataclass(frozen=True)
class Draw:
    """The measures of one population.

    Attributes
    ----------
    jobs_per_week
        Submitted jobs per week.
    week
        Total variation distance of its weekly profile of submissions from the log's.
    think
        Kolmogorov-Smirnov distance of its think times between sessions from the log's.
    """

    jobs_per_week: float
    week: float
    think: float


@dataclass(frozen=True)
class Draws:
    """Populations drawn from a trace.

    Attributes
    ----------
    jobs_per_week
        Jobs of the log in its calendar weeks.
    kinds
        Draws by kind, one for each seed.
    """

    jobs_per_week: float
    kinds: Mapping[str, Sequence[Draw]]


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
    """Return the think times between the sessions of jobs as simulated, s.

    Parameters
    ----------
    jobs
        The jobs; those that never ended are left out.
    work
        A record, whose sessions are used as recorded instead.
    """
    if work is None:
        ended = jobs.take(np.flatnonzero(jobs.end != UNKNOWN))
        ended.recorded_submit[:], ended.recorded_start[:] = ended.submit, ended.start
        ended.recorded_end[:] = ended.end
        work = Work.of(ended)
    think = work.by_session.think_time
    known: Int64s = think[think != UNKNOWN]
    return known
