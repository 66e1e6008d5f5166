"""Exact accounts of energy, carbon and cost, from power that is constant between events.

The power of the machine is the sum of what jobs draw (:class:`Blocks`) and of what the rest of the
machine draws (:class:`Rest`), times the power usage effectiveness (PUE). Both are step functions,
and so are the signals: each integral is exact. Every joule is in one of :data:`PARTS`; their sum is
the integral of :meth:`EnergyAccount.curve`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.environment.clock import Clock
from hpcrowd.environment.jobs import Float64s, Int64s
from hpcrowd.environment.quantities import KWH
from hpcrowd.environment.signals.steps import Steps, product

if TYPE_CHECKING:
    from hpcrowd.environment.signals.tariff import Peak, Tariff

#: What energy was used for, and the meaning in one line. The first is useful work.
PARTS = {
    "completed": "jobs that ran to their end",
    "killed": "jobs stopped at their requested time",
    "failed": "jobs that a failure or a preemption ended for good",
    "cancelled": "jobs taken back by their users while they ran",
    "unfinished": "jobs that still ran at the end",
    "preempted": "runs of jobs stopped to make room for others",
    "stopped": "runs of jobs stopped by failures, maintenance or a power cap",
    "idle": "nodes that were on without a job, or the part of them that no job held",
    "asleep": "nodes that were switched off",
    "switching": "nodes that were being switched on or off",
}

#: Parts that jobs are charged with.
OF_JOBS = tuple(PARTS)[:7]

#: Parts that bring nobody a result.
WASTED = ("killed", "failed", "cancelled", "preempted", "stopped", "idle", "asleep", "switching")

#: Keys of the account of a run, and their meaning.
KEYS = {
    "begin_s": "first submission, s since the origin",
    "end_s": "last end of a run of a job, s since the origin",
    "energy_kwh": "energy of the machine, cooling included, as everything below",
    "jobs_kwh": "what jobs are charged with",
    "wasted_kwh": "what brought nobody a result: all parts but `completed` and `unfinished`",
    "cooling_kwh": "what the nodes themselves did not draw",
    "parts_kwh": "energy by part, see below",
    "peak_kw": "highest power",
    "peak_at_s": "when it was first reached, s since the origin",
    "mean_kw": "mean power",
    "switched_on": "how often nodes were switched on",
    "switched_off": "how often nodes were switched off",
    "carbon_kg": "carbon dioxide equivalents; only with a carbon intensity, as the next",
    "parts_carbon_kg": "the same by part",
    "cost": "price of the energy and of monthly peaks; only with a tariff, as the next ones",
    "peak_cost": "price of monthly peaks",
    "parts_cost": "price of the energy by part",
    "currency": "of the prices",
    "notes": "what was assumed, if anything",
}

#: g in a kg, W in a kW; nW in a W.
KILO, NANO = 1e3, 1e9


@dataclass(frozen=True)
class Blocks:
    """What runs of jobs drew, a row for each run, or for each of its pieces."""

    row: Int64s  #: row of the job in the table of jobs, shape (blocks,)
    begin: Int64s  #: s of the run, shape (blocks,)
    end: Int64s
    idle: Float64s  #: W of its share of the idle power of nodes, shape (blocks,)
    added: Float64s  #: W that it adds at full speed, shape (blocks,)
    part: Int64s  #: place of its part in :data:`PARTS`, shape (blocks,)

    def levels(self, first: int, last: int) -> tuple[Int64s, Float64s, Float64s]:
        """Return the sums of their idle and added W between two seconds that hold all blocks.

        They are edges (s), shape (steps + 1,), and idle and added W in each step, shape (steps,)
        each.
        """
        times = np.concatenate([self.begin, self.end, [first, last]])
        order = np.argsort(times)  # of equal times, only the sum matters
        times = times[order]
        last_of = np.flatnonzero(np.append(times[1:] > times[:-1], True))
        found = [times[last_of]]
        for height in (self.idle, self.added):
            # In whole nW, so that what is added is taken away again without a rest.
            whole = np.zeros(len(order), np.int64)
            np.rint(height * NANO, out=whole[: len(height)], casting="unsafe")
            whole[len(height) : 2 * len(height)] = -whole[: len(height)]
            found.append(np.cumsum(whole[order])[last_of[:-1]] / NANO)
        return found[0], found[1], found[2]


@dataclass(frozen=True)
class Rest:
    """What the machine drew beside its jobs."""

    edges: Int64s  #: s of the run, shape (steps + 1,)
    #: W in each step by part: ``idle``, ``asleep``, ``switching``, each of shape (steps,).
    watts: Mapping[str, Float64s]
    switched_on: int = 0  #: how often nodes were switched on and off
    switched_off: int = 0


@dataclass(frozen=True)
class Rates:
    """What a joule counts over time, each from the beginning to the end of the account."""

    pue: Steps  #: power usage effectiveness
    #: What jobs add, relative to full speed; None if the speed never changes.
    speed: Steps | None = None
    carbon: Steps | None = None  #: g/kWh; None if not known
    price: Steps | None = None  #: price of a kWh; None if not known

    def weight(self, signal: Steps | None = None, *, slowed: bool = False) -> Steps:
        """Return what a joule at the node counts over time: PUE, times a signal, times the speed.

        The signal is carbon or price, None for energy; ``slowed`` is a joule that jobs would add at
        full speed.
        """
        factors = [self.pue, *([] if signal is None else [signal])]
        if slowed and self.speed is not None:
            factors.append(self.speed)
        return factors[0] if len(factors) == 1 else product(factors, self.pue.begin, self.pue.end)


@dataclass(frozen=True)
class Totals:
    """Sums of one quantity: J, g or money times J per kWh."""

    blocks: Float64s  #: of each block, shape (blocks,)
    rest: Mapping[str, float]  #: by part, of the rest of the machine

    @property
    def total(self) -> float:
        """All of it."""
        return float(self.blocks.sum()) + sum(self.rest.values())


@dataclass
class EnergyAccount:
    """The energy of one machine in a run; computed when it is first asked for."""

    blocks: Blocks  #: what jobs drew
    #: What the machine drew beside: the idle power of all its nodes, W over time, if they never
    #: sleep; then what jobs do not hold of it is idle. Else the rest itself.
    there: Steps | Rest
    rates: Rates  #: what a joule counts over time
    jobs: int  #: number of rows of the table of jobs
    clock: Clock = field(default_factory=Clock)  #: local time, for months
    #: For the price of the highest power of each month; None without prices.
    tariff: Tariff | None = None
    notes: tuple[str, ...] = ()  #: what was assumed, one line each

    @property
    def begin(self) -> int:
        """Its first second."""
        return self.rates.pue.begin

    @property
    def end(self) -> int:
        """The second after its last one."""
        return self.rates.pue.end

    @cached_property
    def _levels(self) -> tuple[Int64s, Float64s, Float64s]:
        return self.blocks.levels(self.begin, self.end)

    @cached_property
    def rest(self) -> Rest:
        """What the machine drew beside its jobs."""
        if isinstance(self.there, Rest):
            return self.there
        edges, held, _ = self._levels
        there: Float64s | float = self.there.values[0]
        if len(self.there.values) > 1:
            merged = _merged(edges, self.there.edges)
            held, edges = Steps(edges, held).on(merged), merged
            there = self.there.on(edges)
        idle = np.maximum(there - held, 0.0)
        return Rest(edges, {"idle": idle})

    def _totals(self, signal: Steps | None) -> Totals:
        blocks, rest = self.blocks, self.rest
        plain = self.rates.weight(signal)
        slowed = plain if self.rates.speed is None else self.rates.weight(signal, slowed=True)
        of_blocks = blocks.idle * plain.integral(blocks.begin, blocks.end)
        of_blocks += blocks.added * slowed.integral(blocks.begin, blocks.end)
        lengths = plain.integral(rest.edges[:-1], rest.edges[1:])
        # Not as products of vectors, for which BLAS wakes its threads.
        return Totals(of_blocks, {n: float((w * lengths).sum()) for n, w in rest.watts.items()})

    @cached_property
    def joules(self) -> Totals:
        """Energy, J, cooling included."""
        return self._totals(None)

    @cached_property
    def grams(self) -> Totals | None:
        """Carbon, g; None without its intensity over time."""
        return None if self.rates.carbon is None else _per_kwh(self._totals(self.rates.carbon))

    @cached_property
    def money(self) -> Totals | None:
        """Price of the energy, without that of peaks; None without prices."""
        return None if self.rates.price is None else _per_kwh(self._totals(self.rates.price))

    def by_part(self, totals: Totals) -> dict[str, float]:
        """Return the sums of a quantity by part, in the order of :data:`PARTS`."""
        found = np.bincount(self.blocks.part, totals.blocks, len(PARTS))
        return {
            name: totals.rest[name] if name in totals.rest else float(found[place])
            for place, name in enumerate(PARTS)
        }

    def by_job(self, totals: Totals, parts: tuple[str, ...] = OF_JOBS) -> Float64s:
        """Return the sums of a quantity by row of the table of jobs, shape (jobs,)."""
        wanted = np.isin(self.blocks.part, [list(PARTS).index(name) for name in parts])
        return np.bincount(
            self.blocks.row[wanted], totals.blocks[wanted], minlength=self.jobs
        ).astype(np.float64)

    @cached_property
    def curve(self) -> Steps:
        """The power of the machine over time, cooling included, W."""
        (edges, idle, added), rest, rates = self._levels, self.rest, self.rates
        speed = () if rates.speed is None else (rates.speed,)
        every = _merged(edges, rest.edges, *(one.edges for one in (rates.pue, *speed)))

        def on(values: Float64s, own: Int64s) -> Float64s:
            return values if own is every else Steps(own, values).on(every)

        watts = on(added, edges)
        if rates.speed is not None:
            watts = watts * rates.speed.on(every)
        watts = watts + on(idle, edges)
        for part in rest.watts.values():
            watts = watts + on(part, rest.edges)
        pue = rates.pue
        return Steps(every, watts * (pue.values[0] if len(pue.values) == 1 else pue.on(every)))

    @cached_property
    def peak(self) -> tuple[float, int]:
        """The highest power, W, and the second in which it was first reached."""
        place = int(self.curve.values.argmax())
        return float(self.curve.values[place]), int(self.curve.edges[place])

    @cached_property
    def monthly_peaks(self) -> list[Peak]:
        """The highest mean power of each month, as the tariff counts it; none without one."""
        return [] if self.tariff is None else self.tariff.peaks(self.clock, self.curve)

    @cached_property
    def peak_cost(self) -> float:
        """The price of the monthly peaks."""
        if self.tariff is None or not self.tariff.peak_price:
            return 0.0
        return sum(one.cost for one in self.monthly_peaks)

    @cached_property
    def _without_cooling(self) -> float:
        if len(self.rates.pue.values) == 1:
            return self.joules.total / float(self.rates.pue.values[0])
        plain = replace(self.rates, pue=Steps.constant(1.0, self.begin, self.end))
        return replace(self, there=self.rest, rates=plain).joules.total

    def summary(self) -> dict[str, Any]:
        """Return the totals, fit for JSON: the keys of :data:`KEYS` that are known."""
        parts = {name: joules / KWH for name, joules in self.by_part(self.joules).items()}
        total = self.joules.total / KWH
        watts, at = self.peak
        found: dict[str, Any] = {
            "begin_s": self.begin,
            "end_s": self.end,
            "energy_kwh": total,
            "jobs_kwh": sum(parts[name] for name in OF_JOBS),
            "wasted_kwh": sum(parts[name] for name in WASTED),
            "cooling_kwh": total - self._without_cooling / KWH,
            "parts_kwh": {name: value for name, value in parts.items() if value},
            "peak_kw": watts / KILO,
            "peak_at_s": at,
            "mean_kw": self.joules.total / max(self.end - self.begin, 1) / KILO,
            "switched_on": self.rest.switched_on,
            "switched_off": self.rest.switched_off,
        }
        if self.grams is not None:
            found["carbon_kg"] = self.grams.total / KILO
            found["parts_carbon_kg"] = {
                name: value / KILO for name, value in self.by_part(self.grams).items() if value
            }
        if self.money is not None:
            found["cost"] = self.money.total + self.peak_cost
            found["peak_cost"] = self.peak_cost
            found["parts_cost"] = {n: v for n, v in self.by_part(self.money).items() if v}
            found["currency"] = "" if self.tariff is None else self.tariff.currency
        if self.notes:
            found["notes"] = list(self.notes)
        return found

    def between(self, begin: int, end: int) -> dict[str, float]:
        """Return metrics between two seconds: energy, its carbon and price, and highest power.

        They come from the curve alone, which is much faster than :meth:`summary`. The price is
        without that of monthly peaks.
        """
        begin, end = max(begin, self.begin), min(end, self.end)
        curve = self.curve
        if begin >= end:
            return {"energy_kwh": 0.0}

        def spent(signal: Steps) -> float:
            edges = signal.edges[(signal.edges > begin) & (signal.edges < end)]
            edges = np.concatenate([[begin], edges, [end]])
            return float((curve.integral(edges[:-1], edges[1:]) * signal.on(edges)).sum()) / KWH

        inside = slice(*np.searchsorted(curve.edges, [begin + 1, end]) - [1, 0])
        found = {
            "energy_kwh": float(curve.integral(begin, end)) / KWH,
            "power_peak_kw": float(curve.values[inside].max()) / KILO,
        }
        if self.rates.carbon is not None:
            found["carbon_kg"] = spent(self.rates.carbon) / KILO
        if self.rates.price is not None:
            found["energy_cost"] = spent(self.rates.price)
        return found

    def so_far(self) -> dict[str, Any]:
        """Return the totals of :meth:`summary` that need no parts, and the power at the end, kW."""
        spent = self.between(self.begin, self.end)
        found: dict[str, Any] = {
            "energy_kwh": spent["energy_kwh"],
            "power_kw": float(self.curve.values[-1]) / KILO,
        }
        if "carbon_kg" in spent:
            found["carbon_kg"] = spent["carbon_kg"]
        if "energy_cost" in spent:
            found["cost"] = spent["energy_cost"] + self.peak_cost
            found["currency"] = "" if self.tariff is None else self.tariff.currency
        return found

    def columns(self) -> dict[str, Float64s]:
        """Return the columns of :data:`JOB_MEANING` but the job numbers, shape (jobs,) each."""
        lost = tuple(name for name in WASTED if name in OF_JOBS)
        found = {
            "energy_kwh": self.by_job(self.joules) / KWH,
            "wasted_kwh": self.by_job(self.joules, lost) / KWH,
        }
        if self.grams is not None:
            found["carbon_kg"] = self.by_job(self.grams) / KILO
        if self.money is not None:
            found["cost"] = self.by_job(self.money)
        return found


#: The meaning of each column of ``energy.parquet``.
JOB_MEANING = {
    "number": "job number, as in jobs.parquet",
    "energy_kwh": "kWh of all its runs, its share of idle power and of cooling included",
    "wasted_kwh": "of these, kWh of runs that brought no result",
    "carbon_kg": "kg of carbon dioxide equivalents of this energy",
    "cost": "price of this energy, without that of monthly peaks",
}


def _per_kwh(totals: Totals) -> Totals:
    """Return sums of J times a quantity per kWh as that quantity."""
    rest = {name: value / KWH for name, value in totals.rest.items()}
    return Totals(totals.blocks / KWH, rest)


def _merged(edges: Int64s, *others: Int64s) -> Int64s:
    """Return all edges within the first ones, ascending; the first ones if there are no more."""
    first, last = edges[0], edges[-1]
    more = [one[(one > first) & (one < last)] for one in others if one is not edges]
    if not any(len(one) for one in more):
        return edges
    every = np.sort(np.concatenate([edges, *more]), kind="stable")
    apart: Int64s = every[np.append(True, every[1:] > every[:-1])]
    return apart
