"""Runs that differ only in their seed are one group; runs of the same work have the same users."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hpcrowd.analysis.curves import profile_distance, weekly_profile
from hpcrowd.analysis.metrics import METRICS, Metric, per_user
from hpcrowd.analysis.paired import Estimate, Floats, mean_by_user, t_interval
from hpcrowd.analysis.run import Run
from hpcrowd.environment.jobs import UNKNOWN, Int64s

#: Metrics of a comparison beyond those of a run.
MORE_METRICS = (
    Metric(
        "week_distance",
        "distance of the weekly profiles of submissions, simulated and recorded, 0 to 1",
    ),
)

#: What decides, besides the seed, who is in a resampled population.
DRAWN_BY = ("files_sha256", "pool", "sessions", "unit", "weeks", "users", "arrivals", "full")

#: Every metric of a comparison, in its order.
ALL_METRICS = METRICS + MORE_METRICS


@dataclass
class Group:
    """One run, or several that differ only in their seed.

    Attributes
    ----------
    label
        For tables and pictures.
    runs
        At least one.
    record
        Recorded submissions of the work, s, which users who make up their work do not have in
        their jobs; None unless known.
    """

    label: str
    runs: list[Run]
    record: Int64s | None = None

    def __post_init__(self) -> None:
        if self.record is None:
            self.record = recorded(self.first)

    def __repr__(self) -> str:
        return f"<Group {self.title}>"

    @property
    def first(self) -> Run:
        """The first run."""
        return self.runs[0]

    @property
    def title(self) -> str:
        """The label, with the number of seeds if there are several."""
        return self.label + (f", {len(self.runs)} seeds" if len(self.runs) > 1 else "")

    @property
    def seeds(self) -> list[int | None]:
        """The seed of each run; None where it has none."""
        return [seed_of(run) for run in self.runs]

    @cached_property
    def values(self) -> dict[str, list[float | None]]:
        """The value of each metric in each run."""
        found: dict[str, list[float | None]] = {
            metric.name: [run.metrics[metric.name] for run in self.runs] for metric in METRICS
        }
        return found | {"week_distance": [week_distance(run, self.record) for run in self.runs]}

    def by_seed(self, metric: str) -> dict[int | None, float]:
        """Return the value of a metric by seed, of the runs that have one."""
        pairs = zip(self.seeds, self.values[metric], strict=True)
        return {seed: float(value) for seed, value in pairs if value is not None}

    def estimate(self, metric: str) -> Estimate | None:
        """Return the mean of a metric over the runs with its interval; None if no run has it."""
        values = list(self.by_seed(metric).values())
        return t_interval(values) if values else None

    @cached_property
    def users(self) -> dict[str, tuple[Int64s, Floats]]:
        """For each metric that users have, user numbers and values, averaged over the runs."""
        found = [per_user(run.jobs) for run in self.runs]
        return {name: mean_by_user([one[name] for one in found]) for name in found[0]}


def seed_of(run: Run) -> int | None:
    """Return the seed of a run, None where its configuration has none."""
    seed = run.configuration.get("seed")
    return None if seed is None else int(seed)


def week_distance(run: Run, record: Int64s | None) -> float | None:
    """Return :func:`~hpcrowd.analysis.curves.profile_distance` to a record; None without one."""
    if record is None:
        return None
    profiles = [weekly_profile(times, run.clock) for times in (run.jobs.submit, record)]
    return profile_distance(*profiles) if all(profile.any() for profile in profiles) else None


def recorded(run: Run) -> Int64s | None:
    """Return the recorded submissions of the work of a run, s; None where it has none."""
    submit = run.jobs.recorded_submit
    if (submit != UNKNOWN).any():
        return submit
    return None if run.trace is None else run.trace["submit"].astype(np.int64)


def group_runs(runs: Sequence[Run]) -> list[Group]:
    """Return the runs in groups, in the order of their first runs.

    Runs of the same work whose configurations differ only in ``seed`` are one group. A seed is in a
    group only once: the same run given twice makes two groups.
    """
    found: dict[str, list[Group]] = {}
    groups: list[Group] = []
    for run in runs:
        configuration = {key: v for key, v in run.configuration.items() if key != "seed"}
        key = json.dumps([work_of(run), configuration], sort_keys=True, default=str)
        alike = found.setdefault(key, [])
        seed = seed_of(run)
        for group in alike:
            if seed is not None and seed not in group.seeds:
                group.runs.append(run)
                break
        else:
            group = Group(run.label, [run])
            alike.append(group)
            groups.append(group)
    for group in groups:
        if len(group.runs) > 1:
            words = group.label.split(", ")
            group.label = ", ".join(word for word in words if not word.startswith("seed "))
    _tell_apart(groups)
    _share_records(groups)
    return groups


def _share_records(groups: Sequence[Group]) -> None:
    """Give groups without a record that of another group of the same work."""
    known = {work_of(group.first): group.record for group in groups if group.record is not None}
    for group in groups:
        if group.record is None:
            group.record = known.get(work_of(group.first))


def _tell_apart(groups: Sequence[Group]) -> None:
    """Add to labels that occur twice the trace, or else a number."""
    for add in (lambda group, _: _source(group), lambda _, number: str(number)):
        labels = [group.label for group in groups]
        for label in set(labels):
            same = [group for group in groups if group.label == label]
            texts = [add(group, number) for number, group in enumerate(same, 1)]
            if len(set(texts)) > 1:
                for group, text in zip(same, texts, strict=True):
                    group.label = f"{label} ({text})"


def _source(group: Group) -> str:
    source = group.first.source
    return source["source"] if source else "generated"


def work_of(run: Run) -> str:
    """Return what tells apart the work of runs: equal if their users may be paired by number.

    The checksum of the trace; of a trace that was in no file, that of its jobs; of generated users,
    that of their numbers and groups; of resampled users, what they are drawn from and how.
    """
    if run.source and run.source["sha256"]:
        return run.source["sha256"]
    jobs = run.jobs
    if run.configuration.get("kind") == "resample":
        drawn = {name: run.configuration.get(name) for name in DRAWN_BY}
        return hashlib.sha256(json.dumps(drawn, sort_keys=True).encode()).hexdigest()
    if run.source:
        parts: tuple[Any, ...] = (jobs.number, jobs.user, jobs.recorded_submit)
    else:
        parts = (np.unique(np.stack([jobs.user, jobs.group]), axis=1),)
    kind = "trace" if run.source else f"generated {run.configuration.get('kind')}"
    digest = hashlib.sha256(kind.encode())
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()
