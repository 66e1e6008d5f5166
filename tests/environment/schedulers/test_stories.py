"""Small stories with exact starts that show the rule of each policy, plain and compiled."""

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hpcrowd import JobTable
from hpcrowd.environment.schedulers.arithmetic import half
from hpcrowd.environment.schedulers.policies.fair_share import Usage
from hpcrowd.errors import QuantityError
from hpcrowd.policies import EndedJob, SelectiveCategorized, parse_scheduler

from tests.environment.schedulers.pool_cases import ran
from tests.support.simulations import both

Rows = list[tuple[int, ...]]


@dataclass
class Story:
    """Jobs of (submission, run time, processors[, request]) on a machine, and when they start."""

    policy: str
    processors: int
    jobs: Rows
    starts: list[int]
    #: Columns that are set before, and options of the simulation.
    given: dict[str, Any] = field(default_factory=dict)
    #: Columns as they are afterwards.
    found: dict[str, Any] = field(default_factory=dict)


#: Who runs first until 10 s, then four that wait.
FOUR: Rows = [(0, 10, 4), (1, 30, 1), (2, 10, 4), (3, 20, 3), (4, 40, 2)]
#: At 30 s three processors are free until the head starts at 100 s, for four jobs.
HOLE: Rows = [(0, 100, 5), (0, 30, 3), (1, 10, 8), (2, 10, 2), (3, 60, 2), (4, 20, 2), (5, 30, 3)]
LIMITED: Rows = [(0, 50, 1), (1, 10, 4), (2, 90, 2), (3, 5, 1)]
SHARED: Rows = [(0, 10, 1), (0, 10, 1), (0, 10, 1), (1, 30, 1), (1, 10, 1)]
LATER: Rows = [(0, 100, 1), (100, 10, 1), (101, 5, 1), (102, 5, 1)]
NARROW: Rows = [(0, 10, 3), (1, 50, 2), (2, 20, 4), (3, 8, 1), (4, 6, 1)]
QUEUED: Rows = [(0, 100, 3), (10, 50, 4)]
#: The second in the queue, and a job that fits.
SECOND: Rows = [(0, 100, 3), (1, 10, 2), (2, 50, 4), (3, 150, 1)]
#: Two processors free, a head that needs four, and others behind it, of which one is short.
BEHIND: Rows = [(0, 100, 2), (1, 100, 4), (2, 90, 3), (3, 150, 2), (4, 50, 2)]
SIZES: Rows = [(0, 10, 4), (0, 10, 4), (20, 3000, 3), (21, 1000, 4), (200, 20_000, 1)]
ALL = "selective:threshold="

