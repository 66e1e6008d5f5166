"""Minh 2012, chapter 6: statements of the text, checked with intervals.

The thesis shows pictures and gives no numbers, so each statement became a measure and a rule; the
rules are ours. A measure is a ratio of two slowdowns of the same replication, in the geometric mean
over replications. A statement that one is larger holds when the 95 % interval of the ratio lies
above 1, and does not hold when it lies below; one that two are alike holds when the interval lies
within a tenth of 1, and does not when it lies outside. Everything else stays open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import exp, log
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.analysis.paired import Estimate
from hpcrowd.environment.grid.das3 import DAS3
from hpcrowd.scenarios.studies.minh2012_arrivals.measures import (
    ALIKE,
    LEIDEN,
    POLICIES,
    ClusterRuns,
    Floats,
    GridRuns,
    log_ratio,
)
from hpcrowd.scenarios.studies.minh2012_arrivals.workloads import PATTERNS
from hpcrowd.scenarios.studies.minh2012_correlation.measures import interval
from hpcrowd.scenarios.studies.minh2012_correlation.statements import (
    above,
    below,
    decided,
    load_name,
)
from hpcrowd.scenarios.studies.study import Claim, Finding, Rule, claims_of

if TYPE_CHECKING:
    from hpcrowd.scenarios.studies.minh2012_arrivals.study import Minh2012Arrivals


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


def patterns(policy: str, first: str, second: str) -> Ratio[ClusterRuns]:
    """Return the ratio of two patterns under a policy."""
    return lambda runs, load: log_ratio(runs.of(policy, load, first), runs.of(policy, load, second))


def policies(pattern: str, first: str, second: str) -> Ratio[ClusterRuns]:
    """Return the ratio of two policies with a pattern."""
    return lambda runs, load: log_ratio(
        runs.of(first, load, pattern), runs.of(second, load, pattern)
    )


def backgrounds(measure: str, own: str, first: str, second: str) -> Ratio[GridRuns]:
    """Return the ratio of two background patterns, the grid's fixed to ``own``."""
    return lambda runs, load: log_ratio(
        runs.of(measure, load, own, first), runs.of(measure, load, own, second)
    )


def grids(measure: str, behind: str, first: str, second: str) -> Ratio[GridRuns]:
    """Return the ratio of two patterns of the grid, the background fixed to ``behind``."""
    return lambda runs, load: log_ratio(
        runs.of(measure, load, first, behind), runs.of(measure, load, second, behind)
    )


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


def _cluster_rules() -> Iterator[Rule]:
    for policy in ("fcfs", "easy"):
        label = POLICIES[policy].label
        yield Rule(
            f"dependence harms: {policy}", "6.4.1, Fig. 6.1",
            f"{label}: dependence degrades performance: slowdown of b_L over b_N; above 1",
            checked(larger, patterns(policy, "L", "N")),
        )  # fmt: skip
        yield Rule(
            f"bursts harm more: {policy}", "6.4.1, Fig. 6.1",
            f"{label}: bursts in addition make it worst: slowdown of b_LB over b_L; above 1",
            checked(larger, patterns(policy, "LB", "L")),
        )  # fmt: skip
    yield Rule(
        "N: similar below 0.8", "6.4.1, Fig. 6.2",
        "b_N: Conservative and Aggressive are similar at loads below 0.8: slowdown of the one over "
        "the other; 1 up to a tenth",
        checked(alike, policies("N", "conservative", "easy")),
        applies=below_load(CONSERVATIVE_FROM),
    )  # fmt: skip
    yield Rule(
        "N: Conservative better above 0.8", "6.4.1, Fig. 6.2",
        "b_N: Conservative is better at loads above 0.8: slowdown of Aggressive over Conservative; "
        "above 1",
        checked(larger, policies("N", "easy", "conservative")),
        applies=lambda _, load: load > CONSERVATIVE_FROM,
    )  # fmt: skip
    yield Rule(
        "LB: Aggressive better", "6.4.1, Fig. 6.2",
        "b_LB: Aggressive tends to be slightly better: slowdown of Conservative over Aggressive; "
        "above 1",
        checked(larger, policies("LB", "conservative", "easy")),
    )  # fmt: skip


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


