"""What may act in a run beside users, clusters and their schedulers.

The run loop knows no part by name. A part overrides the moments at which it acts, and is called at
these only: where no part acts, a moment costs a look at an empty list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hpcrowd.environment.jobs import Int64s

if TYPE_CHECKING:
    from hpcrowd.environment.cluster import Cluster  # circle: for its type only
    from hpcrowd.environment.simulation import Simulation  # circle: for its type only


class Part:
    """Acts at some moments of a run; each method is a moment, and does nothing by default."""

    def attach(self, model: Simulation) -> None:
        """Become part of a simulation whose clusters are there; before users join."""

    def window(self) -> Any:
        """Return what decides when jobs may join a queue, as ``Rules.window``; None for at once."""
        return None

    def on_unit(self, owner: object, rows: Int64s) -> None:
        """Jobs become a unit that ``owner`` waits for, or the first units of all owners."""

    def on_left_out(self, rows: Int64s) -> None:
        """Users decide not to submit some jobs."""

    def unit_of(self, row: int, unit: int) -> int:
        """Return the unit of a user that a job belongs to; ``unit`` as far as others know."""
        return unit

    def held(self, cluster: Cluster) -> Mapping[int, str]:
        """Return which jobs are submitted to a cluster but not in its queue, and why, by row."""
        return {}

    def take_back(self, rows: Int64s) -> Int64s:
        """Take jobs back that the part keeps; return the others."""
        return rows

    def keeps_jobs(self) -> bool:
        """Return whether it keeps jobs that are yet to come into a queue."""
        return False

    def go_on(self) -> bool:
        """Let jobs go when nothing else is left to happen; return whether any."""
        return False

    def end(self) -> Mapping[str, Any]:
        """Put back what is not of the result, as the run is over; return accounts by name."""
        return {}


#: The moments of a run.
MOMENTS = [name for name in vars(Part) if not name.startswith("_")]


class Parts:
    """The parts of a run, and which of them act at each moment."""

    def __init__(self) -> None:
        self._all: list[Part] = []
        self._acting: dict[str, list[Part]] = {moment: [] for moment in MOMENTS}

    def __iter__(self) -> Iterator[Part]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def add(self, part: Part) -> None:
        """Let a part act at the moments that it overrides."""
        self._all.append(part)
        for moment, acting in self._acting.items():
            if getattr(type(part), moment) is not getattr(Part, moment):
                acting.append(part)

    def at(self, moment: str) -> list[Part]:
        """Return the parts that act at a moment, in the order in which they were added."""
        return self._acting[moment]

    def of[P: Part](self, kind: type[P]) -> P | None:
        """Return the part of a kind; None if the run has none."""
        return next((one for one in self._all if isinstance(one, kind)), None)
