"""Calibrate free parameters to a log: simulations, posterior, check and predictive intervals."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hpcrowd.analysis.calibration.coverage import Coverage, check
from hpcrowd.analysis.calibration.posterior import Posterior, predicted
from hpcrowd.analysis.calibration.regression import (
    LEAST_DRAWS,
    Table,
    Weighted,
    likeness,
    posterior_of,
)
from hpcrowd.analysis.calibration.statistics import NAMES, chosen
from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.results import versions
from hpcrowd.environment.errors import QuantityError, check_choice
from hpcrowd.environment.limits.numbers import LARGEST_SEED, MOST_RUNS, check_within
from hpcrowd.environment.streams import Streams
from hpcrowd.scenarios.calibration.simulations import Days, Simulations
from hpcrowd.scenarios.calibration.subject import read_subject

#: Methods by name.
METHODS = ("regression", "smc")

#: Simulations of draws of the prior, unless given.
DRAWS = 400

#: Simulations of draws of the posterior, for predictive intervals.
PREDICTIVE = 60

#: Share of the budget of ``smc`` that shows how much each statistic varies over the prior.
SCALING = 0.2

#: Called with a label, the steps done and all steps.
Progress = Callable[[str, int, int], Any]


@dataclass(frozen=True)
class Calibration:
    """The outcome of a calibration.

    Attributes
    ----------
    posterior
        The posterior.
    table
        Simulations of draws of the prior.
    jobs, days
        Of the log that it was calibrated to.
    outside
        Statistics of the log that no draw of the prior comes up to.
    likeness
        Whether draws of the prior are like the log, see
        :func:`hpcrowd.analysis.calibration.regression.likeness`.
    coverage
        The check; None unless wanted.
    """

    posterior: Posterior
    table: Table
    jobs: int
    days: float
    outside: list[str]
    likeness: float
    coverage: Coverage | None = None


def calibrate(
    source: str | os.PathLike[str],
    trace: str | os.PathLike[str],
    *,
    free: Mapping[str, str] | Sequence[str] = (),
    days: int | None = None,
    compare: Sequence[str] = (),
    draws: int = DRAWS,
    method: Literal["regression", "smc"] = "regression",
    truths: int = 0,
    predictive: int = PREDICTIVE,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Calibration:
    """Find which parameters of users make simulations like a log, with their uncertainty.

    Parameters
    ----------
    source
        TOML file of a population, or of a scenario.
    trace
        The log, in any format.
    free
        Free parameters with their priors, such as ``{"users.0.line.slope": "0..2"}``, in addition
        to those in the table ``[free]`` of the file.
    days
        How many days of the log, from its first submission; all unless given.
    compare
        Statistics that count, by their names or beginnings, such as ``think``; all unless given.
    draws
        Simulations of draws of the prior; with ``smc`` about the number of all simulations.
    method
        ``regression`` (see :mod:`hpcrowd.analysis.calibration.regression`) or ``smc`` (ABC-SMC by
        pyabc).
    truths
        Truths of the check, see :mod:`hpcrowd.analysis.calibration.coverage`; 0 for none.
    predictive
        Simulations of draws of the posterior, for predictive intervals of the statistics.
    seed
        Seed of everything random.
    workers
        Processes that share the work.
    progress
        Called with a label, the steps done and all steps.
    settings
        Further settings of the scenario, such as ``{"scheduler": "fcfs"}``.

    Raises
    ------
    HpcrowdError
        One line that says what is wrong.
    """
    check_choice("method", method, METHODS)
    names = chosen(compare)
    check_within("draws", draws, LEAST_DRAWS, MOST_RUNS)
    if method == "smc" and truths:
        raise QuantityError(
            f"check {truths}: tests the method regression, which needs no further simulations; "
            "leave out one of the two"
        )
    if method == "smc":
        from hpcrowd.analysis.calibration.smc import check_available

        check_available()
    given = [f"{name}={text}" for name, text in free.items()] if isinstance(free, Mapping) else free
    subject = read_subject(Path(source), given, Path(trace), settings)
    log = Days.of(subject.scenario([prior.at(0.5) for prior in subject.priors]).read(), days)
    progress = progress or _silent
    simulations = Simulations.of(subject, log)
    streams = Streams(seed).within("calibration")
    first = draws if method == "regression" else max(LEAST_DRAWS, round(SCALING * draws))
    table = replace(_table(simulations, first, streams, workers, progress), names=names)
    if method == "regression":
        drawn = posterior_of(table, simulations.record)
    else:
        drawn = _searched(simulations, table, draws - first, streams.seed, progress)
    posterior = Posterior(
        method=method,
        priors=subject.priors,
        drawn=drawn,
        settings=subject.settings,
        provenance={
            "trace": Path(log.trace.source).name,
            "sha256": log.trace.sha256,
            "days": days,
            "compare": list(compare),
            "jobs": simulations.jobs,
            "draws": draws,
            "seed": seed,
            "versions": versions(),
        },
    )
    lines = [list(posterior.draw(number).values()) for number in range(predictive)]
    again = simulations.all(
        np.array(lines), range(predictive), workers, progress, "simulating the posterior"
    )
    posterior = replace(posterior, statistics=tuple(predicted(simulations.record, again)))
    coverage = check(table, truths, seed, progress) if truths else None
    outside = [NAMES[place] for place in table.outside(simulations.record)]
    like = likeness(table, simulations.record)
    return Calibration(posterior, table, simulations.jobs, log.days, outside, like, coverage)


def _silent(label: str, done: int, total: int) -> None:
    """Show nothing."""


def _table(
    simulations: Simulations, draws: int, streams: Streams, workers: int, progress: Progress
) -> Table:
    """Simulate draws of the prior."""
    priors = simulations.subject.priors
    shares = streams.generator("prior").random((draws, len(priors)))
    values = np.array(
        [[prior.at(one) for prior, one in zip(priors, line, strict=True)] for line in shares]
    )
    seeds = streams.generator("seeds").integers(LARGEST_SEED, size=draws).tolist()
    statistics = simulations.all(values, seeds, workers, progress, "simulating the prior")
    return Table(priors, values, statistics)


def _searched(
    simulations: Simulations, table: Table, budget: int, seed: int, progress: Progress
) -> Weighted:
    """Return the posterior by a search with about as many simulations as the budget."""
    from hpcrowd.analysis.calibration.smc import sample

    counted = _Counted(simulations, budget, progress)
    priors = simulations.subject.priors
    return sample(priors, simulations.record, table, counted, budget, seed)


class _Counted:
    """Simulates draws one by one, and shows how many."""

    def __init__(self, simulations: Simulations, total: int, progress: Progress) -> None:
        self._simulations, self._total, self._progress = simulations, total, progress
        self._done = 0

    def __call__(self, values: Sequence[float], seed: int) -> Floats:
        """Return the statistics of a simulation."""
        self._progress("searching", min(self._done, self._total), self._total)
        self._done += 1
        return self._simulations((0, tuple(values), seed))


def write_posterior(posterior: Posterior, path: str | os.PathLike[str], folder: Path) -> None:
    """Write a posterior; files that its settings name are found from where it lies.

    Parameters
    ----------
    posterior
        The posterior.
    path
        Its file.
    folder
        Folder of the files that its settings name.

    Raises
    ------
    ModelFileError
        When it cannot be written.
    """
    relative = os.path.relpath(folder.absolute(), Path(path).absolute().parent)
    replace(posterior, folder=Path(relative).as_posix()).write(path)
