"""Claims over several validations: what is more than chance, and what is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hpcrowd.analysis.validation.across import Across, claim_rows, holm, rank_rows
from hpcrowd.analysis.validation.scores import estimate
from hpcrowd.analysis.validation.validation import RANKED, Score, Validation
from hpcrowd.environment import Clock
from hypothesis import given
from hypothesis import strategies as st


def made(values: dict[str, float], spread: float, seed: int = 0) -> Validation:
    """A validation in which each model has one score in all measures, with some spread."""
    random = np.random.default_rng(seed)
    drawn: dict[str, Any] = {
        name: {
            measure: {statistic: np.append(value, random.normal(value, spread, 400))}
            for measure, statistic in RANKED.items()
        }
        for name, value in values.items()
    }
    order = sorted(values, key=values.__getitem__)
    scores = {
        name: {
            measure: Score({statistic: estimate(drawn[name][measure][statistic])}, None, rank)
            for measure, statistic in RANKED.items()
        }
        for rank, name in enumerate(order, start=1)
    }
    return Validation([], Clock(), {}, scores, {}, {}, {}, {}, drawn)


def test_clear_differences_are_claimed() -> None:
    """Who is far ahead everywhere is better, who is far behind worse; ranks follow."""
    across = Across({log: made({"a": 0.1, "b": 0.5, "c": 0.5}, 0.01) for log in ("x", "y")})
    assert {"better"} == {claim.verdict for claim in across.claims("a", ["b", "c"])}
    assert {"worse"} == {claim.verdict for claim in across.claims("b", ["a", "c"])}
    assert 2 * len(RANKED) == len(across.claims("a", ["a", "b"]))
    assert "a" == across.models[0]
    assert ["a", "1.0", str(2 * len(RANKED)), "0", "0"] == rank_rows(across)[0][:5]
    rows = claim_rows(across, "a", ["b", "c"])
    assert ["next_batch", "**0.100** / 0.500 b", "**0.100** / 0.500 b"] == rows[0]


def test_chance_is_hardly_ever_claimed() -> None:
    """Among models that differ by chance alone, few tables hold any claim at all."""
    claimed = 0
    for seed in range(30):
        random = np.random.default_rng(seed)
        values = dict(zip("abcdefgh", random.normal(0.5, 0.05, 8), strict=True))
        claims = Across({"x": made(values, 0.05, seed)}).claims("a", values)
        claimed += {"="} != {claim.verdict for claim in claims}
    assert claimed <= 4


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_corrected_values_are_never_smaller(values: list[float]) -> None:
    """Corrected p values keep their order, are at least as large, and at most 1."""
    found = holm(values)
    assert all(a <= b <= 1 for a, b in zip(values, found, strict=True))
    assert [found[k] for k in np.argsort(values, kind="stable")] == sorted(found)
    assert min(1.0, len(values) * min(values)) == pytest.approx(min(found))
