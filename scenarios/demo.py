"""The demo: a small built-in population works for a month, with and without feedback.

Four runs: users who wait for their results before they continue (*feedback*), and the same users as
if every job started at once (*oblivious*), each under FCFS and EASY.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hpcrowd.agents.generative.archetypes import DEMO_USERS, demo_population
from hpcrowd.analysis.run import Precedence, Run
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.environment.limits.numbers import MOST_DAYS, check_within
from hpcrowd.environment.quantities import format_duration
from hpcrowd.environment.simulation import Simulation

#: Processors of the machine.
PROCESSORS = 128

#: The runs: whether users wait for their results, and the scheduler.
RUNS = ((False, "fcfs"), (False, "easy"), (True, "fcfs"), (True, "easy"))


def run_demo(
    days: int = 28,
    seed: int = 0,
    processors: int = PROCESSORS,
    progress: Callable[[str], Any] | None = None,
) -> list[Run]:
    """Run the demo and return its four runs, in the order of :data:`RUNS`.

    Parameters
    ----------
    days
        Days in which the users submit, from Monday 00:00 on; then the cluster drains.
    seed
        Seed of everything random, the same for all four runs: each user draws the same numbers.
    processors
        Size of the machine; the population is meant for 128.
    progress
        Called with the label of each run before it begins.

    Raises
    ------
    QuantityError
        When ``days`` or ``processors`` is less than 1, or the seed negative.
    """
    check_within("days", days, 1, MOST_DAYS)
    if seed < 0:
        raise QuantityError(f"seed {seed}: must be 0 or more")
    runs = []
    for hears, scheduler in RUNS:
        if progress is not None:
            progress(_label(hears, scheduler))
        runs.append(_run(days, seed, processors, hears, scheduler))
    return runs


def _label(hears: bool, scheduler: str) -> str:
    return f"{'feedback' if hears else 'oblivious'}, {scheduler.upper()}"


def _run(days: int, seed: int, processors: int, hears: bool, scheduler: str) -> Run:
    began = time.perf_counter()
    jobs = JobTable()
    model = Simulation(jobs, processors, scheduler, seed=seed)
    users = demo_population(model, horizon=days * DAY, hears=hears)
    prepared = time.perf_counter()
    model.run()
    ended = time.perf_counter()
    after = np.full(sum(user.submitted for user in users), UNKNOWN)
    for user in users:
        for unit, before in user.after.items():
            after[unit] = before
    return Run(
        jobs=jobs,
        processors=processors,
        label=_label(hears, scheduler),
        configuration={
            "kind": "demo",
            "users": "feedback" if hears else "oblivious",
            "scheduler": scheduler,
            "days": days,
            "processors": processors,
            "population": dict(DEMO_USERS),
            "seed": seed,
        },
        clock=model.clock,
        precedence=Precedence(after=after if hears else None),
        wall_s={"prepare": round(prepared - began, 3), "simulate": round(ended - prepared, 3)},
    )


def observations(runs: Sequence[Run]) -> list[str]:
    """Return what the four runs of :func:`run_demo` show, in sentences with numbers."""
    jobs = [f"{run.metrics['jobs_in']:,}" for run in runs]
    means = [run.metrics["wait_mean_s"] for run in runs]
    if None in means:
        return ["No job ran in some of these runs; simulate more days."]
    waits = [format_duration(mean) for mean in means]
    of_oblivious, of_feedback = means[0] - means[1], means[2] - means[3]
    more = runs[3].metrics["jobs_in"] / runs[2].metrics["jobs_in"] - 1
    return [
        f"Oblivious users submit the same {jobs[0]} jobs under both schedulers, and wait "
        f"{waits[0]} on average under FCFS, {waits[1]} under EASY.",
        f"The same users, when they wait for results before they continue, submit {jobs[2]} jobs "
        f"under FCFS and {jobs[3]} under EASY, and wait {waits[2]} and {waits[3]}.",
        f"So for users who do not react, the step from FCFS to EASY {_worth(of_oblivious)} "
        f"per job. For users who react, it {_worth(of_feedback)}, and they submit "
        f"{abs(more):.0%} {'more' if more >= 0 else 'fewer'} jobs.",
    ]


def _worth(seconds: float) -> str:
    """Return a change of the mean wait in words."""
    if round(seconds) == 0:
        return "changes no wait"
    return f"{'saves' if seconds > 0 else 'costs'} {format_duration(abs(seconds))} of waiting"
