"""Views of a run at a moment: the same live and played back; what is not known is not shown."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hpcrowd import Simulation, Work, add_users, read_results, replay, write_results
from hpcrowd.behaviours import DecisionLog
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.traces.trace import Conversion, jobs_from_trace
from hpcrowd.views import (
    Moment,
    activity_count,
    blockers_of,
    decisions_table,
    delays_table,
    gantt_table,
    graph_table,
    lateness_now,
    load_table,
    next_event_of,
    pauses_table,
    queue_table,
    recover_work,
    submissions_table,
    users_table,
    week_table,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analysis.views.view_cases import SOME_JOBS, assert_same, finished, paused

#: What is compared.
VIEWS: tuple[Callable[[Moment], Any], ...] = (
    load_table,
    lambda moment: load_table(moment, None),
    submissions_table,
    lambda moment: submissions_table(moment, DAY),
    lateness_now,
    queue_table,
    users_table,
    gantt_table,
    delays_table,
    lambda moment: moment.seen().to_frame(),
)

#: What is compared of each user.
OF_USERS: tuple[Callable[[Moment, int], Any], ...] = (
    graph_table,
    lambda moment, user: graph_table(moment, user, None),
    week_table,
    pauses_table,
    decisions_table,
    next_event_of,
    activity_count,
)


def assert_same_views(live, back, users):
    """Check that everything looks the same in two moments."""
    for view in VIEWS:
        assert_same(view, live, back)
    for user in users:
        for of_user in OF_USERS:
            assert_same(of_user, live, back, user)


@pytest.fixture(scope="module")
def story(make_jobs):
    """Two users on 4 processors; user 1 thinks 100 s, user 2 asks for more than there is."""
    return make_jobs(
        (0, 5000, 4, 5000, 1),
        (10, 1000, 3, 2000, 2),
        (20, 1000, 5, 1000, 2),
        (9000, 100, 1, 100, 1),
    )


@settings(max_examples=25)
@given(
    jobs=SOME_JOBS,
    until=st.integers(0, 16 * HOUR),
    users=st.sampled_from(["rigid", "think-time", "adjusted"]),
)
def test_played_back_as_live(make_jobs, jobs, until, users):
    """Whatever the moment, a run that is paused looks as the finished one played back to it."""
    table = make_jobs(*jobs)
    live = paused(table, 4, users, until=until, log=DecisionLog())
    back = Moment.of_run(finished(table, 4, users, log=DecisionLog()), live.now)
    assert_same_views(live, back, [jobs[0][4]])
    for row in live.queue.tolist():
        known = replace(blockers_of(live, row), reason=None)
        assert known == replace(blockers_of(back, row, scheduler="easy"), reason=None)


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.parametrize("users", ["rigid", "think-time"])
def test_kth_played_back_as_live(kth, users):
    """So it is in a real log on a smaller machine; users are delayed by all that was waited."""
    jobs, clock = jobs_from_trace(kth, Conversion()).jobs, Clock.of(kth.header)
    run = finished(jobs, 80, users, clock=clock, log=DecisionLog())
    for share in 0.2, 0.55:
        until = int(np.quantile(jobs.recorded_submit, share))
        live = paused(jobs, 80, users, until=until, clock=clock, log=DecisionLog())
        assert until == live.now
        assert_same_views(live, Moment.of_run(run, until), [1, 9, 39, 91])
        seen = live.seen(np.flatnonzero(live.started | live.waiting))
        ends = np.where(seen.start == UNKNOWN, until, seen.start)
        total = int(((ends - seen.submit) * seen.processors).sum()) / HOUR
        assert total == pytest.approx(delays_table(live)["processor_hours"].sum(), rel=1e-9)


@pytest.mark.parametrize("users", ["rigid", "think-time", "adjusted"])
def test_from_a_folder(tmp_path, make_trace, users):
    """A run that is read from a folder is played back like the one that wrote it."""
    trace = make_trace(
        *(
            {"submit": 3000 * n + 40 * (n % 7), "run": 1800 + 1700 * (n % 7), "user": n % 3,
             "requested_processors": 1 + n % 5, "requested_time": 15000}
            for n in range(60)
        ),
        header="; MaxProcs: 5",
    )  # fmt: skip
    run = replay(trace, users=users, log=DecisionLog())
    write_results(run, tmp_path / "run")
    again = recover_work(read_results(tmp_path / "run"))
    before, after = Moment.of_run(run, 80000), Moment.of_run(again, 80000)
    assert_same_views(before, after, [1])
    assert users_table(after).next_submission_s.notna().any() or users != "rigid"
    assert recover_work(again) is again


def test_nothing_to_recover(make_trace):
    """What cannot be known from a folder is not guessed: users who make up their work."""
    job = {"run": 60, "requested_processors": 1, "user": 1}
    days = ({"submit": 86400 * n + 36000, **job} for n in range(9))
    run = replay(make_trace(*days, header="; MaxProcs: 2"), users="shmueli-feitelson")
    assert recover_work(run) is run


def test_story(story):
    """At 100 s one job runs, one waits, one was rejected, and one is not released yet."""
    moment = paused(story, 4, until=100)
    assert [True, False, False, False] == moment.running.tolist()
    assert [1] == moment.queue.tolist()
    assert [False, False, True, False] == moment.never_ran.tolist()
    assert [1, 2, 2, 3, 2000, 10, 90] == queue_table(moment).iloc[0].tolist()
    frame = users_table(moment)
    assert ["running", "waiting"] == frame.state.tolist()
    assert frame.next_submission_s.isna().all()
    assert 0.0 == frame.wait_mean_s[0]
    frame = users_table(paused(story, 4, until=5000))
    assert ["thinking", "waiting"] == frame.state.tolist()
    assert (9000, 1) == (frame.next_submission_s[0], frame.jobs_done[0])


def test_over(story):
    """When nothing is left all users are done, and the last event counts, live and played back."""
    moment, back = paused(story, 4, until=None), Moment.of_run(finished(story, 4))
    assert ["done", "done"] == users_table(moment).state.tolist()
    assert moment.now == back.now == 9101
    assert moment.ended.sum() == back.ended.sum() == 3


def test_not_over_before_the_last_pass(story):
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


def test_load_is_exact(story):
    """The averages of the bins add up to the processor-seconds and waits so far."""
    frame = load_table(paused(story, 4, until=5500))
    width = frame.end_s - frame.begin_s
    assert 5500 == frame.end_s.iloc[-1]
    assert pytest.approx(5000 * 4 + 500 * 3) == (frame.processors_in_use * width).sum()
    assert pytest.approx(4990) == (frame.jobs_waiting * width).sum()
    assert pytest.approx(4990 * 3) == (frame.processors_asked * width).sum()


def test_lateness_now(make_jobs):
    """On half the machine the second job comes later by the wait of the first."""
    table = make_jobs((0, 100, 2, 100, 2), (0, 1000, 2, 1000, 1), (5000, 10, 1, 10, 1))
    late = lateness_now(paused(table, 2, until=5101))
    assert pytest.approx(100 / 3) == late.mean
    assert lateness_now(paused(table, 2, until=0)) == (None, None)


def test_submissions_ahead(story):
    """The record is shown ahead of now, the simulation is not."""
    frame = submissions_table(paused(story, 4, until=8000)).set_index("time_s")
    assert (4, 3) == (frame.recorded.iloc[-1], frame.simulated[8000])
    assert frame.simulated.loc[8001:].isna().all()
