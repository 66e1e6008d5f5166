"""What the parametric models make of real traces: distances that other versions have to keep."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hpcrowd.analysis.features import Workload
from hpcrowd.analysis.models import generate
from hpcrowd.analysis.models.arrivals.lublin import LublinTypes
from hpcrowd.analysis.models.model import fit
from hpcrowd.environment import Trace
from scipy.stats import ks_2samp

ReadTrace = Callable[[str], Trace]

#: Workloads that are generated; repetitions make single ones differ.
SEEDS = range(5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("log", "name", "run_time", "processors"),
    [
        ("KTH-SP2", "feitelson97", 0.10, 0.11),
        ("KTH-SP2", "lublin", 0.05, 0.04),
        ("KTH-SP2", "downey", 0.13, 0.25),
        ("LANL-CM5", "feitelson97", 0.06, 0.32),
        ("LANL-CM5", "lublin", 0.03, 0.25),
        ("HPC2N-2002-2.1", "lublin", 0.06, 0.11),
    ],
)
def test_distances_from_traces(
    read_trace: ReadTrace, log: str, name: str, run_time: float, processors: float
) -> None:
    """Kolmogorov-Smirnov distances of run times and processors, mean over seeds."""
    workload = Workload.from_trace(read_trace(log))
    model = fit(name, workload)
    found = [generate(model, jobs=len(workload), seed=seed).drawn for seed in SEEDS]
    for bound, column in ((run_time, "run_time"), (processors, "processors")):
        distances = [
            ks_2samp(getattr(drawn, column), getattr(workload, column)).statistic for drawn in found
        ]
        assert np.mean(distances) <= bound


def test_interactive_jobs_of_a_trace(read_trace: ReadTrace) -> None:
    """On DataStar queue 0 is interactive: its jobs are shorter, and come with their own rhythm."""
    workload = Workload.from_trace(read_trace("SDSC-DS"))
    model = fit("lublin", workload)
    assert isinstance(model.arrivals, LublinTypes)
    drawn = generate(model, jobs=50_000).drawn
    quick, recorded = drawn.queue == 0, workload.queue == 0
    assert recorded.mean() == pytest.approx(quick.mean(), abs=0.03)
    for which, those in ((quick, recorded), (~quick, ~recorded)):
        distance = ks_2samp(drawn.run_time[which], workload.run_time[those]).statistic
        assert distance <= 0.1
