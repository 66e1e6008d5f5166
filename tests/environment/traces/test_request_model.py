"""The model of users' estimates: what it draws holds its rules, and comes near to real logs."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd.environment import QuantityError, RequestModel, Streams
from hpcrowd.environment.traces.request_model import (
    DISTINCT,
    POPULAR,
    POPULARITY,
    assign,
    fit_counts,
    most_popular,
    popularity_by_time,
)
from hpcrowd.environment.traces.trace import Trace
from hypothesis import given
from hypothesis import strategies as st

from tests.support.places import ROOT

HOUR = 3600

scripted: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "requested_times.py"))


def stream(seed: int) -> np.random.Generator:
    """Return a stream."""
    return Streams(seed).generator("requested time")


@st.composite
def models(draw: st.DrawFn) -> RequestModel:
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
def test_counts_sum_up_and_requests_are_in_range(model: RequestModel, jobs: int, seed: int) -> None:
    """Counts sum to the jobs; requests are different, positive, sorted and at most the longest."""
    times, counts = model.histogram(jobs, stream(seed))
    assert jobs == counts.sum()
    assert counts.min() >= 1
    assert times[0] >= 1
    assert times[-1] <= model.longest
    assert (np.diff(times) > 0).all()
    assert len(times) <= max(model.distinct_for(jobs), len(model.popular) + 1)


@given(models(), st.integers(500, 5000), st.integers(0, 3))
def test_known_requests_keep_their_share(model: RequestModel, jobs: int, seed: int) -> None:
    """What is known of popular requests is in the outcome to the job."""
    times, counts = model.histogram(jobs, stream(seed))
    found = dict(zip(times.tolist(), counts.tolist(), strict=True))
    for time, share in model.popular.items():
        assert abs(found.get(time, 0) - share * jobs) < 1


@given(
    st.lists(st.integers(0, 30 * HOUR), min_size=1, max_size=300),
    st.integers(0, 3),
    st.integers(1, 20),
)
def test_no_request_is_below_its_run_time(runs: list[int], seed: int, hours: int) -> None:
    """A request is at least the run time, cut off at the longest; else it is an error."""
    run_times = np.array(runs, np.int64)
    model = RequestModel(hours * HOUR)
    capped = np.minimum(run_times, model.longest)
    requested = model.draw(run_times, stream(seed), outrun=True)
    if (requested >= capped).all():
        assert requested.tolist() == model.draw(run_times, stream(seed)).tolist()
    else:
        with pytest.raises(QuantityError, match=r"requests? drawn that long"):
            model.draw(run_times, stream(seed))
    times, counts = model.histogram(len(runs), stream(seed))
    assert np.repeat(times, counts).tolist() == sorted(requested.tolist())


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30), st.integers(0, 3))
def test_assignment_is_found_where_there_is_one(pairs: list[tuple[int, int]], seed: int) -> None:
    """Requests can be handed out whenever it is possible at all, each exactly once."""
    runs = np.array([run for run, _ in pairs], np.int64)
    requests = np.array([run + more for run, more in pairs], np.int64)
    found = assign(requests, runs, stream(seed))
    assert (found >= runs).all()
    assert sorted(requests.tolist()) == sorted(found.tolist())


def test_impossible_assignment_is_an_error() -> None:
    """Too few long requests: the message shows how many jobs and requests, and the cure."""
    with pytest.raises(QuantityError, match="2 jobs of 50 s or more, but only 1 request") as caught:
        assign(np.array([10, 60]), np.array([50, 50]), stream(0))
    assert "increase the longest request" in str(caught.value)


def test_assignment_is_uniform() -> None:
    """Each way to hand out two requests, both long enough, comes as often as the other."""
    draws = stream(0)
    found = [assign(np.array([1, 2]), np.array([0, 1]), draws)[0] for _ in range(4000)]
    assert abs(np.mean(found) - 1.5) < 4 * 0.5 / np.sqrt(4000)


@given(
    st.dictionaries(st.integers(1, 50), st.integers(1, 40), min_size=1, max_size=20),
    st.integers(0, 900),
)
def test_counts_are_made_to_fit(counts: dict[int, int], total: int) -> None:
    """The sum is as asked for; no request is lost while one other has more than one job."""
    found = fit_counts(counts, total)
    assert total == sum(found.values())
    assert min(found.values()) >= 0
    assert total < len(counts) or min(found.values()) >= 1


def test_counts_that_cannot_fit_are_an_error() -> None:
    """Jobs that no request is left for are reported."""
    with pytest.raises(QuantityError, match="leave 3 jobs without one"):
        fit_counts({}, 3)


@pytest.mark.parametrize(("jobs", "distinct"), [*DISTINCT[1:], (600, 28), (10**6, 565), (1, 1)])
def test_number_of_different_requests(jobs: int, distinct: int) -> None:
    """It follows the points of the source, linearly between them, and is flat above."""
    assert distinct == RequestModel(18 * HOUR).distinct_for(jobs)


def test_number_of_different_requests_by_power() -> None:
    """The other rule of the source is 0.653566 * jobs ** 0.547761."""
    assert 101 == RequestModel(18 * HOUR, law="power").distinct_for(10_000)


def test_popular_times() -> None:
    """Common times, then multiples from the longest downwards, fill up to twenty."""
    hours = [time / HOUR for time in RequestModel(36 * HOUR).head_times()]
    assert POPULAR == len(hours)
    assert 36 == hours[0]
    assert [1, 2, 3, 4, 5, 6, 8, 10, 12, 18, 20, 25, 30, 35] == [h for h in hours[1:] if h >= 1]
    assert [5, 10, 15, 20, 30] == [60 * h for h in hours[1:] if h < 1]


def test_known_times_replace_the_nearest() -> None:
    """A known time takes the place of the nearest round one; the longest and known ones stay."""
    default, merged = (
        RequestModel(36 * HOUR).head_times(),
        RequestModel(36 * HOUR, {26 * HOUR: 0, 18 * HOUR: 0, 36 * HOUR: 0}).head_times(),
    )
    assert {25 * HOUR} == set(default) - set(merged)
    assert {26 * HOUR} == set(merged) - set(default)
    assert merged[0] == 36 * HOUR


def test_popular_shares_sum_up() -> None:
    """Shares of the popular requests sum to that of the head; the known longest keeps its own."""
    sizes = RequestModel(18 * HOUR).head_sizes(20)
    assert 0.89 == pytest.approx(sum(sizes))
    assert 0.2174 == pytest.approx(sizes[0], abs=1e-4)
    known = RequestModel(18 * HOUR, {18 * HOUR: 0.02}).head_sizes(20)
    assert 0.89 == pytest.approx(sum(known))
    assert 0.02 in known


@given(st.integers(1, 20), st.integers(0, 5), st.data())
def test_every_popularity_is_drawn_once(number: int, seed: int, data: st.DataObject) -> None:
    """Each time gets its own popularity; the known ones and the longest's are kept."""
    places = data.draw(st.lists(st.integers(1, number), unique=True, max_size=number))
    known = dict(zip(data.draw(st.permutations(range(number))), places, strict=False))
    found = RequestModel(18 * HOUR).draw_popularity(number, stream(seed), known)
    assert list(range(1, number + 1)) == sorted(found)
    assert known == {place: found[place] for place in known}
    assert known or 1 == found[0]


