"""The setting of what holds jobs back between their submission and the queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal, override

from pydantic import Field

from hpcrowd.environment.schedulers.names import RECORDED
from hpcrowd.scenarios.kinds.base import Beginning, Scenario
from hpcrowd.scenarios.kinds.trace_settings import TraceScenario

if TYPE_CHECKING:
    from hpcrowd.analysis.parts import RunPart
    from hpcrowd.environment.simulation import Simulation


class WaitingForWindows(Scenario):
    """Jobs are held back until the windows of other parts, such as for cheap energy."""

    @override
    def attach(self, model: Simulation, begins: Beginning) -> None:
        super().attach(model, begins)
        if len(model.parts):
            from hpcrowd.environment.holds.held import hold

            hold(model)


class RecordedHolds(TraceScenario):
    """Jobs are held back as recorded."""

    AFTER: ClassVar[Mapping[str, str]] = {"holds": "users"}

    holds: Literal["recorded", "none"] = Field(
        "recorded",
        description="what holds jobs back between submission and queue: recorded (dependencies, "
        "earliest starts and throttles of arrays, in logs that have them), or none",
    )

    @override
    def attach(self, model: Simulation, begins: Beginning) -> None:
        super().attach(model, begins)
        jobs, trace, rows, rules = begins.jobs, begins.trace, begins.rows, None
        if trace is not None and rows is not None and trace.extra:
            from hpcrowd.environment.holds.recorded import recorded_rules, without_controlled

            held = self.holds == "recorded" and self.scheduler != RECORDED
            run_time = self.conversion().run_time
            rules = recorded_rules(trace, jobs, rows, held=held, run_time=run_time)
            policy = model.cluster.engine.scheduler
            if rules is not None and policy is not None and policy.controls:
                rules = without_controlled(rules, jobs.requests)
        if rules is not None or len(model.parts):
            from hpcrowd.environment.holds.held import hold

            hold(model, rules)

    @override
    def results(self, model: Simulation, begins: Beginning) -> list[RunPart]:
        found = super().results(model, begins)
        trace, rows = begins.trace, begins.rows
        if trace is None or rows is None or not (trace.extra or len(model.parts)):
            return found
        from hpcrowd.analysis.accounts.holds import Held
        from hpcrowd.environment.holds.held import Holds
        from hpcrowd.environment.holds.recorded import as_recorded

        part = model.parts.of(Holds)
        account = {} if part is None else part.account()
        if trace.extra and self.holds == "recorded" and self.scheduler == RECORDED:
            account = as_recorded(trace, begins.jobs, rows)
        return [*found, Held(account)] if account else found


#: The settings by kind of run.
SETTINGS = {
    "replay": RecordedHolds,
    "resample": WaitingForWindows,
    "populate": WaitingForWindows,
}
