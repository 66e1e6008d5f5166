"""What the machine of a forecast makes of its state: jobs that could never start, unknown QOS."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.analysis.forecast.futures import Outset
from hpcrowd.environment.jobs import State as Outcome
from hpcrowd.environment.machine.requests import Ask
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.state.state import ClusterState

if TYPE_CHECKING:
    from hpcrowd.environment.machine.model import Machine

#: Why a job is rejected on a machine without nodes.
TOO_LARGE = "more processors than are up"


def with_known_qos(site: Machine, state: ClusterState) -> tuple[Machine, tuple[str, ...]]:
    """Return the machine with all QOS of the jobs, and a note about those that it lacked.

    Slurm has accepted these jobs, so their QOS exist: only the description lacks them. They get no
    priority and no limits.
    """
    from hpcrowd.environment.machine.model import Qos

    requests = state.jobs.requests
    if requests is None:
        return site, ()
    known = {one.name for one in site.qos}
    missing = sorted(set(requests.texts(Ask.QOS)) - known - {""})
    if not missing:
        return site, ()
    added = tuple(Qos(name=name) for name in missing)
    note = (
        f"QOS {', '.join(missing)}: not described, so without priority and limits; describe them "
        "with --machine qos.txt, from sacctmgr -P show qos"
    )
    return site.model_copy(update={"qos": (*site.qos, *added)}), (note,)


def without_impossible_jobs(outset: Outset) -> Outset:
    """Return the same with waiting jobs that the machine can never start as held, and a note."""
    reasons = never_start(outset)
    if not reasons:
        return outset
    state = outset.state
    counts = Counter(reasons.values()).most_common()
    shown = ", ".join(f"{count:,} {reason}" for reason, count in counts)
    note = (
        f"{plural(len(reasons), 'waiting job')} can never start on the machine as it is described: "
        f"{shown}"
    )
    held = state.held | {row: f"never starts: {reason}" for row, reason in reasons.items()}
    notes = tuple(dict.fromkeys((*state.notes, note)))
    return replace(outset, state=replace(state, held=held, notes=notes))


def never_start(outset: Outset) -> dict[int, str]:
    """Return why waiting jobs that are not held can never start, by row of the state."""
    state = outset.state
    free = np.setdiff1d(state.waiting, list(state.held))
    if outset.machine is None:
        up = outset.processors or state.processors - state.down
        return dict.fromkeys(free[state.jobs.processors[free] > up].tolist(), TOO_LARGE)
    seen: list[object] = []
    replace(outset, horizon=1, users="none", asked=()).simulate(0, watch=seen.append)
    (simulation,) = seen
    jobs, scheduler = simulation.jobs, simulation.cluster.engine.scheduler  # type: ignore[attr-defined]
    return {
        row: scheduler.turns_away(place) or TOO_LARGE
        for place, row in enumerate(outset.rows.tolist())
        if jobs.state[place] == Outcome.REJECTED and row in free
    }
