"""Runs that are staged: looked on piece by piece they come out as run at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hpcrowd.agents import PRESETS
from hpcrowd.agents.behaviours.decisions import DecisionLog
from hpcrowd.environment import write_swf
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.kinds.base import Staged
from hpcrowd.scenarios.kinds.files import scenario_of
from hpcrowd.scenarios.kinds.replay import ReplayConfig
from population_cases import small_log

#: Settings of a small scenario by kind.
KINDS: dict[str, dict[str, Any]] = {
    "replay": {"trace": "log.swf", "users": "think-time"},
    "rigid": {"kind": "replay", "trace": "log.swf", "users": "rigid"},
    "resample": {"trace": "log.swf"},
    "populate": {"model": "lublin", "days": 2, "model_processors": 64},
    "grid": {
        "clusters": {
            "a": {"processors": 64, "trace": "log.swf"},
            "b": {"processors": 64, "trace": "log.swf", "grid_share": 0.5},
        },
        "users": "think-time",
    },
}


@pytest.mark.parametrize("name", KINDS)
def test_pieces_come_to_the_same(
    tmp_path: Path, make_trace: Callable[..., Trace], name: str
) -> None:
    """Run in steps of an hour and logged, the table is that of one run without."""
    write_swf(small_log(make_trace), tmp_path / "log.swf")
    scenario = scenario_of({"kind": name, **KINDS[name]}, tmp_path)
    whole = scenario.run(scenario.prepare())
    log = DecisionLog()
    staged = scenario.stage(scenario.prepare(), log)
    assert 0 == staged.model.time
    model = staged.model
    while not model.over:
        model.step()
    result = staged.result()
    np.testing.assert_array_equal(whole.jobs.matrix, result.jobs.matrix)
    assert whole.summary() == result.summary()
    assert result.decisions is not None
    assert len(result.decisions) == len(log) > 0
    assert whole.decisions is None


#: Users who wait for their work. Linear think times cannot be fitted to so small a log.
WAITING = [name for name in PRESETS if name != "rigid" and not name.startswith("linear")]


@pytest.mark.parametrize("users", WAITING)
@pytest.mark.parametrize("scheduler", ["easy", "conservative", "recorded"])
def test_agents_hear_of_every_unit(
    make_trace: Callable[..., Trace], users: str, scheduler: str
) -> None:
    """Whatever they do, users submit each of their units once and hear that it is over."""
    staged = ReplayConfig(users=users, scheduler=scheduler).stage(small_log(make_trace))
    staged.model.run()
    check_heard(staged)


@pytest.mark.parametrize("name", [name for name in KINDS if name != "rigid"])
def test_agents_hear_in_every_kind_of_run(
    tmp_path: Path, make_trace: Callable[..., Trace], name: str
) -> None:
    """In every kind of run, submitted and finished units of the agents add up to all units."""
    write_swf(small_log(make_trace), tmp_path / "log.swf")
    scenario = scenario_of({"kind": name, **KINDS[name]}, tmp_path)
    staged = scenario.stage(scenario.prepare())
    staged.model.run()
    check_heard(staged)


def check_heard(staged: Staged) -> None:
    """Check that agents submitted all units of a run and heard of each."""
    assert len(staged.users) > 1
    assert all(user.submitted == user.finished for user in staged.users)
    assert sum(user.finished for user in staged.users) == len(staged.model.units) > 10
