"""Units of work: which batch depends on which, think times, inter-arrival times, responses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hpcrowd.agents import SessionDefinition, Units, Work, add_users
from hpcrowd.environment import JobTable, Simulation, State
from hypothesis import given
from hypothesis import strategies as st

MakeJobs = Callable[..., JobTable]

#: Three sessions like those of Figure 4 of Zakay and Feitelson 2015, and a fourth: (submission,
#: run time, processors). Batches f1 f2 f3, s1 s2, t1 t2, u1; s2 still runs when t begins.
FIGURE_4 = [
    (submit, 20_000 if submit == 6000 else 100, 1)
    for submit in (0, 200, 400, 5000, 6000, 10_000, 10_200, 40_000)
]
F1, F2, F3, S1, S2, T1, T2, U1 = range(8)


def batches(jobs: JobTable, definition: str = "arrival:60m") -> Units:
    """The batches of these jobs."""
    return Work.of(jobs, SessionDefinition.parse(definition)).by_batch


def edges(units: Units) -> set[tuple[int, int]]:
    """Who waits for whom: (predecessor, successor)."""
    found = units.dependencies
    return set(zip(found.predecessor.tolist(), found.successor.tolist(), strict=True))


def test_figure_4(make_jobs: MakeJobs) -> None:
    """The first batch of a session waits for the last one of each that had ended, others inside.

    Think times begin at the latest end of what was waited for, the other at the submission.
    """
    units = batches(make_jobs(*FIGURE_4))
    inside = {(F1, F2), (F2, F3), (S1, S2), (T1, T2)}
    assert inside | {(F3, S1), (F3, T1), (S2, U1), (T2, U1)} == edges(units)
    assert [0, 0, 0, 1, 1, 2, 2, 3] == units.session.tolist()
    assert [0, 1, 1, 0, 1, 0, 1, 0] == units.continues.tolist()
    assert [-1, 100, 100, 4500, 900, 9500, 100, 14_000] == units.think_time.tolist()
    assert [-1, 200, 200, 4600, 1000, 4000, 200, 29_800] == units.inter_arrival.tolist()
    assert [-1, F1, F2, F3, S1, F3, T1, S2] == units.awaited.tolist()
    found = units.dependencies
    assert units.think_time[found.successor].tolist() == found.think.tolist()


def test_batch_of_several_jobs(make_jobs: MakeJobs) -> None:
    """A batch lasts to its last end; the response is that of the job to end last, of two the later.

    The inter-arrival time begins at the last submission of the batch before.
    """
    units = batches(make_jobs((0, 100, 1), (10, 20, 1), (50, 50, 1), (500, 5, 1)))
    assert [0, 3, 4] == units.first.tolist()
    times = units.start, units.last, units.end
    assert [[0, 500], [50, 500], [100, 505]] == [column.tolist() for column in times]
    assert [50, 5] == units.response.tolist()
    assert [-1, 450] == units.inter_arrival.tolist()
    assert [-1, 400] == units.think_time.tolist()


def test_batches_wait_for_earlier_ones_only(make_jobs: MakeJobs) -> None:
    """One of no length in the second of a longer one before it is not what that one waited for."""
    jobs = make_jobs((0, 0, 1), (0, 9, 1), (0, 0, 1))
    work = Work.of(jobs, SessionDefinition.parse("arrival:job"))
    assert {(0, 1), (0, 2)} == edges(work.by_batch)
    model = Simulation(jobs, 3)
    add_users(model, work, "adjusted")
    model.run()
    assert [0, 0, 0] == jobs.submit.tolist()
    assert 3 == jobs.count(State.COMPLETED)


def test_batches_of_last_may_overlap(make_jobs: MakeJobs) -> None:
    """Under ``last`` a batch waits only for those that had ended: no think time is negative.

    Batch 1 begins when the last job before it has ended, while another of batch 0 still runs. Batch
    2 begins after both have ended, and waits for both, as does the next session.
    """
    jobs = make_jobs((0, 1000, 1), (10, 10, 1), (50, 20, 1), (80, 10, 1), (1100, 10, 1))
    jobs.recorded_end[:] = 1000, 20, 70, 1050, 1110
    units = batches(jobs, "last:20m")
    assert [0, 2, 3, 4, 5] == units.first.tolist()
    assert {(1, 2), (0, 3), (2, 3)} == edges(units)
    assert [-1, -1, 10, 50] == units.think_time.tolist()
    jobs.recorded_submit[4], jobs.recorded_end[4] = 9000, 9010  # another session
    units = batches(jobs, "last:20m")
    assert [0, 0, 0, 1] == units.session.tolist()
    assert {(1, 2), (0, 3), (2, 3)} == edges(units)
    assert [-1, -1, 10, 7950] == units.think_time.tolist()


@given(
    rows=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20), st.integers(1, 2)), min_size=1),
    definition=st.sampled_from(
        ["arrival:5s", "arrival:job", "last:5s", "max:5s", "last:2s+cut:3s", "max:0s+cut:3s"]
    ),
)
def test_dependencies_are_definition_12(
    make_jobs: MakeJobs, rows: list[tuple[int, int, int]], definition: str
) -> None:
    """With all that follows from them, the edges are those of Definition 12, nothing more or less.

    Under ``last``, where the definition leaves batches out that overlap, batches of one session
    wait for those that had ended.
    """
    jobs = make_jobs(*((submit, run, 1, run, user) for submit, run, user in sorted(rows)))
    units = batches(jobs, definition)
    found = np.zeros((len(units), len(units)), bool)
    for before, after in edges(units):
        found[before, after] = True
    expected = definition_12(units, overlap=definition.startswith("last"))
    assert np.array_equal(closure(expected), closure(found))
    assert found.any(axis=0).tolist() == (units.think_time >= 0).tolist()
    assert np.all(units.inter_arrival[units.continues == 1] >= 0)


def definition_12(units: Units, overlap: bool) -> np.ndarray:
    """Who depends on whom by Definition 12, pair by pair; [predecessor, successor]."""
    start, end, session = units.start.tolist(), units.end.tolist(), units.session.tolist()
    depends = np.zeros((len(units), len(units)), bool)
    for i in range(len(units)):
        for j in range(i):
            if units.user[i] != units.user[j]:
                continue
            if session[i] == session[j]:
                depends[j, i] = end[j] <= start[i] if overlap else j == i - 1
            elif session[i - 1] != session[i] and (overlap or session[j + 1] != session[j]):
                members = [b for b in range(len(units)) if session[b] == session[j]]
                depends[j, i] = max(end[b] for b in members) <= start[i]
    return depends


def closure(edges: np.ndarray) -> np.ndarray:
    """The relation with all that follows from it."""
    reach = edges.copy()
    for middle in range(len(reach)):
        reach |= np.outer(reach[:, middle], reach[middle])
    return reach
