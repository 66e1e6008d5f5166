"""Small stories with exact starts that show the rule of each policy, plain and compiled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hpcrowd.environment import JobTable, QuantityError, Simulation, parse_scheduler
from hpcrowd.environment.schedulers.fair_share import FairShare, Usage, half
from hpcrowd.environment.schedulers.ordered import KEYS

MakeJobs = Callable[..., JobTable]

both = pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])


def starts(jobs: JobTable, processors: int, scheduler: str, plain: bool, **more: Any) -> list[int]:
    """When the jobs start."""
    model = Simulation(jobs, processors, scheduler, plain=plain, **more)
    model.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit)
    model.run()
    result: list[int] = jobs.start.tolist()
    return result


#: Who runs first until 10 s, then four that wait: (submission, run time, processors).
FOUR = [(0, 10, 4), (1, 30, 1), (2, 10, 4), (3, 20, 3), (4, 40, 2)]

ORDERS = [
    ("sjf", [0, 20, 10, 20, 40]),
    ("ljf", [0, 10, 70, 50, 10]),
    ("order:by=processors", [0, 10, 70, 50, 10]),
    ("order:by=-processors", [0, 40, 10, 20, 40]),
    ("order:by=area", [0, 10, 40, 50, 70]),
    ("order:by=-submit", [0, 80, 70, 50, 10]),
]


@both
@pytest.mark.parametrize(("scheduler", "expected"), ORDERS)
def test_orders_without_backfilling(
    make_jobs: MakeJobs, scheduler: str, expected: list[int], plain: bool
) -> None:
    """The first in the order that does not fit blocks all others."""
    assert expected == starts(make_jobs(*FOUR), 4, scheduler, plain)


@both
def test_slowdown_orders_again_at_each_pass(make_jobs: MakeJobs, plain: bool) -> None:
    """By expansion factor the short job, which came later, is first from 120 s on, not at 20 s."""
    early = make_jobs((0, 20, 1), (0, 100, 1), (10, 20, 1))
    late = make_jobs((0, 120, 1), (0, 100, 1), (10, 20, 1))
    assert [0, 40, 20] == starts(early, 1, "order:by=-slowdown", plain)
    assert [0, 140, 120] == starts(late, 1, "order:by=-slowdown", plain)
    barely = make_jobs((0, 12, 1), (0, 100, 1), (10, 20, 1))  # 1.12 against 1.1
    assert [0, 12, 112] == starts(barely, 1, "order:by=-slowdown", plain)


@both
@pytest.mark.parametrize(
    ("backfill", "expected"),
    [
        ("queue", [30, 40, 110, 110]),
        ("fcfs", [30, 40, 110, 110]),
        ("sjbf", [30, 110, 40, 60]),
        ("largest", [60, 110, 70, 30]),
        ("best-fit", [90, 30, 110, 110]),
    ],
)
def test_order_of_backfilling(
    make_jobs: MakeJobs, backfill: str, expected: list[int], plain: bool
) -> None:
    """At 30 s three processors are free until the head starts at 100 s, for four jobs."""
    jobs = make_jobs(
        (0, 100, 5), (0, 30, 3), (1, 10, 8),  # the head needs all
        (2, 10, 2), (3, 60, 2), (4, 20, 2), (5, 30, 3),
    )  # fmt: skip
    found = starts(jobs, 8, f"easy:backfill={backfill}", plain)
    assert expected == found[3:]


@both
def test_easy_in_another_order(make_jobs: MakeJobs, plain: bool) -> None:
    """The first in the order holds the reservation; who overtakes may not delay it."""
    jobs = make_jobs((0, 10, 3), (1, 50, 2), (2, 20, 4), (3, 8, 1), (4, 6, 1))
    assert [10, 60, 3, 10] == starts(jobs.copy(), 4, "easy:backfill=sjbf", plain)[1:]
    assert [30, 10, 30, 4] == starts(jobs.copy(), 4, "easy:order=-processors", plain)[1:]


def with_columns(jobs: JobTable, **columns: list[int]) -> JobTable:
    """The same jobs with users, queues or groups."""
    for name, values in columns.items():
        getattr(jobs, name)[:] = values
    return jobs


@both
def test_a_job_at_its_limit_is_passed_over(make_jobs: MakeJobs, plain: bool) -> None:
    """The second job of user 1 waits for the first and reserves nothing; user 2 starts at once."""
    jobs = with_columns(make_jobs((0, 50, 1), (1, 10, 4), (2, 90, 2), (3, 5, 1)), user=[1, 1, 2, 3])
    assert [0, 92, 2, 3] == starts(jobs.copy(), 4, "multi-queue:user-jobs=1", plain)
    assert [0, 50, 60, 3] == starts(jobs.copy(), 4, "multi-queue", plain)


@both
def test_limit_on_processors(make_jobs: MakeJobs, plain: bool) -> None:
    """A user holds at most 3 at once; a job larger than that runs while it has nothing else."""
    jobs = with_columns(
        make_jobs((0, 10, 2), (0, 10, 1), (0, 10, 1), (0, 10, 5), (0, 10, 2)), user=[1, 1, 1, 1, 2]
    )
    found = starts(jobs, 20, "multi-queue:user-processors=3,backfill=none", plain)
    assert [0, 0, 10, 20, 0] == found


@both
def test_priorities_of_queues(make_jobs: MakeJobs, plain: bool) -> None:
    """The queue with the higher priority goes first, jobs of one queue by submission."""
    jobs = with_columns(
        make_jobs((0, 10, 1), (1, 10, 1), (2, 10, 1), (3, 10, 1)), queue=[1, 1, 2, 2]
    )
    assert [0, 30, 10, 20] == starts(jobs, 1, "multi-queue:priorities=2:5", plain)


@both
def test_who_overtakes_leaves_room_in_the_limits(make_jobs: MakeJobs, plain: bool) -> None:
    """The head counts for the limit of its user: the small job may not take its place."""
    jobs = with_columns(make_jobs((0, 20, 3), (1, 10, 4), (2, 5, 1), (3, 5, 1)), user=[1, 2, 2, 3])
    assert [0, 20, 30, 3] == starts(jobs, 4, "multi-queue:user-jobs=1", plain)


@both
def test_fair_share_prefers_who_used_less(make_jobs: MakeJobs, plain: bool) -> None:
    """User 2 goes first for its first job, then who used less; running jobs count too."""
    jobs = with_columns(
        make_jobs((0, 10, 1), (0, 10, 1), (0, 10, 1), (1, 30, 1), (1, 10, 1)), user=[1, 1, 1, 2, 2]
    )
    assert [0, 40, 50, 10, 60] == starts(jobs.copy(), 1, "fair-share", plain)
    assert [0, 40, 60, 10, 50] == starts(jobs.copy(), 1, "fair-share:shares=2:2", plain)


@both
def test_fair_share_forgets(make_jobs: MakeJobs, plain: bool) -> None:
    """With a short half-life only the last usage counts, with a long one all of it."""
    jobs = with_columns(
        make_jobs((0, 100, 1), (100, 10, 1), (101, 5, 1), (102, 5, 1)), user=[1, 2, 1, 2]
    )
    assert [110, 115] == starts(jobs.copy(), 1, "fair-share:half-life=1s", plain)[2:]
    assert [115, 110] == starts(jobs.copy(), 1, "fair-share", plain)[2:]


@both
def test_fair_share_by_group(make_jobs: MakeJobs, plain: bool) -> None:
    """What another user of the group used counts."""
    jobs = with_columns(
        make_jobs((0, 10, 1), (1, 10, 1), (2, 10, 1)), user=[1, 2, 3], group=[1, 1, 2]
    )
    assert [0, 20, 10] == starts(jobs.copy(), 1, "fair-share:by=group", plain)
    assert [0, 10, 20] == starts(jobs.copy(), 1, "fair-share", plain)


def test_usage_decays_by_half() -> None:
    """After one half-life half is left; steady use of p processors comes to p h / ln 2."""
    assert [1.0, 0.5, 0.25, 0.0] == [half(lives) for lives in (0.0, 1.0, 2.0, 2000.0)]
    assert pytest.approx(2**-0.3, rel=1e-15) == half(0.3)
    assert 50.0 == Usage(used=100.0).at(60, 60)
    assert pytest.approx(3 * 60 / np.log(2)) == Usage(held=3).at(10**5, 60)
    assert pytest.approx(3.0, rel=1e-4) == Usage(held=3).at(1, 10**5)


@both
def test_creasy_prefers_who_would_leave(make_jobs: MakeJobs, plain: bool) -> None:
    """A short job overtakes a long one, unless that has waited for long; alpha 0 is EASY."""
    soon = make_jobs((0, 600, 1), (1, 36000, 1), (2, 60, 1))
    assert [660, 600] == starts(soon.copy(), 1, "creasy", plain)[1:]
    assert [600, 36600] == starts(soon.copy(), 1, "creasy:alpha=0", plain)[1:]
    late = make_jobs((0, 200_000, 1), (1, 36000, 1), (199_990, 60, 1))
    assert [200_000, 236_000] == starts(late, 1, "creasy", plain)[1:]


def test_every_key_has_a_meaning() -> None:
    """Each key of an order is described."""
    assert all(key.meaning for key in KEYS.values())


QUEUES = """
user-jobs = 3
[[queues]]
queues = [1, 2]
priority = 10
jobs = 1
[[queues]]
queues = [3]
user-processors = 2
[other]
priority = -1
processors = 3
"""


@both
def test_queues_from_a_file(make_jobs: MakeJobs, tmp_path: Path, plain: bool) -> None:
    """Each queue named has its own limits, the others those of [other]."""
    path = tmp_path / "queues.toml"
    path.write_text(QUEUES)
    jobs = with_columns(
        make_jobs(*[(0, 10, 2)] * 7), queue=[9, 9, 3, 3, 1, 1, 2], user=[1, 2, 3, 3, 4, 5, 6]
    )
    assert [0, 10, 0, 10, 0, 10, 0] == starts(jobs, 99, f"multi-queue:file={path}", plain)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("user-jobs = 0", "user-jobs 0: must be a whole number of at least 1"),
        ("users = 3", "users: not a setting; choose user-jobs, user-processors, queues, other"),
        ("[[queues]]\npriority = 1", "queues[0].queues None: must be names or numbers of queues"),
        ("[[queues]]\nqueues = [1]\njob = 3", "queues[0].job: not a setting; choose queues, pri"),
        ("[[queues]]\nqueues = [1]\npriority = 'x'", "queues[0].priority 'x': must be a number"),
        ("[[queues]]\nqueues = [1, 1]", "queues[0].queues: 1 is named twice; keep one"),
        ("queues = 3", "queues: must be tables"),
        ("other = 3", "other: must be a table"),
        ("[", "not TOML"),
    ],
)
def test_wrong_file_of_queues(tmp_path: Path, text: str, told: str) -> None:
    """What is wrong in the file is reported with file, place, value and rule, in one line."""
    path = tmp_path / "queues.toml"
    path.write_text(text)
    with pytest.raises(QuantityError) as caught:
        parse_scheduler(f"multi-queue:file={path}")
    assert f"{path}: {told}" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("order:by=size", "by 'size': not known; choose submit, estimate, requested, processors"),
        ("easy:order=-size", "order '-size': not known; choose submit"),
        ("easy:backfill=most", "backfill 'most': not known; choose queue, fcfs, sjbf, largest"),
        ("easy:backfill=none", "backfill 'none': not known"),
        ("multi-queue:file=none.toml", "none.toml: cannot be read"),
        ("multi-queue:user-jobs=0", "a limit of 0 jobs: must be at least 1"),
        ("multi-queue:user_jobs=1", "'user_jobs' is not an option of it"),
        ("multi-queue:priorities=1", "priorities '1': '1' is not name:value"),
        ("multi-queue:priorities=1:2+1:3", "1 is named twice"),
        ("fair-share:half-life=0", "half-life '0': must be at least 1 s"),
        ("fair-share:half-life=long", "duration 'long'"),
        ("fair-share:by=queue", "by 'queue': not known; choose user, group"),
        ("fair-share:shares=1:0", "the value of 1 must be positive"),
        ("creasy:alpha=-1", "alpha -1.0: must be 0 or more"),
        ("creasy:limit=2", "limit 2.0: is a probability"),
        ("creasy:decline=nan", "decline nan: must be 0 or more"),
    ],
)
def test_wrong_options(text: str, told: str) -> None:
    """Values that cannot be are reported in one line with what can."""
    with pytest.raises(QuantityError) as caught:
        parse_scheduler(text)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_queue_named_twice(tmp_path: Path) -> None:
    """A priority in the text and rules in the file contradict each other."""
    path = tmp_path / "queues.toml"
    path.write_text("[[queues]]\nqueues = [1]")
    with pytest.raises(QuantityError, match="queue 1 is also in"):
        parse_scheduler(f"multi-queue:file={path},priorities=1:3")


def test_policies_are_given_back_as_text() -> None:
    """The text of a policy makes the same policy."""
    for text in ("fair-share:half-life=12h,shares=1:2", "creasy:alpha=10.0", "order:by=-area"):
        assert text == str(parse_scheduler(text))
    assert "fair-share:half-life=1d" == str(FairShare(half_life="1d"))