def test_popularities_of_one_log_are_its_own() -> None:
    """With a table of a single log nothing is left to chance, but the longest has rank 1."""
    ranks = POPULARITY["KTH-SP2 up to 4 h"]
    model = RequestModel(18 * HOUR, table=[ranks])
    assert list(ranks) == model.draw_popularity(20, stream(0), {})


def test_same_seed_same_requests() -> None:
    """The same stream gives the same bytes, another one other requests."""
    runs = np.arange(1000)
    first, again, other = (RequestModel(24 * HOUR).draw(runs, stream(s)) for s in (5, 5, 6))
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != other.tobytes()


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"longest": 1800}, "1800 s: must be at least 3600"),
        ({"popular": {0: 0.1}}, "popular request 0 s"),
        ({"popular": {9 * HOUR: 0.1}}, "at most the longest"),
        ({"popular": {60: 1.1}}, "share 1.1"),
        ({"popular": {60: 0.6, 90: 0.6}}, "share of 1.2"),
        ({"popular": dict.fromkeys(range(1, 21), 0.01)}, "20 with a share"),
        ({"head_share": 0.0}, "head_share 0.0"),
        ({"distinct": 0}, "distinct 0"),
        ({"law": "cubic"}, "'cubic'"),
    ],
)
def test_impossible_models_are_errors(choices: dict[str, Any], words: str) -> None:
    """A model that cannot be is reported in one line with the value."""
    with pytest.raises(QuantityError) as caught:
        RequestModel(**{"longest": 8 * HOUR} | choices)
    assert words in str(caught.value)
    assert 1 == len(str(caught.value).splitlines())


