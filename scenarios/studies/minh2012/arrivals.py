"""Minh 2012, chapter 6: the study, its output, and how it is run.

The thesis shows pictures and prints no slowdown; the orders that it concludes are required.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, log
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from hpcrowd.analysis.paired import Estimate
from hpcrowd.analysis.results import versions
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.grid.das3 import DAS3
from hpcrowd.scenarios.studies.minh2012.arrivals_figures import FIGURES
from hpcrowd.scenarios.studies.minh2012.arrivals_measures import (
    ALIKE,
    LEIDEN,
    LOG,
    PATTERNS,
    POLICIES,
    SERVED,
    ClusterRuns,
    Floats,
    GridRuns,
    Plan,
    Work,
    arrivals_of,
    collect,
    log_ratio,
)
from hpcrowd.scenarios.studies.minh2012.correlation_measures import (
    above,
    below,
    decided,
    interval,
    load_name,
    number,
)
from hpcrowd.scenarios.studies.options import PROCESSES, SHARED_BY, Option
from hpcrowd.scenarios.studies.render import Picture, Rows, Table, pictures_of
from hpcrowd.scenarios.studies.running import run_tasks
from hpcrowd.scenarios.studies.study import (
    Check,
    Claim,
    Finding,
    PublishedStudy,
    Requirement,
    claims_of,
    rules_of,
)
from hpcrowd.scenarios.terminal import Progress
from hpcrowd.scenarios.unfinished import Unfinished

# ---- statements of the text ------------------------------------------------------------------
# The thesis shows pictures and gives no numbers, so each statement became a measure and a rule; the
# rules are ours. A measure is a ratio of two slowdowns of the same replication, in the geometric
# mean over replications. A statement that one is larger holds when the 95 % interval of the ratio
# lies above 1, and does not hold when it lies below; one that two are alike holds when the interval
# lies within a tenth of 1, and does not when it lies outside. Everything else stays open.

#: System load from which on Conservative is better with N (section 6.4.1).
CONSERVATIVE_FROM = 0.8

#: Grid load from which on background patterns no longer matter to grid jobs, by the grid's own
#: pattern (section 6.4.2, question 3).
GONE_FROM = {"N": 0.8, "L": 0.6, "LB": 0.4}


def digits(value: float) -> str:
    """Return a ratio of slowdowns; those about 1 with two places."""
    return f"{value:.2f}" if 0.1 <= value < 9.995 else f"{value:.3g}"


def times(ratio: Estimate) -> str:
    """Return a ratio of slowdowns with its interval, from its logarithm."""
    if ratio.low is None or ratio.high is None:
        return digits(exp(ratio.mean))
    ends = (digits(exp(end)) for end in (ratio.low, ratio.high))
    return f"{digits(exp(ratio.mean))} ({' to '.join(ends)})"


def larger(ratio: Estimate) -> Finding:
    """Return whether a ratio is above 1."""
    return {"ratio": exp(ratio.mean)}, times(ratio), decided(above(ratio), below(ratio))


def in_order(*steps: Estimate) -> Finding:
    """Return whether all of several ratios are above 1."""
    numbers = {f"step_{place}": exp(step.mean) for place, step in enumerate(steps, 1)}
    text = ", then ".join(map(times, steps))
    return numbers, text, decided(all(map(above, steps)), any(map(below, steps)))


def alike(*ratios: Estimate) -> Finding:
    """Return whether all of several ratios are 1 up to :data:`ALIKE`."""
    most = log(ALIKE)
    within = [
        one.low is not None and one.high is not None and -most < one.low and one.high < most
        for one in ratios
    ]
    outside = [
        one.low is not None and one.high is not None and (one.low > most or one.high < -most)
        for one in ratios
    ]
    numbers = {f"ratio_{place}": exp(one.mean) for place, one in enumerate(ratios, 1)}
    return numbers, ", ".join(map(times, ratios)), decided(all(within), any(outside))


#: Measures runs at a load, and returns a ratio of slowdowns.
type Ratio[Runs] = Callable[[Runs, float], Estimate]


def checked[Runs](judge: Callable[..., Finding], *ratios: Ratio[Runs]) -> Callable[..., Finding]:
    """Return a check of several ratios of runs at a load: that they are large, or alike."""
    return lambda runs, load: judge(*(ratio(runs, load) for ratio in ratios))


def compared(one: Sequence[str], other: Sequence[str]) -> Ratio[Any]:
    """Return the ratio of two kinds of runs, by their places on the axes without the load."""
    return lambda runs, load: log_ratio(
        runs.of(one[0], load, *one[1:]), runs.of(other[0], load, *other[1:])
    )


def policies(pattern: str, first: str, second: str) -> Ratio[ClusterRuns]:
    """Return the ratio of two policies with a pattern."""
    return compared((first, pattern), (second, pattern))


def backgrounds(measure: str, own: str, first: str, second: str) -> Ratio[GridRuns]:
    """Return the ratio of two background patterns, the grid's fixed to ``own``."""
    return compared((measure, own, first), (measure, own, second))


