"""Totals of the changes of the platform of a run, and the runs of jobs that were stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, override

import numpy as np

from hpcrowd.analysis.parts import RunPart
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.environment.quantities import format_duration, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.simulation import Simulation


#: Keys of ``summary.json`` for each cluster that changed, and their meaning.
ACCOUNTS = {
    "node_failures": "random failures that took processors down",
    "down_processor_s": "processor-seconds that were down, by the size at that time",
    "maintenance_s": "time in maintenance",
    "runs_stopped": "runs of jobs stopped before their end",
    "runs_requeued": "of these, put back into the queue by the scheduler",
    "runs_resubmitted": "of these, submitted again by their users",
    "runs_failed": "of these, failed for good",
    "lost_processor_s": "processor-seconds used by the stopped runs",
    "sizes": "changes of size: s since the origin, processors before and after",
    "speeds": "changes of speed: s since the origin, factor",
    "schedulers": "switches of scheduler: s since the origin, new scheduler",
    "policy_switches": "number of policy switches",
    "policies_s": "time that each policy was in charge, s",
}

#: Most sizes, speeds or schedulers that a printed line lists one by one.
MOST_TURNS = 3


class PlatformChanges(RunPart):
    """Totals of the clusters that changed, by name: :data:`ACCOUNTS`."""

    name, key, title = "platform", "platform", "Changes of the platform"

    @override
    def lines(self, configuration: Mapping[str, Any]) -> list[str]:
        return platform_lines(self.account)

    @override
    def sizes(self) -> list[tuple[int, int, int]]:
        return sizes_of(self.account)

    @override
    def mark(self, panels: Sequence[Axes], run: Run) -> None:
        from hpcrowd.analysis.pictures.platform_marks import draw_marks

        draw_marks(panels, run)

    @override
    def numbers(self) -> dict[str, Mapping[str, Any]]:
        return self.account

    @override
    def check(self) -> None:
        platform_lines(self.account)


def accounts_of(model: Simulation) -> dict[str, dict[str, Any]]:
    """Return the totals of each cluster that changed, by name."""
    return {
        name: timeline.account(model.time)
        for name, cluster in model.clusters.items()
        if (timeline := cluster.engine.timeline) is not None
    }


def jobs_of(model: Simulation) -> JobTable:
    """Return the jobs of a run; under a power cap that slows them, a copy with both run times.

    In the simulation ``run_time`` is how long a job takes at the clocks of the machine. The copy
    has the time that it needs at full clock there, and the other one in ``slowed_run_time``.
    """
    work, timeline = model.cluster.engine.work, model.cluster.engine.timeline
    if work is None or timeline is None or not timeline.slows:
        return model.jobs
    jobs = model.jobs.copy()
    jobs.slowed_run_time = np.where(jobs.start == UNKNOWN, UNKNOWN, jobs.run_time)
    submitted = np.flatnonzero(work[: len(jobs)] != UNKNOWN)
    jobs.run_time[submitted] = work[submitted]
    return jobs


def sizes_of(accounts: Mapping[str, Mapping[str, Any]]) -> list[tuple[int, int, int]]:
    """Return (s, processors before, processors after) for each change of a cluster's size."""
    return [
        (at, before, after)
        for account in accounts.values()
        for at, before, after in account.get("sizes", ())
    ]


def platform_lines(accounts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return one printed line for each cluster that changed."""
    lines = []
    for name, account in accounts.items():
        words = []
        if account["node_failures"]:
            words.append(plural(account["node_failures"], "node failure"))
        if account["down_processor_s"]:
            words.append(f"{account['down_processor_s'] / HOUR:,.1f} processor-hours down")
        if account["maintenance_s"]:
            words.append(f"{format_duration(account['maintenance_s'])} of maintenance")
        if account["runs_stopped"]:
            fates = [
                f"{account[f'runs_{fate}']:,} {fate}"
                for fate in ("requeued", "resubmitted", "failed")
                if account[f"runs_{fate}"]
            ]
            words.append(f"{plural(account['runs_stopped'], 'run')} stopped ({', '.join(fates)})")
            words.append(f"{account['lost_processor_s'] / HOUR:,.1f} processor-hours lost")
        words += _turns("resizes", [f"{after:,} processors" for *_, after in account["sizes"]])
        words += _turns("changes of speed", [f"speed {by:g}x" for _, by in account["speeds"]])
        words += _turns("switches", [f"scheduler {one}" for _, one in account["schedulers"]])
        if account["policy_switches"] > len(account["schedulers"]):
            words += _policies(account)
        lines.append(f"cluster {name}: {', '.join(words) or 'nothing changed in the run'}")
    return lines


def _turns(what: str, turns: list[str]) -> list[str]:
    """Return the successive values of a setting, or only their number if there are many."""
    if len(turns) > MOST_TURNS:
        return [f"{len(turns):,} {what}"]
    return turns


def _policies(account: Mapping[str, Any]) -> list[str]:
    """Return how often the policy changed, and for which share of the time each was in charge."""
    total = max(sum(account["policies_s"].values()), 1)
    by_time = sorted(account["policies_s"].items(), key=lambda item: -item[1])
    shares = ", ".join(f"{policy} {seconds / total:.0%}" for policy, seconds in by_time)
    switches = plural(account["policy_switches"], "switch")
    return [f"{switches} of policy ({shares})"]
