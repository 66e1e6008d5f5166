"""What holds of every schedule, on random workloads, and the compiled engine against the plain.

Workloads are small and full of ties, jobs without length, jobs that outrun their request and jobs
larger than the machine. The compiled engine begins with room for few jobs, so that its arrays grow
on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd.agents import SessionDefinition, Work, add_users
from hpcrowd.environment import JobTable, Simulation, State
from hpcrowd.environment.stops import Stop
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.policies import OUTCOME as OUTCOME
from tests.support.policies import Rows as Rows
from tests.support.policies import outcome, rooms

#: (submission, recorded wait, recorded run time, run time, processors, requested time, user).
workloads = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.integers(0, 5),
        st.integers(0, 10),
        st.integers(0, 10),
        st.integers(1, 7),
        st.integers(0, 12),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=30,
)
definitions = st.sampled_from(
    [
        SessionDefinition("arrival", None),
        SessionDefinition("arrival", 2),
        SessionDefinition("last", 1),
        SessionDefinition("max", 0, 5),
    ]
)
SCHEDULERS = [
    "fcfs",
    "easy",
    "recorded",
    "conservative",
    "selective",
    "selective:threshold=1.5",
    "selective-categorized:categories=3/6",
    "adaptive:every=3s,overload=0.5",
    "adaptive:every=7s,overload-positive=sjf,underload-positive=conservative",
]
clusters = st.fixed_dictionaries(
    {
        "processors": st.integers(3, 8),
        "scheduler": st.sampled_from(SCHEDULERS),
        "overrun": st.sampled_from(["keep", "kill"]),
        "estimates": st.sampled_from(["requested", "exact", "0.5x", "1.5x"]),
    }
)
few = settings(max_examples=30)


def make(rows: Rows) -> JobTable:
    """The table of these jobs."""
    jobs = JobTable()
    submit, wait, recorded_run, run, processors, requested, user = np.array(rows).T
    jobs.append(
        len(rows),
        recorded_submit=submit,
        recorded_start=submit + wait,
        recorded_end=submit + wait + recorded_run,
        run_time=run,
        processors=processors,
        requested_time=requested,
        user=user,
    )
    return jobs


def populate(
    rows: Rows,
    cluster: dict[str, Any],
    *,
    users: str = "rigid",
    definition: SessionDefinition | None = None,
    room: int = 1024,
    plain: bool = False,
) -> tuple[Simulation, Work]:
    """A simulation with its users, ready to run."""
    jobs = make(rows)
    work = Work.of(jobs, definition)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hpcrowd.environment.engine.compiled.FIRST_ROOM", room)
        model = Simulation(jobs, **cluster, plain=plain)
        add_users(model, work, users)
    return model, work


def run(rows: Rows, cluster: dict[str, Any], **how: Any) -> tuple[JobTable, Work]:
    """The jobs after the run."""
    room = how.get("room", 1024)
    model, work = populate(rows, cluster, **how)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hpcrowd.environment.engine.compiled.FIRST_ROOM", room)
        model.run()
    return model.jobs, work


@few
@given(workloads, clusters, st.sampled_from(["rigid", "think-time"]), definitions, rooms)
def test_compiled_equals_plain(
    rows: Rows, cluster: dict[str, Any], users: str, definition: SessionDefinition, room: int
) -> None:
    """Compiled and plain engine give the same schedule, job for job."""
    plain, _ = run(rows, cluster, users=users, definition=definition, plain=True)
    fast, _ = run(rows, cluster, users=users, definition=definition, room=room)
    assert outcome(plain) == outcome(fast)


@few
@given(workloads, clusters, st.booleans())
def test_jobs_in_are_jobs_out(rows: Rows, cluster: dict[str, Any], plain: bool) -> None:
    """Every job ends eventually: it ran for its time, was killed at its request, or rejected."""
    jobs, _ = run(rows, cluster, users="think-time", plain=plain)
    length, request = jobs.run_time, jobs.requested_time
    rejected = jobs.processors > cluster["processors"]
    killed = ~rejected & (length > request) & (cluster["overrun"] == "kill")
    expected = np.select([rejected, killed], [State.REJECTED, State.KILLED], State.COMPLETED)
    assert expected.tolist() == jobs.state.tolist()
    lasted = np.where(killed, request, length)[~rejected]
    assert lasted.tolist() == (jobs.end - jobs.start)[~rejected].tolist()
    assert all(jobs.submit >= 0)
    assert all(jobs.start[~rejected] >= jobs.submit[~rejected])
    assert np.all(jobs.start[rejected] == -1)
    assert np.all(jobs.end[rejected] == -1)


@few
@given(workloads, st.integers(3, 8), st.booleans())
def test_easy_keeps_its_promise_to_the_head(rows: Rows, processors: int, plain: bool) -> None:
    """With requests that hold, the head of the queue starts by any shadow time it ever had."""
    rows = [(*row[:5], row[3] + row[5], row[6]) for row in rows]
    model, _ = populate(rows, {"processors": processors, "scheduler": "easy"}, plain=plain)
    jobs, engine = model.jobs, model.cluster.engine
    promises: list[tuple[int, int]] = []
    while engine.advance(events=1) != Stop.DONE:
        running = engine.running
        assert processors - jobs.processors[running].sum() == engine.free
        if len(engine.waiting):
            head = engine.waiting[0]
            need = jobs.processors[head] - engine.free
            ends = jobs.start[running] + jobs.requested_time[running]
            shadow = next(
                int(time)
                for time in sorted(ends)
                if jobs.processors[running[ends <= time]].sum() >= need
            )
            promises.append((int(head), shadow))
    for head, shadow in promises:
        assert jobs.start[head] <= shadow


@few
@given(workloads, clusters, definitions, st.booleans())
def test_think_times_hold(
    rows: Rows, cluster: dict[str, Any], definition: SessionDefinition, plain: bool
) -> None:
    """A session starts at the latest end of a predecessor plus its think time, gaps as recorded."""
    jobs, work = run(rows, cluster, users="think-time", definition=definition, plain=plain)
    sessions, dependencies = work.sessions, work.dependencies
    over = np.where(jobs.end >= 0, jobs.end, jobs.submit)  # a rejected job ends at once
    expected = np.where(dependencies.count == 0, sessions.start, 0)
    ended = [over[sessions.jobs_of(session)].max() for session in range(len(sessions))]
    for before, after, think in zip(
        dependencies.predecessor, dependencies.successor, dependencies.think, strict=True
    ):
        expected[after] = max(expected[after], ended[before] + think)
    for session in range(len(sessions)):
        mine = sessions.jobs_of(session)
        shift = expected[session] - sessions.start[session]
        assert (jobs.recorded_submit[mine] + shift).tolist() == jobs.submit[mine].tolist()


@few
@given(
    workloads,
    clusters,
    definitions,
    rooms,
    st.lists(st.integers(0, 6), max_size=12),
    st.integers(1, 4),
)
def test_stops_on_the_way(
    rows: Rows,
    cluster: dict[str, Any],
    definition: SessionDefinition,
    room: int,
    steps: list[int],
    events: int,
) -> None:
    """Both engines show the same at each stop, and a few events at a time change no schedule."""
    how: dict[str, Any] = {"users": "think-time", "definition": definition}
    expected, _ = run(rows, cluster, **how, plain=True)
    models = [populate(rows, cluster, **how, room=room, plain=plain)[0] for plain in (False, True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hpcrowd.environment.engine.compiled.FIRST_ROOM", room)
        patch.setattr("hpcrowd.environment.simulation.SLICE", events)
        for until in np.cumsum(steps).tolist():
            seen: list[Any] = []
            for model in models:
                model.run(until=until)
                assert until == model.time
                engine = model.cluster.engine
                running = sorted(engine.running.tolist())
                state = engine.waiting.tolist(), running, engine.free, engine.events
                seen.append((*state, engine.next_time(), outcome(model.jobs)))
            assert seen[0] == seen[1]
        for model in models:
            assert outcome(expected) == outcome(model.run().jobs)


@pytest.mark.parametrize(("events", "plain"), [(1, False), (10**9, False), (1000, True)])
def test_many_units_over_at_once(
    make_jobs: Callable[..., JobTable], events: int, plain: bool
) -> None:
    """Of thousands of sessions that end in one second, each user hears, in slices or not."""
    count = 3000
    first = [(0, 50, 1, 50, user) for user in range(count)]
    second = [(60, 50, 1, 50, user) for user in range(count)]
    jobs = make_jobs(*first, *second)
    model = Simulation(jobs, count, "easy", plain=plain)
    users = add_users(model, Work.of(jobs, SessionDefinition("arrival", None)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hpcrowd.environment.simulation.SLICE", events)
        model.run()
    assert {(2, 2)} == {(user.submitted, user.finished) for user in users}
    assert {110} == set(jobs.end[count:].tolist())
