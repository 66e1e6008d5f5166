"""Jobs that their users gave up while they waited."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, override

from hpcrowd.analysis.parts import RunPart
from hpcrowd.environment.quantities import format_duration, plural


class GaveUp(RunPart):
    """How many jobs left the queue, how long they had waited, and how much work that is."""

    name, key, leads = "given up", "given_up", True

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
