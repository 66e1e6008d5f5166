"""Requested times of a replay, and the model of users' estimates that draws missing ones."""

import csv
import re
import runpy
from typing import Any

import numpy as np
import pytest
from hpcrowd import Streams, jobs_from_trace
from hpcrowd.environment.traces.request_model import (
    POPULAR,
    POPULARITY,
    assign,
    fit_counts,
    popularity_by_time,
)
from hpcrowd.environment.traces.requested_times import ABOVE, LIMIT, LONGEST, RUN_TIME
from hpcrowd.errors import QuantityError, TraceError
from hpcrowd.scenarios.kinds.replay import replay
from hpcrowd.traces import Conversion, RequestModel
from hypothesis import given
from hypothesis import strategies as st

from tests.support.places import ROOT

HOUR = 3600

JOB: dict[str, float] = {
    "submit": 0, "wait": 0, "run": 60, "allocated_processors": 1, "requested_processors": 1,
    "user": 1,
}  # fmt: skip

DRAWN = "no requested time: drawn from the model of users' estimates"
REPLACED = "requested time replaced by one from the model of users' estimates"
OUTRUN = "run time above the longest request left in the model: that one used"


@pytest.mark.parametrize(
    ("choice", "repaired", "longest"),
    [
        ("tsafrir:18h", {DRAWN: 50}, None),
        ("tsafrir:18h+all", {DRAWN: 50, REPLACED: 50}, 18 * HOUR),
        ("tsafrir:2h", {DRAWN: 50, OUTRUN: 1}, 10_000),
        ("tsafrir:fitted", {DRAWN: 50}, 10_000),
    ],
)
def test_missing_requests_are_drawn(make_trace, choice, repaired, longest):
    """Who asked for nothing, or all, get a request above their run time, by the seed; counted."""
    jobs = [JOB | {"run": 10 * row, "requested_time": -1 if row % 2 else 7200} for row in range(98)]
    long = JOB | {"run": 9000}
    half = make_trace(*jobs, long, long | {"requested_time": 10_000}, header="; MaxProcs: 10")
    made, fast, same, other = (
        jobs_from_trace(half, Conversion(requested=choice, speed=speed, seed=seed))
        for speed, seed in ((1.0, 0), (2.0, 0), (1.0, 0), (1.0, 4))
    )
    jobs, recorded = made.jobs, half["requested_time"]
    assert repaired == dict(made.repaired)
    assert longest in (None, jobs.requested_time.max())
    for again in (fast, same):
        assert jobs.requested_time.tolist() == again.jobs.requested_time.tolist()
    assert "fitted" in choice or jobs.requested_time.tolist() != other.jobs.requested_time.tolist()
    outrun = jobs.requested_time < jobs.run_time
    assert np.flatnonzero(outrun).tolist() == ([98] if OUTRUN in repaired else [])
    assert {7200} >= set(jobs.requested_time[outrun].tolist())
    if REPLACED not in repaired:
        assert recorded[recorded > 0].tolist() == jobs.requested_time[recorded > 0].tolist()
    drawn = set(jobs.requested_time[recorded <= 0].tolist())
    assert {7200, 10_000} >= drawn if "fitted" in choice else len(drawn) > 5
    run = replay(half, users="rigid", requested=choice, seed=4)
    assert other.jobs.requested_time.tolist() == run.jobs.requested_time.tolist()
    assert 50 == run.reading.repaired[DRAWN]


