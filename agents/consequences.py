"""What users make of their satisfaction: numbers only, so that a configuration can be read at once.

What they mean is done by :class:`agents.satisfaction.Minding`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from environment.clock import WEEK
from environment.errors import QuantityError

#: Names of the formulas of :mod:`agents.satisfaction`, in its order.
FORMULA_NAMES = ("habit", "requested", "alea")


@dataclass(frozen=True)
class Consequences:
    """What users make of their mood. All numbers are chosen here: no measurement was found.

    Attributes
    ----------
    memory
        Units of work over which the mood is averaged.
    most
        Doublings beyond which one unit counts no more.
    elasticity
        Pauses are multiplied by 2 to the power of this times the mood: at 0.5 a user for whom
        all takes twice as long pauses 1.4 times as long, and submits less. In four logs pauses
        follow responses with a slope of -0.1 to 0.1 between sessions and 0.6 between batches
        (:func:`analysis.pause_slopes.pause_slope`).
    absence
        s; pauses from this on are absences and do not depend on the mood.
    tolerance
        Doublings up to which nobody leaves.
    leave
        Probability to leave after a unit, per doubling beyond the tolerance.
    returns
        Probability that who leaves comes back.
    away
        Weeks until then on average; whole ones, at least one, geometrically distributed.
    again
        Probability that a temporary user whose work is done begins it again, per doubling by which
        all was better than it is used to.

    Raises
    ------
    QuantityError
        When a number makes no sense.
    """

    memory: float = 5.0
    most: float = 3.0
    elasticity: float = 0.5
    absence: int = WEEK
    tolerance: float = 1.0
    leave: float = 0.05
    returns: float = 0.5
    away: float = 4.0
    again: float = 0.2

    def __post_init__(self) -> None:
        for name, least in (
            ("memory", 1), ("most", 0), ("elasticity", 0), ("absence", 0), ("tolerance", 0),
            ("leave", 0), ("returns", 0), ("away", 1), ("again", 0),
        ):  # fmt: skip
            value = getattr(self, name)
            if not least <= value < math.inf:
                raise QuantityError(f"{name} {value:g}: at least {least}, and finite")
        if self.returns > 1:
            raise QuantityError(f"returns {self.returns:g}: a probability, at most 1")
