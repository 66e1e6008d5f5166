"""Validation of user models: fitted before an origin, tested on the days after it.

There are two kinds of evidence for each model, from several origins in a trace:

* how well it forecasts single submissions, see
  :class:`~hpcrowd.analysis.validation.futures.Forecaster`;
* how far its simulated days are from the recorded ones, in the measures of
  :data:`~hpcrowd.analysis.validation.futures.MEASURES`.

Both come with an interval from resampled users, or weeks (:mod:`analysis.validation.scores`), and
with the difference to the best model, which is paired: the same users are drawn for both. Logs,
origins, draws and intervals are fixed before a log is looked at, in ``protocol.toml``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from hpcrowd.agents.behaviours.think import LinearThink
from hpcrowd.agents.behaviours.when import BatchOrder, Reason
from hpcrowd.agents.learned.heldout import recorded_releases
from hpcrowd.agents.presets import PRESETS
from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.paired import CONFIDENCE
from hpcrowd.analysis.validation.futures import (
    BY_WEEK,
    MEASURES,
    Forecaster,
    Observed,
    Questions,
    compared,
    days_before,
    joined,
    observe,
    observe_queue,
    questions,
    simulate_second,
    submitted_in_second,
)
from hpcrowd.analysis.validation.models import BASELINES, Parts, UserModel
from hpcrowd.analysis.validation.scores import (
    Estimate,
    estimate,
    mean_over_users,
    resample,
    user_means,
)
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.limits.numbers import MOST_RUNS
from hpcrowd.environment.traces.formats.registry import Progress

#: Forecasts that are scored, with the statistic that ranks models.
FORECASTS = {"next_batch": "crps", "next_session": "crps", "stays": "brier"}

#: By measure and statistic: the value and those of the resamples, shape (1 + draws,).
Statistics = dict[str, dict[str, Floats]]

#: Measures that are as recorded, or nearly so, if users submit whole sessions.
INSIDE = ("session_length", "inter_arrival")

#: The statistic of each measure that models are ranked by.
RANKED = {**FORECASTS, **MEASURES}


@dataclass
class Score:
    """The result of a model in one measure."""

    #: By name: ``crps``, ``error`` and ``brier``, means over users; ``crps_busy``, with users
    #: weighted by their number of forecasts; or ``ks``, ``w1``, ``tv``, ``ratio``, ``correlation``.
    statistics: dict[str, Estimate]
    #: Difference to the best model; None for the best one and for unranked ones.
    behind: Estimate | None = None
    rank: int | None = None  #: 1 is best; None if not ranked.

    @property
    def tied(self) -> bool:
        """Whether it is the best or not distinguishable from it: the difference may be 0."""
        return self.rank == 1 or (self.behind is not None and not self.behind.low > 0)


@dataclass
class Origin:
    """What is before and after an origin."""

    counts: dict[str, int]  #: Seconds and numbers of jobs, sessions, batches and users, by name.
    #: Think time over response time before and after it, see :func:`fitted_lines`.
    lines: dict[str, dict[str, float] | None]


@dataclass
class Validation:
    """The results of a validation.

    Attributes
    ----------
    origins
        What is before and after each origin.
    clock
        Local time.
    models
        Models under test, by name.
    scores
        By model and measure; measures that a model does not answer are missing.
    floors
        References for the scores, by name and measure: the ``days before`` each origin compared
        with those after it, and forecasts that draw from the user's pauses of the second part
        (``hindsight``).
    volume
        By model, the simulated jobs per recorded one.
    asked
        Number of forecasts of each kind.
    settings
        Everything needed to repeat it, fit for JSON.
    drawn
        By model, the statistics of the resamples.
    """

    origins: list[Origin]
    clock: Clock
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


def _counts(parts: Parts) -> dict[str, int]:
    sessions, batches = parts.work.sessions, parts.work.by_batch
    after = ~parts.known & (sessions.start <= parts.until)
    second = after[batches.session]
    reason = recorded_releases(BatchOrder(parts.work)).reason
    return {
        "since_s": parts.since,
        "until_s": parts.until,
        "jobs_first": len(parts.first.jobs),
        "jobs_second": len(submitted_in_second(parts, parts.work.jobs.as_recorded())),
        "sessions_first": int(parts.known.sum()),
        "sessions_second": int(after.sum()),
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
    rules: Protocol | None = None,
    *,
    processors: int | None = None,
    drawn: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
) -> Validation:
    """Fit models to a trace before each of several origins, and test them on the days after it.

    Parameters
    ----------
    jobs
        The jobs of the trace.
    models
        The models; :data:`~analysis.validation.models.BASELINES` are added for comparison.
    clock
        Local time.
    rules
        Origins, days, simulations, draws and intervals; as fixed for the studies unless given.
    processors
        Size of the machine for queues and waits; that of the largest job unless given.
    drawn
        In the simulated days, draw pauses from before the origin; False keeps the recorded ones, as
        in a replay. Forecasts never use the recorded ones.
    seed
        Of everything random.
    progress
        Called before each step.

    Raises
    ------
    HpcrowdError
        When the settings or the trace do not allow it.
    """
    rules = rules or protocol()
    found = {model.name: model for model in models}
    if len(found) < len(models):
        raise QuantityError(f"users {', '.join(m.name for m in models)}: name each model once")
    for name in BASELINES:
        found.setdefault(name, UserModel.of(name))
    cuts = [Parts.of(jobs, clock, share, rules.days) for share in rules.origins]
    total, done = len(found) * len(cuts) * (1 + rules.seeds), 0

    def step(label: str) -> None:
        nonlocal done
        if progress is not None:
            progress(label, done, total)
        done += 1

    evidence: dict[str, _Evidence] = {name: _Evidence() for name in (RECORD, BEFORE, *found)}
    foresight: dict[str, _Foresight] = {name: _Foresight() for name in (HINDSIGHT, *found)}
    asked_of: dict[str, Floats] = {}
    for place, parts in enumerate(cuts):
        asked = questions(parts, seed, rules.per_user)
        for kind, several in asked.items():
            asked_of[kind] = np.add(asked_of.get(kind, 0.0), several.asked_of)
        evidence[RECORD].add(parts, [None], rules, processors, seed, drawn)
        evidence[BEFORE].found.append(days_before(parts))
        # Make every model once before anything runs, so that one that cannot be fitted fails now.
        forecasters = {
            name: Forecaster(parts, model, seed)
            for name, model in found.items()
            if not model.generates
        }
        adjusted = UserModel("", PRESETS["adjusted"])
        foresight[HINDSIGHT].add(
            Forecaster(parts, adjusted, seed, hindsight=True), asked, rules.draws
        )
        for name, model in found.items():
            origin = f"{name}, origin {place + 1} of {len(cuts)}"
            step(f"{origin}: forecasts")
            if name in forecasters:
                foresight[name].add(forecasters.pop(name), asked, rules.draws)
            steps = []
            for each in range(rules.seeds):
                step(f"{origin}: simulation {each + 1}")
                steps.append(model)
            evidence[name].add(parts, steps, rules, processors, seed, drawn)
    users = resample(len(cuts[0].work.sessions.users), seed, rules.resamples)
    record = evidence[RECORD].together()
    weeks = resample(len(record["queue"]), seed, rules.resamples)

    def statistics(name: str, *, inside: bool = False) -> Statistics:
        there = evidence[name].together()
        return {
            measure: compared(
                measure, record[measure], there[measure], weeks if measure in BY_WEEK else users
            )
            for measure in MEASURES
            if measure in there and not (inside and measure in INSIDE)
        }

    rows = {
        name: foresight[name].statistics(users, asked_of)
        | statistics(name, inside=model.inside_recorded)
        for name, model in found.items()
    }
    floors = {
        HINDSIGHT: foresight[HINDSIGHT].statistics(users, asked_of),
        BEFORE: statistics(BEFORE),
    }
    return Validation(
        origins=[Origin(_counts(parts), fitted_lines(parts)) for parts in cuts],
        clock=clock,
        models=found,
        scores=_ranked(rows),
        floors={
            name: {measure: Score(_estimates(row)) for measure, row in row.items()}
            for name, row in floors.items()
        },
        volume={
            name: float(evidence[name].together()["jobs"].sum() / record["jobs"].sum())
            for name in found
        },
        asked={kind: int(foresight[HINDSIGHT].count(kind)) for kind in FORECASTS},
        settings={
            **asdict(rules),
            "confidence": CONFIDENCE,
            "pauses": "drawn" if drawn else "recorded",
            "seed": seed,
            "processors": processors,
        },
        drawn=rows,
    )


#: Names of references: the record itself, the days before each origin, and pauses of the future.
RECORD, BEFORE, HINDSIGHT = "record", "days before", "hindsight"


class _Evidence:
    """What was observed of a model, origin by origin."""

    def __init__(self) -> None:
        self.found: list[Observed] = []

    def add(
        self,
        parts: Parts,
        models: Sequence[UserModel | None],
        rules: Protocol,
        processors: int | None,
        seed: int,
        drawn: bool,
    ) -> None:
        """Simulate the days after an origin, once for each of ``models``; None is the record."""
        each: list[Observed] = []
        for number, model in enumerate(models):
            queued = simulate_second(
                parts, model, rules.scheduler, processors, seed + number, drawn=drawn
            )
            if model is None:
                run = parts.work.jobs.as_recorded()
            elif model.generates:
                run = queued
            else:
                run = simulate_second(parts, model, seed=seed + number, drawn=drawn)
            each.append(observe(parts, run) | observe_queue(parts, queued))
        sums = {name: np.sum([one[name] for one in each], axis=0) for name in each[0]}
        self.found.append({name: values / len(each) for name, values in sums.items()})

    def together(self) -> Observed:
        """Return what was observed from all origins."""
        return joined(self.found)


class _Foresight:
    """The scores of a model's forecasts from all origins."""

    def __init__(self) -> None:
        self._scores: dict[str, dict[str, list[Floats]]] = {}
        self._users: dict[str, list[Any]] = {}

    def add(self, forecaster: Forecaster, asked: dict[str, Questions], draws: int) -> None:
        """Ask the questions of one origin."""
        for kind, each in asked.items():
            scores = forecaster.scores(kind, each, draws) if len(each) else None
            if scores is None:
                continue
            for name, values in scores.items():
                measure = "stays" if name == "brier" else kind
                self._scores.setdefault(measure, {}).setdefault(name, []).append(values)
            for measure in {"stays" if name == "brier" else kind for name in scores}:
                self._users.setdefault(measure, []).append(each.user)

    def count(self, measure: str) -> int:
        """Return the number of answers."""
        return sum(map(len, self._users.get(measure, [])))

    def statistics(self, weights: Floats, asked_of: dict[str, Floats]) -> Statistics:
        """Return means over users, for each row of weights."""
        found: Statistics = {}
        for measure, scores in self._scores.items():
            user = np.concatenate(self._users[measure])
            means = {
                name: user_means(np.concatenate(values), user, weights.shape[1])
                for name, values in scores.items()
            }
            found[measure] = {name: mean_over_users(mean, weights) for name, mean in means.items()}
            if "crps" in means:
                share = np.asarray(asked_of[measure], float)
                found[measure]["crps_busy"] = mean_over_users(means["crps"], weights, share)
        return found


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


