"""Jobs that their users gave up while they waited."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, override

import numpy as np

from hpcrowd.analysis.parts import RunPart
from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.quantities import format_duration, plural

#: The meaning of each column of ``given_up.parquet``.
MEANING = {
    "row": "row in jobs.parquet",
    "number": "job number, as in jobs.parquet",
    "imputed_run_time": "s; that of a similar job: it had been given up in the record, and ran",
}


class GaveUp(RunPart):
    """How many jobs left the queue, how long they had waited, and how much work that is.

    ``rows`` has the run times that are imputed, s, by row, of jobs that ran.
    """

    name, key, leads = "given up", "given_up", True
    file, meaning = "given_up", MEANING

    @override
    def job_columns(self) -> dict[str, Any]:
        return {"imputed_run_time": self.rows} if self.rows else {}

    @override
    def columns(self, jobs: JobTable) -> dict[str, Any]:
        if not self.rows:
            return {}
        rows = np.array(list(self.rows), np.int64)
        times = list(self.rows.values())
        return {"row": rows, "number": jobs.number[rows], "imputed_run_time": times}

    @override
    @classmethod
    def from_columns(cls, columns: Mapping[str, Any]) -> dict[int, int]:
        return dict(zip(columns["row"], columns["imputed_run_time"], strict=True))

    @override
    def lines(self, configuration: Mapping[str, Any]) -> list[str]:
        account = self.account
        line = f"{plural(account['jobs_given_up'], 'job')} given up in the queue"
        mean = account["wait_mean_s"]
        if mean is not None:
            line += f", after {format_duration(mean)} on average"
        if turn := account["jobs_at_their_turn"]:
            line += f" ({turn:,} when their turn came)"
        if hours := account.get("given_up_processor_h"):
            line += f": {hours:,.0f} processor-hours, going by similar jobs"
        lines = [line]
        if ran := account.get("jobs_with_imputed_run_time"):
            line = f"{plural(ran, 'job')} ran that had been given up, as long as similar jobs"
            if spared := account["jobs_not_replaced"]:
                line += f"; {plural(spared, 'job')} not submitted that had replaced them"
            lines.append(line)
        return lines
