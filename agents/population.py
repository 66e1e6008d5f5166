"""Populations: the users of a trace as agents, each with its sessions and a behaviour."""

from __future__ import annotations

from collections.abc import Callable

from agents.behaviours import Rigid, ThinkTime
from agents.user import Behaviour, ReplayUser
from agents.work import Work
from environment.compiled import CompiledEngine
from environment.errors import QuantityError
from environment.simulation import Simulation

#: Behaviours by the name a user gives.
BEHAVIOURS: dict[str, Callable[[Work], Behaviour[ReplayUser]]] = {
    "rigid": lambda work: Rigid(),
    "think-time": ThinkTime,
}


def add_users(
    model: Simulation,
    work: Work,
    behaviour: str | Callable[[Work], Behaviour[ReplayUser]] = "think-time",
    *,
    compiled: bool = False,
) -> list[ReplayUser]:
    """Put one agent per user of the trace into the model and let each submit its first work.

    Parameters
    ----------
    model
        The simulation, over the table that ``work`` was found in.
    work
        The sessions.
    behaviour
        A name of :data:`BEHAVIOURS`, or what makes a behaviour from the work (such as a subclass of
        :class:`~agents.behaviours.ThinkTime`). All users share it.
    compiled
        Let the compiled engine follow the dependencies of ``think-time`` by itself. The schedule is
        the same; the users are not told when their sessions end.

    Raises
    ------
    QuantityError
        When the behaviour is not known, or cannot be compiled.
    """
    if isinstance(behaviour, str):
        if behaviour not in BEHAVIOURS:
            raise QuantityError(
                f"users {behaviour!r}: not known; choose {', '.join(BEHAVIOURS)} "
                "or give a Behaviour"
            )
        behaviour = BEHAVIOURS[behaviour]
    policy = behaviour(work)
    sessions = work.sessions
    engine = model.cluster.engine
    users = [
        ReplayUser(model, number, policy, work, range(first, last))
        for number, first, last in zip(
            sessions.users.tolist(),
            sessions.user_first[:-1].tolist(),
            sessions.user_first[1:].tolist(),
            strict=True,
        )
    ]
    if policy.reacts:
        owners = [user for user in users for _ in user.sessions]
        model.own_units(sessions.session_first, sessions.rows, owners)
    if compiled and policy.reacts:
        if type(policy) is not ThinkTime or not isinstance(engine, CompiledEngine):
            raise QuantityError(
                f"compiled users: {type(policy).__name__} under {model.cluster.scheduler} cannot "
                "run compiled; leave out compiled=True"
            )
        dependencies = work.dependencies
        engine.follow(dependencies.first, dependencies.successor, dependencies.think)
    for user in users:
        policy.begin(user)
    return users
