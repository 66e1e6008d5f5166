"""Reactions beyond the submission time: the fourth part of a composed behaviour.

See :mod:`agents.composed`. When a unit of work is due, each reaction sees what its user is about to
submit, an :class:`Intention`, and may change it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from agents.user import ReplayUser
    from environment.jobs import Int64s


class Intention:
    """A unit that its user is about to submit.

    Parameters
    ----------
    user
        The user.
    unit
        The unit, due now.

    Attributes
    ----------
    rows
        Its jobs, rows in the table, by submission.
    at
        s; when each is to be submitted, shape (jobs,), now or later.
    """

    def __init__(self, user: ReplayUser, unit: int) -> None:
        self.user = user
        self.unit = unit
        self.rows = user.jobs_of(unit)
        recorded = user.model.jobs.recorded_submit[self.rows]
        self.at: Int64s = recorded - recorded[0] + user.model.time

    def submit(self) -> int:
        """Submit the jobs as they are now, and return the last submission, s."""
        self.user.submitted += 1
        self.user.model.cluster.submit(self.rows, self.at)
        return int(np.max(self.at))


class Reaction:
    """Changes what a user is about to submit. Shared by all users of a behaviour; subclass it."""

    #: Whether :meth:`heard` wants to be called.
    listens = False

    def begin(self, user: ReplayUser) -> None:
        """Get to know a user, before time begins to run."""

    def heard(self, user: ReplayUser, unit: int, now: int) -> None:
        """Take notice of the end of a unit."""

    def react(self, user: ReplayUser, intention: Intention) -> None:
        """Change the intention, or leave it."""
        raise NotImplementedError(f"{type(self).__name__} has to define react()")
