"""Populations: the users of a trace as agents, each with its work and a behaviour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.agents.behaviours.composed import ThinkTime
from hpcrowd.agents.behaviours.hooks import note_replaying
from hpcrowd.agents.behaviours.user import Behaviour, ReplayUser
from hpcrowd.agents.generative.generated import Generating
from hpcrowd.agents.populations.mixture import Mixture
from hpcrowd.agents.presets import PRESETS
from hpcrowd.agents.work.recorded import Work
from hpcrowd.environment.engine.compiled import CompiledEngine
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.simulation import Simulation

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.decisions import DecisionLog
    from hpcrowd.agents.work.units import Units
    from hpcrowd.environment.jobs import Int64s


#: What makes a behaviour from the recorded work.
Factory = Callable[[Work], Behaviour[ReplayUser]]


def add_users(
    model: Simulation,
    work: Work,
    behaviour: str | Factory | Mixture = "think-time",
    *,
    compiled: bool = False,
    sites: Sequence[str] | None = None,
    log: DecisionLog | None = None,
) -> list[ReplayUser]:
    """Put one agent per user of the trace into the model and let each submit its first work.

    Parameters
    ----------
    model
        The simulation, over the table that ``work`` was found in.
    work
        The sessions.
    behaviour
        A name of :data:`agents.presets.PRESETS`, what makes a behaviour from the work (such as a
        subclass of :class:`ThinkTime`), or a mixture of those. Users with the
        same behaviour share it.
    compiled
        Let the compiled engine follow the dependencies of ``think-time`` by itself. The schedule is
        the same; the users are not told when their sessions end.
    sites
        Where each user submits to, in the order of ``work.sessions.users``: names of clusters, or
        ``grid``. The first cluster for all unless given.
    log
        Where users note what they decide, see :mod:`decisions`; users then are called, also
        if ``compiled`` asks for the other way.

    Raises
    ------
    QuantityError
        When the behaviour is not known, or cannot be compiled.
    """
    if isinstance(behaviour, Mixture):
        makers: Sequence[str | Factory] = [part.behaviour for part in behaviour.parts]
        assigned = behaviour.assign(work, model.streams)
    else:
        makers, assigned = [behaviour], np.zeros(len(work.sessions.users), np.int64)
    policies = [maker_of(maker)(work) for maker in makers]
    for policy in policies:
        if isinstance(policy, Generating):
            raise QuantityError(
                f"users {type(policy).__name__}: make up their work, so that their recorded jobs "
                "must not be in the table; begin with hpcrowd.agents.Casting"
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
        note_replaying(log, users)
    elif compiled and any(policy.reacts for policy in policies):
        _compile(model, work, policies)
    for user in users:
        user.behaviour.begin(user)
    return users


def maker_of(maker: str | Factory) -> Factory:
    """Return what makes the behaviour with a name of :data:`hpcrowd.agents.presets.PRESETS`."""
    if not isinstance(maker, str):
        return maker
    if maker not in PRESETS:
        raise QuantityError(
            f"users {maker!r}: not known; choose {', '.join(PRESETS)} or give a Behaviour"
        )
    return PRESETS[maker]


def _partition(
    work: Work, policies: Sequence[Behaviour[ReplayUser]], assigned: Int64s
) -> tuple[Int64s, list[int]]:
    """Return where in ``sessions.rows`` each unit begins, and each user's offset of units."""
    # Where nobody waits for sessions their dependencies need not be found.
    cuts = [_cuts(work, policy.units) for policy in policies]
    if all(first is cuts[0][0] for first, _ in cuts):
        return cuts[0][0], [0] * len(assigned)
    pieces, offsets, count = [], [], 0
    for place, which in enumerate(assigned.tolist()):
        unit_first, user_first = cuts[which]
        first, last = user_first[place : place + 2].tolist()
        pieces.append(unit_first[first:last])
        offsets.append(count - first)
        count += last - first
    return np.append(np.concatenate(pieces), len(work.sessions.rows)), offsets


def _cuts(work: Work, units: Units | None) -> tuple[Int64s, Int64s]:
    """Return where each unit and each user begins; sessions where there are no units."""
    if units is None:
        return work.sessions.session_first, work.sessions.user_first
    return units.first, units.user_first


def _compile(model: Simulation, work: Work, policies: Sequence[Behaviour[ReplayUser]]) -> None:
    engine, policy = model.cluster.engine, policies[0]
    if len(policies) > 1 or type(policy) is not ThinkTime:
        name = "a mixture" if len(policies) > 1 else repr(policy)
    elif not isinstance(engine, CompiledEngine):
        name = f"{policy!r} under {model.cluster.scheduler}"
    else:
        dependencies = work.dependencies
        engine.follow(dependencies.first, dependencies.successor, dependencies.think)
        return
    raise QuantityError(f"compiled users: {name} cannot run compiled; leave out compiled=True")
