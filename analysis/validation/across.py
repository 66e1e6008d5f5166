"""Validations of several logs as one: ranks, and claims that hold against chance.

Claims are made with care. A model is *better with confidence* in a measure if it is better than
each other model there: the largest of the p values counts (an intersection-union test, which needs
no correction for the number of models). It is *worse with confidence* than the best one, chosen
afterwards among all, if that holds after correction for their number. All p values of a table are
corrected for the number of logs and measures (Holm, Scandinavian Journal of Statistics 6, 1979).
They are those of a normal distribution with the spread of the resamples, since 1,000 resamples do
not show smaller ones than 0.001.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import norm

from hpcrowd.analysis.validation.validation import RANKED, Validation

#: Largest p value of a claim after correction.
LEVEL = 0.05


@dataclass(frozen=True)
class Claim:
    """How a model compares with others in one measure of one log."""

    #: Where.
    log: str
    measure: str
    #: Its score, and the best one of the others.
    value: float
    best: float
    rival: str  #: Name of the other model that is best.
    #: p values, corrected: that it is no better than some other model; that it is no worse than the
    #: best one.
    better: float
    worse: float

    @property
    def verdict(self) -> str:
        """``better``, ``worse``, or ``=`` where chance cannot be excluded."""
        if self.better < LEVEL:
            return "better"
        return "worse" if self.worse < LEVEL else "="


@dataclass(frozen=True)
class Across:
    """Validations of several logs."""

    logs: Mapping[str, Validation]  #: By name of the log.

    @property
    def models(self) -> list[str]:
        """Names of the models in all logs, best mean rank over the logs first."""
        names = set.intersection(*(set(found.scores) for found in self.logs.values()))
        return sorted(names, key=lambda name: (self.mean_rank(name), name))

    def mean_rank(self, model: str) -> float:
        """Return the mean over the logs of a model's mean rank over the measures."""
        return float(np.mean([found.mean_rank(model) for found in self.logs.values()]))

    def rank(self, model: str, measure: str) -> float:
        """Return the mean rank of a model in a measure over the logs; NaN if it answers nowhere."""
        ranks = [
            score.rank
            for found in self.logs.values()
            if (score := found.scores[model].get(measure)) is not None and score.rank is not None
        ]
        return float(np.mean(ranks)) if ranks else float("nan")

    def claims(self, model: str, rivals: Collection[str]) -> list[Claim]:
        """Compare a model with others, the rivals, in each measure of each log."""
        rows: list[Claim] = []
        for log, found in self.logs.items():
            for measure, statistic in RANKED.items():
                mine = found.drawn[model].get(measure)
                others = {
                    name: drawn[measure][statistic]
                    for name in rivals
                    if measure in (drawn := found.drawn[name]) and name != model
                }
                if mine is None or not others:
                    continue
                values = mine[statistic]
                best = min(others, key=lambda name: (float(others[name][0]), name))
                better = max(_chance(values - each) for each in others.values())
                worse = min(1.0, len(others) * _chance(others[best] - values))
                scores = float(values[0]), float(others[best][0])
                rows.append(Claim(log, measure, *scores, best, better, worse))
        corrected = (holm([getattr(row, name) for row in rows]) for name in ("better", "worse"))
        return [
            replace(row, better=better, worse=worse)
            for row, better, worse in zip(rows, *corrected, strict=True)
        ]


def holm(values: list[float]) -> list[float]:
    """Return p values corrected for their number, in the same order."""
    found, least = [0.0] * len(values), 0.0
    for place, row in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        least = max(least, min(1.0, (len(values) - place) * values[row]))
        found[row] = least
    return found


def _chance(difference: np.ndarray) -> float:
    """Return the probability of a difference as far below 0 by chance: the value, and resamples."""
    drawn = difference[1:][np.isfinite(difference[1:])]
    spread = float(drawn.std()) if len(drawn) else 0.0
    if spread == 0:
        return 0.0 if difference[0] < 0 else 1.0
    return float(norm.cdf(difference[0] / spread))


#: Columns of the table of ranks, before those of the measures.
RANK_HEADING = ("model", "mean rank", "better", "worse", "=")


def rank_rows(found: Across) -> list[list[str]]:
    """Return a row for each model: ranks, and its claims against all others.

    The columns are :data:`RANK_HEADING`, then the mean rank in each measure of :data:`RANKED`.
    """
    rows = []
    for model in found.models:
        verdicts = Counter(claim.verdict for claim in found.claims(model, found.models))
        ranks = [found.rank(model, measure) for measure in RANKED]
        rows.append(
            [
                model,
                f"{found.mean_rank(model):.1f}",
                *(str(verdicts[name]) for name in ("better", "worse", "=")),
                *("" if np.isnan(rank) else f"{rank:.1f}" for rank in ranks),
            ]
        )
    return rows


def claim_rows(found: Across, model: str, rivals: Collection[str]) -> list[list[str]]:
    """Return a row for each measure: how a model compares with the best rival in each log.

    A cell has the scores of both, in bold if the difference is more than chance, and who the best
    rival is.
    """
    cells = {(claim.measure, claim.log): claim for claim in found.claims(model, rivals)}
    rows = []
    for measure in RANKED:
        row = [measure]
        for log in found.logs:
            claim = cells.get((measure, log))
            if claim is None:
                row.append("")
                continue
            scores = [f"{claim.value:.3f}", f"{claim.best:.3f}"]
            if claim.verdict == "better":
                scores[0] = f"**{scores[0]}**"
            elif claim.verdict == "worse":
                scores[1] = f"**{scores[1]}**"
            row.append(f"{scores[0]} / {scores[1]} {claim.rival}")
        rows.append(row)
    return rows


def plain_across(found: Across) -> dict[str, Any]:
    """Return ranks and claims as plain data, fit for JSON."""
    return {
        "models": [
            {
                "name": model,
                "mean_rank": found.mean_rank(model),
                "ranks": {
                    measure: None if np.isnan(rank := found.rank(model, measure)) else rank
                    for measure in RANKED
                },
                "claims": [
                    {**asdict(claim), "verdict": claim.verdict}
                    for claim in found.claims(model, found.models)
                ],
            }
            for model in found.models
        ]
    }
