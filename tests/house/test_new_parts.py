"""How much a new part of a behaviour takes, and a new policy: its class, and one entry.

Each test does what somebody would do who adds one, in its own module, and finds it wherever
parts and policies are named.
"""

import subprocess
import sys
from dataclasses import dataclass
from typing import override

import numpy as np
import pytest
from hpcrowd import Recipe, Simulation, Work, add_users
from hpcrowd.agents.behaviours import parts
from hpcrowd.agents.behaviours.decisions import What
from hpcrowd.agents.behaviours.parts import setting
from hpcrowd.behaviours import DecisionLog, Decisions
from hpcrowd.environment.engine.compiled import CompiledEngine
from hpcrowd.environment.schedulers import names
from hpcrowd.environment.schedulers.ordered import KeyScheduler, QueueOrder
from hpcrowd.errors import QuantityError
from hpcrowd.policies import parse_scheduler
from hpcrowd.reactions import Response, Trigger, reaction_from
from hpcrowd.scenarios.commands.lists.policies import policies

#: A module with a new part, and what is made of it; the entry is the line after the class.
THINK = '''
from dataclasses import dataclass
from pathlib import Path
from hpcrowd import Work
from hpcrowd.behaviours import Pause, Think
from hpcrowd.agents.behaviours import parts
from hpcrowd.agents.behaviours.parts import setting

@dataclass(frozen=True)
class Haste:
    """How fast users are."""

    factor: float = setting(0.5, "share of a recorded pause", "", "chosen here", least=0)

class HastyPauses(Think):
    """Recorded pauses, made shorter."""

    name, settings, table = "hasty", Haste, "haste"

    def __init__(self, haste):
        self.factor = haste.factor

    @classmethod
    def make(cls, fit, settings=None):
        return cls(settings or Haste())

    def pause(self, user, release):
        return Pause(int(release.pause * self.factor))

parts.THINK[HastyPauses.name] = HastyPauses

from hpcrowd import Recipe
from hpcrowd.behaviours import Composed
from hpcrowd.scenarios.kinds.population_files import UsersConfig, PopulationConfig

print(Recipe("batches", "hasty").parameters()[-1])
path = Path("crowd.toml")
path.write_text("[[users]]\\nwhen = 'batches'\\nhaste = { factor = 0.25 }")
recipe = PopulationConfig.read(path).users[0].recipe()
print(recipe.think_part.__name__, recipe.think)
print(UsersConfig.model_fields["haste"].description)
'''


@pytest.mark.slow
def test_a_think_time_is_a_class_and_an_entry(tmp_path):
    """Recipes know it, lists have its parameters with source, and files its settings."""
    done = subprocess.run(
        [sys.executable, "-c", THINK], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    parameter, given, described = done.stdout.splitlines()
    assert "'haste.factor', meaning='share of a recorded pause'" in parameter
    assert "source='chosen here', default=0.5" in parameter
    assert "HastyPauses Haste(factor=0.25)" == given
    assert "settings of think = hasty" == described


@dataclass(eq=False)
class EveryOther(Trigger):
    """Active at every other second, or third."""

    when = "every"

    step: int = setting(2, "seconds from one to the next", "s", least=1)

    @override
    def which(self, user, intention):
        return intention.at % self.step == 0


@dataclass(eq=False, kw_only=True)
class Narrow(Response):
    """Ask for fewer processors, by a number."""

    response = "narrow"
    logged = What.DEGRADED

    by: int = setting(1, "processors less", least=1)

    @override
    def respond(self, user, intention, place):
        jobs, row = user.model.jobs, intention.rows[place]
        times = int(jobs.run_time[row]), int(jobs.requested_time[row])
        fewer = max(1, int(jobs.processors[row]) - self.by)
        intention.resize(place, fewer, *times, self.name, self.response)


def test_reactions_are_a_class_and_an_entry(monkeypatch, make_jobs):
    """A response and a trigger can be given in files, are noted by name, and logged in a word."""
    monkeypatch.setitem(parts.RESPONSES, Narrow.response, Narrow)
    monkeypatch.setitem(parts.TRIGGERS, EveryOther.when, [EveryOther])
    reaction = reaction_from({"do": "narrow", "when": "every", "step": "3s", "by": 2})
    jobs = make_jobs((3, 10, 8), (4, 10, 8))
    model, log = Simulation(jobs, 16), DecisionLog()
    add_users(model, Work.of(jobs), Recipe("recorded", reactions=(reaction,)), log=log)
    model.run()
    assert [6, 8] == jobs.processors.tolist()
    words = [one.words() for one in Decisions.of(log) if one.what == What.DEGRADED]
    assert [f"session 0: job {jobs.number[0]} degraded, reaction narrow every"] == words
    with pytest.raises(QuantityError, match=r"do 'dance': not known; choose delay, .*, narrow"):
        reaction_from({"do": "dance", "when": "every"})


class Widest(KeyScheduler):
    """The widest job first."""

    name = "widest"
    compiled = "hpcrowd.environment.engine.passes.ordered:OrderedPass"
    queue_order = QueueOrder("processors", descending=True)


def test_a_policy_is_a_class_and_an_entry(monkeypatch, make_jobs):
    """It runs compiled with the same schedule as plain; a subclass of it runs plain."""
    monkeypatch.setitem(names.SCHEDULERS, Widest.name, Widest)
    assert {"widest": "The widest job first."}.items() <= {
        one.name: one.does for one in policies()
    }.items()

    class Mine(Widest):
        name = "mine"

    starts = []
    for policy, plain in ((parse_scheduler("widest"), False), (Widest(), True), (Mine(), False)):
        jobs = make_jobs(*((0, 10, processors) for processors in (1, 3, 2, 4)))
        model = Simulation(jobs, 4, policy, plain=plain)
        model.cluster.submit(range(4), np.zeros(4, np.int64))
        model.run()
        compiled = isinstance(model.cluster.engine, CompiledEngine)
        assert (type(policy) is Widest and not plain) == compiled
        starts.append(jobs.start.tolist())
    assert [[20, 10, 20, 0]] * 3 == starts
