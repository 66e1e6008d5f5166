"""How long users think: as recorded, by a line, as before, going on or taking a break."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hpcrowd.agents import (
    BatchOrder,
    Composed,
    Continuation,
    ContinuationLaw,
    LinearThink,
    OwnPauses,
    RecordedPauses,
    Release,
    Units,
    Work,
    add_users,
)
from hpcrowd.agents.behaviours.think import Samples, response_time, think_time_pairs
from hpcrowd.agents.behaviours.when import Reason
from hpcrowd.environment import JobTable, Simulation, State
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.errors import QuantityError

MakeJobs = Callable[..., JobTable]
START, ENDED, FOLLOWS = Reason.START, Reason.ENDED, Reason.FOLLOWS


def release(reason: Reason, pause: int = 100, awaited: int = 0) -> Release:
    """A release of unit 1."""
    return Release(1, 0, reason, pause, awaited)


def user_of(number: int = 1, response: int = 0, seed: int = 0) -> Any:
    """A user whose unit 0 is one job that was answered after ``response`` s."""
    jobs = SimpleNamespace(submit=np.array([50]), end=np.array([50 + response]))
    return SimpleNamespace(
        number=number,
        stream=np.random.default_rng(seed),
        model=SimpleNamespace(jobs=jobs),
        jobs_of=lambda unit: np.array([0]),
    )


def pauses_of_all_kinds(make_jobs: MakeJobs) -> Units:
    """User 1: inside sessions think times 100, 200 and gaps 150, 400; between them 9 h and 2 h.

    User 2 has only a break of 3 h, user 3 nothing at all.
    """
    hour = HOUR
    return Work.of(
        make_jobs(
            (0, 50, 1, 50, 1), (150, 200, 1, 200, 1), (550, 10, 1, 10, 1),
            (560 + 9 * hour, 10, 1, 10, 1),
            (570 + 11 * hour, 10, 1, 10, 1),
            (0, 10, 1, 10, 2), (10 + 3 * hour, 10, 1, 10, 2),
            (0, 10, 1, 10, 3),
        )
    ).by_batch  # fmt: skip


def test_recorded_pause() -> None:
    """Recorded pauses are what was recorded, whichever released the unit."""
    for reason in (ENDED, FOLLOWS):
        assert (77, False) == RecordedPauses().pause(user_of(), release(reason, 77))


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
def test_linear_pause(reason: Reason, pause: int, response: int, expected: int) -> None:
    """Think times below 8 h are slope * response + intercept; all else stays as recorded."""
    found = LinearThink(0.5, 1).pause(user_of(response=response), release(reason, pause))
    assert (expected, False) == found


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
def test_linear_story(make_jobs: MakeJobs, plain: bool) -> None:
    """The response is the simulated one, waiting included, of the job that ended last."""
    # Job 1 holds the machine; job 2 of user 2 waits for it; job 3 comes after the response of 2.
    jobs = make_jobs((0, 400, 1, 400, 1), (100, 50, 1, 50, 2), (200, 10, 1, 10, 2))
    jobs.recorded_end[1] = 150
    model = Simulation(jobs, 1, "fcfs", plain=plain)
    add_users(model, Work.of(jobs), lambda work: Composed(BatchOrder(work), LinearThink(2.0, 7)))
    model.run()
    assert [0, 400, 450 + 2 * 350 + 7] == jobs.start.tolist()


def test_fitted_line_by_hand(make_jobs: MakeJobs) -> None:
    """Least squares over pairs of response and think time, those from 8 h on left out."""
    responses, thinks = [10, 20, 60, 30], [25, 45, 125, 65]  # 2 * response + 5
    rows: list[tuple[int, ...]] = []
    for user, (response, think) in enumerate(zip(responses, thinks, strict=True)):
        rows += [(0, response, 1, response, user), (response + think, 1, 1, 1, user)]
    rows += [(0, 77, 1, 77, 9), (77 + 8 * HOUR, 1, 1, 1, 9)]
    units = Work.of(make_jobs(*rows)).by_batch
    assert (responses, thinks) == tuple(pairs.tolist() for pairs in think_time_pairs(units))
    line = LinearThink.fit(units)
    assert pytest.approx((2.0, 5.0)) == (line.slope, line.intercept)
    # A longer cut lets the absence in, a shorter one leaves pairs out.
    assert [*thinks, 8 * HOUR] == think_time_pairs(units, cut=9 * HOUR)[1].tolist()
    assert [25, 45] == think_time_pairs(units, cut=50)[1].tolist()


def test_fitted_line_minimises_the_squares(make_jobs: MakeJobs) -> None:
    """No line near it has a smaller sum of squared errors."""
    random = np.random.default_rng(3)
    rows: list[tuple[int, ...]] = []
    for user, response in enumerate(random.integers(1, 5000, 60).tolist()):
        think = 300 + response + int(random.integers(0, 900))
        rows += [(0, response, 1, response, user), (response + think, 1, 1, 1, user)]
    units = Work.of(make_jobs(*rows)).by_batch
    response, think = think_time_pairs(units)
    line = LinearThink.fit(units)

    def error(slope: float, intercept: float) -> float:
        return float(((think - slope * response - intercept) ** 2).sum())

    best = error(line.slope, line.intercept)
    for by in (0.99, 1.01):
        assert best < error(line.slope * by, line.intercept)
        assert best < error(line.slope, line.intercept * by)
    assert 60 == len(think)


def test_line_through_the_origin_is_one(make_jobs: MakeJobs) -> None:
    """Think times that are just twice the response are no error for being a hair below 0."""
    rows: list[tuple[int, ...]] = []
    for user, response in enumerate((100, 200, 300, 400)):
        rows += [(0, response, 1, response, user), (3 * response, 1, 1, 1, user)]
    line = LinearThink.fit(Work.of(make_jobs(*rows)).by_batch)
    assert (pytest.approx(2.0), 0.0) == (line.slope, line.intercept)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinearThink(-0.1, 5), "-0.1 .* would be negative"),
        (lambda: LinearThink(0.1, -5), "-5 s: would be negative"),
        (lambda: LinearThink(float("nan"), 5), "slope and an intercept of at least 0"),
        (lambda: LinearThink(1, float("inf")), "slope and an intercept of at least 0"),
        (lambda: LinearThink(1, 1, 0), "cut 0 s"),
        (lambda: ContinuationLaw(1.1), "limit must be a probability"),
        (lambda: ContinuationLaw(-0.1), "limit must be a probability"),
        (lambda: ContinuationLaw(0.5, -1), "decline at least 0"),
        (lambda: ContinuationLaw(0.5, float("inf")), "decline at least 0"),
    ],
)
def test_parameters_that_make_no_think_time(make: Callable[[], Any], message: str) -> None:
    """A line that could be negative and a law that is not a probability are reported."""
    with pytest.raises(QuantityError, match=message):
        make()


def test_too_few_pairs_for_a_line(make_jobs: MakeJobs) -> None:
    """Without two different responses there is no line, and the error says what to give."""
    units = Work.of(make_jobs((0, 10, 1), (100, 10, 1), (200, 10, 1))).by_batch
    with pytest.raises(QuantityError, match=r"2 pairs of response and think time.*give slope"):
        LinearThink.fit(units)


def test_falling_line_is_reported(make_jobs: MakeJobs) -> None:
    """Where think times fall with the response, the fitted line is refused with its numbers."""
    rows = [(0, 10, 1, 10, 1), (1010, 1, 1, 1, 1), (0, 500, 1, 500, 2), (501, 1, 1, 1, 2)]
    with pytest.raises(QuantityError, match=r"think time -2\.0.*would be negative"):
        LinearThink.fit(Work.of(make_jobs(*rows)).by_batch)


def test_response_of_a_unit() -> None:
    """Of several jobs the one to end last, of those the later; nothing ran: answered at once."""

    def respond(submit: list[int], end: list[int]) -> int:
        jobs: Any = SimpleNamespace(submit=np.array(submit), end=np.array(end))
        return response_time(jobs, np.arange(len(submit)))

    assert 30 == respond([0, 10, 20], [25, 40, 39])
    assert 20 == respond([0, 10, 20], [40, 20, 40])
    assert 20 == respond([0, 5], [20, -1])
    assert 0 == respond([3], [-1])
    assert 0 == respond([3, 9], [-1, -1])


def test_own_pauses_by_reason(make_jobs: MakeJobs) -> None:
    """Think times where a dependency was the reason, inter-arrival times where the order was."""
    units = pauses_of_all_kinds(make_jobs)
    inside = Samples(units, units.continues == 1)
    between = Samples(units, units.continues == 0, 8 * HOUR)
    one = user_of(1)
    assert [100, 200] == inside.of(one, ENDED).tolist()
    assert [150, 400] == inside.of(one, FOLLOWS).tolist()
    assert [2 * HOUR] == between.of(one, ENDED).tolist()
    assert [2 * HOUR + 10] == between.of(one, FOLLOWS).tolist()


def test_longest_break_is_not_among_them(make_jobs: MakeJobs) -> None:
    """A break of 8 h is too long, one of a second less is not."""
    jobs = make_jobs((0, 10, 1), (10 + 8 * HOUR, 10, 1), (16 * HOUR + 19, 10, 1))
    units = Work.of(jobs).by_batch
    between = Samples(units, units.continues == 0, 8 * HOUR)
    assert [8 * HOUR - 1] == between.of(user_of(), ENDED).tolist()


def test_who_has_none_draws_from_all(make_jobs: MakeJobs) -> None:
    """Users without pauses of a kind draw from everybody's; if nobody has one, pauses are 0."""
    units = pauses_of_all_kinds(make_jobs)
    own = OwnPauses(units)
    assert [100, 200] == own.inside.of(user_of(2), ENDED).tolist()
    assert [100, 200] == own.inside.of(user_of(99), ENDED).tolist()  # nobody that was recorded
    between = Samples(units, units.continues == 0, 8 * HOUR)
    assert [3 * HOUR] == between.of(user_of(2), ENDED).tolist()
    assert [2 * HOUR, 3 * HOUR] == between.of(user_of(3), ENDED).tolist()
    nobody = OwnPauses(Work.of(make_jobs((0, 1, 1))).by_batch)
    assert (0, True) == nobody.pause(user_of(), release(ENDED))


