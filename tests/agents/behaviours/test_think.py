"""How long users think: as recorded, by a line, as before, going on or taking a break."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hpcrowd import Recipe, Work
from hpcrowd.agents.behaviours.think import Samples, response_time, think_time_pairs
from hpcrowd.agents.behaviours.when import BatchOrder, Reason, Recorded, Release, SessionGraph
from hpcrowd.behaviours import Composed, Continuation, ContinuationLaw, LinearThink, OwnPauses
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.errors import QuantityError

ENDED, FOLLOWS = Reason.ENDED, Reason.FOLLOWS


def release(reason, pause=100, awaited=0):
    """A release of unit 1."""
    return Release(1, 0, reason, pause, awaited)


def user_of(number=1, response=0, seed=0):
    """A user whose unit 0 is one job that was answered after ``response`` s."""
    jobs = SimpleNamespace(submit=np.array([50]), end=np.array([50 + response]))
    return SimpleNamespace(
        number=number,
        stream=np.random.default_rng(seed),
        model=SimpleNamespace(jobs=jobs),
        jobs_of=lambda unit: np.array([0]),
    )


@pytest.fixture
def units(make_jobs):
    """User 1: inside sessions think times 100, 200 and gaps 150, 400; between them 9 h and 2 h.

    User 2 has only a break of 3 h, user 3 nothing at all.
    """
    later = [(560 + 9 * HOUR, 10, 1), (570 + 11 * HOUR, 10, 1)]
    others = [(0, 10, 1, 10, 2), (10 + 3 * HOUR, 10, 1, 10, 2), (0, 10, 1, 10, 3)]
    jobs = make_jobs((0, 50, 1), (150, 200, 1), (550, 10, 1), *later, *others)
    return Work.of(jobs).by_batch


def taught(make_jobs, *pairs):
    """Units of users who each were answered once and thought for as long."""
    rows: list[tuple[int, ...]] = []
    for user, (response, think) in enumerate(pairs):
        rows += [(0, response, 1, response, user), (response + think, 1, 1, 1, user)]
    return Work.of(make_jobs(*rows)).by_batch


@pytest.mark.parametrize(
    ("reason", "pause", "response", "expected"),
    [
        (ENDED, 100, 1000, 501),  # 0.5 * 1000 + 1
        (ENDED, 100, 1001, 502),  # 501.5, rounded half up
        (ENDED, 0, 0, 1),
        (ENDED, 8 * HOUR - 1, 10, 6),
        (ENDED, 8 * HOUR, 10, 8 * HOUR),  # an absence, not a reaction
        (FOLLOWS, 100, 1000, 100),  # waited for nothing that ended later
    ],
)
def test_linear_pause(reason, pause, response, expected):
    """Think times below 8 h are slope * response + intercept; all else stays as recorded."""
    found = LinearThink(0.5, 1).pause(user_of(response=response), release(reason, pause))
    assert (expected, False) == found


def test_fitted_line_by_hand(make_jobs):
    """Least squares over pairs of response and think time, those from 8 h on left out."""
    pairs = [(10, 25), (20, 45), (60, 125), (30, 65)]  # 2 * response + 5
    units = taught(make_jobs, *pairs, (77, 8 * HOUR))
    found = think_time_pairs(units)
    assert pairs == list(zip(*(column.tolist() for column in found), strict=True))
    line = LinearThink.fit(units)
    assert pytest.approx((2.0, 5.0)) == (line.slope, line.intercept)
    # A longer cut lets the absence in, a shorter one leaves pairs out.
    assert [25, 45, 125, 65, 8 * HOUR] == think_time_pairs(units, cut=9 * HOUR)[1].tolist()
    assert [25, 45] == think_time_pairs(units, cut=50)[1].tolist()
    # Think times of just twice the response are no error for being a hair below 0.
    line = LinearThink.fit(taught(make_jobs, *((each, 2 * each) for each in (100, 200, 300, 400))))
    assert (pytest.approx(2.0), 0.0) == (line.slope, line.intercept)


@pytest.mark.parametrize(
    ("pairs", "told"),
    [([(10, 90), (10, 80)], r"2 pairs of response and think time.*give slope"),
     ([(10, 1000), (500, 1)], r"think time -2\.0.*would be negative")],
)  # fmt: skip
def test_lines_that_cannot_be_fitted(make_jobs, pairs, told):
    """Two different responses are needed, and think times must not fall with them."""
    with pytest.raises(QuantityError, match=told):
        LinearThink.fit(taught(make_jobs, *pairs))


@pytest.mark.parametrize(
    ("submit", "end", "expected"),
    [([0, 10, 20], [25, 40, 39], 30), ([0, 10, 20], [40, 20, 40], 20), ([0, 5], [20, -1], 20),
     ([3, 9], [-1, -1], 0)],
)  # fmt: skip
def test_response_of_a_unit(submit, end, expected):
    """Waiting included, of the job to end last, of those the later; nothing ran: at once."""
    jobs: Any = SimpleNamespace(submit=np.array(submit), end=np.array(end))
    assert expected == response_time(jobs, np.arange(len(submit)))


def test_own_pauses_by_reason(units):
    """Think times or inter-arrival times by the reason; who has none draws from everybody's."""
    inside = Samples(units, units.continues == 1)
    between = Samples(units, units.continues == 0, 8 * HOUR)
    for samples, user, reason, expected in (
        (inside, 1, ENDED, [100, 200]),
        (inside, 1, FOLLOWS, [150, 400]),
        (inside, 2, ENDED, [100, 200]),
        (inside, 99, ENDED, [100, 200]),  # nobody that was recorded
        (between, 1, ENDED, [2 * HOUR]),
        (between, 1, FOLLOWS, [2 * HOUR + 10]),
        (between, 2, ENDED, [3 * HOUR]),
        (between, 3, ENDED, [2 * HOUR, 3 * HOUR]),
        (Samples(units, units.continues == 0, 3 * HOUR), 2, ENDED, [2 * HOUR]),  # less than 3 h
    ):
        assert expected == samples.of(user_of(user), reason).tolist()


