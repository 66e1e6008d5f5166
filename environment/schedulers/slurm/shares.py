"""Fair share: decaying usage of a tree of accounts and users, Fair Tree and the classic factor.

Fair Tree (slurm.conf(5), PriorityFlags; "Fair Tree Fairshare Algorithm", Cox and Morgan 2014):
siblings are ranked by level fair share, their share among siblings over their part of the parent's
usage; a user ranks by the first account on its way from the root that differs. The factor is the
rank, counted from the last, over the number of users.

The classic factor is ``2 ** -(usage / shares / damping)`` (Priority Multifactor page), with a
user's effective usage mixed with that of its accounts by shares.

Usage is processor-seconds, or by ``TRESBillingWeights``, that decay with a half-life: once in a
period, earlier usage is multiplied by ``(1 - 0.693 / half-life) ** seconds``, and what ran since is
added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field

from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.machine.model import Account, Machine, PrioritySettings

#: ln 2 as Slurm's priority/multifactor writes it.
LN2 = 0.693

ROOT = "root"


@dataclass(eq=False)
class Association:
    """An account, or a user in an account.

    Attributes
    ----------
    place
        Its number.
    usage
        Decayed usage of it and all below, processor-seconds.
    level
        Level fair share; infinite without usage.
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
    level: float = math.inf
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

    Parameters
    ----------
    machine
        Its accounts and priority settings. Users that no account names are added below the root
        when they first appear, with one share.
    """

    def __init__(self, machine: Machine) -> None:
        self.settings: PrioritySettings = machine.priority
        root = next(
            (one for one in machine.accounts if one.account == ROOT and not one.user),
            Account(account=ROOT, parent=""),
        )
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
                made = Account(account=account)
                above = self._accounts[account] = self._add(account, made, self.root)
        made = Account(account=account or ROOT, user=user)
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
        return Association(UNKNOWN, name, user, Account(account=name, user=user), above)

    def _known(self, user: str, account: str, partition: str) -> Association | None:
        for key in ((user, account, partition), (user, account, "")):
            if key in self._users:
                return self._users[key]
        return None if account else self._default.get(user)

    def copy(self) -> Shares:
        """Return an independent copy, with associations in the same places."""
        other = copy(self)
        other.all = [copy(one) for one in self.all]
        for one in other.all:
            one.parent = None if one.parent is None else other.all[one.parent.place]
            one.children = [other.all[child.place] for child in one.children]
        other.root = other.all[0]
        other._accounts = {key: other.all[one.place] for key, one in self._accounts.items()}
        other._users = {key: other.all[one.place] for key, one in self._users.items()}
        other._default = {key: other.all[one.place] for key, one in self._default.items()}
        return other

    def decay(self, seconds: float) -> None:
        """Let usage decay for some seconds."""
        half_life = self.settings.half_life
        if not half_life or not seconds:
            return
        left = (1 - LN2 / half_life) ** seconds
        for one in self.all:
            one.usage *= left

    def charge(self, association: Association, amount: float, seconds: float) -> None:
        """Charge what ran for the last ``seconds``: ``amount`` processors or billing units."""
        half_life = self.settings.half_life
        kept = (1 - LN2 / half_life) ** seconds if half_life else 1.0
        for one in association.up():
            one.usage += amount * seconds * kept

    def rank(self) -> None:
        """Compute the fair-share factors of all users."""
        if self.settings.fair_tree:
            self._fair_tree()
        else:
            self._classic()

    # Fair Tree

    def _fair_tree(self) -> None:
        users = sum(1 for one in self.all if one.user)
        for parent in self.all:
            siblings = _siblings(parent)
            shares = sum(one.shares for one in siblings)
            for one in siblings:
                share = one.shares / shares if shares else 0.0
                used = one.usage / parent.usage if parent.usage else 0.0
                if not one.shares:
                    one.level = 0.0
                else:
                    one.level = share / used if used else math.inf
        self._ranks = [float(users), float(users)]  # the next rank, and that of ties
        self._walk(_siblings(self.root), False, users)

    def _walk(self, siblings: list[Association], tied_account: bool, users: int) -> None:
        """Give ranks to users in the order of level fair share, accounts' users in between."""
        ordered = sorted(siblings, key=lambda one: (-one.level, not one.user))
        place, before = 0, math.nan
        first = True
        while place < len(ordered):
            one = ordered[place]
            tied = tied_account if first else one.level == before
            first, before = False, one.level
            if one.user:
                if not tied:
                    self._ranks[1] = self._ranks[0]
                one.factor = self._ranks[1] / users
                self._ranks[0] -= 1
                place += 1
                continue
            # Accounts with the same level are one: their children compete with each other.
            children: list[Association] = []
            while (
                place < len(ordered)
                and ordered[place].level == one.level
                and not ordered[place].user
            ):
                children += _siblings(ordered[place])
                place += 1
            self._walk(children, tied, users)

    # the classic factor

    def _classic(self) -> None:
        total = self.root.usage or 1.0
        norm: dict[int, float] = {0: 1.0}
        effective: dict[int, float] = {0: 1.0 if self.root.usage else 0.0}
        for one in self.all[1:]:
            parent = one.parent
            assert parent is not None
            if one.account.shares is None:
                norm[one.place], effective[one.place] = norm[parent.place], effective[parent.place]
            else:
                level = sum(child.shares for child in parent.children) or 1.0
                norm[one.place] = norm[parent.place] * one.shares / level
                used = one.usage / total
                mixed = (effective[parent.place] - used) * one.shares / level
                effective[one.place] = used + mixed if parent is not self.root else used
            if one.user:
                share = norm[one.place]
                ratio = effective[one.place] / share if share else math.inf
                one.factor = 2.0 ** -(ratio / self.settings.damping) if share else 0.0


def _siblings(parent: Association) -> list[Association]:
    """Return the children of an account, with those of children that take its shares."""
    found = []
    for one in parent.children:
        if one.account.shares is None and not one.user:
            found += _siblings(one)
        else:
            found.append(one)
    return found
