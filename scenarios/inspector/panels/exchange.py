"""What the page asks to see, and the answers as JSON: arrays packed, unknown numbers as null."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcrowd.environment.clock import HOUR

#: Types of saved files by their ending.
SAVED_TYPES = {"png": "image/png", "svg": "image/svg+xml", "csv": "text/csv"}


@dataclass(frozen=True)
class Asked:
    """What a picture of the page is of."""

    first: int  #: the time shown, s since the origin
    last: int
    user: int | None = None  #: number of the chosen user; None if none is
    job: int | None = None  #: number of the chosen job; None if none is
    most: int = 20_000  #: most jobs that a Gantt chart draws one by one

    @classmethod
    def of(cls, message: Mapping[str, Any], now: int) -> Asked:
        """Return what a message asks for; by default the week before second ``now``."""
        last = now if message.get("to") is None else int(message["to"])
        first = last - 7 * 24 * HOUR if message.get("from") is None else int(message["from"])
        user, job, most = (message.get(name) for name in ("user", "job", "most"))
        return cls(min(first, last - 1), last, user, job, 20_000 if most is None else most)

    def window(self, now: int) -> int:
        """Return the length of the shown time before second ``now``, s."""
        return max(min(self.last, now) - self.first, HOUR)

    def since(self, now: int) -> int:
        """Return the time from the beginning of the shown time until second ``now``, s."""
        return max(now - self.first, HOUR)


#: Numbers from which an array is packed; shorter ones are lists.
PACKED = 64

#: Largest number of 32 bits.
LARGEST = 2**31 - 1


def packed(values: Any) -> Any:
    """Return an array for the browser: a list if it is short, else its bytes in base64.

    Whole numbers are packed as ``i32`` if they fit, everything else as ``f64``, little endian.
    """
    array = np.asarray(values)
    if array.dtype == object or array.dtype.kind in "US":
        return [cleaned(value) for value in array.tolist()]
    if array.size < PACKED:
        return [cleaned(value) for value in array.ravel().tolist()]
    whole = array.dtype.kind in "biu"
    if whole and (array.dtype.kind == "b" or int(np.abs(array).max()) <= LARGEST):
        return {"i32": base64.b64encode(array.astype("<i4").tobytes()).decode("ascii")}
    return {"f64": base64.b64encode(array.astype("<f8").tobytes()).decode("ascii")}


def cleaned(value: Any) -> Any:
    """Return a number as JSON has it: None if it is not a number or infinite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_json(value: Any) -> bytes:
    """Return a panel as JSON; arrays in it are packed, NaN becomes null."""
    try:  # mostly there is nothing to clean, and looking for it takes ten times as long
        text = json.dumps(value, allow_nan=False, separators=(",", ":"), default=_plain)
    except (TypeError, ValueError):
        text = json.dumps(_plain(value), allow_nan=False, separators=(",", ":"))
    return text.encode()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray):
        return packed(value)
    if isinstance(value, np.generic):
        return cleaned(value.item())
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return cleaned(value)
