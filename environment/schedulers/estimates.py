"""What a scheduler believes about run times: estimates, and what becomes of those outrun.

An estimate is made when a job arrives. It is the requested time, the run time itself, a multiple of
the requested time, or comes from a :class:`Predictor`. The kill time
of a job is its requested time always.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.quantities import parse_factor

if TYPE_CHECKING:
    from hpcrowd.environment.schedulers.predictors.base import Predictor


#: s; by so much more is a job believed to run at each time that it outruns what was believed: 1, 5,
#: 15, 30 minutes, 1, 2, 5, 10, 20, 50, 100 hours (Tsafrir, Etsion and Feitelson 2007; unconfirmed).
INCREMENTS = (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000)


@dataclass(frozen=True)
class Estimates:
    """Estimates that need no history.

    Attributes
    ----------
    kind
        ``requested``: the time the user asked for. ``exact``: the time the job will run.
        ``factor``: the requested time times :attr:`factor`, rounded half up.
    factor
        A positive number of at most 6 decimals.

    Raises
    ------
    QuantityError
        When the factor is not such a number.
    """

    kind: Literal["requested", "exact", "factor"] = "requested"
    factor: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in ("requested", "exact", "factor"):
            raise QuantityError(
                f"estimates {self.kind!r}: not known; choose requested, exact or factor"
            )
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
        """Return the estimate of a job that asked for ``requested`` and will run for ``run``, s."""
        if self.kind == "exact":
            return run
        if self.kind == "requested":
            return requested
        ratio = self.ratio
        return (2 * requested * ratio.numerator + ratio.denominator) // (2 * ratio.denominator)

    def __str__(self) -> str:
        return f"{self.factor:g}x" if self.kind == "factor" else self.kind


#: What texts of predictors begin with; that of a file of one ends in ``.json``.
PREDICTOR_NAMES = ("last-two", "nearest", "history")


def parse_estimates(text: str) -> Estimates | Predictor:
    """Return the estimates that ``text`` means: ``requested``, ``exact``, ``1.5x``, a predictor.

    Predictors are written as in :mod:`predictors.models`, for example ``last-two``,
    ``nearest:k=3``, ``history:SDSC04``, or the path of a file of a trained model.

    Raises
    ------
    QuantityError
        When it means none.
    PredictorError
        When it means a predictor that has to be trained first.
    ModelFileError
        When it names a file that cannot be used.
    """
    if text == "requested":
        return Estimates("requested")
    if text == "exact":
        return Estimates("exact")
    if text.strip().endswith("x"):
        return Estimates("factor", parse_factor(text, "estimates"))
    if text.endswith(".json") or text.partition(":")[0] in PREDICTOR_NAMES:
        from hpcrowd.environment.schedulers.predictors.models import parse_predictor

        predictor = parse_predictor(text)
        predictor.check_ready()
        return predictor
    raise QuantityError(
        f"estimates {text!r}: not known; choose requested, exact, such as 1.5x, "
        f"{', '.join(PREDICTOR_NAMES)}, or a file of a trained model (.json)"
    )


def believed_end(start: int, estimate: int, requested: int, now: int) -> int:
    """Return when a job that runs at ``now`` is believed to end, for schedulers that plan ahead.

    That is its start plus its estimate. Once that is past, the estimate is raised by the
    :data:`INCREMENTS`, one after another, then by the last of them again and again, to the first
    time after ``now``; to the requested time first, if that is still to come (Tsafrir, Etsion and
    Feitelson 2007: gradual correction, bounded by the request; increments unconfirmed).

    Parameters
    ----------
    start, now
        s since the origin.
    estimate, requested
        s: what was believed when the job arrived, and what the user asked for.
    """
    end = start + estimate
    if end > now:
        return end
    for more in accumulate(INCREMENTS):
        if end + more > now:
            break
    else:
        last = INCREMENTS[-1]
        more += (now - end - more) // last * last + last
    raised = end + more
    return min(raised, start + requested) if start + requested > now else raised
