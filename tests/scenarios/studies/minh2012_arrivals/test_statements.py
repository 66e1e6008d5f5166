"""Minh 2012, chapter 6: statements and required orders on made-up results."""

from __future__ import annotations

from collections.abc import Callable
from math import log

import numpy as np
import pytest
from hpcrowd.analysis.paired import Estimate
from hpcrowd.scenarios.studies.minh2012_arrivals.measures import (
    MEASURES,
    POLICIES,
    ClusterRuns,
    GridRuns,
    log_ratio,
)
from hpcrowd.scenarios.studies.minh2012_arrivals.statements import (
    CLUSTER_RULES,
    GRID_RULES,
    alike,
    all_claims,
    in_order,
    larger,
)
from hpcrowd.scenarios.studies.minh2012_arrivals.study import Minh2012Arrivals
from hpcrowd.scenarios.studies.minh2012_arrivals.workloads import PATTERNS

#: Replications of made-up results.
COUNT = 8

LOADS, GRID_LOADS = (0.5, 0.7, 0.8, 0.9), (0.2, 0.4, 0.6, 0.8, 1.0)

#: Slowdown of each pattern where dependence and bursts harm.
HARM = {"N": 2.0, "L": 20.0, "LB": 30.0}

Cluster = Callable[[str, float, str], float]
Grid = Callable[[str, float, str, str], float]


def made_up(cluster: Cluster, grid: Grid, noise: float = 0.01) -> Minh2012Arrivals:
    """Return a study with given slowdowns, which differ a little between replications."""
    random = np.random.default_rng(5)

    def spread(value: float) -> np.ndarray:
        return value * np.exp(noise * random.standard_normal(COUNT))

    return Minh2012Arrivals(
        cluster=ClusterRuns(
            64, tuple(POLICIES), LOADS, tuple(PATTERNS),
            np.array([[[spread(cluster(policy, load, pattern)) for pattern in PATTERNS]
                       for load in LOADS] for policy in POLICIES]),
        ),
        grid=GridRuns(
            MEASURES, GRID_LOADS, tuple(PATTERNS),
            np.array([[[[spread(grid(measure, load, own, behind)) for behind in PATTERNS]
                        for own in PATTERNS] for load in GRID_LOADS] for measure in MEASURES]),
        ),
        jobs=1_000,
        seed=0,
        settings={},
        log={},
    )  # fmt: skip


def as_told_cluster(policy: str, load: float, pattern: str) -> float:
    """Return a slowdown on the cluster as the thesis describes them."""
    value = HARM[pattern]
    if policy == "conservative":
        value *= 1.05 if pattern == "LB" else 0.8 if load > 0.8 else 1.0
    return value


def as_told_grid(measure: str, load: float, own: str, behind: str) -> float:
    """Return a slowdown on the grid as the thesis describes them."""
    if measure not in ("grid", "grid all"):
        return HARM[behind]
    gone = load >= {"N": 0.8, "L": 0.6, "LB": 0.4}[own]
    felt = {"N": 1.0, "L": 0.8, "LB": 0.4}[own]
    effect = 1.0 if gone else {"N": 1.0, "L": 1.5, "LB": 2.2}[behind] ** felt
    return {"N": 2.0, "L": 20.0, "LB": 200.0}[own] * effect


def test_everything_holds_where_it_is_as_told() -> None:
    """Results like those of the thesis keep all rules but what they cannot, and all that is due.

    Where no effect of the background is left with any pattern of the grid there is none to
    alleviate: from 0.8 on that stays open.
    """
    study = made_up(as_told_cluster, as_told_grid)
    found = [claim for claim in all_claims(study) if not claim.holds]
    assert {(claim.name.rpartition(": ")[2], claim.setting) for claim in found} <= {
        ("alleviates", "grid load 0.8"),
        ("alleviates", "grid load 1"),
    }
    assert study.reached
    assert 9 == len(study.requirements)


