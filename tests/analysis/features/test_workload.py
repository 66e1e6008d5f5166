"""What is measured of a trace, and what is known of the jobs that are not."""

import pytest
from hpcrowd.analysis.features import jobs
from hpcrowd.analysis.features.workload import Workload


def test_offered_load_of_all_jobs_and_of_those_measured(make_trace):
    """Jobs that are not measured put load on the machine as well."""
    job = {"run": 100, "requested_processors": 2, "user": 1}
    rows = [{**job, "submit": 500 * n, "status": status} for n, status in enumerate((1, 1, 0))]
    trace = make_trace(*rows, header="; MaxProcs: 4\n")
    completed = Workload.from_trace(trace)
    everything = Workload.from_trace(trace, "all")
    assert 2 * 200 / (4 * 500) == pytest.approx(jobs.offered_load(completed))
    assert 3 * 200 / (4 * 1000) == pytest.approx(jobs.offered_load_all(completed))
    assert jobs.offered_load(everything) == jobs.offered_load_all(everything)
