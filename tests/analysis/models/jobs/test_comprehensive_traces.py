"""The comprehensive model of Minh 2012 on his traces: figures of issue 6 and of Tables 5.1, 5.2."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hpcrowd.analysis.features import Workload
from hpcrowd.analysis.features.bags import bags
from hpcrowd.analysis.features.distance import apart
from hpcrowd.analysis.features.series import spearman
from hpcrowd.analysis.features.sizes import normalized_entropy
from hpcrowd.analysis.models.jobs.comprehensive import Comprehensive, user_bags
from hpcrowd.analysis.models.model import arrival_model
from hpcrowd.analysis.models.parts.base import Floats
from hpcrowd.environment import Streams
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.traces.trace import Trace

#: HPC and LLN of the thesis.
TRACES = ("HPC2N-2002-2.1-cln", "LLNL-Thunder-2007-1.1-cln")

#: Workloads that figures are means of.
SEEDS = range(4)

#: Largest distances that are asked for: run times, processors, entropy, Spearman, bag sizes.
MOST = {"run time": 0.08, "processors": 0.03, "entropy": 0.03, "spearman": 0.03, "bags": 0.03}


@pytest.fixture(scope="module", params=TRACES)
def recorded(request: pytest.FixtureRequest, read_trace: Callable[[str], Trace]) -> Workload:
    """Return the jobs of a trace that completed."""
    return Workload.from_trace(read_trace(request.param))


def generated(model: Comprehensive, arrivals: Floats, machine: int, seed: int) -> Workload:
    """Return a workload of the model."""
    jobs = model.jobs(arrivals, machine, Streams(seed))
    known = {name: getattr(jobs, name) for name in ("user", "group", "executable")}
    return Workload.of(arrivals, jobs.run_time, jobs.processors, machine=machine, **known)


def distances(recorded: Workload, made: Workload) -> dict[str, float]:
    """Return how far a generated workload is from the recorded one."""
    sizes, _, leave = user_bags(made)
    return {
        "bags of users": apart(user_bags(recorded)[0], sizes).ks,
        "left": leave,
        "run time": apart(recorded.run_time, made.run_time).ks,
        "processors": apart(recorded.processors, made.processors).ks,
        "entropy": normalized_entropy(made) - normalized_entropy(recorded),
        "spearman": spearman(made.run_time, made.processors)
        - spearman(recorded.run_time, recorded.processors),
        "bags": apart(bags(recorded).size, bags(made).size).ks,
        "mean": bags(made).size.mean() / bags(recorded).size.mean() - 1,
        "largest": bags(made).size.max() / bags(recorded).size.max() - 1,
    }


def mean_distances(recorded: Workload, arrivals: str, **options: object) -> dict[str, float]:
    """Return mean distances over seeds."""
    model = Comprehensive.fit(recorded, **options)  # type: ignore[arg-type]
    times = None if arrivals == "recorded" else arrival_model(arrivals).fit(recorded)
    assert recorded.machine is not None
    found = []
    for seed in SEEDS:
        submit = recorded.submit
        if times is not None:
            drawn = times.times(len(recorded), Streams(seed).generator("arrivals"))
            submit = round_half_up(drawn).astype(np.float64)
        found.append(distances(recorded, generated(model, submit, recorded.machine, seed)))
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


@pytest.mark.slow
@pytest.mark.traces
def test_jobs_are_those_of_the_trace(recorded: Workload) -> None:
    """With the arrivals of chapter 4 all distances are small.

    Bags are too small all the same: the Zipf distribution has too few large ones, and arrivals cut
    them.
    """
    found = mean_distances(recorded, "wavelet-zeros")
    for name, most in MOST.items():
        assert abs(found[name]) <= most, name
    assert found["mean"] < -0.1


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.parametrize("arrivals", ["recorded", "auto"])
def test_heavier_bags_are_those_of_the_trace(recorded: Workload, arrivals: str) -> None:
    """Of the other distribution mean and largest bag are near too, and the distance is smaller."""
    found = mean_distances(recorded, arrivals, bag_sizes="heavy")
    for name, most in MOST.items():
        assert abs(found[name]) <= most, name
    assert found["bags"] < 0.015
    assert abs(found["mean"]) < 0.1
    assert abs(found["largest"]) < (0.2 if arrivals == "recorded" else 0.7)


@pytest.mark.slow
@pytest.mark.traces
def test_bags_interleave_as_in_the_trace(recorded: Workload) -> None:
    """Open side by side, bags keep the sizes that users have, and all else stays as near."""
    found = mean_distances(recorded, "recorded", bag_sizes="heavy", interleave=True)
    for name in ("run time", "processors", "entropy", "spearman"):
        assert abs(found[name]) <= MOST[name], name
    assert found["bags of users"] < 0.015
    assert found["left"] > 0
