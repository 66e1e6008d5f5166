"""Minh 2012, chapter 7: the study, its output, and how it is run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.models.jobs.locality import Locality
from hpcrowd.analysis.paired import Estimate
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.schedulers.policies.adaptive import rank_correlation
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.scenarios.studies.minh2012.correlation_figures import figures_of
from hpcrowd.scenarios.studies.minh2012.correlation_measures import (
    CATEGORIZED,
    FORETOLD,
    HPC,
    OVERLOADED,
    POLICIES,
    STUDIED,
    TABLED,
    UNCATEGORIZED,
    Correlation,
    CorrelationRuns,
    Floats,
    ForetoldSigns,
    LocalityRuns,
    Plan,
    Work,
    above,
    below,
    collect,
    completed_jobs,
    decided,
    foretold_signs,
    interval,
    load_name,
    number,
)
from hpcrowd.scenarios.studies.minh2012.features_measures import published_jobs
from hpcrowd.scenarios.studies.options import PROCESSES, SHARED_BY, TRACES
from hpcrowd.scenarios.studies.published import Printed, published_rows
from hpcrowd.scenarios.studies.render import Picture, Rows, Table, Version, pictures_of
from hpcrowd.scenarios.studies.running import Steps, find_logs, run_tasks
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

# ---- statements of the text ------------------------------------------------------------------
# The thesis shows pictures and gives no numbers, so each statement became a measure and a rule; the
# rules are ours. A difference counts when its 95 % interval lies on one side of 0; statements that
# no interval decides stay open. Differences are taken replication by replication, because the
# compared runs share run times and arrivals.

#: Weeks are predicted as well as in the thesis if the share differs by at most this.
FORETOLD_WITHIN = 0.1


def needs(*policies: str) -> Callable[..., bool]:
    """Return whether runs have these policies."""
    return lambda runs, *_: set(policies) <= set(runs.policies)


def rise(runs: CorrelationRuns, policy: str, load: float, first: float, last: float) -> Floats:
    """Return by how much slowdown rises from one degree to another, shape (replications,)."""
    return runs.of(policy, load, last) - runs.of(policy, load, first)


def _larger(runs: CorrelationRuns, load: float, *, policy: str) -> Finding:
    values = runs.of(policy, load)
    steps = [interval(later - sooner) for sooner, later in pairwise(values)]
    whole = interval(values[-1] - values[0])
    up, down = (sum(map(side, steps)) for side in (above, below))
    means = [float(runs.of(policy, load, degree).mean()) for degree in (-1, 0, 1)]
    numbers = dict(zip(("at_-1", "at_0", "at_+1"), means, strict=True))
    numbers |= {"steps_up": up, "steps_down": down}
    text = f"{', '.join(map(number, means))}; of {len(steps)} steps {up} up, {down} down"
    return numbers, text, decided(above(whole) and not down, below(whole) or down > 0)


def _faster(runs: CorrelationRuns, load: float, *, policy: str) -> Finding:
    first, second = rise(runs, policy, load, -1, 0), rise(runs, policy, load, 0, 1)
    more = interval(second - first)
    numbers = {"to_0": float(first.mean()), "from_0": float(second.mean())}
    text = f"{first.mean():+.3g}, then {second.mean():+.3g}"
    return numbers, text, decided(above(more), below(more))


def _degrades_more(
    runs: CorrelationRuns, load: float, *, policy: str, others: tuple[str, ...]
) -> Finding:
    own = rise(runs, policy, load, 0, 1)
    numbers, texts = {policy: float(own.mean())}, [f"{own.mean():+.3g}"]
    differences = []
    for other in others:
        its = rise(runs, other, load, 0, 1)
        numbers[other] = float(its.mean())
        texts.append(f"{POLICIES[other].label} {its.mean():+.3g}")
        differences.append(interval(own - its))
    holds = decided(all(map(above, differences)), any(map(below, differences)))
    return numbers, ", ".join(texts), holds


def _categorized(runs: CorrelationRuns, load: float, *, better: bool) -> Finding:
    degrees = [one for one in runs.degrees if (one < 0 if better else one > 0)]
    each = [runs.of(CATEGORIZED, load, d) - runs.of(UNCATEGORIZED, load, d) for d in degrees]
    whole = interval(np.mean(each, axis=0))
    lower, higher = (sum(side(interval(one)) for one in each) for side in (below, above))
    numbers = {"difference": whole.mean, "degrees_lower": lower, "degrees_higher": higher}
    text = f"{span(whole)}; lower at {lower}, higher at {higher} of {len(degrees)}"
    sides = (below(whole), above(whole))
    return numbers, text, decided(*(sides if better else sides[::-1]))


def _similar(runs: CorrelationRuns, load: float) -> Finding:
    logs = {
        policy: np.log(runs.of(policy, load, 1) / runs.of(policy, load, -1))
        for policy in (UNCATEGORIZED, CATEGORIZED)
    }
    numbers = {policy: float(np.exp(values.mean())) for policy, values in logs.items()}
    text = f"{numbers[UNCATEGORIZED]:.2f} times, categorized {numbers[CATEGORIZED]:.2f} times"
    less = interval(logs[UNCATEGORIZED] - logs[CATEGORIZED])
    return numbers, text, decided(below(less), above(less))


def _locality(runs: LocalityRuns, *, policy: str, overloaded: bool, harms: bool) -> Finding:
    places = [
        place
        for place, load in enumerate(runs.loads)
        if load != OVERLOADED and (load > OVERLOADED) is overloaded
    ]
    on, off = runs.of(policy)
    each = [interval(on[place] - off[place]) for place in places]
    sides = (above, below) if harms else (below, above)
    count, contrary = (sum(map(side, each)) for side in sides)
    ratios = [float(on[place].mean() / off[place].mean()) for place in places]
    names = [f"on_over_off_at_{runs.loads[place]:g}" for place in places]
    numbers = dict(zip(names, ratios, strict=True))
    text = f"{count} of {len(each)} loads; {number(min(ratios))} to {number(max(ratios))} times"
    return numbers, text, decided(count == len(each), contrary > 0)


def _weeks(study: Minh2012Correlation) -> Finding:
    share = study.foretold or 0.0
    text = f"{100 * share:.0f} % over {len(study.weeks)} logs"
    return {"share": share}, text, abs(share - FORETOLD) <= FORETOLD_WITHIN


def span(estimate: Estimate) -> str:
    """Return a mean with its interval."""
    half = estimate.half_width
    return f"{estimate.mean:+.3g}" + ("" if half is None else f" ± {half:.2g}")


#: The two policies that degrade less than others, and those that Figure 7.4 compares.
LESS, BOTH = ("easy", CATEGORIZED), needs(CATEGORIZED, UNCATEGORIZED)

#: Checks of the statements on correlation, by name.
LOAD_CHECKS: dict[str, Check] = {
    **{
        f"larger correlation, larger slowdown: {policy}": (
            partial(_larger, policy=policy),
            needs(policy),
        )
        for policy in POLICIES
    },
    **{
        f"rapid when positive: {policy}": (partial(_faster, policy=policy), needs(policy))
        for policy in POLICIES
    },
    **{
        f"fragmentation: {policy}": (
            partial(_degrades_more, policy=policy, others=LESS),
            needs(policy, *LESS),
        )
        for policy in ("fcfs", "conservative")
    },
    "categorized better when negative": (partial(_categorized, better=True), BOTH),
    "categorized worse when positive": (partial(_categorized, better=False), BOTH),
    "uncategorized hardly changes": (_similar, BOTH),
}

#: Checks of the statements on locality: policy, whether the system is overloaded, and the effect.
LOCALITY_CHECKS: dict[str, Check] = {
    name: (partial(_locality, policy=policy, overloaded=overloaded, harms=harms), needs(policy))
    for name, policy, overloaded, harms in (
        ("locality harms EASY underloaded", "easy", False, True),
        ("locality harms EASY overloaded", "easy", True, True),
        ("locality harms FIFO underloaded", "fcfs", False, True),
        ("locality helps FIFO overloaded", "fcfs", True, False),
    )
}

#: The statements, in the order of the text; the last one is on weeks.
RULES = rules_of(
    "minh2012/correlation_statements",
    {
        **LOAD_CHECKS,
        **LOCALITY_CHECKS,
        "weeks are foretold": (_weeks, lambda study: study.foretold is not None),
    },
)
LOAD_RULES, LOCALITY_RULES = RULES[: len(LOAD_CHECKS)], RULES[len(LOAD_CHECKS) : -1]


# ---- the study -------------------------------------------------------------------------------

#: Headings of Table 7.1 with ours.
TABLE = ("workload", "degree", "ours", "published")

#: Degrees whose slowdowns are shown: the ends, the middle, and those of real workloads.
TOLD = (-1.0, -0.2, 0.0, 0.4, 1.0)


@dataclass
class Minh2012Correlation(PublishedStudy):
    """All experiments of chapter 7."""

    listed = STUDIED
    written = ("replications", "jobs", "seed", "traces", "correlation", "locality", "weeks")

    correlation: CorrelationRuns  #: Section 7.3.1.
    locality: Sequence[LocalityRuns]  #: Section 7.3.2.
    weeks: Mapping[str, ForetoldSigns]  #: Section 7.4, by log.
    #: Jobs of each workload, and the seed of everything.
    jobs: int
    seed: int
    #: Facts about each log, by name.
    traces: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def replications(self) -> int:
        """Workloads of each kind."""
        return int(self.correlation.correlation.shape[1])

    @cached_property
    def table(self) -> list[Correlation]:
        """Table 7.1 with ours, for the degrees that were run."""
        found = []
        for row in published_rows("minh2012_table7_1"):
            degree = float(row["degree"])
            if degree not in self.correlation.degrees:
                continue
            ours = self.correlation.correlation[self.correlation.degrees.index(degree)]
            found.append(
                Correlation(
                    row["workload"],
                    degree,
                    float(ours.mean()),
                    float(ours.std(ddof=1)),
                    row["correlation_mean"],
                    row["correlation_deviation"],
                )
            )
        return found

    @property
    def within(self) -> float:
        """The accepted deviation of our correlations from Table 7.1.

        Three standard deviations of Spearman's correlation of a workload whose run times and
        processors are independent; chosen by us, beforehand.
        """
        return 3 / float(np.sqrt(self.jobs - 1))

    @property
    def foretold(self) -> float | None:
        """Mean over logs of the share of weeks whose sign was predicted; None without any."""
        shares = [signs.share for signs in self.weeks.values() if signs.share is not None]
        return float(np.mean(shares)) if shares else None

    @cached_property
    def requirements(self) -> list[Requirement]:
        """Table 7.1, whose log is available."""
        found = []
        for one in self.table:
            printed = Printed(one.published_mean)
            off = abs(one.correlation_mean - printed.value)
            found.append(
                Requirement(
                    "",
                    f"Spearman's correlation of {one.workload} (Table 7.1)",
                    f"{one.correlation_mean:+.3f}",
                    f"{printed.value:+.3f} ± {self.within:.3f}",
                    off <= self.within + printed.half_unit,
                )
            )
        return found

    @cached_property
    def claims(self) -> list[Claim]:
        """Every statement in every setting; those whose policies were not run are left out."""
        runs = self.correlation
        return [
            *claims_of(LOAD_RULES, {load_name(load): (runs, load) for load in runs.loads}),
            *claims_of(LOCALITY_RULES, {runs.name: runs for runs in self.locality}),
            *claims_of(RULES[-1:], {"all logs": self}),
        ]

    def tables(self) -> Sequence[Table]:
        """Return Table 7.1 with ours, slowdowns, and weeks."""
        return self.tables_of(
            {
                "table 7.1": table_rows(self),
                "slowdowns": slowdown_rows(self),
                "weeks": week_rows(self),
            }
        )

    def groups(self) -> Mapping[str, Iterable[str]]:
        """Return the loads, the cases of locality, and all logs together."""
        return {
            "correlation": map(load_name, self.correlation.loads),
            "locality": [runs.name for runs in self.locality],
            "weeks": ["all logs"],
        }

    def summary(self) -> list[str]:
        """Return what was reached and what holds."""
        verdicts = self.verdicts
        return [
            f"{self.score} required figures reached; "
            f"of {len(self.claims)} statements, each in each setting, {verdicts[True]} hold, "
            f"{verdicts[False]} do not, and {verdicts[None]} stay open"
        ]

    def versions(self) -> Sequence[Version]:
        """Return the completed jobs of each log that is in Table 3.1."""
        return [
            Version(log, facts["jobs_completed"], published_jobs(TABLED[log]))
            for log, facts in self.traces.items()
            if log in TABLED
        ]

    def pictures(self) -> Sequence[Picture]:
        """Return Figures 7.3 to 7.5, as far as they were run."""
        return pictures_of(figures_of(self), self)

    def data(self) -> dict[str, Any]:
        """Return all runs, and Table 7.1 with ours."""
        return {**super().data(), "table7_1": [one._asdict() for one in self.table]}

    def rows(self) -> Rows:
        """Return every simulation."""
        return self.row_heading, simulation_rows(self)

    def origin(self) -> dict[str, Any]:
        """Return the traces, and the settings of the simulations."""
        runs = self.correlation
        settings = {
            "replications": self.replications,
            "jobs": self.jobs,
            "seed": self.seed,
            "loads": runs.loads,
            "policies": {policy: POLICIES[policy].scheduler for policy in runs.policies},
        }
        return {"traces": self.traces, "settings": settings}


def table_rows(study: Minh2012Correlation) -> list[list[str]]:
    """Return Table 7.1 with ours."""
    return [
        [
            one.workload,
            f"{one.degree:+.1f}",
            f"{one.correlation_mean:+.3f} ± {one.correlation_deviation:.3f}",
            f"{float(one.published_mean):+.3f} ± {one.published_deviation}",
        ]
        for one in study.table
    ]


def slowdown_rows(study: Minh2012Correlation) -> tuple[list[str], list[list[str]]]:
    """Return the mean slowdown of each policy at each load as headings and rows, with intervals."""
    runs = study.correlation
    degrees = [degree for degree in TOLD if degree in runs.degrees]
    rows = []
    for policy in runs.policies:
        for load in runs.loads:
            values = [runs.of(policy, load, degree) for degree in degrees]
            rows.append([POLICIES[policy].label, f"{load:g}", *map(_mean, map(interval, values))])
    told = [f"at {degree:+.2g}" if degree else "at 0" for degree in degrees]
    return ["policy", "load", *told], rows


def _mean(estimate: Any) -> str:
    half = estimate.half_width
    return number(estimate.mean) + ("" if half is None else f" ± {half:.2g}")


def week_rows(study: Minh2012Correlation) -> list[list[str]]:
    """Return how well the sign of the correlation is predicted on each log."""
    return [
        [
            log,
            str(signs.compared),
            str(signs.right),
            "-" if signs.share is None else f"{100 * signs.share:.0f} %",
            "-" if signs.commoner is None else f"{100 * signs.commoner:.0f} %",
        ]
        for log, signs in study.weeks.items()
    ]


def simulation_rows(study: Minh2012Correlation) -> Iterator[tuple[Any, ...]]:
    """Yield every simulation."""
    runs = study.correlation
    for policy, load, degree, r, slowdown in runs.each():
        correlation = runs.correlation[runs.degrees.index(degree), r]
        yield (f"HPC2N, {degree:+.1f}", policy, load, "off", r, correlation, slowdown)
    for case in study.locality:
        for policy in case.policies:
            for locality, by_load in zip(("on", "off"), case.of(policy), strict=True):
                for load, values in zip(case.loads, by_load, strict=True):
                    for r, pair in enumerate(zip(case.correlation, values, strict=True)):
                        yield (case.name, policy, load, locality, r, *pair)


def signs_of(workload: Workload) -> ForetoldSigns:
    """Return how well the signs of the weekly correlations of a log's jobs are predicted."""
    submit, run_time = (values.astype(np.int64) for values in (workload.submit, workload.run_time))
    return foretold_signs(submit, run_time, workload.processors)


