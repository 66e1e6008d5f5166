"""The predictor of Tsafrir, Etsion and Feitelson 2007: the user's two latest jobs that have ended.

The prediction is the mean of their run times; with one such job its run time, with none the
requested time. "Latest" goes by submission. As an option it is at most the requested time.
"""

from __future__ import annotations

import numpy as np

from hpcrowd.environment.schedulers.predictors.experience import ComparingPredictor, check_whole
from hpcrowd.environment.schedulers.predictors.kernel.prediction import LAST_TWO

#: Jobs that are averaged (Tsafrir et al. 2007, as thesis section 8.1 describes it).
JOBS = 2


class LastTwo(ComparingPredictor):
    """Predicts the mean run time of the user's latest jobs that have ended.

    Parameters
    ----------
    jobs
        How many.
    cap
        Whether to predict at most the requested time.
    history
        What "latest" goes by: ``submission``, or ``completion``.
    """

    _histories = ("submission", "completion")
    _model = LAST_TWO
    _numbers = False

    def __init__(self, *, jobs: int = JOBS, cap: bool = False, history: str = "submission") -> None:
        super().__init__(history, "seen")
        self.jobs = check_whole("jobs", jobs, 1)
        self.cap = cap
        self.name = "last-two"
        self._settings = np.array([self.jobs, cap], np.float64)
        self._masks, self._most_neighbours = (1, 1), self.jobs
