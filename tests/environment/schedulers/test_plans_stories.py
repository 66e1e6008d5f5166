"""Small stories with exact starts that show what plans of reservations do, plain and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd.environment import (
    Conservative,
    EndedJob,
    JobTable,
    QuantityError,
    Selective,
    SelectiveCategorized,
    Simulation,
    parse_scheduler,
)

MakeJobs = Callable[..., JobTable]

both = pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])


def planned(
    jobs: JobTable, processors: int, scheduler: str, plain: bool, **more: Any
) -> tuple[list[int], list[int]]:
    """When the jobs start, and when they were first promised to."""
    model = Simulation(jobs, processors, scheduler, plain=plain, **more)
    model.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit)
    model.run()
    return jobs.start.tolist(), jobs.promised.tolist()


@both
def test_compression_moves_jobs_forward(make_jobs: MakeJobs, plain: bool) -> None:
    """When the first job ends 50 s early, all move forward, in the order of the queue.

    At 50 s the third job cannot move, since the last one blocks it; once that has moved
    too, it can, from the next pass on.
    """
    jobs = make_jobs(
        (0, 50, 4, 100), (1, 10, 2), (2, 100, 4), (3, 100, 2), (4, 10, 2)
    )  # fmt: skip
    expected = [0, 50, 60, 160, 50], [0, 100, 110, 210, 100]
    assert expected == planned(jobs, 4, "conservative", plain)


@both
def test_nobody_in_the_queue_is_delayed(make_jobs: MakeJobs, plain: bool) -> None:
    """Where EASY delays the second in the queue for a job that fits, conservative does not."""
    work = (0, 100, 3), (1, 10, 4), (2, 50, 3), (3, 150, 1)
    expected = [0, 100, 110, 110], [0, 100, 110, 110]
    assert expected == planned(make_jobs(*work), 4, "conservative", plain)
    wide = (0, 100, 3), (1, 10, 2), (2, 50, 4), (3, 150, 1)
    assert [0, 100, 110, 160] == planned(make_jobs(*wide), 4, "conservative", plain)[0]
    assert [0, 100, 153, 3] == planned(make_jobs(*wide), 4, "easy", plain)[0]


@both
def test_the_latest_in_the_queue_loses_its_reservation(make_jobs: MakeJobs, plain: bool) -> None:
    """A job that outruns its estimate at 20 s is believed to continue to 80 s, so one has to wait.

    Both that wait were promised 20 s. The first keeps that, the second gets 50 s.
    """
    jobs = make_jobs((0, 100, 1, 20), (0, 20, 2), (1, 30, 1), (2, 30, 2))
    assert ([0, 0, 20, 50], [0, 0, 20, 20]) == planned(jobs, 3, "conservative", plain)


@both
def test_only_what_does_not_hold_is_lost(make_jobs: MakeJobs, plain: bool) -> None:
    """The first in the queue loses what it was promised, who comes after it keeps its start."""
    jobs = make_jobs((0, 100, 1, 10), (0, 30, 2), (1, 30, 1), (2, 20, 2))
    assert ([0, 0, 50, 30], [0, 0, 10, 30]) == planned(jobs, 3, "conservative", plain)


@both
def test_estimates_are_raised_again_and_again(make_jobs: MakeJobs, plain: bool) -> None:
    """A job that was to end at 10 s is believed to go on to 70 s, then to 370 s, and ends at 80 s.

    At 70 s the job that needs all processors loses its reservation again, and the last one, which
    was to start at 90 s after it, passes.
    """
    jobs = make_jobs((0, 80, 1, 10), (1, 20, 2), (30, 30, 1), (31, 50, 1))
    assert ([0, 120, 30, 70], [0, 10, 30, 90]) == planned(jobs, 2, "conservative", plain)


@both
@pytest.mark.parametrize(
    ("threshold", "last", "expected", "promised"),
    [
        (1, 2, [0, 100, 110], 100),
        (2, 2, [0, 202, 2], 202),  # promised at 100 s
        (2, 11, [0, 211, 11], 211),  # (10 + 10) / 10 does not exceed 2
        (2, 12, [0, 100, 110], 100),
        (1000, 12, [0, 212, 12], -1),
    ],
)
def test_reservation_above_a_fixed_threshold(
    make_jobs: MakeJobs,
    threshold: int,
    last: int,
    expected: list[int],
    promised: int,
    plain: bool,
) -> None:
    """The second job, which needs all processors, is passed until it has waited long enough."""
    jobs = make_jobs((0, 100, 3), (1, 10, 4), (last, 200, 1))
    found = planned(jobs, 4, f"selective:threshold={threshold}", plain)
    assert (expected, promised) == (found[0], found[1][1])


#: Two jobs with slowdowns 1 and 2, one that runs on three of four processors, one that needs all.
BEFORE = (0, 10, 4), (0, 10, 4), (20, 100, 3), (21, 10, 4)


@both
@pytest.mark.parametrize(("last", "expected"), [(26, [226, 26]), (27, [120, 130])])
def test_threshold_is_the_mean_slowdown(
    make_jobs: MakeJobs, last: int, expected: list[int], plain: bool
) -> None:
    """After slowdowns 1 and 2 a job of 10 s gets a reservation when it has waited above 5 s."""
    jobs = make_jobs(*BEFORE, (last, 200, 1))
    assert expected == planned(jobs, 4, "selective", plain)[0][3:]


@both
def test_bound_of_slowdowns(make_jobs: MakeJobs, plain: bool) -> None:
    """A job of 1 s that waited 10 s has slowdown 11, or 1.1 where it counts as 10 s long.

    The mean is 6 or 1.05, and the job that needs all has waited 9 s for 10 s when the last comes.
    """
    work = (0, 10, 4), (0, 1, 4), (20, 100, 3), (21, 10, 4), (30, 200, 1)
    assert [230, 30] == planned(make_jobs(*work), 4, "selective", plain)[0][3:]
    assert [120, 130] == planned(make_jobs(*work), 4, "selective:bound=10", plain)[0][3:]


@both
def test_categories_have_thresholds_of_their_own(make_jobs: MakeJobs, plain: bool) -> None:
    """Slowdowns of small jobs say nothing of a medium one: it is the first of its category.

    With one threshold, 1.5, it would have to wait above 500 s; as the first, with 1, only 1 s.
    """
    work = (0, 10, 4), (0, 10, 4), (20, 3000, 3), (21, 1000, 4), (200, 20_000, 1)
    one = planned(make_jobs(*work), 4, "selective", plain)[0]
    assert [20_200, 200] == one[3:]
    apart = planned(make_jobs(*work), 4, "selective-categorized", plain)[0]
    assert [3020, 4020] == apart[3:]
    small = planned(make_jobs(*work), 4, "selective:categories=1001", plain)[0]
    assert one == small


def test_borders_of_the_categories() -> None:
    """Medium are jobs from 1,000 to 10,000 s, both included, by their estimates."""
    policy = SelectiveCategorized()
    policy.begin(1)
    assert {1.0} == {policy.threshold_of(estimate) for estimate in (1, 5000, 20_000)}
    for estimate, slowdown in ((999, 3), (1000, 5), (10_000, 7), (10_001, 9)):
        end = 100 * slowdown
        policy.ended(end, [EndedJob(0, 1, estimate, 0, end - 100, end)])
    found = {estimate: policy.threshold_of(estimate) for estimate in (0, 999, 1000, 10_000, 10_001)}
    assert {0: 3.0, 999: 3.0, 1000: 6.0, 10_000: 6.0, 10_001: 9.0} == found
    policy.begin(1)
    assert 1.0 == policy.threshold_of(999)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("selective:threshold=0.9", "threshold '0.9': must be adaptive, or a number of at least 1"),
        ("selective:threshold=often", "threshold 'often': must be adaptive"),
        ("selective:threshold=inf", "threshold 'inf': must be adaptive"),
        ("selective:threshold=nan", "threshold 'nan': must be adaptive"),
        ("selective:categories=10000/1000", "must be none, or rising run times in s such as"),
        ("selective:categories=5/5", "categories '5/5'"),
        ("selective:categories=0/5", "categories '0/5'"),
        ("selective:categories=-5", "categories '-5'"),
        ("selective:categories=small", "categories 'small'"),
        ("selective:categories=", "categories ''"),
        ("selective:bound=0", "bound 0: must be at least 1 s"),
        ("selective:bound=1.5", "bound must be a whole number"),
        ("conservative:bound=3", "'bound' is not an option of it; write conservative"),
    ],
)
def test_wrong_options(text: str, told: str) -> None:
    """Values that cannot be are reported in one line with the rule."""
    with pytest.raises(QuantityError) as caught:
        parse_scheduler(text)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_policies_are_given_back_as_text() -> None:
    """Options that are not default are in the text of a policy."""
    assert "conservative" == str(Conservative())
    assert "selective:threshold=1.5,bound=10" == str(Selective(threshold="1.5", bound=10))
    assert "selective-categorized" == str(SelectiveCategorized(categories="1000/10001"))
