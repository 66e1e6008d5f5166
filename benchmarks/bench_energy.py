"""Energy: what an account costs on top of a run, and what each policy costs.

Runs with and without take turns in processor time, so that ratios hold while others are at work on
the machine. A run is what `hpcrowd.replay` does with a trace that was read: from settings to
metrics. Rigid users are the hard case: 28,000 jobs take 5 ms in the engine then.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import pytest

from hpcrowd.environment.signals.signal import Signal
from hpcrowd.scenarios.kinds.power_files import PowerConfig
from hpcrowd.scenarios.kinds.replay import replay

KTH, CURIE = "KTH-SP2-1996-2.1-cln", "CEA-Curie-2011-2.1-cln"

#: Pairs of runs; the median of their ratios counts.
PAIRS = 15

NODE = {
    "idle": "117 W", "processor": "241 W", "asleep": "14 W", "on_time": 150,
    "on_energy": "19 kJ", "off_time": 7, "off_energy": "0.7 kJ",
}  # fmt: skip

#: An hour each, for two years: a clean noon.
CARBON = Signal(
    [3600 * hour for hour in range(2 * 365 * 24)],
    [200.0 + 20 * abs(hour % 24 - 13) for hour in range(2 * 365 * 24)],
)

TARIFF = {
    "price": 0.3,
    "peak_price": 10,
    "periods": [{"price": 0.15, "opens": "22h", "closes": "6h"}],
}

#: Descriptions by name, and the target of the ratio to a run without.
DESCRIPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "account": ({}, "<= 1.10"),
    "account with tariff and carbon": ({"tariff": TARIFF, "carbon": CARBON}, ""),
    "idle nodes off": ({"sleep": {"after": 900}}, ""),
    "constant cap": ({"cap": {"watts": "30 kW"}}, ""),
    "jobs wait for clean energy": (
        {"carbon": CARBON, "start": {"slack": "12h"}}, "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("users", ["think-time", "rigid"])
@pytest.mark.parametrize("name", DESCRIPTIONS)
def bench_energy_of_kth(load: Any, figure: Callable[..., None], name: str, users: str) -> None:
    """A replay of KTH with a description of power, and one without."""
    trace, _ = load(KTH)
    more, target = DESCRIPTIONS[name]
    power = PowerConfig.configure(nodes=[NODE], **more)

    def spent(**choices: Any) -> float:
        began = time.process_time()
        run = replay(trace, users=users, **choices)
        assert run.metrics["wait_mean_s"] > 0
        return time.process_time() - began

    spent(), spent(power=power)
    ratios, alone = [], []
    for _ in range(PAIRS):
        without, with_power = spent(), spent(power=power)
        ratios.append(with_power / without)
        alone.append(without)
    figure(f"KTH, EASY, {users}, {name} / without", median(ratios), "times", target)
    figure(f"KTH, EASY, {users}, without, for {name}", median(alone) * 1e3, "ms", "")


def bench_account_of_curie(load: Any, figure: Callable[..., None]) -> None:
    """The account of a replay of Curie, 312,000 jobs."""
    trace, _ = load(CURIE)
    power = PowerConfig.configure(nodes=[NODE | {"processors": 16}], tariff=TARIFF, carbon=CARBON)
    run = replay(trace, users="rigid", power=power)
    began = time.process_time()
    assert run.parts["power"].account["energy_kwh"] > 0
    figure("Curie, account with tariff and carbon", time.process_time() - began, "s", "<= 0.5")
