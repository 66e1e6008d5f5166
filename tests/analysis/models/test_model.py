"""Workload models: targets of generated workloads, files, what goes wrong; on a model for tests."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import pytest
from hpcrowd.analysis.features import Workload
from hpcrowd.analysis.models import (
    MODELS,
    Drawn,
    Generated,
    JobModel,
    generate,
    read_model,
    write_model,
)
from hpcrowd.analysis.models import model as registered
from hpcrowd.analysis.models.arrivals.poisson import Poisson
from hpcrowd.analysis.models.model import WorkloadModel, fit
from hpcrowd.analysis.models.parts.base import Floats
from hpcrowd.environment import Streams, generate_swf, jobs_from_trace, parse_swf
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import ModelFileError, ModelFitError, QuantityError
from pydantic import Field

from tests.analysis.features.feature_cases import poisson_workload


class Plain(JobModel):
    """Exponential run times, any number of processors; every tenth job follows the one before."""

    name: ClassVar[str] = "plain"
    title: ClassVar[str] = "for tests"
    source: ClassVar[str] = "none"

    mean_s: float = Field(gt=0, description="s; mean run time")

    @classmethod
    def fit(cls, workload: Workload) -> Self:
        """Take the mean."""
        return cls(mean_s=float(workload.run_time.mean()), notes=("one number is all",))

    def jobs(self, arrivals: Floats, machine: int, streams: Streams) -> Drawn:
        """Draw."""
        random = streams.generator("jobs")
        size = len(arrivals)
        return Drawn.of(
            arrivals,
            random.exponential(self.mean_s, size),
            random.integers(1, machine + 1, size),
            user=random.integers(1, 9, size),
        )


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the model known."""
    monkeypatch.setitem(MODELS, "plain", registered.Kind(f"{__name__}:Plain", "poisson"))
    monkeypatch.setattr(
        registered, "resolve_name", lambda place: Plain if "Plain" in place else Poisson
    )


@pytest.fixture
def fitted() -> registered.Kind:
    """Return the model fitted to random jobs."""
    return fit("plain", poisson_workload(2000, 300, 1))


def test_targets_are_met(fitted: object) -> None:
    """Jobs, days, load and machine come out as asked for; the model's own machine otherwise."""
    found = generate(fitted, jobs=500, load=0.7, processors=32)
    assert (500, 32) == (len(found), found.machine)
    assert found.load == pytest.approx(0.7, rel=0.01)
    found = generate(fitted, days=10, load=0.5)
    assert 128 == found.machine
    assert found.load == pytest.approx(0.5, rel=0.01)
    assert found.drawn.submit[-1] / DAY == pytest.approx(10, rel=0.01)
    assert () == found.notes
    found = generate(fitted, days=10)
    assert found.drawn.submit[-1] / DAY == pytest.approx(10, rel=0.01)


def test_a_seed_gives_the_same_bytes(fitted: object) -> None:
    """The same seed, also 0, gives the same trace, another one another."""
    texts = [generate_swf(generate(fitted, jobs=200, seed=seed).trace()) for seed in (0, 0, 1)]
    assert texts[0] == texts[1] != texts[2]


def test_a_load_keeps_the_jobs(fitted: object) -> None:
    """Only the times between arrivals change with the load."""
    low, high = (generate(fitted, jobs=300, load=load).drawn for load in (0.3, 0.9))
    assert low.run_time.tolist() == high.run_time.tolist()
    assert low.submit[-1] == pytest.approx(3 * high.submit[-1], rel=0.01)


def test_a_cycle_is_kept_also_at_another_load() -> None:
    """With the trace's week imposed, most jobs come when they came there; targets are met."""
    hours = np.tile(np.r_[np.zeros(8), np.ones(10), np.zeros(6)], 21)
    days = np.flatnonzero(hours) * 3600.0
    trace = Workload.of(np.sort(np.r_[days, days + 900, days + 1800]), 600, 4, machine=32)
    model = fit("plain", trace, cycle="weekly")
    for load in (None, 0.6):
        made = generate(model, days=60, load=load)
        hour = made.drawn.submit // 3600 % 24
        assert ((hour >= 8) & (hour < 18)).mean() > 0.98
        assert made.drawn.submit[-1] / DAY == pytest.approx(60, rel=0.02)
    assert made.load == pytest.approx(0.6, rel=0.02)
    with pytest.raises(ModelFitError, match="cycle"):
        fit("plain", poisson_workload(10, 1, 1), cycle="daily")


