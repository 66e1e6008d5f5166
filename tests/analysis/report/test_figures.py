"""Pictures of whole runs and the numbers behind them: exact in tiny stories, honest when empty."""

from dataclasses import replace

import numpy as np
import pytest
from hpcrowd import JobTable, Run, State, read_results, write_results
from hpcrowd.agents.populations.openness import Happening, Visit
from hpcrowd.analysis.accounts.decisions import decision_rows
from hpcrowd.analysis.accounts.population import Population
from hpcrowd.analysis.pictures import over_time, waits
from hpcrowd.analysis.pictures.platform_marks import Mark, marks_of
from hpcrowd.analysis.pictures.plots import figure_png
from hpcrowd.analysis.report.figures import think_data, think_times_of, users_there, visits_data
from hpcrowd.analysis.report.runs import told
from hpcrowd.environment.clock import HOUR
from hpcrowd.pictures import RUN_FIGURES, wait_classes

from tests.support.reports import beyond_the_edges, texts

#: Runs whose pictures over time name their zone, by picture, and what says so.
ZONES = {"visits": "Europe/Stockholm", "no clock": "origin"}


def story(*tuples, processors=64):
    """Return a run of jobs (user, processors, requested, submit, start, end)."""
    jobs = JobTable(len(tuples))
    jobs.number[:] = np.arange(1, len(tuples) + 1)
    jobs.state[:] = State.COMPLETED
    columns = ("user", "processors", "requested_time", "submit", "start", "end")
    for name, values in zip(columns, zip(*tuples, strict=True), strict=True):
        getattr(jobs, name)[:] = values
    jobs.run_time[:] = jobs.end - jobs.start
    return Run(jobs, processors, "story", {})


@pytest.mark.parametrize("name", RUN_FIGURES)
def test_every_picture_of_every_kind(runs, name):
    """Each picture can be drawn of each kind of run that has it, inside its edges, with data."""
    shown = {kind: run for kind, run in runs.items() if RUN_FIGURES[name].shown(run)}
    assert shown
    for kind, run in shown.items():
        figure = RUN_FIGURES[name].draw(run)
        assert figure_png(figure).startswith(b"\x89PNG")
        assert [] == beyond_the_edges(figure)
        columns = RUN_FIGURES[name].data(run)
        assert 1 == len({len(values) for values in columns.values()})
        assert run.label in texts(figure)
        if name in ("use", "submissions", "week", "day", "visits"):
            assert ZONES.get(kind, "") in texts(figure)


def test_use_is_exact(runs):
    """Two processors for the first ten of twenty seconds; one job waits all that time."""
    run = story((1, 2, 10, 0, 0, 10), (1, 64, 10, 0, 10, 20))
    found = over_time.use_data(run)
    assert [2.0] * 10 + [64.0] * 10 == found["processors_in_use"].tolist()
    assert [1.0] * 10 + [0.0] * 10 == found["jobs_in_queue"].tolist()
    assert [""] * 20 == found["begin_local_time"]
    assert "recorded, averages over" in texts(RUN_FIGURES["use"].draw(runs["plain"]))
    for kind in ("record", "unrecorded"):
        assert over_time.recorded_jobs(runs[kind]) is None
        assert "recorded, averages" not in texts(RUN_FIGURES["use"].draw(runs[kind]))
    starts = over_time.recorded_jobs(runs["plain"]).start
    assert runs["plain"].jobs.recorded_start.tolist() == starts.tolist()