def grids(measure: str, behind: str, first: str, second: str) -> Ratio[GridRuns]:
    """Return the ratio of two patterns of the grid, the background fixed to ``behind``."""
    return compared((measure, first, behind), (measure, second, behind))


def weaker(own: str) -> Ratio[GridRuns]:
    """Return how much weaker b_LB over b_N affects grid jobs with ``own`` than with g_N."""

    def effect(runs: GridRuns, load: float, pattern: str) -> Floats:
        found: Floats = runs.of("grid", load, pattern, "LB") / runs.of("grid", load, pattern, "N")
        return found

    return lambda runs, load: log_ratio(effect(runs, load, "N"), effect(runs, load, own))


def below_load(bound: float) -> Callable[..., bool]:
    """Return a test whether a load is below ``bound``."""
    return lambda _, load: load < bound


def from_load(bound: float) -> Callable[..., bool]:
    """Return a test whether a load is at least ``bound``."""
    return lambda _, load: load >= bound


# ---- the statements --------------------------------------------------------------------------


def _others(runs: GridRuns, load: float) -> Finding:
    """Return by how much L and LB harm local jobs of the other clusters, over all grid patterns."""
    numbers, texts, ratios = {}, [], []
    for name in (row.name for row in DAS3 if row.name != LEIDEN):
        found = []
        for pattern in ("L", "LB"):
            logs = [
                np.log(runs.of(name, load, own, pattern) / runs.of(name, load, own, "N"))
                for own in runs.patterns
            ]
            found.append(interval(np.mean(logs, axis=0)))
            numbers[f"{name}_{pattern}"] = exp(found[-1].mean)
        texts.append(f"{name} {' and '.join(digits(exp(one.mean)) for one in found)}")
        ratios += found
    holds = decided(all(map(above, ratios)), any(map(below, ratios)))
    return numbers, ", ".join(texts), holds


#: Patterns of which the first has a larger slowdown than the second.
STEPS = (("L", "N"), ("LB", "L"))

#: Checks of the statements on a cluster, by name.
CLUSTER_CHECKS: dict[str, Check] = {
    **{
        f"{what}: {policy}": checked(larger, compared(*((policy, pattern) for pattern in step)))
        for policy in ("fcfs", "easy")
        for what, step in zip(("dependence harms", "bursts harm more"), STEPS, strict=True)
    },
    "N: similar below 0.8": (
        checked(alike, policies("N", "conservative", "easy")),
        below_load(CONSERVATIVE_FROM),
    ),
    "N: Conservative better above 0.8": (
        checked(larger, policies("N", "easy", "conservative")),
        lambda _, load: load > CONSERVATIVE_FROM,
    ),
    "LB: Aggressive better": checked(larger, policies("LB", "conservative", "easy")),
}


def _gone(own: str, bound: float) -> dict[str, Check]:
    """Return the checks that the background harms grid jobs below a load, and not from it on."""
    harm = (backgrounds("grid", own, *step) for step in STEPS)
    none = (backgrounds("grid", own, first, "N") for first in ("L", "LB"))
    return {
        f"grid, g_{own}: background harms": (checked(in_order, *harm), below_load(bound)),
        f"grid, g_{own}: effect disappears": (checked(alike, *none), from_load(bound)),
    }


#: Checks of the statements on the grid, by name.
GRID_CHECKS: dict[str, Check] = {
    **{
        f"LU, g_{own}: {first}/{second}": checked(larger, backgrounds(LEIDEN, own, first, second))
        for own in PATTERNS
        for first, second in STEPS
    },
    "other clusters": _others,
    **{
        f"LU, b_{behind}: unmoved": checked(
            alike, *(grids(LEIDEN, behind, first, "N") for first in ("L", "LB"))
        )
        for behind in PATTERNS
    },
    **{name: check for gone in GONE_FROM.items() for name, check in _gone(*gone).items()},
    **{f"grid, g_{own}: alleviates": checked(larger, weaker(own)) for own in ("L", "LB")},
    **{
        f"grid, b_{behind}: {first}/{second}": checked(larger, grids("grid", behind, first, second))
        for behind in PATTERNS
        for first, second in STEPS
    },
}

#: The statements, in the order of the text.
RULES = rules_of("minh2012/arrivals_statements", {**CLUSTER_CHECKS, **GRID_CHECKS})
CLUSTER_RULES, GRID_RULES = RULES[: len(CLUSTER_CHECKS)], RULES[len(CLUSTER_CHECKS) :]


