"""Populations: the users of a trace as agents, each with its work and a behaviour.

:func:`add_users` makes users who replay their record. :class:`Casting` splits the users of a record
into those who replay and those who generate work, and adds both. A :class:`Mixture` assigns
behaviours to users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from hpcrowd.agents.behaviours.user import Behaviour, ReplayUser, User
from hpcrowd.agents.presets import PRESETS, Recipe, own_behaviour
from hpcrowd.agents.work.graph import Dependencies
from hpcrowd.agents.work.recorded import Work
from hpcrowd.environment.errors import QuantityError, not_one_of
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable, Names, name_of, number_of
from hpcrowd.environment.registry import or_your_own
from hpcrowd.environment.simulation import Simulation, own_errors
from hpcrowd.environment.streams import Streams

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.decisions import DecisionLog
    from hpcrowd.agents.work.units import Units


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


#: A function from the recorded work to a behaviour.
Factory = Callable[[Work], Behaviour[ReplayUser]]

#: The same, including behaviours of users who generate their work.
Maker = Callable[..., Any]


class Generates(Protocol):
    """A behaviour of users who generate their work."""

    def join(self, model: Simulation, place: int) -> User:
        """Return a user of the record, by its index there, as a user of the simulation."""


def add_users(
    model: Simulation,
    work: Work,
    behaviour: str | Factory | Mixture = "think-time",
    *,
    sites: Sequence[str] | None = None,
    log: DecisionLog | None = None,
) -> list[ReplayUser]:
    """Put one agent per user of the trace into the model, and submit the first work of each.

    Parameters
    ----------
    model
        The simulation, over the table that ``work`` was found in.
    work
        The sessions.
    behaviour
        A name of :data:`agents.presets.PRESETS`, a function from the work to a behaviour (such as a
        subclass of :class:`ThinkTime`), or a mixture of those. Users with the same behaviour share
        one object.
    sites
        The site of each user, in the order of ``work.sessions.users``: names of clusters, or
        ``grid``. The first cluster for all unless given.
    log
        The log of users' decisions, see :mod:`decisions`.

    Raises
    ------
    QuantityError
        If the behaviour is not known, or its users generate their work.
    """
    if isinstance(behaviour, Mixture):
        makers: Sequence[str | Factory] = [part.behaviour for part in behaviour.parts]
        assigned = behaviour.assign(work, model.streams)
    else:
        makers, assigned = [behaviour], np.zeros(len(work.sessions.users), np.int64)
    policies = [maker_of(maker)(work) for maker in makers]
    for maker, policy in zip(makers, policies, strict=True):
        policy.named = maker if isinstance(maker, str) else None
        if getattr(policy, "generates", False):
            raise QuantityError(
                f"users {type(policy).__name__}: they generate their work, so their recorded jobs "
                "must not be in the table; use hpcrowd.populations.Casting"
            )
    first, offsets = _partition(work, policies, assigned)
    users = [
        ReplayUser(model, number, policies[which], work, place, offset, site)
        for place, (number, which, offset, site) in enumerate(
            zip(
                work.sessions.users.tolist(),
                assigned.tolist(),
                offsets,
                [None] * len(assigned) if sites is None else sites,
                strict=True,
            )
        )
    ]
    if any(policy.reacts or policy.units is not None for policy in policies):
        owners = [user for user in users for _ in user.units]
        model.own_units(first, work.sessions.rows, owners)
    if log is not None:
        from hpcrowd.agents.behaviours.hooks import note_replaying

        note_replaying(log, users)
    with own_errors(model):
        for user in users:
            user.behaviour.begin(user)
    return users


def maker_of(maker: str | Factory) -> Factory:
    """Return the factory of a behaviour, for a name of :data:`hpcrowd.agents.presets.PRESETS`."""
    if not isinstance(maker, str):
        return maker if isinstance(maker, Recipe) else own_behaviour(maker)
    if maker not in PRESETS:
        raise QuantityError(f"users {maker!r}: {not_one_of(maker, PRESETS)}, {or_your_own(maker)}")
    named = maker in list(PRESETS) or PRESETS.file_in(maker) is not None
    return PRESETS[maker] if named else own_behaviour(maker)


def _partition(
    work: Work, policies: Sequence[Behaviour[ReplayUser]], assigned: Int64s
) -> tuple[Int64s, list[int]]:
    """Return where in ``sessions.rows`` each unit begins, and each user's offset of units."""
    # If no user waits for sessions, their dependencies need not be computed.
    sessions = work.sessions
    cuts = [
        (sessions.session_first, sessions.user_first)
        if policy.units is None
        else (policy.units.first, policy.units.user_first)
        for policy in policies
    ]
    if all(first is cuts[0][0] for first, _ in cuts):
        return cuts[0][0], [0] * len(assigned)
    pieces, offsets, count = [], [], 0
    for place, which in enumerate(assigned.tolist()):
        unit_first, user_first = cuts[which]
        first, last = user_first[place : place + 2].tolist()
        pieces.append(unit_first[first:last])
        offsets.append(count - first)
        count += last - first
    return np.append(np.concatenate(pieces), len(sessions.rows)), offsets


