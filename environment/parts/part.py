"""What may act in a run beside users, clusters and their schedulers.

The run loop knows no part by name. A part overrides the moments at which it acts, and is called at
these only: where no part acts, a moment costs a look at an empty list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, override

from hpcrowd.environment.errors import check_choice
from hpcrowd.environment.jobs import Int64s

if TYPE_CHECKING:
    from hpcrowd.environment.cluster import Cluster  # circle: for its type only
    from hpcrowd.environment.engine.lock_step import BrokerQueue  # circle: for its type only
    from hpcrowd.environment.schedulers.base import Scheduler  # circle: for its type only
    from hpcrowd.environment.simulation import Simulation  # circle: for its type only


class Part:
    """Acts at some moments of a run; each method is a moment, and does nothing by default."""

    def policy(self, cluster: Cluster, policy: Scheduler | None) -> Scheduler | None:
        """Return the scheduler of a cluster that is being made; None for the recorded schedule."""
        return policy

    def needs_plain(self, cluster: Cluster, policy: Scheduler | None) -> bool:
        """Return whether a cluster with this scheduler must run in plain Python."""
        return False

    def equip(self, cluster: Cluster) -> None:
        """Change a cluster that has been made; before others are."""

    def attach(self, model: Simulation) -> None:
        """Become part of a simulation whose clusters are there; before users join."""

    def broker(self, model: Simulation) -> BrokerQueue | None:
        """Add a broker of the clusters to ``model.places``, and return its queue."""
        return None

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

    def awaited(self) -> Mapping[int, Sequence[int]]:
        """Return the jobs that each job waits for to be over, by row."""
        return {}

    def let_go(self, before: int, row: int) -> None:
        """A user decides that a job is no longer to wait for another one."""

    def whole(self, rows: Int64s) -> Int64s:
        """Return jobs that are to be taken back, with those that go with them."""
        return rows

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


class ClusterPart(Part):
    """Acts on one cluster.

    Parameters
    ----------
    cluster
        Its name; None for the first cluster.
    """

    def __init__(self, cluster: str | None = None) -> None:
        self.cluster = cluster

    def acts_on(self, cluster: Cluster) -> bool:
        """Return whether it acts on a cluster."""
        return cluster.number == 0 if self.cluster is None else cluster.name == self.cluster

    @override
    def attach(self, model: Simulation) -> None:
        """Check that there is such a cluster.

        Raises
        ------
        QuantityError
            If there is none of that name.
        """
        if self.cluster is not None:
            check_choice("cluster", self.cluster, list(model.clusters))


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
