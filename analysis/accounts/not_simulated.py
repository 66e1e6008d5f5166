"""How much of a load asks a machine for what is not simulated, and what is done instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, override

import numpy as np

from hpcrowd.analysis.numbers import share_text
from hpcrowd.analysis.parts import RunPart
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.formats.common.site_columns import COMPONENTS

if TYPE_CHECKING:
    from hpcrowd.environment.cluster import Cluster
    from hpcrowd.environment.jobs import Int64s
    from hpcrowd.environment.machine.layout import Layout
    from hpcrowd.environment.simulation import Simulation
    from hpcrowd.environment.traces.trace import Trace

#: What is not simulated: what jobs do, and what is done instead.
MEANING = {
    "shared_cores": "in partitions whose jobs share cores (OverSubscribe): each held cores of its "
    "own, and none took turns",
    "topology": "on several nodes: chosen by the order of their names, not by switches "
    "(TopologyPlugin)",
    "components": "heterogeneous: one job with the processors of all components, placed as one",
}


class NotSimulated(RunPart):
    """Jobs that ran and ask for what is not simulated: :data:`MEANING`.

    For each of these their number, processor-hours, and part of the processor-hours of all jobs.
    """

    name, key = "not simulated", "not_simulated"

    @override
    def lines(self, configuration: Mapping[str, Any]) -> list[str]:
        return [
            f"{plural(one['jobs'], 'job')} ({one['processor_h']:,.1f} processor-hours, "
            f"{share_text(one['share'])}) {MEANING[what]}"
            for what, one in self.account.items()
        ]

    @override
    def check(self) -> None:
        self.lines({})


def not_simulated(
    model: Simulation, trace: Trace | None = None, rows: Int64s | None = None
) -> NotSimulated | None:
    """Return what jobs of a run ask for that is not simulated; None if there is nothing.

    ``trace`` is the log that they come from, ``rows`` the row of each in it, -1 for none.
    """
    jobs = model.jobs
    ran, hours = jobs.ran, np.zeros(len(jobs))
    hours[ran] = (jobs.processors[ran] * jobs.lasted[ran]) / HOUR
    which: dict[str, set[int]] = {what: set() for what in MEANING}
    for cluster in model.clusters.values():
        if hasattr(cluster.engine.scheduler, "ledger"):
            _note_runs(cluster, which)
    if trace is not None and rows is not None and COMPONENTS in trace.extra:
        known = np.flatnonzero(rows >= 0)
        parts = trace.extra[COMPONENTS][rows[known]] != ""
        which["components"].update(known[parts].tolist())
    found, total = {}, float(hours.sum())
    for what, mine in which.items():
        chosen = [row for row in sorted(mine) if ran[row]]
        used = float(hours[chosen].sum())
        if chosen:
            share = used / total if total else 0.0
            found[what] = {"jobs": len(chosen), "processor_h": used, "share": share}
    return NotSimulated.of(found)


def _note_runs(cluster: Cluster, which: dict[str, set[int]]) -> None:
    """Note the jobs of a cluster whose last runs would have been placed otherwise."""
    scheduler: Any = cluster.engine.scheduler
    layout: Layout = scheduler.layout
    by_switches = layout.settings.topology != "none"
    for run in scheduler.ledger:
        if layout.partitions[run.partition].jobs_per_core > 1:
            which["shared_cores"].add(run.row)
        if by_switches and len(run.holding) > 1:
            which["topology"].add(run.row)
