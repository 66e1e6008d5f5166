"""Estimates that need no history, and what happens to a running job that outruns its own."""

import pytest
from hpcrowd.environment.schedulers.arithmetic import INCREMENTS, believed_end
from hpcrowd.errors import QuantityError
from hpcrowd.predictors import Estimates, parse_estimates
from hypothesis import given
from hypothesis import strategies as st

from tests.environment.schedulers.pool_cases import ran
from tests.support.simulations import both

times = st.integers(0, 10**7)


@pytest.mark.parametrize(
    ("text", "expected"), [("requested", 90), ("exact", 60), ("0.5x", 45), ("1.25x", 113)]
)
def test_estimates_by_name(text, expected):
    """The request, the run time, or a multiple of the request, rounded half up."""
    estimates = parse_estimates(text)
    assert text == str(estimates)
    assert expected == estimates.of(requested=90, run=60)


@pytest.mark.parametrize("text", ["", "guess", "0x", "-1x", "1.0000001x", "10000001x", "x"])
def test_unknown_estimates_are_refused(text):
    """What is not an estimate is named."""
    with pytest.raises(QuantityError):
        parse_estimates(text)
    with pytest.raises(QuantityError, match="choose requested, exact, factor"):
        Estimates(text or "guess")


@both
@pytest.mark.parametrize(("overrun", "expected"), [("keep", 100), ("kill", 40)])
def test_exact_is_the_time_on_the_machine(make_jobs, plain, overrun, expected):
    """Exact estimates of jobs that are stopped at their request are the request."""
    jobs = make_jobs((0, 100, 1, 40))
    ran(jobs, 2, "easy", estimates="exact", overrun=overrun, plain=plain)
    assert [expected] == jobs.estimate.tolist()


@given(start=times, estimate=times, requested=times, first=times, later=times)
def test_believed_end(start, estimate, requested, first, later):
    """It is always ahead, at the estimate while that is not past, and holds until it is past."""
    before = believed_end(start, estimate, requested, first)
    after = believed_end(start, estimate, requested, first + later)
    assert before > first
    assert before == start + estimate or start + estimate <= first
    assert after == before if before > first + later else after > before
    now = start + estimate + later
    request = estimate + later + 1  # an outrun estimate is never raised beyond a request to come
    assert start + request == believed_end(start, estimate, request, now)


def test_believed_end_by_increments():
    """By one minute, six, 21, and so on; after the last increment by that one again and again."""
    minutes = [believed_end(0, 0, 0, now) // 60 for now in (0, 59, 60, 360, 21 * 60)]
    assert [1, 1, 6, 21, 51] == minutes
    total = sum(INCREMENTS)
    assert total + 3 * INCREMENTS[-1] == believed_end(0, 0, 0, total + 2 * INCREMENTS[-1])
