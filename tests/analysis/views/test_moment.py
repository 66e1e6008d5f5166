"""Views of a run at a moment: the same live and played back; what is not known is not shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd.agents import Work, add_users
from hpcrowd.analysis.views import (
    Moment,
    lateness_now,
    load_table,
    queue_table,
    submissions_table,
    users_table,
)
from hpcrowd.environment import JobTable, Simulation, State, Trace
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.traces.trace import Conversion, jobs_from_trace
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analysis.views.view_cases import assert_same, finished, paused

#: What is compared, by name.
VIEWS: dict[str, Callable[[Moment], Any]] = {
    "load": load_table,
    "load of the run": lambda moment: load_table(moment, None),
    "submissions": submissions_table,
    "submissions of a day": lambda moment: submissions_table(moment, DAY),
    "lateness": lateness_now,
    "queue": queue_table,
    "users": users_table,
    "seen": lambda moment: moment.seen().to_frame(),
}


@pytest.fixture(scope="module")
def story(make_jobs: Callable[..., JobTable]) -> JobTable:
    """Two users on 4 processors; user 1 thinks 100 s, user 2 asks for more than there is."""
    return make_jobs(
        (0, 5000, 4, 5000, 1),
        (10, 1000, 3, 2000, 2),
        (20, 1000, 5, 1000, 2),
        (9000, 100, 1, 100, 1),
    )


@given(
    jobs=st.lists(
        st.tuples(
            st.integers(0, 6 * HOUR), st.integers(0, 3 * HOUR), st.integers(1, 5), st.integers(1, 3)
        ),
        min_size=1,
        max_size=14,
    ),
    until=st.integers(0, 16 * HOUR),
    users=st.sampled_from(["rigid", "think-time", "adjusted"]),
)
@settings(max_examples=60)
def test_played_back_as_live(
    make_jobs: Callable[..., JobTable], jobs: list[tuple[int, ...]], until: int, users: str
) -> None:
    """Whatever the moment, a run that is paused looks as the finished one played back to it."""
    rows = sorted((submit, run, size, run + 1, user) for submit, run, size, user in jobs)
    table = make_jobs(*rows)
    live = paused(table, 4, users, until=until)
    back = Moment.of_run(finished(table, 4, users), live.now)
    for view in VIEWS.values():
        assert_same(view, live, back)


@pytest.mark.traces
@pytest.mark.parametrize("users", ["rigid", "think-time"])
def test_kth_played_back_as_live(kth: Trace, users: str) -> None:
    """So it is in the middle of a real log on a smaller machine, where jobs wait."""
    jobs, clock = jobs_from_trace(kth, Conversion()).jobs, Clock.of(kth.header)
    run = finished(jobs, 80, users, clock=clock)
    for share in 0.2, 0.55, 0.8:
        until = int(np.quantile(jobs.recorded_submit, share))
        live = paused(jobs, 80, users, until=until, clock=clock)
        assert until == live.now
        for view in VIEWS.values():
            assert_same(view, live, Moment.of_run(run, until))


def test_story(story: JobTable) -> None:
    """At 100 s one job runs, one waits, one was rejected, and one is not released yet."""
    moment = paused(story, 4, until=100)
    assert [True, False, False, False] == moment.running.tolist()
    assert [1] == moment.queue.tolist()
    assert [False, False, True, False] == moment.never_ran.tolist()
    assert [1, 2, 2, 3, 2000, 10, 90] == queue_table(moment).iloc[0].tolist()
    frame = users_table(moment).set_index("user")
    assert "running" == frame.state[1]
    assert "waiting" == frame.state[2]
    assert frame.next_submission_s.isna().all()
    assert 0.0 == frame.wait_mean_s[1]


def test_think_time_passes(story: JobTable) -> None:
    """When the first job has ended its user thinks, and it is known when the next one comes."""
    moment = paused(story, 4, until=5000)
    frame = users_table(moment).set_index("user")
    assert "thinking" == frame.state[1]
    assert 9000 == frame.next_submission_s[1]
    assert 1 == frame.jobs_done[1]
    assert "waiting" == frame.state[2]


def test_over(story: JobTable) -> None:
    """When nothing is left all users are done, and the last event counts, live and played back."""
    moment = paused(story, 4, until=None)
    assert ["done", "done"] == users_table(moment).state.tolist()
    back = Moment.of_run(finished(story, 4))
    assert moment.now == back.now == 9101
    assert moment.ended.sum() == back.ended.sum() == 3


def test_not_over_before_the_last_pass(story: JobTable) -> None:
    """Halted in the second in which a job ends, nothing is to come but the start of the next."""
    work = Work.of(story.copy())
    model = Simulation(work.jobs, 4)
    add_users(model, work, "rigid")
    model.run(until=9100)
    assert model.over
    model = Simulation(work.jobs, 4)
    model.cluster.submit([0, 1], 0)
    model.run(until=5000)
    assert not model.over
    assert [1] == Moment.of_model(model).queue.tolist()
    assert model.run().over


def test_future_is_unknown(story: JobTable) -> None:
    """Of a finished run nothing is seen that lies after the moment."""
    seen = Moment.of_run(finished(story, 4), 100).seen()
    assert [0, 10, 20, UNKNOWN] == seen.submit.tolist()
    assert [0, UNKNOWN, UNKNOWN, UNKNOWN] == seen.start.tolist()
    assert (seen.end == UNKNOWN).all()
    assert [0, 0, State.REJECTED, 0] == seen.state.tolist()


def test_load_is_exact(story: JobTable) -> None:
    """The averages of the bins add up to the processor-seconds and waits so far."""
    moment = paused(story, 4, until=5500)
    frame = load_table(moment)
    width = frame.end_s - frame.begin_s
    assert 5500 == frame.end_s.iloc[-1]
    assert pytest.approx(5000 * 4 + 500 * 3) == (frame.processors_in_use * width).sum()
    assert pytest.approx(4990) == (frame.jobs_waiting * width).sum()
    assert pytest.approx(4990 * 3) == (frame.processors_asked * width).sum()


def test_lateness_now(make_jobs: Callable[..., JobTable]) -> None:
    """On half the machine the second job comes later by the wait of the first."""
    table = make_jobs((0, 100, 2, 100, 2), (0, 1000, 2, 1000, 1), (5000, 10, 1, 10, 1))
    late = lateness_now(paused(table, 2, until=5101))
    assert late.mean is not None
    assert pytest.approx(100 / 3) == late.mean
    assert lateness_now(paused(table, 2, until=0)) == (None, None)


def test_submissions_ahead(story: JobTable) -> None:
    """The record is shown ahead of now, the simulation is not."""
    frame = submissions_table(paused(story, 4, until=8000)).set_index("time_s")
    assert 4 == frame.recorded.iloc[-1]
    assert 3 == frame.simulated[8000]
    assert frame.simulated.loc[8001:].isna().all()