def test_own_pauses_are_drawn_alike(make_jobs, units):
    """Each own pause comes as often as the others; the user stays for it; without any it is 0."""
    own, user, count = OwnPauses(units), user_of(seed=4), 4000
    found = [own.pause(user, release(ENDED)) for _ in range(count)]
    assert {(100, True), (200, True)} == set(found)
    assert abs(found.count((100, True)) / count - 0.5) < 5 * np.sqrt(0.25 / count)
    nobody = OwnPauses(Work.of(make_jobs((0, 1, 1))).by_batch)
    assert (0, True) == nobody.pause(user_of(), release(ENDED))


@pytest.mark.parametrize(("minutes", "expected"), [(0, 0.8), (20, 0.4), (180, 0.08)])
def test_probability_to_go_on(units, minutes, expected):
    """0.8 / (0.05 RT + 1), RT in minutes: who goes on stays, the others take a break below 8 h."""
    assert pytest.approx(expected) == ContinuationLaw().probability(minutes * 60)
    part, count = Continuation(units), 4000
    user = user_of(response=minutes * 60, seed=minutes)
    found = [part.pause(user, release(ENDED)) for _ in range(count)]
    assert {(100, True), (200, True), (2 * HOUR, False)} == set(found)
    went_on = sum(pause.stays for pause in found) / count
    assert abs(went_on - expected) < 5 * np.sqrt(expected * (1 - expected) / count)
    # A unit that waited for none counts as answered at once.
    part, user = Continuation(units, ContinuationLaw(limit=1.0, decline=1e9)), user_of(response=9e4)
    for awaited in (-1, 0):
        found = {part.pause(user, release(FOLLOWS, awaited=awaited)).stays for _ in range(50)}
        assert {awaited < 0} == found


def test_users_who_wait_for_nothing_are_not_called(make_jobs):
    """Composed of recorded submissions only, a behaviour asks for no news."""
    work = Work.of(make_jobs((0, 1, 1)))
    parts = [Composed(when(work)).reacts for when in (Recorded, SessionGraph, BatchOrder)]
    assert [False, True, True] == parts
    assert [False, True] == [Recipe(when)(work).reacts for when in ("recorded", "sessions")]
