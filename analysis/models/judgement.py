"""Judge a model: compare what it generates with the trace, by features and distances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from hpcrowd.analysis.features.feature import Feature, Features, Value, measure
from hpcrowd.analysis.features.report import format_value, pictures_of
from hpcrowd.analysis.features.stats import FEATURES, GROUPS, VARIABLES, Apart, distributions_of
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.html import html_page, small_print, table_of
from hpcrowd.analysis.models.generation import generate
from hpcrowd.analysis.models.model import WorkloadModel
from hpcrowd.analysis.results import versions
from hpcrowd.environment.errors import QuantityError

#: Number of generated workloads by default.
REPLICATIONS = 20


@dataclass(frozen=True)
class Replication:
    """The features of the workload generated from a seed, by name.

    ``distributions`` has the distance of each distribution to that of the trace, by name of
    :data:`analysis.features.stats.VARIABLES`, or the reason why it is unknown.
    """

    seed: int
    features: dict[str, Value]
    distributions: dict[str, Apart | str]


@dataclass(frozen=True)
class Spread:
    """Mean and spread of a number over the ``count`` replications in which it is available.

    The sd is with n - 1, None for a single one; ``least`` and ``most`` are the smallest and
    largest.
    """

    mean: float
    sd: float | None
    least: float
    most: float
    count: int

    @classmethod
    def of(cls, numbers: Iterable[float | None]) -> Spread | None:
        """Return the spread of the available numbers; None if there are none."""
        found = np.array([number for number in numbers if number is not None], np.float64)
        if not len(found):
            return None
        sd = float(found.std(ddof=1)) if len(found) > 1 else None
        return cls(float(found.mean()), sd, float(found.min()), float(found.max()), len(found))


@dataclass(frozen=True)
class Task:
    """What to replicate, as one object that can be sent to other processes.

    Workloads are generated from the model and compared with the trace.
    """

    model: WorkloadModel
    trace: Workload

    def __call__(self, seed: int) -> Replication:
        """Return the replication of a seed."""
        made = generated(self.model, self.trace, seed)
        features = dict(measure(made, FEATURES.values()))
        return Replication(seed, features, distributions_of(self.trace, made))


@dataclass(frozen=True)
class Judgement:
    """A model compared with a trace.

    Attributes
    ----------
    model
        The model.
    trace
        Features of the trace.
    replications
        In the order of their seeds.
    """

    model: WorkloadModel
    trace: Features
    replications: Sequence[Replication] = field(repr=False)

    def spread(self, name: str) -> Spread | None:
        """Return mean and spread of a feature; None if it is never available."""
        return Spread.of(one.features[name].number for one in self.replications)

    def reason(self, name: str) -> str:
        """Return why a feature is not available in a replication; empty if it always is."""
        return next(filter(None, (one.features[name].reason for one in self.replications)), "")

    def ks(self, name: str) -> Spread | None:
        """Return mean and spread of a KS distance; None if there is none."""
        return Spread.of(one.ks for one in self._apart(name))

    def wasserstein(self, name: str) -> Spread | None:
        """Return mean and spread of a Wasserstein distance, over the mean of the trace."""
        return Spread.of(one.wasserstein_relative for one in self._apart(name))

    def _apart(self, name: str) -> list[Apart]:
        found = (one.distributions[name] for one in self.replications)
        return [one for one in found if not isinstance(one, str)]

    def to_json(self) -> dict[str, Any]:
        """Return the whole judgement as plain data, fit for JSON."""

        def plain(spread: Spread | None) -> dict[str, Any] | None:
            return None if spread is None else vars(spread)

        return {
            "model": self.model.name,
            "arrivals": self.model.arrivals.name,
            "trace": self.trace.workload.name,
            "replications": [one.seed for one in self.replications],
            "features": {
                name: {
                    "trace": value.number,
                    "generated": plain(self.spread(name)),
                    "not_available": value.reason or self.reason(name) or None,
                }
                for name, value in self.trace.items()
            },
            "distances": {
                name: {
                    "ks": plain(self.ks(name)),
                    "wasserstein_relative": plain(self.wasserstein(name)),
                }
                for name in VARIABLES
            },
        }


def generated(model: WorkloadModel, trace: Workload, seed: int) -> Workload:
    """Return a generated workload with as many jobs as a trace, measured with its settings."""
    made = generate(model, jobs=len(trace), processors=trace.machine, seed=seed)
    return made.workload(trace.settings)


def judge(
    model: WorkloadModel,
    trace: Workload,
    *,
    seeds: int = REPLICATIONS,
    seed: int = 0,
    each: Callable[[Task, Sequence[int]], Iterable[Replication]] | None = None,
    progress: Callable[[str, int, int], Any] | None = None,
) -> Judgement:
    """Compare the workloads of a model with a trace.

    Parameters
    ----------
    model
        The model.
    trace
        The workload that it was fitted to, or another one.
    seeds
        Number of workloads to generate, each with as many jobs as the trace.
    seed
        Seed of the first; the others follow.
    each
        Runs a task for each seed, in any order; by default in this process, one by one.
    progress
        Called before each replication with a label, the number done and the total.

    Raises
    ------
    QuantityError
        When there is nothing to replicate.
    """
    if seeds < 1:
        raise QuantityError(f"seeds {seeds}: must be 1 or more")
    each_seed = range(seed, seed + seeds)
    task = Task(model, trace)
    if progress is not None:
        progress(f"{trace.name}: measured", 0, seeds)
    measured = measure(trace, FEATURES.values())
    found = []
    for one in each(task, each_seed) if each is not None else map(task, each_seed):
        found.append(one)
        if progress is not None:
            progress("generated and measured", len(found), seeds)
    return Judgement(model, measured, tuple(sorted(found, key=lambda one: one.seed)))


#: Generated workloads shown next to the trace in pictures.
SHOWN = 2


def format_spread(feature: Feature, found: Spread | None) -> tuple[str, str]:
    """Return mean and standard deviation of a feature as text; empty if there is none."""
    if found is None:
        return "", ""
    spread = "" if found.sd is None else format_value(feature, Value(found.sd))
    return format_value(feature, Value(found.mean)), spread


def within(trace: float | None, found: Spread | None) -> str:
    """Return whether the trace lies within the replications, as text; empty if unknown."""
    if trace is None or found is None or found.count < 2:
        return ""
    return "inside" if found.least <= trace <= found.most else "outside"


def judgement_html(judgement: Judgement, *, again: str = "") -> str:
    """Return the report as one HTML file that has no scripts and loads nothing.

    Parameters
    ----------
    judgement
        The judgement.
    again
        Command that makes the report again.
    """
    model, trace = judgement.model, judgement.trace.workload
    shown = [generated(model, trace, one.seed) for one in judgement.replications[:SHOWN]]
    workloads = [trace, *shown]
    count = len(judgement.replications)
    lead = [
        f"Model {model.name} with arrivals {model.arrivals.name}: {count} generated workloads of "
        f"{len(trace):,} jobs compared with {trace.name}. Inside: the trace lies between the "
        "smallest and the largest of them.",
        *model.notes,
    ]
    rows = zip(distance_rows(judgement, "not available"), VARIABLES.values(), strict=True)
    distances = table_of(
        ("KS, mean", "spread", "Wasserstein over the trace's mean"),
        [(title, cells, variable.unit) for (title, *cells), variable in rows],
        "unit",
    )
    parts = ["<h2>Distances of distributions</h2>", distances]
    for group in GROUPS:
        parts.append(f"<h2>{escape(group.title)}</h2>")
        parts += [*pictures_of(group, workloads), _features(judgement, group.features)]
    parts.append(small_print([], versions(), [again]))
    return html_page(f"{model.name} compared with {trace.name}", lead, parts)


def _features(judgement: Judgement, features: Iterable[Feature]) -> str:
    rows = []
    for one in features:
        value, found = judgement.trace[one.name], judgement.spread(one.name)
        mean, sd = format_spread(one, found)
        mean = mean or f"not available: {judgement.reason(one.name)}"
        cells = (format_value(one, value), mean, sd, within(value.number, found))
        rows.append((one.title, cells, one.definition))
    return table_of(("trace", "generated, mean", "spread", "trace is"), rows, "definition")


def distance_rows(judgement: Judgement, unknown: str) -> list[list[str]]:
    """Return a row for each variable: title, KS distance, its spread, and Wasserstein distance.

    ``unknown`` is what stands for a KS distance that is not known.
    """
    rows = []
    for name, variable in VARIABLES.items():
        ks, moved = judgement.ks(name), judgement.wasserstein(name)
        rows.append(
            [
                variable.title,
                unknown if ks is None else f"{ks.mean:.3f}",
                "" if ks is None or ks.sd is None else f"{ks.sd:.3f}",
                "" if moved is None else f"{100 * moved.mean:,.1f} %",
            ]
        )
    return rows
