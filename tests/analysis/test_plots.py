"""Pictures and their curves: exact levels, honest axes, and never an empty figure."""

from dataclasses import replace
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd import Clock, JobTable, Run, State
from hpcrowd.agents.generative.archetypes import GROUP_NAMES
from hpcrowd.analysis import curves
from hpcrowd.analysis.comparison.pictures import draw_runs, mean_waits, queues
from hpcrowd.analysis.energy.part import over_time_of
from hpcrowd.analysis.html import origin_of
from hpcrowd.analysis.pictures import power as drawn
from hpcrowd.analysis.pictures.over_time import lines_of, overview, waits_of, write_overview
from hpcrowd.analysis.pictures.plots import figure_png
from hpcrowd.analysis.results import provenance
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.scenarios.commands.simulate.demo import metrics_table, users_table
from hpcrowd.scenarios.demo import run_demo
from hpcrowd.scenarios.kinds.replay import replay

from tests.support.reports import HEADER, texts


@pytest.fixture(scope="module")
def generated():
    """Return the runs of a short demo."""
    return run_demo(days=3)


def test_overview_shows_the_record_or_what_there_is(replayed, generated, rejected):
    """All five panels hold data, recorded and simulated, or submitted and ended, or say why not."""
    recorded = ["recorded", "simulated", "Europe/Stockholm", "Processors in use"]
    for run, words in ((replayed, recorded), (generated[-1], ["submitted", "ended", "Monday"])):
        figure = overview(run)
        assert 5 == len(figure.axes)
        assert all(axes.lines or axes.patches for axes in figure.axes)
        shown = texts(figure)
        assert [] == [word for word in words if word not in shown]
        assert (run is replayed) == ("recorded" in shown)
    figure = overview(rejected)
    assert "no job waited" in texts(figure)
    assert figure_png(figure) == figure_png(overview(rejected))  # no date of making is shown
    figure = overview(EMPTY)
    assert 4 == texts(figure).count("nothing was submitted")
    # A picture of a record alone has no line for a simulation.
    record = replace(replayed, configuration={"kind": "recorded"})
    names = [[line[0] for line in lines_of(run, *waits_of(run))] for run in (replayed, record)]
    assert [["recorded", "simulated"], ["recorded"]] == names


