"""Predictions along a recorded trace: nothing is known before it has happened, and the figures."""

from math import exp
from typing import override

import numpy as np
import pytest
from hpcrowd.analysis import prediction
from hpcrowd.analysis.prediction import Accuracy, past_jobs, predict_all
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.schedulers.predictors.experience import LastTwo, Nearest
from hpcrowd.environment.schedulers.predictors.history import HistoryParameters, HistoryPredictor

#: 2004-01-01 00:00 in Stockholm.
NEW_YEAR = 1_072_911_600

SDSC = HistoryParameters.published("SDSC04")

MODELS = {
    "last-two": LastTwo,
    "nearest": Nearest,
    "history": lambda: HistoryPredictor(SDSC),
    "by completion": lambda: HistoryPredictor(SDSC, history="completion"),
}


def job(submit, **fields):
    """Return a job of a trace that can be predicted."""
    given = {"submit": submit, "wait": 0, "run": 9, "requested_processors": 1}
    return {**given, "requested_time": 10, "status": 1, "user": 1, **fields}


@pytest.fixture(scope="module")
def past(make_trace):
    """Return 300 jobs of five users."""
    random = np.random.default_rng(0)

    def drawn():
        sizes = {"wait": 500, "run": 3_000, "user": 5}
        asked = {"requested_time": int(random.choice([600, 1800, 3600]))}
        return {name: int(random.integers(most)) for name, most in sizes.items()} | asked

    submit = np.sort(random.integers(0, 100_000, 300)).tolist()
    rows = [job(at, requested_processors=1 + at % 8, **drawn()) for at in submit]
    return past_jobs(make_trace(*rows))


class Peeking(LastTwo):
    """Knows how long the first job runs that arrives, from the table."""

    @override
    def follow(self, events):
        jobs, _ = self._ready()
        predicted: Int64s = super().follow(events)
        predicted[0] = jobs.run_time[0]
        return predicted


def test_figures(past):
    """The figures of three jobs, by hand (Eqs. 8.9 to 8.12); the first of a log do not count."""
    found = Accuracy.of(np.array([60, 120, 60]), np.array([120, 60, 60]), np.array([2, 1, 3]))
    assert (3, pytest.approx(1 / 3)) == (found.jobs, found.underestimated_share)
    assert pytest.approx(2 / 3) == found.mae_min
    assert pytest.approx((240 + 60) / (240 + 60 + 180)) == found.wae_min
    assert pytest.approx(120 / 240) == found.normalized_error
    assert pytest.approx(-0.5 / exp((2 / 3) ** 2)) == found.fitness
    run = np.array([5, 7])
    assert Accuracy(2, 0.0, 0.0, 0.0, 0.0) == Accuracy.of(run, run, np.array([1, 1]))
    assert Accuracy(0, 0.0, 0.0, 0.0, 0.0) == Accuracy.of(run[:0], run[:0], run[:0])
    jobs = past.jobs
    assert {UNKNOWN} == {*jobs.run_time.tolist(), *jobs.recorded_end.tolist(), *jobs.end.tolist()}
    assert past.end.tolist() == (jobs.start + past.run).tolist()
    predicted = predict_all(past, LastTwo())
    rest = slice(200, None)
    expected = Accuracy.of(predicted[rest], past.run[rest], past.jobs.processors[rest])
    assert expected == prediction.evaluate(past, LastTwo(), 200)
    assert predicted[:100].tolist() == predict_all(past.first(100), LastTwo()).tolist()


def test_jobs_that_are_left_out(make_trace):
    """Jobs that failed, or that asked for no time, are counted by reason and left out."""
    rows = (job(0), job(1, status=0), job(2, requested_time=-1), job(3, requested_processors=0))
    found = past_jobs(make_trace(*rows))
    assert [1] == found.jobs.number.tolist()
    reasons = {"status is not 1": 1, "no requested time": 1, "no processors": 1}
    assert reasons == found.left_out
    with pytest.raises(TraceError, match="made: no job to predict: 1 job status is not 1"):
        past_jobs(make_trace(job(0, status=5)))


def test_years_are_local(make_trace):
    """A year begins at midnight where the machine stands; texts have one, or first and last."""
    header = f"; UnixStartTime: {NEW_YEAR - 10}\n; TimeZoneString: Europe/Stockholm"
    trace = make_trace(job(9), job(10), job(10 + 366 * 86_400), header=header)
    assert [2] == past_jobs(trace, (2004, 2004)).jobs.number.tolist()
    assert [3] == past_jobs(trace, (2005, 2005)).jobs.number.tolist()
    told = "so no job can be assigned to 2004 to 2005; leave the years out"
    with pytest.raises(TraceError, match=told):
        past_jobs(make_trace(job(0)), (2004, 2005))
    assert (2004, 2004) == prediction.parse_years("2004")
    assert (2005, 2006) == prediction.parse_years("2005-2006")
    for text in ("04", "2006-2005", "2005-", "always", "2004-05"):
        with pytest.raises(QuantityError, match=f"years '{text}'"):
            prediction.parse_years(text)


@pytest.mark.parametrize(("text", "jobs", "expected"), [
    ("auto", 66_744, 30_000),
    ("auto", 45_000, 30_000),
    ("auto", 28_476, 14_238),
    ("26300", 55_389, 26_300),
    ("0.5", 301, 150),
    ("0", 5, 0),
    *((text, 100, None) for text in ("half", "1.0", "-1", "nan", "inf", "100", "1e400", "")),
])  # fmt: skip
def test_splits(text, jobs, expected):
    """A split is a number of jobs, a share, or chosen by the size; others are reported."""
    if expected is None:
        with pytest.raises(QuantityError, match=f"split '{text}'"):
            prediction.training_jobs(text, jobs)
    else:
        assert expected == prediction.training_jobs(text, jobs)


@pytest.mark.parametrize(
    ("make", "leaks"),
    [*((make, False) for make in MODELS.values()), (Peeking, True)],
    ids=[*MODELS, "peeking"],
)
def test_who_looks_ahead_is_caught(make, leaks, past):
    """Other run times of jobs that have not ended change no prediction, but of a planted leak."""
    assert leaks == prediction.looks_ahead(make, past)
