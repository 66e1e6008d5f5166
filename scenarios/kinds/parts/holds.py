"""The setting of what holds jobs back between their submission and the queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, override

from pydantic import Field

from hpcrowd.environment.schedulers.names import RECORDED
from hpcrowd.scenarios.kinds.base import Scenario
from hpcrowd.scenarios.kinds.trace_settings import TraceScenario

if TYPE_CHECKING:
    from hpcrowd.analysis.parts import RunPart
    from hpcrowd.environment.clock import Clock
    from hpcrowd.environment.cluster import ClusterSpec
    from hpcrowd.environment.jobs import Int64s, JobTable
    from hpcrowd.environment.simulation import Simulation
    from hpcrowd.environment.traces.trace import Trace


class WaitingForWindows(Scenario):
    """Jobs are held back until the windows of other parts, such as for cheap energy."""

    @override
    def simulation(
        self,
        jobs: JobTable,
        clusters: Mapping[str, ClusterSpec],
        clock: Clock,
        trace: Trace | None = None,
        rows: Int64s | None = None,
        **more: Any,
    ) -> Simulation:
        model = super().simulation(jobs, clusters, clock, trace, rows, **more)
        if len(model.parts):
            from hpcrowd.environment.holds.held import hold

            hold(model)
        return model


class RecordedHolds(TraceScenario):
    """Jobs are held back as recorded."""

    AFTER: ClassVar[Mapping[str, str]] = {"holds": "users"}

    holds: Literal["recorded", "none"] = Field(
        "recorded",
        description="what holds jobs back between submission and queue: recorded (dependencies, "
        "earliest starts and throttles of arrays, in logs that have them), or none",
    )

    @override
    def simulation(
        self,
        jobs: JobTable,
        clusters: Mapping[str, ClusterSpec],
        clock: Clock,
        trace: Trace | None = None,
        rows: Int64s | None = None,
        **more: Any,
    ) -> Simulation:
        model = super().simulation(jobs, clusters, clock, trace, rows, **more)
        rules = None
        if trace is not None and rows is not None and trace.extra:
            from hpcrowd.environment.holds.recorded import recorded_rules

            held = self.holds == "recorded" and self.scheduler != RECORDED
            run_time = self.conversion().run_time
            rules = recorded_rules(trace, jobs, rows, held=held, run_time=run_time)
        if rules is not None or len(model.parts):
            from hpcrowd.environment.holds.held import hold

            hold(model, rules)
        return model

    @override
    def results(
        self,
        model: Simulation,
        jobs: JobTable,
        trace: Trace | None = None,
        rows: Int64s | None = None,
    ) -> list[RunPart]:
        found = super().results(model, jobs, trace, rows)
        if trace is None or rows is None or not (trace.extra or len(model.parts)):
            return found
        from hpcrowd.analysis.accounts.holds import Held
        from hpcrowd.environment.holds.held import Holds
        from hpcrowd.environment.holds.recorded import as_recorded

        part = model.parts.of(Holds)
        account = {} if part is None else part.account()
        if trace.extra and self.holds == "recorded" and self.scheduler == RECORDED:
            account = as_recorded(trace, jobs, rows)
        return [*found, Held(account)] if account else found


#: The settings by kind of run.
SETTINGS = {
    "replay": RecordedHolds,
    "resample": WaitingForWindows,
    "populate": WaitingForWindows,
}
