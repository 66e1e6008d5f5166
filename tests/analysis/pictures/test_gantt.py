"""Gantt pictures, job by job and as density, and the picture of reactions around a period."""

from itertools import pairwise
from unittest.mock import Mock

import hpcrowd as hc
import numpy as np
import pytest
from hpcrowd.analysis.pictures import gantt
from hpcrowd.analysis.pictures.density import MOST_CELLS, MOST_ROWS, density, density_of, stretches
from hpcrowd.analysis.pictures.plots import figure_png, hour_ticks, new_figure
from hpcrowd.analysis.results import write_results
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.output.guard import kind_of
from hpcrowd.errors import QuantityError
from hpcrowd.pictures import busiest_day, small_gantt
from hpcrowd.reactions import Delay, During
from hpcrowd.scenarios.kinds.replay import replay
from hpcrowd.scenarios.whatif import demand_response
from hpcrowd.scenarios.whatif.demand_response import mean_use, reaction_figure

from tests.support.reports import texts

#: A trace that says when and where it was; the clocks change on its third day.
HEADER = "; UnixStartTime: 953852400\n; TimeZoneString: Europe/Stockholm\n; MaxProcs: 8"

#: A run of nothing.
EMPTY = hc.Run(hc.JobTable(), 4, "nothing", {})


@pytest.fixture(scope="module")
def trace(make_trace):
    """Five days of five users on a small machine."""
    jobs = (
        {"submit": 3600 * n, "run": 1800 + 1700 * (n % 7), "requested_processors": 1 + n % 5,
         "requested_time": 9000, "user": n % 5, "queue": n % 2}
        for n in range(120)
    )  # fmt: skip
    return make_trace(*jobs, header=HEADER)


@pytest.fixture(scope="module")
def run(trace):
    """A run in which jobs wait and are killed."""
    return replay(trace, users="rigid", overrun="kill")


@pytest.fixture(scope="module")
def year(make_trace):
    """A year of twenty users; user n has more work than user n + 1."""
    jobs = (
        {"submit": 6 * HOUR * n, "run": (25 - n % 20) * 1500, "requested_processors": 1 + n % 4,
         "user": n % 20, "queue": n % 2}
        for n in range(1460)
    )  # fmt: skip
    return replay(make_trace(*jobs, header=HEADER), users="rigid")


def rectangles(figure):
    """The area of all jobs that are drawn, processor-seconds."""
    paths = [path for one in figure.axes[0].collections for path in one.get_paths()]
    return float(sum(np.prod(np.ptp(path.vertices, axis=0)) for path in paths))


def held_in(run, first, last):
    """The processor-seconds that the jobs of a run held in a window."""
    held = np.minimum(run.jobs.end, last) - np.maximum(run.jobs.start, first)
    return int((np.maximum(held, 0) * run.jobs.processors).sum())


def drawn_by_hand(jobs, *times, processors=4):
    """Return a run of jobs with times of submission, start and end."""
    jobs.submit[:], jobs.start[:], jobs.end[:] = np.array(times).T
    jobs.state[:] = hc.State.COMPLETED
    return hc.Run(jobs, processors, "made", {})


@pytest.mark.parametrize("window", [(0, 10**6), (30_000, 40_000)])
def test_jobs_are_drawn_with_their_size(run, window):
    """The rectangles add up to the processor time that jobs held in the window."""
    asked = (0, None) if window[1] == 10**6 else window
    assert held_in(run, *window) == pytest.approx(rectangles(hc.gantt(run, asked)), rel=1e-9)


#: What a legend or a row of a picture is called, by what is coloured.
NAMES = {"user": "user 0", "queue": "queue 1", "cluster": "cluster 0", "state": "completed"}


