"""Mixed populations: assignment of behaviours to users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, Names, name_of, number_of

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
        Groups whose users have it, by name or number. A user's group is that of its first job.
    users
        Users that have it, by name or number; takes precedence over groups.
    """

    behaviour: str | Callable[..., Any]
    share: float = 0.0
    groups: Sequence[int | str] = ()
    users: Sequence[int | str] = ()


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
        for what in ("user", "group"):
            named = [str(who) for part in self.parts for who in getattr(part, f"{what}s")]
            for who in {who for who in named if named.count(who) > 1}:
                raise QuantityError(f"{what}s {who}: named twice; keep one")

    def __repr__(self) -> str:
        names = [
            part.behaviour
            if isinstance(part.behaviour, str)
            else getattr(part.behaviour, "__qualname__", repr(part.behaviour))
            for part in self.parts
        ]
        return f"mixture of {', '.join(names)}"

    def _named(self, what: str, names: Names) -> dict[int, int]:
        """Return the part of each user, or group, that a part names."""
        named: dict[int, int] = {}
        for place, part in enumerate(self.parts):
            for who in getattr(part, f"{what}s"):
                number = number_of(names, what, who)
                if number in named:
                    raise QuantityError(f"{what}s {who}: named twice; keep one")
                named[number] = place
        return named

    def assign(self, work: Work, streams: Streams) -> Int64s:
        """Return the index of each user's part, shape (users,).

        Raises
        ------
        QuantityError
            If a named user or group is not in the trace or is named twice, or a user has no part.
        """
        names = work.jobs.names
        of_user, of_group = self._named("user", names), self._named("group", names)
        sessions = work.sessions
        groups = work.jobs.group[sessions.rows[sessions.session_first[sessions.user_first[:-1]]]]
        for what, named, there in (
            ("user", of_user, sessions.users),
            ("group", of_group, groups),
        ):
            missing = sorted(set(named) - set(there.tolist()))
            if missing:
                name = name_of(names, what, missing[0])
                raise QuantityError(f"{what} {name}: named in the mixture, not in the trace")
        bounds = np.cumsum([part.share for part in self.parts])
        assigned = np.full(len(sessions.users), UNKNOWN)
        for place, (user, group) in enumerate(
            zip(sessions.users.tolist(), groups.tolist(), strict=True)
        ):
            which = of_user.get(user, of_group.get(group))
            if which is None and bounds[-1]:
                drawn = streams.generator("mixture", user).random() * bounds[-1]
                which = int(np.searchsorted(bounds, drawn, side="right"))
            if which is None:
                name = name_of(names, "user", user)
                raise QuantityError(
                    f"user {name}: no part of the mixture names it or its group; give shares"
                )
            assigned[place] = which
        return assigned
