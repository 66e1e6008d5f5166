"""What other logs say of a wait: bounds for a site whose own record is too short to learn from.

A median regression on a few features gives the middle of the wait. Around it lie the errors that
such regressions made on logs that they had not seen: each log was foreseen from the others, so that
the errors hold what differs between sites, not only between jobs. They are given in three classes
of the middle, as quantiles, in ln(1 + minutes). The numbers are in ``prior.toml``, with the command
that makes them again; they are of records of two hours to a day.

Sources: quantile regression of Koenker and Bassett, Econometrica 46, 1978; errors of what was left
out, as in the jackknife+ of Barber, Candes, Ramdas and Tibshirani, Annals of Statistics 49, 2021,
with whole logs in the place of single cases.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcrowd.analysis.curves import Floats, log_minutes
from hpcrowd.analysis.forecast.hindsight import FEATURES

#: The numbers.
FILE = Path(__file__).with_name("prior.toml")

#: Features of jobs that wait, and of those just submitted (our choice, on KTH-SP2, HPC2N and
#: LANL-CM5: more features are worse on the log that is left out).
WAITING = ("simulated mean", "waited", "request", "similar jobs")
FRESH = ("simulated mean", "request", "similar jobs", "width")

#: Levels of the quantiles of errors, and classes of the middle that have their own.
LEVELS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
CLASSES = 3

#: Jobs below which a class has the errors of all (our choice).
LEAST = 20

#: Most cases of a log that the middle is fitted to, and pull of its slopes towards 0 (our choice).
MOST_FITTED, PULL = 600, 1e-3


class Seen(NamedTuple):
    """Jobs of a log, and their waits."""

    features: Floats  #: See :data:`~hpcrowd.analysis.forecast.hindsight.FEATURES`, (jobs, features)
    wait: Floats  #: Remaining waits, s, shape (jobs,).
    fresh: NDArray[np.bool_]  #: Whether a job was just submitted.
    weight: Floats  #: Of each job.


@dataclass(frozen=True)
class Middle:
    """The middle of the wait of jobs of a kind, and the errors around it."""

    features: tuple[str, ...]  #: Names of the features.
    slopes: tuple[float, ...]  #: First what is added, then one for each feature.
    ends: tuple[float, ...]  #: Ends of the classes of the middle but the last, ln(1 + minutes).
    errors: tuple[tuple[float, ...], ...]  #: Quantiles at :data:`LEVELS`, by class.

    def middle(self, features: Floats) -> Floats:
        """Return the middle of the waits, ln(1 + minutes), shape (jobs,)."""
        return _middle(np.array(self.slopes), _picked(features, self.features))

    def bounds(self, features: Floats, levels: Floats) -> Floats:
        """Return quantiles of the waits, ln(1 + minutes), shape (jobs, levels)."""
        middle = self.middle(features)
        errors = np.array([np.interp(levels, LEVELS, one) for one in self.errors])
        found: Floats = np.maximum(middle[:, None] + errors[_class(middle, self.ends)], 0)
        return found


@dataclass(frozen=True)
class Prior:
    """What other logs say of waits."""

    waiting: Middle  #: Of jobs that wait.
    fresh: Middle  #: Of those just submitted.
    #: Shortest record, s, and share of starts within 90 % bounds on other logs with such records.
    held: tuple[tuple[int, float], ...] = ()

    def bounds(self, features: Floats, fresh: NDArray[np.bool_], levels: Floats) -> Floats:
        """Return quantiles of the waits, ln(1 + minutes), shape (jobs, levels)."""
        found = np.empty((len(features), len(levels)))
        for kind, which in ((self.waiting, ~fresh), (self.fresh, fresh)):
            found[which] = kind.bounds(features[which], levels)
        return found

    def share_held(self, record: int) -> float:
        """Return the share of starts in 90 % bounds on other logs with records as short."""
        known = max(record, self.held[0][0])
        return max((length, share) for length, share in self.held if length <= known)[1]


@cache
def known_prior() -> Prior:
    """Return the prior of the file."""
    found = tomllib.loads(FILE.read_text(encoding="utf-8"))
    waiting, fresh = (
        Middle(
            tuple(one["features"]), tuple(one["slopes"]), tuple(one["ends"]),
            tuple(map(tuple, one["errors"])),
        )
        for one in (found["waiting"], found["fresh"])
    )  # fmt: skip
    return Prior(waiting, fresh, tuple((one["record_s"], one["in_90"]) for one in found["held"]))


def fit_prior(logs: Sequence[Seen]) -> Prior:
    """Return the prior of some logs, two or more, which count the same each."""
    return Prior(_fit(logs, WAITING, fresh=False), _fit(logs, FRESH, fresh=True))


def _fit(logs: Sequence[Seen], names: Sequence[str], *, fresh: bool) -> Middle:
    parts = []
    for log in logs:
        which = log.fresh == fresh
        if which.any():
            weight = log.weight[which] / log.weight[which].sum()
            parts.append(
                (_picked(log.features[which], names), log_minutes(log.wait[which]), weight)
            )
    middles, errors = [], []
    for place, (features, wait, _) in enumerate(parts):
        middle = _middle(_slopes([*parts[:place], *parts[place + 1 :]]), features)
        middles.append(middle)
        errors.append(wait - middle)
    middle, error = np.concatenate(middles), np.concatenate(errors)
    weight = np.concatenate([one for *_, one in parts])
    ends = _quantiles(middle, weight, np.arange(1, CLASSES) / CLASSES)
    kind = _class(middle, ends)
    rows = []
    for one in range(CLASSES):
        which = kind == one
        if which.sum() < LEAST:
            which[:] = True
        rows.append(_rounded(_quantiles(error[which], weight[which], LEVELS)))
    return Middle(tuple(names), _rounded(_slopes(parts)), _rounded(ends), tuple(rows))


def _slopes(parts: Sequence[tuple[Floats, Floats, Floats]]) -> Floats:
    """Return the constant and the slopes of the median of waits."""
    from sklearn.linear_model import QuantileRegressor

    steps = [max(1, -(-len(wait) // MOST_FITTED)) for _, wait, _ in parts]
    features, wait = (
        np.concatenate([part[column][::step] for part, step in zip(parts, steps, strict=True)])
        for column in (0, 1)
    )
    weight = np.concatenate(
        [part[2][::step] / part[2][::step].sum() for part, step in zip(parts, steps, strict=True)]
    )
    mean, spread = features.mean(axis=0), features.std(axis=0) + 1e-9
    fitted = QuantileRegressor(quantile=0.5, alpha=PULL, solver="highs").fit(
        (features - mean) / spread, wait, sample_weight=weight / weight.mean()
    )
    slopes = fitted.coef_ / spread
    return np.concatenate(([fitted.intercept_ - (slopes * mean).sum()], slopes))


def _middle(slopes: Floats, picked: Floats) -> Floats:
    found: Floats = np.maximum(slopes[0] + picked @ slopes[1:], 0)
    return found


def _picked(features: Floats, names: Sequence[str]) -> Floats:
    order = list(FEATURES)
    return features[:, [order.index(name) for name in names]]


def _class(middle: Floats, ends: Sequence[float] | Floats) -> NDArray[np.intp]:
    return np.searchsorted(np.asarray(ends), middle, "right")


def _quantiles(values: Floats, weight: Floats, levels: Sequence[float] | Floats) -> Floats:
    """Return quantiles of values with weights."""
    order = np.argsort(values)
    below = np.cumsum(weight[order]) / weight.sum()
    return values[order][np.minimum(np.searchsorted(below, levels), len(values) - 1)]


def _rounded(values: Floats) -> tuple[float, ...]:
    return tuple(round(float(one), 3) for one in values)


def written(prior: Prior, source: str) -> str:
    """Return a prior as TOML, with a line that says where it is from."""
    lines = [f"# {source}"]
    for name, one in (("waiting", prior.waiting), ("fresh", prior.fresh)):
        lines += [
            "", f"[{name}]", f"features = {list(one.features)}".replace("'", '"'),
            f"slopes = {list(one.slopes)}", f"ends = {list(one.ends)}",
            "errors = [", *(f"    {list(row)}," for row in one.errors), "]",
        ]  # fmt: skip
    for record, share in prior.held:
        lines += ["", "[[held]]", f"record_s = {record}", f"in_90 = {share}"]
    return "\n".join(lines) + "\n"