def test_nothing_holds_where_it_is_the_other_way_round() -> None:
    """Results with all orders reversed break every rule on orders, and what is required."""
    study = made_up(
        lambda policy, load, pattern: 1e3 / as_told_cluster(policy, load, pattern),
        lambda measure, load, own, behind: 1e4 / as_told_grid(measure, load, own, behind),
    )
    orders = [claim for claim in all_claims(study) if "1 up to a tenth" not in claim.what]
    held = {(claim.name, claim.setting) for claim in orders if claim.holds}
    assert set() == held
    broken = sum(claim.holds is False for claim in orders)
    assert broken > 0.9 * len(orders)
    assert len(study.requirements) - 1 == len(study.failures)  # the grid leaves local jobs alone


def test_noise_leaves_everything_open() -> None:
    """Where replications differ far more than patterns hardly anything is decided."""
    study = made_up(lambda *_: 5.0, lambda *_: 5.0, noise=3.0)
    claims = all_claims(study)
    assert sum(claim.holds is None for claim in claims) > 0.85 * len(claims)


def test_effects_of_the_grid_on_local_jobs_are_seen() -> None:
    """Local jobs half again as slow with a bursty grid break the rule that nothing changes."""
    factor = {"N": 1.0, "L": 1.0, "LB": 1.5}
    study = made_up(
        as_told_cluster,
        lambda measure, load, own, behind: (
            as_told_grid(measure, load, own, behind) * (factor[own] if measure == "LU" else 1.0)
        ),
    )
    unmoved = [claim for claim in all_claims(study) if claim.name.endswith("unmoved")]
    assert 15 == len(unmoved)
    assert all(claim.holds is False for claim in unmoved)
    assert ["0.91 to 1.10"] == [one.required for one in study.failures]
    assert pytest.approx(1.5, rel=0.05) == unmoved[0].numbers["ratio_2"]


@pytest.mark.parametrize(
    ("low", "high", "one_is_larger", "about_one"),
    [
        (1.2, 1.3, True, False),
        (1.01, 1.05, True, True),
        (0.95, 1.05, None, True),
        (0.9, 1.3, None, None),
        (0.6, 0.7, False, False),
    ],
)
def test_intervals_decide(
    low: float, high: float, one_is_larger: bool | None, about_one: bool | None
) -> None:
    """A ratio is larger than 1, about 1, neither, or nobody knows, by its whole interval."""
    ratio = Estimate((log(low) + log(high)) / 2, log(low), log(high), COUNT)
    assert one_is_larger is larger(ratio)[2]
    assert about_one is alike(ratio)[2]
    assert (one_is_larger is True or None) == (in_order(ratio, larger_one())[2] or None)


def larger_one() -> Estimate:
    """Return a ratio that is surely above 1."""
    return Estimate(log(2.0), log(1.9), log(2.1), COUNT)


def test_ratios_are_geometric_and_paired() -> None:
    """Halves and doubles cancel; a common factor of a replication does not widen the interval."""
    halved, doubled = np.array([2.0, 8.0]), np.array([4.0, 4.0])
    assert pytest.approx(0.0, abs=1e-12) == log_ratio(halved, doubled).mean
    wide = np.array([1.0, 10.0, 1000.0])
    estimate = log_ratio(3 * wide, wide)
    assert pytest.approx([log(3.0)] * 2) == [estimate.low, estimate.high]


def test_rules_are_distinct() -> None:
    """Each statement has a name and words of its own, and says where it stands."""
    rules = (*CLUSTER_RULES, *GRID_RULES)
    assert len(rules) == len({rule.name for rule in rules}) == len({rule.what for rule in rules})
    assert all(rule.section.startswith("6.4.") for rule in rules)
    for tried, loads in ((CLUSTER_RULES, LOADS), (GRID_RULES, GRID_LOADS)):
        applies = [rule.applies for rule in tried if rule.applies is not None]
        assert all(any(each(None, load) for load in loads) for each in applies)
