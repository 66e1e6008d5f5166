"""The history-based predictor of T. N. Minh's thesis, chapter 8.

The thesis: Workload modeling and performance evaluation in parallel systems, Leiden University,
2012, https://hdl.handle.net/1887/18620.

A job is predicted from the K jobs that are most similar to it among the last N: mean of their run
times plus alpha times their standard deviation, but at most beta times the requested time (Eq.
8.8). Only jobs count that share the nominal attributes of a template; if none has ended, all do.
Similarity compares normalized processors, requested time and requested memory (Eq. 8.5). Jobs that
request less time than a pivot have their own N, K, alpha and beta.

The text leaves open what a standard deviation of one job is (0 here), which of equally similar jobs
come first (the latest), and what to do before any job has ended (beta times the requested time).
"""

from __future__ import annotations

import csv
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from hpcrowd.environment.errors import PredictorError, QuantityError
from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.schedulers.predictors.experience import (
    ComparingPredictor,
    check_number,
    check_whole,
    template_mask,
)
from hpcrowd.environment.schedulers.predictors.kernel.experience import Experience
from hpcrowd.environment.schedulers.predictors.kernel.prediction import HISTORY


@dataclass(frozen=True)
class Group:
    """Parameters of the jobs on one side of the pivot.

    Attributes
    ----------
    n
        Number of jobs in the history (N).
    k
        Number of jobs that are averaged (K).
    alpha
        Number of standard deviations that are added.
    beta
        Upper limit of the prediction, as a fraction of the requested time.
    """

    n: int
    k: int
    alpha: float
    beta: float

    def __post_init__(self) -> None:
        check_whole("n", self.n, 1)
        check_whole("k", self.k, 1)
        check_number("alpha", self.alpha)
        check_number("beta", self.beta)


@dataclass(frozen=True)
class HistoryParameters:
    """All parameters of the predictor (thesis section 8.3.3).

    Attributes
    ----------
    template
        Nominal attributes that similar jobs share: ``u`` user, ``g`` group, ``q`` queue, ``j`` job
        name (executable); a dot for what does not matter.
    pivot_s
        s; jobs that request less are small.
    small, big
        Parameters of either group.
    """

    template: str
    pivot_s: float
    small: Group
    big: Group

    def __post_init__(self) -> None:
        template_mask(self.template)
        check_number("pivot_s", self.pivot_s)

    @classmethod
    def published(cls, trace: str) -> HistoryParameters:
        """Return the parameters of Table 8.3 for SDSC02, SDSC04, HPC2N04 or HPC2N05.

        Raises
        ------
        QuantityError
            When the table has no such trace.
        """
        rows = {row["trace"]: row for row in _table()}
        if trace not in rows:
            raise QuantityError(
                f"parameters {trace!r}: not published; choose {', '.join(rows)}, or train"
            )
        row = rows[trace]
        small, big = (
            Group(
                n=int(row[f"n{group}"]),
                k=int(row[f"k{group}"]),
                alpha=float(row[f"alpha{group}"]),
                beta=float(row[f"beta{group}"]),
            )
            for group in (1, 2)
        )
        return cls(row["template"], float(row["pivot_s"]), small, big)


def published_names() -> list[str]:
    """Return the traces that Table 8.3 has parameters for."""
    return [row["trace"] for row in _table()]


def _table() -> list[dict[str, str]]:
    table = files("hpcrowd.environment.schedulers.predictors") / "minh2012_table8_3.csv"
    text = table.read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


class HistoryPredictor(ComparingPredictor):
    """Predicts from the most similar jobs of the past (thesis chapter 8).

    Parameters
    ----------
    parameters
        Published, trained or your own. Without any, :meth:`begin` raises an error that it must be
        trained.
    history, bounds
        See :class:`~hpcrowd.environment.schedulers.predictors.experience.ComparingPredictor`.
    """

    _model = HISTORY

    def __init__(
        self,
        parameters: HistoryParameters | None = None,
        *,
        history: str = "submission",
        bounds: str = "table",
    ) -> None:
        super().__init__(history, bounds)
        self.name = "history"
        self.parameters = parameters
        if parameters is not None:
            self.use(parameters)

    def use(self, parameters: HistoryParameters) -> None:
        """Take parameters, from the next :meth:`begin` on."""
        self.parameters = parameters
        groups = (parameters.small, parameters.big)
        each = [value for g in groups for value in (g.n, g.k, g.alpha, g.beta)]
        self._settings = np.array([parameters.pivot_s, *each], np.float64)
        mask = template_mask(parameters.template)
        self._masks, self._most_neighbours = (mask, mask), max(group.k for group in groups)

    def check_ready(self) -> None:
        """Check that there are parameters."""
        self._trained()

    def _trained(self) -> HistoryParameters:
        if self.parameters is None:
            raise PredictorError(
                f"{self.name}: used before it was trained; name published parameters "
                f"({', '.join(f'history:{name}' for name in published_names())}), or the file that "
                "training writes: hpcrowd predict TRACE --model history --train --out model.json"
            )
        return self.parameters

    def _ready(self) -> tuple[JobTable, Experience]:
        self._trained()
        return super()._ready()

    def to_json(self) -> dict[str, Any]:
        """Return its settings as plain data."""
        return super().to_json() | {"parameters": asdict(self._trained())}