STORIES = {
    "fcfs: nobody overtakes": Story(
        "fcfs", 4, [*QUEUED, (20, 5, 1), (30, 5, 1)], [0, 100, 150, 150]),
    "easy: spare processors serve once": Story(
        "easy", 5, [*QUEUED, (20, 999, 1), (20, 999, 1)], [0, 100, 20, 150]),
    "recorded: waits as recorded, whatever is free": Story(
        "recorded", 4, [(0, 100, 4), (10, 100, 4), (20, 5, 4)], [0, 310, 20],
        {"recorded_start": [0, 310, 20], "recorded_end": [100, 410, 25]}, {"end": [100, 410, 25]}),
    # The first in the order that does not fit blocks all others.
    "sjf": Story("sjf", 4, FOUR, [0, 20, 10, 20, 40]),
    "ljf": Story("ljf", 4, FOUR, [0, 10, 70, 50, 10]),
    # By expansion factor the short job, which came later, is first from 120 s on, not at 20 s.
    "slowdown at 20 s": Story(
        "order:by=-slowdown", 1, [(0, 20, 1), (0, 100, 1), (10, 20, 1)], [0, 40, 20]),
    "slowdown at 120 s": Story(
        "order:by=-slowdown", 1, [(0, 120, 1), (0, 100, 1), (10, 20, 1)], [0, 140, 120]),
    "backfill sjbf": Story("easy:backfill=sjbf", 8, HOLE, [0, 0, 100, 30, 110, 40, 60]),
    "backfill largest": Story("easy:backfill=largest", 8, HOLE, [0, 0, 100, 60, 110, 70, 30]),
    "backfill best-fit": Story("easy:backfill=best-fit", 8, HOLE, [0, 0, 100, 90, 30, 110, 110]),
    "the first in the order has the reservation": Story(
        "easy:order=-processors", 4, NARROW, [0, 30, 10, 30, 4]),
    "a job at its limit reserves nothing": Story(
        "multi-queue:user-jobs=1", 4, LIMITED, [0, 92, 2, 3], {"user": [1, 1, 2, 3]}),
    "a job above a limit of processors runs alone": Story(
        "multi-queue:user-processors=3,backfill=none", 20,
        [(0, 10, 2), (0, 10, 1), (0, 10, 1), (0, 10, 5), (0, 10, 2)], [0, 0, 10, 20, 0],
        {"user": [1, 1, 1, 1, 2]}),
    "queues have priorities": Story(
        "multi-queue:priorities=2:5", 1, [(0, 10, 1), (1, 10, 1), (2, 10, 1), (3, 10, 1)],
        [0, 30, 10, 20], {"queue": [1, 1, 2, 2]}),
    "the head counts for the limit of its user": Story(
        "multi-queue:user-jobs=1", 4, [(0, 20, 3), (1, 10, 4), (2, 5, 1), (3, 5, 1)],
        [0, 20, 30, 3], {"user": [1, 2, 2, 3]}),
    "who used less goes first; running jobs count": Story(
        "fair-share", 1, SHARED, [0, 40, 50, 10, 60], {"user": [1, 1, 1, 2, 2]}),
    "a short half-life forgets": Story(
        "fair-share:half-life=1s", 1, LATER, [0, 100, 110, 115], {"user": [1, 2, 1, 2]}),
    "usage of the group": Story(
        "fair-share:by=group", 1, [(0, 10, 1), (1, 10, 1), (2, 10, 1)], [0, 20, 10],
        {"user": [1, 2, 3], "group": [1, 1, 2]}),
    "creasy: a short job overtakes a long one": Story(
        "creasy", 1, [(0, 600, 1), (1, 36000, 1), (2, 60, 1)], [0, 660, 600]),
    "creasy: unless that has waited for long": Story(
        "creasy", 1, [(0, 200_000, 1), (1, 36000, 1), (199_990, 60, 1)], [0, 200_000, 236_000]),
    # At 50 s the third job cannot move, since the last one blocks it; once that has moved
    # too, it can, from the next pass on.
    "compression moves all forward, in the order of the queue": Story(
        "conservative", 4, [(0, 50, 4, 100), (1, 10, 2), (2, 100, 4), (3, 100, 2), (4, 10, 2)],
        [0, 50, 60, 160, 50], found={"promised": [0, 100, 110, 210, 100]}),
    "conservative: nobody is delayed": Story("conservative", 4, SECOND, [0, 100, 110, 160]),
    "as under easy": Story("easy", 4, SECOND, [0, 100, 153, 3]),
    "not behind the depth": Story("easy:depth=2", 4, BEHIND, [0, 100, 200, 290, 290]),
    "within the depth": Story("easy:depth=3", 4, BEHIND, [0, 100, 200, 290, 4]),
    # A job that was to end at 10 s is believed to go on to 70 s, then to 370 s, and ends at 80 s.
    "estimates are raised again and again": Story(
        "conservative", 2, [(0, 80, 1, 10), (1, 20, 2), (30, 30, 1), (31, 50, 1)],
        [0, 120, 30, 70], found={"promised": [0, 10, 30, 90]}),
    # The second job, which needs all processors, is passed until it has waited long enough.
    **{
        f"threshold {threshold}, last at {last} s": Story(
            f"{ALL}{threshold}", 4, [(0, 100, 3), (1, 10, 4), (last, 200, 1)], starts,
            found={"promised": [-1, *promised]})
        for threshold, last, starts, promised in (
            (1, 2, [0, 100, 110], (100, 110)),
            (2, 11, [0, 211, 11], (211, -1)),  # (10 + 10) / 10 does not exceed 2
            (2, 12, [0, 100, 110], (100, -1)),
        )
    },
    # Slowdowns of small jobs say nothing of a medium one: it is the first of its category.
    "categories have thresholds of their own": Story(
        "selective-categorized", 4, SIZES, [0, 10, 20, 3020, 4020]),
}  # fmt: skip