@pytest.mark.parametrize(
    ("text", "requested", "why"),
    [
        ("given", [60, 90, 5000, 60], {RUN_TIME: 2}),
        ("at-least:2x", [120, 120, 5000, 120], {RUN_TIME: 2}),
        ("missing:1h", [3600, 90, 5000, 3600], {LIMIT: 2}),
        ("missing:30s", [60, 90, 5000, 60], {LIMIT: 2, ABOVE: 2}),
        ("missing:queue", [90, 90, 5000, 5000], {LONGEST: 2}),
        ("missing:long=2h", [60, 90, 5000, 7200], {LIMIT: 1, RUN_TIME: 1}),
        ("missing:long=2h,5m", [300, 90, 5000, 7200], {LIMIT: 2}),
        ("missing:1=2h,queue", [7200, 90, 5000, 5000], {LIMIT: 1, LONGEST: 1}),
    ],
)
def test_limits_for_missing_requests(make_trace, text, requested, why):
    """A limit of all queues, of one by name or number, or the longest request in the queue."""
    recorded = ((1, -1), (1, 90), (2, 5000), (2, -1))
    trace = make_trace(*(JOB | {"queue": of, "requested_time": time} for of, time in recorded))
    trace.names |= {"queue": {1: "debug", 2: "long"}}
    made = jobs_from_trace(trace, Conversion(requested=text))
    assert (requested, why) == (made.jobs.requested_time.tolist(), dict(made.repaired))


@pytest.mark.traces
def test_page_shows_what_is_measured(kth):
    """The tables of the page are those that are measured now on KTH-SP2."""
    measured = runpy.run_path(str(ROOT / "docs" / "requested_times.py"))
    with measured["TABLE"].open(newline="") as file:
        told = [row for row in csv.DictReader(file) if row["trace"] == "KTH-SP2"]
    assert told == list(measured["rows"]("KTH-SP2", kth))
    with measured["REPLAYS"].open(newline="") as file:
        assert list(csv.DictReader(file)) == list(measured["replays"](kth))


def stream(seed):
    """Return a stream."""
    return Streams(seed).generator("requested time")


@st.composite
def models(draw):
    """Models with any longest request and any known popular ones."""
    longest = draw(st.integers(HOUR, 500 * HOUR))
    times = draw(st.lists(st.integers(1, longest - 1), max_size=19, unique=True))
    if draw(st.booleans()):
        times.append(longest)
    weights = draw(st.lists(st.integers(0, 100), min_size=len(times), max_size=len(times)))
    whole = draw(st.floats(0, 0.88)) / max(1, sum(weights))
    popular = {time: weight * whole for time, weight in zip(times, weights, strict=True)}
    distinct = draw(st.none() | st.integers(1, 500))
    return RequestModel(longest, popular, distinct=distinct)


@given(models(), st.integers(1, 3000), st.integers(0, 3))
def test_counts_sum_up_and_requests_are_in_range(model, jobs, seed):
    """Counts sum to the jobs; requests are different, positive, sorted and at most the longest."""
    times, counts = model.histogram(jobs, stream(seed))
    assert jobs == counts.sum()
    assert counts.min() >= 1
    assert times[0] >= 1
    assert times[-1] <= model.longest
    assert (np.diff(times) > 0).all()
    assert len(times) <= max(model.distinct_for(jobs), len(model.popular) + 1)
    found = dict(zip(times.tolist(), counts.tolist(), strict=True))
    if jobs >= 500:  # what is known of popular requests is kept to the job
        for time, share in model.popular.items():
            assert abs(found.get(time, 0) - share * jobs) < 1


@given(st.lists(st.integers(0, 30 * HOUR), min_size=1, max_size=300), st.integers(0, 3),
       st.integers(1, 20))  # fmt: skip
def test_no_request_is_below_its_run_time(runs, seed, hours):
    """A request is at least the run time, cut off at the longest; else it is an error."""
    run_times = np.array(runs, np.int64)
    model = RequestModel(hours * HOUR)
    capped = np.minimum(run_times, model.longest)
    requested = model.draw(run_times, stream(seed), outrun=True)
    assert requested.tobytes() == model.draw(run_times, stream(seed), outrun=True).tobytes()
    if (requested >= capped).all():
        assert requested.tolist() == model.draw(run_times, stream(seed)).tolist()
    else:
        with pytest.raises(QuantityError, match=r"requests? drawn that long"):
            model.draw(run_times, stream(seed))
    times, counts = model.histogram(len(runs), stream(seed))
    assert np.repeat(times, counts).tolist() == sorted(requested.tolist())


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30), st.integers(0, 3))
def test_assignment_is_found_where_there_is_one(pairs, seed):
    """Requests can be handed out whenever it is possible at all, each exactly once."""
    runs = np.array([run for run, _ in pairs], np.int64)
    requests = np.array([run + more for run, more in pairs], np.int64)
    found = assign(requests, runs, stream(seed))
    assert (found >= runs).all()
    assert sorted(requests.tolist()) == sorted(found.tolist())


