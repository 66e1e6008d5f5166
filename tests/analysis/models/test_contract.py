"""What holds for every workload model: files, seeds, limits; tiny and degenerate traces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.analysis.features import Workload
from hpcrowd.analysis.models import (
    ARRIVALS,
    MODELS,
    Generated,
    WorkloadModel,
    fit,
    generate,
    published,
    read_model,
    write_model,
)
from hpcrowd.analysis.models.model import arrival_model, job_model
from hpcrowd.environment import generate_swf, jobs_from_trace, parse_swf
from hpcrowd.environment.errors import ModelFitError, QuantityError

from tests.analysis.features.feature_cases import bursty_workload, poisson_workload

#: Processors of the machine of the cases.
MACHINE = 64

#: Workloads to fit to, by what is special about them.
CASES: dict[str, Callable[[], Workload]] = {
    "bags": lambda: bursty_workload(1500, 21),
    "random": lambda: poisson_workload(3000, 300, 22, machine=MACHINE),
    "one job": lambda: Workload.of([5], [60], [2], user=1, machine=MACHINE),
    "three jobs": lambda: Workload.of([0, 50, 700], [60, 5, 9], [1, 2, 64], machine=MACHINE),
    "equal run times": lambda: poisson_workload(400, 300, 23, run_time=60, machine=MACHINE),
    "run times of 0": lambda: poisson_workload(400, 300, 23, run_time=0, machine=MACHINE),
    "serial": lambda: poisson_workload(400, 300, 24, processors=1, machine=MACHINE),
    "one second": lambda: Workload.of(np.zeros(200), np.arange(200), 2, user=1, machine=MACHINE),
    "no users": lambda: poisson_workload(400, 300, 25, user=-1, wait=-1, machine=MACHINE),
    "no requests": lambda: poisson_workload(400, 300, 26, requested_time=-1, machine=MACHINE),
    "one user": lambda: poisson_workload(400, 300, 27, user=3, group=9, machine=MACHINE),
    "steady": lambda: Workload.of(np.arange(500) * 60, 30, 4, user=1, machine=MACHINE),
    "no jobs": lambda: Workload.of([], [], machine=MACHINE),
}

#: Cases that every model can be fitted to.
SOUND = ("bags", "random", "no users", "no requests", "one user")

#: Models whose papers give parameters.
PUBLISHED = ("feitelson96", "feitelson97", "lublin", "lublin-typeless", "downey")


def check(made: Generated, jobs: int, machine: int) -> None:
    """Fail unless a generated workload is sound."""
    drawn = made.drawn
    assert jobs == len(drawn)
    assert (np.diff(drawn.submit) >= 0).all()
    assert (drawn.submit >= 0).all()
    assert (drawn.run_time >= 0).all()
    assert np.isfinite(drawn.submit).all()
    assert np.isfinite(drawn.run_time).all()
    assert (drawn.processors >= 1).all()
    assert (drawn.processors <= machine).all()
    assert (drawn.user >= 1).all()
    assert (drawn.group >= 1).all()
    assert (drawn.follows < np.arange(jobs)).all()
    for column in (drawn.processors, drawn.user, drawn.group, drawn.bag, drawn.follows):
        assert np.int64 == column.dtype
    again = parse_swf(generate_swf(made.trace()))
    assert jobs == len(jobs_from_trace(again, strict=True).jobs)
    assert machine == again.processors


@pytest.fixture(scope="module")
def fitted() -> Callable[[str, str], WorkloadModel]:
    """Return a function that fits a model to a case, only once; arrivals are Poisson's."""
    known: dict[tuple[str, str], WorkloadModel | ModelFitError] = {}

    def fitted(name: str, case: str) -> WorkloadModel:
        if (name, case) not in known:
            try:
                known[name, case] = fit(name, CASES[case](), arrivals="poisson")
            except ModelFitError as error:
                known[name, case] = error
        found = known[name, case]
        if isinstance(found, ModelFitError):
            raise found
        return found

    return fitted


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", MODELS)
def test_any_trace_gives_a_model_or_a_reason(
    name: str, case: str, fitted: Callable[[str, str], WorkloadModel]
) -> None:
    """A model that generates sound workloads, or one line that says what is wrong."""
    reason = ""
    try:
        check(generate(fitted(name, case), jobs=300, seed=1), 300, MACHINE)
    except ModelFitError as error:
        reason = str(error)
    assert "\n" not in reason
    assert not reason or case not in SOUND


