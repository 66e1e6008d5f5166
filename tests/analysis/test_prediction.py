"""Predictions along a recorded trace: nothing is known before it has happened, and the figures."""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from typing import override

import numpy as np
import pytest
from hpcrowd.analysis.prediction import (
    Accuracy,
    PastJobs,
    evaluate,
    looks_ahead,
    parse_years,
    past_jobs,
    predict_all,
    training_jobs,
)
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.schedulers.predictors.base import Predictor
from hpcrowd.environment.schedulers.predictors.history import HistoryParameters, HistoryPredictor
from hpcrowd.environment.schedulers.predictors.last_two import LastTwo
from hpcrowd.environment.schedulers.predictors.nearest import Nearest
from hpcrowd.environment.traces.trace import Trace

#: 2004-01-01 00:00 in Stockholm.
NEW_YEAR = 1_072_911_600


@pytest.fixture(scope="module")
def past(make_trace: Callable[..., Trace]) -> PastJobs:
    """Return 300 jobs of five users."""
    random = np.random.default_rng(0)
    jobs = []
    for submit in np.sort(random.integers(0, 100_000, 300)):
        run = int(random.integers(0, 3_000))
        jobs.append(
            {
                "submit": int(submit),
                "wait": int(random.integers(0, 500)),
                "run": run,
                "requested_processors": int(random.integers(1, 9)),
                "requested_time": int(random.choice([600, 1800, 3600])),
                "status": 1,
                "user": int(random.integers(0, 5)),
            }
        )
    return past_jobs(make_trace(*jobs))


class Peeking(LastTwo):
    """Knows how long the first job runs that arrives, from the table."""

    @override
    def follow(self, events: object) -> Int64s:
        jobs, _ = self._ready()
        predicted: Int64s = super().follow(events)  # type: ignore[arg-type]
        predicted[0] = jobs.run_time[0]
        return predicted


class Guessing(Predictor):
    """Predicts when jobs end that are still running, from their recorded ends."""

    def begin(self, jobs: object) -> None:
        """Keep the table."""
        self.jobs = jobs

    def arrived(self, rows: Int64s, now: int) -> None:
        """Nothing."""

    def ended(self, rows: Int64s, now: int) -> None:
        """Nothing."""

    def predict(self, rows: Int64s, now: int) -> Int64s:
        """Return the time until the latest recorded end."""
        latest = self.jobs.recorded_end.max()  # type: ignore[attr-defined]
        return np.full(len(rows), max(int(latest) - now, 1))


