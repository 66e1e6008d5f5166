"""Predictors inside a simulation: compiled equals plain, online equals offline, no look ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hpcrowd.agents import SessionDefinition, Work, add_users
from hpcrowd.environment import (
    ClusterSpec,
    HistoryPredictor,
    JobTable,
    LastTwo,
    Maintenance,
    Predictor,
    PredictorError,
    QuantityError,
    Simulation,
    State,
    parse_estimates,
)
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.schedulers.names import POOL_SCHEDULERS
from hpcrowd.environment.schedulers.predictors.base import PREDICTOR_NAMES, Events
from hpcrowd.environment.schedulers.predictors.models import PREDICTORS
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.engine.test_properties import outcome
from tests.environment.platform.test_properties import Platform, platforms
from tests.environment.schedulers.predictors.test_predictors import PLAIN, predictors

# Compiles loops that the other quick tests do not need.
pytestmark = pytest.mark.slow

Rows = list[tuple[int, ...]]

#: Processors.
SIZE = 6

#: (submission, run time, processors, requested time, user, group, queue, executable, memory).
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
overruns = st.sampled_from(["keep", "kill"])


def make(rows: Rows) -> JobTable:
    """The table of these jobs."""
    jobs = JobTable()
    submit, run, processors, requested, user, group, queue, executable, memory = np.array(rows).T
    jobs.append(
        len(rows),
        recorded_submit=submit,
        recorded_start=submit,
        recorded_end=submit + run,
        run_time=run,
        processors=processors,
        requested_time=requested,
        user=user,
        group=group,
        queue=queue,
        executable=executable,
        requested_memory=memory,
    )
    return jobs


def simulate(
    rows: Rows,
    scheduler: str,
    estimates: str | Predictor,
    *,
    users: str = "rigid",
    room: int = 1024,
    **options: Any,
) -> JobTable:
    """The jobs after the run."""
    jobs = make(rows)
    work = Work.of(jobs, SessionDefinition("arrival", 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hpcrowd.environment.engine.compiled.FIRST_ROOM", room)
        patch.setattr("hpcrowd.environment.schedulers.predictors.experience.FIRST_ROOM", room)
        model = Simulation(jobs, SIZE, scheduler, estimates=estimates, **options)
        add_users(model, work, users)
        model.run()
    return jobs


@settings(max_examples=300)
@given(
    jobs_of[0],
    policies,
    predictors,
    overruns,
    st.sampled_from(["rigid", "think-time"]),
    st.sampled_from([1, 2, 1024]),
)
def test_compiled_equals_plain(
    rows: Rows, scheduler: str, predictor: Predictor, overrun: str, users: str, room: int
) -> None:
    """The compiled predictor in the compiled engine gives the schedule of the plain one in plain.

    Under every policy, with users who react, jobs that outrun predictions and requests, and ties.
    """
    readable = PLAIN[type(predictor)](predictor)
    how: dict[str, Any] = {"users": users, "overrun": overrun}
    plain = simulate(rows, scheduler, readable, plain=True, **how)
    fast = simulate(rows, scheduler, predictor, room=room, **how)
    assert outcome(plain) == outcome(fast)


@pytest.mark.slow
@settings(max_examples=300)
@given(jobs_of[0], platforms, policies, predictors, overruns)
def test_compiled_equals_plain_on_platforms_that_change(
    rows: Rows, platform: Platform, scheduler: str, predictor: Predictor, overrun: str
) -> None:
    """Failures, maintenance, other sizes, speeds and policies come between, in both engines."""
    how: dict[str, Any] = {"platform": platform, "overrun": overrun, "resubmit_after": 5}
    plain = simulate(rows, scheduler, predictor, plain=True, **how)
    fast = simulate(rows, scheduler, predictor, **how)
    assert outcome(plain) == outcome(fast)


def said_offline(jobs: JobTable, predictor: Predictor) -> Int64s:
    """What the predictor says along the run, with a table that holds neither run times nor ends."""
    events = Events.of(jobs.submit.copy(), jobs.end.copy())
    blind = jobs.copy()
    for column in (blind.run_time, blind.end, blind.recorded_end, blind.estimate):
        column[:] = -1
    predictor.begin(blind)
    return predictor.follow(events)


@given(jobs_of[1], policies, predictors, st.booleans())
def test_online_says_what_offline_says(
    rows: Rows, scheduler: str, predictor: Predictor, plain: bool
) -> None:
    """Each estimate is what the predictor says at that arrival from the ends until then alone."""
    jobs = simulate(rows, scheduler, predictor, plain=plain)
    assert said_offline(jobs, predictor).tolist() == jobs.estimate.tolist()


class Leaking(LastTwo):
    """Knows how long the job will run."""

    def predict(self, rows: Int64s, now: int) -> Int64s:
        """Look into the table."""
        assert self._jobs is not None
        return np.maximum(self._jobs.run_time[rows], 1)


def test_a_leak_is_caught() -> None:
    """A predictor that looks at a job which has not ended does not pass the test before."""
    rows = [(0, 7, 1, 12, 1, 1, 1, 1, 1), (3, 5, 1, 12, 1, 1, 1, 1, 1)]
    jobs = simulate(rows, "easy", Leaking())
    assert [7, 5] == jobs.estimate.tolist()
    assert [7, 5] != said_offline(jobs, Leaking()).tolist()


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("scheduler", sorted(POOL_SCHEDULERS))
def test_what_is_predicted_is_recorded(scheduler: str, plain: bool) -> None:
    """The request at first, then what ended; also where the policy does not care for estimates."""
    rows = [(at, 4, 1, 12, 1, 1, 1, 1, 1) for at in (0, 3, 4, 9)]
    jobs = simulate(rows, scheduler, "last-two", plain=plain)
    assert [12, 12, 4, 4] == jobs.estimate.tolist()


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    ("overrun", "ends", "state"), [("keep", 24, State.COMPLETED), ("kill", 19, State.KILLED)]
)
def test_jobs_are_killed_at_their_request(
    plain: bool, overrun: str, ends: int, state: State
) -> None:
    """A job that outruns its prediction continues to its request; only what ended by itself counts.

    The predictor does not learn from a job that was stopped.
    """
    rows = [(at, run, SIZE, 9, 1, 1, 1, 1, 1) for at, run in ((0, 2), (10, 14), (30, 1))]
    jobs = simulate(rows, "easy", "last-two:jobs=1", plain=plain, overrun=overrun)
    assert (2, ends, state) == (jobs.estimate[1], jobs.end[1], jobs.state[1])
    assert {24: 14, 19: 2}[ends] == jobs.estimate[2]


@pytest.mark.parametrize("plain", [False, True])
def test_maintenance_does_not_make_runs_longer(plain: bool) -> None:
    """What ends while nothing may start counts as long as it ran, and arrivals are foretold then.

    The first job ends 4 s after its start, in the maintenance. The second arrives before that end,
    the third after it.
    """
    rows = [(at, 4, 1, 12, 1, 1, 1, 1, 1) for at in (0, 3, 6)]
    window = Maintenance(2, 20, announced=0, jobs="run")
    jobs = simulate(rows, "fcfs", "last-two", platform=[window], plain=plain)
    assert [12, 12, 4] == jobs.estimate.tolist()


@pytest.mark.parametrize("scheduler", ["easy", "conservative"])
@pytest.mark.parametrize("plain", [False, True])
def test_outrun_predictions_are_corrected(scheduler: str, plain: bool) -> None:
    """A reservation moves to the corrected end, so that what ends before it may start.

    Job 1 is believed to run 10 s, runs 200 s and asked for 1,000 s. From 10 s on it is believed to
    end at 70 s, so that job 3, of 50 s, may start at 15 s next to it. Without correction it would
    be believed to end at once, and job 3 would delay job 2.
    """
    rows = [(0, 200, 3, 1000), (1, 10, SIZE, 1000), (15, 50, 3, 1000)]

    class Told(LastTwo):
        def predict(self, rows: Int64s, now: int) -> Int64s:
            return np.array([10, 10, 50])[rows]

    jobs = simulate([(*row, 1, 1, 1, 1, 1) for row in rows], scheduler, Told(), plain=plain)
    assert [0, 200, 15] == jobs.start.tolist()


def test_clusters_learn_from_their_own() -> None:
    """Two clusters with a predictor each: neither hears of the other's jobs."""
    jobs = make([(at, run, 1, 12, 1, 1, 1, 1, 1) for at, run in ((0, 2), (0, 6), (8, 1), (8, 1))])
    other = ClusterSpec(SIZE, estimates="last-two")
    model = Simulation(jobs, SIZE, estimates="last-two", others={"other": other})
    model.cluster.submit([0, 2], jobs.recorded_submit[[0, 2]])
    model.clusters["other"].submit([1, 3], jobs.recorded_submit[[1, 3]])
    model.run()
    assert [12, 12, 2, 6] == jobs.estimate.tolist()


def test_what_cannot_be_foretold() -> None:
    """Untrained, of a recorded schedule, or for two clusters: told before anything runs."""
    jobs = make([(0, 1, 1, 1, 1, 1, 1, 1, 1)])
    with pytest.raises(PredictorError, match="used before it was trained"):
        Simulation(jobs, 1, estimates="history")
    with pytest.raises(PredictorError, match="used before it was trained"):
        Simulation(jobs, 1, estimates=HistoryPredictor())
    with pytest.raises(QuantityError, match="the recorded schedule uses no predictions"):
        Simulation(jobs, 1, "recorded", estimates="nearest")
    one = LastTwo()
    with pytest.raises(QuantityError, match="one predictor for two clusters"):
        Simulation(jobs, 1, estimates=one, others={"other": ClusterSpec(1, estimates=one)})


def test_texts_of_predictors_are_estimates() -> None:
    """Estimates know the names of all predictors, with their options."""
    assert set(PREDICTOR_NAMES) == set(PREDICTORS)
    for text in ("last-two:cap=yes", "nearest:k=3", "history:HPC2N05,history=completion"):
        found = parse_estimates(text)
        assert isinstance(found, Predictor)
        assert text.startswith(found.name)