def _grid_rules() -> Iterator[Rule]:
    for own in PATTERNS:
        for first, second, words in (
            ("L", "N", "dependence degrades"),
            ("LB", "L", "bursts degrade further"),
        ):
            yield Rule(
                f"LU, g_{own}: {first}/{second}", "6.4.2, 1",
                f"LU with g_{own}: in the background {words}: slowdown of local jobs with "
                f"b_{first} over b_{second}; above 1",
                checked(larger, backgrounds(LEIDEN, own, first, second)),
            )  # fmt: skip
    yield Rule(
        "other clusters", "6.4.2, footnote 2",
        "The other clusters are similar: slowdown of local jobs with b_L and b_LB over b_N, mean "
        "of the grid's patterns; all above 1", _others,
    )  # fmt: skip
    for behind in PATTERNS:
        yield Rule(
            f"LU, b_{behind}: unmoved", "6.4.2, 2",
            f"LU with b_{behind}: the grid's pattern changes nothing: slowdown of local jobs with "
            "g_L and g_LB over g_N; both 1 up to a tenth",
            checked(alike, *(grids(LEIDEN, behind, first, "N") for first in ("L", "LB"))),
        )  # fmt: skip
    for own, bound in GONE_FROM.items():
        steps = (("L", "N"), ("LB", "L"))
        yield Rule(
            f"grid, g_{own}: background harms", "6.4.2, 3",
            f"Grid with g_{own}: below grid load {bound:g} b_LB is worst, then b_L, then b_N: "
            "slowdown of grid jobs with b_L over b_N, and with b_LB over b_L; both above 1",
            checked(in_order, *(backgrounds("grid", own, *step) for step in steps)),
            applies=below_load(bound),
        )  # fmt: skip
        yield Rule(
            f"grid, g_{own}: effect disappears", "6.4.2, 3",
            f"Grid with g_{own}: from grid load {bound:g} on the effect of the background "
            "disappears: slowdown of grid jobs with b_L and b_LB over b_N; both 1 up to a tenth",
            checked(alike, *(backgrounds("grid", own, first, "N") for first in ("L", "LB"))),
            applies=from_load(bound),
        )  # fmt: skip
    for own in ("L", "LB"):
        yield Rule(
            f"grid, g_{own}: alleviates", "6.4.2, 3",
            f"g_{own} alleviates the impact of the background on the grid: slowdown of grid jobs "
            f"with b_LB over b_N, with g_N over that with g_{own}; above 1",
            checked(larger, weaker(own)),
        )  # fmt: skip
    for behind in PATTERNS:
        for first, second in (("L", "N"), ("LB", "L")):
            yield Rule(
                f"grid, b_{behind}: {first}/{second}", "6.4.2, 4",
                f"Grid with b_{behind}: grid jobs do worse when they are dependent and bursty: "
                f"slowdown with g_{first} over g_{second}; above 1",
                checked(larger, grids("grid", behind, first, second)),
            )  # fmt: skip


#: The statements, in the order of the text.
CLUSTER_RULES = tuple(_cluster_rules())
GRID_RULES = tuple(_grid_rules())


def grid_load_name(load: float) -> str:
    """Return the name of a grid load as a setting."""
    return f"grid {load_name(load)}"


def all_claims(study: Minh2012Arrivals) -> list[Claim]:
    """Return every statement at every load that it applies to."""
    cluster, grid = study.cluster, study.grid
    return [
        *claims_of(CLUSTER_RULES, {load_name(load): (cluster, load) for load in cluster.loads}),
        *claims_of(GRID_RULES, {grid_load_name(load): (grid, load) for load in grid.loads}),
    ]
