"""Jobs of an accounting that had not ended when it was written, and how long they run.

Limits are no estimate: most jobs use a small part of them. So by default such a job runs as long as
others did that had run as long by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.quantities import parse_duration

#: Words for what is done with them, besides a time.
UNFINISHED = ("typical", "limit", "drop")

#: Jobs of a user that suffice to know how the user's jobs run; our choice.
ENOUGH = 10


def not_ended(columns: Mapping[str, NDArray[Any]], extra: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Return which jobs had not ended, shape (jobs,): they have a state, but no status."""
    status = columns["status"]
    if "final_state" not in extra:
        return np.zeros(len(status), bool)
    found: NDArray[np.bool_] = (extra["final_state"] != "") & (status == UNKNOWN)
    return found


def check_unfinished(how: str) -> None:
    """Raise QuantityError unless ``how`` is one of the words, or a time."""
    if how not in UNFINISHED:
        try:
            parse_duration(how)
        except QuantityError as error:
            raise QuantityError(f"unfinished: {error}, or one of {', '.join(UNFINISHED)}") from None


def lengths(columns: Mapping[str, NDArray[Any]], going: NDArray[np.bool_], how: str) -> Int64s:
    """Return how long jobs run that had not ended, s; at least as long as they had run.

    Parameters
    ----------
    columns
        The fields of the log.
    going
        These jobs, shape (jobs,).
    how
        ``typical``: the median of the part of their limits that other jobs used which had run for
        as large a part, of the same user's if there are :data:`ENOUGH`, else of all; the limit if
        there are none. ``limit``: that. A time such as ``2h``: that, but not beyond the limit.

    Returns
    -------
    lengths
        Shape (jobs that had not ended,); -1 without a limit to run to.
    """
    run, limit = (columns[name].astype(np.int64) for name in ("run", "requested_time"))
    so_far, most = np.maximum(run[going], 0), limit[going]
    known = np.where(most > 0, most, UNKNOWN)
    if how == "limit":
        return np.where(known > 0, np.maximum(so_far, known), UNKNOWN)
    if how != "typical":
        least = parse_duration(how)
        return np.maximum(so_far, np.where(known > 0, np.minimum(least, known), least))
    ended = ~going & (run > 0) & (limit > 0)
    part, user = np.minimum(run[ended] / limit[ended], 1), columns["user"][ended]
    found = np.full(len(known), UNKNOWN)
    for place in np.flatnonzero(known > 0):
        longer = part >= so_far[place] / known[place]
        own = longer & (user == columns["user"][going][place])
        chosen = part[own if own.sum() >= ENOUGH else longer]
        typical = np.median(chosen) * known[place] if len(chosen) else known[place]
        found[place] = max(so_far[place], round(typical))
    return found
