"""The measures and statements of Zakay and Feitelson 2015, and other readings, as tiny stories."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hpcrowd.analysis.features.distance import apart
from hpcrowd.environment import Clock, parse_swf
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.scenarios.kinds.replay import replay
from hpcrowd.scenarios.studies.zakay2015 import readings
from hpcrowd.scenarios.studies.zakay2015.measures import (
    SIMULATIONS,
    LogOutcomes,
    Outcome,
    mean_shares,
    queue_shares,
    share_distance,
    slot_share,
)
from hpcrowd.scenarios.studies.zakay2015.statements import RULES


def test_queue_shares_are_exact() -> None:
    """Jobs wait from 0 to 4 and from 2 to 8, within ten seconds: two wait for 2 s, one for 6."""
    shares = queue_shares(np.array([0, 2, 9]), np.array([4, 8, 9]), 0, 10)
    assert [pytest.approx(share) for share in (0.2, 0.6, 0.2)] == shares.tolist()


def test_queue_shares_count_only_the_time_asked_for() -> None:
    """What waited before and after does not count, what still waits does."""
    assert [0.0, 1.0] == queue_shares(np.array([0]), np.array([99]), 10, 20).tolist()
    assert [1.0] == queue_shares(np.array([0]), np.array([99]), 10, 10).tolist()


def test_slots_are_two_hours_around_the_openings() -> None:
    """6:30 and 18:29:59 lie within, 6:29:59 and 8:30 outside."""
    half = HOUR // 2
    times = np.array([6 * HOUR + half, 18 * HOUR + half - 1, 6 * HOUR + half - 1, 8 * HOUR + half])
    assert 0.5 == slot_share(times + 3 * DAY, Clock())


def test_distances_of_distributions() -> None:
    """0 for the same, 1 for apart, and the largest difference of the CDFs in between."""
    assert 0.0 == apart([1, 2], [2, 1]).ks
    assert 1.0 == apart([1, 2], [3, 4]).ks
    assert 0.5 == apart([1, 2], [1, 3]).ks
    assert 0.25 == share_distance(np.array([1.0]), np.array([0.75, 0.0, 0.25]))
    assert [0.5, 0.25, 0.25] == mean_shares([np.array([1.0]), np.array([0, 0.5, 0.5])]).tolist()


# ---- statements ------------------------------------------------------------------------------


def outcome(**changes: Any) -> Outcome:
    """Return what a log was like with office hours on Mondays, five users, an empty queue."""
    profile = np.zeros(168)
    profile[8:18] = 0.1
    usual = Outcome(
        seed=0,
        wait_mean_s=100.0,
        lateness_mean_s=0.0,
        profile=profile,
        slot_share=0.1,
        after_last_share=0.0,
        activity_s=np.arange(1, 6) * 10 * DAY,
        queue=np.array([1.0]),
    )
    return replace(usual, **changes)


def check(name: str, moved: int = 0, **outcomes: Outcome) -> bool:
    """Return whether a statement holds on a log; simulations not given are as recorded."""
    of = {
        key: [outcomes.get("_".join(key), outcomes.get(key[0], outcome()))] for key in SIMULATIONS
    }
    jobs = np.array([1, 1, 1, 1, 50])
    log = LogOutcomes("KTH", outcome(), of, moved, jobs)
    (rule,) = (rule for rule in RULES if rule.name == name)
    return bool(rule.check(log)[2])


FLAT = np.full(168, 1 / 168)
LONG = np.array([10, 20, 30, 40, 90]) * DAY
LONG_OTHER = np.array([90, 20, 30, 40, 50]) * DAY
BUSY, FULL = np.array([0.5, 0.5]), np.array([0.0] * 9 + [1.0])


@pytest.mark.parametrize(
    ("name", "outcomes", "holds"),
    [
        ("identity", {}, True),
        ("adjusted flattens the week", {"adjusted": outcome(profile=FLAT)}, True),
        ("adjusted flattens the week", {}, False),
        ("adjusted waits less", {"adjusted": outcome(wait_mean_s=99.0)}, True),
        ("adjusted waits less", {}, False),
        ("distribution has peaks", {"distribution": outcome(slot_share=0.2)}, True),
        ("distribution has peaks", {"distribution": outcome(slot_share=0.14)}, False),
        ("distribution waits long", {"distribution": outcome(wait_mean_s=101.0)}, True),
        ("distribution waits long", {}, False),
        ("distribution has high throughput", {"distribution": outcome(activity_s=LONG // 2)}, True),
        ("distribution has high throughput", {}, False),
        ("hyperactive users take long", {"distribution": outcome(activity_s=LONG)}, True),
        ("hyperactive users take long", {"distribution": outcome(activity_s=LONG_OTHER)}, False),
        ("hyperactive users take long", {}, False),
        ("fluid keeps the week", {"adjusted": outcome(profile=FLAT)}, True),
        ("fluid keeps the week", {"fluid": outcome(profile=FLAT)}, False),
        ("fluid keeps the throughput", {}, True),
        ("fluid keeps the throughput", {"fluid": outcome(activity_s=2 * LONG)}, False),
        ("a few fluid users take long", {}, False),
        ("order of waits", {"conventional": outcome(wait_mean_s=300.0)}, False),
        (
            "order of waits",
            {"fluid": outcome(wait_mean_s=50.0), "conventional": outcome(wait_mean_s=300.0)},
            True,
        ),
        ("FIFO close to EASY with feedback", {}, True),
        ("FIFO close to EASY with feedback", {"fluid_fcfs": outcome(queue=BUSY)}, False),
        ("FIFO far from EASY without", {}, False),
        ("FIFO far from EASY without", {"conventional_fcfs": outcome(queue=FULL)}, True),
        ("feedback narrows the gap", {"conventional_fcfs": outcome(queue=FULL)}, True),
        ("feedback narrows the gap", {}, False),
        ("shorter queues with feedback", {"conventional": outcome(queue=BUSY)}, True),
        ("shorter queues with feedback", {}, False),
    ],
)
def test_statement_follows_from_the_measures(
    name: str, outcomes: dict[str, Outcome], holds: bool
) -> None:
    """Each rule holds and fails where its measure says so."""
    assert holds is check(name, **outcomes)


def test_a_job_that_moved_breaks_the_identity() -> None:
    """One is enough."""
    assert check("identity", moved=1) is False


def test_without_waits_there_are_no_ratios() -> None:
    """Nothing is divided by zero, and nothing holds."""
    nobody = {"conventional": outcome(wait_mean_s=None), "adjusted": outcome(wait_mean_s=None)}
    assert check("adjusted waits less", **nobody) is False


# ---- other readings --------------------------------------------------------------------------

#: A user with sessions at 0 to 60 s and from 50,000 s on; the first one's last job runs for long,
#: so that the second session waits for nothing and is released by the last submission before.
TRACE = parse_swf(
    "; MaxProcs: 9\n"
    "1 0 0 50 1 -1 -1 1 99 -1 1 1 -1 -1 -1 -1 -1 -1\n"
    "2 60 0 90000 1 -1 -1 1 90000 -1 1 1 -1 -1 -1 -1 -1 -1\n"
    "3 50000 0 10 1 -1 -1 1 99 -1 1 1 -1 -1 -1 -1 -1 -1\n"
)


def submits(users: Any) -> list[int]:
    """Return the submissions of that user."""
    return replay(TRACE, users=users).jobs.submit.tolist()


def test_session_open_at_its_last_submission_lets_the_next_one_in() -> None:
    """Released at 60, within the session: the third job comes after the user's own pause, 60 s."""
    assert [0, 60, 120] == submits("fluid")