def reproduce_minh2012_correlation(
    traces: Annotated[str | os.PathLike[str], TRACES],
    progress: Progress | None = None,
    *,
    plan: Plan | None = None,
    workers: Annotated[int, SHARED_BY] = PROCESSES,
) -> Minh2012Correlation:
    """Run the experiments of chapter 7 on the available logs.

    Parameters
    ----------
    traces
        Folder with the traces, plain or gzipped.
    progress
        Called before each step.
    plan
        The plan of the experiments; that of the thesis unless given.
    workers
        Number of processes that share the work; the results do not depend on it.

    Raises
    ------
    TraceError
        When the trace of HPC2N is missing, or one cannot be read.
    ModelFitError
        When a log cannot be modelled; scikit-learn is needed.
    QuantityError
        When there is less than one process.
    """
    plan = plan or Plan()
    if workers < 1:
        raise QuantityError(f"workers {workers}: at least 1")
    paths = find_logs(traces, STUDIED, [HPC])
    steps = Steps(len(paths), progress)
    workloads, machines, weeks, logs = {}, {}, {}, {}
    for log, path in paths.items():
        steps.begin(f"{log}: reading {path.name}")
        trace = read_trace(path)
        workloads[log] = jobs = completed_jobs(trace, log)
        machines[log] = trace.processors
        weeks[log] = signs_of(jobs)
        logs[log] = {
            "source": Path(trace.source).name,
            "sha256": trace.sha256,
            "processors": trace.processors,
            "jobs_completed": len(jobs),
            "correlation": rank_correlation(jobs.run_time, jobs.processors),
        }
    cases = tuple(case for case in plan.cases if case.log in workloads)
    needed = {HPC, *(case.log for case in cases)}
    models = {log: Locality.fit(workloads[log]) for log in STUDIED if log in needed}
    work = Work(plan, models, machines, cases)
    done = run_tasks(
        work, work.tasks(), workers, progress, lambda task: f"simulating: {task.experiment}"
    )
    correlation, locality = collect(work, {task.name: result for task, result in done})
    return Minh2012Correlation(
        correlation=correlation,
        locality=locality,
        weeks=weeks,
        jobs=plan.jobs,
        seed=plan.seed,
        traces=logs,
    )