MODELS = {
    "last-two": LastTwo,
    "nearest": Nearest,
    "history": lambda: HistoryPredictor(HistoryParameters.published("SDSC04")),
    "by completion": lambda: HistoryPredictor(
        HistoryParameters.published("SDSC04"), history="completion"
    ),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_no_predictor_looks_ahead(make: Callable[[], Predictor], past: PastJobs) -> None:
    """Other run times of jobs that have not ended change no prediction."""
    assert not looks_ahead(make, past)


@pytest.mark.parametrize("leak", [Peeking, Guessing])
def test_planted_leaks_are_caught(leak: Callable[[], Predictor], past: PastJobs) -> None:
    """The same check catches a predictor that looks at the table, once or always."""
    assert looks_ahead(leak, past)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_the_future_changes_nothing(make: Callable[[], Predictor], past: PastJobs) -> None:
    """With all run times after a moment changed, predictions until then stay the same."""
    moment = 50_000
    later = past.end > moment
    end = np.where(later, past.end + 9_999, past.end)
    other = PastJobs(past.jobs, np.where(later, past.run + 9_999, past.run), end)
    before = past.jobs.submit <= moment
    expected, found = predict_all(past, make()), predict_all(other, make())
    assert expected[before].tolist() == found[before].tolist()
    assert expected[~before].tolist() != found[~before].tolist()


def test_the_table_tells_no_run_time(past: PastJobs) -> None:
    """No column of the table that a predictor is given holds a run time or an end."""
    jobs = past.jobs
    for column in (jobs.run_time, jobs.recorded_end, jobs.end):
        assert (column == UNKNOWN).all()
    assert past.end.tolist() == (jobs.start + past.run).tolist()


def test_figures() -> None:
    """The figures of three jobs, by hand (Eqs. 8.9 to 8.12)."""
    found = Accuracy.of(np.array([60, 120, 60]), np.array([120, 60, 60]), np.array([2, 1, 3]))
    assert (3, pytest.approx(1 / 3)) == (found.jobs, found.underestimated_share)
    assert pytest.approx(2 / 3) == found.mae_min
    assert pytest.approx((240 + 60) / (240 + 60 + 180)) == found.wae_min
    assert pytest.approx(120 / 240) == found.normalized_error
    assert pytest.approx(-0.5 / exp((2 / 3) ** 2)) == found.fitness


def test_whole_predictions_of_whole_times_are_exact() -> None:
    """Who predicts every run time makes no error; figures over nothing are 0."""
    run = np.array([5, 7])
    assert Accuracy(2, 0.0, 0.0, 0.0, 0.0) == Accuracy.of(run, run, np.array([1, 1]))
    assert Accuracy(0, 0.0, 0.0, 0.0, 0.0) == Accuracy.of(run[:0], run[:0], run[:0])


def test_figures_are_of_the_test_part(past: PastJobs) -> None:
    """The first jobs fill the history but do not count."""
    predicted = predict_all(past, LastTwo())
    rest = slice(200, None)
    expected = Accuracy.of(predicted[rest], past.run[rest], past.jobs.processors[rest])
    assert expected == evaluate(past, LastTwo(), 200)
    assert expected != evaluate(past, LastTwo(), 100)


def test_the_training_part_stands_alone(past: PastJobs) -> None:
    """The first jobs by themselves are predicted as they are in the whole."""
    part = past.first(100)
    make = MODELS["last-two"]
    assert predict_all(past, make())[:100].tolist() == predict_all(part, make()).tolist()
    assert 100 == len(part)


def job(submit: int, **fields: int) -> dict[str, int]:
    """Return a job of a trace that can be predicted."""
    given = {"submit": submit, "wait": 0, "run": 9, "requested_processors": 1}
    return {**given, "requested_time": 10, "status": 1, "user": 1, **fields}


def test_jobs_that_are_left_out(make_trace: Callable[..., Trace]) -> None:
    """Jobs that failed, or that asked for no time, are counted by reason and left out."""
    found = past_jobs(
        make_trace(
            job(0), job(1, status=0), job(2, requested_time=-1), job(3, requested_processors=0)
        )
    )
    assert [1] == found.jobs.number.tolist()
    reasons = {"status is not 1": 1, "no requested time": 1, "no processors": 1}
    assert reasons == found.left_out


def test_years_are_local(make_trace: Callable[..., Trace]) -> None:
    """A year begins at midnight where the machine stands."""
    header = f"; UnixStartTime: {NEW_YEAR - 10}\n; TimeZoneString: Europe/Stockholm"
    trace = make_trace(job(9), job(10), job(10 + 366 * 86_400), header=header)
    assert [2] == past_jobs(trace, (2004, 2004)).jobs.number.tolist()
    assert [3] == past_jobs(trace, (2005, 2005)).jobs.number.tolist()


def test_nothing_to_predict_is_reported(make_trace: Callable[..., Trace]) -> None:
    """The message counts the reasons; a year needs a trace that says when it began."""
    with pytest.raises(TraceError, match="made: no job to predict: 1 job status is not 1"):
        past_jobs(make_trace(job(0, status=5)))
    with pytest.raises(
        TraceError, match="so no job can be assigned to 2004 to 2005; leave the years out"
    ):
        past_jobs(make_trace(job(0)), (2004, 2005))


@pytest.mark.parametrize(
    ("text", "jobs", "expected"),
    [
        ("auto", 66_744, 30_000),
        ("auto", 45_000, 30_000),
        ("auto", 28_476, 14_238),
        ("26300", 55_389, 26_300),
        ("0.5", 301, 150),
        ("0", 5, 0),
    ],
)
def test_splits(text: str, jobs: int, expected: int) -> None:
    """A split is a number of jobs, a share, or chosen by the size."""
    assert expected == training_jobs(text, jobs)


@pytest.mark.parametrize("text", ["half", "1.0", "-1", "nan", "inf", "100", "1e400", ""])
def test_wrong_splits_are_reported(text: str) -> None:
    """A split that leaves nothing to test, or is none, is reported with its value."""
    with pytest.raises(QuantityError, match=f"split '{text}'"):
        training_jobs(text, 100)


def test_years_in_texts() -> None:
    """One year, or the first and the last; anything else is reported."""
    assert ((2004, 2004), (2005, 2006)) == (parse_years("2004"), parse_years("2005-2006"))
    for text in ("04", "2006-2005", "2005-", "always", "2004-05"):
        with pytest.raises(QuantityError, match=f"years '{text}'"):
            parse_years(text)
