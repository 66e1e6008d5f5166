"""Series and workloads whose features are known beforehand."""

from typing import Any

import numpy as np
from hpcrowd.features import Workload
from numpy.typing import NDArray


def fractional_noise(h: float, size: int, seed: int) -> NDArray[np.float64]:
    """Return fractional Gaussian noise with Hurst parameter ``h``, by circulant embedding."""
    random = np.random.default_rng(seed)
    lag = np.arange(size + 1.0)
    covariance = 0.5 * ((lag + 1) ** (2 * h) - 2 * lag ** (2 * h) + np.abs(lag - 1) ** (2 * h))
    around = np.concatenate([covariance, covariance[-2:0:-1]])
    power = np.fft.fft(around).real.clip(0)
    white = random.standard_normal(len(around)) + 1j * random.standard_normal(len(around))
    return np.fft.fft(np.sqrt(power / len(around)) * white).real[:size]


def poisson_workload(jobs: int, mean_gap_s: float, seed: int, **columns: Any) -> Workload:
    """Return jobs that arrive at random, with exponential run times and random processors."""
    random = np.random.default_rng(seed)
    made = {
        "run_time": random.exponential(1000, jobs),
        "processors": random.integers(1, 65, jobs),
        "user": random.integers(1, 20, jobs),
        "wait": random.exponential(300, jobs),
        "requested_time": random.exponential(5000, jobs),
        "machine": 128,
    } | columns
    return Workload.of(np.cumsum(random.exponential(mean_gap_s, jobs)), **made)


def bursty_workload(bags: int, seed: int) -> Workload:
    """Return whole seconds of jobs in bags, by users with sessions: something for every feature."""
    random = np.random.default_rng(seed)
    size = random.zipf(2.2, bags).clip(max=200)
    bag = np.repeat(np.arange(bags), size)
    start = np.cumsum(random.pareto(1.2, bags) * 400).astype(np.int64)
    submit = np.sort(start[bag] + random.integers(0, 60, len(bag)))
    return Workload.of(
        submit,
        np.floor(np.exp(random.normal(6, 2, bags))[bag] * random.uniform(0.8, 1.2, len(bag))),
        2 ** random.integers(0, 6, bags)[bag],
        user=random.integers(1, 12, bags)[bag],
        requested_time=600 * random.integers(1, 20, bags)[bag],
        wait=random.integers(0, 900, len(bag)),
        executable=random.integers(1, 9, bags)[bag],
        machine=64,
    )


#: Standard errors that a mean may be off.
FAR = 5


def near(expected: float, values: Any) -> None:
    """Check that a mean is as expected, within its standard error."""
    values = np.asarray(values, np.float64)
    error = float(values.std()) / np.sqrt(len(values))
    assert abs(expected - values.mean()) <= FAR * error + 1e-12
