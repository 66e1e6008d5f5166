"""The model of locality: runs of similar run times, their order, what their jobs need."""

from __future__ import annotations

import numpy as np
import pytest
from hpcrowd.analysis.features import Workload
from hpcrowd.analysis.features.locality import run_lengths
from hpcrowd.analysis.models.jobs.locality import Locality, Table, runs_of
from hpcrowd.environment import Streams

from tests.analysis.features.feature_cases import bursty_workload


def test_runs_are_as_long_as_in_the_table() -> None:
    """Each class has its own lengths, with their shares; which is next goes by the table."""
    lengths = Table.of([(0, 1, 3), (0, 4, 1), (1, 2, 7), (2, 1, 1)])
    follows = Table.of([(0, 1, 9), (0, 2, 1), (1, 0, 1), (2, 0, 1)])
    label, run = runs_of(30_000, lengths, follows, np.random.default_rng(1))
    found = run_lengths(label)[:-1]
    of_run = label[np.cumsum(found) - 1]
    assert {0, 1, 2} == {*of_run.tolist()}
    assert ({2}, {1}) == ({*found[of_run == 1].tolist()}, {*found[of_run == 2].tolist()})
    short, after = found[of_run == 0], of_run[1:][of_run[:-1] == 0]
    assert {1, 4} == {*short.tolist()}
    assert pytest.approx(0.75, abs=5 * (0.1875 / len(short)) ** 0.5) == np.mean(short == 1)
    assert {0} == {*of_run[1:][of_run[:-1] > 0].tolist()}
    assert pytest.approx(0.9, abs=5 * (0.09 / len(after)) ** 0.5) == np.mean(after == 1)
    assert run_lengths(run).tolist() == run_lengths(label).tolist()


def test_two_kinds_of_jobs_come_back_in_runs() -> None:
    """Run times, their runs and their processors are those of the workload."""
    long = np.repeat(np.arange(8) % 2, [3, 5, 3, 1, 3, 5, 3, 5])
    columns = {"user": 1, "machine": 8}
    recorded = Workload.of(
        np.arange(len(long)) * 60, np.where(long, 5000, 10), np.where(long, 4, 1), **columns
    )
    model = Locality.fit(recorded)
    assert ((0, 3, 4), (1, 1, 1), (1, 5, 3)) == model.run_lengths
    assert ((0, 1, 4), (1, 0, 4)) == model.next_classes
    made = model.jobs(np.arange(3000) * 60.0, 8, Streams(0))
    assert {(10, 1), (5000, 4)} == {*zip(made.run_time, made.processors, strict=True)}
    assert {3, 1, 5} == {*run_lengths(made.run_time)[:-1].tolist()}


def test_jobs_of_a_run_have_one_user() -> None:
    """A run is a bag: user, group and executable are those of all its jobs."""
    recorded = bursty_workload(400, 3)
    drawn = Locality.fit(recorded).jobs(recorded.submit, 64, Streams(1))
    first = np.unique(drawn.bag, return_index=True)[1]
    for name in ("user", "group", "executable"):
        column = getattr(drawn, name)
        assert column[first][drawn.bag].tolist() == column.tolist(), name
        assert column.min() >= 1
    small = Locality.fit(recorded).jobs(recorded.submit, 2, Streams(1))
    assert 2 == small.processors.max()
    assert "need more than 2 processors" in small.notes[0]
