"""Priorities: a formula over the queue, traced or called, with each kind of backfilling."""

import copy
import pickle

import numpy as np
import pytest
from hpcrowd import jobs_from_trace
from hpcrowd.environment.engine.passes.priority import program_of
from hpcrowd.environment.errors import SchedulerError
from hpcrowd.environment.schedulers.policies.priority import (
    ARRAYS,
    F1,
    F2,
    F3,
    F4,
    WFP3,
    Multifactor,
    Priority,
    Queue,
    Unicef,
    compared,
)
from hypothesis import given, settings

from tests.environment.schedulers.pool_cases import begun, ran
from tests.support.policies import begun as begun_case
from tests.support.policies import cases
from tests.support.simulations import both

SHIPPED = (WFP3, Unicef, F1, F2, F3, F4, Multifactor)
BACKFILLS = ("queue", "none", "sjbf", "conservative")


class Weighed(Priority):
    """An own formula with an option, which uses the usage of users."""

    def __init__(self, weight=2.0, backfill="queue"):
        self.weight, self.backfill = weight, backfill

    def score(self, jobs):
        """Weigh the wait against size and usage."""
        ratio = jobs.waited / jobs.requested
        return self.weight * ratio + jobs.processors - jobs.usage / 1000.0


class Called(Weighed):
    """The same, which is not to be traced."""

    traced = False


class Branching(Weighed):
    """The same, which cannot be traced."""

    def score(self, jobs):
        """Leave out the usage where there is none."""
        found = self.weight * (jobs.waited / jobs.requested) + jobs.processors
        return found - jobs.usage / 1000.0 if jobs.usage.max() > 0 else found


KINDS = (*SHIPPED, Weighed, Called, Branching)


def queue_of(**given):
    """A queue in which what is not given is 1."""
    count = len(next(iter(given.values())))
    arrays = [np.array(given.get(name, [1.0] * count), float) for name in ARRAYS]
    return Queue._make((*arrays, 1000, 64, 10))


def test_formulas():
    """Scores of the shipped formulas, computed by hand."""
    jobs = queue_of(
        processors=[3, 15], requested=[100, 10_000], waited=[50, 10_000], submit=[10, 100]
    )
    assert [0.375, 15.0] == WFP3().scores(jobs).tolist()
    assert [0.25, 0.25] == Unicef().scores(jobs).tolist()
    assert pytest.approx([-(2 * 3 + 870), -(4 * 15 + 1740)]) == F1().scores(jobs)
    assert pytest.approx([-(10 * 3 + 25_600), -(100 * 15 + 51_200)]) == F2().scores(jobs)
    assert pytest.approx([-(300 + 6.86e6), -(150_000 + 2 * 6.86e6)]) == F3().scores(jobs)
    assert pytest.approx([-(100 * 3**0.5 + 5.3e5), -(1e4 * 15**0.5 + 1.06e6)]) == F4().scores(jobs)
    used = queue_of(usage=[0, 200], waited=[302_400, 10**7], processors=[16, 64])
    weights = Multifactor(age=2, size=4, fair_share=8)
    assert pytest.approx([1 + 1 + 8, 2 + 4 + 2]) == weights.scores(used)


def test_scores_are_compared_to_twelve_digits():
    """What differs only by rounding is a tie; what differs more is not; no score is infinite."""
    values = np.array([1 / 3, np.nextafter(1 / 3, 1), 1 / 3 + 1e-11, 0.0, -5.0, np.inf, 1e-300])
    found = compared(values)
    assert found[0] == found[1] < found[2]
    assert np.allclose(found[2:5], values[2:5], rtol=1e-12)
    assert found[5] == pytest.approx(1e300)


def check_forms(kind, backfill, case):
    """Check that the schedule is the same, however the formula is computed."""
    models = [
        begun_case(case | {"policy": kind(backfill=backfill)}, plain=plain)
        for plain in (False, True)
    ]
    compiled, plain = (model.run().jobs.matrix.tolist() for model in models)
    assert compiled == plain


def test_which_formulas_are_traced():
    """Those that say that they are not to be, or need values on the way, are called."""
    assert [kind for kind in KINDS if len(program_of(kind()).steps)] == [*SHIPPED, Weighed]


@pytest.mark.parametrize("backfill", BACKFILLS)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8)
@given(case=cases)
def test_traced_called_and_plain_agree(kind, backfill, case):
    """The same schedule, traced, called with arrays and plain, whatever happens."""
    check_forms(kind, backfill, case)


@pytest.mark.endurance
@pytest.mark.parametrize("backfill", BACKFILLS)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=200)
@given(case=cases)
def test_traced_called_and_plain_agree_often(kind, backfill, case):
    """The same in many more cases."""
    check_forms(kind, backfill, case)


def wrong(name, score):
    """Return a policy with this formula."""
    return type(name, (Called,), {"score": lambda self, jobs: score(jobs)})


@both
@pytest.mark.parametrize(
    ("name", "score", "message"),
    [
        ("Short", lambda jobs: jobs.waited[1:], r"an array of shape \(1,\) at 10 s for 2 jobs"),
        ("NoNumber", lambda jobs: np.log(jobs.waited - 1e9), "at 10 s is not a number for some"),
        ("Fails", lambda jobs: jobs.width, "at 10 s: AttributeError: .*width"),
    ],
)
def test_wrong_formulas(make_jobs, name, score, message, plain):
    """The scheduler, the second, and what is wrong, in one line."""
    jobs = make_jobs((0, 10, 4), (5, 10, 4), (6, 10, 4))
    with pytest.raises(SchedulerError, match=f"{name}: score.*{message}"):
        ran(jobs, 4, wrong(name, score)(), plain=plain)


@pytest.mark.parametrize("backfill", ["queue", "conservative"])
@pytest.mark.parametrize("kind", [Weighed, Called])
def test_forks(kth, kind, backfill):
    """A run can be copied in the middle, and goes on as the original does."""
    jobs = jobs_from_trace(kth).jobs.take(np.arange(600))
    model = begun(jobs, 100, kind(backfill=backfill)).run(until=int(jobs.recorded_submit[300]))
    others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    model.run()
    for other in others:
        other.run()
        assert np.array_equal(jobs.start, other.jobs.start)
