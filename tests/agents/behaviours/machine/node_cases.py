"""Small machines of nodes, runs on them without users yet, and what users changed."""

from typing import Any

from hpcrowd import ReplayUser, Simulation
from hpcrowd.analysis.accounts.reactions import notes_of
from hpcrowd.environment.machine.model import Machine, NodeType, Partition

from tests.environment.machine.machine_cases import machine, table
from tests.support.simulations import simulation_of

#: A partition with a node for everything, and one with a node for short jobs.
TWO = (
    Partition(name="normal", nodes=("n1",), default=True),
    Partition(name="debug", nodes=("d1",), max_time=1000),
)

FULL = {"cores": 4, "partitions": "normal"}

#: User 1 has the node of normal until 500.
BUSY = {**FULL, "run": 500, "user": 1}


def two(**more: Any) -> Machine:
    """Return a machine of two partitions with one node of four cores each."""
    nodes = NodeType(name="n1", cores=4), NodeType(name="d1", cores=4)
    return machine(*nodes, **{"partitions": TWO, **more})


def model_of(
    site: Machine, *jobs: dict[str, Any], asks: bool = True, scheduler: str = "slurm", **more: Any
) -> Simulation:
    """Return a simulation of jobs on a machine, without users; jobs may ask for processors only."""
    made, at = table(*jobs)
    made.recorded_submit[:] = at
    if not asks:
        made.requests = None
    return simulation_of(made, site.cores, scheduler, machine=site, **more)


def pool_of(*jobs: dict[str, Any], processors: int = 4) -> Simulation:
    """Return a simulation of jobs on a pool of equal processors, without users."""
    made, at = table(*jobs)
    made.recorded_submit[:] = at
    made.requests = None
    return Simulation(made, processors)


def changes(users: list[ReplayUser]) -> list[tuple[Any, ...]]:
    """Return row, second, request, before and after of each note."""
    return [
        (note.row, note.decided, note.request, note.request_before, note.request_after)
        for note in notes_of(users)
    ]
