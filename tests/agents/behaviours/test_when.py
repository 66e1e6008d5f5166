"""Which unit comes next and what released it: exact stories of users with batches and sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, override

import pytest
from hpcrowd.agents import (
    BatchOrder,
    Composed,
    Pause,
    Reason,
    Recipe,
    Recorded,
    RecordedPauses,
    Release,
    ReplayUser,
    SessionDefinition,
    SessionGraph,
    Work,
    add_users,
)
from hpcrowd.environment import JobTable, Simulation, State

MakeJobs = Callable[..., JobTable]
START, ENDED, FOLLOWS = Reason.START, Reason.ENDED, Reason.FOLLOWS

both = pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])


class Diary(RecordedPauses):
    """Recorded pauses, and a diary of what was released."""

    def __init__(self) -> None:
        self.releases: list[Release] = []

    @override
    def pause(self, user: ReplayUser, release: Release) -> Pause:
        self.releases.append(release)
        return super().pause(user, release)


class Noted(Composed):
    """Parts with a diary as the think time, which is asked although it changes nothing."""


def run(
    jobs: JobTable,
    when: Callable[[Work], Any] = BatchOrder,
    *,
    definition: str = "arrival:60m",
    processors: int = 100,
    scheduler: str = "fcfs",
    plain: bool = False,
) -> list[Release]:
    """Run the jobs and return what was released, in the order in which it was."""
    diary = Diary()
    work = Work.of(jobs, SessionDefinition.parse(definition))
    model = Simulation(jobs, processors, scheduler, plain=plain)
    add_users(model, work, lambda work: Noted(when(work), diary))
    model.run()
    return diary.releases


def figure_4(make_jobs: MakeJobs) -> JobTable:
    """Sessions f, s and t of Figure 4: batches f1 f2 f3 s1 s2 t1 t2, one job each, s2 long."""
    return make_jobs(
        (0, 100, 1), (200, 100, 1), (400, 100, 1),
        (5000, 100, 1), (6000, 20_000, 1),
        (10_000, 100, 1), (10_200, 100, 1),
    )  # fmt: skip


@both
def test_story_of_figure_4(make_jobs: MakeJobs, plain: bool) -> None:
    """When f3 ends only s1 is next, then s2; t1, for which only f3 was needed, follows s2.

    f3 and s1 take longer than recorded, by 9,900 and 6,900 s. If only dependencies counted, t1
    would be submitted at 19,900 s, before s2.
    """
    jobs = figure_4(make_jobs)
    jobs.run_time[2], jobs.run_time[3] = 10_000, 7000
    releases = run(jobs, plain=plain)
    assert [
        (1, 100, ENDED, 100, 0),
        (2, 300, ENDED, 100, 1),
        (3, 10_400, ENDED, 4500, 2),
        (4, 21_900, ENDED, 900, 3),
        (5, 22_800, FOLLOWS, 4000, 2),
        (6, 26_900, ENDED, 100, 5),
    ] == releases
    assert [0, 200, 400, 14_900, 22_800, 26_800, 27_000] == jobs.submit.tolist()


@both
def test_nothing_moves_when_all_runs_as_recorded(make_jobs: MakeJobs, plain: bool) -> None:
    """With recorded run times and room for all, every batch comes at its recorded second."""
    jobs = figure_4(make_jobs)
    reasons = [(release.unit, release.reason) for release in run(jobs, plain=plain)]
    expected = [(1, ENDED), (2, ENDED), (3, ENDED), (4, ENDED), (5, FOLLOWS), (6, ENDED)]
    assert expected == reasons
    assert jobs.recorded_submit.tolist() == jobs.submit.tolist()


@both
def test_reason_is_what_came_later(make_jobs: MakeJobs, plain: bool) -> None:
    """A dependency that ends after the last submission before leads to the think time."""
    # Batch 1 begins its own session while batch 0 runs; batch 2 waits for 0 and follows 1.
    record = (0, 4500, 1), (4000, 10_000, 1), (8000, 10, 1)
    jobs = make_jobs(*record)
    assert [(1, 0, FOLLOWS, 4000, -1), (2, 4500, ENDED, 3500, 0)] == run(jobs, plain=plain)
    jobs = make_jobs(*record)
    jobs.run_time[0] = 3000  # now over before batch 1 is submitted
    assert [(1, 0, FOLLOWS, 4000, -1), (2, 4000, FOLLOWS, 4000, 0)] == run(jobs, plain=plain)
    assert 8000 == jobs.submit[2]


@both
def test_tie_goes_to_the_submission(make_jobs: MakeJobs, plain: bool) -> None:
    """A dependency that is over in the second of the last submission before: an inter-arrival time.

    Submissions come after ends in an instant.
    """
    jobs = make_jobs((0, 4500, 1), (4000, 10_000, 1), (8000, 10, 1))
    jobs.run_time[0] = 4000
    assert (2, 4000, FOLLOWS, 4000, 0) == run(jobs, plain=plain)[-1]


@both
def test_tie_of_a_batch_with_itself_goes_to_its_end(make_jobs: MakeJobs, plain: bool) -> None:
    """A batch over in the second of its own last submission leads to the think time."""
    jobs = make_jobs((0, 100, 1), (300, 10, 1))
    jobs.run_time[0] = 0
    assert [(1, 0, ENDED, 200, 0)] == run(jobs, plain=plain)
    assert [0, 200] == jobs.submit.tolist()


@both
@pytest.mark.parametrize("definition", ["arrival:60m", "arrival:job", "last:20m", "max:20m"])
def test_rejected_batch_ends_at_once(make_jobs: MakeJobs, definition: str, plain: bool) -> None:
    """Its user thinks from the second at which it was submitted; sessions distinguished anyhow."""
    jobs = make_jobs((0, 100, 9), (150, 100, 9), (290, 5, 1))
    releases = run(jobs, processors=4, definition=definition, plain=plain)
    assert [(1, 0, ENDED, 50, 0), (2, 50, ENDED, 40, 1)] == releases
    assert [0, 50, 90] == jobs.submit.tolist()
    assert [State.REJECTED, State.REJECTED, State.COMPLETED] == jobs.state.tolist()


@both
def test_batch_of_which_a_part_is_rejected(make_jobs: MakeJobs, plain: bool) -> None:
    """The rest of the batch decides, and the last job of it may be the rejected one."""
    jobs = make_jobs((0, 100, 1), (50, 100, 9), (200, 5, 1))
    assert [(1, 100, ENDED, 50, 0)] == run(jobs, processors=4, plain=plain)
    jobs = make_jobs((0, 100, 9), (90, 100, 9), (200, 5, 1))
    assert [(1, 90, ENDED, 10, 0)] == run(jobs, processors=4, plain=plain)


@both
def test_chain_of_batches_without_length(make_jobs: MakeJobs, plain: bool) -> None:
    """Jobs without run time and think time follow each other within one second."""
    jobs = make_jobs((7, 0, 1), (7, 0, 1), (7, 0, 1), (9, 0, 1))
    releases = run(jobs, plain=plain)
    assert [(1, 7, ENDED, 0, 0), (2, 7, ENDED, 0, 1), (3, 7, ENDED, 2, 2)] == releases
    assert [7, 7, 7, 9] == jobs.submit.tolist()


@both
def test_batch_keeps_its_gaps(make_jobs: MakeJobs, plain: bool) -> None:
    """The jobs of a batch are as far apart as recorded; who follows starts from the last one."""
    jobs = make_jobs((0, 100, 1), (200, 90, 1), (230, 90, 1), (9000, 5, 1))
    jobs.recorded_end[2] = 20_000  # the next session begins while this one runs
    jobs.run_time[0] = 150
    releases = run(jobs, plain=plain)
    assert [(1, 150, ENDED, 100, 0), (2, 280, FOLLOWS, 8770, -1)] == releases
    assert [0, 250, 280, 9050] == jobs.submit.tolist()


@both
def test_overlapping_batches_of_last(make_jobs: MakeJobs, plain: bool) -> None:
    """Under ``last`` a batch that began before the one before had ended follows it."""
    jobs = make_jobs((0, 1000, 1), (10, 10, 1), (50, 20, 1), (1100, 10, 1))
    jobs.run_time[0] = 3000
    releases = run(jobs, definition="last:20m", plain=plain)
    assert [(1, 10, FOLLOWS, 40, -1), (2, 3000, ENDED, 100, 0)] == releases
    assert [0, 10, 50, 3100] == jobs.submit.tolist()


@both
def test_queue_makes_users_wait(make_jobs: MakeJobs, plain: bool) -> None:
    """Two users on one processor: who waits in the queue thinks later, in its own order."""
    jobs = make_jobs(
        (0, 100, 1, 100, 1), (10, 100, 1, 100, 2), (150, 10, 1, 10, 1), (160, 10, 1, 10, 2)
    )
    jobs.recorded_end[:] = 100, 110, 160, 170  # recorded on a larger machine
    run(jobs, processors=1, plain=plain)
    assert [0, 10, 150, 250] == jobs.submit.tolist()
    assert [0, 100, 200, 250] == jobs.start.tolist()


@both
def test_sessions_wait_for_the_latest_think_time(make_jobs: MakeJobs, plain: bool) -> None:
    """The last end releases a session; its pause ends at the latest end plus think time."""
    jobs = make_jobs((0, 10, 1), (1, 99, 1), (200, 10, 1))
    jobs.run_time[:] = 60, 20, 10  # ready at 60 + 190 and at 21 + 100
    releases = run(jobs, SessionGraph, definition="arrival:job", plain=plain)
    assert [(2, 60, ENDED, 190, 0)] == releases
    assert [0, 1, 250] == jobs.submit.tolist()


@both
def test_sessions_overtake_each_other(make_jobs: MakeJobs, plain: bool) -> None:
    """Sessions keep no order of their own, batches do.

    Session 1 waits for nothing and comes as recorded; session 2 waits for session 0, which is fast.
    """
    jobs = make_jobs((0, 150, 1), (100, 9000, 1), (200, 10, 1))
    jobs.run_time[0] = 10
    run(jobs, SessionGraph, definition="arrival:job", plain=plain)
    assert [0, 100, 60] == jobs.submit.tolist()
    run(jobs, BatchOrder, definition="arrival:job", plain=plain)
    assert [0, 100, 200] == jobs.submit.tolist()


@both
def test_recorded_waits_for_nothing(make_jobs: MakeJobs, plain: bool) -> None:
    """Sessions come at their recorded seconds though the machine is far too small."""
    jobs = figure_4(make_jobs)
    jobs.run_time[0] = 100_000
    assert [] == run(jobs, Recorded, processors=1, plain=plain)
    assert jobs.recorded_submit.tolist() == jobs.submit.tolist()


def test_presets_that_wait_for_nothing_are_not_called(make_jobs: MakeJobs) -> None:
    """Composed of recorded submissions only, a behaviour asks for no news."""
    work = Work.of(figure_4(make_jobs))
    assert [False, True, True] == [
        Composed(when(work)).reacts for when in (Recorded, SessionGraph, BatchOrder)
    ]
    assert [False, True] == [Recipe(when)(work).reacts for when in ("recorded", "sessions")]
    assert "<Composed BatchOrder x RecordedPauses>" == repr(Recipe("batches")(work))
