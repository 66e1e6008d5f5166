"""Priors of free parameters: what is thought of them before a log is looked at.

======================= ============================================================
``0..2``                every value from 0 to 2 is as likely as any other (uniform)
``30m..8h``             the same for a time
``log:1h..2d``          every factor is as likely as any other (log-uniform)
======================= ============================================================
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hpcrowd.analysis.curves import Floats
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.limits.numbers import LARGEST_SETTING
from hpcrowd.environment.quantities import format_duration, parse_duration, round_half_up

#: Separates the bounds of a prior.
BETWEEN = ".."

#: Begins a log-uniform prior.
LOG = "log:"

#: Units of a duration, see :func:`hpcrowd.environment.quantities.parse_duration`.
UNITS = "smhdw"

#: Smallest distance from a bound, as a share of the prior: its logarithm stays finite.
EDGE = 1e-6

#: The rule of a prior, for messages.
RULE = "write LOW..HIGH, such as 0..2 or 30m..8h, or log:LOW..HIGH for any factor alike"


@dataclass(frozen=True)
class Prior:
    """A free parameter and its prior."""

    name: str  #: Dotted name of the setting, as on the axes of a sweep.
    #: Bounds.
    low: float
    high: float
    log: bool = False  #: Whether its logarithm is uniform, not the value itself.
    whole: bool = False  #: Whether it is a whole number.
    unit: str = ""  #: ``s`` for a time, else empty.

    @classmethod
    def parse(cls, name: str, text: Any) -> Prior:
        """Return the prior of a parameter from text such as ``0..2`` or ``log:1h..2d``.

        A QuantityError is raised when it has another form, or its bounds are none.
        """
        what = f"free {name} {text!r}"
        if not isinstance(text, str) or BETWEEN not in text:
            raise QuantityError(f"{what}: not two bounds; {RULE}")
        log = text.startswith(LOG)
        words = text.removeprefix(LOG).split(BETWEEN)
        if len(words) != 2:
            raise QuantityError(f"{what}: not two bounds; {RULE}")
        timed = any(word.strip()[-1:] in tuple(UNITS) for word in words)
        low, high = (_bound(what, word.strip(), timed=timed) for word in words)
        if not low < high:
            raise QuantityError(f"{what}: the first bound must be less than the second")
        if log and low <= 0:
            raise QuantityError(f"{what}: bounds of log: must be more than 0")
        return cls(name, low, high, log, unit="s" if timed else "")

    def at(self, share: float) -> float:
        """Return the value below which this share of the prior lies."""
        return self.rounded(float(self.values(np.array([share]))[0]))

    @property
    def _ends(self) -> tuple[float, float]:
        """The bounds on the scale on which the prior is uniform."""
        return (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)

    def values(self, shares: Floats) -> Floats:
        """Return the values below which these shares of the prior lie, not rounded."""
        low, high = self._ends
        found: Floats = low + shares * (high - low)
        return np.clip(np.exp(found) if self.log else found, self.low, self.high)

    def shares(self, values: Floats) -> Floats:
        """Return the shares of the prior that lie below values, inside :data:`EDGE`."""
        low, high = self._ends
        found = np.log(np.clip(values, self.low, self.high)) if self.log else values
        return np.clip((found - low) / (high - low), EDGE, 1 - EDGE)

    def rounded(self, value: float) -> float:
        """Return a value as its setting takes it."""
        return round_half_up(value) if self.whole else value

    def shown(self, value: float) -> str:
        """Return a value for people."""
        return format_duration(value) if self.unit == "s" else f"{value:.3g}"

    @property
    def text(self) -> str:
        """The prior for people."""
        return f"{'log ' if self.log else ''}{self.shown(self.low)} to {self.shown(self.high)}"

    def to_json(self) -> dict[str, Any]:
        """Return it fit for JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, wire: dict[str, Any]) -> Prior:
        """Return what :meth:`to_json` described; TypeError or ValueError if it is no prior."""
        found = cls(**wire)
        texts, numbers = (found.name, found.unit), (found.low, found.high)
        if not all(isinstance(one, str) for one in texts):
            raise TypeError(f"name {found.name!r}")
        if not all(isinstance(one, int | float) for one in numbers) or not found.low < found.high:
            raise ValueError(f"bounds {found.low!r} and {found.high!r} of {found.name}")
        if found.log and found.low <= 0:
            raise ValueError(f"bound {found.low!r} of {found.name}")
        return found


def _bound(what: str, word: str, *, timed: bool) -> float:
    """Return a bound from its text."""
    if timed:
        try:
            return parse_duration(word)
        except QuantityError as error:
            raise QuantityError(f"{what}: {error}") from None
    try:
        number = float(word)
    except ValueError:
        raise QuantityError(f"{what}: {word!r} is not a number; {RULE}") from None
    if not abs(number) <= LARGEST_SETTING:
        raise QuantityError(
            f"{what}: {word} is not from -{LARGEST_SETTING:g} to {LARGEST_SETTING:g}"
        )
    return number


def inside(shares: Floats) -> Floats:
    """Return shares of priors on a scale without bounds: their logits, same shape."""
    return np.log(shares) - np.log1p(-shares)


def from_inside(logits: Floats) -> Floats:
    """Return the shares that :func:`inside` made logits of."""
    found: Floats = 1 / (1 + np.exp(-np.clip(logits, -LARGEST_LOGIT, LARGEST_LOGIT)))
    return np.clip(found, EDGE, 1 - EDGE)


#: Largest logit that matters: that of the edge of a prior.
LARGEST_LOGIT = math.log(1 / EDGE)
