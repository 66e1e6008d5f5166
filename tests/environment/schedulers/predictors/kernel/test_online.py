"""Predictors inside a simulation: compiled equals plain, online equals offline, no look ahead."""

from typing import Any

import numpy as np
import pytest
from hpcrowd import ClusterSpec, SessionDefinition, Work, add_users
from hpcrowd.environment.schedulers.estimates import Events
from hpcrowd.environment.schedulers.names import POOL_SCHEDULERS
from hpcrowd.errors import PredictorError, QuantityError
from hpcrowd.platform import Maintenance
from hpcrowd.predictors import LastTwo, Predictor, parse_estimates
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.schedulers.predictors.test_predictors import PLAIN, predictors
from tests.support.policies import outcome, platforms
from tests.support.simulations import both, recorded, simulation_of

# Compiles loops that the other quick tests do not need.
pytestmark = pytest.mark.slow

Rows = list[tuple[int, ...]]

SIZE = 6
COLUMNS = ("processors", "requested_time", "user", "group", "queue", "executable",
           "requested_memory")  # fmt: skip

#: User, group, queue, executable and memory where they do not matter.
ONES = (1, 1, 1, 1, 1)

#: The submission, then the columns; jobs without length and too large ones where the least is 0.
jobs_of = {
    least: st.lists(
        st.tuples(
            st.integers(0, 30),
            st.integers(least, 10),
            st.integers(1, SIZE + 1 - least),
            st.integers(1, 12),
            *[st.integers(1, 2)] * 5,
        ),
        min_size=1,
        max_size=30,
    )
    for least in (0, 1)
}
policies = st.sampled_from(sorted(POOL_SCHEDULERS))


def make(rows):
    """The table of these jobs."""
    submit, run, *columns = np.array(rows).T
    return recorded(submit, run, **dict(zip(COLUMNS, columns, strict=True)))