@pytest.mark.parametrize("case", ["bags", "random"])
@pytest.mark.parametrize("name", MODELS)
def test_a_smaller_machine_gets_smaller_jobs(
    name: str, case: str, fitted: Callable[[str, str], WorkloadModel]
) -> None:
    """No job exceeds the machine that was asked for."""
    check(generate(fitted(name, case), jobs=200, processors=8, seed=1), 200, 8)
    check(generate(fitted(name, case), jobs=50, processors=1, seed=1), 50, 1)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_survives_its_file(
    name: str, fitted: Callable[[str, str], WorkloadModel], tmp_path: Path
) -> None:
    """Written and read it is the same, and generates the same bytes; the file is small."""
    model = fitted(name, "bags")
    path = tmp_path / "m.json"
    write_model(model, path)
    again = read_model(path)
    assert model == again
    assert path.stat().st_size < 1_000_000
    texts = [generate_swf(generate(one, jobs=200, seed=5).trace()) for one in (model, again)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", MODELS)
def test_seeds_decide(name: str, fitted: Callable[[str, str], WorkloadModel]) -> None:
    """The same seed, also 0, gives the same bytes; another one gives others."""
    model = fitted(name, "bags")
    made = [generate(model, jobs=300, seed=seed).drawn for seed in (0, 0, 1)]
    assert made[0].submit.tolist() == made[1].submit.tolist()
    assert made[0].run_time.tolist() == made[1].run_time.tolist()
    assert made[0].run_time.tolist() != made[2].run_time.tolist()


@pytest.mark.parametrize("name", MODELS)
def test_load_and_days_are_met(name: str, fitted: Callable[[str, str], WorkloadModel]) -> None:
    """Within a percent, or it is said."""
    model = fitted(name, "bags")
    made = generate(model, jobs=3000, load=0.7, seed=2)
    assert made.load == pytest.approx(0.7, rel=0.01) or any("load" in one for one in made.notes)
    made = generate(model, days=3, seed=2)
    days = made.drawn.submit[-1] / 86400
    assert days <= 3
    assert days == pytest.approx(3, rel=0.01) or any("days" in one for one in made.notes)


@pytest.mark.parametrize("name", MODELS)
def test_models_say_what_they_are(name: str) -> None:
    """Title, source, and a description of each field."""
    part = job_model(name)
    assert name == part.name
    assert part.title
    assert part.source
    for field, info in part.model_fields.items():
        assert info.description, field


@pytest.mark.parametrize("name", MODELS)
def test_published_parameters_or_a_cure(name: str) -> None:
    """Where a paper gives parameters, they generate for any machine; else it says what to do."""
    if name not in PUBLISHED:
        with pytest.raises(QuantityError, match=f"hpcrowd fit {name} TRACE"):
            published(name, MACHINE)
        return
    for machine in (1, MACHINE, 4000):
        check(generate(published(name, machine), jobs=500, seed=3), 500, machine)


@pytest.mark.parametrize("name", ARRIVALS)
def test_arrivals_of_any_trace_or_a_reason(name: str, tmp_path: Path) -> None:
    """Rising times from 0 on, as many as asked for; or one line that says what is wrong."""
    kind = arrival_model(name)
    for case, make in CASES.items():
        reason, found = "", None
        try:
            found = kind.fit(make())
        except ModelFitError as error:
            reason = str(error)
        assert "\n" not in reason
        assert not reason or case not in SOUND
        if found is None:
            continue
        for count in (1, 700):
            times = found.times(count, np.random.default_rng(4))
            assert (count,) == times.shape, case
            assert (np.diff(times) >= 0).all(), case
            assert times[0] >= 0, case
            assert np.isfinite(times).all(), case
