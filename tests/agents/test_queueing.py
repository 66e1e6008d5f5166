"""Mean waits of FCFS against queueing theory: M/M/1 and M/M/c."""

import math

import numpy as np
import pytest
from hpcrowd import JobTable, Simulation, Work, add_users

SEEDS = (1, 2, 3)  #: chosen before any was tried
JOBS = 400_000
BATCHES = 40  #: of successive jobs, for the standard error; the first is left out as warm-up
MEAN_SERVICE = 100_000  #: s; large, so that whole seconds make no difference
STANDARD_ERRORS = 4


def mean_wait_of_theory(load, servers):
    """Mean wait of M/M/c in s, by Erlang's C formula."""
    offered = load * servers
    terms = [offered**k / math.factorial(k) for k in range(servers)]
    last = offered**servers / math.factorial(servers) / (1 - load)
    waits = last / (sum(terms) + last)
    return waits * MEAN_SERVICE / (servers * (1 - load))


def simulated(load, servers, seed):
    """Mean wait of a simulation and its standard error, s."""
    random = np.random.default_rng(seed)
    gaps = random.exponential(MEAN_SERVICE / (load * servers), JOBS)
    jobs = JobTable()
    run = np.rint(random.exponential(MEAN_SERVICE, JOBS)).astype(np.int64)
    submit = np.rint(np.cumsum(gaps)).astype(np.int64)
    jobs.append(
        JOBS, user=1, processors=1, run_time=run, requested_time=run, recorded_submit=submit,
        recorded_start=submit, recorded_end=submit + run,
    )  # fmt: skip
    model = Simulation(jobs, servers, "fcfs")
    add_users(model, Work.of(jobs), "rigid")
    model.run()
    batches = (jobs.start - jobs.submit).reshape(BATCHES, -1).mean(axis=1)[1:]
    return float(batches.mean()), float(batches.std(ddof=1) / math.sqrt(len(batches)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("load", "servers"), [(0.7, 1), (0.8, 4)])
def test_mean_wait_is_that_of_theory(load, servers, seed):
    """The mean wait is within 4 standard errors of theory, and those are below 3 % of it."""
    expected = mean_wait_of_theory(load, servers)
    wait, error = simulated(load, servers, seed)
    assert error < 0.03 * expected
    assert abs(wait - expected) < STANDARD_ERRORS * error
    if seed == SEEDS[0]:
        for wrong in (0.9 * load, 1.1 * load):
            wait, error = simulated(wrong, servers, seed)
            assert abs(wait - expected) > STANDARD_ERRORS * error