@pytest.mark.parametrize(
    "users",
    [
        readings.fluid_with(readings.OverAtLast),
        readings.fluid_with(readings.RecordedSessions, readings.SessionsApart),
    ],
)
def test_session_over_at_its_last_submission_does_not(users: Any) -> None:
    """The third job keeps to the session that it began."""
    assert 50_000 == submits(users)[2]


def test_session_may_last_until_its_jobs_end() -> None:
    """The second batch ends within the second session, so the first lasts until then."""
    assert 120 == submits(readings.fluid_with(readings.UntilJobsEnd))[2]


def test_sessions_that_run_together_are_counted() -> None:
    """The second session began within an hour under fluid users, and did not in the record."""
    assert 1.0 == readings.run_together(replay(TRACE, users="fluid"))
    assert 0.0 == readings.run_together(replay(TRACE, users="rigid"))


def test_nights_may_begin_on_their_days() -> None:
    """All weekday nights: Monday 3:00 belongs to Sunday's night, Saturday 3:00 to Friday's."""

    class Nights(readings.EveningPattern):
        def __init__(self) -> None:
            super().__init__()
            self.shifts = replace(self.shifts, day_share=0.0, weekday_share=1.0, shift=0)

    seen = []

    class Watch(Nights):
        def is_open(self, user: Any, at: int) -> bool:
            seen.append([super(Watch, self).is_open(user, day * DAY + 3 * HOUR) for day in (0, 5)])
            return super().is_open(user, at)

    def users(work: Any) -> Any:
        from hpcrowd.agents.behaviours.composed import Composed
        from hpcrowd.agents.behaviours.think import Continuation
        from hpcrowd.agents.behaviours.when import BatchOrder

        return Composed(BatchOrder(work), Continuation(work.by_batch), Watch(), waits=True)

    replay(TRACE, users=users)
    assert [False, True] == seen[0]
