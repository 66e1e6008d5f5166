"""Set the correlation of run time and processors of a workload, and see how well it is foretold.

T. N. Minh: Workload modeling and performance evaluation in parallel systems (thesis, Leiden 2012),
chapter 7: :func:`control_correlation` is its Algorithm 3, :func:`foretold_signs` the measurement of
its section 7.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.schedulers.correlation import expected_correlation, weekly_correlations


def control_correlation(
    run_time: Int64s, processors: Int64s, degrees: Sequence[float], random: np.random.Generator
) -> list[Int64s]:
    """Give jobs other processors, so that they correlate with run times to each given degree.

    The processors are dealt out by the rank of the run time, ascending for a degree from 0 on and
    descending below; then a random share of ``1 - abs(degree)`` of them is permuted. Spearman's
    correlation becomes the largest possible one times the degree (section 7.1). Values and their
    counts stay, and so do the run times and their order.

    Parameters
    ----------
    run_time, processors
        Of the jobs, shape (jobs,).
    degrees
        From -1 to 1.
    random
        Draws who is permuted, and how.

    Returns
    -------
    list of ndarray
        Processors for each degree, shape (jobs,).

    Raises
    ------
    QuantityError
        When a degree is not from -1 to 1, or there are not as many processors as run times.

    Notes
    -----
    Algorithm 3, procedure Control_Correlation. Where run times are equal, who of them gets more
    processors is drawn too, by one draw for all degrees; the text leaves it open, and the order of
    the jobs would otherwise decide.
    """
    if len(run_time) != len(processors):
        raise QuantityError(
            f"processors of {len(processors):,} jobs, run times of {len(run_time):,}: give one of "
            "each for every job"
        )
    for degree in degrees:
        if not -1 <= degree <= 1:
            raise QuantityError(f"degree {degree}: a correlation is from -1 to 1")
    count = len(run_time)
    by_run_time = np.lexsort((random.permutation(count), run_time))
    ascending = np.sort(processors)
    found = []
    for degree in degrees:
        dealt = np.empty_like(processors)
        dealt[by_run_time] = ascending if degree >= 0 else ascending[::-1]
        moved = random.permutation(count)[: round_half_up((1 - abs(degree)) * count)]
        dealt[moved] = dealt[random.permutation(moved)]
        found.append(dealt)
    return found


@dataclass(frozen=True)
class ForetoldSigns:
    """How often the sign of a week's correlation was foretold.

    Attributes
    ----------
    weeks
        Correlation of each week, nan where there is none, shape (weeks,).
    expected
        What the two weeks before let expect, nan where nothing, shape (weeks,).
    """

    weeks: NDArray[np.float64]
    expected: NDArray[np.float64]

    @property
    def compared(self) -> int:
        """Weeks that have a correlation and something that was expected."""
        return int(np.count_nonzero(self._both))

    @property
    def right(self) -> int:
        """Those among them whose sign was the expected one."""
        both = self._both
        return int(np.count_nonzero((self.weeks >= 0)[both] == (self.expected >= 0)[both]))

    @property
    def positive(self) -> int:
        """Those among them whose correlation was not negative."""
        return int(np.count_nonzero((self.weeks >= 0)[self._both]))

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
        both: NDArray[np.bool_] = ~(np.isnan(self.weeks) | np.isnan(self.expected))
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
