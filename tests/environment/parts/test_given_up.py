"""Jobs that were given up in the queue: they wait, are in the way, and leave."""

import numpy as np
import pytest
from hpcrowd import State, parse_swf
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.parts.given_up import GivenUp
from hpcrowd.environment.traces.trace import Conversion, gave_up, jobs_from_trace
from hpcrowd.scenarios.kinds.replay import replay
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.simulations import Owner, both, recorded, simulation_of

POLICIES = ("fcfs", "easy", "conservative")


def given_up(jobs, scheduler, *, processors=8, **options):
    """Run jobs of (submission, run time, processors, wait until it leaves; -1 stays)."""
    submit, run, size, waits = map(np.array, zip(*jobs, strict=True))
    table = recorded(submit, run, processors=size, requested_time=np.maximum(run, 100))
    model, owner = simulation_of(table, processors, scheduler, **options), Owner()
    part = GivenUp(waits)
    model.attach(part)
    for row in range(len(table)):
        model.submit(owner, np.array([row]), submit[[row]])
    model.run()
    model.end()
    return table, owner, part.account()


#: Jobs; under FCFS, EASY and conservative: starts, and when the second one leaves.
STORIES = {
    # Nobody overtakes it under FCFS and conservative, until it leaves.
    "in the way": (
        [(0, 1000, 6, -1), (10, 0, 8, 300), (20, 50, 2, -1), (30, 2000, 2, -1)],
        {"fcfs": ([0, 310, 360], 310), "easy": ([0, 20, 310], 310),
         "conservative": ([0, 20, 310], 310)},
    ),
    # Its turn comes first: it has no run time, and the next one starts in the same second.
    "its turn": (
        [(0, 100, 8, -1), (10, 0, 8, 300), (20, 50, 8, -1), (30, 50, 8, -1)],
        dict.fromkeys(POLICIES, ([0, 100, 150], 100)),
    ),
    # A job arrives after others have left, so it leaves a second later.
    "at once": (
        [(0, 100, 8, -1), (10, 0, 8, 0), (20, 50, 8, -1), (30, 50, 8, -1)],
        dict.fromkeys(POLICIES, ([0, 100, 150], 11)),
    ),
}  # fmt: skip


@both
@pytest.mark.parametrize("scheduler", POLICIES)
@pytest.mark.parametrize("story", STORIES)
def test_a_story(story, scheduler, plain):
    """Starts of the others, and the second at which the job leaves and its user hears of it."""
    jobs, outcomes = STORIES[story]
    start, leaves = outcomes[scheduler]
    table, owner, account = given_up(jobs, scheduler, plain=plain)
    assert table.start.tolist() == [start[0], UNKNOWN, *start[1:]]
    assert table.state.tolist() == [1, State.CANCELLED, 1, 1]
    assert table.end[1] == leaves
    assert leaves in owner.heard
    assert account["jobs_given_up"] == 1
    assert account["jobs_at_their_turn"] == (story == "its turn")
    assert account["wait_mean_s"] == leaves - 10


jobs_drawn = st.lists(
    st.tuples(
        st.integers(0, 400), st.integers(1, 200), st.integers(1, 8), st.integers(-1, 300)
    ).map(lambda one: (one[0], 0 if one[3] >= 0 else one[1], *one[2:])),
    min_size=1,
    max_size=30,
)


@given(jobs_drawn, st.sampled_from(POLICIES))
@settings(max_examples=60)
def test_compiled_equals_plain(jobs, scheduler):
    """Both engines let the same jobs leave in the same seconds; nothing is lost."""
    jobs.sort()
    (one, heard, account), (other, also, _) = (
        given_up(jobs, scheduler, plain=plain) for plain in (False, True)
    )
    assert np.array_equal(one.matrix, other.matrix)
    assert heard.heard == also.heard
    waits = np.array([job[3] for job in jobs])
    left = waits >= 0
    assert (one.state == np.where(left, State.CANCELLED, State.COMPLETED)).all()
    assert (one.end[left] - one.submit[left] <= np.maximum(waits[left], 1)).all()
    assert account["jobs_given_up"] == left.sum()


LOG = """; MaxProcs: 8
1 0 0 10000 8 -1 -1 8 10000 -1 1 1 1 -1 1 -1 -1 -1
2 10 3000 0 0 -1 -1 8 20000 -1 5 2 1 -1 1 -1 -1 -1
3 20 9980 100 4 -1 -1 4 100 -1 1 3 1 -1 1 -1 -1 -1
4 30 -1 -1 -1 -1 -1 4 100 -1 5 4 1 -1 1 -1 -1 -1
5 40 500 -1 -1 -1 -1 -1 100 -1 5 2 1 -1 1 -1 -1 -1
6 50 60 30 4 -1 -1 4 100 -1 5 4 1 -1 1 -1 -1 -1
"""


def test_which_jobs_were_given_up():
    """Status 5, no run, a known wait; jobs that ran were stopped, not given up."""
    trace = parse_swf(LOG)
    assert gave_up(trace).tolist() == [False, True, False, False, True, False]
    assert jobs_from_trace(trace).jobs.number.tolist() == [1, 2, 3, 6]
    found = jobs_from_trace(trace, Conversion(given_up="recorded"))
    assert found.jobs.number.tolist() == [1, 2, 3, 5, 6]
    assert found.jobs.processors.tolist() == [8, 8, 4, 1, 4]
    assert found.repaired["given up, no processors: 1 assumed"] == 1
    assert found.dropped == {"no run time (never ran)": 1}


@pytest.mark.parametrize("users", ["rigid", "think-time", "adjusted"])
def test_the_recorded_queue(users):
    """Under the recorded schedule the queue is that of the log, second by second."""
    trace = parse_swf(LOG)
    jobs = replay(trace, users=users, scheduler="recorded").jobs
    kept = np.isin(trace["number"], jobs.number)
    assert jobs.submit.tolist() == trace["submit"][kept].tolist()
    assert jobs.wait_ended.tolist() == (trace["submit"] + trace["wait"])[kept].tolist()
    assert jobs.count(State.CANCELLED) == 2


def test_users_go_on_when_it_leaves():
    """A user who thinks after a job that was given up goes on as long after it has left."""
    trace = parse_swf(
        "; MaxProcs: 8\n"
        "1 0 0 9000 8 -1 -1 8 9000 -1 1 1 1 -1 1 -1 -1 -1\n"
        "2 10 90 -1 -1 -1 -1 8 100 -1 5 2 1 -1 1 -1 -1 -1\n"
        "3 130 9000 50 4 -1 -1 4 100 -1 1 2 1 -1 1 -1 -1 -1\n"
    )
    run = replay(trace, users="adjusted", scheduler="fcfs")
    assert run.jobs.submit.tolist() == [0, 10, 130]
    assert run.jobs.end.tolist() == [9000, 100, 9050]
    assert run.summary()["given_up"]["jobs_given_up"] == 1
    assert "1 job given up in the queue" in run.parts["given up"].lines({})[0]
    dropped = replay(trace, users="adjusted", scheduler="fcfs", given_up="drop")
    assert dropped.metrics["jobs_in"] == 2
    assert "given_up" not in dropped.summary()


def test_logs_without_such_jobs():
    """Nothing acts in a run of a log in which nobody gave up."""
    trace = parse_swf(LOG.splitlines()[1])
    assert "given_up" not in replay(trace).summary()
