"""Pictures and their curves: exact levels, honest axes, and never an empty figure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd.agents.generative.archetypes import GROUP_NAMES
from hpcrowd.analysis import Run, curves
from hpcrowd.analysis.comparison.pictures import draw_runs, mean_waits, queues
from hpcrowd.analysis.html import origin_of
from hpcrowd.analysis.metrics import format_metric
from hpcrowd.analysis.pictures.over_time import lines_of, overview, waits_of, write_overview
from hpcrowd.analysis.pictures.plots import COLOURS, figure_png
from hpcrowd.analysis.pictures.power import (
    highest_between,
    power_data,
    power_over_time,
    signal_bins,
    write_power,
)
from hpcrowd.analysis.results import provenance
from hpcrowd.environment import Clock, JobTable, Simulation, State, Trace
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.scenarios.commands.simulate.demo import metrics_table, users_table
from hpcrowd.scenarios.demo import run_demo
from hpcrowd.scenarios.kinds.replay import replay

MakeTrace = Callable[..., Trace]

HEADER = "; UnixStartTime: 953852400\n; TimeZoneString: Europe/Stockholm\n; MaxProcs: 4"


@pytest.fixture(scope="module")
def generated() -> list[Run]:
    """Return the runs of a short demo."""
    return run_demo(days=3)


@pytest.fixture
def replayed(make_trace: MakeTrace) -> Run:
    """Return the replay of four jobs of which two have to wait."""
    trace = make_trace(
        *(
            {"submit": at, "wait": 60, "run": 7200, "requested_processors": 3, "user": 1}
            for at in (0, 600, 90_000, 90_600)
        ),
        header=HEADER,
    )
    return replay(trace, users="rigid", scheduler="fcfs")


@pytest.fixture
def rejected(make_trace: MakeTrace) -> Run:
    """Return a replay in which every job is larger than the machine."""
    trace = make_trace(
        *({"submit": at, "run": 60, "requested_processors": 9, "user": 1} for at in (0, 600)),
        header=HEADER,
    )
    return replay(trace)


@pytest.fixture
def empty() -> Run:
    """Return a run without a job."""
    return Run(JobTable(), 4, "nothing", {})


def texts(figure: object) -> str:
    """Everything that is written in a figure."""
    found = figure.findobj(lambda artist: hasattr(artist, "get_text"))  # type: ignore[attr-defined]
    return " | ".join(artist.get_text() for artist in found)


def drawn(figure: object) -> int:
    """How many lines, bars and steps with data a figure holds."""
    return sum(
        len(axes.patches) + len(axes.lines)
        for axes in figure.axes  # type: ignore[attr-defined]
    )


def test_mean_level_is_exact() -> None:
    """Two blocks, one across a bin edge: the mean of each bin is the area over the width."""
    level = curves.mean_level(
        np.array([0, 5]), np.array([10, 15]), np.array([2, 4]), np.array([0, 10, 20])
    )
    assert [(2 * 10 + 4 * 5) / 10, 4 * 5 / 10] == level.tolist()


def test_mean_level_keeps_the_area(generated: list[Run]) -> None:
    """The processors in use times the bin widths are the work that was done, in any bins."""
    jobs = generated[0].jobs
    first, last = curves.span_of(jobs) or (0, 0)
    work = float(jobs.processors @ jobs.run_time)
    for bins in (3, 100, 700):
        edges = curves.time_edges(first, last, bins)
        assert len(edges) <= bins + 2
        assert edges[0] <= first < last <= edges[-1]
        area = float(curves.processors_in_use(jobs, edges) @ np.diff(edges))
        assert pytest.approx(work) == area


def test_waiting_counts_who_waits_to_the_end() -> None:
    """A job that never starts waits to the end of the picture, unless it was rejected."""
    jobs = JobTable(2)
    jobs.submit[:] = 0
    jobs.state[1] = State.REJECTED
    assert [1.0, 1.0] == curves.jobs_waiting(jobs, np.array([0, 5, 10])).tolist()


def test_running_job_without_end_runs_to_the_end() -> None:
    """A run that was stopped shows the processors of the jobs that still ran."""
    jobs = JobTable(1)
    jobs.submit[:], jobs.start[:], jobs.processors[:] = 0, 5, 2
    assert [0.0, 2.0] == curves.processors_in_use(jobs, np.array([0, 5, 10])).tolist()


def test_exceedance_is_a_share() -> None:
    """Of the waits 0, 10 and 100, two thirds exceed 1 s, one third 10 s, none 100 s."""
    curve = curves.exceedance(np.array([0, 10, 100]), points=3)
    assert curve is not None
    x, share = curve
    assert pytest.approx([1, 10, 100]) == x.tolist()
    assert pytest.approx([2 / 3, 1 / 3, 0]) == share.tolist()
    assert curves.exceedance(np.array([0, 1])) is None


def test_weekly_profile_counts_by_hours_seen() -> None:
    """Three jobs at 9 on two Mondays are 1.5 jobs per hour there; unseen hours have none."""
    times = np.array([9 * HOUR, 9 * HOUR + 59, WEEK + 9 * HOUR])
    profile = curves.weekly_rates(times, Clock())
    assert profile is not None
    assert {9: 1.5} == {hour: profile[hour] for hour in np.flatnonzero(profile)}
    assert curves.weekly_rates(np.array([-1]), Clock()) is None


def test_weekly_profile_is_in_local_time() -> None:
    """A job at 8 h UTC on a Monday of summer was submitted at 10 h in Stockholm."""
    clock = Clock(unix_start=962582400, zone=ZoneInfo("Europe/Stockholm"), known=True)
    profile = curves.weekly_rates(np.array([8 * HOUR]), clock)  # origin Mon 3 July 2000, 0 h UTC
    assert profile is not None
    assert [10] == np.flatnonzero(profile).tolist()


@pytest.mark.parametrize("days", [0.01, 1, 10, 28, 80, 400, 1500, 8000])
@pytest.mark.parametrize("known", [False, True])
def test_time_axis_has_few_labels(days: float, known: bool) -> None:
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


def test_overview_of_a_replay_shows_the_record(replayed: Run) -> None:
    """All five panels hold data, recorded and simulated, in the trace's time zone."""
    figure = overview(replayed)
    assert 5 == len(figure.axes)
    assert all(axes.lines or axes.patches for axes in figure.axes)
    for word in ("recorded", "simulated", "Europe/Stockholm", "Processors in use"):
        assert word in texts(figure)


