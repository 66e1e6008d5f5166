"""The page holds for every kind of run: whatever is looked at agrees, and looking changes nothing.

What is checked at each moment is in :mod:`kind_cases`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.agents.presets import PRESETS
from hpcrowd.analysis.results import write_results
from hpcrowd.analysis.views import Moment, load_table, queue_table, users_table
from hpcrowd.analysis.views.users import behaviour_words, mood_words
from hpcrowd.environment import write_swf
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.inspector.subjects.course import LiveCourse, PlayedBack
from hpcrowd.scenarios.inspector.subjects.subject import subject_of
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scenarios.inspector.subjects.kind_cases import Watch, walk
from tests.support.populations import small_log

Make = Callable[..., Trace]

LOG = 'kind = "replay"\ntrace = "log.swf"\n'

MIXED = (
    LOG
    + """
[[scenario.users.users]]
behaviour = "fluid"
share = 0.4
[[scenario.users.users]]
behaviour = "generative"
share = 0.2
[[scenario.users.users]]
behaviour = "think-time"
share = 0.4
reactions = [
    { do = "switch", to = "backup", when = "recent-waits", wait = "10m" },
    { do = "delay", when = "during", periods = [["2d", "4d"]] },
    { do = "renounce", when = "during", periods = [["9d", "11d"]] },
]
[scenario.users.clusters.backup]
processors = 4
"""
)

PLATFORM = (
    LOG
    + """