def simulate(rows, scheduler, estimates, users="rigid", room=1024, **more):
    """The jobs after the run."""
    jobs = make(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hpcrowd.environment.engine.compiled.FIRST_ROOM", room)
        patch.setattr("hpcrowd.environment.schedulers.predictors.experience.FIRST_ROOM", room)
        model = simulation_of(jobs, SIZE, scheduler, estimates=estimates, **more)
        add_users(model, Work.of(jobs, SessionDefinition("arrival", 2)), users)
        model.run()
    return jobs


@settings(max_examples=100)
@given(
    jobs_of[0],
    st.just([]) | platforms,
    policies,
    predictors,
    st.sampled_from(["keep", "kill"]),
    st.sampled_from(["rigid", "think-time"]),
    st.sampled_from([1, 2, 1024]),
)
def test_compiled_equals_plain(rows, platform, scheduler, predictor, overrun, users, room):
    """The compiled predictor in the compiled engine gives the schedule of the plain one in plain.

    Under every policy, with users who react, jobs that outrun predictions and requests, and ties;
    failures, maintenance, other sizes, speeds and policies come between.
    """
    # Jobs that come again are for the same predictor in both engines.
    readable = predictor if platform else PLAIN[type(predictor)](predictor)
    how: dict[str, Any] = {"overrun": overrun, "platform": platform, "resubmit_after": 5}
    plain = simulate(rows, scheduler, readable, users, plain=True, **how)
    assert outcome(plain) == outcome(simulate(rows, scheduler, predictor, users, room, **how))


def said_offline(jobs, predictor):
    """What the predictor says along the run, with a table that holds neither run times nor ends."""
    events = Events.of(jobs.submit.copy(), jobs.end.copy())
    blind = jobs.copy()
    for column in (blind.run_time, blind.end, blind.recorded_end, blind.estimate):
        column[:] = -1
    predictor.begin(blind)
    return predictor.follow(events)


@settings(max_examples=60)
@given(jobs_of[1], policies, predictors, st.booleans())
def test_online_says_what_offline_says(rows, scheduler, predictor, plain):
    """Each estimate is what the predictor says at that arrival from the ends until then alone."""
    jobs = simulate(rows, scheduler, predictor, plain=plain)
    assert said_offline(jobs, predictor).tolist() == jobs.estimate.tolist()


#: The policy, (submission, run time) of jobs of one user, their processors, what else is given,
#: and the estimates by the last two.
STORIES: dict[str, tuple[str, list[tuple[int, int]], int, dict[str, Any], list[int]]] = {
    # The first job ends 4 s after its start, in the maintenance. The second arrives before that
    # end, the third after it.
    "maintenance does not make runs longer": (
        "fcfs", [(0, 4), (3, 4), (6, 4)], 1,
        {"platform": [Maintenance(2, 20, announced=0, jobs="run")]}, [12, 12, 4]),
    "a job that outruns its request counts as long as it ran": (
        "easy", [(0, 2), (10, 14), (30, 1)], SIZE, {}, [12, 2, 8]),
    "nothing is learnt from a job that was stopped": (
        "easy", [(0, 2), (10, 14), (30, 1)], SIZE, {"overrun": "kill"}, [12, 2, 2]),
    # Also where the policy does not care for estimates.
    **{policy: (policy, [(0, 4), (3, 4), (4, 4), (9, 4)], 1, {}, [12, 12, 4, 4])
       for policy in sorted(POOL_SCHEDULERS)},
}  # fmt: skip


@both
@pytest.mark.parametrize("name", STORIES)
def test_what_is_predicted_is_recorded(name, plain):
    """The request at first, then what ended by itself."""
    scheduler, runs, processors, more, expected = STORIES[name]
    rows = [(at, run, processors, 12, *ONES) for at, run in runs]
    jobs = simulate(rows, scheduler, "last-two", plain=plain, **more)
    assert expected == jobs.estimate.tolist()


@both
@pytest.mark.parametrize("scheduler", ["easy", "conservative"])
def test_outrun_predictions_are_corrected(scheduler, plain):
    """A reservation moves to the corrected end, so that what ends before it may start.

    Job 1 is believed to run 10 s, runs 200 s and asked for 1,000 s. From 10 s on it is believed to
    end at 70 s, so that job 3, of 50 s, may start at 15 s next to it. Without correction it would
    be believed to end at once, and job 3 would delay job 2.
    """
    rows = [(0, 200, 3, 1000), (1, 10, SIZE, 1000), (15, 50, 3, 1000)]

    class Told(LastTwo):
        def predict(self, rows, now):
            return np.array([10, 10, 50])[rows]

    jobs = simulate([(*row, *ONES) for row in rows], scheduler, Told(), plain=plain)
    assert [0, 200, 15] == jobs.start.tolist()


def test_clusters_learn_from_their_own():
    """Two clusters with a predictor each: neither hears of the other's jobs."""
    jobs = make([(at, run, 1, 12, *ONES) for at, run in ((0, 2), (0, 6), (8, 1), (8, 1))])
    other = ClusterSpec(SIZE, estimates="last-two")
    model = simulation_of(jobs, SIZE, estimates="last-two", others={"other": other})
    model.cluster.submit([0, 2], jobs.recorded_submit[[0, 2]])
    model.clusters["other"].submit([1, 3], jobs.recorded_submit[[1, 3]])
    model.run()
    assert [12, 12, 2, 6] == jobs.estimate.tolist()


def test_what_cannot_be_foretold():
    """Untrained, of a recorded schedule, or for two clusters: told before anything runs."""
    jobs, one = make([(0, 1, 1, 1, *ONES)]), LastTwo()
    with pytest.raises(PredictorError, match="used before it was trained"):
        simulation_of(jobs, 1, estimates="history")
    with pytest.raises(QuantityError, match="the recorded schedule uses no predictions"):
        simulation_of(jobs, 1, "recorded", estimates="nearest")
    with pytest.raises(QuantityError, match="one predictor for two clusters"):
        simulation_of(jobs, 1, estimates=one, others={"other": ClusterSpec(1, estimates=one)})
    assert isinstance(parse_estimates("history:HPC2N05,history=completion"), Predictor)
