"""Simulations in one line, with what clusters and parts of them are described by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hpcrowd.environment.cluster import HOME, Cluster, ClusterSpec
from hpcrowd.environment.grid.broker import Grid
from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.machine.model import Machine
from hpcrowd.environment.parts.part import Part
from hpcrowd.environment.platform.changes import Change
from hpcrowd.environment.platform.part import Platform
from hpcrowd.environment.schedulers.base import Scheduler
from hpcrowd.environment.schedulers.on_nodes.in_use import MachineInUse
from hpcrowd.environment.simulation import Simulation

#: Tests of both engines.
both = pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])


class Owner:
    """Notes when units are over."""

    def __init__(self) -> None:
        self.heard: list[int] = []

    def on_finished(self, unit: int, now: int) -> None:
        """Note it."""
        self.heard.append(now)


def recorded(submit: Any, run: Any, wait: Any = 0, **columns: Any) -> JobTable:
    """Return jobs that once waited and ran for so long; they do so again unless columns say not."""
    jobs, start = JobTable(), submit + wait
    times = {"recorded_submit": submit, "recorded_start": start, "recorded_end": start + run}
    jobs.append(len(submit), **{"run_time": run, "requested_time": run} | times | columns)
    return jobs


def simulation_of(
    jobs: JobTable,
    processors: int,
    scheduler: str | Scheduler = "easy",
    *,
    estimates: Any = "requested",
    others: Mapping[str, ClusterSpec] | None = None,
    platform: Sequence[Change] = (),
    resubmit_after: int | None = None,
    grid: Grid | None = None,
    machine: Machine | None = None,
    parts: Sequence[Part] = (),
    **how: Any,
) -> Simulation:
    """Return a simulation of jobs on a cluster, with others beside it, and parts."""
    home = ClusterSpec(processors, scheduler, estimates=estimates)
    found = list(parts) if grid is None else [*parts, grid]
    if platform or resubmit_after is not None:
        found.append(Platform(platform, resubmit_after))
    if machine is not None:
        found.append(MachineInUse(machine))
    return Simulation(jobs, {HOME: home, **(others or {})}, parts=found, **how)


def account_of(cluster: Cluster, now: int) -> dict[str, Any]:
    """Return what changes did to a cluster by a second; nothing without changes."""
    timeline = cluster.engine.timeline
    return {} if timeline is None else timeline.account(now)
