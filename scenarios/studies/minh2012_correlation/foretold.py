"""How well the correlation of run time and processors is foretold: Minh 2012, section 7.4."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.schedulers.correlation import expected_correlation, weekly_correlations


@dataclass(frozen=True)
class ForetoldSigns:
    """How often the sign of a week's correlation was foretold.

    Attributes
    ----------
    correlation
        Correlation of each week, nan where there is none, shape (weeks,).
    expected
        What the two weeks before let expect, nan where nothing, shape (weeks,).
    """

    correlation: NDArray[np.float64]
    expected: NDArray[np.float64]

    @property
    def compared(self) -> int:
        """Weeks that have a correlation and something that was expected."""
        return int(np.count_nonzero(self._both))

    @property
    def right(self) -> int:
        """Those among them whose sign was the expected one."""
        both = self._both
        return int(np.count_nonzero((self.correlation >= 0)[both] == (self.expected >= 0)[both]))

    @property
    def positive(self) -> int:
        """Those among them whose correlation was not negative."""
        return int(np.count_nonzero((self.correlation >= 0)[self._both]))

    @property
    def share(self) -> float | None:
        """Share of :attr:`compared` that was right; None without any."""
        return self.right / self.compared if self.compared else None

    @property
    def commoner(self) -> float | None:
        """Share that is right when the commoner sign is always said, known afterwards only."""
        compared = self.compared
        return max(self.positive, compared - self.positive) / compared if compared else None

    @property
    def _both(self) -> NDArray[np.bool_]:
        both: NDArray[np.bool_] = ~(np.isnan(self.correlation) | np.isnan(self.expected))
        return both


def foretold_signs(submit: Int64s, run_time: Int64s, processors: Int64s) -> ForetoldSigns:
    """Return the correlation of each week beside the mean of the two weeks before.

    Weeks are counted from the first submission. The run times of all jobs of the two weeks are
    taken as known, as in section 7.4; a scheduler knows only those of jobs that have ended, see
    :class:`~hpcrowd.environment.schedulers.correlation.WeeklyCorrelation`.

    Parameters
    ----------
    submit
        Submissions, s, shape (jobs,).
    run_time, processors
        Of the same jobs.
    """
    weeks = weekly_correlations(submit, run_time, processors)
    expected = np.array([expected_correlation(weeks[:week]) for week in range(len(weeks))])
    return ForetoldSigns(weeks, expected)
