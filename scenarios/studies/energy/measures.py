"""What a measure saves and what it costs, population by population, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hpcrowd.analysis.paired import Estimate, t_interval
from hpcrowd.environment.clock import DAY, DAYS, HOUR, Clock
from hpcrowd.environment.signals.signal import Signal
from hpcrowd.environment.signals.walls import walls_of
from hpcrowd.environment.streams import Streams

# ---- The setting of the study: a node's power, a tariff, and a carbon intensity that is made up --
# Logs of 1996 to 2012 are replayed as if their processors were those of one node type, so that logs
# differ in their workload alone. What is saved in percent depends on the ratios of the figures, not
# on their size.

#: W of a node of two processors with eight cores of 2.7 GHz: idle, all cores busy, switched off.
#: Georgiou et al. 2015 for the thin nodes of Curie (unconfirmed); nodes like these take 340 W under
#: Linpack (Brochard, EnA-HPC 2013).
IDLE_W, BUSY_W, OFF_W = 117.0, 358.0, 14.0

#: s and J to switch such a node on and off: Rais et al. 2018 for Taurus of Grid'5000 (unconfirmed).
ON_S, ON_J, OFF_S, OFF_J = 150, 18_966.0, 7, 657.0

#: Power usage effectiveness (our choice).
PUE = 1.3

#: EUR per kWh by day and from 22:00 to 6:00, and per kW of the highest power of a month (our
#: choice).
DAY_PRICE, NIGHT_PRICE, PEAK_PRICE = 0.30, 0.15, 10.0
NIGHT_BEGINS, NIGHT_ENDS = 22 * HOUR, 6 * HOUR

#: Processors of a node of each log: KTH and HPC2N from the archive's pages, Curie's thin nodes.
NODE_PROCESSORS = {"KTH": 1, "HPC2N": 2, "Curie": 16}

#: g/kWh by local hour of the day: wind at night, sun at noon, gas in the evening (made up).
INTENSITY = (
    260, 250, 240, 240, 250, 280, 330, 360, 340, 290, 240, 210,
    200, 200, 220, 260, 330, 420, 470, 480, 450, 400, 340, 290,
)  # fmt: skip

#: Days of wind and calm: standard deviation of the logarithm, and correlation of a day with the
#: next (made up).
WIND, LASTING = 0.25, 0.7

#: Seed of the days of wind.
SEED = 27


def power_of(log: str, **policies: Any) -> dict[str, Any]:
    """Return the description of power for a log, as a table, with policies such as ``sleep``."""
    count = NODE_PROCESSORS[log]
    return {
        "name": "power",
        "source": "see the page of the study",
        "pue": PUE,
        "nodes": [
            {
                "name": "thin",
                "processors": count,
                "idle": f"{IDLE_W} W",
                "processor": f"{(BUSY_W - IDLE_W) / count} W",
                "asleep": f"{OFF_W} W",
                "on_time": ON_S,
                "on_energy": f"{ON_J} J",
                "off_time": OFF_S,
                "off_energy": f"{OFF_J} J",
            }
        ],
        "tariff": {
            "price": DAY_PRICE,
            "peak_price": PEAK_PRICE,
            "periods": [
                {
                    "price": NIGHT_PRICE,
                    "opens": NIGHT_BEGINS,
                    "closes": NIGHT_ENDS,
                    "days": list(DAYS),
                }
            ],
        },
        **policies,
    }


def carbon_signal(clock: Clock, until: int) -> Signal:
    """Return a made-up carbon intensity by local hour, for a run that lasts ``until``, s."""
    times = np.arange((until + 2 * DAY) // HOUR) * HOUR - clock.wall(0) % HOUR
    walls = walls_of(clock, times)
    local, day = walls // HOUR % 24, walls // DAY - walls[0] // DAY
    stream = Streams(SEED).generator("wind")
    level, days = 0.0, []
    for _ in range(int(day.max()) + 1):
        level = LASTING * level + WIND * (1 - LASTING**2) ** 0.5 * stream.standard_normal()
        days.append(np.exp(level))
    values = np.array(INTENSITY, np.float64)[local] * np.array(days)[day]
    return Signal(times, values, source="made-up carbon")


def day_cap(clock: Clock, signal: Signal, low: float, high: float) -> Signal:
    """Return a limit on power, W, on the hours of a signal: low by day, high at night prices."""
    hour = walls_of(clock, signal.times) % DAY
    by_day = (hour >= NIGHT_ENDS) & (hour < NIGHT_BEGINS)
    return replace(signal, values=np.where(by_day, low, high), source="power by day")


# ---- what a measure saves --------------------------------------------------------------------

#: The measure that the others are compared with.
USUAL = "as usual"


@dataclass(frozen=True)
class Measured:
    """One run between two seconds, the same for all measures."""

    #: Energy, and the part that brought nobody a result.
    kwh: float
    wasted_kwh: float
    kg: float  #: Carbon.
    cost: float  #: Price of the energy, without that of monthly peaks.
    peak_kw: float  #: Highest power.
    #: Mean wait and mean bounded slowdown of the jobs submitted between the two seconds.
    wait_h: float
    slowdown: float
    work_h: float  #: Processor-hours of jobs that ran to their end, within the two seconds.
    lost: float  #: Part of the work of all users that they gave up, less what came back.
    asked: float  #: Jobs that users changed, as a part of all.
    #: Energy in the windows of a call for less load, and in the 24 h after each.
    window_kwh: float = 0.0
    after_kwh: float = 0.0

    @property
    def kwh_per_work(self) -> float:
        """kWh for 1,000 processor-hours of finished work."""
        return 1000 * self.kwh / self.work_h

    @property
    def kg_per_work(self) -> float:
        """kg of carbon for 1,000 processor-hours of finished work."""
        return 1000 * self.kg / self.work_h

    @property
    def cost_per_work(self) -> float:
        """Price of the energy for 1,000 processor-hours of finished work."""
        return 1000 * self.cost / self.work_h

    @property
    def kg_per_kwh(self) -> float:
        """Carbon intensity of its energy."""
        return self.kg / self.kwh

    @property
    def cost_per_kwh(self) -> float:
        """Mean price of its energy."""
        return self.cost / self.kwh


@dataclass(frozen=True)
class Savings:
    """The runs of one log by measure, one for each population."""

    log: str  #: Name of the log.
    #: By measure, in the order of the populations; :data:`USUAL` is among them.
    runs: Mapping[str, Sequence[Measured]]
    #: The same for calls for less load, by what users do; :data:`USUAL` is among them.
    calls: Mapping[str, Sequence[Measured]]
    facts: Mapping[str, Any]  #: Of the log and its machine.

    def saved(self, measure: str, what: str, *, call: bool = False) -> Estimate:
        """Return by how much less there is of an attribute of :class:`Measured` than as usual.

        In percent, with an interval; ``call``: by calls for less load.
        """
        found = self.calls if call else self.runs
        pairs = zip(found[measure], found[USUAL], strict=True)
        return t_interval(
            [100 * (1 - getattr(one, what) / getattr(usual, what)) for one, usual in pairs]
        )

    def more(self, measure: str, what: str, *, call: bool = False) -> Estimate:
        """Return by how much more of something there is than as usual, with its interval."""
        found = self.calls if call else self.runs
        pairs = zip(found[measure], found[USUAL], strict=True)
        return t_interval([getattr(one, what) - getattr(usual, what) for one, usual in pairs])

    def mean(self, measure: str, what: str, *, call: bool = False) -> Estimate:
        """Return the mean of something with its interval."""
        found = self.calls if call else self.runs
        return t_interval([getattr(one, what) for one in found[measure]])
