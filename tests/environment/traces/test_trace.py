"""From a trace to the jobs that are simulated, and the size of a machine that is not given."""

import re
from pathlib import Path

import numpy as np
import pytest
from hpcrowd import jobs_from_trace, parse_swf
from hpcrowd.environment.header import (
    AS_JOBS_TELL,
    MOST_HELD,
    MOST_IN_USE,
    most_in_use,
    without_found_size,
)
from hpcrowd.errors import TraceError
from hpcrowd.traces import Conversion
from hypothesis import given
from hypothesis import strategies as st

from tests.support.sacct import text

#: A job without anything to repair.
GOOD: dict[str, float] = {
    "submit": 10, "wait": 5, "run": 60, "allocated_processors": 8, "requested_processors": 4,
    "requested_time": 90, "user": 7, "group": 3, "executable": 2, "queue": 1,
}  # fmt: skip


NO_LIMIT = "no requested time: the recorded run time used"
ROUNDED = "with a fraction: rounded half up"


def test_good_job_is_taken_as_it_is(make_trace):
    """A complete job needs no repair, and every column comes from its field."""
    made = jobs_from_trace(make_trace(GOOD))
    job = {name: int(values[0]) for name, values in made.jobs.to_frame().items() if name != "state"}
    assert {
        "number": 1, "user": 7, "group": 3, "executable": 2, "queue": 1, "processors": 4,
        "run_time": 60, "requested_time": 90, "recorded_submit": 10, "recorded_start": 15,
        "recorded_end": 75,
    } == {name: value for name, value in job.items() if value != -1}  # fmt: skip
    assert ({}, {}) == (dict(made.repaired), dict(made.dropped))


@pytest.mark.parametrize(
    ("speed", "expected"), [(1.0, [0, 1, 3, 60]), (2.0, [0, 1, 2, 30]), (0.5, [0, 2, 6, 120])]
)
def test_speed_divides_run_times_and_rounds_halves_up(make_trace, speed, expected):
    """Run times are divided by the speed, halves rounded up; recorded times stay."""
    trace = make_trace(*(GOOD | {"run": run} for run in (0, 1, 3, 60)))
    made = jobs_from_trace(trace, Conversion(speed=speed))
    assert expected == made.jobs.run_time.tolist()
    assert [15, 16, 18, 75] == made.jobs.recorded_end.tolist()
    assert [90] * 4 == made.jobs.requested_time.tolist()
    made = jobs_from_trace(trace, Conversion(speed=speed, requested="at-least:2x"))
    assert [90, 90, 90, 120] == made.jobs.requested_time.tolist()  # of recorded run times


ALLOCATED = "no requested processors: allocated processors used"