def test_assignment_is_uniform():
    """Each way to hand out two requests, both long enough, comes as often as the other."""
    draws = stream(0)
    found = [assign(np.array([1, 2]), np.array([0, 1]), draws)[0] for _ in range(4000)]
    assert abs(np.mean(found) - 1.5) < 4 * 0.5 / np.sqrt(4000)


def test_different_and_popular_requests():
    """As many as the source has, or its power law; twenty are common; known shares stay."""
    assert [1, 28, 565] == [RequestModel(18 * HOUR).distinct_for(jobs) for jobs in (1, 600, 10**6)]
    # 0.653566 * jobs ** 0.547761
    assert 101 == RequestModel(18 * HOUR, law="power").distinct_for(10_000)
    hours = [time / HOUR for time in RequestModel(36 * HOUR).head_times()]
    assert POPULAR == len(hours)
    assert [36, *(n / 60 for n in (5, 10, 15, 20, 30)), 1, 2, 3, 4, 5, 6, 8, 10, 12, 18, 20, 25, 30,
            35] == [hours[0], *sorted(hours[1:])]  # fmt: skip
    known = RequestModel(36 * HOUR, {26 * HOUR: 0, 18 * HOUR: 0, 36 * HOUR: 0}).head_times()
    merged = [time / HOUR for time in known]  # 26 h takes the place of the nearest
    assert ({25}, {26}, 36) == ({*hours} - {*merged}, {*merged} - {*hours}, merged[0])
    sizes = RequestModel(18 * HOUR, {18 * HOUR: 0.02}).head_sizes(20)
    assert 0.89 == pytest.approx(sum(sizes))
    assert 0.02 in sizes


@given(st.integers(1, 20), st.integers(0, 5), st.data())
def test_every_popularity_is_drawn_once(number, seed, data):
    """Each time gets its own popularity; the known ones and the longest's are kept."""
    places = data.draw(st.lists(st.integers(1, number), unique=True, max_size=number))
    known = dict(zip(data.draw(st.permutations(range(number))), places, strict=False))
    found = RequestModel(18 * HOUR).draw_popularity(number, stream(seed), known)
    assert list(range(1, number + 1)) == sorted(found)
    assert known == {place: found[place] for place in known}
    assert known or 1 == found[0]


#: Choices of a conversion, or jobs with one, and words of the error.
CHOICES: list[tuple[dict[str, Any], str]] = [
    *(({"requested": text}, re.escape(words)) for text, words in (
        ("missing:", "missing:7d"), ("missing:soon", "'missing:soon'"), ("missing:0h", "0 s"),
        ("missing:queue,2h", "twice"), ("missing:long=1h,long=2h", "long twice"),
        ("tsafrir:", "tsafrir:18h"), ("tsafrir:long", "'tsafrir:long'"),
        ("tsafrir:30m", "at least 3600 s"), ("tsafrir:18h+some", "'some'"),
        ("someone:18h", "'someone:18h'"), ("at-least:", "at-least:"), ("at-least:0x", "0x"))),
    ({"job_processors": "both"}, "both"),
    *(({"speed": speed}, str(speed)) for speed in (0.0, -1.0, float("inf"), float("nan"))),
]  # fmt: skip
JOBS: list[tuple[list[dict[str, float]], str, str]] = [
    ([JOB], "tsafrir:fitted", "made: requests: 0 jobs"),
    # of 1000 jobs the model lets 217 ask for the longest; all run so long
    ([JOB | {"run": 4000}] * 1000, "tsafrir:1h",
     "made: requested times: 1,000 jobs of 3600 s or more, but"),
    ([JOB | {"queue": 1}], "missing:lang=2h", r"queue 'lang': .*debug"),
]  # fmt: skip
MODELS: list[tuple[dict[str, Any], str]] = [
    ({"longest": 1800}, "1800 s: must be at least 3600"),
    ({"popular": {0: 0.1}}, "popular request 0 s"),
    ({"popular": {9 * HOUR: 0.1}}, "at most the longest"),
    ({"popular": {60: 1.1}}, "share 1.1"), ({"popular": {60: 0.6, 90: 0.6}}, "share of 1.2"),
    ({"popular": dict.fromkeys(range(1, 21), 0.01)}, "20 with a share"),
    ({"head_share": 0.0}, "head_share 0.0"), ({"distinct": 0}, "distinct 0"),
    ({"law": "cubic"}, "'cubic'"),
]  # fmt: skip


