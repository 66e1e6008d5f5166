"""Judging a model: spreads over replications, distances, and a model that is the truth itself."""

from __future__ import annotations

import numpy as np
import pytest
from hpcrowd.analysis.features import FEATURES
from hpcrowd.analysis.models import generate, judge, published
from hpcrowd.analysis.models.judgement import Spread, Task, format_spread, judgement_html, within
from hpcrowd.environment.errors import QuantityError

from tests.analysis.features.feature_cases import poisson_workload


def test_a_spread_is_mean_and_deviation() -> None:
    """With n - 1; of one number there is no deviation, of none no spread."""
    found = Spread.of([1.0, 2.0, 6.0])
    assert found is not None
    assert (3, 1, 6, 3) == (found.mean, found.least, found.most, found.count)
    assert found.sd == pytest.approx(np.sqrt(7))
    one = Spread.of([4.0])
    assert one is not None
    assert one.sd is None
    assert Spread.of([]) is None


@pytest.mark.slow
def test_the_true_model_is_inside() -> None:
    """A workload generated from a model lies among others generated from it."""
    model = published("feitelson97", 64)
    truth = generate(model, jobs=2000, seed=99).workload()
    found = judge(model, truth, seeds=10)
    assert list(range(10)) == [one.seed for one in found.replications]
    for name in ("run_time_median_s", "processors_mean", "serial_share", "interarrival_median_s"):
        spread, value = found.spread(name), truth and found.trace[name].number
        assert spread is not None
        assert value is not None
        assert spread.sd is not None
        assert abs(value - spread.mean) < 5 * spread.sd, name
    run_time = found.ks("run_time")
    assert run_time is not None
    assert run_time.mean < 0.1


def test_another_model_is_far_off() -> None:
    """Poisson jobs of up to 64 processors against harmonic sizes: KS tells."""
    found = judge(published("feitelson97", 64), poisson_workload(500, 300, 1), seeds=2)
    processors = found.ks("processors")
    assert processors is not None
    assert processors.mean > 0.3
    assert found.ks("wait") is None
    assert "no waits recorded" == found.reason("wait_mean_s")


@pytest.mark.slow
def test_each_seed_is_a_task_of_its_own() -> None:
    """Whoever does the tasks, and in whatever order, the judgement is the same."""
    model, trace = published("feitelson96", 16), poisson_workload(200, 300, 2)

    def backwards(task: Task, seeds: object) -> object:
        return [task(seed) for seed in reversed(list(seeds))]  # type: ignore[call-overload]

    ways = [judge(model, trace, seeds=3, each=each) for each in (None, backwards)]
    assert ways[0].to_json() == ways[1].to_json()
    with pytest.raises(QuantityError, match="seeds 0: must be 1 or more"):
        judge(model, trace, seeds=0)


@pytest.mark.slow
def test_the_report_shows_what_is_inside() -> None:
    """Words for people, and a page with every feature."""
    assert "inside" == within(2.0, Spread(2, 1, 1, 3, 3))
    assert "outside" == within(4.0, Spread(2, 1, 1, 3, 3))
    assert "" == within(None, Spread(2, 1, 1, 3, 3)) == within(1.0, None)
    assert ("", "") == format_spread(FEATURES["jobs"], None)
    model, trace = published("feitelson96", 16), poisson_workload(200, 300, 2, name="a <b> & c")
    page = judgement_html(judge(model, trace, seeds=2), again="hpcrowd judge")
    assert "a &lt;b&gt; &amp; c" in page
    for feature in FEATURES.values():
        assert feature.title.strip().replace("&", "&amp;") in page
