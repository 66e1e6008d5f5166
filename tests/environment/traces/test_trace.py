"""From a trace to the jobs that are simulated: nothing is repaired or dropped in silence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd.environment import Conversion, QuantityError, TraceError, jobs_from_trace
from hpcrowd.environment.header import Header
from hpcrowd.environment.traces.trace import Trace

MakeTrace = Callable[..., Trace]

#: A job without anything to repair.
GOOD: dict[str, float] = {
    "submit": 10,
    "wait": 5,
    "run": 60,
    "allocated_processors": 8,
    "requested_processors": 4,
    "requested_time": 90,
    "user": 7,
    "group": 3,
    "executable": 2,
    "queue": 1,
}


def test_good_job_is_taken_as_it_is(make_trace: MakeTrace) -> None:
    """A complete job needs no repair, and every column comes from its field."""
    made = jobs_from_trace(make_trace(GOOD))
    job = {name: int(values[0]) for name, values in made.jobs.to_frame().items() if name != "state"}
    expected = {
        "number": 1,
        "user": 7,
        "group": 3,
        "executable": 2,
        "queue": 1,
        "processors": 4,
        "run_time": 60,
        "requested_time": 90,
        "recorded_submit": 10,
        "recorded_start": 15,
        "recorded_end": 75,
    }
    unknown = dict.fromkeys(("requested_memory", "estimate", "promised"), -1)
    nothing_yet = dict.fromkeys(
        ("submit", "enqueued", "start", "end", "paused", "session", "batch", "unit", "cluster"), -1
    )
    assert expected | unknown | nothing_yet == job
    assert ({}, {}) == (dict(made.repaired), dict(made.dropped))


@pytest.mark.parametrize(
    ("choice", "requested", "allocated", "processors", "repaired"),
    [
        ("requested", 4, 8, 4, {}),
        ("requested", -1, 8, 8, {"no requested processors: allocated processors used": 1}),
        ("requested", 0, 8, 8, {"no requested processors: allocated processors used": 1}),
        ("allocated", 4, 8, 8, {}),
        ("allocated", 4, -1, 4, {"no allocated processors: requested processors used": 1}),
    ],
)
def test_which_processors_count(
    make_trace: MakeTrace,
    choice: Any,
    requested: int,
    allocated: int,
    processors: int,
    repaired: dict[str, int],
) -> None:
    """Either field of processors is used on request, the other where it is missing, counted."""
    job = GOOD | {"requested_processors": requested, "allocated_processors": allocated}
    made = jobs_from_trace(make_trace(job), Conversion(job_processors=choice))
    assert [processors] == made.jobs.processors.tolist()
    assert repaired == dict(made.repaired)


@pytest.mark.parametrize(
    ("run", "requested_time", "expected"), [(60, 90, 120), (60, 121, 121), (0, 5, 5), (3, 1, 6)]
)
def test_requested_time_of_at_least_twice_the_run_time(
    make_trace: MakeTrace, run: int, requested_time: int, expected: int
) -> None:
    """``at-least:2x`` takes the larger of the request and twice the run time."""
    job = GOOD | {"run": run, "requested_time": requested_time}
    made = jobs_from_trace(make_trace(job), Conversion(requested="at-least:2x"))
    assert [expected] == made.jobs.requested_time.tolist()


def test_at_least_counts_in_recorded_run_times(make_trace: MakeTrace) -> None:
    """Requested times are those of the recorded machine, however fast the simulated one is."""
    conversion = Conversion(requested="at-least:2x", speed=2.0)
    made = jobs_from_trace(make_trace(GOOD | {"requested_time": 61}), conversion)
    assert (30, 120) == (made.jobs.run_time[0], made.jobs.requested_time[0])


@pytest.mark.parametrize(
    ("speed", "expected"), [(1.0, [0, 1, 3, 60]), (2.0, [0, 1, 2, 30]), (0.5, [0, 2, 6, 120])]
)
def test_speed_divides_run_times_and_rounds_halves_up(
    make_trace: MakeTrace, speed: float, expected: list[int]
) -> None:
    """Run times are divided by the speed, halves rounded up; recorded times stay."""
    trace = make_trace(*(GOOD | {"run": run} for run in (0, 1, 3, 60)))
    made = jobs_from_trace(trace, Conversion(speed=speed))
    assert expected == made.jobs.run_time.tolist()
    assert [15, 16, 18, 75] == made.jobs.recorded_end.tolist()
    assert [90] * 4 == made.jobs.requested_time.tolist()


@pytest.mark.parametrize(
    ("change", "reason", "column", "value"),
    [
        ({"wait": -1}, "no wait time: taken as 0", "recorded_start", 10),
        (
            {"requested_time": -1},
            "no requested time: the recorded run time used",
            "requested_time",
            60,
        ),
        (
            {"requested_time": 0},
            "no requested time: the recorded run time used",
            "requested_time",
            60,
        ),
        ({"user": -1}, "no user: all such jobs assigned to one user", "user", -1),
        ({"submit": 10.5}, "submit with a fraction: rounded half up", "recorded_submit", 11),
        ({"run": 59.4}, "run with a fraction: rounded half up", "run_time", 59),
        ({"wait": 0.5}, "wait with a fraction: rounded half up", "recorded_start", 11),
        (
            {"requested_time": 89.5},
            "requested_time with a fraction: rounded half up",
            "requested_time",
            90,
        ),
    ],
)
def test_repair_is_counted_by_reason(
    make_trace: MakeTrace, change: dict[str, float], reason: str, column: str, value: int
) -> None:
    """What is missing or broken in a job is repaired and counted; other jobs are left alone."""
    made = jobs_from_trace(make_trace(GOOD, GOOD | change, GOOD | change))
    assert {reason: 2} == dict(made.repaired)
    assert {} == dict(made.dropped)
    assert [value, value] == getattr(made.jobs, column)[1:].tolist()
    good = jobs_from_trace(make_trace(GOOD)).jobs
    assert getattr(good, column)[0] == getattr(made.jobs, column)[0]


@pytest.mark.parametrize("field", ["requested_processors", "user"])
def test_whole_number_with_a_fraction_is_counted(make_trace: MakeTrace, field: str) -> None:
    """A fraction where only whole numbers make sense does not vanish in silence."""
    made = jobs_from_trace(make_trace(GOOD, GOOD | {field: 2.5}))
    assert 1 == (made.repaired + made.dropped).total()


def test_part_of_a_processor_is_no_job_without_processors(make_trace: MakeTrace) -> None:
    """Half a processor does not become a job of none."""
    made = jobs_from_trace(make_trace(GOOD, GOOD | {"requested_processors": 0.5}))
    assert 1 <= made.jobs.processors.min()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"submit": -1}, "no submit time"),
        ({"run": -1}, "no run time (never ran)"),
        ({"requested_processors": -1, "allocated_processors": -1}, "no processors"),
        ({"requested_processors": 0, "allocated_processors": 0}, "no processors"),
    ],
)
def test_drop_is_counted_by_reason(
    make_trace: MakeTrace, change: dict[str, float], reason: str
) -> None:
    """A job that cannot be simulated is dropped and counted; the others keep their numbers."""
    made = jobs_from_trace(make_trace(GOOD, GOOD | change, GOOD))
    assert {reason: 1} == dict(made.dropped)
    assert {} == dict(made.repaired)
    assert [1, 3] == made.jobs.number.tolist()
    assert [0, 2] == made.source_row.tolist()


def test_job_with_several_faults_is_dropped_once(make_trace: MakeTrace) -> None:
    """A job counts once among the dropped, under the first reason, and not among the repaired."""
    bad = {"submit": -1, "run": -1, "wait": -1, "user": -1, "requested_time": -1}
    made = jobs_from_trace(make_trace(GOOD, GOOD | bad))
    assert {"no submit time": 1} == dict(made.dropped)
    assert {} == dict(made.repaired)


def test_jobs_without_processors_stay_for_the_sessions(make_trace: MakeTrace) -> None:
    """With ``runnable=False`` a job without processors is kept, since a user submitted it."""
    trace = make_trace(GOOD, GOOD | {"requested_processors": -1, "allocated_processors": -1})
    made = jobs_from_trace(trace, runnable=False)
    assert [1, 2] == made.jobs.number.tolist()
    assert {} == dict(made.dropped)


def test_jobs_stand_in_the_order_of_their_numbers(make_trace: MakeTrace) -> None:
    """Rows follow job numbers, whatever the order of lines or submissions."""
    jobs = [GOOD | {"number": n, "submit": s} for n, s in ((30, 0), (10, 900), (20, 5))]
    made = jobs_from_trace(make_trace(*jobs))
    assert [10, 20, 30] == made.jobs.number.tolist()
    assert [900, 5, 0] == made.jobs.recorded_submit.tolist()
    assert [1, 2, 0] == made.source_row.tolist()
    assert {} == dict(made.repaired)


def test_job_numbers_used_twice_are_counted(make_trace: MakeTrace) -> None:
    """Jobs of one number stay, in the order of their lines, and are counted."""
    jobs = [GOOD | {"number": n, "submit": s} for n, s in ((2, 9), (1, 5), (2, 3), (2, 4))]
    made = jobs_from_trace(make_trace(*jobs))
    assert [5, 9, 3, 4] == made.jobs.recorded_submit.tolist()
    assert {"job number used before: order of the lines kept": 2} == dict(made.repaired)


@pytest.mark.parametrize("change", [{"wait": -1}, {"run": -1}])
def test_strict_makes_repairs_and_drops_errors(
    make_trace: MakeTrace, change: dict[str, float]
) -> None:
    """``strict`` tells the first repair or drop, with its count, instead of doing it."""
    trace = make_trace(GOOD, GOOD | change, GOOD | change)
    made = jobs_from_trace(trace)
    (reason,) = made.repaired + made.dropped
    with pytest.raises(TraceError, match=r"2 jobs (dropped|repaired): ") as caught:
        jobs_from_trace(trace, strict=True)
    assert reason in str(caught.value)
    assert 1 == len(str(caught.value).splitlines())


def test_strict_accepts_a_good_trace(make_trace: MakeTrace) -> None:
    """``strict`` changes nothing where there is nothing to repair."""
    assert 2 == len(jobs_from_trace(make_trace(GOOD, GOOD), strict=True).jobs)


def test_trace_without_a_job_to_simulate_is_an_error(make_trace: MakeTrace) -> None:
    """When every job is dropped, that is reported with how many there were."""
    with pytest.raises(TraceError, match="none of its 2 jobs"):
        jobs_from_trace(make_trace(GOOD | {"run": -1}, GOOD | {"submit": -1}))


def test_processors_of_the_machine(make_trace: MakeTrace) -> None:
    """The size of the machine is that of the header, else the peak of the recorded use."""
    assert 100 == make_trace(GOOD, header="; MaxNodes: 50\n; MaxProcs: 100").processors
    assert 50 == make_trace(GOOD, header="; MaxNodes: 50\n; MaxProcs: -1").processors
    assert 10 == make_trace(GOOD, GOOD | {"allocated_processors": 2}).processors
    with pytest.raises(TraceError, match="--processors"):
        _ = make_trace({"submit": 0}).processors


@pytest.mark.parametrize(
    "choices",
    [
        {"job_processors": "both"},
        {"requested": "twice"},
        {"requested": "at-least"},
        {"requested": "at-least:"},
        {"requested": "at-least:two"},
        {"requested": "at-least:0x"},
        {"speed": 0.0},
        {"speed": -1.0},
        {"speed": float("inf")},
        {"speed": float("nan")},
    ],
)
def test_unknown_conversion_is_an_error(choices: dict[str, Any]) -> None:
    """A conversion that does not exist is reported at once, in one line with its value."""
    with pytest.raises(QuantityError) as caught:
        Conversion(**choices)
    (value,) = choices.values()
    assert str(value).partition(":")[2] in str(caught.value)
    assert 1 == len(str(caught.value).splitlines())


@pytest.mark.traces
def test_odd_fields_of_thunder(read_trace: Callable[[str], Trace]) -> None:
    """Thunder is unsorted, lacks waits and requests, and has submissions of -1: all counted."""
    trace = read_trace("LLNL-Thunder-2007-1.1-cln")
    made = jobs_from_trace(trace)
    good = (trace["submit"] >= 0) & (trace["run"] >= 0)
    good &= (trace["requested_processors"] > 0) | (trace["allocated_processors"] > 0)
    assert np.any(trace["submit"] == -1)
    assert len(trace) == len(made.jobs) + made.dropped.total()
    assert np.count_nonzero(good) == len(made.jobs)
    assert np.count_nonzero(trace["submit"] < 0) == made.dropped["no submit time"]
    assert len(made.jobs) == made.repaired["no wait time: taken as 0"]
    lacking = np.count_nonzero(good & (trace["requested_time"] <= 0))
    assert lacking == made.repaired["no requested time: the recorded run time used"]
    assert np.any(np.diff(trace["submit"]) < 0)
    assert np.all(np.diff(made.jobs.number) > 0)
    assert np.array_equal(trace["number"][made.source_row], made.jobs.number)


@pytest.mark.traces
def test_job_without_processors_of_kth(kth: Trace) -> None:
    """KTH has one job without processors: dropped from simulations, kept for sessions."""
    made = jobs_from_trace(kth)
    assert (28_475, {"no processors": 1}) == (len(made.jobs), dict(made.dropped))
    assert 28_476 == len(jobs_from_trace(kth, runnable=False).jobs)


def test_numbers_in_headers_that_are_too_long_are_none() -> None:
    """A header may hold anything: a number of five thousand digits is not a size of a machine."""
    header = Header([b"; MaxProcs: " + b"1" * 5000, b"; MaxNodes: 128 nodes"])
    assert (None, 128) == (header.integer("MaxProcs"), header.processors)


def test_drops_of_reading_and_of_simulating_add_up(make_trace: MakeTrace) -> None:
    """Jobs that reading dropped are counted with those that are dropped now for the same reason."""
    trace = make_trace(GOOD, GOOD | {"run": -1})
    trace.dropped["no run time (never ran)"] = 3
    assert {"no run time (never ran)": 4} == jobs_from_trace(trace).dropped
