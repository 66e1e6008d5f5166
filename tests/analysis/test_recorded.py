"""The metrics of a record beside those of a run, and what is said about a base case."""

import pytest
from hpcrowd import read_results, replay, write_results
from hpcrowd.analysis.metrics import far_from
from hpcrowd.analysis.report.runs import metric_table
from hpcrowd.analysis.run import headline, recorded_of

HEADER = "; MaxProcs: 4\n"


def jobs(count, wait):
    """Return jobs of four processors, one an hour, which run for half of it."""
    return [
        {"submit": 3600 * n, "wait": wait, "run": 1800, "requested_processors": 4,
         "requested_time": 1800, "user": 1, "status": 1} for n in range(count)
    ]  # fmt: skip


def test_recorded_metrics_count_known_waits_and_not_what_was_given_up(make_trace):
    """A job without a wait counts for use, one that was given up for nothing."""
    first, second, third = jobs(3, 600)
    trace = make_trace(
        first, {**second, "wait": -1}, {**third, "run": 0, "status": 5}, header=HEADER
    )
    found = recorded_of(replay(trace, processors="8"))
    assert (600.0, 600) == (found["wait_mean_s"], found["wait_max_s"])
    assert 5400 == found["makespan_s"]
    assert 2 * 1800 * 4 / (5400 * 4) == pytest.approx(found["utilization"])


def test_only_a_record_with_waits_has_them(make_trace):
    """Without any recorded wait nothing is known, and neither table nor JSON has a column."""
    run = replay(make_trace(*jobs(2, -1), header=HEADER))
    assert {} == recorded_of(run)
    assert "recorded" not in run.summary()


def test_a_base_case_far_from_its_record_says_so(make_trace, tmp_path):
    """One line, also in the results; none where something is changed, or near the record."""
    trace = make_trace(*jobs(120, 900), header=HEADER)
    run = replay(trace, users="rigid")
    (line,) = (one for one in headline(run) if "far from the record" in one)
    assert "mean wait 0 s, recorded 15.0 min" in line
    assert [line.strip()] == run.summary()["remarks"]
    write_results(run, tmp_path / "run", plots=False)
    read = read_results(tmp_path / "run")
    assert run.summary() == read.summary()
    assert ">recorded</th>" in metric_table(read)
    for change in ({"processors": "+20%"}, {"speed": "2x"}, {"scheduler": "fcfs"}):
        assert "remarks" not in replay(trace, users="rigid", **change).summary()
    near = make_trace(*jobs(120, 30), header=HEADER)
    assert "remarks" not in replay(near, users="rigid", processors="100%").summary()


@pytest.mark.parametrize(
    ("recorded", "found", "words"),
    [
        ((3600, 0.7), (2500, 0.66), ""),
        ((3600, 0.7), (2300, 0.7), "mean wait 38.3 min, recorded 60.0 min;"),
        ((30, 0.7), (80, 0.418), "utilization 41.8 %, recorded 70.0 %;"),
        ((None, None), (80, 0.4), ""),
    ],
)
def test_how_far_is_far(recorded, found, words):
    """Half as long again and a minute, or five points of the machine."""
    names = ("wait_mean_s", "utilization")
    line = far_from(dict(zip(names, recorded, strict=True)), dict(zip(names, found, strict=True)))
    assert (words in line) if words else line == ""
