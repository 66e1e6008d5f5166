"""A part that the library does not know adds a setting, and acts in a run through it."""

from typing import ClassVar, Literal, override

import pytest
from hpcrowd.analysis.parts import PARTS, RunPart
from hpcrowd.environment.parts.part import Part
from hpcrowd.scenarios.kinds.base import SETTINGS, Scenario, with_parts
from hpcrowd.scenarios.kinds.files import scenario_toml
from hpcrowd.scenarios.kinds.replay import ReplayConfig
from hpcrowd.scenarios.kinds.trace_settings import TraceScenario
from pydantic import Field


class Counting(Part):
    """Counts units."""

    def __init__(self, step):
        self.count, self.step = 0, step

    @override
    def on_unit(self, owner, rows):
        self.count += self.step


class Counted(RunPart):
    """The count."""

    name = key = "count"

    @override
    def lines(self, configuration):
        return [f"counted {self.account['units']}"]


class CountSettings(Scenario):
    """Counts units of users, in steps."""

    AFTER: ClassVar = {"count": "processors"}

    count: int = Field(0, ge=0, description="step in which units are counted")

    @override
    def parts(self, begins):
        found = super().parts(begins)
        return [*found, Counting(self.count)] if self.count else found

    @override
    def results(self, model, begins):
        found = super().results(model, begins)
        part = model.parts.of(Counting)
        return [*found, Counted({"units": part.count})] if part else found


@pytest.fixture
def kind(monkeypatch):
    """A kind of replay that has the setting."""
    monkeypatch.setitem(SETTINGS, "count", {"counted": CountSettings})
    monkeypatch.setitem(PARTS, "count", Counted)

    @with_parts
    class CountedReplay(ReplayConfig):
        kind: Literal["counted"] = Field("counted", description="a replay in which units count")

    return CountedReplay


def test_a_part_adds_a_setting(kind, make_trace):
    """It is listed where it says, read with its rules, acts, and has results and lines."""
    jobs = ({"submit": at, "wait": 0, "run": 9, "requested_processors": 1, "requested_time": 9,
             "user": 1, "status": 1} for at in (0, 9000))  # fmt: skip
    trace = make_trace(*jobs, header="; MaxProcs: 1")
    names = list(kind.settings())
    assert names.index("processors") + 1 == names.index("count")
    with pytest.raises(ValueError, match="count"):
        kind(count=-1)
    config = kind(count=3, users="think-time")
    assert 3 == config.plain()["count"]
    assert "count: step in which units are counted" in scenario_toml(config)
    run = config.stage(config.given(trace)).run()
    assert 0 < run.parts["count"].account["units"] == run.summary()["count"]["units"]
    assert 0 == run.parts["count"].account["units"] % 3
    without = kind(users="think-time")
    assert "count" not in without.stage(without.given(trace)).run().parts
    assert "count" not in ReplayConfig.settings()
    assert issubclass(kind, CountSettings)
    assert not {"machine", "power", "platform", "holds"} & {*TraceScenario.settings()}
