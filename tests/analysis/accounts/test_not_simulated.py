"""What of a load asks for what is not simulated, counted."""

import numpy as np
import pytest
from hpcrowd.analysis.accounts.not_simulated import not_simulated
from hpcrowd.environment.machine.model import NodeType, Partition
from hpcrowd.environment.traces.trace import Trace

from tests.environment.machine.machine_cases import Nobody, machine, table
from tests.support.simulations import simulation_of

PARTITIONS = (Partition(name="own", default=True), Partition(name="shared", jobs_per_core=4))

#: An hour on 4 cores of a node, two hours on 2 and half an hour on 8 of two nodes; one cannot run.
JOBS = (
    {"cores": 4, "run": 3600},
    {"cores": 2, "run": 7200, "partitions": "shared"},
    {"cores": 8, "nodes": 2, "run": 1800, "at": 9000},
    {"cores": 9, "partitions": "shared"},
)


def counted(topology="none", components=("", "", "", "")):
    """Return what is counted of the jobs, of a log with components of heterogeneous jobs."""
    kinds = NodeType(name="n[1-2]", cores=4)
    site = machine(kinds, partitions=PARTITIONS, scheduling={"topology": topology})
    made, at = table(*JOBS)
    model = simulation_of(made, site.cores, "slurm", machine=site)
    model.submit(Nobody(), np.arange(len(at)), at)
    model.run()
    extra = {"components": np.array(components, np.object_)} if any(components) else {}
    trace = Trace.__new__(Trace)
    trace.extra = extra
    return not_simulated(model, trace, np.arange(len(at)))


def test_jobs_and_their_part_of_the_hours_are_counted():
    """Each has 4 processor-hours; those that never ran do not count."""
    found = counted("tree", ("", "2", "", "3"))
    assert found is not None
    third = {"jobs": 1, "processor_h": 4.0, "share": pytest.approx(1 / 3)}
    assert {"shared_cores": third, "topology": third, "components": third} == found.account
    assert [line.partition(")")[0] for line in found.lines({})] == 3 * [
        "1 job (4.0 processor-hours, 33.3 %"
    ]


def test_what_no_job_asks_for_is_not_shown():
    """Without a topology and heterogeneous jobs, only the partition is left."""
    found = counted()
    assert found is not None
    assert ["shared_cores"] == list(found.account)
