"""Requested times of a replay: given, at least so much, or made up by the model of estimates."""

from __future__ import annotations

import csv
import runpy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd.environment import Conversion, QuantityError, TraceError, jobs_from_trace
from hpcrowd.environment.traces.requested_times import (
    ABOVE,
    LIMIT,
    LONGEST,
    RUN_TIME,
    RequestedTimes,
)
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.kinds.replay import replay

from tests.support.places import ROOT

measured: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "requested_times.py"))

MakeTrace = Callable[..., Trace]

JOB: dict[str, float] = {
    "submit": 0,
    "wait": 0,
    "run": 60,
    "allocated_processors": 1,
    "requested_processors": 1,
    "user": 1,
}

DRAWN = "no requested time: drawn from the model of users' estimates"
REPLACED = "requested time replaced by one from the model of users' estimates"
OUTRUN = "run time above the longest request left in the model: that one used"


@pytest.fixture
def half(make_trace: MakeTrace) -> Trace:
    """Return a trace of 100 jobs, every other one without a requested time; two outrun 2 h."""
    jobs = [JOB | {"run": 10 * row, "requested_time": -1 if row % 2 else 7200} for row in range(98)]
    long = JOB | {"run": 9000}
    return make_trace(*jobs, long, long | {"requested_time": 10_000}, header="; MaxProcs: 10")


def test_only_missing_requests_are_drawn(half: Trace) -> None:
    """Jobs with a request keep it; the others get one above their run time, and are counted."""
    made = jobs_from_trace(half, Conversion(requested="tsafrir:18h"))
    recorded, jobs = half["requested_time"], made.jobs
    assert recorded[recorded > 0].tolist() == jobs.requested_time[recorded > 0].tolist()
    assert (jobs.requested_time >= jobs.run_time)[recorded <= 0].all()
    assert len(np.unique(jobs.requested_time[recorded <= 0])) > 5
    assert {DRAWN: 50} == dict(made.repaired)


def test_all_requests_are_drawn(half: Trace) -> None:
    """With ``+all`` every job gets a request of the model, and both kinds are counted."""
    made = jobs_from_trace(half, Conversion(requested="tsafrir:18h+all"))
    assert {DRAWN: 50, REPLACED: 50} == dict(made.repaired)
    assert (made.jobs.requested_time >= made.jobs.run_time).all()
    assert 18 * 3600 == made.jobs.requested_time.max()


def test_longer_jobs_request_the_longest(half: Trace) -> None:
    """A job that runs longer than the longest request asks for that, and is counted."""
    made = jobs_from_trace(half, Conversion(requested="tsafrir:2h"))
    assert 7200 == made.jobs.requested_time[98]
    assert {DRAWN: 50, OUTRUN: 1} == dict(made.repaired)


def test_fitted_to_the_other_jobs(half: Trace) -> None:
    """The fitted model draws among the requests of the jobs that have one."""
    made = jobs_from_trace(half, Conversion(requested="tsafrir:fitted"))
    assert {7200, 10_000} == set(made.jobs.requested_time.tolist())
    assert 50 == made.repaired[DRAWN]


def test_requests_go_by_the_seed(half: Trace) -> None:
    """The same seed draws the same, another seed something else, also through a replay."""
    drawn = [
        jobs_from_trace(half, Conversion(requested="tsafrir:18h", seed=seed)).jobs.requested_time
        for seed in (3, 3, 4)
    ]
    assert drawn[0].tobytes() == drawn[1].tobytes()
    assert drawn[0].tobytes() != drawn[2].tobytes()
    run = replay(half, users="rigid", requested="tsafrir:18h", seed=3)
    assert drawn[0].tolist() == run.jobs.requested_time.tolist()
    assert 50 == run.repaired[DRAWN]


def test_speed_leaves_requests_alone(half: Trace) -> None:
    """Requests are those of the recorded machine, as with the other choices."""
    conversions = (Conversion(requested="tsafrir:18h", speed=speed) for speed in (1.0, 2.0))
    first, second = (jobs_from_trace(half, conversion).jobs for conversion in conversions)
    assert first.requested_time.tolist() == second.requested_time.tolist()


def test_complete_trace_stays_as_it_is(make_trace: MakeTrace) -> None:
    """Where no request is missing nothing is drawn or counted."""
    made = jobs_from_trace(
        make_trace(JOB | {"requested_time": 90}), Conversion(requested="tsafrir:18h")
    )
    assert ([90], {}) == (made.jobs.requested_time.tolist(), dict(made.repaired))


def test_trace_without_requests_cannot_be_fitted(make_trace: MakeTrace) -> None:
    """The trace is named, and what it lacks."""
    with pytest.raises(TraceError, match="made: requests: 0 jobs"):
        jobs_from_trace(make_trace(JOB), Conversion(requested="tsafrir:fitted"))