@pytest.mark.parametrize(
    ("change", "choice", "reason", "column", "value"),
    [
        ({"wait": -1}, "requested", "no wait time: taken as 0", "recorded_start", 10),
        ({"requested_time": -1}, "requested", NO_LIMIT, "requested_time", 60),
        ({"requested_time": 0}, "requested", NO_LIMIT, "requested_time", 60),
        ({"user": -1}, "requested", "no user: all such jobs assigned to one user", "user", -1),
        *(({field: number}, "requested", f"{said} {ROUNDED}", column, value)
          for field, number, said, column, value in (
            ("submit", 10.5, "submit", "recorded_submit", 11), ("run", 59.4, "run", "run_time", 59),
            ("wait", 0.5, "wait", "recorded_start", 11), ("user", 2.5, "user", "user", 3),
            ("requested_time", 89.5, "requested_time", "requested_time", 90),
            ("requested_processors", 2.5, "processors", "processors", 3),
            ("requested_processors", 0.5, "processors", "processors", 1))),
        ({"requested_processors": -1}, "requested", ALLOCATED, "processors", 8),
        ({"requested_processors": 0}, "requested", ALLOCATED, "processors", 8),
        ({"requested_processors": 5}, "allocated", None, "processors", 8),
        ({"allocated_processors": -1}, "allocated",
         "no allocated processors: requested processors used", "processors", 4),
    ],
)  # fmt: skip
def test_repair_is_counted_by_reason(make_trace, change, choice, reason, column, value):
    """What is missing or broken is repaired and counted, or refused if strict; others are as is."""
    trace, told = make_trace(GOOD, GOOD | change, GOOD | change), Conversion(job_processors=choice)
    made = jobs_from_trace(trace, told)
    assert ({reason: 2} if reason else {}, {}) == (dict(made.repaired), dict(made.dropped))
    assert [value, value] == getattr(made.jobs, column)[1:].tolist()
    good = jobs_from_trace(make_trace(GOOD), told, strict=True).jobs
    assert getattr(good, column)[0] == getattr(made.jobs, column)[0]
    if reason:
        with pytest.raises(TraceError, match=r"2 jobs repaired: ") as caught:
            jobs_from_trace(trace, told, strict=True)
        assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"submit": -1}, "no submit time"),
        ({"run": -1}, "no run time (never ran)"),
        ({"requested_processors": -1, "allocated_processors": -1}, "no processors"),
        ({"requested_processors": 0, "allocated_processors": 0}, "no processors"),
        ({"submit": -1, "run": -1, "wait": -1, "user": -1}, "no submit time"),
    ],
)
def test_drop_is_counted_by_reason(make_trace, change, reason):
    """What cannot run is dropped and counted once; one without processors stays for sessions."""
    trace = make_trace(GOOD, GOOD | change, GOOD)
    made = jobs_from_trace(trace)
    assert ({reason: 1}, {}) == (dict(made.dropped), dict(made.repaired))
    assert ([1, 3], [0, 2]) == (made.jobs.number.tolist(), made.source_row.tolist())
    trace.dropped[reason] = 3
    assert {reason: 4} == jobs_from_trace(trace).dropped
    kept = jobs_from_trace(make_trace(GOOD, GOOD | change), runnable=False)
    assert ([1, 2] if "processors" in reason else [1]) == kept.jobs.number.tolist()
    with pytest.raises(TraceError, match="none of its 2 jobs"):
        jobs_from_trace(make_trace(GOOD | change, GOOD | change))
    with pytest.raises(TraceError, match=re.escape(f"1 job dropped: {reason}")):
        jobs_from_trace(make_trace(GOOD, GOOD | change), strict=True)


@pytest.mark.parametrize(
    ("numbers", "order", "repaired"),
    [
        ((30, 10, 20), [1, 2, 0], {}),
        ((2, 1, 2, 2), [1, 0, 2, 3], {"job number used before: order of the lines kept": 2}),
    ],
)
def test_jobs_stand_in_the_order_of_their_numbers(make_trace, numbers, order, repaired):
    """Rows follow job numbers, whatever the order of submissions; those used twice are counted."""
    jobs = [GOOD | {"number": number, "submit": 9 - row} for row, number in enumerate(numbers)]
    made = jobs_from_trace(make_trace(*jobs))
    assert order == made.source_row.tolist()
    assert [numbers[row] for row in order] == made.jobs.number.tolist()
    assert [9 - row for row in order] == made.jobs.recorded_submit.tolist()
    assert repaired == dict(made.repaired)


def job(submit, wait, run, held, asked=-1):
    """Return a job as the recorded values of its fields."""
    return {
        "submit": submit, "wait": wait, "run": run, "allocated_processors": held,
        "requested_processors": asked, "user": 1, "status": 1,
    }  # fmt: skip


moments = st.tuples(st.integers(0, 30), st.integers(0, 20), st.integers(0, 15), st.integers(1, 9))


@given(st.lists(moments, min_size=1, max_size=12))
def test_peak_counts_processors_in_use_at_each_second(rows):
    """The sweep over starts and ends finds what counting second by second finds."""
    start, end, held = (
        np.array(one) for one in zip(*((s + w, s + w + r, p) for s, w, r, p in rows), strict=True)
    )
    counted = max(
        int(held[(start <= second) & (second < end)].sum()) for second in range(end.max() + 1)
    )
    assert counted == most_in_use(start, end, held)


PEAK = "the peak of its recorded use, is a lower bound"
OF_READER = "the trace does not give the size of the machine; 6 processors, "


