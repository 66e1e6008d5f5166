"""What each response does to a job, and what users do afterwards: tiny stories, job by job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hpcrowd.agents import (
    BatchOrder,
    Composed,
    Degrade,
    Delay,
    During,
    Intention,
    Reaction,
    RecentWaits,
    Reconfigure,
    Recorded,
    Renounce,
    ReplayUser,
    SessionDefinition,
    SessionGraph,
    Switch,
    Work,
    add_users,
)
from hpcrowd.environment import ClusterSpec, JobTable, QuantityError, Simulation, State

MakeJobs = Callable[..., JobTable]
EVERY_JOB = SessionDefinition("arrival", None)
FROM_50_TO_100 = During([(50, 100)])

both = pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])


def run(
    jobs: JobTable,
    *reactions: Reaction,
    when: Any = BatchOrder,
    processors: int = 8,
    sessions: SessionDefinition = EVERY_JOB,
    **options: Any,
) -> list[ReplayUser]:
    """Replay jobs with users who react; return the users."""
    model = Simulation(jobs, processors, **options)
    work = Work.of(jobs, sessions)
    users = add_users(model, work, lambda work: Composed(when(work), reactions=reactions))
    model.run()
    return users


def notes(users: list[ReplayUser]) -> list[tuple[Any, ...]]:
    """What was noted, without the names of reactions, waits and requests."""
    return [(note.row, *note[2:9], note.cluster) for user in users for note in user.notes]


@both
def test_delay_until_the_period_has_ended(make_jobs: MakeJobs, plain: bool) -> None:
    """A job due in the period is submitted when it has ended; what depends on it moves along."""
    jobs = make_jobs((0, 60, 1), (70, 10, 2), (120, 10, 1))  # thinks for 10 s, then for 40 s
    users = run(jobs, Delay(FROM_50_TO_100), plain=plain)
    assert [0, 100, 150] == jobs.submit.tolist()
    assert [(1, "delay", 70, 2, 10, 2, 10, 30, "")] == notes(users)


@both
def test_delay_by_a_time(make_jobs: MakeJobs, plain: bool) -> None:
    """With its own time the delay does not ask when the period has ended."""
    jobs = make_jobs((40, 10, 1), (70, 10, 1))
    run(jobs, Delay(FROM_50_TO_100, by=7), when=Recorded, plain=plain)
    assert [40, 77] == jobs.submit.tolist()


@both
def test_first_and_last_second_of_a_period(make_jobs: MakeJobs, plain: bool) -> None:
    """The first second of a period belongs to it, the last one does not."""
    jobs = make_jobs((49, 1, 1), (50, 1, 1), (99, 1, 1), (100, 1, 1))
    run(jobs, Delay(FROM_50_TO_100), when=Recorded, plain=plain)
    assert [49, 100, 100, 100] == jobs.submit.tolist()


@both
def test_unit_that_is_partly_delayed(make_jobs: MakeJobs, plain: bool) -> None:
    """Each job of a batch is judged at its own second; the next batch follows the last of them."""
    # Two batches: three jobs within the first, which ends at 1000; then one more.
    jobs = make_jobs((40, 960, 1), (60, 5, 1), (110, 5, 1), (1010, 5, 1))
    run(jobs, Delay(During([(50, 100), (105, 300)])), sessions=SessionDefinition("arrival", 60),
        plain=plain)  # fmt: skip
    assert [40, 100, 300, 1010] == jobs.submit.tolist()


class Noted(BatchOrder):
    """Notes when the last job of each batch was submitted."""

    def __init__(self, work: Work) -> None:
        super().__init__(work)
        self.last: list[int] = []

    def sent(self, user: ReplayUser, unit: int, last: int) -> Any:
        """Note it."""
        self.last.append(last)
        return super().sent(user, unit, last)


@both
def test_next_batch_waits_for_the_delayed_submission(make_jobs: MakeJobs, plain: bool) -> None:
    """A batch that follows the submission of a delayed one keeps its distance from it."""
    # The second batch starts while the first one runs, so it follows its submission by 20 s.
    jobs = make_jobs((40, 500, 1), (60, 5, 1), (160, 5, 1))
    seen: list[Noted] = []

    def when(work: Work) -> Noted:
        seen.append(Noted(work))
        return seen[0]

    run(jobs, Delay(FROM_50_TO_100), when=when, plain=plain)
    assert [40, 100, 200] == jobs.submit.tolist()
    assert [40, 100, 200] == seen[0].last


@both
def test_degrade_takes_processors(make_jobs: MakeJobs, plain: bool) -> None:
    """Half the processors, halves rounded up, for the same time; single processors stay."""
    jobs = make_jobs((60, 10, 4, 20), (60, 10, 3, 20), (60, 10, 1, 20), (40, 10, 4, 20))
    users = run(jobs, Degrade(FROM_50_TO_100), when=Recorded, plain=plain)
    assert [2, 2, 1, 4] == jobs.processors.tolist()
    assert [10] * 4 == (jobs.end - jobs.start).tolist()
    assert [20] * 4 == jobs.requested_time.tolist()
    assert [
        (0, "degrade", 60, 4, 10, 2, 10, 0, ""),
        (1, "degrade", 60, 3, 10, 2, 10, 0, ""),
    ] == notes(users)


@both
def test_degraded_job_may_fit(make_jobs: MakeJobs, plain: bool) -> None:
    """A job that would be rejected can be small enough afterwards."""
    jobs = make_jobs((60, 10, 12), (60, 10, 40))
    run(jobs, Degrade(FROM_50_TO_100), when=Recorded, plain=plain)
    assert [State.COMPLETED, State.REJECTED] == jobs.state.tolist()


@both
def test_reconfigure_keeps_the_work(make_jobs: MakeJobs, plain: bool) -> None:
    """Fewer processors for as much longer: 3 x 10 = 2 x 15; the request grows alike."""
    jobs = make_jobs((60, 10, 3, 20), (60, 7, 3, 7), (60, 10, 1, 20))
    users = run(jobs, Reconfigure(FROM_50_TO_100), when=Recorded, plain=plain)
    assert [2, 2, 1] == jobs.processors.tolist()
    assert [15, 11, 10] == (jobs.end - jobs.start).tolist()  # 10.5 is rounded up
    assert [30, 11, 20] == jobs.requested_time.tolist()
    assert [
        (0, "reconfigure", 60, 3, 10, 2, 15, 0, ""),
        (1, "reconfigure", 60, 3, 7, 2, 11, 0, ""),
    ] == notes(users)


@both
def test_reconfigure_with_less_efficiency(make_jobs: MakeJobs, plain: bool) -> None:
    """At an efficiency of 0.8 a job needs a quarter more work than before."""
    jobs = make_jobs((60, 100, 4, 200))
    run(jobs, Reconfigure(FROM_50_TO_100, factor=0.25, efficiency=0.8), plain=plain)
    assert (1, 500, 1000) == (jobs.processors[0], jobs.run_time[0], jobs.requested_time[0])


@both
@pytest.mark.parametrize("when", [BatchOrder, SessionGraph])
def test_user_continues_after_a_renounced_job(make_jobs: MakeJobs, plain: bool, when: Any) -> None:
    """It ends at the second at which it would have come, and the think time after it follows."""
    jobs = make_jobs((0, 60, 1), (70, 20, 2), (130, 10, 1))  # thinks for 10 s, then for 40 s
    users = run(jobs, Renounce(FROM_50_TO_100), when=when, plain=plain)
    assert [0, -1, 110] == jobs.submit.tolist()
    assert [State.COMPLETED, State.RENOUNCED, State.COMPLETED] == jobs.state.tolist()
    assert [(1, "renounce", 70, 2, 20, 0, 0, 0, "")] == notes(users)
    assert (3, 3) == (users[0].submitted, users[0].finished)


@both
def test_switch_to_another_cluster(make_jobs: MakeJobs, plain: bool) -> None:
    """The job runs there, at its speed; its user hears of its end."""
    jobs = make_jobs((0, 60, 1), (70, 20, 2, 40), (130, 10, 1))
    backup = {"backup": ClusterSpec(2, speed=2.0)}
    users = run(jobs, Switch(FROM_50_TO_100, "backup"), plain=plain, others=backup)
    assert [0, 1, 0] == jobs.cluster.tolist()
    assert [(0, 60), (70, 80), (120, 130)] == list(
        zip(jobs.start.tolist(), jobs.end.tolist(), strict=True)
    )
    assert 20 == jobs.requested_time[1]
    assert [(1, "switch", 70, 2, 20, 2, 10, 0, "backup")] == notes(users)


@both
def test_unit_on_two_clusters(make_jobs: MakeJobs, plain: bool) -> None:
    """A batch of which some jobs switch has ended when all of it has, wherever it ran."""
    jobs = make_jobs((40, 100, 1), (60, 50, 1), (200, 10, 1))  # thinks for 60 s
    half = {"half": ClusterSpec(2, speed=0.5)}
    run(jobs, Switch(FROM_50_TO_100, "half"), sessions=SessionDefinition("arrival", 60),
        plain=plain, others=half)  # fmt: skip
    assert [0, 1, 0] == jobs.cluster.tolist()
    assert [140, 160, 230] == jobs.end.tolist()


@both
def test_reactions_see_what_is_left(make_jobs: MakeJobs, plain: bool) -> None:
    """Each takes the job as the one before has left it; a renounced job is left alone."""
    jobs = make_jobs((60, 10, 8), (120, 10, 8))
    users = run(
        jobs,
        Delay(FROM_50_TO_100),
        Degrade(During([(100, 110)])),
        Degrade(During([(100, 110)]), name="again"),
        Renounce(During([(120, 130)])),
        Delay(During([(120, 140)])),
        when=Recorded,
        plain=plain,
    )
    assert [
        (0, "delay", 60, 8, 10, 8, 10, 40, ""),
        (0, "degrade", 60, 8, 10, 4, 10, 0, ""),
        (0, "degrade", 60, 4, 10, 2, 10, 0, ""),
        (1, "renounce", 120, 8, 10, 0, 0, 0, ""),
    ] == notes(users)
    assert [100, -1] == jobs.submit.tolist()


@both
def test_share_of_users_and_of_jobs(make_jobs: MakeJobs, plain: bool) -> None:
    """A share of users reacts; of those, a share of jobs is concerned, the same in every run."""
    rows = [(60, 10, 2, 10, user) for user in range(1, 401) for _ in range(5)]
    willing, concerned = set(), []
    for _ in range(2):
        jobs = make_jobs(*rows)
        users = run(jobs, Degrade(FROM_50_TO_100, share=0.25, probability=0.5), plain=plain)
        found = {note.row for user in users for note in user.notes}
        concerned.append(found)
        willing = {user.number for user in users if user.notes}
    assert concerned[0] == concerned[1]
    # Of 400 users 100 are willing, and each then reacts at least once with 1 - 2^-5; the bounds are
    # four standard errors.
    assert abs(len(willing) - 96.9) < 4 * 8.6
    assert abs(len(concerned[0]) - 250) < 4 * 24.4


def test_nobody_and_everybody(make_jobs: MakeJobs) -> None:
    """A share of 0 is nobody; shares are drawn by the name of the reaction."""
    jobs = make_jobs(*[(60, 10, 2, 10, user) for user in range(1, 101)])
    assert [] == notes(run(jobs, Degrade(FROM_50_TO_100, share=0)))
    assert [] == notes(run(jobs, Degrade(FROM_50_TO_100, probability=0)))
    numbers = [
        [u.number for u in run(jobs.copy(), Delay(FROM_50_TO_100, share=0.5, **name)) if u.notes]
        for name in ({}, {}, {"name": "another"})
    ]
    assert numbers[0] == numbers[1] != numbers[2]


class Halves(Reaction):
    """A custom reaction: no user requests more than half of the machine."""

    def react(self, user: ReplayUser, intention: Intention) -> None:
        """Cut what is larger."""
        jobs = user.model.jobs
        for place, row in enumerate(intention.rows.tolist()):
            if jobs.processors[row] > user.model.cluster.processors // 2:
                intention.resize(place, 4, int(jobs.run_time[row]), int(jobs.requested_time[row]),
                                 "halves", "degrade")  # fmt: skip


def test_reaction_of_ones_own(make_jobs: MakeJobs) -> None:
    """A subclass of Reaction is a few lines and is noted like the others."""
    jobs = make_jobs((0, 10, 8), (20, 10, 3))
    users = run(jobs, Halves())
    assert [4, 3] == jobs.processors.tolist()
    assert ["halves"] == [note.reaction for note in users[0].notes]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Delay(RecentWaits(60)), "delay recent-waits: has no end to wait for; give by"),
        (lambda: Delay(FROM_50_TO_100, by=0), "delay by 0 s: must be more than 0"),
        (lambda: Degrade(FROM_50_TO_100, factor=1), "degrade factor 1: between 0 and 1"),
        (lambda: Reconfigure(FROM_50_TO_100, factor=0), "reconfigure factor 0: between 0"),
        (lambda: Reconfigure(FROM_50_TO_100, efficiency=0), "efficiency 0: must be positive"),
        (lambda: Renounce(FROM_50_TO_100, share=1.5), "share 1.5: must be between 0 and 1"),
        (lambda: Renounce(FROM_50_TO_100, probability=-1), "probability -1: must be between"),
    ],
)
def test_wrong_numbers(make: Callable[[], Reaction], told: str) -> None:
    """Each mistake is reported in one line, when the reaction is made."""
    with pytest.raises(QuantityError, match=told):
        make()


def test_unknown_cluster_is_reported_before_anything_runs(make_jobs: MakeJobs) -> None:
    """A switch to a cluster that is not there is an error that lists those that are."""
    with pytest.raises(QuantityError, match="cluster 'cloud': not known; choose home"):
        run(make_jobs((0, 1, 1)), Switch(FROM_50_TO_100, "cloud"))
