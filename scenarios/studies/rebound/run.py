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
from hpcrowd.environment.clock import HOUR, WEEK, Clock
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import Trace, jobs_from_trace
from hpcrowd.scenarios.studies.rebound.draws import KINDS, draws_of, draws_rows, logs_rows
from hpcrowd.scenarios.studies.rebound.measures import Rebound
from hpcrowd.scenarios.studies.rebound.pauses import pause_slope
from hpcrowd.scenarios.studies.rebound.tables import (
    draw_rebound,
    summary_lines,
    tables,
    variant_table,
)
from hpcrowd.scenarios.studies.render import Picture, markdown_table, page_parts
from hpcrowd.scenarios.studies.running import LOGS, Steps, find_logs
from hpcrowd.scenarios.terminal import Progress, progress_bar
from hpcrowd.scenarios.whatif.scripts import ScriptTable, script

if TYPE_CHECKING:
    from hpcrowd.analysis.run import Run


SPEEDS = (0.5, 0.75, 1.0, 1.5, 2.0, 4.0)  # of the nodes, as multiples of the recorded one
SEEDS = 10  # populations drawn; the same ones for each kind of users and each speed
WARMUP = 4  # first weeks that throughput leaves out, and as many last ones of replays
SCHEDULER = "easy"
REQUESTED = "at-least:2x"  # requested times cover run times at half the speed, everywhere

#: Kinds of users: fields of :class:`~hpcrowd.scenarios.kinds.resample.ResampleConfig`.
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
    from hpcrowd.scenarios.kinds.replay import replay
    from hpcrowd.scenarios.kinds.resample import resample

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
                found.setdefault(name, {}).setdefault(speed, []).append(run.population)
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


def shown(trace: Trace) -> list[ScriptTable]:
    """Run the scenario on a trace; return its tables for a terminal."""
    with progress_bar() as progress:
        found = run_rebound(trace, progress=progress)
    return [
        ScriptTable(table.title, table.heading, table.rows, table.left)
        for table in tables(found)
        if table.terminal
    ]


#: Runs the scenario on a trace; prints tables; returns the exit code.
main = script("rebound", shown, module="hpcrowd.scenarios.studies.rebound.run")

if __name__ == "__main__":
    sys.exit(main())
