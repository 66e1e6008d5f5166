"""Training: a search that sees the training part only, repeats itself, and can be stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest
from hpcrowd.analysis.prediction import (
    ALPHA_RANGE,
    BETA_RANGE,
    K_RANGE,
    N_RANGE,
    PastJobs,
    Search,
    evaluate,
    parameters_of,
    past_jobs,
    space,
    train,
)
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.schedulers.predictors.history import (
    Group,
    HistoryParameters,
    HistoryPredictor,
    published_names,
)
from hpcrowd.environment.traces.trace import Trace


@pytest.fixture(scope="module")
def past(make_trace: Callable[..., Trace]) -> PastJobs:
    """Return 200 jobs whose run time follows from their executable, of users who do not matter."""
    random = np.random.default_rng(0)
    jobs = [
        {"submit": 1_000 * number, "wait": 0, "run": 100 * executable, "requested_processors": 1,
         "requested_time": 900, "status": 1, "user": user, "executable": executable}
        for number, (executable, user) in enumerate(
            zip(random.integers(1, 6, 200), random.integers(1, 4, 200), strict=True)
        )
    ]  # fmt: skip
    return past_jobs(make_trace(*jobs))


def test_what_matters_is_found(past: PastJobs) -> None:
    """The best template has the executable, which tells the run time, and no user who does not."""
    found = train(past, evaluations=150, seeds=2)
    assert "j" in found.parameters.template
    users = HistoryParameters("u...", 500.0, Group(100, 5, 0.0, 1.0), Group(100, 5, 0.0, 1.0))
    assert found.fitness > evaluate(past, HistoryPredictor(users)).fitness
    assert found.fitness == evaluate(past, HistoryPredictor(found.parameters)).fitness


def test_same_seeds_find_the_same(past: PastJobs) -> None:
    """With a budget of evaluations one worker and two find the same; the best of all seeds."""
    one = train(past, evaluations=40, seeds=2, workers=1)
    two = train(past, evaluations=40, seeds=2, workers=2)
    assert (one.parameters, one.each) == (two.parameters, two.each)
    assert 80 == one.evaluations
    other = train(past, evaluations=40, seeds=3, seed=4)
    assert {4, 5, 6} == set(other.each)
    assert max(other.each.values()) == other.fitness == other.each[other.seed]
    assert set(one.each.values()) != set(other.each.values())


def test_a_budget_of_time_is_kept(past: PastJobs) -> None:
    """The search ends when its time is up, and reports its progress meanwhile."""
    told: list[tuple[str, int, int]] = []
    found = train(past, budget_s=0.3, seeds=2, progress=lambda *news: told.append(news))
    assert found.evaluations > 1
    assert {1} == {total for _, _, total in told}


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_what_goes_wrong_is_passed_on(
    past: PastJobs, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """Ctrl-C, and mistakes in a thread, end all searches, and none continues behind."""

    def fail(*arguments: object) -> float:
        raise error

    before = threading.active_count()
    if error is ZeroDivisionError:
        monkeypatch.setattr(Search, "try_out", fail)
    with pytest.raises(error):
        train(past, budget_s=600, seeds=3, progress=fail)
    assert before == threading.active_count()


def test_published_parameters_lie_in_the_space() -> None:
    """The search could find every set of parameters of Table 8.3."""
    ranges = {"n": N_RANGE, "k": K_RANGE, "alpha": ALPHA_RANGE, "beta": BETA_RANGE}
    for name in published_names():
        parameters = HistoryParameters.published(name)
        for group in (parameters.small, parameters.big):
            for one, (low, high) in ranges.items():
                assert low <= getattr(group, one) <= high


def test_individuals_are_read_in_the_order_of_the_thesis() -> None:
    """(x1, x2, x3, x4, Pivot, N1, K1, alpha1, beta1, N2, K2, alpha2, beta2), section 8.3.3."""
    bounds, whole = space()
    assert (13, 13) == (len(bounds), len(whole))
    individual = np.array([1, 0, 0, 1, 0.5, 200, 3, 0.1, 0.9, 300, 4, 0.2, 0.8])
    expected = HistoryParameters("u..j", 60.0, Group(200, 3, 0.1, 0.9), Group(300, 4, 0.2, 0.8))
    assert expected == parameters_of(individual, 20, 100)


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ({"budget_s": 0.0}, "budget 0.0: must be more than 0"),
        ({"evaluations": 0}, "evaluations 0"),
        ({"seeds": 0}, "seeds 0"),
        ({"budget_s": None}, "no budget"),
        ({"history": "whole"}, "history 'whole': not known"),
    ],
)
def test_wrong_budgets_are_reported(past: PastJobs, choice: dict[str, object], told: str) -> None:
    """A search that could not begin or end is refused with the value."""
    with pytest.raises(QuantityError, match=told):
        train(past, **choice)  # type: ignore[arg-type]
    with pytest.raises(QuantityError, match="no job to train with"):
        train(past.first(0))