@pytest.mark.parametrize("by", gantt.COLOURED_BY)
def test_pictures_say_what_they_show(run, year, by):
    """Title, day, legend, averaging and queue are named, in both styles; panels do not touch."""
    queue = {"Jobs in the queue", "Processors requested by the queue"}
    figure = hc.gantt(run, by=by)
    assert figure_png(figure).startswith(b"\x89PNG")
    assert {f"made: {run.label}", *queue, "killed", NAMES[by]} <= set(texts(figure).split(" | "))
    assert gantt.window_name(run, *(busiest_day(run) or (0, 0))) in texts(figure)
    figure = hc.gantt(year, (None, None), by=by, style="density")
    assert figure_png(figure).startswith(b"\x89PNG")
    assert {
        "Density of use, made: rigid, easy", "% of the machine; white: less than 0.1 %",
        "Processors in use; dashed: size of the machine", *queue, NAMES[by],
    } <= set(texts(figure).split(" | "))  # fmt: skip
    assert f" | Share of the machine that each {by} held, averages over " in texts(figure)
    boxes = [axes.get_position() for axes in figure.axes[:4]]
    gaps = [above.y0 - below.y1 for above, below in pairwise(boxes)]
    assert min(gaps) * figure.get_figheight() >= 0.3


def test_busiest_day(run, make_trace):
    """It is a local day, midnight to midnight, and no other has more processor time a second."""
    first, last = busiest_day(run) or (0, 0)
    assert (0, 0) == (run.clock.wall(first) % DAY, run.clock.wall(last) % DAY)
    used = [held_in(run, first + n * DAY, last + n * DAY) / (last - first) for n in range(-5, 6)]
    assert max(used) == used[5]
    short = replay(make_trace({"submit": 5, "run": 100, "requested_processors": 1}))
    assert ((5, 105), None) == (busiest_day(short), busiest_day(EMPTY))
    assert "no job ran in this window" in texts(hc.gantt(EMPTY))
    assert "no job ran in this window" in texts(density(EMPTY, 0, DAY))


@pytest.mark.parametrize(("window", "how", "words"), [
    ((50, 50), {}, r"is empty; the run lasts from 0 to \d+ s"),
    ((90, 20), {}, "is empty"),
    ((10**9, None), {}, "is empty"),
    (None, {"by": "size"}, "'size': not known; choose user, queue"),
    (None, {"style": "heat"}, "style 'heat'.*auto.*jobs.*density"),
])  # fmt: skip
def test_what_cannot_be_drawn(run, window, how, words):
    """An empty window, and what is not known, are refused with the choices."""
    with pytest.raises(QuantityError, match=words):
        hc.gantt(run, window, **how)


def test_colours_of_users(trace, make_jobs):
    """Colours are those of the work, whatever the schedule: the same under every scheduler."""
    easy, fcfs = (gantt.looks_of(replay(trace, scheduler=s).jobs, "user") for s in ("easy", "fcfs"))
    assert (easy.looks, easy.which.tolist()) == (fcfs.looks, fcfs.which.tolist())
    # With many users the largest have a look each and the others greys, named together.
    jobs = make_jobs(*((0, 10 + user, 1, 100, user) for user in range(30)))
    looks = gantt.looks_of(jobs, "user")
    named = {looks.looks[place].label for place in looks.which if looks.looks[place].label}
    first = 30 - len(gantt.HUES) * len(gantt.HATCHES)
    assert {f"user {user}" for user in range(first, 30)} == named
    labels = [entry.label for entry in looks.legend(jobs.run_time, np.arange(30))]
    assert ["user 29", "5 more", "other users"] == [labels[0], *labels[-2:]]


def test_unfinished_jobs_and_more_than_the_machine(make_jobs):
    """Jobs without an end, and waiting ones without a start, are drawn up to the edge."""
    jobs = make_jobs((0, 10, 3), (2, 10, 3))
    jobs.submit[:] = 0, 2
    jobs.start[0] = 1
    unfinished = hc.Run(jobs, 4, "unfinished", {})
    assert 3 * 19 == rectangles(hc.gantt(unfinished, (0, 20)))
    assert 3 * 2 == rectangles(hc.gantt(unfinished, (18, 20)))
    # A recorded schedule with more than the machine is drawn, with a line where it ends.
    more = drawn_by_hand(make_jobs((0, 10, 3), (0, 10, 3)), (0, 0, 10), (0, 0, 10))
    axes = hc.gantt(more).axes[0]
    assert ((0, 6), [4, 4]) == (axes.get_ylim(), list(axes.lines[0].get_ydata()))


