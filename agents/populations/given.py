"""Behaviours that users are given in the middle of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcrowd.agents.behaviours.user import Behaviour, ReplayUser
from hpcrowd.agents.populations.handover import hand_over
from hpcrowd.agents.populations.population import Factory, maker_of
from hpcrowd.environment.errors import QuantityError, echo

if TYPE_CHECKING:
    from hpcrowd.environment.simulation import Simulation


def give_behaviour(
    model: Simulation, user: ReplayUser | int, behaviour: str | Factory | Behaviour[ReplayUser]
) -> Behaviour[ReplayUser]:
    """Let a user of a recorded trace follow another behaviour from now on, and return it.

    To be called between two calls of ``model.run(until=...)``. What has arrived at the machine
    stays; what is still to come is taken back and submitted as the new behaviour says, see
    :mod:`hpcrowd.agents.populations.handover`. The name of the behaviour that the user has, or the
    same object, changes nothing at all.

    Parameters
    ----------
    model
        The simulation.
    user
        The user, or its number.
    behaviour
        A name of :data:`hpcrowd.agents.presets.PRESETS`, such as ``rigid``, or FILE.py:NAME; a
        function from the recorded work to a behaviour, such as a :class:`Recipe`; or a behaviour.
        A name that other users of the run have gives the user their object.

    Raises
    ------
    QuantityError
        In one line, and nothing is changed: if there is no such user or behaviour; if the user has
        left; if the user, or users with this behaviour, generate their work; if the behaviour is a
        class with ``begin`` or ``finished`` of its own, or has a ``when`` part without a graph; if
        the graph of the user was changed by hand and the new behaviour waits for other units (not
        if it is rigid); if the old behaviour is a class of your own that has set an alarm for the
        user; or if the behaviour switches jobs to other clusters and the speed of the user's
        cluster is not 1.

    Examples
    --------
    >>> import hpcrowd as hc
    >>> jobs = hc.JobTable()
    >>> rows = jobs.append(2, user=1, processors=1, run_time=60, requested_time=60,
    ...     recorded_submit=[0, 5000], recorded_start=[0, 5000], recorded_end=[1000, 5060])
    >>> model = hc.Simulation(jobs, 4)
    >>> users = hc.add_users(model, hc.Work.of(jobs), "rigid")
    >>> give_behaviour(model.run(until=100), 1, "think-time")
    <ThinkTime SessionGraph x RecordedPauses>
    >>> model.run().jobs.submit.tolist()
    [0, 4060]
    """
    agent = _user(model, user)
    name = behaviour if isinstance(behaviour, str) else _name(behaviour)
    if isinstance(behaviour, str) and behaviour == agent.behaviour.named:
        return agent.behaviour
    made = behaviour if isinstance(behaviour, Behaviour) else _made(model, agent, behaviour)
    if getattr(made, "generates", False):
        raise QuantityError(
            f"behaviour {name} for user {agent.number}: its users make up their work, and this one "
            "replays a record; start another run with it"
        )
    hand_over(agent, made, name)
    return agent.behaviour


def _user(model: Simulation, user: Any) -> ReplayUser:
    """Return a user who replays a record, given itself or its number."""
    agent = user
    if not hasattr(user, "behaviour"):
        found = [one for one in model.agents if getattr(one, "number", None) == user]
        found = [one for one in found if hasattr(one, "behaviour")]
        if not found:
            raise QuantityError(
                f"user {echo(user)}: not in this run; give the number of a user, or the user"
            )
        agent = found[0]
    if not isinstance(agent, ReplayUser):
        raise QuantityError(
            f"user {agent.number}: a {type(agent).__name__}, who makes up the work as it goes, by "
            "alarms of its own behaviour; start another run with another population"
        )
    if agent.model is not model:
        raise QuantityError(
            f"user {agent.number}: of another simulation; give its number, or the user of this one"
        )
    return agent


def _made(model: Simulation, user: ReplayUser, maker: str | Factory) -> Behaviour[ReplayUser]:
    """Return the behaviour of other users of the run by that name, or a new one."""
    if isinstance(maker, str):
        for other in model.agents:
            if isinstance(other, ReplayUser) and other.work is user.work:
                shared: Behaviour[ReplayUser] = other.behaviour
                if shared.named == maker:
                    return shared
    made = maker_of(maker)(user.work)
    made.named = maker if isinstance(maker, str) else None
    return made


def _name(behaviour: Any) -> str:
    """Return what messages and results call a behaviour without a name."""
    if isinstance(behaviour, Behaviour):
        return behaviour.named or repr(behaviour)
    return getattr(behaviour, "__qualname__", None) or type(behaviour).__name__
