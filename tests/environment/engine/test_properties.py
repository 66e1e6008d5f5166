"""What holds of every schedule, on random workloads, and the compiled engine against the plain.

Workloads are small and full of ties, jobs without length, jobs that outrun their request and jobs
larger than the machine. The compiled engine begins with room for few jobs, so that its arrays grow
on the way.
"""

from typing import Any

import numpy as np
import pytest
from hpcrowd import SessionDefinition, Simulation, State, Work, add_users
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.policies import OUTCOME as OUTCOME
from tests.support.policies import Rows as Rows
from tests.support.policies import begun, cases, limited, outcome, policies, rooms
from tests.support.simulations import account_of, recorded, simulation_of

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
clusters = st.fixed_dictionaries(
    {
        "processors": st.integers(3, 8),
        "scheduler": policies | st.just("recorded"),
        "overrun": st.sampled_from(["keep", "kill"]),
        "estimates": st.sampled_from(["requested", "exact", "0.5x", "1.5x"]),
    }
)
few = settings(max_examples=30)


def make(rows):
    """The table of these jobs."""
    submit, wait, recorded_run, run, processors, requested, user = np.array(rows).T
    now = {"run_time": run, "processors": processors, "requested_time": requested, "user": user}
    return recorded(submit, recorded_run, wait, **now)


def check(case, room, events, stops):
    """Check that both engines show the same at each stop, and end as a run without stops."""
    plain = begun(case, plain=True).run()
    with limited(room, events):
        models = [begun(case, plain=plain) for plain in (False, True)]
        for until in sorted(stops):
            seen: list[Any] = []
            for model in models:
                engine = model.run(until=until).cluster.engine
                state = engine.waiting.tolist(), sorted(engine.running.tolist()), engine.free
                seen.append((*state, engine.events, engine.next_time(), outcome(model.jobs)))
            assert seen[0] == seen[1]
        for model in (model.run() for model in models):
            assert plain.jobs.matrix.tolist() == model.jobs.matrix.tolist()
            assert plain.cluster.attempts == model.cluster.attempts
            if case["platform"]:
                assert account_of(plain.cluster, 10**4) == account_of(model.cluster, 10**4)


stops = st.lists(st.integers(0, 90), max_size=8)
slices = st.sampled_from([1, 2, 4, 10**6])


@settings(max_examples=30)
@given(cases, rooms, slices, stops)
def test_compiled_equals_plain(case, room, events, stops):
    """Whatever users and the platform do, under every policy, both engines do the same."""
    check(case, room, events, stops)


@pytest.mark.endurance
@settings(max_examples=3000)
@given(cases, rooms, slices, stops)
def test_compiled_equals_plain_often(case, room, events, stops):
    """The same for many more runs."""
    check(case, room, events, stops)


@few
@given(workloads, clusters, st.booleans())
def test_jobs_in_are_jobs_out(rows, cluster, plain):
    """Every job ran for its time, was killed at its request, or rejected, where it had room."""
    model = simulation_of(make(rows), **cluster, plain=plain)
    add_users(model, Work.of(model.jobs), "think-time")
    jobs = model.run().jobs
    length, request = jobs.run_time, jobs.requested_time
    rejected = jobs.processors > cluster["processors"]
    killed = ~rejected & (length > request) & (cluster["overrun"] == "kill")
    expected = np.select([rejected, killed], [State.REJECTED, State.KILLED], State.COMPLETED)
    assert expected.tolist() == jobs.state.tolist()
    lasted = np.where(killed, request, length)[~rejected]
    assert lasted.tolist() == (jobs.end - jobs.start)[~rejected].tolist()
    if cluster["scheduler"] != "recorded":  # which ignores what is free
        for time in set(jobs.start.tolist()) - {-1}:
            runs = (jobs.start <= time) & (jobs.end > time) & (jobs.start >= 0)
            assert jobs.processors[runs].sum() <= cluster["processors"]
    assert all(jobs.submit >= 0)
    assert all(jobs.start[~rejected] >= jobs.submit[~rejected])
    assert np.all(jobs.start[rejected] == -1)
    assert np.all(jobs.end[rejected] == -1)


@pytest.mark.parametrize(("events", "plain"), [(1, False), (10**9, False), (1000, True)])
def test_many_units_over_at_once(make_jobs, events, plain):
    """Of thousands of sessions that end in one second, each user hears, in slices or not."""
    count = 600 if plain else 3000
    first = [(0, 50, 1, 50, user) for user in range(count)]
    second = [(60, 50, 1, 50, user) for user in range(count)]
    jobs = make_jobs(*first, *second)
    model = Simulation(jobs, count, "easy", plain=plain)
    users = add_users(model, Work.of(jobs, SessionDefinition("arrival", None)))
    with limited(1024, events):
        model.run()
    assert {(2, 2)} == {(user.submitted, user.finished) for user in users}
    assert {110} == set(jobs.end[count:].tolist())
