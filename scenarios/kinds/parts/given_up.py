"""The setting for jobs that their users gave up in the queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal, override

import numpy as np
from pydantic import Field

from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.traces.trace import gave_up
from hpcrowd.scenarios.kinds.base import Beginning
from hpcrowd.scenarios.kinds.trace_settings import TraceScenario

if TYPE_CHECKING:
    from hpcrowd.analysis.parts import RunPart
    from hpcrowd.environment.simulation import Simulation
    from hpcrowd.environment.traces.trace import Conversion


class JobsGivenUp(TraceScenario):
    """Jobs wait that were given up in the record, until they leave."""

    AFTER: ClassVar[Mapping[str, str]] = {"given_up": "users"}

    given_up: Literal["recorded", "drop"] = Field(
        "recorded",
        description="jobs that were cancelled in the queue and never ran: recorded (they wait, and "
        "leave after their recorded wait, or when their turn comes before), or drop",
    )

    @override
    def conversion(self) -> Conversion:
        return replace(super().conversion(), given_up=self.given_up)

    @override
    def attach(self, model: Simulation, begins: Beginning) -> None:
        super().attach(model, begins)
        jobs, trace, rows = begins.jobs, begins.trace, begins.rows
        if trace is None or rows is None or self.given_up == "drop":
            return
        gone = np.flatnonzero(np.append(gave_up(trace), False)[rows])  # of added jobs: the last
        if not len(gone):
            return
        from hpcrowd.environment.parts.given_up import GivenUp, imputed_run_times

        waits, unknown = np.full((2, len(jobs)), UNKNOWN)
        waits[gone] = trace["wait"][rows[gone]]
        run_time = self.conversion().run_time(jobs.recorded_end - jobs.recorded_start)
        stream = model.streams.generator("given up", "run times")
        unknown[gone] = imputed_run_times(jobs, gone, run_time, stream)
        model.attach(GivenUp(waits, unknown))

    @override
    def results(self, model: Simulation, begins: Beginning) -> list[RunPart]:
        found = super().results(model, begins)
        if self.given_up == "drop":
            return found
        from hpcrowd.environment.parts.given_up import GivenUp

        part = model.parts.of(GivenUp)
        if part is None:
            return found
        from hpcrowd.analysis.accounts.given_up import GaveUp

        return [*found, GaveUp(part.account())]


#: The settings by kind of run.
SETTINGS = {"replay": JobsGivenUp}
