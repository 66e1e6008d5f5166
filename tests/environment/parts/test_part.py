"""Parts of a run: called at the moments that they override, in their order, and at no others."""

import numpy as np
from hpcrowd import Simulation
from hpcrowd.environment.parts.part import MOMENTS, Part, Parts


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


class Owner:
    """Notes when its unit is over."""

    def on_finished(self, unit, now):
        """Note the second."""
        self.over = unit, now


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
    notes = []
    model = Simulation(make_jobs((0, 60, 4)), 8, parts=[Noting("a", notes), Noting("b", notes)])
    owner = Owner()
    model.submit(owner, np.array([0]), 5)
    model.run()
    assert owner.over == (0, 65)
    assert notes == [
        ("a", "attach", 8), ("b", "attach", 8), ("a", "unit", [0]), ("b", "unit", [0]),
    ]  # fmt: skip
    assert {"a": 4, "b": 4} == model.end()