def test_power_is_drawn_of_runs_with_a_description(trace, replayed, tmp_path):
    """Power.png has mean, highest power and prices, the bins all the energy; else there is none."""
    assert [tmp_path / "overview.png"] == write_overview(replayed, tmp_path)
    assert [] == drawn.write_power(replayed, tmp_path)
    nodes = [{"name": "thin", "idle": "60 W", "processor": "40 W"}]
    power = {"nodes": nodes, "pue": 1.5, "tariff": {"price": 0.2, "currency": "SEK"}}
    run = replay(trace, users="rigid", scheduler="fcfs", power=power)
    assert [tmp_path / "power.png"] == drawn.write_power(run, tmp_path)
    words = texts(drawn.power_over_time(run))
    for expected in ("highest 0.540 kW", "Price of energy, SEK/kWh", "mean 0.410 kW"):
        assert expected in words
    data, energy = drawn.power_data(run), run.parts["power"].account
    hours = (data["end_s"] - data["begin_s"]) / HOUR
    for part, column in (("energy_kwh", "power_kw"), ("wasted_kwh", "wasted_kw")):
        assert energy[part] == pytest.approx(data[column] @ hours)
    curve = over_time_of(run.parts).curve
    assert (540.0, 0) == drawn.highest_between(curve, 0, 100)
    assert (360.0, 14_400) == drawn.highest_between(curve, 14_400, 20_000)
    # Bins of half days would show stripes where carbon intensity has the rhythm of days.
    assert {HOUR} == set(np.diff(drawn.signal_bins(np.arange(0, 30 * DAY + 1, HOUR))))
    found = drawn.signal_bins(np.arange(0, 355 * DAY + 1, DAY // 2))
    assert (0, 355 * DAY, {DAY}) == (found[0], found[-1], set(np.diff(found)))


def test_comparison_shows_every_run(generated, rejected):
    """Bars, waits by group and weekly profiles name each run, and say where nothing ran."""
    figure = draw_runs(generated, GROUP_NAMES)
    assert all(axes.lines or axes.patches for axes in figure.axes)
    shown = texts(figure)
    assert [] == [run.label for run in generated if run.label not in shown]
    assert "oblivious, FCFS = oblivious, EASY" in shown
    assert 4 == len(queues(generated).axes)
    for runs in ([EMPTY], [EMPTY, rejected]):
        assert "no job waited" in texts(draw_runs(runs))
        assert figure_png(draw_runs(runs)).startswith(b"\x89PNG")
        assert figure_png(queues(runs)).startswith(b"\x89PNG")


def test_tables_of_several_runs(generated, replayed):
    """Metrics of runs are next to their meaning; a run without jobs shows dashes."""
    text = metrics_table(generated) + users_table(generated)
    origin = origin_of(["one"], [provenance(replayed)], replayed.clock, "hpcrowd <again>")
    for shown, words in (
        (text, "share of processor-seconds"), *((text, run.label) for run in generated),
        (users_table([EMPTY]), '<td class="number">-</td>'), (origin, "Europe/Stockholm"),
        (origin, "trace made"), (origin, "hpcrowd &lt;again&gt;"),
    ):  # fmt: skip
        assert words in shown


@pytest.mark.parametrize("days", [0.01, 1, 10, 28, 80, 400, 1500, 8000])
@pytest.mark.parametrize("known", [False, True])
def test_time_axis_has_few_labels(days, known):
    """However long the span, there are at most 14 labels, at local midnights, with the zone."""
    zone = ZoneInfo("America/Los_Angeles")
    clock = Clock(unix_start=953852400, zone=zone, known=True) if known else Clock()
    first, last = 5 * HOUR, int(5 * HOUR + days * DAY)
    places, labels, name = curves.time_ticks(clock, first, last)
    assert len(places) == len(labels) == len(set(places)) <= 14
    assert [] == [p for p in places if clock.local(p).hour or clock.local(p).minute]
    assert ("America/Los_Angeles" if known else "Monday 00:00") in name
    if days >= 10:
        assert len(places) >= 2


EMPTY = Run(JobTable(), 4, "nothing", {})


@pytest.fixture
def trace(make_trace):
    """Return a trace of four jobs of which two have to wait."""
    job = {"wait": 60, "run": 7200, "requested_processors": 3, "user": 1}
    return make_trace(*(job | {"submit": at} for at in (0, 600, 90_000, 90_600)), header=HEADER)


@pytest.fixture
def replayed(trace):
    """Return its replay."""
    return replay(trace, users="rigid", scheduler="fcfs")


@pytest.fixture
def rejected(make_trace):
    """Return a replay in which every job is larger than the machine."""
    job = {"run": 60, "requested_processors": 9, "user": 1}
    return replay(make_trace(job | {"submit": 0}, job | {"submit": 600}, header=HEADER))


def test_curves_are_exact(make_jobs):
    """The mean of a bin is area over width; who never starts or ends counts to the end."""
    begin, end, edges = np.array([0, 5]), np.array([10, 15]), np.array([0, 10, 20])
    level = curves.mean_level(begin, end, np.array([2, 4]), edges)
    assert [(2 * 10 + 4 * 5) / 10, 4 * 5 / 10] == level.tolist()
    jobs, edges = JobTable(3), np.array([0, 5, 10])
    jobs.submit[:2], jobs.state[1] = 0, State.REJECTED
    assert [1.0, 1.0] == curves.jobs_waiting(jobs, edges).tolist()
    jobs.submit[2], jobs.start[2], jobs.processors[2] = 0, 5, 2
    assert [0.0, 2.0] == curves.processors_in_use(jobs, edges).tolist()
    for bins in (3, 100, 700):
        edges = curves.time_edges(5 * HOUR, 3 * DAY, bins)
        assert len(edges) <= bins + 2
        assert edges[0] <= 5 * HOUR < 3 * DAY <= edges[-1]
    # Of the waits 0, 10 and 100, two thirds exceed 1 s, one third 10 s, none 100 s.
    x, share = curves.exceedance(np.array([0, 10, 100]), points=3)
    assert [1, 10, 100] == pytest.approx(x.tolist())
    assert [2 / 3, 1 / 3, 0] == pytest.approx(share.tolist())
    assert curves.exceedance(np.array([0, 1])) is None
    # Three jobs at 9 on two local Mondays are 1.5 jobs per hour there; unseen hours have none.
    times = np.array([9 * HOUR, 9 * HOUR + 59, WEEK + 9 * HOUR])
    profile = curves.weekly_rates(times, Clock())
    assert {9: 1.5} == {hour: profile[hour] for hour in np.flatnonzero(profile)}
    assert curves.weekly_rates(np.array([-1]), Clock()) is None
    clock = Clock(unix_start=962582400, zone=ZoneInfo("Europe/Stockholm"), known=True)
    profile = curves.weekly_rates(np.array([8 * HOUR]), clock)  # origin Mon 3 July 2000, 0 h UTC
    assert [10] == np.flatnonzero(profile).tolist()
    # The mean over all jobs, and over those of each group; None for a group without jobs.
    jobs = make_jobs((0, 10, 1), (0, 10, 1), (0, 10, 1))
    jobs.group[:] = [1, 1, 2]
    jobs.submit[:], jobs.start[:], jobs.end[:], jobs.state[:] = 0, [2, 4, 9], 20, 1
    found = mean_waits(Run(jobs, 4, "x", {}), {1: "a", 2: "b", 3: "c"})
    assert {"all": 5.0, "a": 3.0, "b": 9.0, "c": None} == found
    assert {"all": None} == mean_waits(EMPTY, {})
