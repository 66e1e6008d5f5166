"""Fair Tree: factors of fair share by the ranks of users in the tree of accounts.

Siblings are ranked by level fair share, their share among siblings over their part of the parent's
usage; a user ranks by the first account on its way from the root that differs. Accounts that tie
are one: their children compete with each other. The factor is the rank, counted from the last, over
the number of users ("Fair Tree Fairshare Algorithm", Cox and Morgan 2014; slurm.conf(5),
PriorityFlags).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Member(NamedTuple):
    """An account or a user in the tree."""

    parent: int  #: place of the account above; -1 for the root
    shares: float  #: raw shares among its siblings
    is_user: bool
    passes: bool = False  #: an account whose children are its siblings, as it takes no shares


class FairTree:
    """The tree of accounts and users.

    Parameters
    ----------
    members
        By place, the root first, each account before those below it.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self._is_user = [one.is_user for one in members]
        self._users = sum(self._is_user)
        below: list[list[int]] = [[] for _ in members]
        for place, one in enumerate(members):
            if one.parent >= 0:
                below[one.parent].append(place)

        def siblings(place: int) -> list[int]:
            found = []
            for child in below[place]:
                found += siblings(child) if members[child].passes else [child]
            return found

        self._below = [sorted(siblings(place), key=self._is_user.__getitem__, reverse=True)
                       for place in range(len(members))]  # fmt: skip
        self._parent = np.zeros(len(members), np.int64)
        self._share = np.zeros(len(members))
        self._none = np.array([not one.shares for one in members])
        self._key = b""  # the order of levels that the last factors follow from
        self._found: list[float] = []
        for place, one in enumerate(members):
            if one.is_user or one.passes:
                continue
            shares = sum(members[child].shares for child in siblings(place))
            for child in self._below[place]:
                self._parent[child] = place
                self._share[child] = members[child].shares / shares if shares else 0.0

    def factors(self, usage: Floats) -> list[float]:
        """Return the factors of users by place, 1 for accounts.

        Parameters
        ----------
        usage
            Usage of each with all below, shape (members,).
        """
        above = usage[self._parent]
        with np.errstate(divide="ignore", invalid="ignore"):
            used = np.where(above != 0, usage / above, 0.0)
            levels = np.where(used != 0, self._share / used, np.inf)
        levels[self._none] = 0.0
        order = levels.argsort(kind="stable")
        ranked = levels[order]
        key = order.tobytes() + (ranked[1:] == ranked[:-1]).tobytes()
        if key == self._key:  # as in most minutes
            return self._found
        self._key = key
        self._order: Any = (-levels).tolist()
        self._found = [1.0] * len(levels)
        self._next = self._tied = self._users
        self._walk(self._below[0], tied=False)
        return self._found

    def _walk(self, siblings: list[int], *, tied: bool) -> None:
        """Give ranks to users in the order of level fair share, accounts' users in between.

        Users come before accounts in ``siblings``; ``tied`` says whether the first ties with whom
        came before.
        """
        order, is_user, found, users = self._order, self._is_user, self._found, self._users
        ordered = sorted(siblings, key=order.__getitem__)
        place, before = 0, None
        while place < len(ordered):
            one = ordered[place]
            level = order[one]
            tied = tied if before is None else level == before
            before = level
            if is_user[one]:
                if not tied:
                    self._tied = self._next
                found[one] = self._tied / users
                self._next -= 1
                place += 1
                continue
            children = self._below[one]
            place += 1
            if place < len(ordered) and order[ordered[place]] == level:
                children = list(children)
                while place < len(ordered) and order[ordered[place]] == level:
                    children += self._below[ordered[place]]
                    place += 1
                children.sort(key=is_user.__getitem__, reverse=True)
            self._walk(children, tied=tied)
