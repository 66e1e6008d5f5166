"""Nearest neighbours: the weighted average of the most similar jobs (thesis Eqs. 8.1 to 8.3).

The distance of two jobs is the weighted quadratic mean of the differences of their attributes: 0 or
1 for user, group, queue and job name; the difference of normalized values for processors,
requested time and requested memory (Eqs. 8.1, 8.2). The run times of the K nearest among the last
N jobs are averaged with weights exp(-(distance / bandwidth)^2) (Eq. 8.3). Before any job has ended
the requested time is predicted.

The thesis names the parameters but no values for them, and those of the implementation it compares
with were found by a search that is not published: the defaults here are unconfirmed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.schedulers.predictors.experience import (
    ComparingPredictor,
    check_number,
    check_whole,
)
from hpcrowd.environment.schedulers.predictors.kernel.experience import NOMINAL, NUMERIC
from hpcrowd.environment.schedulers.predictors.kernel.prediction import NEAREST

#: Jobs that the history reaches back, and neighbours that are averaged (unconfirmed).
N, K = 2000, 5

#: Weights of user, group, queue, job name, processors, requested time and requested memory: all
#: alike (unconfirmed).
WEIGHTS = (1.0,) * (NOMINAL + NUMERIC)

#: A bandwidth that stands for the largest distance among the neighbours, as Eq. 8.3 allows.
LARGEST = 0.0


class Nearest(ComparingPredictor):
    """Predicts the weighted average of the nearest jobs.

    Parameters
    ----------
    n
        Number of jobs in the history.
    k
        Number of neighbours that are averaged.
    weights
        Weights of user, group, queue, job name (executable), processors, requested time and
        requested memory.
    bandwidth
        Width of the kernel, a distance from 0 to 1; 0 stands for the largest among the neighbours.
    cap
        Whether to predict at most the requested time.
    history
        ``submission`` or ``completion``, see :mod:`environment.schedulers.predictors.experience`.
    bounds
        See :class:`~hpcrowd.environment.schedulers.predictors.experience.ComparingPredictor`.
    """

    _histories = ("submission", "completion")
    _model = NEAREST

    def __init__(
        self,
        *,
        n: int = N,
        k: int = K,
        weights: Sequence[float] = WEIGHTS,
        bandwidth: float = LARGEST,
        cap: bool = False,
        history: str = "submission",
        bounds: str = "table",
    ) -> None:
        super().__init__(history, bounds)
        if len(weights) != NOMINAL + NUMERIC:
            raise QuantityError(
                f"weights {tuple(weights)}: {len(weights)} of them; give {NOMINAL + NUMERIC}, for "
                "user, group, queue, job name, processors, requested time, requested memory"
            )
        self.n, self.k = check_whole("n", n, 1), check_whole("k", k, 1)
        self.weights = np.array([check_number("weight", weight) for weight in weights])
        if not self.weights.any():
            raise QuantityError("weights: all are 0; at least one must be positive")
        self.bandwidth = check_number("bandwidth", bandwidth)
        self.cap = cap
        self.name = "nearest"
        first = [self.n, self.k, self.bandwidth, cap]
        self._settings = np.array([*first, *self.weights], np.float64)
        self._masks = 0, sum(1 << place for place in range(NOMINAL) if self.weights[place])
        self._most_neighbours = self.k
