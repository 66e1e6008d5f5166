"""Policies of a pool on machines of nodes: the same on nodes of one core, and never too much."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hpcrowd.environment import JobTable, Simulation, Trace, jobs_from_trace
from hpcrowd.environment.jobs import UNKNOWN, State
from hpcrowd.environment.machine.layout import bits
from hpcrowd.environment.machine.model import (
    Limits,
    Machine,
    NodeType,
    Partition,
    Qos,
    Reservation,
    SchedulingSettings,
)
from hpcrowd.environment.machine.requests import Ask, Requests
from hpcrowd.environment.machine.stock import Stock
from hpcrowd.environment.schedulers.base import Look, Scheduler, WaitingJob
from hpcrowd.environment.schedulers.on_nodes.nodes import Nodes
from hpcrowd.environment.schedulers.on_nodes.open_stock import OpenStock
from hpcrowd.environment.schedulers.on_nodes.room_over_time import Arrays, RoomOverTime
from hpcrowd.environment.stops import FOREVER
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.policies import clusters, outcome, policies, run, workloads

#: Time limits are checked every second, as in a pool.
EVERY_SECOND = SchedulingSettings(time_limit_period=1)

#: Policies of each kind: by order, with limits, with a plan kept or made anew, and by state.
KINDS = (
    "fcfs", "easy", "easy:backfill=sjbf", "easy:backfill=best-fit,order=-area", "sjf",
    "multi-queue:user-jobs=2", "fair-share", "creasy", "wfp3", "unicef:backfill=conservative",
    "conservative", "selective", "adaptive:every=5",
)  # fmt: skip


class Nobody:
    """Submits, and waits for nothing."""

    def on_finished(self, unit: int, now: int) -> None:
        """Do nothing."""


def single(processors: int) -> Machine:
    """Nodes of one core: a pool, described as a machine."""
    return Machine(nodes=(NodeType(name=f"n[1-{processors}]", cores=1),), scheduling=EVERY_SECOND)


# ---- the pool as a machine of nodes of one core -----------------------------------------------


@given(workloads, st.one_of(policies, st.sampled_from(KINDS)), clusters)
@settings(deadline=None, max_examples=150)
def test_nodes_of_one_core_are_a_pool(
    rows: list[tuple[int, ...]], policy: str, cluster: dict[str, Any]
) -> None:
    """Each policy gives the schedule of the pool, promises too, on random workloads."""
    pool = outcome(run(rows, policy, cluster, plain=True))
    site = cluster | {"machine": single(cluster["processors"])}
    assert pool == outcome(run(rows, policy, site))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "count"),
    [
        ("fcfs", 5000),
        ("easy", None),
        ("easy:backfill=sjbf", 5000),
        ("easy:backfill=best-fit", 5000),
        ("easy:order=-processors,backfill=largest", 5000),
        ("sjf", 5000),
        ("fair-share", 5000),
        ("multi-queue:user-jobs=3,user-processors=48", 5000),
        ("creasy", 5000),
        ("conservative", 5000),
        ("selective", 2000),
        ("wfp3", 5000),
        ("wfp3:backfill=conservative", 2000),
        ("adaptive", 2000),
    ],
)
def test_kth_on_nodes_of_one_core(kth: Trace, policy: str, count: int | None) -> None:
    """The log of KTH on 100 nodes of one core has the schedule of the pool of 100 processors."""
    found = []
    for more in ({}, {"machine": single(100)}):
        jobs = jobs_from_trace(kth).jobs
        rows = np.arange(len(jobs))[:count]
        model = Simulation(jobs, 100, policy, **more)
        model.submit(Nobody(), rows, jobs.recorded_submit[rows])
        model.run()
        found.append(outcome(jobs))
    assert found[0] == found[1]


# ---- random machines --------------------------------------------------------------------------

FEATURES = ("fast", "large")


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Small machines with all that bounds where a job may run."""
    kinds = tuple(
        NodeType(
            name=f"{name}[1-{draw(st.integers(1, 3))}]",
            cores=draw(st.integers(1, 4)),
            memory=draw(st.sampled_from([None, 100, 250])),
            gpus=draw(st.sampled_from([{}, {}, {"a": 1}, {"a": 1, "b": 2}])),
            features=draw(st.sampled_from([(), ("fast",), FEATURES])),
            weight=draw(st.integers(1, 2)),
        )
        for name in "kmn"[: draw(st.integers(1, 3))]
    )
    first = kinds[0].name
    kept = Reservation(
        name="kept", start=draw(st.integers(0, 20)), end=draw(st.integers(21, 40)),
        nodes=draw(st.sampled_from([("ALL",), (first,)])), maintenance=draw(st.booleans()),
    )  # fmt: skip
    most = draw(st.sampled_from([None, 1, 2]))
    return Machine(
        nodes=kinds,
        partitions=(
            Partition(name="all", default=True, max_time=draw(st.sampled_from([None, 8]))),
            Partition(name="some", nodes=(first,), exclusive=draw(st.booleans())),
            Partition(name="rest", nodes=(kinds[-1].name,), max_nodes=draw(st.integers(1, 3))),
        ),
        qos=(Qos(name="normal", limits=Limits(max_jobs=most)),),
        reservations=(kept,) if draw(st.booleans()) else (),
        scheduling=SchedulingSettings(
            time_limit_period=1, enforce_limits=True, least_loaded=draw(st.booleans())
        ),
    )


