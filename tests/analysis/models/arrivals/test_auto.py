"""Arrivals by evidence: what is taken and why; what the models reach on real traces."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hpcrowd.analysis.features import Workload
from hpcrowd.analysis.features.series import counts
from hpcrowd.analysis.features.workload import Settings
from hpcrowd.analysis.models.arrivals.auto import Auto, Evidence
from hpcrowd.analysis.models.arrivals.poisson import Poisson
from hpcrowd.analysis.models.arrivals.wavelet import Wavelet, WaveletZeros
from hpcrowd.analysis.models.model import ARRIVALS, arrival_model
from hpcrowd.environment.errors import ModelFitError
from hpcrowd.environment.traces.trace import Trace

from tests.analysis.features.feature_cases import bursty_workload, poisson_workload

ReadTrace = Callable[[str], Trace]

#: Seeds over which a figure is a mean.
SEEDS = range(8)


def drawn(model: Wavelet, jobs: int) -> Evidence:
    """Return what a model's arrivals are like, mean of some seeds."""
    streams = (np.random.default_rng(seed) for seed in SEEDS)
    return Evidence.mean([Evidence.of(model.times(jobs, one), 900) for one in streams])


def rate_zeros(model: Wavelet) -> float:
    """Return the share of intervals in which the rate process is 0."""
    rates = (model.rates(np.random.default_rng(seed)) for seed in SEEDS)
    return float(np.mean([(one == 0).mean() for one in rates]))


def test_the_nearest_is_taken_and_the_numbers_are_reported() -> None:
    """Notes name the choice and have a line for the trace and each candidate."""
    workload = bursty_workload(6000, 3)
    found = Auto.fit(workload)
    assert isinstance(found, Wavelet)
    told = [note for note in found.notes if note.startswith("auto: ")]
    assert 4 == len(told)
    trace = Evidence.of(workload.submit, 900)
    assert str(trace) in told[0]
    candidates = {
        "wavelet": Wavelet.fit(workload),
        "wavelet-zeros by length": WaveletZeros.fit(workload),
        "wavelet-zeros by number": WaveletZeros.fit(workload, weighing="number"),
    }
    label = told[0].split(": ")[1].split(";")[0]
    taken = candidates.pop(label)
    assert taken.model_copy(update={"notes": found.notes}) == found
    assert Auto.fit(workload) == found


def test_what_is_too_short_or_too_regular_becomes_poisson() -> None:
    """The reason is in the notes; asked for by name, the wavelet model refuses."""
    for submit in (np.arange(0, 3000.0, 100), np.arange(0, 900 * 64, 90.0)):
        workload = Workload.of(submit, 1)
        found = Auto.fit(workload)
        assert isinstance(found, Poisson)
        assert found.notes[0].startswith("auto: poisson, because arrivals wavelet: ")
        for name in ("wavelet", "wavelet-zeros"):
            with pytest.raises(ModelFitError, match=f"arrivals {name}: "):
                arrival_model(name).fit(workload)
    with pytest.raises(ModelFitError, match="arrivals poisson: 1 jobs"):
        Auto.fit(Workload.of([0], 1))


def test_auto_is_a_name_for_fitting_only() -> None:
    """No file says it: what it gives has another name; nothing is made of the class itself."""
    assert "auto" in ARRIVALS
    assert Auto.fit(poisson_workload(3000, 300, 1)).name != "auto"
    with pytest.raises(TypeError, match="abstract"):
        Auto()  # type: ignore[abstract]


def test_the_time_scale_is_that_of_the_workload() -> None:
    """Settings of the workload reach the fit."""
    workload = poisson_workload(3000, 300, 1, settings=Settings(time_scale_s=1800))
    for name in ("wavelet", "wavelet-zeros", "auto"):
        found = arrival_model(name).fit(workload)
        assert 1800 == getattr(found, "time_scale_s", None)


def test_distance_of_evidence() -> None:
    """Twice the CV counts ln 2, the other two as they are; an unknown Hurst does not count."""
    one, other = Evidence(2, 0.5, 0.7), Evidence(4, 0.4, 0.9)
    assert np.log(2) + 0.1 + 0.2 == pytest.approx(one.apart(other))
    assert np.log(2) + 0.1 == pytest.approx(one.apart(Evidence(4, 0.4, None)))
    assert "CV 4.00, Hurst unknown, empty 40%" == str(Evidence(4, 0.4, None))


@pytest.mark.slow
def test_thunder_needs_the_zeros(read_trace: ReadTrace) -> None:
    """CV at least 0.75 of the trace's with zeros by length, a third without; Hurst within 0.1."""
    workload = Workload.from_trace(read_trace("LLNL-Thunder"))
    submit = workload.submit
    trace = Evidence.of(submit, 900)
    model = Auto.fit(workload)
    assert isinstance(model, WaveletZeros)
    assert "length" == model.weighing
    found = drawn(model, len(submit))
    assert found.cv >= 0.75 * trace.cv
    assert found.hurst == pytest.approx(trace.hurst, abs=0.1)
    assert found.empty == pytest.approx(trace.empty, abs=0.02)
    assert rate_zeros(model) == pytest.approx(trace.empty, abs=0.02)
    plain = Wavelet.fit(workload)
    assert drawn(plain, len(submit)).cv < trace.cv / 3
    assert 0 == rate_zeros(plain)


@pytest.mark.slow
def test_hpc2n_is_better_without(read_trace: ReadTrace) -> None:
    """CV within 10 % with the better of the two, Hurst within 0.1; zeros within 2 points."""
    workload = Workload.from_trace(read_trace("HPC2N-2002-2.1"))
    submit = workload.submit
    trace = Evidence.of(submit, 900)
    model = Auto.fit(workload)
    assert "wavelet" == model.name
    assert isinstance(model, Wavelet)
    found = drawn(model, len(submit))
    assert found.cv == pytest.approx(trace.cv, rel=0.1)
    assert found.hurst == pytest.approx(trace.hurst, abs=0.1)
    used = counts(submit, 900)
    modified = WaveletZeros.fit(workload)
    assert rate_zeros(modified) == pytest.approx((used == 0).mean(), abs=0.02)
    assert drawn(modified, len(submit)).hurst == pytest.approx(trace.hurst, abs=0.1)
