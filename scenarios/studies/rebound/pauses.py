"""How much longer users of a log pause after longer responses: a slope in doublings.

The slope of log2(pause + grace) over log2(response + grace) within users: at 0.5 a user pauses 1.4
times as long after a response twice as long. It corresponds to the elasticity of
:class:`hpcrowd.agents.populations.openness.Consequences` for a user who reacts to the machine; in a
log it also contains how the length of jobs depends on the hour and on the work.
"""

from __future__ import annotations

import numpy as np

from hpcrowd.agents.work.units import Units
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.errors import ModelFitError

#: s; added to pauses and responses, so that a few seconds do not count as a multiple; as in
#: :class:`hpcrowd.agents.populations.satisfaction.Habit`.
GRACE = 600


#: s; pauses from this on are absences; as in :class:`Consequences`.
ABSENCE = WEEK


def pause_slope(units: Units, grace: int = GRACE, absence: int = ABSENCE) -> float:
    """Return the slope of pauses over the responses before them, within users, least squares.

    Parameters
    ----------
    units
        Recorded sessions or batches; pauses are their think times, and responses those of the last
        job to end among those that they waited for.
    grace, absence
        s; see :data:`GRACE` and :data:`ABSENCE`.

    Raises
    ------
    ModelFitError
        When no user paused after two different responses.
    """
    there = (units.think_time >= 0) & (units.think_time < absence)
    pause = np.log2(grace + units.think_time[there])
    response = np.log2(grace + units.response[units.awaited[there]])
    user = units.user[there]
    count = np.maximum(np.bincount(user, minlength=1), 1)
    x = response - (np.bincount(user, response, minlength=1) / count)[user]
    y = pause - (np.bincount(user, pause, minlength=1) / count)[user]
    spread = float(x @ x)
    if spread <= 1e-9 * max(len(x), 1):  # rounding errors of equal numbers
        raise ModelFitError(
            f"pauses: {len(x)} of them",
            "no user paused after two different responses; take a longer trace",
        )
    return float(x @ y) / spread
