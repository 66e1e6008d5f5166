"""Judging a model: spreads over replications, distances, and a model that is the truth itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hpcrowd.analysis.features import FEATURES
from hpcrowd.analysis.models import generate, judge, published
from hpcrowd.analysis.models.judgement import Spread, Task, format_spread, judgement_html, within
from hpcrowd.environment.errors import QuantityError

from tests.analysis.features.feature_cases import poisson_workload


@pytest.mark.slow
def test_the_true_model_is_inside() -> None:
    """A workload generated from a model lies among others generated from it."""
    model = published("feitelson97", 64)
    truth = generate(model, jobs=2000, seed=99).workload()
    found = judge(model, truth, seeds=10)
    assert list(range(10)) == [one.seed for one in found.replications]
    for name in ("run_time_median_s", "processors_mean", "serial_share", "interarrival_median_s"):
        spread, value = found.spread(name), found.trace[name].number
        assert abs(value - spread.mean) < 5 * spread.sd, name  # type: ignore[union-attr,operator]
    assert found.ks("run_time").mean < 0.1  # type: ignore[union-attr]


def test_another_model_is_far_off() -> None:
    """KS separates Poisson jobs from harmonic sizes, whoever judges; the page has it all."""

    def backwards(task: Task, seeds: Iterable[int]) -> list[Any]:
        return [task(seed) for seed in reversed(list(seeds))]

    model = published("feitelson97", 64)
    trace = poisson_workload(60, 300, 1, name="a <b> & c", wait=-1)
    found = judge(model, trace, seeds=2, each=backwards)
    assert [0, 1] == [one.seed for one in found.replications]
    assert found.ks("processors").mean > 0.3  # type: ignore[union-attr]
    assert found.ks("wait") is None
    assert "no waits recorded" == found.reason("wait_mean_s")
    page = judgement_html(found, again="hpcrowd judge")
    wanted = [one.title.strip().replace("&", "&amp;") for one in FEATURES.values()]
    assert [] == [words for words in ("a &lt;b&gt; &amp; c", *wanted) if words not in page]
    with pytest.raises(QuantityError, match="seeds 0: must be 1 or more"):
        judge(model, trace, seeds=0)


def test_a_spread_is_mean_and_deviation() -> None:
    """With n - 1; of one number there is no deviation, of none no spread, and no words."""
    found = Spread.of([1.0, 2.0, 6.0])
    assert (3, 1, 6, 3) == (found.mean, found.least, found.most, found.count)
    assert found.sd == pytest.approx(np.sqrt(7))
    assert (None, None) == (Spread.of([4.0]).sd, Spread.of([]))
    assert ["inside", "outside", ""] == [within(value, found) for value in (2.0, 7.0, None)]
    assert ("", ("", "")) == (within(1.0, None), format_spread(FEATURES["jobs"], None))