def test_too_small_a_head_is_an_error() -> None:
    """A head that leaves less than nothing for the longest request is reported with its cure."""
    with pytest.raises(QuantityError, match=r"head_share 0\.3"):
        RequestModel(8 * HOUR, head_share=0.3).histogram(1000, stream(0))


@pytest.mark.parametrize("requested", [[], [0, 60], [60, -1]])
def test_fit_needs_requests(requested: list[int]) -> None:
    """Nothing can be fitted to missing requests."""
    with pytest.raises(QuantityError, match="positive"):
        RequestModel.fit(np.array(requested, np.int64))


@given(st.lists(st.integers(1, 400), min_size=1, max_size=200), st.integers(0, 3))
def test_few_different_requests_come_back_as_they_were(minutes: list[int], seed: int) -> None:
    """A log of at most twenty different requests is made again exactly."""
    few = (1 + np.array(minutes) % 19) * 600
    few[0] = 400 * 60
    model = RequestModel.fit(few)
    times, counts = model.histogram(len(few), stream(seed))
    assert sorted(few.tolist()) == np.repeat(times, counts).tolist()


@pytest.mark.traces
def test_lcg_was_made_with_the_authors_program(read_trace: Callable[[str], Trace]) -> None:
    """Requested times of the LCG log are of this very model: each time, and each size, is ours."""
    recorded = read_trace("LCG-2005")["requested_time"].astype(np.int64)
    times, sizes = np.unique(recorded, return_counts=True)
    found, counts = RequestModel(48 * HOUR).histogram(len(recorded), stream(0))
    assert times.tolist() == found.tolist()
    assert sorted(sizes.tolist()) == sorted(counts.tolist())


@pytest.mark.traces
@pytest.mark.parametrize(
    ("log", "trace", "most"),
    [
        ("KTH-SP2 up to 4 h", "KTH-SP2", 4 * HOUR),
        ("SDSC-DS", "SDSC-DS", None),
        ("CEA-Curie", "CEA-Curie", None),
    ],
)
def test_table_of_popularities_is_that_of_the_logs(
    read_trace: Callable[[str], Trace], log: str, trace: str, most: int | None
) -> None:
    """The table that we ship is measured again, log for log."""
    requested = read_trace(trace)["requested_time"]
    requested = requested[(requested > 0) & (requested <= (most or requested.max()))]
    assert POPULARITY[log] == popularity_by_time(requested.astype(np.int64))


@pytest.mark.traces
@pytest.mark.parametrize("name", ["KTH-SP2", "SDSC-DS", "HPC2N-2002-2.2", "LANL", "CEA-Curie"])
def test_fitted_model_comes_near_to_the_log(read_trace: Callable[[str], Trace], name: str) -> None:
    """Knowing the twenty popular requests, the model is near; without, it is further away."""
    requested = read_trace(name)["requested_time"]
    requested = requested[requested > 0].astype(np.int64)
    fitted, bare = RequestModel.fit(requested), RequestModel.fit(requested, 0)
    near, far = (
        scripted["compare_requests"](
            requested, np.repeat(*model.histogram(len(requested), stream(1)))
        )
        for model in (fitted, bare)
    )
    assert near.total_variation < 0.35
    assert near.ks < 0.15
    assert near.in_common >= 16
    assert abs(near.distinct - near.distinct_other) <= 10
    assert near.popular_share_other == pytest.approx(near.popular_share, abs=0.03)
    assert near.total_variation < far.total_variation
    popular, counts = most_popular(requested, 5)
    assert (counts / len(requested)).tolist() == pytest.approx(
        [fitted.popular[time] for time in popular.tolist()]
    )