def test_too_many_long_jobs_are_an_error(make_trace: MakeTrace) -> None:
    """Where no way of handing out requests covers the run times, trace, numbers and cure are shown.

    Of 1000 jobs the model lets 217 ask for the longest; all run so long.
    """
    trace = make_trace(*[JOB | {"run": 4000}] * 1000)
    with pytest.raises(
        TraceError, match="made: requested times: 1,000 jobs of 3600 s or more, but"
    ):
        jobs_from_trace(trace, Conversion(requested="tsafrir:1h"))


@pytest.mark.parametrize(
    ("text", "requested", "why"),
    [
        ("given", [60, 90, 5000, 60], {RUN_TIME: 2}),
        ("missing:1h", [3600, 90, 5000, 3600], {LIMIT: 2}),
        ("missing:30s", [60, 90, 5000, 60], {LIMIT: 2, ABOVE: 2}),
        ("missing:queue", [90, 90, 5000, 5000], {LONGEST: 2}),
        ("missing:long=2h", [60, 90, 5000, 7200], {LIMIT: 1, RUN_TIME: 1}),
        ("missing:long=2h,5m", [300, 90, 5000, 7200], {LIMIT: 2}),
        ("missing:1=2h,queue", [7200, 90, 5000, 5000], {LIMIT: 1, LONGEST: 1}),
    ],
)
def test_limits_for_missing_requests(
    make_trace: MakeTrace, text: str, requested: list[int], why: dict[str, int]
) -> None:
    """A limit of all queues, of one by name or number, or the longest request in the queue."""
    trace = make_trace(
        JOB | {"queue": 1},
        JOB | {"queue": 1, "requested_time": 90},
        JOB | {"queue": 2, "requested_time": 5000},
        JOB | {"queue": 2},
    )
    trace.names |= {"queue": {1: "debug", 2: "long"}}
    made = jobs_from_trace(trace, Conversion(requested=text))
    assert (requested, why) == (made.jobs.requested_time.tolist(), dict(made.repaired))


def test_limit_of_an_unknown_queue(make_trace: MakeTrace) -> None:
    """A queue that the log does not have is an error."""
    trace = make_trace(JOB | {"queue": 1})
    trace.names |= {"queue": {1: "debug"}}
    with pytest.raises(TraceError, match=r"queue 'lang': .*debug"):
        jobs_from_trace(trace, Conversion(requested="missing:lang=2h"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("missing:", "missing:7d"),
        ("missing:soon", "'missing:soon'"),
        ("missing:0h", "0 s"),
        ("missing:1h,2h", "twice"),
        ("missing:queue,2h", "twice"),
        ("missing:long=1h,long=2h", "long twice"),
        ("tsafrir", "tsafrir:18h"),
        ("tsafrir:", "tsafrir:18h"),
        ("tsafrir:long", "'tsafrir:long'"),
        ("tsafrir:30m", "at least 3600 s"),
        ("tsafrir:18h+some", "'some'"),
        ("tsafrir:18h+", "''"),
        ("someone:18h", "'someone:18h'"),
    ],
)
def test_unknown_choices_are_errors(text: str, words: str) -> None:
    """A choice that means nothing is reported in one line, with what is possible."""
    with pytest.raises(QuantityError) as caught:
        RequestedTimes.parse(text)
    assert words in str(caught.value)
    assert 1 == len(str(caught.value).splitlines())


@pytest.mark.traces
def test_a_log_without_requests_gets_some(read_trace: Callable[[str], Trace]) -> None:
    """NASA-iPSC has no requested time: each job gets one, at least its run time."""
    trace = read_trace("NASA")
    made = jobs_from_trace(trace, Conversion(requested="tsafrir:18h"))
    assert len(made.jobs) == made.repaired[DRAWN]
    assert (made.jobs.requested_time >= made.jobs.run_time).all()
    assert abs(len(np.unique(made.jobs.requested_time)) - 124) <= 3


@pytest.mark.traces
@pytest.mark.parametrize("name", ["KTH-SP2", "LLNL-Thunder", "SDSC-DS", "LANL"])
def test_logs_are_completed_by_their_own_requests(
    read_trace: Callable[[str], Trace], name: str
) -> None:
    """A model fitted to a log's requests gives the same log requests; few jobs outrun them."""
    trace = read_trace(name)
    made = jobs_from_trace(trace, Conversion(requested="tsafrir:fitted+all"))
    outran = made.jobs.run_time > made.jobs.requested_time
    assert made.repaired[OUTRUN] == np.count_nonzero(outran)
    assert np.count_nonzero(outran) < 0.15 * len(outran)


@pytest.mark.traces
def test_page_shows_what_is_measured(kth: Trace) -> None:
    """The tables of the page are those that are measured now on KTH-SP2."""
    with measured["TABLE"].open(newline="") as file:
        told = [row for row in csv.DictReader(file) if row["trace"] == "KTH-SP2"]
    assert told == list(measured["rows"]("KTH-SP2", kth))
    with measured["REPLAYS"].open(newline="") as file:
        assert list(csv.DictReader(file)) == list(measured["replays"](kth))
