"""What the jobs of a run draw, as users and accounts ask for it."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, override

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Float64s, Int64s
from hpcrowd.environment.machine.hostlists import expand
from hpcrowd.environment.parts.part import Part
from hpcrowd.environment.platform.part import timeline_of  # circle: engines let nodes sleep
from hpcrowd.environment.power.description import NodePower, Power
from hpcrowd.environment.quantities import KWH, format_duration
from hpcrowd.environment.schedulers.on_nodes.in_use import machine_of  # circle: as above, sleep
from hpcrowd.environment.signals.signal import Signal
from hpcrowd.environment.signals.steps import Steps
from hpcrowd.environment.signals.walls import check_span

if TYPE_CHECKING:
    from hpcrowd.environment.cluster import Cluster  # circle: for its type only
    from hpcrowd.environment.machine.model import Machine
    from hpcrowd.environment.power.windows import OpenWindow
    from hpcrowd.environment.simulation import Simulation  # circle: for its type only

#: s of a signal that jobs foresee without a record, which says how long a run is.
FORESEEN = 5 * 364 * DAY


class PowerInUse(Part):
    """The power of the jobs of a run, and the rules that limit it on the first cluster.

    Parameters
    ----------
    power
        The description of the machine; its draw is fitted already, see ``Draw.fitted``.
    measured
        W per processor that was measured of each job; -1 for unknown, or for the jobs of the table
        beyond. None if nothing was measured.

    Attributes
    ----------
    types
        The type of each node of the machine, by name; empty for equal processors.
    """

    def __init__(self, power: Power, measured: Float64s | None = None) -> None:
        self.power, self.measured = power, measured
        self.types: dict[str, NodePower] = {}

    @override
    def attach(self, model: Simulation) -> None:
        """Count the power of the jobs of a simulation, and limit it as the description says.

        Raises
        ------
        QuantityError
            If the description does not fit the machine.
        SignalError
            If a signal does not cover the first submission in the record.
        """
        self.jobs, self.clock, self._streams = model.jobs, model.clock, model.streams
        cluster, power = model.cluster, self.power
        machine = machine_of(cluster)
        if machine is not None:
            self.types = types_of(power, machine)
        self._check_cover()
        if power.cap is not None:
            self._check_can_cap(cluster)
            timeline_of(cluster).limit(power.cap.of(self))
        if power.sleep is not None and machine is None:
            cluster.engine.switch_off(power.sleep.of(power.pool))

    @staticmethod
    def _check_can_cap(cluster: Cluster) -> None:
        if machine_of(cluster) is not None:
            raise QuantityError(
                "power cap: of a pool of equal processors, not of a machine of nodes; leave out "
                "--machine"
            )
        if cluster.engine.scheduler is None:
            raise QuantityError(
                "power cap: the recorded schedule starts jobs whatever they draw; choose a "
                "scheduler"
            )

    def _check_cover(self) -> None:
        """Check that signals cover the first submission, before a run rather than after it."""
        for name in ("pue", "carbon", "tariff"):
            if getattr(self.power, name) is not None:
                self.over(name, *self._recorded)
        tariff = self.power.tariff
        if tariff is not None and tariff.peak_price:
            check_span(*self._recorded)

    @cached_property
    def _recorded(self) -> tuple[int, int]:
        """The first submission and the last end in the record, s of the run."""
        known = self.jobs.recorded_submit[self.jobs.recorded_submit >= 0]
        first = int(known.min()) if len(known) else 0
        return first, max(first + 1, int(self.jobs.recorded_end.max(initial=0)))

    @property
    def foreseen(self) -> int:
        """Until when signals that repeat are looked up in a run, s: as long again as the record.

        For generated work, as long as a long run.
        """
        return 2 * int(self.jobs.recorded_end.max(initial=0)) or FORESEEN

    def _from(self, name: str) -> int:
        """Return 0, or the first submission if a signal of the description begins after 0."""
        signal = self._signal(name)
        begins = 0 if signal is None else int(signal.seconds(self.clock)[0])
        return 0 if begins <= 0 else self._recorded[0]

    @cached_property
    def node(self) -> NodePower:
        """The type of node whose constants count for jobs: that of the nodes not named by others.

        If all are named, the first type. Which nodes a job gets is not known before it starts.
        """
        known = [*self.types.values(), *self.power.nodes]
        return next((one for one in known if not one.nodes), known[0])

    def over(self, name: str, begin: int, end: int) -> tuple[Steps, str]:
        """Return a signal of the description over a part of the run, and what was assumed.

        Parameters
        ----------
        name
            ``pue``, ``carbon`` or ``tariff``, which is there.
        begin, end
            s of the run. Where the run goes on after a signal ends, its last value counts, which
            the returned note says; else the note is empty.

        Raises
        ------
        SignalError
            If the signal does not cover the beginning.
        """
        signal: Any = getattr(self.power, name)
        if isinstance(signal, int | float):
            return Steps.constant(float(signal), begin, end), ""
        last = self.last_second(name)
        if last is None or last >= end or last <= begin:
            steps: Steps = signal.on(self.clock, begin, end)
            return steps, ""
        covered: Steps = signal.on(self.clock, begin, last)
        note = (
            f"{name}: the signal ends {format_duration(end - last)} before the run; its last value "
            "counts from then on"
        )
        edges = np.append(covered.edges, end)
        return Steps(edges, np.append(covered.values, covered.values[-1])), note

    def last_second(self, name: str) -> int | None:
        """Return where a signal of the description ends, s of the run; None if it does not end."""
        signal = self._signal(name)
        return None if signal is None else int(signal.seconds(self.clock)[-1])

    def _signal(self, name: str) -> Signal | None:
        """Return what a part of the description is made from, if that is a signal that ends."""
        value: Any = getattr(self.power, name)
        signal = getattr(value, "temperature", getattr(value, "energy", value))
        return signal if isinstance(signal, Signal) and signal.repeat == "no" else None

    @override
    def window(self) -> OpenWindow | None:
        """Return what decides in a run when jobs join the queue; None if they always do at once.

        Raises
        ------
        QuantityError
            If the signal that they follow is not in the description.
        """
        start = self.power.start
        if start is None:
            return None
        name = "carbon" if start.follow == "carbon" else "tariff"
        if getattr(self.power, name) is None:
            raise QuantityError(
                f"start: follow {start.follow}: the description of power has no {name}; add the "
                f"table [{name}]"
            )
        steps, _ = self.over(name, self._from(name), self.last_second(name) or self.foreseen)
        return start.rule(steps, self._streams, self.clock)

    @cached_property
    def mean_pue(self) -> float:
        """The mean power usage effectiveness, from the origin to the last end in the record."""
        pue = self.power.pue
        if isinstance(pue, int | float):
            return float(pue)
        begin = self._from("pue")
        end = max(begin + DAY, self._recorded[1])
        steps, _ = self.over("pue", begin, end)
        return float(steps.mean(begin, end))

    def watts(self, rows: ArrayLike) -> Float64s:
        """Return W per processor of some jobs, without cooling, shape (rows,)."""
        rows = np.atleast_1d(np.asarray(rows, np.int64))
        if self.power.draw is None:
            found = np.full(len(rows), self.node.busy_processor)
        else:
            found = self.power.draw.watts(self.jobs, rows, self.node)
        if self.measured is not None:
            inside = rows < len(self.measured)
            known = np.zeros(len(rows), bool)
            known[inside] = self.measured[rows[inside]] > 0
            found[known] = self.measured[rows[known]]
        return found

    def energy(self, rows: ArrayLike) -> Float64s:
        """Return the kWh, with cooling, of some jobs if they run as long as they need now."""
        rows = np.atleast_1d(np.asarray(rows, np.int64))
        return self._kwh(rows, self.jobs.run_time[rows])

    def requested_energy(self, rows: ArrayLike) -> Float64s:
        """Return the kWh, with cooling, of some jobs if they run for their requested time."""
        rows = np.atleast_1d(np.asarray(rows, np.int64))
        return self._kwh(rows, self.jobs.requested_time[rows])

    def _kwh(self, rows: Int64s, seconds: Int64s) -> Float64s:
        work = self.jobs.processors[rows] * np.maximum(seconds, 0)
        kwh: Float64s = work * self.watts(rows) * self.mean_pue / KWH
        return kwh


def types_of(power: Power, machine: Machine) -> dict[str, NodePower]:
    """Return the type of each node by its name; its processors are the cores of the node.

    Raises
    ------
    QuantityError
        If a node has no type or two, other processors than its type, or is not of the machine.
    """
    named, other = _named(power)
    found: dict[str, NodePower] = {}
    for name, kind in machine.names():
        cores, one = machine.nodes[kind].cores, named.pop(name, other)
        if one is None:
            raise QuantityError(
                f"power: node {name} has no type; add a type without nodes, which all others are"
            )
        if one.processors not in (1, cores):
            raise QuantityError(
                f"power of {one.name}: processors {one.processors}: node {name} has {cores} "
                "cores; leave processors out"
            )
        found[name] = replace(one, processors=cores)
    if named:
        name, one = next(iter(named.items()))
        raise QuantityError(f"power of {one.name}: node {name!r}: not a node of the machine")
    return found


def _named(power: Power) -> tuple[dict[str, NodePower], NodePower | None]:
    """Return the types of nodes that are named, and that of all others."""
    named: dict[str, NodePower] = {}
    other: NodePower | None = None
    for one in power.nodes:
        if not one.nodes and other is not None:
            raise QuantityError(
                f'power of {one.name}: says no nodes, like {other.name}; write nodes = "n[1-4]"'
            )
        if not one.nodes:
            other = one
            continue
        for name in expand(one.nodes):
            if name in named:
                raise QuantityError(
                    f"power of {one.name}: node {name} is also of {named[name].name}; give it once"
                )
            named[name] = one
    return named, other
