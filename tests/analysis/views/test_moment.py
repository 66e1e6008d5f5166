"""Views of a run at a moment and their pictures: the same live and played back."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hpcrowd import Simulation, Work, add_users, read_results, replay, views, write_results
from hpcrowd.analysis.pictures.plots import figure_png
from hpcrowd.behaviours import DecisionLog
from hpcrowd.environment.clock import DAY, HOUR
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from tests.analysis.views.view_cases import SOME_JOBS, assert_same, finished, paused
from tests.support.reports import busy_trace, texts

#: What is compared.
VIEWS: tuple[Callable[[views.Moment], Any], ...] = (
    views.load_table, lambda moment: views.load_table(moment, None), views.submissions_table,
    lambda moment: views.submissions_table(moment, DAY), views.lateness_now, views.queue_table,
    views.users_table, views.gantt_table, views.delays_table,
    lambda moment: moment.seen().to_frame(),
)  # fmt: skip

#: What is compared of each user.
OF_USERS: tuple[Callable[[views.Moment, int], Any], ...] = (
    views.graph_table, lambda moment, user: views.graph_table(moment, user, None),
    views.week_table, views.pauses_table, views.decisions_table, views.next_event_of,
    views.activity_count,
)  # fmt: skip


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
    second = (10, 1000, 3, 2000, 2), (20, 1000, 5, 1000, 2)
    return make_jobs((0, 5000, 4, 5000, 1), *second, (9000, 100, 1, 100, 1))


PRESETS = ("rigid", "think-time", "adjusted")


@settings(max_examples=25)
@given(jobs=SOME_JOBS, until=st.integers(0, 16 * HOUR), users=st.sampled_from(PRESETS))
def test_played_back_as_live(make_jobs, jobs, until, users):
    """Whatever the moment, a run that is paused looks as the finished one played back to it."""
    table = make_jobs(*jobs)
    live = paused(table, 4, users, until=until, log=DecisionLog())
    back = views.Moment.of_run(finished(table, 4, users, log=DecisionLog()), live.now)
    assert_same_views(live, back, [jobs[0][4]])
    for row in live.queue.tolist():
        known = replace(views.blockers_of(live, row), reason=None)
        assert known == replace(views.blockers_of(back, row, scheduler="easy"), reason=None)


@pytest.mark.parametrize("users", PRESETS)
def test_from_a_folder(tmp_path, make_trace, users):
    """A run that is read from a folder is played back like the one that wrote it."""
    run = replay(busy_trace(make_trace), users=users, log=DecisionLog())
    write_results(run, tmp_path / "run")
    again = views.recover_work(read_results(tmp_path / "run"))
    before, after = views.Moment.of_run(run, 80000), views.Moment.of_run(again, 80000)
    assert_same_views(before, after, [11])
    assert views.users_table(after).next_submission_s.notna().any() or users != "rigid"
    assert views.recover_work(again) is again


def test_nothing_to_recover(make_trace):
    """What cannot be known from a folder is not guessed: users who make up their work."""
    job = {"run": 60, "requested_processors": 1, "user": 1}
    days = ({"submit": 86400 * n + 36000, **job} for n in range(9))
    run = replay(make_trace(*days, header="; MaxProcs: 2"), users="shmueli-feitelson")
    assert views.recover_work(run) is run


def test_story(story):
    """At 100 s one job runs, one waits, one was rejected, and one is not released yet."""
    moment = paused(story, 4, until=100)
    assert [True, False, False, False] == moment.running.tolist()
    assert [1] == moment.queue.tolist()
    assert [False, False, True, False] == moment.never_ran.tolist()
    assert [1, 2, 2, 3, 2000, 10, 90] == views.queue_table(moment).iloc[0].tolist()
    frame = views.users_table(moment)
    assert ["running", "waiting"] == frame.state.tolist()
    assert frame.next_submission_s.isna().all()
    assert 0.0 == frame.wait_mean_s[0]
    frame = views.users_table(paused(story, 4, until=5000))
    assert ["thinking", "waiting"] == frame.state.tolist()
    assert (9000, 1) == (frame.next_submission_s[0], frame.jobs_done[0])
    # When nothing is left all users are done, and the last event counts, live and played back.
    moment, back = paused(story, 4, until=None), views.Moment.of_run(finished(story, 4))
    assert ["done", "done"] == views.users_table(moment).state.tolist()
    assert moment.now == back.now == 9101
    assert moment.ended.sum() == back.ended.sum() == 3
    # The record is shown ahead of now, the simulation is not.
    frame = views.submissions_table(paused(story, 4, until=8000)).set_index("time_s")
    assert (4, 3) == (frame.recorded.iloc[-1], frame.simulated[8000])
    assert frame.simulated.loc[8001:].isna().all()


def test_not_over_before_the_last_pass(story):
    """Halted in the second in which a job ends, nothing is to come but the start of the next."""
    work = Work.of(story.copy())
    model = Simulation(work.jobs, 4)
    add_users(model, work, "rigid")
    assert model.run(until=9100).over
    model = Simulation(work.jobs, 4)
    model.cluster.submit([0, 1], 0)
    assert not model.run(until=5000).over
    assert [1] == views.Moment.of_model(model).queue.tolist()
    assert model.run().over


def test_lateness_now(make_jobs):
    """On half the machine the second job comes later by the wait of the first."""
    table = make_jobs((0, 100, 2, 100, 2), (0, 1000, 2, 1000, 1), (5000, 10, 1, 10, 1))
    late = views.lateness_now(paused(table, 2, until=5101))
    assert pytest.approx(100 / 3) == late.mean
    assert views.lateness_now(paused(table, 2, until=0)) == (None, None)


PICTURES: dict[str, Callable[[views.Moment], Figure]] = {
    "load": views.load_picture,
    "load of the run": lambda moment: views.load_picture(moment, None),
    "submissions": views.submissions_picture,
    "queue": views.queue_picture,
    "gantt": views.gantt_picture,
    "users": views.users_picture,
    "graph": lambda moment: views.graph_picture(moment, 1),
    "week": lambda moment: views.week_picture(moment, 1),
    "pauses": lambda moment: views.pauses_picture(moment, 1),
    "decisions": lambda moment: views.decisions_picture(moment, 1),
}


@pytest.fixture(scope="module")
def jobs(make_jobs):
    """Four users with a job each hour of ten days; the machine is too small by day two."""
    return make_jobs(*((HOUR * n, 8000, 1 + n % 3, 9000, 1 + n % 4) for n in range(10 * 24)))


@pytest.mark.parametrize("until", [0, 1, 3 * DAY, None])
@pytest.mark.parametrize("name", PICTURES)
def test_drawn(jobs, name, until):
    """Each view is drawn at the beginning, in the middle and at the end, and names its moment."""
    moment = paused(jobs, 2, until=until, log=DecisionLog())
    figure = PICTURES[name](moment)
    assert "run" in texts(figure)
    assert "week 1 Mon 00:00:0" in texts(figure) or until not in (0, 1)
    png = figure_png(figure)
    assert png.startswith(b"\x89PNG")
    assert until != 3 * DAY or png == figure_png(PICTURES[name](moment))


def test_pictures_say_what_they_leave_out(jobs):
    """A long queue, jobs with little work, sessions of long ago; letters of states have names."""
    moment = paused(jobs, 3, "rigid", until=9 * DAY)
    total = len(moment.queue)
    assert total > 25
    assert f"the first 25 of {total:,} waiting jobs" in texts(views.queue_picture(moment))
    told = texts(views.queue_picture(moment, reasons={int(moment.queue[1]): "asks too much"}))
    assert "why it waits" in told
    assert "asks too much" in told
    assert f"Jobs in the queue; now {total:,}" in texts(views.load_picture(moment))
    moment = paused(jobs, 6, "rigid", until=5 * DAY)
    words = texts(views.gantt_picture(moment, most=10))
    assert re.search("the largest 10 shown, .*% of the work", words)
    assert "shown" not in texts(views.gantt_picture(moment))
    words = texts(views.graph_picture(paused(jobs, 2, until=3 * DAY), 1, 20))
    assert re.search(r"sessions \d+ to \d+", words)
    for legend in ("F finished", "R running", "Q in the queue", "T free", "W waiting for other"):
        assert legend in words


def test_sizes_are_given(jobs):
    """Pictures are as large as asked for, in inches."""
    moment = paused(jobs, 2, until=3 * DAY)
    for draw in views.load_picture, views.submissions_picture, views.gantt_picture:
        assert [6.0, 4.0] == list(draw(moment, width=6, height=4).get_size_inches())
    assert 7.0 == views.graph_picture(moment, 1, width=7).get_figwidth()
