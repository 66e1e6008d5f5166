"""The model of locality: runs of similar run times, their order, what their jobs need."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hpcrowd.analysis.features import Workload
from hpcrowd.analysis.features.distance import apart
from hpcrowd.analysis.features.locality import repetition_zipf, run_lengths
from hpcrowd.analysis.features.series import spearman
from hpcrowd.analysis.models.jobs.locality import Locality, Table, runs_of
from hpcrowd.environment import Streams
from hpcrowd.environment.errors import ModelFitError
from hpcrowd.environment.traces.trace import Trace

from tests.analysis.features.feature_cases import bursty_workload

#: Traces with what they are known for, negative and positive correlation among them.
TRACES = ("HPC2N-2002-2.1", "LLNL-Thunder", "KTH-SP2", "DAS2-fs1")


def alternating(*lengths: int) -> Workload:
    """Return runs of jobs of 10 s on 1 processor and of 5,000 s on 4, in turn."""
    long = np.repeat(np.arange(len(lengths)) % 2, lengths)
    return Workload.of(
        np.arange(len(long)) * 60,
        np.where(long, 5000, 10),
        np.where(long, 4, 1),
        user=1,
        machine=8,
    )


def generated(model: Locality, jobs: int, machine: int, seed: int = 0) -> Workload:
    """Return a workload of the model, with an arrival a minute."""
    drawn = model.jobs(np.arange(jobs) * 60.0, machine, Streams(seed))
    return Workload.of(drawn.submit, drawn.run_time, drawn.processors, machine=machine)


# ---- runs ------------------------------------------------------------------------------------


def test_runs_are_as_long_as_in_the_table() -> None:
    """Each class has its own lengths, with their shares; which is next goes by the table."""
    lengths = Table.of([(0, 1, 3), (0, 4, 1), (1, 2, 7)])
    follows = Table.of([(0, 1, 5), (1, 0, 2)])
    label, run = runs_of(30_000, lengths, follows, np.random.default_rng(1))
    found = run_lengths(label)[:-1]
    of_run = label[np.cumsum(found) - 1]
    assert {0, 1} == {*of_run.tolist()}
    assert (np.diff(of_run) != 0).all()
    assert {2} == {*found[of_run == 1].tolist()}
    short = found[of_run == 0]
    assert {1, 4} == {*short.tolist()}
    assert pytest.approx(0.75, abs=5 * (0.1875 / len(short)) ** 0.5) == np.mean(short == 1)
    assert run_lengths(run).tolist() == run_lengths(label).tolist()


def test_next_class_depends_on_the_one_before() -> None:
    """A class that two others follow has each with its share."""
    lengths = Table.of([(0, 1, 1), (1, 1, 1), (2, 1, 1)])
    follows = Table.of([(0, 1, 9), (0, 2, 1), (1, 0, 1), (2, 0, 1)])
    label, _ = runs_of(20_000, lengths, follows, np.random.default_rng(2))
    after = label[1:][label[:-1] == 0]
    assert {0} == {*label[1:][label[:-1] > 0].tolist()}
    assert pytest.approx(0.9, abs=5 * (0.09 / len(after)) ** 0.5) == np.mean(after == 1)


# ---- the model -------------------------------------------------------------------------------


def test_two_kinds_of_jobs_come_back_in_runs() -> None:
    """Run times, their runs and their processors are those of the workload."""
    recorded = alternating(3, 5, 3, 1, 3, 5, 3, 5)
    model = Locality.fit(recorded)
    assert ((0, 3, 4), (1, 1, 1), (1, 5, 3)) == model.run_lengths
    assert ((0, 1, 4), (1, 0, 4)) == model.next_classes
    made = generated(model, 3000, 8)
    assert {10, 5000} == {*made.run_time.tolist()}
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


def test_same_stream_same_jobs() -> None:
    """A seed gives the same jobs again, another seed others."""
    model = Locality.fit(bursty_workload(400, 3))
    first, again, other = (generated(model, 500, 64, seed) for seed in (0, 0, 1))
    assert first.run_time.tolist() == again.run_time.tolist()
    assert first.processors.tolist() == again.processors.tolist()
    assert first.run_time.tolist() != other.run_time.tolist()


@pytest.mark.parametrize(
    "recorded",
    [Workload.of([0], 60, 3), Workload.of([0, 1], [5, 900], [1, 2]), alternating(7)],
    ids=["one job", "two jobs", "one kind"],
)
def test_small_workloads_have_a_model(recorded: Workload) -> None:
    """One job, two, and jobs of one kind: after the last run comes the first."""
    model = Locality.fit(recorded)
    assert model == Locality.model_validate(model.model_dump(mode="json"))
    made = generated(model, 40, 4)
    assert {*made.run_time.tolist()} <= {*recorded.run_time.tolist()}


def test_what_cannot_be_fitted_is_said() -> None:
    """There must be jobs."""
    with pytest.raises(ModelFitError, match="model locality: 0 jobs: at least one is needed"):
        Locality.fit(Workload.of([], []))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"run_lengths": ((0, 3, 1),)}, "run_lengths: each of 2 classes must have a row"),
        ({"run_lengths": ((0, 3, 0), (1, 1, 1))}, "run_lengths: a count of 0; must be at least 1"),
        ({"run_lengths": ((0, 0, 1), (1, 1, 1))}, "run_lengths: a run must have at least 1 job"),
        ({"next_classes": ((0, 1, 1), (1, 2, 1))}, "next_classes: there are 2 classes, from 0"),
        ({"least_s": (1.0,)}, "least_s, most_s: one of each is needed for 2"),
        ({"most_s": (0.0, 0.0)}, "least_s: larger than most_s"),
    ],
)
def test_damaged_models_are_refused(change: dict[str, object], message: str) -> None:
    """Tables have rows for each class, and counts."""
    known = Locality.fit(alternating(3, 5, 3, 5)).model_dump()
    with pytest.raises(ValueError, match=message):
        Locality.model_validate(known | change)


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.parametrize("name", TRACES)
def test_locality_is_that_of_the_trace(name: str, read_trace: Callable[[str], Trace]) -> None:
    """The exponent of run lengths is within 0.2 of the trace's, as near as readings of Table 3.5.

    Distributions are within 0.03, the correlation within 0.03.
    """
    recorded = Workload.from_trace(read_trace(name))
    assert recorded.machine is not None
    model = Locality.fit(recorded)
    made = [generated(model, len(recorded), recorded.machine, seed) for seed in range(3)]
    exponents = [repetition_zipf(one).exponent for one in made[:2]]
    assert pytest.approx(repetition_zipf(recorded).exponent, abs=0.2) == np.mean(exponents)
    for column in ("run_time", "processors"):
        distances = [apart(getattr(recorded, column), getattr(one, column)).ks for one in made]
        assert np.mean(distances) < 0.03, column
    correlation = np.mean([spearman(one.run_time, one.processors) for one in made])
    known = spearman(recorded.run_time, recorded.processors)
    assert pytest.approx(known, abs=0.03) == correlation
