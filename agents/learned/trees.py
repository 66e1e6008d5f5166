"""The trees of a learned model, as arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

#: Hours of the day on weekdays, then those on the weekend: the hours of a rhythm.
HOURS = 48

#: Arrays of any type.
Array = NDArray[Any]


class Forest(NamedTuple):
    """A forest of pauses: nodes of all trees, and examples in their leaves.

    The children of an inner node are ``child`` and ``child + 1``; a leaf has ``feature`` -1 and its
    examples are ``members[child:child + size]``.
    """

    root: Array  #: first node of each tree, shape (trees,)
    feature: Array  #: shape (nodes,)
    threshold: Array  #: values up to it go to the first child, shape (nodes,)
    child: Array  #: shape (nodes,)
    size: Array  #: shape (nodes,)
    members: Array  #: examples, shape (entries,)
    pause: Array  #: s, of each example, shape (examples,)
    released: Array  #: s after midnight, when the pause of each example began, same shape
    lift: Array  #: activity of its user at the end of the pause, relative to its begin
    common: Array  #: rhythm of everybody, mean 1, shape (HOURS,)
    prior: float  #: submissions of a user that weigh as much as ``common``
    own: float  #: a user's latest pauses that weigh as much as those of others
    pull: float  #: power of the user's rhythm in the choice of a kind of pause, 0 to 1
    absence: int  #: s; from this on a pause is days and a time of day


class Choices(NamedTuple):
    """A forest of choices, with nodes as those of :class:`Forest`."""

    root: Array  #: first node of each tree, shape (trees,)
    feature: Array  #: shape (nodes,)
    threshold: Array  #: values up to it go to the first child, shape (nodes,)
    child: Array  #: shape (nodes,)
    waits: Array  #: of a leaf: how often users wait for the end of what they have submitted
    again: Array  #: of a leaf: how often they submit work of the same shape next
