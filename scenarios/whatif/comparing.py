"""What a change of the cluster does: the shared part of the what-if scripts.

Each script names a change. The trace is replayed before and after it, by users who submit as
recorded (rigid) and by users who keep their think times, and both are set side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.scenarios.kinds.replay import replay
from hpcrowd.scenarios.whatif.scripts import ScriptTable, run_script

if TYPE_CHECKING:
    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.traces.trace import Trace


#: Users that are compared, by the names of ``hpcrowd.scenarios.kinds.replay``.
USERS = ("rigid", "think-time")


@dataclass(frozen=True)
class Shown:
    """A line of the table: a metric, its title with the unit, what to divide by, its digits."""

    metric: str
    title: str
    per: float
    digits: int


SHOWN = (
    Shown("wait_mean_s", "mean wait (h)", HOUR, 2),
    Shown("wait_max_s", "longest wait (days)", DAY, 2),
    Shown("bounded_slowdown_mean", "mean bounded slowdown", 1, 1),
    Shown("utilization", "processors in use (%)", 0.01, 1),
    Shown("throughput_jobs_per_day", "jobs ended per day", 1, 1),
    Shown("makespan_s", "makespan (days)", DAY, 1),
    Shown("lateness_mean_s", "mean lateness (days)", DAY, 2),
    Shown("jobs_rejected", "jobs rejected", 1, 0),
)


@dataclass(frozen=True)
class WhatIf:
    """Runs before and after a change.

    Attributes
    ----------
    trace
        Name of the trace.
    before, after
        Runs by users, see :data:`USERS`.
    """

    trace: str
    before: dict[str, Run]
    after: dict[str, Run]

    def rows(self) -> list[tuple[str, list[float | None]]]:
        """Return (title, [rigid before, after, think-time before, after]) in the units shown."""
        found = []
        for line in SHOWN:
            values: list[float | None] = []
            for users in USERS:
                for runs in (self.before, self.after):
                    value = runs[users].metrics[line.metric]
                    values.append(None if value is None else value / line.per)
            found.append((line.title, values))
        return found

    def table(self, title: str) -> ScriptTable:
        """Return the comparison as a table."""
        head = ["", *(f"{users}\n{when}" for users in USERS for when in ("before", "after"))]
        rows = [
            (name, *(_text(value, line.digits) for value in values))
            for line, (name, values) in zip(SHOWN, self.rows(), strict=True)
        ]
        return ScriptTable(f"{title}: {self.trace}", head, rows, words=1)


def _text(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{round(value, digits) + 0.0:,.{digits}f}"


def what_if(trace: Trace, change: Mapping[str, Any], **common: Any) -> WhatIf:
    """Replay a trace without and with a change.

    Parameters
    ----------
    trace
        What was recorded.
    change
        Fields of :class:`~hpcrowd.scenarios.kinds.replay.ReplayConfig` that the change sets.
    **common
        Fields that all runs have in common.
    """

    def runs(choices: Mapping[str, Any]) -> dict[str, Run]:
        return {
            users: replay(trace, compiled=True, users=users, **{**common, **choices})
            for users in USERS
        }

    return WhatIf(Path(trace.source).name, runs({}), runs(change))


def run_change(
    name: str,
    title: str,
    change: Mapping[str, Any],
    arguments: Sequence[str] | None = None,
    **common: Any,
) -> int:
    """Run a script about a change on the trace that the command line names; return the exit code.

    Parameters
    ----------
    name, arguments
        As for :func:`hpcrowd.scenarios.whatif.scripts.run_script`.
    title
        Of the table.
    change, **common
        As for :func:`what_if`.
    """
    return run_script(name, lambda trace: what_if(trace, change, **common).table(title), arguments)
