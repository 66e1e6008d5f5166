"""Changes of users in the middle of a run, from which a second run goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hpcrowd.agents.behaviours.user import ReplayUser
from hpcrowd.agents.populations.handover import give_behaviour
from hpcrowd.agents.presets import PRESETS
from hpcrowd.environment.errors import QuantityError, not_one_of
from hpcrowd.scenarios.inspector.subjects.course import Course, LiveCourse


def apply_changes(course: Course, changes: Sequence[dict[str, Any]]) -> None:
    """Change users of a run from now on.

    Parameters
    ----------
    course
        The run.
    changes
        One after the other: give a ``user`` another ``behaviour``, the name of a preset; or set the
        ``think_time`` (``seconds``) of the edge of its graph from unit ``before`` to ``after``, add
        the edge, or remove it.

    Raises
    ------
    HpcrowdError
        When one of them is not possible, in one line.
    """
    if not isinstance(course, LiveCourse):
        raise QuantityError("a finished run cannot be changed: open its trace or scenario instead")
    for change in changes:
        user = _user(course, change["user"])
        if change["kind"] == "behaviour":
            name = change["value"]
            known = tuple(PRESETS)  # the registry itself would look for a file of that name
            if name not in known:
                raise QuantityError(f"behaviour {name!r}: {not_one_of(name, known)}")
            give_behaviour(course.model, user, name)
        else:
            _change_edge(user, change)
    course.changed()


def _change_edge(user: ReplayUser, change: dict[str, Any]) -> None:
    """Change an edge of a user's graph."""
    before, after, kind = change["before"], change["after"], change["kind"]
    seconds = change.get("seconds")
    words = f"user {user.number}, edge from {before} to {after}"
    if kind != "remove_edge" and seconds is None:
        raise QuantityError(f"{words}: no think time; give seconds")
    if kind == "add_edge":
        user.graph.add_edge(before, after, think_time=seconds)
        return
    if not user.graph.has_edge(before, after):
        raise QuantityError(f"{words}: there is none; choose one of the graph")
    if kind == "remove_edge":
        user.graph.remove_edge(before, after)
    else:
        user.graph.edges[before, after]["think_time"] = seconds


def _user(course: LiveCourse, number: int) -> ReplayUser:
    user = course.moment().users.get(number)
    if not isinstance(user, ReplayUser):
        raise QuantityError(
            f"user {number}: makes up its work, so there is no graph to change; choose a user who "
            "replays a record"
            if user is not None
            else f"user {number}: not in this run"
        )
    return user
