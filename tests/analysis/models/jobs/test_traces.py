"""What models of jobs make of real traces: distances that other versions have to keep."""

import numpy as np
import pytest
from hpcrowd import Streams, generate
from hpcrowd.analysis.features.locality import repetition_zipf
from hpcrowd.analysis.features.series import spearman
from hpcrowd.analysis.features.stats import apart
from hpcrowd.analysis.models.jobs.locality import Locality
from hpcrowd.analysis.models.jobs.mugm import Mugm
from hpcrowd.analysis.models.model import fit
from hpcrowd.features import Workload

#: Workloads that figures are means of; repetitions make single ones differ.
SEEDS = range(4)

pytestmark = [pytest.mark.slow, pytest.mark.traces]


def mean_ks(recorded, drawn, column):
    """Return the Kolmogorov-Smirnov distance of a column, mean over generated workloads."""
    known = getattr(recorded, column)
    return float(np.mean([apart(known, getattr(one, column)).ks for one in drawn]))


@pytest.mark.parametrize(("log", "name", "run_time", "processors"), [
    ("KTH-SP2", "feitelson97", 0.10, 0.11),
    ("KTH-SP2", "lublin", 0.05, 0.04),
    ("KTH-SP2", "downey", 0.13, 0.25),
    ("LANL-CM5", "feitelson97", 0.06, 0.32),
    ("LANL-CM5", "lublin", 0.03, 0.25),
    ("HPC2N-2002-2.1", "lublin", 0.06, 0.11),
])  # fmt: skip
def test_parametric_models(read_trace, log, name, run_time, processors):
    """Distances of run times and processors are small."""
    workload = Workload.from_trace(read_trace(log))
    model = fit(name, workload)
    drawn = [generate(model, jobs=len(workload), seed=seed).drawn for seed in SEEDS]
    assert mean_ks(workload, drawn, "run_time") <= run_time
    assert mean_ks(workload, drawn, "processors") <= processors


def test_users_of_kth(kth):
    """MUGM stays below the distances of its paper, 0.05 and 0.07, and below 0.05."""
    workload = Workload.from_trace(kth, "all")
    made = [Mugm.fit(workload).jobs(np.arange(len(workload)) * 1.0, 100, Streams(0))]
    for column in ("run_time", "processors"):
        assert mean_ks(workload, made, column) <= 0.05


#: Traces with what they are known for, negative and positive correlation among them.
@pytest.mark.parametrize("name", ["HPC2N-2002-2.1", "LLNL-Thunder", "KTH-SP2", "DAS2-fs1"])
def test_locality_is_that_of_the_trace(name, read_trace):
    """Exponents of runs are within 0.2, as readings of Table 3.5, distributions within 0.03."""
    recorded = Workload.from_trace(read_trace(name))
    model, made = Locality.fit(recorded), []
    for seed in range(3):
        jobs = model.jobs(np.arange(len(recorded)) * 60.0, recorded.machine, Streams(seed))
        made.append(
            Workload.of(jobs.submit, jobs.run_time, jobs.processors, machine=recorded.machine)
        )
    exponents = [repetition_zipf(one).exponent for one in made[:2]]
    assert pytest.approx(repetition_zipf(recorded).exponent, abs=0.2) == np.mean(exponents)
    for column in ("run_time", "processors"):
        assert mean_ks(recorded, made, column) < 0.03
    correlation = np.mean([spearman(one.run_time, one.processors) for one in made])
    known = spearman(recorded.run_time, recorded.processors)
    assert pytest.approx(known, abs=0.03) == correlation