memory = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"MEMORY_PER_NODE": st.sampled_from([0, 40, 90, 200])}),
    st.fixed_dictionaries({"MEMORY_PER_CORE": st.sampled_from([20, 60])}),
)
others = st.fixed_dictionaries(
    {},
    optional={
        "NODES": st.integers(1, 3),
        "CORES_PER_TASK": st.integers(1, 2),
        "TASKS_PER_NODE": st.integers(1, 2),
        "GPUS": st.integers(1, 3),
        "GPUS_PER_NODE": st.integers(1, 2),
        "GPU_TYPE": st.sampled_from(["a", "b"]),
        "FEATURES": st.sampled_from(["fast", "large", "fast&large", "fast|large"]),
        "EXCLUSIVE": st.just(1),
        "PARTITIONS": st.sampled_from(["all", "some", "rest", "some,rest", "rest,all"]),
        "RESERVATION": st.just("kept"),
        "BEGIN": st.integers(0, 30),
    },
)
asks = st.builds(lambda one, other: one | other, memory, others)
jobs_of_sites = st.lists(
    st.tuples(
        st.integers(0, 25), st.integers(0, 9), st.integers(1, 5), st.integers(1, 9),
        st.integers(1, 3), asks,
    ),
    min_size=1,
    max_size=30,
)  # fmt: skip


def table(rows: Iterable[tuple[Any, ...]]) -> JobTable:
    """Jobs of (submission, run time, processors, requested time, user, what it asks)."""
    submit, lasts, processors, requested, user, asked = zip(*rows, strict=True)
    jobs = JobTable()
    jobs.append(
        len(submit), recorded_submit=submit, run_time=lasts, processors=processors,
        requested_time=requested, user=user,
    )  # fmt: skip
    jobs.requests = Requests(len(submit))
    for row, wanted in enumerate(asked):
        for name, value in wanted.items():
            jobs.requests.set(row, Ask[name], value)
    return jobs


def simulate(site: Machine, jobs: JobTable, policy: Any, **more: Any) -> Simulation:
    """Run jobs on a machine to the end."""
    model = Simulation(jobs, site.cores, policy, machine=site, **more)
    model.submit(Nobody(), np.arange(len(jobs)), jobs.recorded_submit)
    model.run()
    return model


@given(machines(), jobs_of_sites, st.sampled_from(KINDS), st.sampled_from(["exact", "requested"]))
@settings(deadline=None, max_examples=250)
def test_nothing_is_used_twice(
    site: Machine, rows: list[tuple[Any, ...]], policy: str, estimates: str
) -> None:
    """On random machines every job gets what it asks where it may, and every job ends."""
    jobs = table(rows)
    simulate(site, jobs, policy, estimates=estimates, overrun="kill")  # audited, as all runs
    over = np.isin(jobs.state, [State.COMPLETED, State.KILLED, State.REJECTED])
    late = {row for row in np.flatnonzero(~over).tolist()
            if jobs.requests is not None and jobs.requests.word(Ask.RESERVATION, row)}  # fmt: skip
    assert set(np.flatnonzero(~over).tolist()) == late  # its reservation has passed


@given(machines(), jobs_of_sites)
@settings(deadline=None, max_examples=60)
def test_no_job_starts_later_than_promised(site: Machine, rows: list[tuple[Any, ...]]) -> None:
    """Under conservative backfilling a job starts when promised, or earlier, if none runs late."""
    site = site.model_copy(update={"qos": ()})
    jobs = table([(*row[:1], min(row[1], row[3]), *row[2:]) for row in rows])
    simulate(site, jobs, "conservative")
    ran = jobs.start != UNKNOWN
    assert (jobs.promised[ran] != UNKNOWN).all()
    assert (jobs.start[ran] <= jobs.promised[ran]).all()


@given(machines(), jobs_of_sites)
@settings(deadline=None, max_examples=60)
def test_arrays_know_what_a_stock_knows(site: Machine, rows: list[tuple[Any, ...]]) -> None:
    """What a job could use of each node is the same for all steps at once as one by one."""
    jobs = table(rows)
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


# ---- one's own scheduler ----------------------------------------------------------------------


class LastFirst(Scheduler):
    """Whoever came last starts first, where nodes have room."""

    def select(self, look: Look) -> Iterable[WaitingJob]:
        """Go through the queue from behind."""
        assert look.nodes is not None
        for job in reversed(look.waiting):
            if look.nodes.fits(job):
                yield job


class Blind(Scheduler):
    """Starts everything."""

    def select(self, look: Look) -> Iterable[WaitingJob]:
        """Return the queue."""
        return look.waiting


@given(machines(), jobs_of_sites)
@settings(deadline=None, max_examples=60)
def test_own_schedulers_get_nodes(site: Machine, rows: list[tuple[Any, ...]]) -> None:
    """A scheduler that asks whether a job fits never starts one that does not."""
    jobs = table(rows)
    simulate(site, jobs, LastFirst(), overrun="kill")  # audited, as all runs
    left = jobs.state == State.UNFINISHED
    assert all(jobs.requests is not None and jobs.requests.word(Ask.RESERVATION, row)
               for row in np.flatnonzero(left).tolist())  # fmt: skip
