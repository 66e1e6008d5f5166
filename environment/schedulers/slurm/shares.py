"""Fair share: decaying usage of a tree of accounts and users, and the factors of its users.

Fair Tree gives factors by the ranks of users in the tree of accounts. Siblings are ranked by level
fair share, their share among siblings over their part of the parent's usage; a user ranks by the
first account on its way from the root that differs. Accounts that tie are one: their children
compete with each other. The factor is the rank, counted from the last, over the number of users
("Fair Tree Fairshare Algorithm", Cox and Morgan 2014; slurm.conf(5), PriorityFlags).

The classic factor is ``2 ** -(usage / shares / damping)`` (Priority Multifactor page), with a
user's effective usage mixed with that of its accounts by shares.

Usage is what jobs are billed (:mod:`~hpcrowd.environment.schedulers.slurm.billing`) times seconds,
and decays with a half-life: once in a period, earlier usage is multiplied by
``(1 - 0.693 / half-life) ** seconds``, or forgotten when it is reset, and what ran since is added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.machine.model import Account, Machine, PrioritySettings

Floats = NDArray[np.float64]


class Member(NamedTuple):
    """An account or a user in the tree."""

    parent: int  #: place of the account above; -1 for the root
    shares: float  #: raw shares among its siblings
    is_user: bool
    passes: bool = False  #: an account whose children are its siblings, as it takes no shares


class FairTree:
    """The tree of accounts and users: the root first, each account before those below it."""

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
        """Return the factors of users by place, 1 for accounts; usage is of each with all below."""
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


#: ln 2 as Slurm's priority/multifactor writes it.
LN2 = 0.693

ROOT = "root"


#: An account with the shares and limits of those that no description has: copies are quick.
_PLAIN = Account(account=ROOT)


def _made(account: str, user: str = "") -> Account:
    """Return an account, or a user in one, that the description does not have."""
    above = {"parent": account} if user else {}
    return _PLAIN.model_copy(update={"account": account, "user": user} | above)


@dataclass(eq=False)
class Association:
    """An account, or a user in an account.

    Attributes
    ----------
    place
        Its number.
    usage
        Decayed usage of it and all below, billed amount times s; without weights core-seconds.
    factor
        Fair-share factor of a user, 0 to 1.
    """

    place: int
    name: str
    user: str
    account: Account
    parent: Association | None
    children: list[Association] = field(default_factory=list)
    usage: float = 0.0
    factor: float = 1.0

    @property
    def shares(self) -> float:
        """Raw shares."""
        return 0.0 if self.account.shares is None else float(self.account.shares)

    def up(self) -> Iterable[Association]:
        """Yield this and all above it."""
        one: Association | None = self
        while one is not None:
            yield one
            one = one.parent


class Shares:
    """The tree of associations and their usage.

    Users that no account names are added below the root when they first appear, with one share.
    """

    def __init__(self, machine: Machine) -> None:
        self.settings: PrioritySettings = machine.priority
        root = next(
            (one for one in machine.accounts if one.account == ROOT and not one.user),
            Account(account=ROOT, parent=""),
        )
        self._tree: tuple[int, FairTree] | None = None
        self.root = Association(0, ROOT, "", root, None)
        self.all = [self.root]
        self._accounts = {ROOT: self.root}
        self._users: dict[tuple[str, str, str], Association] = {}
        self._default: dict[str, Association] = {}
        waiting = [one for one in machine.accounts if not one.user and one.account != ROOT]
        while waiting:
            ready = [one for one in waiting if one.parent in self._accounts]
            if not ready:
                break  # the description was checked: there is no circle
            for one in ready:
                self._accounts[one.account] = self._add(
                    one.account, one, self._accounts[one.parent]
                )
            waiting = [one for one in waiting if one not in ready]
        for one in machine.accounts:
            if one.user:
                above = self._accounts.get(one.account, self.root)
                found = self._add(one.account, one, above)
                self._users[one.user, one.account, one.partition] = found
                self._default.setdefault(one.user, found)

    def _add(self, name: str, account: Account, parent: Association) -> Association:
        one = Association(len(self.all), name, account.user, account, parent)
        parent.children.append(one)
        self.all.append(one)
        return one

    def of(self, user: str, account: str = "", partition: str = "") -> Association:
        """Return the association of a job's user, account and partition; a new one is added."""
        known = self._known(user, account, partition)
        if known is not None:
            return known
        above = self._accounts.get(account)
        if above is None:
            above = self.root
            if account:
                made = _made(account)
                above = self._accounts[account] = self._add(account, made, self.root)
        made = _made(account or ROOT, user)
        found = self._users[user, account, ""] = self._add(above.name, made, above)
        self._default.setdefault(user, found)
        return found

    def find(self, user: str, account: str = "", partition: str = "") -> Association:
        """Return the association of a job; one that is not known is made up, and not added."""
        known = self._known(user, account, partition)
        if known is not None:
            return known
        above = self._accounts.get(account, self.root)
        name = account or ROOT
        return Association(UNKNOWN, name, user, _made(name, user), above)

    def _known(self, user: str, account: str, partition: str) -> Association | None:
        for key in ((user, account, partition), (user, account, "")):
            if key in self._users:
                return self._users[key]
        return None if account else self._default.get(user)

    def rank(self) -> None:
        """Compute the fair-share factors of all users."""
        usage = np.array([one.usage for one in self.all])
        for one, factor in zip(self.all, self.factors(usage), strict=True):
            one.factor = factor

    def factors(self, usage: Floats) -> list[float]:
        """Return the factors for other usage, shape (associations,), by place; 1 for accounts."""
        if not self.settings.fair_tree:
            return self._classic(usage.tolist())
        if self._tree is None or self._tree[0] != len(self.all):
            self._tree = len(self.all), FairTree([_member(one) for one in self.all])
        return self._tree[1].factors(usage)

    def _classic(self, usage: list[float]) -> list[float]:
        total = usage[0] or 1.0
        norm, effective = [1.0] * len(usage), [1.0 if usage[0] else 0.0] * len(usage)
        found = [1.0] * len(usage)
        for one in self.all[1:]:
            parent, place = one.parent, one.place
            assert parent is not None
            above = parent.place
            if one.account.shares is None:
                norm[place], effective[place] = norm[above], effective[above]
            else:
                level = sum(child.shares for child in parent.children) or 1.0
                norm[place] = norm[above] * one.shares / level
                used = usage[place] / total
                mixed = (effective[above] - used) * one.shares / level
                effective[place] = used + mixed if parent is not self.root else used
            if one.user:
                share = norm[place]
                ratio = effective[place] / share if share else math.inf
                found[place] = 2.0 ** -(ratio / self.settings.damping) if share else 0.0
        return found


def _member(one: Association) -> Member:
    """Return an association as Fair Tree knows it."""
    parent = UNKNOWN if one.parent is None else one.parent.place
    passes = one.account.shares is None and not one.user and one.parent is not None
    return Member(parent, one.shares, bool(one.user), passes)
