"""Pictures and folders of comparisons: every run is named, and what is missing is said."""

import json

import pytest
from hpcrowd import JobTable, Run, State, compare
from hpcrowd.analysis.comparison import report
from hpcrowd.analysis.comparison.multiples import MANY, MOST_OVERLAID
from hpcrowd.analysis.comparison.pictures import bars, course, queues, users_apart, weeks
from hpcrowd.analysis.comparison.report import (
    PICTURES,
    format_difference,
    format_estimate,
    format_users,
)
from hpcrowd.analysis.paired import Difference, Estimate, UserDifference
from hpcrowd.analysis.pictures.plots import figure_png, shortened, wrapped
from hpcrowd.pictures import write_comparison
from hpcrowd.scenarios.kinds.replay import replay

from tests.support.reports import beyond_the_edges, texts

HEADER = "; UnixStartTime: 953852400\n; TimeZoneString: Europe/Stockholm\n; MaxProcs: 4"


@pytest.fixture(scope="module")
def trace(make_trace):
    """Two days of three users on a small machine."""
    return make_trace(
        *(
            {"submit": 1800 * n, "run": 7200, "requested_processors": 3, "user": n % 3}
            for n in range(90)
        ),
        header=HEADER,
    )


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
    for text in ("rigid, easy", "distribution, easy, 3 seeds"):
        assert text in shown
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
    assert "nothing was submitted" in texts(weeks(found.groups))
    shown = texts(users_apart(found.groups))
    assert "no record to compare with" in shown
    assert "no users to pair" in shown
    runs = [replay(trace, users="rigid"), replay(trace, users="adjusted")]
    jobs = runs[1].jobs
    lost = jobs.user == 2
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


def test_folder_is_whole(seeded, tmp_path, monkeypatch):
    """The folder has tables and pictures, and may be replaced by another comparison."""
    monkeypatch.setattr(report, "PICTURES", {"glance.png": PICTURES["glance.png"]})
    out = tmp_path / "out"
    for _ in range(2):
        write_comparison(seeded, out)
    names = {"comparison.json", "provenance.json", "metrics.csv", "differences.csv", "users.csv"}
    assert names | {"glance.png"} == {path.name for path in out.iterdir()}
    assert seeded.to_json() == json.loads((out / "comparison.json").read_text())
    assert ["out"] == [path.name for path in tmp_path.iterdir()]
    head = (out / "users.csv").read_text().splitlines()[0]
    assert head.startswith("metric,group,users,first,other,difference,low,high,median,better,worse")


def estimate(value, low=None, high=None):
    """Return an estimate with its interval."""
    return Estimate(value, low, high, 3)


def change(value, relative=None):
    """Return a difference."""
    return Difference(estimate(value), relative)


def users_of(found):
    """Return a difference of which a quarter of the users is better off, and half of them worse."""
    return UserDifference(0, 0, found, 0, 0.25, 0.5, 0, 0)


@pytest.mark.parametrize(
    ("shown", "values", "expected"),
    [
        (format_estimate, ("wait_mean_s", estimate(4740, 4500, 4980)), "79.0 ± 4.0 min"),
        (format_estimate, ("wait_mean_s", estimate(90, 87, 93)), "90 ± 3 s"),
        (format_estimate, ("wait_mean_s", estimate(4740)), "79.0 min"),
        (format_estimate, ("utilization", estimate(0.5, 0.49, 0.51)), "50.0 ± 1.0 %"),
        (format_estimate, ("jobs_in", estimate(1000, 1000, 1000)), "1,000"),
        (format_estimate, ("slowdown_mean", estimate(5, 4, 6)), "5.00 ± 1.00"),
        (format_difference, ("wait_mean_s", change(-1800, -0.25)), "-30.0 min (-25.0 %)"),
        (format_difference, ("wait_mean_s", change(0, 0)), "0 s"),
        (format_difference, ("wait_mean_s", change(60)), "+60 s"),
        (format_difference, ("utilization", change(0.05, 0.1)), "+5.0 points (+10.0 %)"),
        (format_difference, ("lateness_mean_s", change(-259_200, 4)), "-3.0 days"),
        (format_difference, ("jobs_in", change(5, 12.345)), "+5 (+1,234 %)"),
        (format_difference, ("wait_mean_s", change(-0.2, -1e-4)), "0 s (0.0 %)"),
        (format_difference, ("wait_mean_s", None), "-"),
        # Both ends of an interval are in the unit of the larger one.
        (format_users, ("wait_mean_s", users_of(estimate(5400, -600, 14400))),
         ("+90.0 min", "-0.2 to +4.0 h", "25 %", "50 %")),
        (format_users, ("wait_mean_s", users_of(estimate(60))), ("+60 s", "-", "25 %", "50 %")),
        (shortened, ("short", 5), "short"),
        (shortened, ("abc, defg", 5), "abc…"),
        (wrapped, ("one two three four five", 8, 2), "one two\nthree f…"),
    ],
)  # fmt: skip
def test_numbers_for_people(shown, values, expected):
    """Sign, unit of the mean and digits; half an interval, and what rounds to 0 has no sign."""
    assert expected == shown(*values)
