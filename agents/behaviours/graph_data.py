"""What the graph of a user knows of its units and edges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, override

from hpcrowd.environment.errors import QuantityError, echo
from hpcrowd.environment.jobs import UNKNOWN

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.user_graph import UserGraph


#: Keys of a node that the run fills, and their meaning.
FACTS = {
    "jobs": "rows of its jobs in the table, by submission",
    "batches": "the same rows, a list for each batch",
    "end": "s; recorded end of the last job to end; None without a record",
    "state": "finished, running, queued, free (the user thinks) or waits",
    "waits_for": "the units that it still waits for",
    "submitted": "s; simulated submission of its first job, also if still to come; None unknown",
    "over": "s; when it was over; None before",
}

#: Keys of an edge that say when the unit may come.
TIMES = {
    "think_time": "s from the end of the unit before to the submission",
    "inter_arrival": "s from the last submission of the unit before to the submission",
}

#: Key of an edge with the jobs of the unit that depend on jobs of the unit before: a list of the
#: rows of both, the other one first.
JOBS = "dependency"


class _Data(MutableMapping[str, Any]):
    """What a node or an edge knows; also anything that its reader puts there."""

    def __init__(self) -> None:
        self._graph: UserGraph | None = None
        self._of: tuple[int, ...] = ()
        self._kept: dict[str, Any] = {}

    def bind(self, graph: UserGraph, *of: int) -> None:
        """Belong to a node or an edge of a graph that a user holds."""
        self._graph, self._of = graph, of

    @property
    def kept(self) -> dict[str, Any]:
        """What was put there, without what the run fills."""
        return self._kept

    @property
    def _keys(self) -> Iterable[str]:
        return self._kept

    @override
    def __getitem__(self, key: str) -> Any:
        return self._kept[key]

    @override
    def __setitem__(self, key: str, value: Any) -> None:
        self._kept[key] = value

    @override
    def __delitem__(self, key: str) -> None:
        del self._kept[key]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    @override
    def __len__(self) -> int:
        return len(list(self._keys))

    @override
    def __repr__(self) -> str:
        return repr(dict(self))

    def copy(self) -> dict[str, Any]:
        """Return what is known now, which no longer changes."""
        return dict(self)


class UnitData(_Data):
    """What a graph knows of a unit: ``start`` (s; recorded) and :data:`FACTS`."""

    @property
    @override
    def _keys(self) -> Iterable[str]:
        return self._kept if self._graph is None else {**self._kept, **FACTS}

    @override
    def __getitem__(self, key: str) -> Any:
        if self._graph is not None and key in FACTS:
            return self._graph.fact(self._of[0], key)
        return super().__getitem__(key)

    @override
    def __setitem__(self, key: str, value: Any) -> None:
        if self._graph is not None and (key in FACTS or key == "start"):
            self._graph.check_open(*self._of)
            if key != "start":
                raise QuantityError(
                    f"{key} of unit {self._of[0]}: what the run makes of it; change its start or "
                    "its edges, or remove it"
                )
            value = seconds(value, f"start of unit {self._of[0]}")
            if value == self._kept[key]:
                return
            super().__setitem__(key, value)
            self._graph.touch(*self._of)
            return
        super().__setitem__(key, value)

    @override
    def __delitem__(self, key: str) -> None:
        if self._graph is not None and (key in FACTS or key == "start"):
            raise QuantityError(f"{key} of unit {self._of[0]}: cannot be left out")
        super().__delitem__(key)


class Wait(_Data):
    """What a graph knows of an edge: :data:`TIMES` or :data:`JOBS`, one at least; the ``reason``.

    The reason is made of ``ended``, ``follows`` and ``dependency``, with ``and`` between them.
    """

    @property
    @override
    def _keys(self) -> Iterable[str]:
        return self._kept if self._graph is None else {**self._kept, "reason": ""}

    @override
    def __getitem__(self, key: str) -> Any:
        if self._graph is not None and key == "reason":
            words = {"think_time": "ended", "inter_arrival": "follows", JOBS: "dependency"}
            return " and ".join(word for time, word in words.items() if time in self._kept)
        return super().__getitem__(key)

    @override
    def __setitem__(self, key: str, value: Any) -> None:
        if self._graph is None:
            super().__setitem__(key, value)
            return
        before, after = self._of
        if key == "reason":
            raise QuantityError(
                f"reason of edge {before} -> {after}: follows from think_time and inter_arrival"
            )
        if key == JOBS:
            raise QuantityError(
                f"{key} of edge {before} -> {after}: comes from the log; remove it, or the edge"
            )
        if key in TIMES:
            self._graph.check_open(after)
            value = seconds(value, f"{key} of edge {before} -> {after}")
            if value == self._kept.get(key):
                return
        super().__setitem__(key, value)
        if key in TIMES:
            self._graph.touch(after)

    @override
    def __delitem__(self, key: str) -> None:
        if self._graph is not None and key in {*TIMES, JOBS, "reason"}:
            before, after = self._of
            self._graph.check_open(after)
            if self._kept.keys() & {*TIMES, JOBS} <= {key}:
                raise QuantityError(
                    f"{key} of edge {before} -> {after}: all that it waits for; remove the edge"
                )
            self._graph.forget(self._kept[key] if key == JOBS else ())
            self._graph.touch(after)
        super().__delitem__(key)


def seconds(value: Any, what: str) -> int:
    """Return a whole number of seconds.

    Raises
    ------
    QuantityError
        If it is negative, or not a whole number.
    """
    try:
        whole = int(value)
    except (TypeError, ValueError, OverflowError):
        whole = UNKNOWN
    if whole < 0 or isinstance(value, str) or whole != value:
        raise QuantityError(f"{what}: {echo(value)}: must be a whole number of seconds, at least 0")
    return whole
