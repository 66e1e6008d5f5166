"""What there is to compute on: the clusters, their size over time, and what of them is down."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hpcrowd.analysis.pictures.platform_marks import asked_outages
from hpcrowd.analysis.run import Run
from hpcrowd.environment.cluster import HOME
from hpcrowd.environment.grid.policies import GRID

if TYPE_CHECKING:
    from hpcrowd.analysis.curves import Floats
    from hpcrowd.environment.jobs import Int64s
    from hpcrowd.environment.simulation import Simulation


class Step(NamedTuple):
    """From a second on there are so many processors."""

    at: int  #: s since the origin
    size: int  #: processors
    up: int  #: of these, that jobs may start on: neither down nor closed for maintenance


def clusters_of(run: Run) -> dict[str, int]:
    """Return the processors of each cluster of a run at first, by name, in their order."""
    if run.sites:
        return {name: one["processors"] for name, one in run.sites.items() if name != GRID}
    users = run.configuration.get("users")
    others = users.get("clusters") if isinstance(users, dict) else None
    more = {name: int(one["processors"]) for name, one in (others or {}).items()}
    return {HOME: run.processors - sum(more.values()), **more}


def steps_of_model(model: Simulation) -> list[Step]:
    """Return the steps of all clusters of a simulation together, until now."""
    return together(
        [Step(0, one.processors, one.processors)]
        if one.timeline is None
        else [Step(*step) for step in one.timeline.history]
        for one in model.clusters.values()
    )


def steps_of_run(run: Run) -> list[Step]:
    """Return the steps of all clusters of a finished run together.

    Of what was down, the folder of a run holds what was asked for with a time; failures at random
    are not in it.
    """
    found = []
    for name, processors in clusters_of(run).items():
        sizes = run.platform.get(name, {}).get("sizes", ())
        outages = asked_outages(run, name)
        times = {0, *(at for at, *_ in sizes)}
        times |= {second for begin, end, _ in outages for second in (begin, end)}
        steps = []
        for at in sorted(times):
            size = next((after for when, _, after in reversed(sizes) if when <= at), processors)
            down = [count for begin, end, count in outages if begin <= at < end]
            lost = sum(size if count is None else count for count in down)
            steps.append(Step(at, size, max(0, size - lost)))
        found.append(steps)
    return together(found)


def together(clusters: Iterable[Sequence[Step]]) -> list[Step]:
    """Return the sums over clusters; the steps of each are in order, the first at second 0."""
    found = [np.array(steps, np.int64) for steps in clusters]
    times = np.unique(np.concatenate([steps[:, 0] for steps in found]))
    totals = np.zeros((len(times), 2), np.int64)
    for steps in found:
        totals += steps[np.searchsorted(steps[:, 0], times, side="right") - 1, 1:]
    return [
        Step(at, size, up) for at, (size, up) in zip(times.tolist(), totals.tolist(), strict=True)
    ]


def at_second(steps: Sequence[Step], second: int) -> Step:
    """Return the step that holds at a second."""
    place = bisect_right(steps, second, key=lambda step: step.at)
    return steps[max(place - 1, 0)]


def averages(steps: Sequence[Step], edges: Int64s) -> tuple[Floats, Floats]:
    """Return size and processors that are up, averaged over bins of time, each shape (bins,)."""
    times = np.array([one.at for one in steps])
    found = []
    for values in ([one.size for one in steps], [one.up for one in steps]):
        # The area up to each edge: from the first step on, and backwards before it.
        place = np.maximum(np.searchsorted(times, edges, side="right") - 1, 0)
        level = np.array(values, float)
        area = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(times))])
        found.append(np.diff(area[place] + level[place] * (edges - times[place])) / np.diff(edges))
    return found[0], found[1]