@dataclass(frozen=True)
class Casting:
    """The users of a run before it begins, and the table of jobs that it begins with.

    Attributes
    ----------
    record
        The recorded work of all users.
    rows
        Recorded jobs that are replayed, rows in the table of the record.
    jobs
        The table to simulate: the replayed jobs; users who generate add theirs to it.
    replayed
        The work of users who replay, in ``jobs``; None if there are none.
    behaviour
        The behaviour of users who replay; None if there are none.
    generating
        Behaviours of users who generate work, each with the indices of its users in the record.
    """

    record: Work
    rows: Int64s
    jobs: JobTable
    replayed: Work | None
    behaviour: str | Maker | Mixture | None
    generating: tuple[tuple[Generates, Int64s], ...] = ()

    @classmethod
    def of(cls, work: Work, behaviour: str | Maker | Mixture, streams: Streams) -> Casting:
        """Assign users to behaviours.

        A maker with an attribute ``generates`` that is true makes a
        :class:`~hpcrowd.agents.generative.generated.Generating`.

        Parameters
        ----------
        work
            The record.
        behaviour
            See :func:`add_users`.
        streams
            Random streams of the run, for mixtures.

        Raises
        ------
        QuantityError
            If a behaviour is not known.
        """
        sessions = work.sessions
        if isinstance(behaviour, Mixture):
            makers = [part.behaviour for part in behaviour.parts]
        else:
            makers = [behaviour]
        generates = np.array([getattr(maker_of(maker), "generates", False) for maker in makers])
        if not generates.any():
            return cls(work, np.arange(len(work.jobs)), work.jobs, work, behaviour)
        assigned = (
            behaviour.assign(work, streams)
            if isinstance(behaviour, Mixture)
            else np.zeros(len(sessions.users), np.int64)
        )
        generating = tuple(
            (cast("Generates", maker_of(makers[which])(work)), np.flatnonzero(assigned == which))
            for which in np.flatnonzero(generates).tolist()
        )
        per_user = np.diff(sessions.session_first[sessions.user_first])
        rows = np.sort(sessions.rows[np.repeat(~generates[assigned], per_user)])
        jobs = work.jobs.take(rows)
        parts = [
            Part(makers[which], users=sessions.users[assigned == which].tolist())
            for which in np.flatnonzero(~generates).tolist()
            if (assigned == which).any()
        ]
        if not parts:
            return cls(work, rows, jobs, None, None, generating)
        chains = None if work.chains is None else work.chains.take(rows)
        replayed = Work.of(jobs, sessions.definition, chains)
        return cls(work, rows, jobs, replayed, Mixture(parts), generating)

    def join(
        self, model: Simulation, *, log: DecisionLog | None = None
    ) -> tuple[list[ReplayUser], list[User]]:
        """Put all users into the model and start them; return those who replay, and the others.

        Parameters
        ----------
        model
            The simulation, over :attr:`jobs`.
        log
            See :func:`add_users`.
        """
        replaying: list[ReplayUser] = []
        if self.replayed is not None and self.behaviour is not None:
            replaying = add_users(model, self.replayed, self.behaviour, log=log)
        generated = [
            behaviour.join(model, place)
            for behaviour, places in self.generating
            for place in places.tolist()
        ]
        if log is not None:
            from hpcrowd.agents.behaviours.hooks import note_generating

            note_generating(log, generated)
        for user in generated:
            user.behaviour.begin(user)
        return replaying, generated


def units_after(model: Simulation, users: Sequence[User]) -> Int64s:
    """Return the unit that made a user submit each unit, shape (units,), -1 none."""
    after = np.full(len(model.units), UNKNOWN)
    for user in users:
        for unit, before in user.after.items():
            after[unit] = before
    return after


def with_changes(units: Units, users: Iterable[ReplayUser]) -> Units:
    """Return units with the edges of users' changed graphs; units that they added come last.

    The added ones are in no user's range of ``user_first``.
    """
    graphs = {user.place: user.changed_graph for user in users if user.changed_graph is not None}
    edges, count = units.dependencies, len(units)
    before, after, think = [], [], []
    added: list[Int64s] = []
    for graph in graphs.values():
        place: dict[int, int] = {}
        for unit in sorted(graph.added):
            place[unit] = count + len(added)
            added.append(graph.rows_of(unit))
        for one, two, times in graph.edges(data=True):
            if "think_time" in times:
                before.append(place.get(one, one))
                after.append(place.get(two, two))
                think.append(times["think_time"])
    kept = ~np.isin(units.user[edges.predecessor], list(graphs))
    predecessor = np.append(edges.predecessor[kept], before).astype(np.int64)
    successor = np.append(edges.successor[kept], after).astype(np.int64)
    order = np.lexsort((successor, predecessor))
    predecessor, successor = predecessor[order], successor[order]
    total = count + len(added)
    sizes = [len(rows) for rows in added]
    return replace(
        units,
        rows=np.concatenate([units.rows, *added]),
        first=np.append(units.first, units.first[-1] + np.cumsum(sizes, dtype=np.int64)),
        session=np.append(units.session, np.full(len(added), UNKNOWN)),
        dependencies=Dependencies(
            first=np.searchsorted(predecessor, np.arange(total + 1)),
            successor=successor,
            think=np.append(edges.think[kept], think).astype(np.int64)[order],
            count=np.bincount(successor, minlength=total),
        ),
    )