users = "{users}"
[scenario.platform]
changes = [
    {{ do = "down", at = 200000, until = 700000, processors = 6, jobs = "{fate}" }},
    {{ do = "fail", mean = "8h", repair_mean = "2h", jobs = "{fate}" }},
    {{ do = "maintain", start = 1300000, end = 1400000, jobs = "{fate}" }},
    {{ do = "resize", at = 2000000, processors = 5 }},
    {{ do = "speed", at = 2500000, factor = 0.5 }},
    {{ do = "switch", at = 3000000, scheduler = "sjf" }},
]
"""
)

GRID = """kind = "grid"
users = "{users}"
broker = "{broker}"
{more}
[scenario.clusters.north]
processors = 8
trace = "log.swf"
grid_share = 0.5
[scenario.clusters.south]
processors = 6
speed = 1.5
trace = "log.swf"
[scenario.grid]
model = "lublin"
days = 1
"""

RESAMPLED = 'kind = "resample"\ntrace = "log.swf"\nusers = "{users}"\nsatisfaction = "{minds}"\n'

#: Scenario files by name.
KINDS = {
    **{
        users: LOG + f'users = "{users}"\n'
        for users in ("rigid", "think-time-windows", "adjusted", "distribution", "fluid")
    },
    **{users: LOG + f'users = "{users}"\n' for users in ("shmueli-feitelson", "generative")},
    "recorded": LOG + 'scheduler = "recorded"\n',
    **{name: LOG + f'scheduler = "{name}"\n' for name in ("fcfs", "conservative", "fair-share")},
    "mixed": MIXED,
    "platform-requeue": PLATFORM.format(users="think-time", fate="requeue"),
    "platform-resubmit": PLATFORM.format(users="fluid", fate="resubmit"),
    "platform-made-up": PLATFORM.format(users="generative", fate="resubmit"),
    "platform-fail": PLATFORM.format(users="rigid", fate="fail"),
    "grid-held": GRID.format(users="rigid", broker="first-fit", more=""),
    "grid-at-once": GRID.format(users="think-time", broker="least-loaded", more=""),
    "grid-components": GRID.format(users="think-time", broker="worst-fit", more="components = 5"),
    "resample": RESAMPLED.format(users="think-time-windows", minds="none"),
    "resample-habit": RESAMPLED.format(users="think-time", minds="habit"),
    "resample-mugm": RESAMPLED.format(users="mugm", minds="requested"),
    "resample-rigid": RESAMPLED.format(users="rigid", minds="none"),
    "populate": 'kind = "populate"\nmodel = "lublin"\ndays = 1\nmodel_processors = 64\n',
}  # fmt: skip

#: Kinds that are looked at in the quick tests.
QUICK = ("think-time-windows", "grid-at-once")

STEPS = (HOUR, 6 * HOUR, DAY, DAY + 7, WEEK)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the log of twelve users."""
    return tmp_path_factory.mktemp("kinds")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in KINDS],
)
def test_every_kind(folder: Path, make_trace: Make, name: str) -> None:
    """Simulated and played back, all views agree; looked at, the run comes out as undisturbed."""
    write_swf(small_log(make_trace), folder / "log.swf")
    path = folder / f"{name}.toml"
    path.write_text("[scenario]\n" + KINDS[name])
    subject = subject_of(path)
    undisturbed = subject.begin({})
    assert isinstance(undisturbed, LiveCourse)
    whole = undisturbed.staged.run()
    numbers = np.unique(whole.jobs.user)
    users = numbers[[0, len(numbers) // 2, -1]].tolist()
    course = subject.begin({})
    assert isinstance(course, LiveCourse)
    for user in users:  # in between, a few steps to their events
        course.advance_to_event(user)
    walk(course, STEPS, users, drawn=(4, -1))
    run = course.staged.result()
    np.testing.assert_array_equal(whole.jobs.matrix, run.jobs.matrix)
    write_results(run, folder / name, plots=False)
    back = subject_of(folder / name).begin({})
    assert isinstance(back, PlayedBack)
    back.advance_to_event(users[0])
    walk(back, STEPS, users, drawn=(0,))


SOME_JOBS = st.lists(
    st.fixed_dictionaries(
        {
            "submit": st.integers(0, 3 * DAY),
            "run": st.sampled_from([0, 1, 60, 5 * HOUR]),
            "requested_processors": st.sampled_from([1, 3, 8, 9]),
            "requested_time": st.sampled_from([-1, 60, HOUR, 6 * HOUR]),
            "user": st.sampled_from([-1, 1, 2]),
            "status": st.sampled_from([-1, 0, 1, 5]),
        }
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    SOME_JOBS,
    st.sampled_from(["rigid", "think-time", "adjusted", "think-time-windows"]),
    st.sampled_from(["easy", "fcfs", "conservative", "sjf"]),
    st.lists(st.integers(1, DAY), min_size=1, max_size=5),
)
def test_small_traces(
    tmp_path_factory: pytest.TempPathFactory,
    make_trace: Make,
    jobs: list[dict[str, int]],
    users: str,
    scheduler: str,
    steps: list[int],
) -> None:
    """Of any small trace, also of one job, without a start in time, with users that have no number.

    Jobs that are too large, that need no time, that asked for none, and several at one second.
    """
    folder = tmp_path_factory.mktemp("small")
    jobs.sort(key=lambda job: job["submit"])
    write_swf(make_trace(*jobs, header="; MaxProcs: 8"), folder / "log.swf")
    path = folder / "what.toml"
    path.write_text(f'[scenario]\n{LOG}users = "{users}"\nscheduler = "{scheduler}"\n')
    subject = subject_of(path)
    undisturbed = subject.begin({})
    assert isinstance(undisturbed, LiveCourse)
    whole = undisturbed.staged.run()
    numbers = np.unique(whole.jobs.user).tolist()
    course = subject.begin({})
    assert isinstance(course, LiveCourse)
    watch = Watch(course)
    for step in steps:
        course.advance(course.now + step)
        watch.look(numbers)
        course.advance_to_event(numbers[step % len(numbers)])
        watch.look(numbers)
    course.advance(10**9)
    assert course.over
    watch.look(numbers)
    np.testing.assert_array_equal(whole.jobs.matrix, course.staged.result().jobs.matrix)


def opened(folder: Path, make_trace: Make, text: str) -> LiveCourse:
    """Return the course of a scenario over the log of twelve users."""
    write_swf(small_log(make_trace), folder / "log.swf")
    (folder / "what.toml").write_text("[scenario]\n" + text)
    course = subject_of(folder / "what.toml").begin({})
    assert isinstance(course, LiveCourse)
    return course


def test_outages_in_the_picture_of_load(tmp_path: Path, make_trace: Make) -> None:
    """The machine is as large, and as much of it up, as it was; simulated and played back."""
    changes = """
users = "think-time"
[scenario.platform]
changes = [
    { do = "down", at = 86400, until = 172800, processors = 6 },
    { do = "maintain", start = 259200, end = 345600 },
    { do = "resize", at = 432000, processors = 5 },
]
"""
    course = opened(tmp_path, make_trace, LOG + changes)
    course.advance(4 * WEEK)
    run = course.staged.result()
    write_results(run, tmp_path / "run", plots=False)
    back = subject_of(tmp_path / "run").begin({})
    back.advance(course.now)
    for moment in (course.moment(), back.moment()):
        frame = load_table(moment, None).set_index("end_s")
        days = [int(days * DAY) for days in (0.9, 1.7, 2.7, 3.7, 6)]
        there = [(frame["processors"].asof(day), frame["processors_up"].asof(day)) for day in days]
        assert [(8, 8), (8, 2), (8, 8), (8, 0), (5, 5)] == there
        # Later some run that began when there were more.
        early = frame[frame.index <= 5 * DAY]
        assert (early["processors_in_use"] <= early["processors_up"] + 1e-9).all()
        assert (5, 5) == (moment.size, moment.up)


def test_runs_that_were_stopped_stay_in_the_picture(tmp_path: Path, make_trace: Make) -> None:
    """What was in use before an outage is still shown when it has stopped it."""
    trace = make_trace(
        {"submit": 0, "run": DAY, "requested_processors": 4, "requested_time": DAY, "user": 1},
        header="; MaxProcs: 4",
    )
    write_swf(trace, tmp_path / "log.swf")
    (tmp_path / "what.toml").write_text(
        f"[scenario]\n{LOG}[scenario.platform]\n"
        'changes = [{do = "down", at = 7200, until = 10800, processors = 4, jobs = "resubmit"}]\n'
    )
    course = subject_of(tmp_path / "what.toml").begin({})
    course.advance(2 * HOUR + 60)
    moment = course.moment()
    assert 0 == moment.submitted.sum(), "to be submitted again"
    assert ["thinking"] == users_table(moment)["state"].tolist()
    assert 7800 == users_table(moment)["next_submission_s"].iloc[0]
    course.advance(3 * HOUR)
    frame = load_table(course.moment(), None)
    assert 8 * HOUR == (frame["processors_in_use"] * (frame["end_s"] - frame["begin_s"])).sum()


def test_several_clusters(tmp_path: Path, make_trace: Make) -> None:
    """The load of each is shown, each waiting job has its place, each user where it submits to."""
    course = opened(tmp_path, make_trace, GRID.format(users="rigid", broker="first-fit", more=""))
    places = set()
    while not course.over:
        course.advance(course.now + 7 * HOUR)
        moment = course.moment()
        frame = load_table(moment, DAY)
        whole = frame["in_use_north"] + frame["in_use_south"]
        np.testing.assert_allclose(whole, frame["processors_in_use"])
        places |= set(queue_table(moment)["cluster"])
    assert {"north", "south", "broker"} == places
    assert {"north": 8, "south": 6} == moment.clusters
    assert {"north", "south", "grid"} == set(users_table(moment)["submits_to"])


def test_mixed_users_are_distinguished(tmp_path: Path, make_trace: Make) -> None:
    """Each has the name of its behaviour, with its reactions; nothing where all are alike."""
    frame = users_table(opened(tmp_path, make_trace, MIXED).moment())
    names = {"fluid", "generative", "think-time; switch, delay, renounce"}
    assert names == set(frame["behaviour"])
    same = users_table(opened(tmp_path, make_trace, LOG).moment())
    assert same["behaviour"].isna().all()


@pytest.mark.parametrize("users", [name for name in PRESETS if not name.startswith("linear")])
def test_behaviours_have_their_names(tmp_path: Path, make_trace: Make, users: str) -> None:
    """Whoever behaves as a preset is called by its name, also while decisions are noted."""
    moment = opened(tmp_path, make_trace, LOG + f'users = "{users}"\n').moment()
    assert {users} == {behaviour_words(one.behaviour) for one in moment.users.values()}


def test_a_log_that_begins_late_opens_when_it_begins(tmp_path: Path, make_trace: Make) -> None:
    """The page opens on the day of the first submission, simulated and played back."""
    first = 400 * DAY + 5 * HOUR
    write_swf(
        make_trace({"submit": first, "run": 60, "requested_processors": 1, "user": 1}),
        tmp_path / "late.swf",
    )
    course = subject_of(tmp_path / "late.swf").begin({})
    assert isinstance(course, LiveCourse)
    assert 400 * DAY == course.now
    assert not course.over
    write_results(course.staged.run(), tmp_path / "run", plots=False)
    assert 400 * DAY == subject_of(tmp_path / "run").begin({}).now


def test_who_is_done_does_not_keep_the_page_busy(tmp_path: Path, make_trace: Make) -> None:
    """The next event of a user who has none is not looked for at each event of the others."""
    one = {"run": 60, "requested_processors": 1}
    jobs = [{"submit": 0, "user": 1, **one}]
    jobs += [{"submit": 60 + place, "user": 2, **one} for place in range(3000)]
    write_swf(make_trace(*jobs, header="; MaxProcs: 8"), tmp_path / "log.swf")
    course = subject_of(tmp_path / "log.swf").begin({})
    looks = 0
    look = course.look

    def counted() -> Moment:
        nonlocal looks
        looks += 1
        return look()

    course.look = counted  # type: ignore[method-assign]
    while course.advance_to_event(1):
        pass
    assert looks < 20


def test_moods_are_of_those_who_have_met_something(tmp_path: Path, make_trace: Make) -> None:
    """Who has submitted nothing has no mood yet; what rounds to nothing has no minus."""
    text = RESAMPLED.format(users="think-time", minds="habit")
    course = opened(tmp_path, make_trace, text)
    assert users_table(course.moment())["mood"].isna().all()
    course.advance(course.now + 2 * WEEK)
    frame = users_table(course.moment())
    np.testing.assert_array_equal(frame["mood"].isna(), frame["state"] == "not yet")
    assert frame["mood"].notna().any()
    assert ["+0.00", "-0.01", "+1.50"] == [mood_words(mood) for mood in (-0.001, -0.01, 1.5)]
