"""Arrivals by evidence: what is taken and why; what the models reach on real traces."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hpcrowd.analysis.features import Workload
from hpcrowd.analysis.features.workload import Settings
from hpcrowd.analysis.models.arrivals.auto import Auto, Evidence
from hpcrowd.analysis.models.arrivals.poisson import Poisson
from hpcrowd.analysis.models.arrivals.wavelet import Wavelet, WaveletZeros
from hpcrowd.analysis.models.model import arrival_model
from hpcrowd.environment.errors import ModelFitError
from hpcrowd.environment.traces.trace import Trace

from tests.analysis.features.feature_cases import bursty_workload, poisson_workload


def test_the_nearest_is_taken_and_the_numbers_are_reported() -> None:
    """Notes name the choice and have a line for the trace and each candidate."""
    workload = bursty_workload(6000, 3)
    found = Auto.fit(workload)
    assert isinstance(found, Wavelet)
    assert "auto" != found.name
    told = [note for note in found.notes if note.startswith("auto: ")]
    assert 4 == len(told)
    assert str(Evidence.of(workload.submit, 900)) in told[0]
    candidates = {
        "wavelet": Wavelet.fit(workload),
        "wavelet-zeros by length": WaveletZeros.fit(workload),
        "wavelet-zeros by number": WaveletZeros.fit(workload, weighing="number"),
    }
    taken = candidates.pop(told[0].split(": ")[1].split(";")[0])
    assert taken.model_copy(update={"notes": found.notes}) == found
    assert Auto.fit(workload) == found
    with pytest.raises(TypeError, match="abstract"):
        Auto()  # type: ignore[abstract]


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
    hourly = poisson_workload(3000, 300, 1, settings=Settings(time_scale_s=1800))
    for name in ("wavelet", "wavelet-zeros", "auto"):
        assert 1800 == getattr(arrival_model(name).fit(hourly), "time_scale_s", None)


def test_distance_of_evidence() -> None:
    """Twice the CV counts ln 2, the other two as they are; an unknown Hurst does not count."""
    one, other = Evidence(2, 0.5, 0.7), Evidence(4, 0.4, 0.9)
    assert np.log(2) + 0.1 + 0.2 == pytest.approx(one.apart(other))
    assert np.log(2) + 0.1 == pytest.approx(one.apart(Evidence(4, 0.4, None)))
    assert "CV 4.00, Hurst unknown, empty 40%" == str(Evidence(4, 0.4, None))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("log", "name"), [("LLNL-Thunder", "wavelet-zeros"), ("HPC2N-2002-2.1", "wavelet")]
)
def test_choice_on_traces(read_trace: Callable[[str], Trace], log: str, name: str) -> None:
    """Thunder needs zeros by length, HPC2N is better without; studies have the figures."""
    found = Auto.fit(Workload.from_trace(read_trace(log)))
    assert (name, "length") == (found.name, getattr(found, "weighing", "length"))
