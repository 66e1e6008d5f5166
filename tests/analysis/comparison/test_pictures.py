"""Pictures and folders of comparisons: every run is named, and what is missing is said."""

import pytest
from hpcrowd import JobTable, Run, State, compare
from hpcrowd.analysis.comparison.multiples import MANY, MOST_OVERLAID
from hpcrowd.analysis.comparison.pictures import bars, course, queues, users_apart, weeks
from hpcrowd.analysis.comparison.report import PICTURES
from hpcrowd.analysis.pictures.plots import figure_png
from hpcrowd.scenarios.kinds.replay import replay

from tests.support.reports import HEADER, beyond_the_edges, busy_trace, texts


@pytest.fixture(scope="module")
def trace(make_trace):
    """Two days of three users on a small machine."""
    return busy_trace(make_trace)


@pytest.fixture(scope="module")
def seeded(trace):
    """A comparison of a run with a group of three seeds."""
    drawn = [replay(trace, users="distribution", seed=seed) for seed in range(3)]
    return compare([replay(trace, users="rigid"), *drawn])


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_name_every_group(seeded, name):
    """Every picture names every group, how many seeds it has, and the trace in its title."""
    figure = PICTURES[name].draw(seeded.groups)
    shown = texts(figure)
    assert "rigid, easy" in shown
    assert "distribution, easy, 3 seeds" in shown
    assert ", made" in figure.texts[0].get_text()


@pytest.mark.parametrize("name", ["course.png", "users.png", "queue.png", "waits.png"])
@pytest.mark.parametrize("count", [MOST_OVERLAID, MOST_OVERLAID + 1, MANY])
def test_many_runs_get_a_panel_each(trace, name, count):
    """More runs than lines one can tell apart are drawn side by side, on the same axes."""
    users = ("rigid", "think-time")
    found = compare([replay(trace, users=users[n % 2]) for n in range(count)])
    panels = PICTURES[name].draw(found.groups).axes
    apart = [group.title for group in found.groups] == [p.get_title("left") for p in panels]
    assert (count > MOST_OVERLAID or name == "queue.png") == apart
    drawn = [p for p in panels if p.lines or p.patches]
    assert not apart or 1 == len({(p.get_xlim(), p.get_ylim()) for p in drawn})


def test_a_long_queue_does_not_hide_the_others(make_trace):
    """Where one queue is many times longer than the rest, the axis is logarithmic and says so."""
    jobs = [{"submit": n, "run": 9, "requested_processors": 1, "user": n % 3} for n in range(900)]
    log = make_trace(*jobs, header=HEADER)
    fast = [replay(log, processors="9x") for _ in range(MOST_OVERLAID)]
    figure = queues([*fast, replay(log)])
    assert {"symlog"} == {axes.get_yscale() for axes in figure.axes}
    assert "logarithmic above 10 jobs" in texts(figure)
    assert {"linear"} == {axes.get_yscale() for axes in queues([*fast, fast[0]]).axes}


def test_pictures_of_little(trace):
    """Runs in which nothing happened, and users who never finish, give pictures that say so."""
    found = compare([Run(JobTable(), 4, label, {}) for label in ("a", "b")])
    assert "nothing was submitted" in texts(course(found.groups))
    shown = texts(users_apart(found.groups))
    assert "no users to pair" in shown
    runs = [replay(trace, users="rigid"), replay(trace, users="adjusted")]
    jobs = runs[1].jobs
    lost = jobs.user == 12
    jobs.start[lost] = jobs.end[lost] = -1
    jobs.state[lost] = State.UNFINISHED
    other = compare(runs)
    assert [2] == [other.users.loc["wait_mean_s"]["users"].iloc[0]]
    assert "30 jobs of 1 user unfinished" in " ".join(other.notes)
    for drawing in PICTURES.values():
        assert figure_png(drawing.draw(found.groups)).startswith(b"\x89PNG")
        assert texts(drawing.draw(other.groups))


def test_records_and_intervals_are_drawn(seeded):
    """Each week has the record behind it; bars of several seeds have a line for the interval."""
    shown = texts(weeks(seeded.groups))
    assert "grey: recorded" in shown
    assert "rigid, easy; 0.00 from the record" in shown
    figure = bars(seeded.groups)
    assert {2} == {len(axes.patches) for axes in figure.axes}
    assert [True, True] == [len(axes.lines) == 2 for axes in figure.axes[:2]]  # and that at 0
    assert "95 % interval" in texts(figure)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 6, 9])
def test_many_runs_with_long_names(trace, count):
    """Many runs, with long names, keep within the picture: nothing is drawn over its edges."""
    run = replay(trace, users="adjusted")
    found = compare([run] * count)
    for place, group in enumerate(found.groups):
        group.label = f"run number {place} of users who have a very long name " * 3
    for drawing in PICTURES.values():
        figure = drawing.draw(found.groups)
        figure_png(figure)
        assert [] == beyond_the_edges(figure)
