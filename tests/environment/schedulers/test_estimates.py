"""Estimates that need no history, and what happens to a running job that outruns its own."""

from __future__ import annotations

import pytest
from hpcrowd.environment import Estimates, QuantityError, parse_estimates
from hpcrowd.environment.schedulers.estimates import INCREMENTS, believed_end
from hypothesis import given
from hypothesis import strategies as st

from tests.environment.schedulers.pool_cases import MakeJobs, both, ran

times = st.integers(0, 10**7)


@pytest.mark.parametrize(
    ("text", "expected"), [("requested", 90), ("exact", 60), ("0.5x", 45), ("1.25x", 113)]
)
def test_estimates_by_name(text: str, expected: int) -> None:
    """The request, the run time, or a multiple of the request, rounded half up."""
    estimates = parse_estimates(text)
    assert text == str(estimates)
    assert expected == estimates.of(requested=90, run=60)


@pytest.mark.parametrize("text", ["", "guess", "0x", "-1x", "1.0000001x", "10000001x", "x"])
def test_unknown_estimates_are_refused(text: str) -> None:
    """What is not an estimate is named."""
    with pytest.raises(QuantityError):
        parse_estimates(text)
    with pytest.raises(QuantityError, match="choose requested, exact, factor"):
        Estimates(text or "guess")  # type: ignore[arg-type]


@both
@pytest.mark.parametrize(("overrun", "expected"), [("keep", 100), ("kill", 40)])
def test_exact_is_the_time_on_the_machine(
    make_jobs: MakeJobs, plain: bool, overrun: str, expected: int
) -> None:
    """Exact estimates of jobs that are stopped at their request are the request."""
    jobs = make_jobs((0, 100, 1, 40))
    ran(jobs, 2, "easy", estimates="exact", overrun=overrun, plain=plain)
    assert [expected] == jobs.estimate.tolist()


@given(start=times, estimate=times, requested=times, now=times)
def test_believed_end_is_always_ahead(start: int, estimate: int, requested: int, now: int) -> None:
    """A running job is believed to end after now; at its estimate while that is not past."""
    end = believed_end(start, estimate, requested, now)
    assert end > now
    if start + estimate > now:
        assert start + estimate == end


@given(start=times, estimate=times, past=times)
def test_believed_end_stops_at_the_request(start: int, estimate: int, past: int) -> None:
    """An outrun estimate is never raised beyond a request that is still to come."""
    now = start + estimate + past
    requested = estimate + past + 1
    assert start + requested == believed_end(start, estimate, requested, now)


@given(start=times, estimate=times, requested=times, first=times, later=times)
def test_believed_end_does_not_depend_on_when_it_was_asked(
    start: int, estimate: int, requested: int, first: int, later: int
) -> None:
    """What was believed holds until it is past; it never moves back."""
    before = believed_end(start, estimate, requested, first)
    after = believed_end(start, estimate, requested, first + later)
    assert after == before if before > first + later else after > before


def test_believed_end_by_increments() -> None:
    """By one minute, six, 21, and so on; after the last increment by that one again and again."""
    minutes = [believed_end(0, 0, 0, now) // 60 for now in (0, 59, 60, 360, 21 * 60)]
    assert [1, 1, 6, 21, 51] == minutes
    total = sum(INCREMENTS)
    assert total + 3 * INCREMENTS[-1] == believed_end(0, 0, 0, total + 2 * INCREMENTS[-1])
