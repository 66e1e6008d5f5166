"""Run times that a scheduler expects: estimates, and their correction for jobs that outrun them.

An estimate is made when a job arrives. It is the requested time, the run time itself, a multiple of
the requested time, or comes from a :class:`Predictor`. The kill time of a job is always its
requested time.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from hpcrowd.environment.errors import QuantityError, check_choice

#: s; added to the expected run time each time that a job outruns it: 1, 5, 15, 30 minutes, 1, 2, 5,
#: 10, 20, 50, 100 hours (Tsafrir, Etsion and Feitelson 2007; unconfirmed).
INCREMENTS = (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000)


@dataclass(frozen=True)
class Estimates:
    """Estimates that need no history.

    Attributes
    ----------
    kind
        ``requested``: the requested time. ``exact``: the actual run time.
        ``factor``: the requested time times :attr:`factor`, rounded half up.
    factor
        A positive number of at most 6 decimals.

    Raises
    ------
    QuantityError
        If the factor is not such a number.
    """

    kind: Literal["requested", "exact", "factor"] = "requested"
    factor: float = 1.0

    def __post_init__(self) -> None:
        check_choice("estimates", self.kind, ("requested", "exact", "factor"))
        if not 0 < self.factor <= 1e6 or self.ratio.denominator > 10**6:
            raise QuantityError(
                f"estimates {self.factor}x: the factor must be positive, at most a million, with "
                "at most 6 decimals; write for example 1.5x"
            )

    @property
    def ratio(self) -> Fraction:
        """The factor, exactly."""
        return Fraction(Decimal(str(self.factor)))

    def of(self, requested: int, run: int) -> int:
        """Return the estimate of a job from its requested time and its run time, all in s."""
        if self.kind == "exact":
            return run
        if self.kind == "requested":
            return requested
        ratio = self.ratio
        return (2 * requested * ratio.numerator + ratio.denominator) // (2 * ratio.denominator)

    def __str__(self) -> str:
        return f"{self.factor:g}x" if self.kind == "factor" else self.kind


def believed_end(start: int, estimate: int, requested: int, now: int) -> int:
    """Return when a job that runs at ``now`` is expected to end, for schedulers that plan ahead.

    That is its start plus its estimate. Once that time has passed, the estimate is raised by the
    :data:`INCREMENTS`, one after another, then repeatedly by the last one, to the first time after
    ``now``; but to the requested time first, if that is still to come (Tsafrir, Etsion and
    Feitelson 2007: gradual correction, bounded by the request; increments unconfirmed).

    Parameters
    ----------
    start, now
        s since the origin.
    estimate, requested
        s; the estimate when the job arrived, and the requested time.

    Compiled engines compile this function itself.
    """
    end = start + estimate
    if end > now:
        return end
    more = 0
    for increment in INCREMENTS:
        more += increment
        if end + more > now:
            break
    if end + more <= now:
        last = INCREMENTS[-1]
        more += (now - end - more) // last * last + last
    raised = end + more
    return min(raised, start + requested) if start + requested > now else raised
