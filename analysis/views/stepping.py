"""From one event of a user to the next: when, and whether anything has happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from analysis.views.moment import Moment


def activity_count(moment: Moment, user: int) -> int:
    """Return how many jobs of a user were submitted, have started and are over, added up.

    It changes exactly when one of these happens to a job of the user.
    """
    rows = moment.rows_of(user)
    parts = moment.submitted, moment.started, moment.ended | moment.never_ran
    return sum(int(np.count_nonzero(part[rows])) for part in parts)


def next_event_of(moment: Moment, user: int) -> int | None:
    """Return the moment at which the next thing has happened to a user that is known by now.

    That is the end of a job that runs, or one second after a submission that is foreseen or an
    alarm of the user, since what comes in a second shows when the next one begins; s since the
    origin, later than now. Other things may happen before: :func:`activity_count` tells. An alarm
    may find that the user does nothing. None when nothing is known.
    """
    jobs, rows = moment.jobs, moment.rows_of(user)
    ends = jobs.end[rows][moment.running[rows]]
    arrivals = jobs.submit[rows][moment.foreseen[rows]] + 1
    alarm = [moment.alarms[user] + 1] if user in moment.alarms else []
    known = np.concatenate([ends, arrivals, np.array(alarm, np.int64)])
    return int(known.min()) if len(known) else None