def test_overview_of_generated_users(generated: list[Run]) -> None:
    """Without a record there is submitted and ended instead, on the nominal clock."""
    figure = overview(generated[-1])
    assert all(axes.lines or axes.patches for axes in figure.axes)
    assert "recorded" not in texts(figure)
    for word in ("submitted", "ended", "Monday"):
        assert word in texts(figure)


def test_overview_of_rejected_jobs_says_so(rejected: Run) -> None:
    """Nothing ran: there are still five panels, and those without data say why."""
    figure = overview(rejected)
    assert 5 == len(figure.axes)
    assert "0 ran to their end" in texts(figure)
    assert "no job waited" in texts(figure)
    assert figure_png(figure).startswith(b"\x89PNG")


def test_overview_of_nothing_says_so(empty: Run) -> None:
    """A run without jobs gives a picture that says so."""
    figure = overview(empty)
    assert 4 == texts(figure).count("nothing was submitted")
    assert figure_png(figure).startswith(b"\x89PNG")


def test_overview_of_a_stopped_run(generated: list[Run]) -> None:
    """A run that was stopped in the middle can be drawn."""
    jobs = generated[0].jobs.copy()
    jobs.submit[:] = jobs.start[:] = jobs.end[:] = jobs.unit[:] = -1
    jobs.state[:] = State.UNFINISHED
    model = Simulation(jobs, 128, "fcfs")
    model.cluster.submit(np.arange(len(jobs)), np.arange(len(jobs)))
    model.run(until=2 * HOUR)
    figure = overview(Run(jobs, 128, "stopped", {}))
    assert all(axes.lines or axes.patches for axes in figure.axes)


def test_write_overview_writes_one_picture(replayed: Run, tmp_path) -> None:
    """The folder of a run gets one PNG of the size it was made for."""
    assert [tmp_path / "overview.png"] == write_overview(replayed, tmp_path)
    assert ["overview.png"] == [path.name for path in tmp_path.iterdir()]
    head = (tmp_path / "overview.png").read_bytes()[:24]
    assert 1200 == int.from_bytes(head[16:20])


def test_power_is_drawn_of_runs_with_a_description(make_trace: MakeTrace, tmp_path) -> None:
    """Power.png has the mean, the highest power and the prices; the bins hold all the energy."""
    jobs = (
        {"submit": at, "run": 7200, "requested_processors": 3, "user": 1}
        for at in (0, 600, 90_000, 90_600)
    )
    power = {
        "nodes": [{"name": "thin", "idle": "60 W", "processor": "40 W"}],
        "pue": 1.5,
        "tariff": {"price": 0.2, "currency": "SEK"},
    }
    trace = make_trace(*jobs, header=HEADER)
    run = replay(trace, users="rigid", scheduler="fcfs", power=power)
    assert [tmp_path / "power.png"] == write_power(run, tmp_path)
    words = texts(power_over_time(run))
    for expected in ("highest 0.540 kW", "Price of energy, SEK/kWh", "mean 0.410 kW"):
        assert expected in words
    data = power_data(run)
    hours = (data["end_s"] - data["begin_s"]) / HOUR
    assert run.energy["energy_kwh"] == pytest.approx(data["power_kw"] @ hours)
    assert run.energy["wasted_kwh"] == pytest.approx(data["wasted_kw"] @ hours)
    assert np.all(data["wasted_kw"] <= data["power_kw"] + 1e-12)
    account = run.energy_account
    assert account is not None
    assert (540.0, 0) == highest_between(account.curve, 0, 100)
    assert (360.0, 14_400) == highest_between(account.curve, 14_400, 20_000)