def test_lateness_weeks_and_shares_are_exact(runs):
    """Jobs that all come an hour late have that as every percentile; shares add up."""
    run = story(*((1, 1, 60, HOUR + n // 10, HOUR + n // 10, 3660 + n // 10) for n in range(50)))
    run.jobs.recorded_submit[:] = run.jobs.submit - HOUR
    found = over_time.submissions_data(run)
    for p in (10, 50, 90):
        known = found[f"lateness_p{p}_s"]
        assert {3600.0} == set(known[~np.isnan(known)].tolist())
    assert 50 == found["recorded_until_then"][-1] == found["submitted_until_then"][-1]
    assert "Lateness, min" in texts(over_time.submissions_over_time(run))
    # The shares of the week add up to 100 %, recorded and simulated.
    found = over_time.week_data(runs["plain"])
    both = found["recorded_percent"].sum(), found["simulated_percent"].sum()
    assert (100, 100) == pytest.approx(both)
    assert {"hour_of_week", "recorded_percent"} == set(over_time.week_data(runs["record"]))
    # A user with nine jobs that wait counts once among users, nine times among jobs.
    run = story(*((1, 1, 10, 0, 100, 110) for _ in range(9)), (2, 1, 10, 0, 0, 10))
    found = waits.waits_data(run)
    place = found["wait_s"].tolist().index(0)
    shares = [found[f"share_of_{name}_simulated"][place] for name in ("jobs", "users")]
    assert [0.9, 0.5] == pytest.approx(shares)


def test_classes_are_exact():
    """Sizes go by factors of four, a job of the upper end belongs to the class; all add up."""
    first, second = (1, 1, 600, 0, 0, 100), (1, 4, 600, 0, 60, 160)
    run = story(first, second, (1, 2, 601, 0, 100, 200), (2, 5, -1, 0, 300, 400))
    found = wait_classes(run)
    assert ["1", "2 to 4", "5 to 16", "all"] == found.sizes
    assert ["to 10 min", "to 1 h", "unknown", "all"] == found.times
    assert [[1, 0, 0, 1], [1, 1, 0, 2], [0, 0, 1, 1], [2, 1, 1, 4]] == found.jobs.tolist()
    assert [0.0, 80.0, 300.0, 115.0] == found.wait[:, -1].tolist()
    assert [30.0, 100.0, 300.0, 115.0] == found.wait[-1].tolist()
    assert pytest.approx(2.15) == found.slowdown[-1, -1]
    assert np.isnan(found.wait[0, 1])
    assert {16} == {len(column) for column in waits.classes_data(run).values()}


def test_classes_without_requests():
    """Where no job asked for a time, the run time takes its place, and the axis says so."""
    run = story((1, 1, -1, 0, 0, 100), (1, 93312, -1, 0, 5000, 9000), processors=93312)
    assert "run time" == wait_classes(run).by
    assert ["1", "65,537 to 262,144", "all"] == wait_classes(run).sizes
    figure = waits.waits_by_class(run)
    figure_png(figure)
    assert [] == beyond_the_edges(figure)
    assert all(words in texts(figure) for words in ("run time", "83.3 min", "(1)"))


def test_users_are_exact():
    """Work, its share, waits and lateness of each user, most work first; who ran nothing has 0."""
    run = story((7, 2, 10, 0, 0, 3600), (8, 6, 10, 0, 60, 3660), (9, 1, 10, 0, -1, -1))
    run.jobs.state[2] = State.CANCELLED
    found = waits.users_data(run)
    assert [8, 7, 9] == found["user"].tolist()
    assert [6.0, 2.0, 0.0] == found["work_processor_h"].tolist()
    assert [0.75, 0.25, 0.0] == found["share_of_work"].tolist()
    assert [60.0, 0.0] == found["wait_mean_s"][:2].tolist()
    assert np.isnan(found["wait_mean_s"][2])
    words = texts(waits.users_waits(run)).split(" | ")
    assert {"user 8", "user 7"} <= set(words)
    run.jobs.group[:] = (1, 1, 2)
    assert {} == waits.behaviours_of(run)
    entries = [{"behaviour": "fluid", "groups": [1]}, {"users": [8]}]
    run.configuration["users"] = {"name": "mixed", "users": entries}
    assert {7: "fluid", 8: "entry 2"} == waits.behaviours_of(run)
    assert ["entry 2", "fluid", ""] == waits.users_data(run)["behaviour"]


def test_think_times_of_record_and_run():
    """Batches that follow after 100 s give 100 s as every quartile; too few give nothing."""
    jobs = [(1, 1, 10, 700 * n, 700 * n, 700 * n + 600) for n in range(40)]
    run = story(*jobs)
    found = think_data(run)
    for name in ("think_p25_s", "think_p50_s", "think_p75_s"):
        assert [100.0] == found[name].tolist()
    assert ["recorded"] == list(think_times_of(replace(run, configuration={"kind": "recorded"})))
    assert {} == think_times_of(story(*jobs[:5]))
    assert "too few batches" in texts(RUN_FIGURES["think"].draw(story(*jobs[:5])))


def test_who_is_there_is_exact(runs, tmp_path):
    """Who comes back is there again, who continues stays, and a leaving is counted once."""
    run, what = story((1, 1, 1, 0, 0, 9)), Happening
    visits = [
        (0, 1, what.THERE), (0, 2, what.THERE), (10, 1, what.WENT_AWAY), (20, 3, what.ARRIVED),
        (30, 1, what.CAME_BACK), (40, 2, what.WENT_ON), (700_000, 2, what.DONE),
    ]  # fmt: skip
    run.parts["population"] = Population(rows=[Visit(*one) for one in visits])
    times, there = users_there(run)
    assert [0, 10, 20, 30, 40, 700_000] == times.tolist()
    assert [2, 1, 2, 3, 3, 2] == there.tolist()
    found = visits_data(run)
    assert [3, 2] == found["users_there_at_its_end"].tolist()
    assert [[1, 0], [0, 1]] == [found[name].tolist() for name in ("arrived", "done")]
    write_results(runs["visits"], tmp_path / "run", plots=False)
    read = read_results(tmp_path / "run").parts["population"].rows
    assert list(runs["visits"].parts["population"].rows) == read


def test_marks_are_those_of_the_platform(runs):
    """Changes are in the order of time, with their spans; random failures are left out."""
    clock = runs["platform"].clock
    noon = clock.second_at(clock.wall(0) + 12 * HOUR)
    assert [
        Mark(noon, noon + 6 * HOUR, "home: maintenance"),
        Mark(90000, 90000, "home: 4 to 6 processors"),
        Mark(100000, 100000, "home: scheduler fcfs"),
    ] == marks_of(runs["platform"])
    run = story((1, 1, 1, 0, 0, 9))
    run.configuration["platform"] = {"changes": [
        {"do": "fail", "start": 0}, {"do": "down", "at": 5, "processors": 3, "cluster": "north"},
        {"do": "maintain", "start": "no date", "end": 9},
    ]}  # fmt: skip
    assert [Mark(5, 5, "north: 3 processors down")] == marks_of(run)


def test_words_about_a_run(runs):
    """The head of a report says what was run; decisions are counted by what and why."""
    run = story((1, 1, 10, 0, 0, 10), (2, 1, 10, 0, 7200, 7210))
    assert [
        "Story: 2 jobs by 2 users, simulated, on 64 processors, in 2.0 h.",
        "A job waited 60.0 min on average and 2.0 h at most. Half of the users have a mean wait "
        "below 60.0 min, nine in ten below 108.0 min. 0.0 % of the processor time was in use.",
    ] == told(run)
    late = story((1, 1, 10, 0, 0, 10), (2, 1, 10, 0, 7200, 7210))
    late.jobs.recorded_submit[:] = late.jobs.submit - (0, 3600)
    assert "On average a job was submitted 30.0 min later than recorded." in told(late)
    decisions = runs["plain"].parts["decisions"].rows
    assert 90 == sum(int(n) for what, _, n in decision_rows(decisions) if what == "submitted")
