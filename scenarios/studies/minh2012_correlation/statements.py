"""Minh 2012, chapter 7: statements of the text, checked with intervals.

The thesis shows pictures and gives no numbers, so each statement became a measure and a rule; the
rules are ours. A difference counts when its 95 % interval lies on one side of 0; statements that
no interval decides stay open. Differences are taken replication by replication, because the
compared runs share run times and arrivals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.analysis.paired import Estimate
from hpcrowd.scenarios.studies.minh2012_correlation.measures import (
    FORETOLD,
    POLICIES,
    CorrelationRuns,
    Floats,
    LocalityRuns,
    interval,
)
from hpcrowd.scenarios.studies.study import Claim, Finding, Rule, claims_of

if TYPE_CHECKING:
    from hpcrowd.scenarios.studies.minh2012_correlation.study import Minh2012Correlation


#: Weeks are predicted as well as in the thesis if the share differs by at most this.
FORETOLD_WITHIN = 0.1

#: From this load on the system is overloaded (section 7.3.2).
OVERLOADED = 1.0


def needs(*policies: str) -> Callable[..., bool]:
    """Return whether runs have these policies."""
    return lambda runs, *_: set(policies) <= set(runs.policies)


def above(estimate: Estimate) -> bool:
    """Return whether the whole interval lies above 0."""
    return estimate.low is not None and estimate.low > 0


def below(estimate: Estimate) -> bool:
    """Return whether the whole interval lies below 0."""
    return estimate.high is not None and estimate.high < 0


def decided(yes: bool, no: bool) -> bool | None:
    """Return whether a rule holds: None if the intervals decide neither yes nor no."""
    return True if yes else False if no else None


def rise(runs: CorrelationRuns, policy: str, load: float, first: float, last: float) -> Floats:
    """Return by how much slowdown rises from one degree to another, shape (replications,)."""
    return runs.of(policy, load, last) - runs.of(policy, load, first)


def number(value: float) -> str:
    """Return a slowdown, or a difference of two, with three digits."""
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.3g}"


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


#: The two that Figure 7.4 compares.
CATEGORIZED, UNCATEGORIZED = "selective-categorized", "selective-uncategorized"


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


def _load_rules() -> Iterator[Rule]:
    for policy, (_, label, _) in POLICIES.items():
        yield Rule(
            f"larger correlation, larger slowdown: {policy}", "7.3.1",
            f"{label}: a larger correlation leads to a larger slowdown: slowdown at -1, 0, +1, and "
            "steps between degrees; +1 above -1, and no step down", partial(_larger, policy=policy),
            applies=needs(policy),
        )  # fmt: skip
    for policy, (_, label, _) in POLICIES.items():
        yield Rule(
            f"rapid when positive: {policy}", "7.3.1",
            f"{label}: slowdown rises slowly from -1 to 0, rapidly from 0 to +1: both rises; the "
            "second larger", partial(_faster, policy=policy), applies=needs(policy),
        )  # fmt: skip
    less = ("easy", CATEGORIZED)
    for policy in ("fcfs", "conservative"):
        if policy in POLICIES:
            yield Rule(
                f"fragmentation: {policy}", "7.3.1",
                f"{POLICIES[policy].label} degrades more than Aggressive and Categorized "
                "Selective: rise from 0 to +1; larger than of both",
                partial(_degrades_more, policy=policy, others=less), applies=needs(policy, *less),
            )  # fmt: skip
    both = needs(CATEGORIZED, UNCATEGORIZED)
    yield Rule(
        "categorized better when negative", "7.3.1, Fig. 7.4",
        "Categorized is better than Uncategorized Selective with negative correlation: difference "
        "of slowdowns, mean of the negative degrees; below 0", partial(_categorized, better=True),
        applies=both,
    )  # fmt: skip
    yield Rule(
        "categorized worse when positive", "7.3.1, Fig. 7.4",
        "Categorized is worse than Uncategorized Selective with positive correlation: the same of "
        "the positive degrees; above 0", partial(_categorized, better=False), applies=both,
    )  # fmt: skip
    yield Rule(
        "uncategorized hardly changes", "7.3.1, Fig. 7.4",
        "Slowdowns of Uncategorized Selective are relatively similar from -1 to +1: slowdown at +1 "
        "over that at -1; smaller than of Categorized", _similar, applies=both,
    )  # fmt: skip


#: The statements on correlation, in the order of the text.
LOAD_RULES = tuple(_load_rules())

#: The statements on locality.
LOCALITY_RULES = (
    Rule(
        "locality harms EASY underloaded", "7.3.2, Fig. 7.5",
        "Locality degrades Aggressive, load below 1: loads at which slowdown is larger with "
        "locality, and slowdown with over without; all",
        partial(_locality, policy="easy", overloaded=False, harms=True),
        applies=needs("easy"),
    ),
    Rule(
        "locality harms EASY overloaded", "7.3.2, Fig. 7.5",
        "Locality degrades Aggressive, load above 1: the same; all",
        partial(_locality, policy="easy", overloaded=True, harms=True),
        applies=needs("easy"),
    ),
    Rule(
        "locality harms FIFO underloaded", "7.3.2, Fig. 7.5",
        "Locality degrades FIFO if the system is underloaded, load below 1: the same; all",
        partial(_locality, policy="fcfs", overloaded=False, harms=True),
        applies=needs("fcfs"),
    ),
    Rule(
        "locality helps FIFO overloaded", "7.3.2, Fig. 7.5",
        "Locality helps FIFO if the system is overloaded, load above 1: loads at which slowdown is "
        "smaller with locality; all",
        partial(_locality, policy="fcfs", overloaded=True, harms=False),
        applies=needs("fcfs"),
    ),
)  # fmt: skip

#: The statement on weeks.
WEEKS_RULE = Rule(
    "weeks are foretold", "7.4",
    "The mean of two weeks predicts the sign of the third in about 74 % of weeks: mean over logs; "
    "within 10 points", _weeks, applies=lambda study: study.foretold is not None,
)  # fmt: skip


def all_claims(study: Minh2012Correlation) -> list[Claim]:
    """Return every statement in every setting; those whose policies were not run are left out."""
    runs = study.correlation
    return [
        *claims_of(LOAD_RULES, {load_name(load): (runs, load) for load in runs.loads}),
        *claims_of(LOCALITY_RULES, {runs.name: runs for runs in study.locality}),
        *claims_of([WEEKS_RULE], {"all logs": study}),
    ]


def load_name(load: float) -> str:
    """Return the name of a load as a setting."""
    return f"load {load:g}"
