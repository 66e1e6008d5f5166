"""Flurries: bursts of submissions by a single user.

Feitelson and Tsafrir (Workload sanitation for performance evaluation, ISPASS 2006) found that logs
hold surges of activity by one user that dominate for a short time, and removed them by hand, log by
log. Here a rule stands for the hand: jobs go that lie in a stretch of time, of a given length, in
which their user submitted more than so many jobs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from environment.errors import QuantityError
from environment.quantities import SECONDS, parse_duration
from environment.trace import Trace

_RATE = re.compile(r"(\d+)\s*/\s*(\d.*|[smhdw])", re.ASCII)


@dataclass(frozen=True)
class Flurry:
    """A burst that was found.

    Attributes
    ----------
    user
        Whose.
    first, last
        When its first and its last job were submitted, s.
    jobs
        How many jobs it has.
    """

    user: int
    first: int
    last: int
    jobs: int


@dataclass(frozen=True)
class FlurryRule:
    """What counts as a flurry.

    A job with submit time s belongs to one when there is a time t with t <= s < t + ``within_s``
    such that its user submitted more than ``most`` jobs from t on and before t + ``within_s``. Jobs
    without a user or a submit time belong to none.

    Attributes
    ----------
    most
        Most jobs that are no flurry. The default finds none in KTH-SP2, LANL-CM5, LLNL-Thunder,
        NASA-iPSC and SDSC-DS as the archive has them cleaned, and 1.5 to 4.4 % of the jobs of
        DAS2-fs1 and LCG, which nobody cleaned, of HPC2N and of CEA-Curie.
    within_s
        Length of the stretches of time, s.
    """

    most: int = 500
    within_s: int = 3600

    def __post_init__(self) -> None:
        if self.most < 1 or self.within_s < 1:
            raise QuantityError(
                f"flurries {self.most}/{self.within_s}s: both numbers must be 1 or more"
            )

    @classmethod
    def parse(cls, text: str) -> FlurryRule:
        """Return the rule of a rate such as ``100/1h`` (more than 100 jobs within an hour).

        Raises
        ------
        QuantityError
            When it is none.
        """
        match = _RATE.fullmatch(text.strip())
        if not match:
            raise QuantityError(f"flurries {text!r}: not jobs per time; write for example 500/1h")
        time = match[2] if match[2][0].isdigit() else f"1{match[2]}"
        return cls(int(match[1]), parse_duration(time))

    def __str__(self) -> str:
        unit = next(u for u in reversed(SECONDS) if self.within_s % SECONDS[u] == 0)
        return f"{self.most}/{self.within_s // SECONDS[unit]}{unit}"

    def find(self, trace: Trace) -> tuple[NDArray[np.bool_], list[Flurry]]:
        """Return which jobs belong to flurries, shape (jobs,), and the flurries by user and time.

        Stretches that share a job are one flurry.
        """
        user, submit = trace["user"], trace["submit"].astype(np.float64)
        rows = np.flatnonzero((user >= 0) & (submit >= 0))
        rows = rows[np.lexsort((submit[rows], user[rows]))]
        user, submit = user[rows], submit[rows]
        # Where a stretch of most + 1 consecutive jobs of a user is short enough, all of them go.
        most = min(self.most, len(rows))
        begins = np.flatnonzero(
            (user[most:] == user[: len(rows) - most])
            & (submit[most:] - submit[: len(rows) - most] < self.within_s)
        )
        burst = _covered(begins, begins + most, len(rows))
        joined = _covered(begins, begins + most - 1, len(rows))  # with the next job of the user
        found = np.zeros(len(trace), bool)
        found[rows[burst]] = True
        first = np.flatnonzero(burst & ~np.append(False, joined)[: len(rows)])
        last = np.flatnonzero(burst & ~joined)
        return found, [
            Flurry(int(user[a]), int(submit[a]), int(submit[b]), int(b - a + 1))
            for a, b in zip(first.tolist(), last.tolist(), strict=True)
        ]


def _covered(first: NDArray[np.intp], last: NDArray[np.intp], length: int) -> NDArray[np.bool_]:
    """Return which of ``length`` places lie in one of the stretches, both ends included."""
    steps = np.bincount(first, minlength=length + 1)
    steps -= np.bincount(last + 1, minlength=length + 1)
    covered: NDArray[np.bool_] = np.cumsum(steps)[:length] > 0
    return covered
