"""Runs that are staged: looked on piece by piece they come out as run at once."""

import tomllib
from copy import deepcopy
from pickle import dumps, loads

import numpy as np
import pytest
from hpcrowd import ReplayConfig, write_swf
from hpcrowd.behaviours import PRESETS, DecisionLog
from hpcrowd.scenarios.kinds.files import scenario_of

from tests.scenarios.inspector.subjects.kind_cases import KINDS, LOG
from tests.support.populations import small_log

#: Kinds of runs that are staged; more are copied, with own state in engines, policies and parts.
STAGED = ("think-time-windows", "rigid", "resample", "populate", "grid-at-once")
FORKED = (
    *STAGED, "conservative", "fair-share", "adaptive", "last-two", "generative", "fluid",
    "platform-fail", "platform-requeue", "grid-components",
)  # fmt: skip

#: Kinds that the page has not.
MORE = {"adaptive": f'{LOG}scheduler = "adaptive"\n', "last-two": f'{LOG}estimates = "last-two"\n'}


@pytest.fixture
def made(tmp_path, make_trace):
    """Return a function that makes a scenario of a kind on a small log."""
    write_swf(small_log(make_trace), tmp_path / "log.swf")
    texts = {**KINDS, **MORE}
    return lambda name: scenario_of(
        tomllib.loads(f"[scenario]\n{texts[name]}")["scenario"], tmp_path
    )


@pytest.mark.parametrize("name", STAGED)
def test_pieces_come_to_the_same(made, name):
    """Run in steps of an hour and logged, the table is that of one run without."""
    scenario = made(name)
    whole = scenario.run(scenario.prepare())
    log = DecisionLog()
    staged = scenario.stage(scenario.prepare(), log)
    assert 0 == staged.model.time
    while not staged.model.over:
        staged.model.step()
    result = staged.result()
    np.testing.assert_array_equal(whole.jobs.matrix, result.jobs.matrix)
    assert whole.summary() == result.summary()
    assert len(result.parts["decisions"].rows) == len(log) > 0
    assert "decisions" not in whole.parts
    if name != "rigid":
        check_heard(staged)


#: Users who wait for their work. Linear think times cannot be fitted to so small a log.
WAITING = [name for name in PRESETS if name != "rigid" and not name.startswith("linear")]


@pytest.mark.parametrize("users", WAITING)
@pytest.mark.parametrize("scheduler", ["easy", "conservative", "recorded"])
def test_agents_hear_of_every_unit(make_trace, users, scheduler):
    """Whatever they do, users submit each of their units once and hear that it is over."""
    staged = ReplayConfig(users=users, scheduler=scheduler).stage(small_log(make_trace))
    staged.model.run()
    check_heard(staged)


def check_heard(staged):
    """Check that agents submitted all units of a run and heard of each."""
    assert len(staged.users) > 1
    assert all(user.submitted == user.finished for user in staged.users)
    assert sum(user.finished for user in staged.users) == len(staged.model.units) > 10


@pytest.mark.parametrize(
    ("copied", "logged"),
    [(deepcopy, False), (lambda model: loads(dumps(model)), True)],
    ids=["copied", "pickled and logged"],
)
@pytest.mark.parametrize("name", FORKED)
def test_a_fork_is_the_same_run(made, name, copied, logged):
    """A run that is copied goes on as it would have, and so does its copy, each by itself."""
    scenario = made(name)

    def begun():
        return scenario.stage(scenario.prepare(), DecisionLog() if logged else None).model

    def table(model):
        return [column.tolist() for column in model.jobs.matrix[:, : len(model.jobs)]]

    whole, parent = begun().run(), begun()
    parent.run(until=whole.time // 3)
    before = table(parent)
    child = copied(parent)
    child.run()
    assert before == table(parent)
    parent.run()
    assert table(whole) == table(child) == table(parent)
    assert [repr(user) for user in whole.agents] == [repr(user) for user in child.agents]