def test_the_trace_reads_back_strictly(fitted: WorkloadModel) -> None:
    """What is generated is a trace that the strict reader takes, with header and notes."""
    found: Generated = generate(replace(fitted, requests=None), jobs=100)
    again = parse_swf(generate_swf(found.trace()))
    assert 128 == again.processors
    assert "model plain" in again.header.get("Computer")
    assert found.drawn.submit.tolist() == again["submit"].tolist()
    assert 100 == len(jobs_from_trace(again, strict=True).jobs)
    # No model gave requested times: jobs ask for what they need, and the header says so.
    assert np.maximum(again["run"], 1).tolist() == again["requested_time"].tolist()
    assert {-1} == set(again["wait"].tolist())
    told = b" ".join(again.header.lines)
    assert b"waits are -1" in told
    assert b"requested times are run times" in told
    assert (np.diff(again["submit"]) >= 0).all()


def test_a_file_keeps_the_model(fitted: object, tmp_path: Path) -> None:
    """Written and read, it generates the same; the file says what it is and where it is from."""
    path = tmp_path / "m.json"
    write_model(fitted, path)
    assert fitted == read_model(path)
    wire = json.loads(path.read_text())
    assert ("hpcrowd workload model", 1, "plain") == (
        wire["format"],
        wire["version"],
        wire["model"],
    )
    assert ["one number is all"] == fitted.notes
    assert 2000 == wire["provenance"]["jobs"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda wire: wire | {"version": 2}, "version 2, but this hpcrowd reads only up to 1"),
        (lambda wire: wire | {"format": "soup"}, "not a workload model; make one with hpcrowd fit"),
        (lambda wire: wire | {"machine": 0}, "machine 0: must be from 1 to"),
        (lambda wire: wire | {"load": "much"}, "load 'much': must be positive or null"),
        (lambda wire: {k: v for k, v in wire.items() if k != "jobs"}, "damaged: no 'jobs'"),
        (
            lambda wire: wire | {"arrivals": {"name": "poisson", "mean_gap_s": -1}},
            r"mean_gap_s: -1: input should be greater than 0",
        ),
        (lambda wire: wire | {"jobs": {"name": "plain", "soup": 1}}, "soup|mean_s"),
    ],
)
def test_a_damaged_file_is_one_clear_line(
    fitted: object, tmp_path: Path, change: object, message: str
) -> None:
    """Newer, foreign and damaged files are refused with the place and the rule."""
    path = tmp_path / "m.json"
    write_model(fitted, path)
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(ModelFileError, match=message) as caught:
        read_model(path)
    assert "\n" not in str(caught.value)
    path.write_text("{")
    with pytest.raises(ModelFileError, match="damaged, not JSON"):
        read_model(path)
    with pytest.raises(ModelFileError, match="cannot be read: No such file"):
        read_model(tmp_path / "nothing.json")


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ({}, "give either a number of jobs or a number of days"),
        ({"jobs": 1, "days": 1}, "either a number of jobs or"),
        ({"jobs": 0}, "jobs 0: must be from 1 to"),
        ({"days": -1}, "days -1: must be from"),
        ({"jobs": 1, "load": 0}, "load 0: must be from"),
        ({"jobs": 1, "processors": 0}, "processors 0: must be from 1 to"),
        ({"jobs": 1, "seed": -1}, "seed -1"),
    ],
)
def test_targets_that_make_no_sense(
    fitted: object, targets: dict[str, float], message: str
) -> None:
    """Each is reported with its value."""
    with pytest.raises(QuantityError, match=message):
        generate(fitted, **targets)


def test_what_cannot_be_fitted_is_said() -> None:
    """Names that are not known, and arrivals all in one second."""
    with pytest.raises(QuantityError, match="model 'soup': not known; choose"):
        fit("soup", poisson_workload(10, 1, 1))
    with pytest.raises(QuantityError, match="arrivals 'soup': not known; choose poisson"):
        fit("plain", poisson_workload(10, 1, 1), arrivals="soup")
    with pytest.raises(ModelFitError, match="arrivals poisson: 2 jobs: two at different times"):
        fit("plain", Workload.of([5, 5], 1))
