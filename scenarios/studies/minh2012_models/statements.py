"""Minh 2012, chapters 4 and 5: statements of the text on the models, checked on each trace.

The bounds are ours, each with its reason. Most were set with knowledge of the figures of HPC and
LLN, so on these two they do not test the statements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.environment.errors import UnavailableError
from hpcrowd.scenarios.studies.minh2012_models.measures import (
    LOADS,
    POLICIES,
    TIME_SCALES_S,
    Schedule,
)
from hpcrowd.scenarios.studies.study import Finding, rules_of

if TYPE_CHECKING:
    from hpcrowd.scenarios.studies.minh2012_models.experiments import TraceModels
    from hpcrowd.scenarios.studies.minh2012_models.measures import ArrivalRuns


#: "Not able to mimic burstiness": less than half the CV of the trace; the thesis has 12 to 27 %.
MUCH_LESS = 0.5

#: "0 %", as Table 4.1 prints it: in floating point a multiplier may come out as 1.
NO_ZEROS = 0.005

#: Hurst parameters near to those of the trace: Tables 4.2's are off by at most 0.07.
HURST_NEAR = 0.1

#: "Stable over time scales": those of the model in Table 4.2 differ by 0.09 at most, the CVs of
#: Table 4.3 by a tenth of the smallest; here twice that counts for CVs.
HURST_STABLE, CV_STABLE = 0.1, 1.2

#: "The same percentage", except for values that are cut off.
ZEROS_NEAR = 0.02

#: Distances "close to 0", as in chapter 3, of which the thesis says so of 0.074.
CLOSE = 0.1

#: "Nicely fits" of sizes: their mean too, within a fifth.
MEAN_NEAR = 0.2

#: "Captures well": nearer to the trace than a fifth of the naive model's difference; the thesis has
#: 2 to 16 %.
OF_NAIVE = 0.2

#: "Close to the real data": Table 5.2's correlations are off by at most 0.07.
CORRELATION_NEAR = 0.07

#: "Close to the average": within a factor of two, at loads from this one on.
AVERAGE_NEAR, AVERAGE_FROM = 2.0, 0.7

#: The way that statements on jobs and simulations are about.
WAY = "thesis"

#: Measures a trace.
Check = Callable[["TraceModels"], Finding]


def _numbers(one: TraceModels, find: Callable[[ArrivalRuns], float]) -> dict[str, float]:
    """Return a number of the arrivals at each time scale."""
    return {f"T{t}": find(one.arrivals[t]) for t in TIME_SCALES_S}


def _texts(numbers: Mapping[str, float], digits: int, scale: float = 1.0) -> str:
    return ", ".join(f"{scale * number:.{digits}f}" for number in numbers.values())


def _scales(
    find: Callable[[ArrivalRuns], float],
    holds: Callable[[Sequence[float]], bool],
    digits: int = 2,
    scale: float = 1.0,
    unit: str = "",
) -> Check:
    """Return a check of a number of the arrivals at every time scale, with its format."""

    def check(one: TraceModels) -> Finding:
        numbers = _numbers(one, find)
        return numbers, _texts(numbers, digits, scale) + unit, holds([*numbers.values()])

    return check


def _modified(figure: str) -> Callable[[ArrivalRuns], float]:
    """Return a function that finds a figure of the modified model."""
    return lambda runs: runs.mean("modified", figure)


def _off(figure: str) -> Callable[[ArrivalRuns], float]:
    """Return a function that finds a figure of the modified model less that of the trace."""
    return lambda runs: runs.mean("modified", figure) - runs.of_trace(figure)


def _cv_ratio(model: str) -> Callable[[ArrivalRuns], float]:
    """Return a function that finds the CV of a model over that of the trace."""
    return lambda runs: runs.mean(model, "cv") / runs.of_trace("cv")


def _modified_is_better(one: TraceModels) -> Finding:
    plain, numbers = (_numbers(one, _cv_ratio(model)) for model in ("plain", "modified"))
    better = all(abs(np.log(numbers[t])) < abs(np.log(plain[t])) for t in numbers)
    return numbers, f"{_texts(numbers, 2)}; plain {_texts(plain, 2)}", better


def _distance(*names: str) -> Check:
    """Return a check that distances of distributions are close to 0."""

    def check(one: TraceModels) -> Finding:
        numbers = {name: one.jobs[WAY].mean(name) for name in names}
        text = ", ".join(f"{number:.3f}" for number in numbers.values())
        return numbers, text, max(numbers.values()) < CLOSE

    return check


def _bag_mean(one: TraceModels) -> Finding:
    ours, trace = one.jobs[WAY].mean("bag_mean"), one.jobs[WAY].of_trace("bag_mean")
    numbers = {"model": ours, "trace": trace}
    return numbers, f"{ours:.1f}, trace {trace:.1f}", abs(ours / trace - 1) <= MEAN_NEAR


def _entropy(one: TraceModels) -> Finding:
    runs = one.jobs[WAY]
    off = abs(runs.off("entropy"))
    naive = abs(float(np.mean(runs.uniform)) - runs.of_trace("entropy"))
    numbers = {"model": off, "uniform": naive}
    return numbers, f"{off:.3f}, uniform {naive:.3f}", off < OF_NAIVE * naive


def _correlation(one: TraceModels) -> Finding:
    off = one.jobs[WAY].off("spearman")
    return {"off": off}, f"{off:+.3f}", abs(off) <= CORRELATION_NEAR


def _schedule(one: TraceModels) -> Schedule:
    if WAY not in one.schedules:
        raise UnavailableError("not simulated")
    return one.schedules[WAY]


def _rising(one: TraceModels) -> Finding:
    schedule = _schedule(one)
    use = schedule.known.all(axis=0)
    if use.sum() < 2:
        raise UnavailableError("not simulated at two loads")
    factor = {
        POLICIES[policy]: float(values[-1] / values[0])
        for policy, values in zip(POLICIES, schedule.mean[:, use], strict=True)
    }
    numbers = {f"{policy}, times": number for policy, number in factor.items()}
    text = ", ".join(f"{policy} x {number:.3g}" for policy, number in factor.items())
    both = np.concatenate([schedule.mean[:, use], schedule.trace.slowdown[:, use]])
    return numbers, text, bool((np.diff(both, axis=1) > 0).all())


def _covered(one: TraceModels) -> Finding:
    schedule = _schedule(one)
    inside, points = schedule.count_inside()
    if not points:
        raise UnavailableError("simulated at no load")
    return {"inside": inside, "points": points}, f"{inside} of {points}", inside == points


def _near_average(one: TraceModels) -> Finding:
    schedule = _schedule(one)
    use = schedule.known & (np.array(LOADS) >= AVERAGE_FROM)
    if not use.any():
        raise UnavailableError(f"not simulated at loads from {AVERAGE_FROM:g} on")
    ratio = schedule.trace.slowdown[use] / schedule.mean[use]
    least, most = float(ratio.min()), float(ratio.max())
    holds = least >= 1 / AVERAGE_NEAR and most <= AVERAGE_NEAR
    return {"least": least, "most": most}, f"{least:.2f} to {most:.2f}", holds


#: The statements.
RULES = rules_of(
    "minh2012_models",
    {
        "plain: no zeros": _scales(
            lambda runs: runs.mean("plain", "zeros"),
            lambda found: max(found) < NO_ZEROS,
            1,
            100,
            " %",
        ),
        "plain: not bursty": _scales(_cv_ratio("plain"), lambda found: max(found) < MUCH_LESS),
        "modified: zeros kept": _scales(
            _off("zeros"), lambda found: max(map(abs, found)) <= ZEROS_NEAR, 1, 100, " points"
        ),
        "modified: dependence kept": _scales(
            _off("hurst"), lambda found: max(map(abs, found)) <= HURST_NEAR
        ),
        "modified: dependence stable": _scales(
            _modified("hurst"), lambda found: max(found) - min(found) <= HURST_STABLE
        ),
        "modified: burstiness better": _modified_is_better,
        "modified: burstiness stable": _scales(
            _modified("cv"), lambda found: max(found) <= CV_STABLE * min(found)
        ),
        "modified: times between jobs fit": _scales(
            _modified("ks"), lambda found: max(found) < CLOSE, 3
        ),
        "bags: sizes fit": _distance("bags"),
        "bags: mean size fits": _bag_mean,
        "bags: run times fit": _distance("bag_run_time"),
        "spatial burstiness kept": _entropy,
        "distributions match": _distance("run_time", "processors"),
        "correlation kept": _correlation,
        "slowdown rises": _rising,
        "trace covered": _covered,
        "trace near the average": _near_average,
    },
)
