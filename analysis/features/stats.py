"""Workload statistics of traces and runs: read them, measure all features, return data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hpcrowd.analysis.features import arrivals, sizes, users
from hpcrowd.analysis.features import bags as bag_features
from hpcrowd.analysis.features import locality as repetition
from hpcrowd.analysis.features.feature import Feature, Features, Group, value_of
from hpcrowd.analysis.features.workload import Settings, Which, Workload
from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.traces.formats.common.base import FormatOptions

#: All groups, in the order in which they are shown.
GROUPS: tuple[Group, ...] = (
    arrivals.GROUP,
    sizes.GROUP,
    repetition.GROUP,
    bag_features.GROUP,
    users.GROUP,
)

#: All features by name.
FEATURES: dict[str, Feature] = {
    feature.name: feature for group in GROUPS for feature in group.features
}


def read_workload(
    path: str | os.PathLike[str],
    which: Which = "completed",
    settings: Settings | None = None,
    options: FormatOptions | None = None,
) -> Workload:
    """Return the workload of a trace, or of a folder of results.

    Parameters
    ----------
    path
        A trace in any format, or a folder that ``hpcrowd replay --out`` wrote.
    which, settings
        As for :meth:`hpcrowd.analysis.features.workload.Workload.from_trace`.
    options
        What the file of a trace itself does not say.

    Raises
    ------
    TraceError, ResultsError
        When it cannot be read, or has no job to measure.
    """
    from hpcrowd.analysis.results import read_results
    from hpcrowd.environment.traces.formats.registry import read_trace

    place = Path(path)
    if place.is_dir():
        return Workload.from_run(
            read_results(place, options), which, name=place.name, settings=settings
        )
    trace = read_trace(place, options=options)
    if not len(trace):
        raise TraceError(f"{place}: has no jobs; there is nothing to measure")
    return Workload.from_trace(trace, which, name=place.name, settings=settings)


def measure_all(
    workloads: Iterable[Workload],
    progress: Callable[[str, int, int], Any] | None = None,
) -> list[Features]:
    """Measure all features of several workloads.

    Parameters
    ----------
    workloads
        The workloads.
    progress
        Called before each feature with its title, the number done and the total.
    """
    all_of_them, wanted = list(workloads), list(FEATURES.values())
    total = len(all_of_them) * len(wanted)
    found = []
    for place, workload in enumerate(all_of_them):
        values = {}
        for done, feature in enumerate(wanted, place * len(wanted)):
            if progress is not None:
                progress(f"{workload.name}: {feature.title}", done, total)
            values[feature.name] = value_of(feature, workload)
        found.append(Features(workload, values))
    return found


def stats_json(measured: Sequence[Features]) -> dict[str, Any]:
    """Return the measurements as plain data, fit for JSON; names of features carry units."""
    traces = []
    for features in measured:
        workload = features.workload
        facts = {
            "name": workload.name,
            "sha256": workload.sha256 or None,
            "jobs": len(workload),
            "left_out": dict(workload.left_out),
            "notes": list(workload.notes),
            "remarks": list(workload.remarks),
            "clock_note": workload.clock.note,
            "processors_of_machine": workload.machine,
            "settings": asdict(workload.settings),
        }
        traces.append(facts | features.to_json())
    return {"traces": traces}
