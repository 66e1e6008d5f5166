"""What a machine draws: nodes by type, jobs, cooling, and the policies that save power.

The power of a node that is on is ``idle`` plus ``processor`` for each busy processor plus ``gpu``
for each busy GPU. A job is charged with what its processors and GPUs add, and with the idle power
of its share of the node; what is left of the idle power is that of the idle machine. Cooling and
losses multiply all of it (PUE, power usage effectiveness).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.limits.numbers import MOST_PUE

if TYPE_CHECKING:
    from hpcrowd.environment.power.caps import PowerCap
    from hpcrowd.environment.power.draws import Draw
    from hpcrowd.environment.power.sleep import SleepRule
    from hpcrowd.environment.power.windows import StartWindow
    from hpcrowd.environment.signals.cooling import Cooling
    from hpcrowd.environment.signals.signal import Signal
    from hpcrowd.environment.signals.tariff import Tariff


@dataclass(frozen=True)
class NodePower:
    """What a node of one type draws.

    Attributes
    ----------
    name
        Of the type.
    processors
        Of one node.
    idle
        W of a node that is on without a job.
    processor, gpu
        W that a busy processor, or a busy GPU, adds.
    asleep
        W of a node that is switched off or sleeps.
    on_time, on_energy
        s and J to switch it on.
    off_time, off_energy
        s and J to switch it off.
    nodes
        Names of the nodes of this type, as in ``n[1-4]``; empty for all that no other type names.

    Raises
    ------
    QuantityError
        If a number is negative, or switching takes energy but no time.
    """

    name: str
    idle: float
    processor: float
    processors: int = 1
    gpu: float = 0.0
    asleep: float = 0.0
    on_time: int = 0
    on_energy: float = 0.0
    off_time: int = 0
    off_energy: float = 0.0
    nodes: str = ""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, int | float) and not 0 <= value < float("inf"):
                raise QuantityError(
                    f"power of {self.name}: {one.name} {value:g}: must be 0 or more"
                )
        if self.processors < 1:
            raise QuantityError(f"power of {self.name}: processors 0: a node has at least 1")
        for way in ("on", "off"):
            if getattr(self, f"{way}_energy") and not getattr(self, f"{way}_time"):
                raise QuantityError(
                    f"power of {self.name}: {way}_energy without {way}_time; give the time it takes"
                )

    @property
    def idle_processor(self) -> float:
        """W of the idle power of a node that one of its processors stands for."""
        return self.idle / self.processors

    @property
    def busy_processor(self) -> float:
        """W that a job is charged with for a processor, its share of the idle power included."""
        return self.idle_processor + self.processor

    @property
    def switching_on(self) -> float:
        """W of a node while it is switched on."""
        return self.on_energy / self.on_time if self.on_time else 0.0

    @property
    def switching_off(self) -> float:
        """W of a node while it is switched off."""
        return self.off_energy / self.off_time if self.off_time else 0.0


@dataclass(frozen=True)
class Power:
    """The power description of a machine.

    Attributes
    ----------
    nodes
        Types of nodes; a pool of equal processors has one.
    draw
        What jobs draw; None for the nodes' constants.
    pue
        Power usage effectiveness: a number, or by outside temperature.
    carbon
        g/kWh over time.
    tariff
        Price of energy over time and of the highest power.
    sleep
        When idle nodes are switched off; None for never.
    cap
        A limit on power; None for none.
    start
        Jobs with slack wait for a window of clean or cheap energy; None for never.
    source
        Where the figures come from.
    """

    nodes: tuple[NodePower, ...]
    draw: Draw | None = None
    pue: float | Cooling = 1.0
    carbon: Signal | None = None
    tariff: Tariff | None = None
    sleep: SleepRule | None = None
    cap: PowerCap | None = None
    start: StartWindow | None = None
    source: str = ""
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if not self.nodes:
            raise QuantityError("power: no nodes; describe at least one type under [[nodes]]")
        if isinstance(self.pue, int | float) and not 1 <= self.pue <= MOST_PUE:
            raise QuantityError(f"power: pue {self.pue:g}: from 1 to {MOST_PUE:g}")

    @property
    def pool(self) -> NodePower:
        """The only type of nodes, as for a pool of equal processors.

        Raises
        ------
        QuantityError
            If there are several.
        """
        if len(self.nodes) > 1:
            raise QuantityError(
                f"power: {len(self.nodes)} types of nodes, but the processors of the machine are "
                "all equal; describe one type, or give --machine FILE"
            )
        return self.nodes[0]