@dataclass(frozen=True)
class Protocol:
    """How models of users are compared; the defaults are in ``protocol.toml``.

    Raises
    ------
    QuantityError
        If a number is out of range.
    """

    #: Shares of the submissions before each origin, ascending, each between 0 and 1.
    origins: tuple[float, ...]
    days: int  #: Days after an origin that models foresee.
    seeds: int  #: Simulations of each model from each origin.
    scheduler: str  #: The policy behind simulated queues and waits.
    draws: int  #: Draws of each forecast.
    per_user: int  #: Most forecasts of each kind by user and origin.
    resamples: int  #: Resamples for intervals.
    month_draws: int = 50  #: Draws of the days after an origin, see :mod:`.month`.
    #: Of months: days between origins, which are evenly spaced then; None for :attr:`origins`.
    apart: int | None = None
    #: Logs that models were designed on, and those that check them.
    design: tuple[str, ...] = ()
    check: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.origins or not all(0 < share < 1 for share in self.origins):
            raise QuantityError(
                f"origins {', '.join(f'{share:g}' for share in self.origins) or 'none'}: shares of "
                "the submissions before each origin, between 0 and 1"
            )
        for name in ("days", "seeds", "draws", "per_user", "resamples", "month_draws"):
            if not 1 <= getattr(self, name) <= MOST_RUNS:
                raise QuantityError(
                    f"{name} {getattr(self, name)}: must be between 1 and {MOST_RUNS:,}"
                )


@cache
def protocol() -> Protocol:
    """Return what was fixed for the studies of this project."""
    text = files("hpcrowd.analysis.validation").joinpath("protocol.toml").read_text("utf-8")
    found = tomllib.loads(text)
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in found.items()
    }
    return Protocol(**values)
