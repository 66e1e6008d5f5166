"""Policies of a pool on machines of nodes: the same on nodes of one core, and never too much."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hpcrowd.environment import JobTable, Simulation, Trace, jobs_from_trace
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.machine.layout import bits
from hpcrowd.environment.machine.model import Machine, NodeType, SchedulingSettings
from hpcrowd.environment.machine.requests import Ask
from hpcrowd.environment.machine.stock import Stock
from hpcrowd.environment.schedulers.on_nodes.nodes import Nodes
from hpcrowd.environment.schedulers.on_nodes.open_stock import OpenStock
from hpcrowd.environment.schedulers.on_nodes.room_over_time import Arrays, RoomOverTime
from hpcrowd.environment.stops import FOREVER
from hpcrowd.environment.waiting_reasons import reasons_of
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.machine.machine_cases import random_jobs, random_machine
from tests.environment.schedulers.on_nodes.test_stories import LastFirst
from tests.environment.schedulers.pool_cases import ran
from tests.support.policies import clusters, outcome, policies, run, workloads

#: Time limits are checked every second, as in a pool.
EVERY_SECOND = SchedulingSettings(time_limit_period=1)

#: Policies of each kind: by order, with limits, with a plan kept or made anew, and by state.
KINDS = (
    "fcfs", "easy", "easy:backfill=sjbf", "easy:backfill=best-fit,order=-area", "sjf",
    "multi-queue:user-jobs=2", "fair-share", "creasy", "wfp3", "unicef:backfill=conservative",
    "conservative", "selective", "adaptive:every=5",
)  # fmt: skip

seeds = st.integers(0, 2**32 - 1)


def single(processors: int) -> Machine:
    """Nodes of one core: a pool, described as a machine."""
    return Machine(nodes=(NodeType(name=f"n[1-{processors}]", cores=1),), scheduling=EVERY_SECOND)


@given(workloads, st.one_of(policies, st.sampled_from(KINDS)), clusters)
@settings(max_examples=25)
def test_nodes_of_one_core_are_a_pool(
    rows: list[tuple[int, ...]], policy: str, cluster: dict[str, Any]
) -> None:
    """Each policy gives the schedule of the pool, promises too, on random workloads."""
    pool = outcome(run(rows, policy, cluster, plain=True))
    assert pool == outcome(run(rows, policy, cluster | {"machine": single(cluster["processors"])}))


@pytest.mark.endurance
@pytest.mark.parametrize("policy", [*KINDS, "easy:order=-processors,backfill=largest"])
def test_kth_on_nodes_of_one_core(kth: Trace, policy: str) -> None:
    """The log of KTH on 100 nodes of one core has the schedule of the pool of 100 processors."""
    found = []
    for more in ({}, {"machine": single(100)}):
        jobs = jobs_from_trace(kth).jobs.take(np.arange(3000))
        ran(jobs, 100, policy, **more)
        found.append(outcome(jobs))
    assert found[0] == found[1]


def drawn(seed: int) -> tuple[Machine, JobTable]:
    """Return a random machine, with all that bounds where a job may run, and jobs."""
    rng = np.random.default_rng(seed)
    site = random_machine(rng)
    return site, random_jobs(rng, site, 25)


def simulate(site: Machine, jobs: JobTable, policy: Any, **more: Any) -> Simulation:
    """Run jobs on a machine to the end; it is audited, as all runs are."""
    return ran(jobs, site.cores, policy, machine=site, **more)


@pytest.mark.parametrize("policy", [*KINDS, LastFirst])
@settings(max_examples=5)
@given(seed=seeds, estimates=st.sampled_from(["exact", "requested"]))
def test_nothing_is_used_twice(policy: Any, seed: int, estimates: str) -> None:
    """On random machines every job gets what it asks where it may, and all that can end."""
    site, jobs = drawn(seed)
    scheduler = policy if isinstance(policy, str) else policy()
    model = simulate(site, jobs, scheduler, estimates=estimates, overrun="kill")
    if policy in ("fcfs", "easy", "conservative", "wfp3"):
        left = [one.words(Clock()) for one in reasons_of(model.cluster)]
        assert not [one for one in left if "Resources" in one or "fits" in one]


@given(seeds)
@settings(max_examples=25)
def test_no_job_starts_later_than_promised(seed: int) -> None:
    """Under conservative backfilling a job starts when promised, or earlier, if none runs late."""
    site, jobs = drawn(seed)
    jobs.requested_time[:] = np.maximum(jobs.requested_time, 1)
    jobs.run_time[:] = np.minimum(jobs.run_time, jobs.requested_time)
    assert jobs.requests is not None
    for row in range(len(jobs)):
        jobs.requests.set(row, Ask.THROTTLE, UNKNOWN)
    simulate(site.changed(scheduling=EVERY_SECOND), jobs, "conservative")
    ran = jobs.start != UNKNOWN
    assert (jobs.promised[ran] != UNKNOWN).all()
    assert (jobs.start[ran] <= jobs.promised[ran]).all()


@given(seeds)
@settings(max_examples=25)
def test_arrays_know_what_a_stock_knows(seed: int) -> None:
    """What a job could use of each node is the same for all steps at once as one by one."""
    site, jobs = drawn(seed)
    nodes = Nodes(site, jobs)
    for row in range(len(jobs)):
        if not nodes.admission.refusal(row):
            nodes.join(row)
    room = RoomOverTime(nodes.layout, nodes.stock, Arrays(), 0, ())
    stock: Stock = OpenStock(nodes.layout)
    for job in nodes.waiting.values():
        for demand in job.demands.values():
            asked = room.usable(demand, FOREVER)
            plain = [stock.usable(node, demand) for node in bits(demand.nodes)]
            assert plain == asked[-1].tolist()
        place = nodes.room(job, room.stock(len(room.times) - 1, len(room.times)), 0, 1)
        if place is not None:
            begin = room.times[-1] + 1
            room.change([(begin, FOREVER, place.holding, -1)])
            stock.take(place.holding)
