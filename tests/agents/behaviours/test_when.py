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

from tests.support.behaviours import both

MakeJobs = Callable[..., JobTable]
ENDED, FOLLOWS = Reason.ENDED, Reason.FOLLOWS


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


#: Batch 1 begins its own session while batch 0 runs; batch 2 waits for 0 and follows 1.
OVERLAP = (0, 4500, 1), (4000, 10_000, 1), (8000, 10, 1)
TWO_USERS = (0, 100, 1, 100, 1), (10, 100, 1, 100, 2), (150, 10, 1, 10, 1), (160, 10, 1, 10, 2)

BATCHES: dict[str, tuple[Any, dict[str, Any], dict[str, Any], list[Any], list[int]]] = {
    # What leads is what comes later, the end of a dependency or the last submission before.
    "end": (OVERLAP, {}, {}, [(1, 0, FOLLOWS, 4000, -1), (2, 4500, ENDED, 3500, 0)],
            [0, 4000, 8000]),
    "submission": (OVERLAP, {"run_time": {0: 3000}}, {},
                   [(1, 0, FOLLOWS, 4000, -1), (2, 4000, FOLLOWS, 4000, 0)], [0, 4000, 8000]),
    # In an instant submissions come after ends, so a tie goes to the submission,
    "tie": (OVERLAP, {"run_time": {0: 4000}}, {},
            [(1, 0, FOLLOWS, 4000, -1), (2, 4000, FOLLOWS, 4000, 0)], [0, 4000, 8000]),
    # but that of a batch over in the second of its own last submission to its end.
    "tie with itself": ([(0, 100, 1), (300, 10, 1)], {"run_time": {0: 0}}, {},
                        [(1, 0, ENDED, 200, 0)], [0, 200]),
    # The rest of a batch decides, and the last job of it may be the rejected one.
    "part rejected": ([(0, 100, 1), (50, 100, 9), (200, 5, 1)], {}, {"processors": 4},
                      [(1, 100, ENDED, 50, 0)], [0, 50, 150]),
    "last rejected": ([(0, 100, 9), (90, 100, 9), (200, 5, 1)], {}, {"processors": 4},
                      [(1, 90, ENDED, 10, 0)], [0, 90, 100]),
    # Jobs without run time and think time follow each other within one second.
    "no length": ([(7, 0, 1), (7, 0, 1), (7, 0, 1), (9, 0, 1)], {}, {},
                  [(1, 7, ENDED, 0, 0), (2, 7, ENDED, 0, 1), (3, 7, ENDED, 2, 2)], [7, 7, 7, 9]),
    # The jobs of a batch are as far apart as recorded; who follows starts from the last one.
    # The next session begins while this one runs.
    "gaps": ([(0, 100, 1), (200, 90, 1), (230, 90, 1), (9000, 5, 1)],
             {"run_time": {0: 150}, "recorded_end": {2: 20_000}}, {},
             [(1, 150, ENDED, 100, 0), (2, 280, FOLLOWS, 8770, -1)], [0, 250, 280, 9050]),
    # Under ``last`` a batch that began before the one before had ended follows it.
    "last": ([(0, 1000, 1), (10, 10, 1), (50, 20, 1), (1100, 10, 1)], {"run_time": {0: 3000}},
             {"definition": "last:20m"}, [(1, 10, FOLLOWS, 40, -1), (2, 3000, ENDED, 100, 0)],
             [0, 10, 50, 3100]),
    # Two users on one processor, recorded on a larger machine: who waits thinks later.
    "queue": (TWO_USERS, {"recorded_end": {0: 100, 1: 110, 2: 160, 3: 170}}, {"processors": 1},
              [(1, 100, ENDED, 50, 0), (3, 200, ENDED, 50, 2)], [0, 10, 150, 250]),
}  # fmt: skip


@both
@pytest.mark.parametrize("story", BATCHES)
def test_batches(make_jobs: MakeJobs, plain: bool, story: str) -> None:
    """What releases each batch, and when its jobs come."""
    rows, changes, how, releases, submit = BATCHES[story]
    jobs = make_jobs(*rows)
    for column, values in changes.items():
        for row, value in values.items():
            getattr(jobs, column)[row] = value
    assert releases == run(jobs, plain=plain, **how)
    assert submit == jobs.submit.tolist()


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
@pytest.mark.parametrize(
    ("runs", "release", "second"),
    [
        ([60, 20], (2, 60, ENDED, 190, 0), 250),  # ready at 60 + 190 and at 21 + 100
        ([10, 49], (2, 50, ENDED, 150, 1), 200),  # ready at 10 + 190 and at 50 + 100
    ],
)
def test_sessions_wait_for_the_latest_think_time(
    make_jobs: MakeJobs, plain: bool, runs: list[int], release: Any, second: int
) -> None:
    """The last end releases a session; its pause ends at the latest end plus think time."""
    jobs = make_jobs((0, 10, 1), (1, 99, 1), (200, 10, 1))
    jobs.run_time[:2] = runs
    assert [release] == run(jobs, SessionGraph, definition="arrival:job", plain=plain)
    assert [0, 1, second] == jobs.submit.tolist()


@both
def test_sessions_overtake_each_other(make_jobs: MakeJobs, plain: bool) -> None:
    """Sessions keep no order of their own, batches do.

    Session 1 waits for nothing and comes as recorded; session 2 waits for session 0, which is fast.
    """
    for when, expected in ((SessionGraph, [0, 100, 60]), (BatchOrder, [0, 100, 200])):
        jobs = make_jobs((0, 150, 1), (100, 9000, 1), (200, 10, 1))
        jobs.run_time[0] = 10
        run(jobs, when, definition="arrival:job", plain=plain)
        assert expected == jobs.submit.tolist()


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