@both
@pytest.mark.parametrize("name", STORIES)
def test_stories(make_jobs, name, plain):
    """Jobs start when the rule of the policy says."""
    story = STORIES[name]
    jobs, given = make_jobs(*story.jobs), dict(story.given)
    for column in set(given) - {"overrun"}:
        getattr(jobs, column)[:] = given.pop(column)
    ran(jobs, story.processors, story.policy, plain=plain, **given)
    assert story.starts == jobs.start.tolist()
    assert story.found == {column: getattr(jobs, column).tolist() for column in story.found}


def test_borders_of_the_categories():
    """Medium are jobs from 1,000 to 10,000 s, both included, by their estimates."""
    policy = SelectiveCategorized()
    policy.begin(1)
    assert {1.0} == {policy.threshold_of(estimate) for estimate in (1, 5000, 20_000)}
    for estimate, slowdown in ((999, 3), (1000, 5), (10_000, 7), (10_001, 9)):
        end = 100 * slowdown
        policy.ended(end, [EndedJob(0, 1, estimate, 0, end - 100, end)])
    found = [policy.threshold_of(estimate) for estimate in (0, 999, 1000, 10_000, 10_001)]
    assert [3.0, 3.0, 6.0, 6.0, 9.0] == found
    policy.begin(1)
    assert 1.0 == policy.threshold_of(999)


def test_usage_decays_by_half():
    """After one half-life half is left; steady use of p processors comes to p h / ln 2."""
    assert [1.0, 0.5, 0.25, 0.0] == [half(lives) for lives in (0.0, 1.0, 2.0, 2000.0)]
    assert pytest.approx(2**-0.3, rel=1e-15) == half(0.3)
    assert 50.0 == Usage(used=100.0).at(60, 60)
    assert pytest.approx(3 * 60 / np.log(2)) == Usage(held=3).at(10**5, 60)
    assert pytest.approx(3.0, rel=1e-4) == Usage(held=3).at(1, 10**5)


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


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file of queues."""

    def writer(text):
        path = tmp_path / "queues.toml"
        path.write_text(text)
        return path

    return writer


@both
def test_queues_from_a_file(make_jobs, write, plain):
    """Each queue named has its own limits, the others those of [other]."""
    jobs: JobTable = make_jobs(*[(0, 10, 2)] * 7)
    jobs.queue[:] = 9, 9, 3, 3, 1, 1, 2
    jobs.user[:] = 1, 2, 3, 3, 4, 5, 6
    ran(jobs, 99, f"multi-queue:file={write(QUEUES)}", plain=plain)
    assert [0, 10, 0, 10, 0, 10, 0] == jobs.start.tolist()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("user-jobs = 0", "user-jobs 0: must be a whole number of at least 1"),
        ("users = 3", "users: not a setting; choose user-jobs, user-processors, queues, other"),
        ("[[queues]]\npriority = 1", "queues[0].queues None: must be names or numbers"),
        ("[[queues]]\nqueues = [1]\njob = 3", "queues[0].job: not a setting; choose queues"),
        ("[[queues]]\nqueues = [1]\npriority = 'x'", "queues[0].priority 'x': must be a number"),
        ("[[queues]]\nqueues = [1, 1]", "queues[0].queues: 1 is named twice"),
        ("queues = 3", "queues: must be tables"),
        ("other = 3", "other: must be a table"),
        ("[", "not TOML"),
    ],
)
def test_wrong_file_of_queues(write, text, words):
    """What is wrong in the file is reported with file, place, value and rule, in one line."""
    path = write(text)
    with pytest.raises(QuantityError, match=re.escape(f"{path}: {words}")):
        parse_scheduler(f"multi-queue:file={path}")


def test_a_queue_named_twice(write):
    """A priority in the text and rules in the file contradict each other."""
    path = write("[[queues]]\nqueues = [1]")
    with pytest.raises(QuantityError, match="queue 1 is also in"):
        parse_scheduler(f"multi-queue:file={path},priorities=1:3")