def test_queue_is_exact_where_it_is_short():
    """Steps of the queue lie at the seconds at which it changes; long ones are averaged."""
    edges, level = gantt.levels(np.array([1, 4]), np.array([6, 9]), np.array([1, 5]), 0, 8)
    assert ([0, 1, 4, 6, 8], [0, 1, 6, 5]) == (edges.tolist(), level.tolist())
    begin = np.arange(10_000)
    edges, level = gantt.levels(begin, begin + 1, np.ones(10_000, np.int64), 0, 10_000)
    assert len(edges) < 1500
    assert [1.0] * len(level) == level.tolist()


def test_ticks_follow_the_wall():
    """Labels are whole local hours, also when clocks change; the first of each day has its date."""
    clock = Clock.of(hc.parse_swf(f"{HEADER}\n1 0 0 1 1 -1 -1 1 1 -1 1 1 1 -1 1 -1 -1 -1").header)
    midnight = clock.second_at(clock.wall(0) // DAY * DAY + 2 * DAY)  # clocks go forward at 2:00
    places, labels, name = hour_ticks(clock, midnight, midnight + 23 * HOUR)
    assert ["00:00\nSun 26 Mar", "04:00", "06:00"] == labels[:3]
    assert [0, 3 * HOUR, 5 * HOUR] == [place - midnight for place in places[:3]]
    assert "local time 2000, Europe/Stockholm" == name
    assert (["0", "5", "10"], "min since the origin") == hour_ticks(Clock(), 0, 600, 3)[1:]


def test_small_pictures(trace, run, make_jobs):
    """A tiny run has each job by name on its processors and in the queue, and what it asked for."""
    few = hc.Trace(trace.header, {name: each[:9] for name, each in trace.columns.items()}, "few")
    figure = small_gantt(replay(few, users="rigid"), names={1: "first"}, title="Nine jobs")
    expected = ["first", *map(str, range(2, 10))]
    above, below = figure.axes
    assert figure_png(figure).startswith(b"\x89PNG")
    assert set(expected) == {text.get_text() for text in above.texts}
    assert expected == [label.get_text() for label in below.get_yticklabels()]
    two = drawn_by_hand(make_jobs((0, 10, 2, 40), (20, 10, 1, 10)), (0, 0, 10), (0, 20, 30))
    drawn = small_gantt(two, last=50).axes[0].collections
    lines = [one.get_segments() for one in drawn if hasattr(one, "get_segments")]
    assert [(10, 20)] == [tuple(segment[:, 0]) for one in lines for segment in one]
    two.jobs.start[1], two.jobs.end[1] = 40, 50
    assert [40] == [line.get_xdata()[0] for line in small_gantt(two, last=50).axes[0].lines]
    for wrong in (run, EMPTY):
        with pytest.raises(QuantityError, match="must have 1 to 20"):
            small_gantt(wrong)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_files_are_the_same_every_time(run, tmp_path, suffix):
    """The same picture gives the same bytes, in each format, also of a run that is read back."""
    write_results(run, tmp_path / "run", plots=False)
    for name, one in (("a", run), ("b", hc.read_run(tmp_path / "run"))):
        hc.write_picture(hc.gantt(one), tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()
    assert 3 == len(list(tmp_path.iterdir()))


def test_promises_are_marked(run):
    """On request a mark is at the start that a job was promised, if that was another one."""
    jobs = run.jobs.copy()
    jobs.promised[:] = -1
    jobs.promised[0], jobs.promised[1] = jobs.start[0], jobs.start[1] + 600
    figure = hc.gantt(hc.Run(jobs, 8, "promised", {}), (0, None), promises=True)
    assert [jobs.promised[1]] == [x for line in figure.axes[0].lines for x in line.get_xdata()]


def test_shares_are_those_of_the_jobs(make_trace):
    """Two users hold 2 and 4 of 8 processors for parts of ten hours: the shares are known."""
    jobs = ({"submit": 0, "run": 5 * HOUR * user, "requested_processors": 2 * user, "user": user}
            for user in (1, 2))  # fmt: skip
    found = density_of(replay(make_trace(*jobs, header=HEADER)), 0, 10 * HOUR)
    assert ["user 2", "user 1"] == found.names
    assert [0.8, 0.2] == pytest.approx(found.work.tolist())
    begins = found.edges[:-1]
    assert [0.5] * len(begins) == found.share[0].tolist()
    assert np.where(begins < 5 * HOUR, 0.25, 0.0).tolist() == found.share[1].tolist()


def test_busiest_users_have_rows(year, make_trace):
    """They are in the order of their work; the last row stands for all others, if several."""
    found = density_of(year, 0, 365 * DAY)
    assert (MOST_ROWS + 1, f"{20 - MOST_ROWS} other users") == (len(found.names), found.names[-1])
    assert sorted(found.work[:-1], reverse=True) == found.work[:-1].tolist()
    users = range(1, MOST_ROWS + 2)
    jobs = ({"submit": n, "run": 60, "requested_processors": 1, "user": n} for n in users)
    names = density_of(replay(make_trace(*jobs)), 0, HOUR).names
    assert {f"user {n}" for n in users} == set(names)


@pytest.mark.parametrize("days", [0.01, 1, 40, 365, 5000])
def test_stretches_cover_the_window(year, days):
    """They begin and end with the window, rise, are few, and days begin at local midnight."""
    first, last = 1234, 1234 + int(days * DAY)
    width, edges = stretches(year.clock, first, last)
    assert (first, last) == (edges[0], edges[-1])
    assert (np.diff(edges) > 0).all()
    assert len(edges) <= MOST_CELLS + 3
    inside = edges[1:-1] if width % DAY == 0 else []
    assert {0} >= {year.clock.wall(int(edge)) % DAY for edge in inside}


def test_style_follows_what_fits(year, monkeypatch):
    """A day is drawn job by job; a year of short jobs, or of too many, is not, unless asked for."""
    assert "jobs" == gantt.fitting_style(year, 0, DAY)
    assert "density" == gantt.fitting_style(year, 0, 365 * DAY)
    monkeypatch.setattr(gantt, "MOST_JOBS", 3)
    assert "density" == gantt.fitting_style(year, 0, 2 * DAY)


@pytest.mark.parametrize(("options", "code", "told"), [
    ([], 0, ["a.png (jobs, ", "the busiest day)"]),
    (["--window", "..", "--by", "queue"], 0, ["a.png (density, ", "the whole run)"]),
    (["--window", "..", "--style", "jobs"], 0, ["a.png (jobs, ", "the whole run)"]),
    (["-o", "a.gif"], 2, [".png, .svg, .pdf"]),
    (["--window", "5"], 2, ["FROM..TO"]),
    (["--window", "2d..1d"], 2, ["is empty"]),
    (["--style", "heat"], 2, ["'density'"]),
])  # fmt: skip
def test_command_draws_a_recorded_trace(call, tmp_path, year, options, code, told):
    """It draws the busiest day, or the whole run as density, and says which; or what is wrong."""
    assert year.reading.trace is not None
    hc.write_swf(year.reading.trace, tmp_path / "log.swf")
    found, out, err = call("gantt", tmp_path / "log.swf", "-o", tmp_path / "a.png", *options)
    assert (code, "") == (found, out)
    assert [] == [words for words in told if words not in " ".join(err.split())]


def test_a_job_that_ran_twice_is_one_job(trace):
    """Runs that an outage stopped are drawn, and are no further jobs."""
    down = {"do": "down", "at": 10 * HOUR, "until": 11 * HOUR, "processors": 6}
    run = replay(trace, users="rigid", platform={"changes": [down]})
    runs = run.runs
    assert len(runs) > len(run.jobs)
    figure = hc.gantt(run, (None, None), style="jobs")
    assert f"{len(run.jobs)} jobs of 5 users ran" in texts(figure)
    held = int(((runs.end - runs.start) * runs.processors).sum())
    assert held == pytest.approx(rectangles(figure), rel=1e-6)


DAYS_LONG = "; MaxProcs: 4\n" + "\n".join(
    f"{n} {n * DAY} 0 36000 2 -1 -1 2 36000 -1 1 1 1 -1 1 -1 -1 -1" for n in range(1, 6)
)


def test_picture_has_a_panel_for_each_answer():
    """Users are columns, answers rows; only processors of the machine are in use."""
    trace = hc.parse_swf(DAYS_LONG)
    period = (3 * DAY - HOUR, 3 * DAY + HOUR)
    plain = replay(trace, users="rigid")
    delayed = replay(trace, users=hc.Recipe("recorded", reactions=(Delay(During([period])),)))
    runs = {"as usual": plain, "delay": delayed, "again": delayed}
    assert 1.0 == mean_use(plain, DAY, DAY + 20 * HOUR)  # two processors for half of the time
    figure = reaction_figure({"rigid": runs, "other": runs}, period, "Title")
    assert [
        f"{users} users: {name}" for users in ("rigid", "other") for name in ("delay", "again")
    ] == [axes.get_title(loc="left") for axes in figure.axes]
    assert figure_png(figure).startswith(b"\x89PNG")


def test_period_of_the_call_is_local():
    """The call is on a Wednesday, from 8:00 to 20:00, after whole weeks from the first Monday."""
    for clock in (Clock(), Clock(1704870000)):
        begin, end = demand_response.period_of(clock)
        local = clock.local(begin)
        assert (2, 8, 0, 12 * HOUR) == (local.weekday(), local.hour, local.minute, end - begin)
        assert 16 == (begin - clock.wall(begin) % (7 * DAY)) // (7 * DAY)


def test_script_tells_its_usage(tmp_path, capsys):
    """Without a trace, with too much, or with a trace that ends before the call: one line."""
    path = tmp_path / "short.swf"
    path.write_text(DAYS_LONG + "\n")
    usage = "usage: python -m hpcrowd.scenarios.whatif.demand_response"
    short = "short.swf: ends before week 16"
    for arguments, words in (([], usage), (["a", "b", "c"], usage), ([str(path)], short)):
        assert 2 == demand_response.main(arguments)
        assert words in capsys.readouterr().err


def test_script_leaves_the_files_of_others(tmp_path, capsys, monkeypatch):
    """The picture never replaces the trace, and a file of somebody else only with --force."""
    path, mine, figure = tmp_path / "log.swf", tmp_path / "mine.png", new_figure(4, 3, "x")
    path.write_text(DAYS_LONG + "\n")
    mine.write_text("a photograph")
    for name, made in (("covered", None), ("runs", {}), ("reaction_figure", figure)):
        monkeypatch.setattr(demand_response, name, lambda *_, made=made: made)
    (tmp_path / "link.png").symlink_to(path)
    for name, more in (("log.swf", []), ("link.png", ["--force"]), ("mine.png", []), ("x.doc", [])):
        assert 2 == demand_response.main([str(path), str(tmp_path / name), *more])
        assert 1 == capsys.readouterr().err.count("\n")
    assert ("a photograph", DAYS_LONG + "\n") == (mine.read_text(), path.read_text())
    for more in (["--force"], []):
        assert 0 == demand_response.main([str(path), str(mine), *more])
        assert kind_of(mine) is not None
    monkeypatch.setattr(demand_response, "rows", Mock(side_effect=KeyboardInterrupt))
    assert 130 == demand_response.main([str(path), str(mine)])
    assert f"interrupted; written before that, and complete: {mine}" in capsys.readouterr().err
