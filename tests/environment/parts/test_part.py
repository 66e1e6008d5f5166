"""Parts of a run: called at the moments that they override, in their order, and at no others."""

import numpy as np
import pytest
from hpcrowd import Clock, ClusterSpec, JobTable, Machine, Simulation
from hpcrowd.environment.machine.model import NodeType, Reservation
from hpcrowd.environment.parts.part import MOMENTS, Part, Parts
from hpcrowd.environment.power.sleep import SleepRule
from hpcrowd.environment.schedulers.on_nodes.in_use import machine_of
from hpcrowd.environment.schedulers.slurm.policy import Slurm
from hpcrowd.errors import QuantityError
from hpcrowd.platform import MachineInUse, Platform, Resize
from hpcrowd.power import NodePower, Power, PowerInUse

from tests.support.simulations import Owner


class Noting(Part):
    """Notes the units and the end of a run."""

    def __init__(self, name, notes):
        self.name, self.notes = name, notes

    def attach(self, model):
        """Note the size of the machine."""
        self.notes.append((self.name, "attach", model.cluster.processors))

    def on_unit(self, owner, rows):
        """Note the jobs."""
        self.notes.append((self.name, "unit", rows.tolist()))

    def end(self):
        """Give an account."""
        return {self.name: len(self.notes)}


class Other(Part):
    """Acts at no moment."""


def test_parts_act_at_the_moments_that_they_override():
    """A moment lists who overrides it, in the order in which they were added."""
    parts = Parts()
    first, second = Noting("a", []), Noting("b", [])
    for part in (first, Other(), second):
        parts.add(part)
    assert 3 == len(list(parts)) == len(parts)
    for moment in MOMENTS:
        acting = [first, second] if moment in ("attach", "on_unit", "end") else []
        assert acting == parts.at(moment), moment
    assert parts.of(Other) is list(parts)[1]
    assert Parts().of(Other) is None


def test_a_run_asks_its_parts(make_jobs):
    """They are attached when clusters are there, hear of each unit, and account in the end."""
    notes, owner = [], Owner()
    model = Simulation(make_jobs((0, 60, 4)), 8, parts=[Noting("a", notes), Noting("b", notes)])
    model.submit(owner, np.array([0]), 5)
    model.run()
    assert [65] == owner.heard
    assert notes == [
        ("a", "attach", 8), ("b", "attach", 8), ("a", "unit", [0]), ("b", "unit", [0]),
    ]  # fmt: skip
    assert {"a": 4, "b": 4} == model.end()


CLUSTERS = {"home": ClusterSpec(4), "north": ClusterSpec(4)}
SLEEP = Power(nodes=(NodePower("node", 1, 10.0, 5.0),), sleep=SleepRule(60))


@pytest.mark.parametrize(
    ("clusters", "parts", "message"),
    [
        # Changes are planned before power looks for them, wherever they are in the list.
        (8, [PowerInUse(SLEEP), Platform([Resize(50, 8)])], "sleep with platform changes"),
        (8, [Platform([Resize(50, 8)]), PowerInUse(SLEEP)], "sleep with platform changes"),
        # Contradictions of two parts are found as if one part had both.
        (4, [Platform([Resize(5, size)]) for size in (8, 9)], "resize at 5 s: two in the same sec"),
        (CLUSTERS, [Platform([Resize(5, 8)], cluster="south")], "cluster 'south': not known"),
        ({}, [], "simulation without clusters"),
    ],
)
def test_contradictions_are_found(clusters, parts, message):
    """Between parts, and with the clusters that there are."""
    with pytest.raises(QuantityError, match=message):
        Simulation(JobTable(), clusters, parts=parts)


def test_parts_of_other_clusters_leave_the_first_one_alone(make_jobs):
    """Each acts on its cluster, several on the same one."""
    resizes = [Platform([Resize(at, size)], cluster="north") for at, size in ((5, 2), (9, 3))]
    model = Simulation(make_jobs((0, 60, 4)), CLUSTERS, parts=resizes)
    assert model.clusters["home"].engine.timeline is None
    model.clusters["north"].submit(0, 0)
    model.run()
    history = [(at, size) for at, size, _ in model.clusters["north"].engine.timeline.history]
    assert [(0, 4), (5, 2), (9, 3)] == history


def test_a_scheduler_forgets_the_machine_of_an_earlier_run():
    """The policy of nodes needs a machine in each run."""
    policy = Slurm()
    machine = Machine(nodes=(NodeType(name="n1", cores=4),))
    model = Simulation(JobTable(), 4, policy, parts=[MachineInUse(machine)])
    assert machine_of(model.cluster) is not None
    with pytest.raises(QuantityError, match="scheduler slurm: it needs a machine of nodes"):
        Simulation(JobTable(), 4, policy)


def test_a_machine_serves_several_runs():
    """Dates of its reservations count from the origin of each run, not from that of the first."""
    closed = Reservation(name="closed", start=1_000_000_500, end=1_000_000_600)
    machine = Machine(nodes=(NodeType(name="n1", cores=4),), reservations=(closed,))
    part = MachineInUse(machine)
    for origin in (1_000_000_000, 1_000_000_100):
        model = Simulation(JobTable(), 4, clock=Clock(origin), parts=[part])
        found = machine_of(model.cluster).reservations[0]
        assert closed.start - origin == found.start


def test_a_part_that_brings_another_attaches_it_once(make_jobs):
    """What it attaches is not attached again with those that were given."""
    notes = []

    class Bringing(Part):
        def attach(self, model):
            model.attach(Noting("a", notes))

    Simulation(make_jobs((0, 60, 4)), 8, parts=[Bringing()])
    assert [("a", "attach", 8)] == notes
