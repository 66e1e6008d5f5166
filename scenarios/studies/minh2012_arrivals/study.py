"""Minh 2012, chapter 6: the study, its output, and how it is run.

The thesis shows pictures and prints no slowdown; the orders that it concludes are required.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from hpcrowd.analysis.results import versions
from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.studies.minh2012_arrivals.experiments import Plan, Work, collect
from hpcrowd.scenarios.studies.minh2012_arrivals.figures import FIGURES
from hpcrowd.scenarios.studies.minh2012_arrivals.measures import (
    ALIKE,
    LEIDEN,
    MEASURES,
    POLICIES,
    SERVED,
    ClusterRuns,
    Floats,
    GridRuns,
    log_ratio,
)
from hpcrowd.scenarios.studies.minh2012_arrivals.statements import all_claims, grid_load_name
from hpcrowd.scenarios.studies.minh2012_arrivals.workloads import LOG, arrivals_of
from hpcrowd.scenarios.studies.minh2012_correlation.measures import interval
from hpcrowd.scenarios.studies.minh2012_correlation.statements import load_name, number
from hpcrowd.scenarios.studies.options import PROCESSES, SHARED_BY, Option
from hpcrowd.scenarios.studies.published import MINH
from hpcrowd.scenarios.studies.render import (
    Picture,
    Rows,
    Table,
    pictures_of,
    required_table,
    statement_table,
)
from hpcrowd.scenarios.studies.running import run_tasks
from hpcrowd.scenarios.studies.study import Claim, PublishedStudy, Requirement
from hpcrowd.scenarios.terminal import Progress
from hpcrowd.scenarios.unfinished import Unfinished

#: Headings of all simulations.
SIMULATION = ("experiment", "policy", "load", "grid", "background", "measure", "replication",
              "slowdown")  # fmt: skip

#: Titles of the tables on the grid, with the measures they show.
GRID_TABLES = {
    "Slowdown of local jobs of the LU": LEIDEN,
    "Slowdown of grid jobs": "grid",
    "Slowdown of local jobs of the LU, all of them": "LU all",
    "Slowdown of all jobs on the LU, since they joined its queue": "LU shared",
}


@dataclass
class Minh2012Arrivals(PublishedStudy):
    """All experiments of chapter 6.

    Attributes
    ----------
    jobs, seed
        Jobs of each workload, and the seed of everything.
    settings
        All other settings, by name.
    log
        The log that arrivals were fitted to.
    cluster, grid
        Sections 6.4.1 and 6.4.2.
    """

    name = "minh2012-arrivals"
    about = "Minh 2012, chapter 6: effects of arrivals on a cluster and on the grid DAS-3."
    title = "Arrivals, clusters and grids, reproduced"
    source = f"{MINH}, chapter 6"
    stored_digits = 5

    jobs: int
    seed: int
    settings: Mapping[str, Any]
    log: Mapping[str, Any]
    cluster: ClusterRuns
    grid: GridRuns

    @property
    def cluster_replications(self) -> int:
        """Workloads of each pattern on the cluster."""
        return int(self.cluster.slowdown.shape[-1])

    @property
    def grid_replications(self) -> int:
        """Workloads of each kind on the grid."""
        return int(self.grid.slowdown.shape[-1])

    @cached_property
    def requirements(self) -> list[Requirement]:
        """The firm conclusions of the chapter, in the mean of the replications.

        Dependence harms a cluster that is not overloaded, and bursts harm it further; in the grid
        they harm local jobs, whatever the grid's pattern, and grid jobs, whatever the background's;
        and the grid's pattern does not affect local jobs.
        """
        found = []
        runs, grid = self.cluster, self.grid
        for policy, most in SERVED.items():
            for first, second in (("L", "N"), ("LB", "L")):
                pairs = [
                    (runs.of(policy, load, first), runs.of(policy, load, second))
                    for load in runs.loads
                    if load <= most
                ]
                what = f"{POLICIES[policy].label}: b_{first} over b_{second}, loads to {most:g}"
                found += _required("single cluster", what, pairs)
        everywhere = [(load, own) for load in grid.loads for own in grid.patterns]
        for pattern in ("L", "LB"):
            pairs = [
                (grid.of(LEIDEN, load, own, pattern), grid.of(LEIDEN, load, own, "N"))
                for load, own in everywhere
            ]
            what = f"local jobs: b_{pattern} over b_N, all grid loads and patterns"
            found += _required("LU", what, pairs)
        for pattern in ("L", "LB"):
            pairs = [
                (grid.of("grid", load, pattern, behind), grid.of("grid", load, "N", behind))
                for load, behind in everywhere
            ]
            what = f"grid jobs: g_{pattern} over g_N, all grid loads and backgrounds"
            found += _required("grid", what, pairs)
        pairs = [
            (grid.of(LEIDEN, load, pattern, behind), grid.of(LEIDEN, load, "N", behind))
            for load, behind in everywhere
            for pattern in ("L", "LB")
        ]
        what = "local jobs: g_L and g_LB over g_N, all grid loads and backgrounds"
        return [*found, *_required("LU", what, pairs, alike=True)]

    @cached_property
    def claims(self) -> list[Claim]:
        """Every statement at every load."""
        return all_claims(self)

    def tables(self) -> Sequence[Table]:
        """Return the requirements, the slowdowns of cluster and grid, and the statements."""
        settings = {
            "cluster": [load_name(load) for load in self.cluster.loads],
            "grid": [grid_load_name(load) for load in self.grid.loads],
        }
        return (
            required_table(
                self.requirements, "where", title="Required orders", what="slowdown",
                part="required", left=2, terminal=False,
            ),
            Table(
                "Verdicts", *verdict_rows(self.claims), part="verdicts",
                terminal=False, html=False,
            ),
            Table(
                "Slowdown on a single cluster", *cluster_rows(self),
                part="slowdowns on the cluster", wrap=True,
            ),
            *(
                Table(title, *grid_rows(self, measure), part=title, wrap=True)
                for title, measure in GRID_TABLES.items()
            ),
            *(
                statement_table(
                    self.claims, columns,
                    title=f"Statements on the {group}", part=f"statements on the {group}",
                )
                for group, columns in settings.items()
            ),
        )  # fmt: skip

    def summary(self) -> list[str]:
        """Return what was reached and what holds."""
        verdicts = self.verdicts
        return [
            f"{self.score} required orders reached; "
            f"of {len(self.claims)} statements, each at each load, {verdicts[True]} hold, "
            f"{verdicts[False]} do not, and {verdicts[None]} stay open"
        ]

    def pictures(self) -> Sequence[Picture]:
        """Return Figures 6.1 to 6.3."""
        return pictures_of(FIGURES, self)

    def data(self) -> dict[str, Any]:
        """Return all runs."""
        return self.stored()

    def rows(self) -> Rows:
        """Return every slowdown."""
        return SIMULATION, simulation_rows(self)

    def origin(self) -> dict[str, Any]:
        """Return the log of the arrivals, and the settings of the simulations."""
        return {"log": dict(self.log), "settings": dict(self.settings)}


def _required(
    setting: str, what: str, pairs: Sequence[tuple[Floats, Floats]], alike: bool = False
) -> list[Requirement]:
    """Return the requirement that in all pairs the first is larger, or that both are alike."""
    if not pairs:
        return []
    ratios = [float(np.exp(log_ratio(*pair).mean)) for pair in pairs]
    low, high = min(ratios), max(ratios)
    holds = low > 1 / ALIKE and high < ALIKE if alike else low > 1
    required = f"{1 / ALIKE:.2f} to {ALIKE:.2f}" if alike else "over 1"
    return [Requirement(setting, what, f"{low:.3g} to {high:.3g} times", required, holds)]


def cluster_rows(study: Minh2012Arrivals) -> tuple[list[str], list[list[str]]]:
    """Return the mean slowdown of each policy with each pattern as headings and rows."""
    runs = study.cluster
    rows = [
        [
            f"{POLICIES[policy].label}, b_{pattern}",
            *(_mean(runs.of(policy, load, pattern)) for load in runs.loads),
        ]
        for policy in runs.policies
        for pattern in runs.patterns
    ]
    return ["policy, pattern", *map(load_name, runs.loads)], rows


def grid_rows(study: Minh2012Arrivals, measure: str) -> tuple[list[str], list[list[str]]]:
    """Return the mean of a measure by both patterns as headings and rows."""
    runs = study.grid
    rows = [
        [
            f"g_{own}, b_{behind}",
            *(_mean(runs.of(measure, load, own, behind)) for load in runs.loads),
        ]
        for own in runs.patterns
        for behind in runs.patterns
    ]
    return ["grid, background", *map(grid_load_name, runs.loads)], rows


def _mean(values: Floats) -> str:
    """Return a mean with half its interval."""
    estimate = interval(values)
    half = estimate.half_width
    if half is None:
        return number(estimate.mean)
    return f"{number(estimate.mean)} ± {number(half) if half >= 10 else f'{half:.2g}'}"


def verdict_rows(claims: Sequence[Claim]) -> tuple[list[str], list[list[str]]]:
    """Return how often each statement holds, does not, and stays open, over loads."""
    counts: dict[str, Counter[bool | None]] = {}
    for claim in claims:
        what = f"{claim.what.rpartition(': ')[0] or claim.what} ({claim.section})"
        counts.setdefault(what, Counter())[claim.holds] += 1
    rows = [
        [what, *(str(verdicts[verdict]) for verdict in (True, False, None))]
        for what, verdicts in counts.items()
    ]
    return ["statement", "loads at which it holds", "does not", "open"], rows


def simulation_rows(study: Minh2012Arrivals) -> Iterator[tuple[Any, ...]]:
    """Yield every slowdown as a row of :data:`SIMULATION`."""
    cluster, grid = study.cluster, study.grid
    for policy in cluster.policies:
        for load in cluster.loads:
            for pattern in cluster.patterns:
                for r, value in enumerate(cluster.of(policy, load, pattern)):
                    yield ("cluster", policy, load, "", pattern, "all jobs", r, value)
    for measure in MEASURES:
        for load in grid.loads:
            for own in grid.patterns:
                for behind in grid.patterns:
                    for r, value in enumerate(grid.of(measure, load, own, behind)):
                        yield ("grid", "easy", load, own, behind, measure, r, value)


def reproduce_minh2012_arrivals(
    traces: Annotated[
        str | os.PathLike[str] | None,
        Option("Folder with traces to fit arrivals to; stored arrivals if none.", kind=Path | None),
    ] = None,
    progress: Progress | None = None,
    *,
    plan: Plan | None = None,
    log: Annotated[str, Option("Log that arrivals are fitted to.")] = LOG,
    workers: Annotated[int, SHARED_BY] = PROCESSES,
    out: Path | None = None,
) -> Minh2012Arrivals:
    """Run the experiments of chapter 6.

    Parameters
    ----------
    traces
        Folder with the traces; without one, arrivals are those of :data:`LOG` as stored.
    progress
        Called after each task.
    plan
        The plan of the experiments; that of the thesis unless given.
    log
        The log that arrivals are fitted to.
    workers
        Number of processes that share the work; the results do not depend on it.
    out
        Folder of results to write: finished tasks are kept next to it, and are not done again. None
        keeps nothing.

    Raises
    ------
    QuantityError
        When there is less than one process, or the log is not known.
    HpcrowdError
        When results of another study are kept next to ``out``.
    """
    plan = plan or Plan()
    if workers < 1:
        raise QuantityError(f"workers {workers}: at least 1")
    if progress is not None:
        progress(f"arrivals of {log}", 0, 1)
    work = Work(plan, arrivals_of(traces, log))
    tasks = work.tasks()
    unfinished = None if out is None else Unfinished.beside(out, whole_plan(work))
    done = run_tasks(
        work,
        tasks,
        workers,
        progress,
        lambda task: f"simulating: {task.experiment}",
        unfinished=unfinished,
    )
    cluster, grid = collect(plan, {task.name: result for task, result in done})
    return Minh2012Arrivals(
        cluster=cluster,
        grid=grid,
        jobs=plan.jobs,
        seed=plan.seed,
        settings=plan.settings(),
        log=work.arrivals.log,
    )


def whole_plan(work: Work) -> dict[str, Any]:
    """Return all that results depend on, as plain data."""
    return {
        "study": Minh2012Arrivals.name,
        "plan": work.plan.settings(),
        "arrivals": work.arrivals.to_json(),
        "versions": versions(),
    }
