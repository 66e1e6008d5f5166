"""The setting for jobs that their users gave up in the queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, override

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from hpcrowd.environment.errors import QuantityError, not_one_of
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.schedulers.names import RECORDED
from hpcrowd.environment.traces.trace import GIVEN_UP, gave_up
from hpcrowd.scenarios.kinds.base import Beginning, checksum
from hpcrowd.scenarios.kinds.trace_settings import TraceScenario

if TYPE_CHECKING:
    from hpcrowd.analysis.parts import RunPart
    from hpcrowd.environment.jobs import Int64s
    from hpcrowd.environment.simulation import Simulation
    from hpcrowd.environment.traces.trace import Conversion, Trace

#: The mode in which users have patience, alone or with the file of a model.
PATIENCE = "patience"


class JobsGivenUp(TraceScenario):
    """Jobs wait that were given up in the record, until they leave."""

    AFTER: ClassVar[Mapping[str, str]] = {"given_up": "users"}

    given_up: str = Field(
        "recorded",
        description="jobs that were cancelled in the queue and never ran: recorded (they wait, and "
        "leave after their recorded wait, or when their turn comes before), patience (they run if "
        "their turn comes before, and every job leaves when its user's patience ends, which is "
        "fitted to the trace), patience:FILE (from `hpcrowd fit patience`), or drop",
    )

    @field_validator("given_up")
    @classmethod
    def _known_mode(cls, text: str, info: ValidationInfo) -> str:
        name, _, file = text.partition(":")
        if name == PATIENCE and file:
            path = Path(info.data["folder"]) / file
            if not path.is_file():
                raise QuantityError(
                    f"given-up {text!r}: no such file; make one with `hpcrowd fit patience LOG "
                    f"--out {file}`, or give patience alone"
                )
            return f"{name}:{path}"
        if text not in (*GIVEN_UP, PATIENCE):
            raise QuantityError(
                f"given-up {text!r}: {not_one_of(text, (*GIVEN_UP, PATIENCE))}, or patience:FILE"
            )
        return text

    @property
    def _file(self) -> str:
        """The file of fitted patience; empty if there is none."""
        return self.given_up.partition(":")[2]

    @override
    def identity(self) -> dict[str, Any]:
        found = super().identity()
        return found | ({"given_up": checksum(Path(self._file))} if self._file else {})

    @override
    def completed(self) -> dict[str, Any]:
        found = super().completed()
        path = {"given_up": f"{PATIENCE}:{Path(self._file).absolute()}"} if self._file else {}
        return found | path

    @override
    def sums(self) -> dict[str, str]:
        file = {Path(self._file).name: checksum(Path(self._file))} if self._file else {}
        return super().sums() | file

    @override
    def difference(self, name: str, value: Any) -> list[str]:
        found = super().difference(name, value)
        if name == "given_up" and self._file:
            return [f"given_up {PATIENCE}:{Path(self._file).name}"]
        return found

    @override
    def conversion(self) -> Conversion:
        return replace(
            super().conversion(), given_up="drop" if self.given_up == "drop" else "recorded"
        )

    @override
    def attach(self, model: Simulation, begins: Beginning) -> None:
        super().attach(model, begins)
        jobs, trace, rows = begins.jobs, begins.trace, begins.rows
        if trace is None or rows is None or self.given_up == "drop":
            return
        left = np.append(gave_up(trace), False)[rows]  # of jobs that users added: the last
        gone = np.flatnonzero(left)
        patient = self.given_up.startswith(PATIENCE) and self.scheduler != RECORDED
        if not (len(gone) or patient):
            return
        from hpcrowd.environment.parts.given_up import GivenUp, imputed_run_times

        waits, unknown = np.full((2, len(jobs)), UNKNOWN)
        waits[gone] = trace["wait"][rows[gone]]
        run_time = self.conversion().run_time(jobs.recorded_end - jobs.recorded_start)
        stream = model.streams.generator("given up", "run times")
        unknown[gone] = imputed_run_times(jobs, gone, run_time, stream)
        if not patient:
            model.attach(GivenUp(waits, unknown))
            return
        waits = np.where(left, waits, self._patience(trace, rows, model))
        replaced_by = _replaced_by(trace, rows, jobs.processors, left)
        model.attach(GivenUp(waits, unknown, run=True, replaced_by=replaced_by))
        from hpcrowd.environment.holds.held import Holds

        if (held := model.parts.of(Holds)) is not None:
            held.rules.failed[gone] = False  # those that run succeed

    def _patience(self, trace: Trace, rows: Int64s, model: Simulation) -> Int64s:
        """Return after which wait jobs leave that started in the record, s; -1 for never.

        Users had patience for the recorded wait at least.
        """
        from hpcrowd.agents.patience.model import FittedPatience
        from hpcrowd.analysis.patience.fit import Waits, fit_patience
        from hpcrowd.environment.stops import FOREVER

        fitted = FittedPatience.load(self._file) if self._file else fit_patience([trace])
        known = Waits.of(trace)
        started = np.flatnonzero(~known.gone)
        stream = model.streams.generator("given up", "patience")
        drawn = fitted.draw(known.found.take(started), stream, known.wait[started])
        found = np.full(len(trace) + 1, UNKNOWN)
        found[known.rows[started]] = np.where(drawn == FOREVER, UNKNOWN, drawn)
        return found[rows]

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

        return [*found, GaveUp(part.account(), part.imputed())]


def _replaced_by(trace: Trace, rows: Int64s, processors: Int64s, left: Any) -> Int64s:
    """Return the row of the job that replaced each one in the record, -1 for none."""
    from hpcrowd.agents.patience.replaced import replacements

    there = np.flatnonzero(rows != UNKNOWN)
    of = rows[there]
    other = replacements(
        trace["user"][of], processors[there], trace["requested_time"][of],
        trace["executable"][of], trace["submit"][of], trace["wait"][of], left[there],
    )  # fmt: skip
    found = np.full(len(rows), UNKNOWN)
    found[there] = np.where(other == UNKNOWN, UNKNOWN, there[other])
    return found


#: The settings by kind of run.
SETTINGS = {"replay": JobsGivenUp}
