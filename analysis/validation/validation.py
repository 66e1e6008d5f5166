"""Validation of user models: fitted to the first part of a trace, tested on the second.

There are two kinds of evidence for each model:

* how well it forecasts single submissions (:mod:`hpcrowd.analysis.validation.evidence`);
* how far its simulated second part is from the recorded one, in the distributions of
  :data:`MEASURES`.

Both come with an interval from resampled users (:mod:`analysis.validation.scores`), and with the
difference to the best model, which is paired: the same users are drawn for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hpcrowd.agents.behaviours.heldout import recorded_releases
from hpcrowd.agents.behaviours.think import LinearThink
from hpcrowd.agents.behaviours.when import BatchOrder, Reason
from hpcrowd.agents.presets import PRESETS
from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.validation.evidence import (
    DRAWS,
    MEASURES,
    PER_USER,
    Forecaster,
    Observed,
    Questions,
    as_recorded,
    observe,
    questions,
    recorded_distances,
    simulate_second,
    volume,
)
from hpcrowd.analysis.validation.parts import BASELINES, Parts, UserModel
from hpcrowd.analysis.validation.scores import (
    RESAMPLES,
    Estimate,
    distances,
    estimate,
    mean_over_users,
    resample,
    user_means,
)
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.schedulers.base import Scheduler

#: Called before each step with its label, the number done and the total.
Progress = Callable[[str, int, int], Any]

#: Kinds of forecasts that are scored.
FORECASTS = ("next_batch", "next_session")

#: By measure and statistic: the value and those of the resamples, shape (1 + draws,).
Statistics = dict[str, dict[str, Floats]]

#: The statistic of each measure that models are ranked by.
RANKED = {**dict.fromkeys(FORECASTS, "crps"), **MEASURES}


@dataclass
class Score:
    """The result of a model in one measure.

    Attributes
    ----------
    statistics
        By name: ``crps`` and ``error``, means over users; ``crps_busy``, with users weighted by
        their number of forecasts; or ``ks``, ``w1``, ``tv``.
    behind
        Difference to the best model; None for the best one and for unranked ones.
    rank
        1 is best; None if not ranked.
    """

    statistics: dict[str, Estimate]
    behind: Estimate | None = None
    rank: int | None = None

    @property
    def tied(self) -> bool:
        """Whether it is the best or not distinguishable from it: the difference may be 0."""
        return self.rank == 1 or (self.behind is not None and not self.behind.low > 0)


@dataclass
class Validation:
    """The results of a validation.

    Attributes
    ----------
    parts
        The two parts of the trace.
    models
        Models under test, by name.
    scores
        By model and measure; measures that a model does not answer are missing.
    floors
        References for the scores, by name and measure: the distance between the ``first part`` and
        the second, the distance between the ``halves`` of the second, and forecasts that draw from
        the user's pauses of the second part (``hindsight``).
    volume
        By model, the number of jobs submitted until the end of the record, per recorded job.
    asked
        Number of forecasts of each kind.
    settings
        Everything needed to repeat it, fit for JSON.
    drawn
        By model, the statistics of the resamples.
    """

    parts: Parts
    models: dict[str, UserModel]
    scores: dict[str, dict[str, Score]]
    floors: dict[str, dict[str, Score]]
    volume: dict[str, float]
    asked: dict[str, int]
    settings: dict[str, Any] = field(default_factory=dict)
    drawn: dict[str, Statistics] = field(default_factory=dict)

    def mean_rank(self, name: str) -> float:
        """Return the mean of a model's ranks over the measures that it answers.

        If a measure ranks fewer models, its ranks are stretched so that the last is the same.
        """
        ranks = []
        for measure, score in self.scores[name].items():
            ranked = sum(measure in scores for scores in self.scores.values())
            if score.rank is not None:
                spread = (len(self.scores) - 1) / max(ranked - 1, 1)
                ranks.append(1 + (score.rank - 1) * spread)
        return float(np.mean(ranks)) if ranks else float("nan")

    @property
    def order(self) -> list[str]:
        """Names of the models, best mean rank first."""
        return sorted(self.scores, key=lambda name: (self.mean_rank(name), name))

    def difference(
        self, a: str, b: str, measure: str, statistic: str | None = None
    ) -> Estimate | None:
        """Return the score of model ``a`` minus that of ``b``, paired; None if one is missing.

        Parameters
        ----------
        a, b
            Names of models.
        measure
            A key of :data:`RANKED`.
        statistic
            A statistic of the measure; by default the one that models are ranked by.
        """
        key = statistic or RANKED[measure]
        both = [self.drawn[name].get(measure) for name in (a, b)]
        if both[0] is None or both[1] is None:
            return None
        return estimate(both[0][key] - both[1][key])

    def counts(self) -> dict[str, int]:
        """Return the number of jobs, sessions and users in each part."""
        parts = self.parts
        sessions, batches = parts.work.sessions, parts.work.by_batch
        second = ~parts.known[batches.session]
        reason = recorded_releases(BatchOrder(parts.work)).reason
        return {
            "jobs_first": len(parts.first.jobs),
            "jobs_second": len(parts.second_jobs),
            "sessions_first": int(parts.known.sum()),
            "sessions_second": int((~parts.known).sum()),
            "batches_second": int(second.sum()),
            "batches_second_at_recorded_second": int((second & (reason == Reason.START)).sum()),
            "users": len(sessions.users),
            "users_first": int(parts.seen.sum()),
            "users_second": int(parts.tested.sum()),
            "users_second_not_seen_in_first": int((parts.tested & ~parts.seen).sum()),
        }


def validate(
    jobs: JobTable,
    models: Sequence[UserModel],
    clock: Clock,
    *,
    split: float = 0.5,
    scheduler: str | Scheduler = "recorded",
    processors: int | None = None,
    drawn: bool = True,
    seeds: int = 1,
    seed: int = 0,
    draws: int = DRAWS,
    per_user: int = PER_USER,
    resamples: int = RESAMPLES,
    progress: Progress | None = None,
) -> Validation:
    """Fit models to the first part of a trace and test them on the second.

    Parameters
    ----------
    jobs
        The jobs of the trace.
    models
        The models; :data:`~analysis.validation.parts.BASELINES` are added for comparison.
    clock
        Local time.
    split
        Share of the submissions in the first part.
    scheduler, processors
        Scheduler and size of the machine in the simulated second part; by default waits are as
        recorded.
    drawn
        In the simulated second part, draw pauses from the first part; False keeps the recorded
        ones, as in a replay. Forecasts never use the recorded ones.
    seeds
        Number of simulations of each model, with the seeds from ``seed`` on; their distributions
        are pooled.
    seed
        Of everything random.
    draws, per_user
        Draws of each forecast, and most forecasts of each kind per user.
    resamples
        Number of resamples of users for the intervals.
    progress
        Called before each step.

    Raises
    ------
    HpcrowdError
        When the settings or the trace do not allow it.
    """
    if seeds < 1:
        raise QuantityError(f"seeds {seeds}: must be at least 1 simulation of each model")
    found = {model.name: model for model in models}
    if len(found) < len(models):
        raise QuantityError(f"users {', '.join(m.name for m in models)}: name each model once")
    for name in BASELINES:
        found.setdefault(name, UserModel.of(name))
    parts = Parts.of(jobs, clock, split)
    asked = questions(parts, seed, per_user)
    weights = resample(len(parts.work.sessions.users), seed, resamples)
    record = observe(parts, as_recorded(parts.second.jobs))
    # Make every model once before anything runs, so that one that cannot be fitted fails now.
    forecasters = {
        name: Forecaster(parts, model, seed) for name, model in found.items() if not model.generates
    }
    hindsight = Forecaster(parts, UserModel("", PRESETS["adjusted"]), seed, hindsight=True)
    total, done = len(found) * (1 + seeds), 0

    def step(label: str) -> None:
        nonlocal done
        if progress is not None:
            progress(label, done, total)
        done += 1

    rows: dict[str, Statistics] = {}
    submitted: dict[str, float] = {}
    for name, model in found.items():
        step(f"{name}: forecasts")
        forecaster = forecasters.pop(name, None)
        rows[name] = _forecasts(forecaster, asked, weights, draws) if forecaster else {}
        observed: Observed = {}
        submitted[name] = 0.0
        for each in range(seeds):
            step(f"{name}: simulation {each + 1}")
            run = simulate_second(parts, model, scheduler, processors, seed + each, drawn=drawn)
            submitted[name] += volume(parts, run) / seeds
            for measure, counts in observe(parts, run).items():
                observed[measure] = observed.get(measure, 0.0) + counts
        for measure in MEASURES:
            if measure != "session_length" or not model.inside_recorded:
                rows[name][measure] = distances(record[measure], observed[measure], weights)
    floors: dict[str, Statistics] = {
        "hindsight": _forecasts(hindsight, asked, weights, draws),
        **recorded_distances(parts, record, weights),
    }
    return Validation(
        parts=parts,
        models=found,
        scores=_ranked(rows),
        floors={
            name: {measure: Score(_estimates(row)) for measure, row in row.items()}
            for name, row in floors.items()
        },
        volume=submitted,
        asked={kind: len(each) for kind, each in asked.items()},
        settings={
            "split": split,
            "scheduler": scheduler if isinstance(scheduler, str) else scheduler.name,
            "pauses": "drawn" if drawn else "recorded",
            "seeds": seeds,
            "seed": seed,
            "draws": draws,
            "forecasts_per_user": per_user,
            "resamples": resamples,
        },
        drawn=rows,
    )


def fitted_lines(parts: Parts) -> dict[str, dict[str, float] | None]:
    """Return slope and intercept (s) of think time over response time in each part."""
    lines: dict[str, dict[str, float] | None] = {}
    for name, work in (("first", parts.first), ("second", parts.second)):
        try:
            line = LinearThink.fit(work.by_batch)
        except QuantityError:
            lines[name] = None
        else:
            lines[name] = {"slope": line.slope, "intercept_s": line.intercept}
    return lines


def _forecasts(
    forecaster: Forecaster, asked: dict[str, Questions], weights: Floats, draws: int
) -> Statistics:
    found = {}
    users = weights.shape[1]
    for kind, each in asked.items():
        scores = forecaster.scores(kind, each, draws) if len(each) else None
        if scores is not None:
            means = {key: user_means(values, each.user, users) for key, values in scores.items()}
            found[kind] = {key: mean_over_users(mean, weights) for key, mean in means.items()}
            share = each.asked_of.astype(float)
            found[kind]["crps_busy"] = mean_over_users(means["crps"], weights, share)
    return found


def _estimates(row: dict[str, Floats]) -> dict[str, Estimate]:
    return {key: estimate(values, 0.0) for key, values in row.items()}


def _ranked(rows: dict[str, Statistics]) -> dict[str, dict[str, Score]]:
    """Return the scores, with ranks and differences to the best in each measure."""
    scores: dict[str, dict[str, Score]] = {name: {} for name in rows}
    for measure, statistic in RANKED.items():
        there = {name: row[measure] for name, row in rows.items() if measure in row}
        order = sorted(there, key=lambda name: (float(there[name][statistic][0]), name))
        for rank, name in enumerate(order, start=1):
            best = there[order[0]][statistic]
            behind = estimate(there[name][statistic] - best) if rank > 1 else None
            scores[name][measure] = Score(_estimates(there[name]), behind, rank)
    return scores