def grid_load_name(load: float) -> str:
    """Return the name of a grid load as a setting."""
    return f"grid {load_name(load)}"


# ---- the study -------------------------------------------------------------------------------

#: Titles of the tables on the grid, with the measures they show.
GRID_TABLES = {
    "Slowdown of local jobs of the LU": LEIDEN,
    "Slowdown of grid jobs": "grid",
    "Slowdown of local jobs of the LU, all of them": "LU all",
    "Slowdown of all jobs on the LU, since they joined its queue": "LU shared",
}


@dataclass
class Minh2012Arrivals(PublishedStudy):
    """All experiments of chapter 6."""

    #: Jobs of each workload, and the seed of everything.
    jobs: int
    seed: int
    settings: Mapping[str, Any]  #: All other settings, by name.
    log: Mapping[str, Any]  #: The log that arrivals were fitted to.
    #: Sections 6.4.1 and 6.4.2.
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
        runs, grid, found = self.cluster, self.grid, []
        for policy, most in SERVED.items():
            served = [load for load in runs.loads if load <= most]
            for step in STEPS:
                ratio = compared(*((policy, pattern) for pattern in step))
                what = f"{POLICIES[policy].label}: b_{step[0]} over b_{step[1]}, loads to {most:g}"
                found += _required("single cluster", what, [ratio(runs, one) for one in served])
        everywhere = [(load, pattern) for load in grid.loads for pattern in grid.patterns]
        for pattern in ("L", "LB"):
            ratios = [backgrounds(LEIDEN, own, pattern, "N")(grid, at) for at, own in everywhere]
            what = f"local jobs: b_{pattern} over b_N, all grid loads and patterns"
            found += _required("LU", what, ratios)
        for pattern in ("L", "LB"):
            ratios = [grids("grid", behind, pattern, "N")(grid, at) for at, behind in everywhere]
            what = f"grid jobs: g_{pattern} over g_N, all grid loads and backgrounds"
            found += _required("grid", what, ratios)
        ratios = [
            grids(LEIDEN, behind, pattern, "N")(grid, at)
            for at, behind in everywhere
            for pattern in ("L", "LB")
        ]
        what = "local jobs: g_L and g_LB over g_N, all grid loads and backgrounds"
        return [*found, *_required("LU", what, ratios, alike=True)]

    @cached_property
    def claims(self) -> list[Claim]:
        """Every statement at every load that it applies to."""
        places = {load_name(load): (self.cluster, load) for load in self.cluster.loads}
        in_grid = {grid_load_name(load): (self.grid, load) for load in self.grid.loads}
        return [*claims_of(CLUSTER_RULES, places), *claims_of(GRID_RULES, in_grid)]

    def tables(self) -> Sequence[Table]:
        """Return how often statements hold, and the slowdowns of cluster and grid."""
        return self.tables_of(
            {
                "verdicts": verdict_rows(self.claims),
                "slowdowns on the cluster": cluster_rows(self),
                **{title: grid_rows(self, measure) for title, measure in GRID_TABLES.items()},
            }
        )

    def groups(self) -> Mapping[str, Iterable[str]]:
        """Return the loads of the cluster and of the grid."""
        return {
            "the cluster": map(load_name, self.cluster.loads),
            "the grid": map(grid_load_name, self.grid.loads),
        }

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

    def rows(self) -> Rows:
        """Return every slowdown."""
        return self.row_heading, simulation_rows(self)

    def origin(self) -> dict[str, Any]:
        """Return the log of the arrivals, and the settings of the simulations."""
        return {"log": dict(self.log), "settings": dict(self.settings)}


def _required(
    setting: str, what: str, logs: Sequence[Estimate], alike: bool = False
) -> list[Requirement]:
    """Return the requirement that all ratios are larger than 1, or alike; nothing without any."""
    if not logs:
        return []
    ratios = [float(np.exp(one.mean)) for one in logs]
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


def verdict_rows(claims: Sequence[Claim]) -> list[list[str]]:
    """Return how often each statement holds, does not, and stays open, over loads."""
    counts: dict[str, Counter[bool | None]] = {}
    for claim in claims:
        what = f"{claim.what.rpartition(': ')[0] or claim.what} ({claim.section})"
        counts.setdefault(what, Counter())[claim.holds] += 1
    return [
        [what, *(str(verdicts[verdict]) for verdict in (True, False, None))]
        for what, verdicts in counts.items()
    ]


def simulation_rows(study: Minh2012Arrivals) -> Iterator[tuple[Any, ...]]:
    """Yield every slowdown."""
    for policy, load, pattern, *found in study.cluster.each():
        yield ("cluster", policy, load, "", pattern, "all jobs", *found)
    for measure, load, own, behind, *found in study.grid.each():
        yield ("grid", "easy", load, own, behind, measure, *found)


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
