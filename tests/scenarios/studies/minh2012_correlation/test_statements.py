"""Statements of Minh 2012, chapter 7: each rule holds, fails and stays open where it should."""

from __future__ import annotations

import numpy as np
import pytest
from hpcrowd.scenarios.studies.minh2012_correlation.measures import (
    CorrelationRuns,
    ForetoldSigns,
    LocalityRuns,
)
from hpcrowd.scenarios.studies.minh2012_correlation.statements import (
    CATEGORIZED,
    LOAD_RULES,
    LOCALITY_RULES,
    UNCATEGORIZED,
    all_claims,
)
from hpcrowd.scenarios.studies.minh2012_correlation.study import Minh2012Correlation
from hpcrowd.scenarios.studies.study import Claim

DEGREES = (-1.0, -0.5, 0.0, 0.5, 1.0)

#: Policies of made-up runs.
ALL = ("fcfs", "easy", "conservative", UNCATEGORIZED, CATEGORIZED)


def study(slowdowns, noise=0.0, **locality):
    """Return a study with given mean slowdowns by degree; locality by policy and load, on / off.

    The noise is of both signs, so that the means are those given, and grows with the degree.
    """
    spread = noise * np.array([-1.0, 1.0, -1.0, 1.0])
    means = np.array([[slowdowns[policy]] for policy in slowdowns])[..., None]
    values = means + spread * np.arange(len(DEGREES))[:, None]
    correlation = np.repeat(np.array(DEGREES)[:, None], 4, axis=1)
    loads = (0.5, 0.9, 1.0, 1.2)
    pairs = [
        [np.array(ratios)[:, None] * (2 + spread), np.ones((4, 1)) * (2 + 0 * spread)]
        for ratios in locality.values()
    ]
    cases = [LocalityRuns("made", "made", None, 8, loads, (*locality,), spread, np.array(pairs))]
    return Minh2012Correlation(
        CorrelationRuns(DEGREES, (0.8,), (*slowdowns,), correlation, values),
        cases if locality else [],
        {"made": ForetoldSigns(np.ones(4), np.array([1.0, 1.0, 1.0, -1.0]))},
        jobs=100,
        seed=0,
    )


def verdict(study, name):
    """Return what happens to a statement."""
    (claim,) = (one for one in all_claims(study) if one.name == name)
    return claim.holds


@pytest.mark.parametrize(
    ("means", "noise", "expected"),
    [
        ((1, 2, 3, 4, 9), 0.1, True),
        ((1, 2, 3, 2, 9), 0.1, False),  # a step down
        ((9, 4, 3, 2, 1), 0.1, False),
        ((1, 2, 2, 2, 3), 0.0, True),  # level steps do no harm
        ((1, 2, 3, 4, 4.5), 9.0, None),
    ],
)
def test_larger_correlation_larger_slowdown(means, noise, expected):
    """The ends have to rise, and no step may fall; wide intervals leave it open."""
    made = study({"fcfs": means}, noise)
    assert expected is verdict(made, "larger correlation, larger slowdown: fcfs")


@pytest.mark.parametrize(
    ("means", "expected"),
    [((1, 1, 2, 3, 9), True), ((1, 2, 5, 6, 7), False), ((1, 2, 3, 4, 5), None)],
)
def test_rapid_when_positive(means, expected):
    """The rise from 0 to +1 is compared with that from -1 to 0; equal ones leave it open."""
    assert expected is verdict(study({"easy": means}), "rapid when positive: easy")


@pytest.mark.parametrize(("fcfs", "expected"), [(9.0, True), (1.5, False), (4.0, None)])
def test_degrading_more_than_both(fcfs, expected):
    """FIFO has to rise more than Aggressive and than Categorized; less than one refutes it."""
    flat = (1.0, 1.0, 1.0)
    made = study(
        {"fcfs": (*flat, 1.0, fcfs), "easy": (*flat, 1.0, 2.0), CATEGORIZED: (*flat, 1.0, 4.0)}
    )
    assert expected is verdict(made, "fragmentation: fcfs")


def test_selective_policies_and_locality_are_judged():
    """Right and turned round; by load under and over 1, where one on the wrong side refutes it."""
    up, level = (1.0, 2.0, 3.0, 5.0, 9.0), (3.0, 3.0, 3.0, 3.0, 3.0)
    names = ("categorized better when negative", "categorized worse when positive")
    right = study({UNCATEGORIZED: level, CATEGORIZED: up})
    wrong = study({UNCATEGORIZED: up, CATEGORIZED: level})
    assert [True, True] == [verdict(right, name) for name in names]
    assert [False, False] == [verdict(wrong, name) for name in names]
    assert True is verdict(right, "uncategorized hardly changes")
    assert False is verdict(wrong, "uncategorized hardly changes")
    made = study({"fcfs": (1.0,) * 5}, 0.01, easy=(2, 3, 0.1, 4), fcfs=(2, 0.5, 9, 0.5))
    found = [verdict(made, rule.name) for rule in LOCALITY_RULES]
    assert [True, True, False, True] == found
    small = study({"fcfs": (1.0,) * 5}, 0.01, easy=(2, 1, 1, 1))
    assert None is verdict(small, "locality harms EASY underloaded")


def test_statements_without_their_policies_are_left_out():
    """Weeks are foretold within ten points; claims have numbers, words and a section."""
    found = {claim.name: claim.holds for claim in all_claims(study({"easy": (1.0,) * 5}))}
    easy = {"larger correlation, larger slowdown: easy", "rapid when positive: easy"}
    assert {*easy, "weeks are foretold"} == set(found)
    assert found["weeks are foretold"]
    made = study(
        dict.fromkeys(ALL, (1.0, 2.0, 3.0, 4.0, 5.0)), easy=(1, 2, 3, 4), fcfs=(1, 2, 3, 4)
    )
    claims: list[Claim] = all_claims(made)
    assert len(LOAD_RULES) + len(LOCALITY_RULES) + 1 == len(claims)
    assert all(claim.numbers and claim.text and claim.section for claim in claims)