def test_power_without_a_description_is_no_picture(replayed: Run, tmp_path) -> None:
    """A run without a description of power leaves no power.png."""
    assert [] == write_power(replayed, tmp_path)
    assert [] == list(tmp_path.iterdir())


def test_signals_are_averaged_over_days_where_bins_are_wide() -> None:
    """Bins of half days would show stripes where carbon intensity has the rhythm of days."""
    assert {HOUR} == set(np.diff(signal_bins(np.arange(0, 30 * DAY + 1, HOUR))))
    found = signal_bins(np.arange(0, 355 * DAY + 1, DAY // 2))
    assert (0, 355 * DAY, {DAY}) == (found[0], found[-1], set(np.diff(found)))


def test_pictures_do_not_show_when_they_were_made(replayed: Run) -> None:
    """The same run gives the same bytes."""
    assert figure_png(overview(replayed)) == figure_png(overview(replayed))


def test_comparison_shows_every_run(generated: list[Run]) -> None:
    """Bars, waits by group and weekly profiles name each run; oblivious ones share a line."""
    figure = draw_runs(generated, GROUP_NAMES)
    assert all(axes.lines or axes.patches for axes in figure.axes)
    shown = texts(figure)
    assert [] == [run.label for run in generated if run.label not in shown]
    assert "oblivious, FCFS = oblivious, EASY" in shown
    assert [] == [name for name in GROUP_NAMES.values() if name not in shown]
    assert 4 == len(queues(generated).axes)


def test_comparison_of_nothing(empty: Run, rejected: Run) -> None:
    """Runs in which nothing ran can be compared too; the pictures say so."""
    for runs in ([empty], [empty, rejected]):
        assert "no job waited" in texts(draw_runs(runs))
        assert figure_png(draw_runs(runs)).startswith(b"\x89PNG")
        assert figure_png(queues(runs)).startswith(b"\x89PNG")
    assert "nothing was submitted" in texts(queues([empty]))
    assert {"all": None} == mean_waits(empty, {})


def test_mean_waits_by_group(make_jobs: Callable[..., JobTable]) -> None:
    """The mean over all jobs, and over those of each group; None for a group without jobs."""
    jobs = make_jobs((0, 10, 1), (0, 10, 1), (0, 10, 1))
    jobs.group[:] = [1, 1, 2]
    jobs.submit[:], jobs.start[:], jobs.end[:], jobs.state[:] = 0, [2, 4, 9], 20, 1
    run = Run(jobs, 4, "x", {})
    assert {"all": 5.0, "a": 3.0, "b": 9.0, "c": None} == mean_waits(run, {1: "a", 2: "b", 3: "c"})


def test_colours_are_distinguished() -> None:
    """Every colour is its own."""
    assert len(COLOURS) == len(set(COLOURS.values()))


def test_tables_of_several_runs(generated: list[Run], replayed: Run, empty: Run) -> None:
    """Metrics of runs are next to their meaning; a run without jobs shows dashes."""
    text = metrics_table(generated) + users_table(generated)
    assert [] == [run.label for run in generated if run.label not in text]
    assert "share of processor-seconds" in text
    assert '<td class="number">-</td>' in users_table([empty])
    origin = origin_of(["one"], [provenance(replayed)], replayed.clock, "hpcrowd <again>")
    for words in ("Europe/Stockholm", "trace made", "numpy", "seed", "hpcrowd &lt;again&gt;"):
        assert words in origin


def test_record_is_one_line(replayed: Run) -> None:
    """A picture of a record alone has no line for a simulation."""
    record = replace(replayed, configuration={"kind": "recorded"})
    names = [[line[0] for line in lines_of(run, *waits_of(run))] for run in (replayed, record)]
    assert [["recorded", "simulated"], ["recorded"]] == names


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("jobs_in", 12345, "12,345"),
        ("wait_mean_s", 90.0, "90 s"),
        ("utilization", 0.7512, "75.1 %"),
        ("slowdown_mean", 1.234, "1.23"),
        ("slowdown_mean", 12.34, "12.3"),
        ("slowdown_mean", 1234.5, "1,234"),
        ("wait_mean_s", None, "-"),
    ],
)
def test_metrics_are_shown_by_their_unit(name: str, value: float | None, expected: str) -> None:
    """A value is shown with the unit in its name, and with about three digits."""
    assert expected == format_metric(name, value)
