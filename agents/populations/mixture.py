"""Mixed populations: assignment of behaviours to users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s

if TYPE_CHECKING:
    from hpcrowd.agents.work.recorded import Work
    from hpcrowd.environment.streams import Streams


#: Tolerance of the sum of shares.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Part:
    """One behaviour of a mixture and its users.

    Attributes
    ----------
    behaviour
        A name of :data:`hpcrowd.agents.presets.PRESETS`, or a function from the work to a
        behaviour.
    share
        Probability for each user that is not named, from 0 to 1.
    groups
        Numbers of groups whose users have it. A user's group is that of its first job.
    users
        Numbers of users that have it; takes precedence over groups.
    """

    behaviour: str | Callable[..., Any]
    share: float = 0.0
    groups: Sequence[int] = ()
    users: Sequence[int] = ()


class Mixture:
    """Several behaviours in one population.

    Users named by a part have its behaviour, then the users of groups named by a part. Every other
    user draws a behaviour by the shares, from the user's own random stream, so that an additional
    user does not change the others.

    Parameters
    ----------
    parts
        At least one part. Shares add up to 1, or are all 0 if all users are named.

    Raises
    ------
    QuantityError
        If shares are out of range or do not add up, or a user or group is named twice.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)
        if not self.parts:
            raise QuantityError("mixture without parts: give at least one behaviour")
        for part in self.parts:
            if not 0 <= part.share <= 1:
                raise QuantityError(f"share {part.share:g}: must be between 0 and 1")
        total = sum(part.share for part in self.parts)
        if total and abs(total - 1) > TOLERANCE:
            shares = " + ".join(f"{part.share:g}" for part in self.parts if part.share)
            raise QuantityError(f"shares {shares} = {total:g}: must add up to 1")
        self._of_user = self._named("users")
        self._of_group = self._named("groups")

    def __repr__(self) -> str:
        names = [
            part.behaviour
            if isinstance(part.behaviour, str)
            else getattr(part.behaviour, "__qualname__", repr(part.behaviour))
            for part in self.parts
        ]
        return f"mixture of {', '.join(names)}"

    def _named(self, what: str) -> dict[int, int]:
        named: dict[int, int] = {}
        for place, part in enumerate(self.parts):
            for number in getattr(part, what):
                if number in named:
                    raise QuantityError(f"{what} {number}: named twice; keep one")
                named[number] = place
        return named

    def assign(self, work: Work, streams: Streams) -> Int64s:
        """Return the index of each user's part, shape (users,).

        Raises
        ------
        QuantityError
            If a named user or group is not in the trace, or a user has no part.
        """
        sessions = work.sessions
        groups = work.jobs.group[sessions.rows[sessions.session_first[sessions.user_first[:-1]]]]
        for what, named, there in (
            ("user", self._of_user, sessions.users),
            ("group", self._of_group, groups),
        ):
            missing = sorted(set(named) - set(there.tolist()))
            if missing:
                raise QuantityError(f"{what} {missing[0]}: named in the mixture, not in the trace")
        bounds = np.cumsum([part.share for part in self.parts])
        assigned = np.full(len(sessions.users), UNKNOWN)
        for place, (user, group) in enumerate(
            zip(sessions.users.tolist(), groups.tolist(), strict=True)
        ):
            which = self._of_user.get(user, self._of_group.get(group))
            if which is None and bounds[-1]:
                drawn = streams.generator("mixture", user).random() * bounds[-1]
                which = int(np.searchsorted(bounds, drawn, side="right"))
            if which is None:
                raise QuantityError(
                    f"user {user}: no part of the mixture names it or its group; give shares"
                )
            assigned[place] = which
        return assigned
