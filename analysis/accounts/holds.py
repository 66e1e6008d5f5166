"""Jobs that were held between their submission and the queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, override

from hpcrowd.analysis.parts import RunPart
from hpcrowd.environment.jobs import Int64s, JobTable
from hpcrowd.environment.quantities import format_duration, plural

if TYPE_CHECKING:
    from hpcrowd.environment.traces.trace import Trace


class Held(RunPart):
    """How many jobs were held, how long and why: totals of
    :meth:`hpcrowd.environment.holds.held.Holds.account`.
    """

    name, key, leads = "holds", "holds", True

    @override
    def lines(self, configuration: Mapping[str, Any]) -> list[str]:
        account = self.account
        causes = ", ".join(f"{count:,} by {cause}" for cause, count in account["causes"].items())
        mean = account["held_mean_s"]
        first = f"{plural(account['jobs_held'], 'job')} held after submission"
        first += "" if mean is None else f", {format_duration(mean)} on average"
        lines = [f"{first} ({causes})" if causes else first]
        if account["jobs_never_eligible"]:
            lines.append(
                f"{plural(account['jobs_never_eligible'], 'job')} cancelled: a job that they "
                "depend on did not end as they asked"
            )
        return lines + [
            f"{plural(count, 'job')}: {note}" for note, count in account["notes"].items()
        ]

    @override
    def metrics(self, jobs: JobTable, found: Mapping[str, Any]) -> dict[str, Any]:
        ran = jobs.over
        if not ran.any():
            return {}
        return {"eligible_wait_mean_s": float((jobs.start[ran] - jobs.enqueued[ran]).mean())}

    @override
    def metrics_between(self, jobs: JobTable, begin: int, end: int) -> dict[str, Any]:
        return self.metrics(jobs, {})

    @override
    def numbers(self) -> dict[str, Mapping[str, Any]]:
        return {}

    @override
    @classmethod
    def recorded(cls, trace: Trace, jobs: JobTable, source_row: Int64s) -> Self | None:
        from hpcrowd.environment.holds.recorded import as_recorded

        return cls.of(as_recorded(trace, jobs, source_row))
