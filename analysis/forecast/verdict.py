"""What a judge finds: coverage, sharpness and scores of forecasts, from cases in the order of time.

Waits are judged in ln(1 + minutes), so that a factor counts the same for short and long ones. Two
kinds of jobs are judged: those that wait at a moment, by their remaining wait, and those just
submitted, by their whole wait; only for the latter QBETS says something.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.curves import Floats, log_minutes
from hpcrowd.analysis.forecast.conformal import (
    GRID,
    LEVELS,
    OpenForecasts,
    Recalibration,
    TrueLevels,
)
from hpcrowd.analysis.forecast.hindsight import Hindsight
from hpcrowd.analysis.forecast.judge import LEADS, MEASURES, Case, Drift, Subject, in_order
from hpcrowd.analysis.forecast.qbets import QBETS, bounds_over
from hpcrowd.analysis.forecast.scores import (
    covered,
    crps,
    mean_difference,
    pinball,
    quantiles,
)
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.quantities import format_duration
from hpcrowd.environment.streams import Streams

if TYPE_CHECKING:
    from hpcrowd.analysis.paired import Estimate

#: Moments between two fits of the forest.
REFIT = 20

#: Step of the offsets of bounds: smaller than that for single jobs, as those of one moment are much
#: alike (our choice, on KTH-SP2, LANL-CM5 and HPC2N).
RATE = 0.005

#: Bounds of waits that are compared, by name.
BOUNDS = ("futures", "learned", "recalibrated")

#: Forecasters of load, queue and waits.
FORECASTERS = ("futures", "corrected", "last week", "clairvoyant")

#: Longest wait that is distinguished, s: raw futures know none beyond their horizon.
LONGEST = 60 * DAY

#: Upper bounds that are compared with others.
UPPER = 0.95

#: What upper bounds are compared with: QBETS with jobs clustered by an attribute, and one binomial
#: bound for each queue, of all its waits, which neither clusters nor forgets.
OTHERS: dict[str, dict[str, Any]] = {
    "QBETS by time": {"attribute": "time"},
    "QBETS by area": {"attribute": "area"},
    "binomial by queue": {"attribute": "none", "adapts": False},
}


@dataclass(frozen=True)
class BoundScores:
    """How good bounds of waits were."""

    jobs: int  #: How many were judged.
    #: Share of waits within the bounds, both ends included.
    cover90: float
    cover50: float
    #: Share of waits below the lower and above the upper end of the 50 % bounds: where many waits
    #: equal an end, the bounds hold more than half, and neither share is above a quarter.
    below50: float
    above50: float
    #: Mean width, ln minutes.
    width90: float
    width50: float
    pinball: float  #: Mean loss over all levels, ln minutes.


@dataclass(frozen=True)
class UpperScores:
    """How good upper bounds of whole waits were."""

    jobs: int  #: How many were judged.
    cover: float  #: Share of waits at or below the bound.
    mean: float  #: Geometric mean of 1 min + bound, less 1 min, s.
    #: The same once all bounds are multiplied by what makes the share equal to the level.
    equal: float
    pinball: float  #: Mean loss at the level, ln minutes.


@dataclass(frozen=True)
class LeadScores:
    """How good forecasts of a number some time ahead were."""

    cases: int  #: How many.
    crps: dict[str, float]  #: Mean score by forecaster.
    #: Score of the corrected futures less that of last week, with its interval; negative is better.
    gain: Estimate


@dataclass
class Verdict:
    """What a judge finds."""

    moments: int  #: Moments that count.
    #: By kind of bounds, for waiting jobs and those just submitted: ``all``, ``waiting``,
    #: ``fresh``.
    waits: dict[str, dict[str, BoundScores]] = field(default_factory=dict)
    #: Upper bounds for jobs just submitted, by forecaster.
    upper: dict[str, UpperScores] = field(default_factory=dict)
    #: By measure and lead, s.
    leads: dict[str, dict[int, LeadScores]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        from dataclasses import asdict

        return {
            "moments": self.moments,
            "levels": list(LEVELS),
            "waits": {k: {n: asdict(one) for n, one in v.items()} for k, v in self.waits.items()},
            "upper_level": UPPER,
            "upper": {name: asdict(one) for name, one in self.upper.items()},
            "leads": {
                measure: {
                    str(lead): {
                        "cases": one.cases,
                        "crps": one.crps,
                        "gain_over_last_week": [one.gain.mean, one.gain.low, one.gain.high],
                    }
                    for lead, one in found.items()
                }
                for measure, found in self.leads.items()
            },
        }


def verdict(subject: Subject, cases: Sequence[Case], warm_up: int) -> Verdict:
    """Judge cases, in any order.

    The first moments, those of the warm-up, do not count; corrections learn from them.
    """
    cases = in_order(cases)
    found = Verdict(len(cases) - warm_up)
    bounds = _bounds(cases, subject.seed)
    waited = [(one.start - one.now).astype(np.float64) for one in cases]
    for kind in ("all", "waiting", "fresh"):
        picked = [
            np.ones(len(one.fresh), bool) if kind == "all" else one.fresh == (kind == "fresh")
            for one in cases
        ]
        came = np.concatenate(
            [w[k] for w, k in zip(waited[warm_up:], picked[warm_up:], strict=True)]
        )
        if not len(came):
            continue
        for name in BOUNDS:
            said = np.concatenate(
                [b[k] for b, k in zip(bounds[name][warm_up:], picked[warm_up:], strict=True)]
            )
            found.waits.setdefault(name, {})[kind] = bound_scores(said, came)
    found.upper = _upper(subject, cases[warm_up:], bounds["recalibrated"][warm_up:])
    found.leads = _leads(cases, warm_up, subject.seed)
    return found


def _bounds(cases: Sequence[Case], seed: int) -> dict[str, list[Floats]]:
    """Return the bounds of all cases, each from what was known then, s from then."""
    hindsight, conformal, levels = Hindsight(seed=seed), Recalibration(rate=RATE), TrueLevels()
    found: dict[str, list[Floats]] = {name: [] for name in BOUNDS}
    still_open = OpenForecasts(conformal)
    for place, case in enumerate(cases):
        raw = quantiles((case.raw - case.now).T, LEVELS)
        found["futures"].append(np.minimum(raw, LONGEST))
        learned = found["futures"][-1]
        if hindsight.ready:
            if place % REFIT == 0 or hindsight.fits == 0:
                hindsight.fit(case.now)
            learned = hindsight.bounds(case.features, case.now)
        still_open.learn(case.now)
        found["learned"].append(learned)
        recalibrated = conformal.adjusted(learned)
        found["recalibrated"].append(recalibrated)
        if hindsight.fits:
            fresh = case.fresh
            said = hindsight.bounds(case.features[fresh], case.now, GRID)
            recalibrated[fresh] = levels.bounds(said, case.now)
            levels.add(said, case.now, case.start[fresh])
            still_open.add(learned[~fresh], case.now, case.start[~fresh])
        hindsight.add(case.features, case.now, case.start)
    return found


def bound_scores(said: Floats, came: Floats) -> BoundScores:
    """Return the scores of bounds, shape (jobs, levels), of waits, shape (jobs,), in s."""
    logs = log_minutes(np.minimum(said, LONGEST))
    return BoundScores(
        jobs=len(came),
        cover90=covered(said[:, 0], said[:, 4], came),
        cover50=covered(said[:, 1], said[:, 3], came),
        below50=float((came < said[:, 1]).mean()),
        above50=float((came > said[:, 3]).mean()),
        width90=float((logs[:, 4] - logs[:, 0]).mean()),
        width50=float((logs[:, 3] - logs[:, 1]).mean()),
        pinball=float(pinball(logs, log_minutes(came), LEVELS).mean()),
    )


def _upper(
    subject: Subject, cases: Sequence[Case], bounds: Sequence[Floats]
) -> dict[str, UpperScores]:
    """Return how upper bounds of jobs just submitted compare with those of others."""
    fresh = [int(one.rows[one.fresh][0]) for one in cases]
    log = subject.jobs
    came = (log.recorded_start - log.recorded_submit)[fresh].astype(np.float64)
    said = {
        "recalibrated": np.array(
            [b[one.fresh][0, -1] for b, one in zip(bounds, cases, strict=True)]
        )
    }
    order = np.argsort(log.recorded_submit, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    for name, how in OTHERS.items():
        upper = bounds_over(
            QBETS(UPPER, **how),
            log.recorded_submit[order],
            (log.recorded_start - log.recorded_submit)[order],
            log.processors[order],
            np.maximum(log.requested_time[order], 0),
            log.queue[order],
        )
        said[name] = upper[place[fresh]]
    known = np.all([np.isfinite(one) for one in said.values()], axis=0)
    return {name: _upper_score(one[known], came[known]) for name, one in said.items()}


def _upper_score(said: Floats, came: Floats) -> UpperScores:
    logs, reached = log_minutes(said), log_minutes(came)
    # Bounds of 0 stay; the others are moved together until the share is the level.
    gap = np.quantile(reached - logs, UPPER, method="inverted_cdf") if len(came) else 0.0
    equal = np.maximum(logs + gap, 0)
    loss = pinball(logs[:, None], reached, (UPPER,))
    return UpperScores(
        jobs=len(came),
        cover=float((came <= said).mean()),
        mean=float(60 * np.expm1(logs.mean())),
        equal=float(60 * np.expm1(equal.mean())),
        pinball=float(loss.mean()),
    )


def _leads(cases: Sequence[Case], warm_up: int, seed: int) -> dict[str, dict[int, LeadScores]]:
    """Return the scores of load, queue and waits at each lead."""
    found: dict[str, dict[int, LeadScores]] = {}
    for measure in MEASURES:
        most = 1.0 if measure == "load" else np.inf
        for which, lead in enumerate(LEADS):
            drift, learned = Drift(), 0
            scores: dict[str, list[float]] = {}
            for place, case in enumerate(cases):
                while learned < place and cases[learned].now + lead <= case.now:
                    _learn_drift(drift, cases[learned], measure, which)
                    learned += 1
                came, before = case.came[measure][which], case.before[measure][which]
                members = case.members[measure][which]
                members = members[np.isfinite(members)]
                if place < warm_up or not np.isfinite([came, before]).all() or len(members) < 2:
                    continue
                corrected = drift.corrected(members, 0.0, most)
                for name, value in (
                    ("futures", float(crps(members[None], [came])[0])),
                    ("corrected", float(crps(corrected[None], [came])[0])),
                    ("last week", abs(before - came)),
                    ("clairvoyant", abs(case.clairvoyant[measure][which] - came)),
                ):
                    scores.setdefault(name, []).append(value)
            if not scores:
                continue
            gain = mean_difference(
                scores["corrected"], scores["last week"],
                Streams(seed).generator("gain", measure, lead),
            )  # fmt: skip
            means = {name: float(np.nanmean(values)) for name, values in scores.items()}
            found.setdefault(measure, {})[lead] = LeadScores(len(scores["futures"]), means, gain)
    return found


def _learn_drift(drift: Drift, case: Case, measure: str, which: int) -> None:
    members, came = case.members[measure][which], case.came[measure][which]
    members = members[np.isfinite(members)]
    if len(members) and np.isfinite(came):
        drift.learn(members, float(came))


def tables(found: Verdict) -> list[tuple[str, tuple[str, ...], list[list[str]]]]:
    """Return tables for people: title, heading, and rows of text."""
    tables: list[tuple[str, tuple[str, ...], list[list[str]]]] = []
    heading: tuple[str, ...]
    rows = [
        [
            name, kind, f"{one.jobs:,}", f"{100 * one.cover90:.1f} %", f"{100 * one.cover50:.1f} %",
            f"{100 * one.below50:.1f} %", f"{100 * one.above50:.1f} %", f"{one.width90:.2f}",
            f"{one.width50:.2f}", f"{one.pinball:.3f}",
        ]
        for name, kinds in found.waits.items()
        for kind, one in kinds.items()
    ]  # fmt: skip
    heading = (
        "bounds", "jobs", "number", "in 90 %", "in 50 %", "below", "above", "width", "of 50 %",
        "loss",
    )  # fmt: skip
    tables.append((f"Waits at {found.moments} moments, in ln(1 + minutes)", heading, rows))
    rows = [
        [
            name, f"{one.jobs:,}", f"{100 * one.cover:.1f} %", format_duration(one.mean),
            format_duration(one.equal), f"{one.pinball:.3f}",
        ]
        for name, one in found.upper.items()
    ]  # fmt: skip
    heading = ("upper bound", "jobs", "waits below", "mean", "at equal coverage", "loss")
    tables.append((f"{100 * UPPER:g} % bounds of jobs just submitted", heading, rows))
    rows = []
    for measure, leads in found.leads.items():
        for lead, one in leads.items():
            gain = one.gain
            interval = "" if gain.low is None else f" ({gain.low:.3f} to {gain.high:.3f})"
            rows.append(
                [
                    measure, format_duration(lead), f"{one.cases:,}",
                    *(f"{one.crps[name]:.3f}" for name in FORECASTERS),
                    f"{gain.mean:.3f}{interval}",
                ]
            )  # fmt: skip
    heading = ("measure", "ahead", "cases", *FORECASTERS, "corrected less last week")
    tables.append(("CRPS: load as a share, queue in jobs, waits in ln(1 + minutes)", heading, rows))
    return tables