def convert(make_trace, jobs, choice):
    """Make jobs of a trace with a choice of requested times."""
    trace = make_trace(*jobs)
    trace.names |= {"queue": {1: "debug"}}
    return jobs_from_trace(trace, Conversion(requested=choice))


@pytest.mark.parametrize(
    ("impossible", "words"),
    [
        *((lambda make, told=told: Conversion(**told), words) for told, words in CHOICES),
        *((lambda make, jobs=jobs, told=told: convert(make, jobs, told), words)
          for jobs, told, words in JOBS),
        *((lambda make, told=told: RequestModel(**{"longest": 8 * HOUR} | told), words)
          for told, words in MODELS),
        (lambda make: assign(np.array([10, 60]), np.array([50, 50]), stream(0)),
         "2 jobs of 50 s or more, but only 1 request.*increase the longest request"),
        (lambda make: fit_counts({}, 3), "leave 3 jobs without one"),
        (lambda make: RequestModel(8 * HOUR, head_share=0.3).histogram(1000, stream(0)),
         r"head_share 0\.3"),
        *((lambda make, some=some: RequestModel.fit(np.array(some, np.int64)), "positive")
          for some in ([], [0, 60], [60, -1])),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_drawn_or_fitted(make_trace, impossible, words):
    """What means nothing, or what jobs do not allow, is one line with the value."""
    with pytest.raises((QuantityError, TraceError), match=words):
        impossible(make_trace)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=200), st.integers(0, 3))
def test_few_different_requests_come_back_as_they_were(minutes, seed):
    """A log of at most twenty different requests is made again exactly."""
    few = (1 + np.array(minutes) % 19) * 600
    few[0] = 400 * 60
    model = RequestModel.fit(few)
    times, counts = model.histogram(len(few), stream(seed))
    assert sorted(few.tolist()) == np.repeat(times, counts).tolist()


@pytest.mark.traces
def test_lcg_was_made_with_the_authors_program(read_trace):
    """Requested times of the LCG log are of this very model: each time, and each size, is ours."""
    recorded = read_trace("LCG-2005")["requested_time"].astype(np.int64)
    times, sizes = np.unique(recorded, return_counts=True)
    found, counts = RequestModel(48 * HOUR).histogram(len(recorded), stream(0))
    assert times.tolist() == found.tolist()
    assert sorted(sizes.tolist()) == sorted(counts.tolist())


@pytest.mark.traces
@pytest.mark.parametrize(
    ("log", "trace", "most"),
    [("KTH-SP2 up to 4 h", "KTH-SP2", 4 * HOUR), ("SDSC-DS", "SDSC-DS", None),
     ("CEA-Curie", "CEA-Curie", None)],
)  # fmt: skip
def test_table_of_popularities_is_that_of_the_logs(read_trace, log, trace, most):
    """The table that we ship is measured again, log for log."""
    requested = read_trace(trace)["requested_time"]
    requested = requested[(requested > 0) & (requested <= (most or requested.max()))]
    assert POPULARITY[log] == popularity_by_time(requested.astype(np.int64))