@pytest.mark.parametrize(
    ("rows", "header", "size", "note"),
    [
        # jobs that ran at once add up; one that ended as another began does not
        ([(0, 5, 10, 4), (1, 5, 10, 3), (0, 15, 10, 2)], "", 7, f"7 processors, {PEAK}"),
        ([(n, 20 - n, 100, 60) for n in range(10)] + [(9, 30, 10, 4)], "", 604, PEAK),
        # a given size is used as it is, even below the recorded use
        *(([(0, 5, 10, 4), (1, 5, 10, 3)], header, size, "") for header, size in (
            ("; MaxProcs: 5", 5), ("; MaxNodes: 50\n; MaxProcs: 100", 100),
            ("; MaxNodes: 50\n; MaxProcs: -1", 50),
            (f"; MaxProcs: {'1' * 5000}\n; MaxNodes: 128 nodes", 128))),
        # what a job that ran had asked for fits; one that never ran does not count
        ([(0, 0, 10, 4, 6), (0, 3, -1, -1, 1000)], "", 6, PEAK),
        # without any start, jobs count from their submission; if some have one, only these do
        ([(0, -1, 10, 4), (5, -1, 10, 3), (12, -1, 10, 2)], "", 7, "an estimate"),
        ([(0, 0, 10, 2), (5, -1, 10, 3), (5, 0, 10, 2)], "", 4, PEAK),
        ([(0, -1, -1, -1, 3), (0, -1, -1, -1, 8)], "", 8, "its largest job"),
        # formats without a size put what they found into the header, with a note
        *(([(0, 0, 10, 4)], f"; MaxProcs: 6\n; Note: {begin}; more", 6, OF_READER + what)
          for begin, what in ((MOST_HELD, PEAK), (MOST_IN_USE, PEAK),
                              (AS_JOBS_TELL, "as many as jobs were seen on, is a lower bound"))),
    ],
)  # fmt: skip
def test_size_of_a_machine(make_trace, rows, header, size, note):
    """It is that of the header, else what follows from the recorded use, with a note."""
    trace = make_trace(*(job(*row) for row in rows), header=header)
    assert size == trace.size.processors == trace.processors
    assert (note in trace.size.note) if note else trace.size.note == ""
    assert ("lower bound" in trace.size.note) == (note not in ("", "an estimate"))
    if "Note" in header:
        assert [b"; MaxProcs: 6"] == without_found_size(trace.header).lines


def test_size_follows_the_jobs(make_trace):
    """It is that of the columns as they are now; without any processors there is none."""
    trace = make_trace(job(0, 5, 10, 4), job(1, 5, 10, 3))
    assert 7 == trace.processors
    trace.columns["wait"] = np.array([0, 50])
    assert 4 == trace.processors
    with pytest.raises(TraceError, match="--processors"):
        _ = make_trace({"submit": 0}).processors


def test_commands_say_that_the_size_is_a_lower_bound(call, tmp_path, monkeypatch):
    """Wherever the size of a log of Slurm is printed, the note is too, unless --processors is."""
    monkeypatch.chdir(tmp_path)
    Path("jobs.txt").write_bytes(text({"JobID": "1"}))
    for command in (
        ("convert", "jobs.txt", "found.swf"), ("replay", "found.swf"),
        ("stats", "jobs.txt", "--which", "all"), ("compare", "jobs.txt", "found.swf"),
    ):  # fmt: skip
        assert f"1 processor, {PEAK}" in " ".join(call(*command)[1].split()), command
    assert "lower bound" not in call("convert", "jobs.txt", "given.swf", "--processors", 64)[1]


@pytest.mark.parametrize(("unit", "said"), [(1, False), (1000, True)])
def test_a_log_in_milliseconds_is_noticed(unit, said):
    """A line asks whether times are in milliseconds if they can hardly be in seconds."""
    lines = [
        f"{n} {n * 400_000 * unit} 0 {60 * n * unit} 1 -1 -1 1 -1 -1 1 1 1 -1 1 -1 -1 -1"
        for n in range(1, 9)
    ]
    trace = parse_swf("\n".join(lines))
    assert said == any("are times in milliseconds?" in line for line in trace.notes)