def test_own_pauses_are_drawn_alike(make_jobs: MakeJobs) -> None:
    """Each own pause comes as often as the others; the user stays at work for it."""
    own, user, count = OwnPauses(pauses_of_all_kinds(make_jobs)), user_of(seed=4), 4000
    found = [own.pause(user, release(ENDED)) for _ in range(count)]
    assert {(100, True), (200, True)} == set(found)
    shorter = found.count((100, True)) / count
    assert abs(shorter - 0.5) < 5 * np.sqrt(0.25 / count)


@pytest.mark.parametrize(("minutes", "expected"), [(0, 0.8), (20, 0.4), (180, 0.08)])
def test_probability_to_go_on(make_jobs: MakeJobs, minutes: int, expected: float) -> None:
    """0.8 / (0.05 RT + 1), RT in minutes: who goes on stays, the others take a break below 8 h."""
    assert pytest.approx(expected) == ContinuationLaw().probability(minutes * 60)
    part, count = Continuation(pauses_of_all_kinds(make_jobs)), 4000
    user = user_of(response=minutes * 60, seed=minutes)
    found = [part.pause(user, release(ENDED)) for _ in range(count)]
    assert {(100, True), (200, True), (2 * HOUR, False)} == set(found)
    went_on = sum(pause.stays for pause in found) / count
    assert abs(went_on - expected) < 5 * np.sqrt(expected * (1 - expected) / count)


def test_who_waited_for_nothing_is_not_disappointed(make_jobs: MakeJobs) -> None:
    """A unit that waited for none counts as answered at once."""
    law = ContinuationLaw(limit=1.0, decline=1e9)
    part = Continuation(pauses_of_all_kinds(make_jobs), law)
    user = user_of(response=100_000)
    for _ in range(50):
        assert part.pause(user, release(FOLLOWS, awaited=-1)).stays
        assert not part.pause(user, release(FOLLOWS)).stays


def test_rejected_work_is_answered_at_once(make_jobs: MakeJobs) -> None:
    """After a job larger than the machine the think time is that of a response of 0."""
    jobs = make_jobs((0, 400, 9), (500, 50, 1))
    model = Simulation(jobs, 4, "easy")
    add_users(model, Work.of(jobs), lambda work: Composed(BatchOrder(work), LinearThink(2.0, 7)))
    model.run()
    assert [0, 7] == jobs.submit.tolist()
    assert [State.REJECTED, State.COMPLETED] == jobs.state.tolist()
