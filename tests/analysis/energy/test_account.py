"""Accounts of energy: exact over steps, complete over parts, by job."""

import numpy as np
import pytest
from hpcrowd.analysis.energy.account import PARTS, Blocks, EnergyAccount, Rates
from hpcrowd.analysis.energy.part import carbon_text, energy_lines, energy_text, part_rows
from hpcrowd.environment.quantities import KWH
from hpcrowd.environment.signals.steps import Steps, product
from hpcrowd.environment.signals.tariff import Tariff

IDLE, ADDED = 60.0, 40.0  # W of a processor, and what a busy one adds


def test_each_joule_of_a_story():
    """Two jobs on three processors: each part by hand, with cooling, carbon, prices and a peak."""
    row, begin, end, processors = np.array([[0, 0, 100, 2], [1, 50, 150, 1]]).T
    part = np.array([list(PARTS).index(name) for name in ("completed", "killed")])
    blocks = Blocks(row, begin, end, IDLE * processors, ADDED * processors, part)
    carbon, price = Steps([0, 100, 200], [100.0, 300.0]), Steps([0, 50, 200], [0.1, -0.2])
    rates = Rates(Steps([0, 200], [1.5]), carbon=carbon, price=price)
    tariff = Tariff(peak_price=10.0, peak_window=100)
    account = EnergyAccount(blocks, Steps([0, 200], [3 * IDLE]), rates, jobs=3, tariff=tariff)
    parts = account.by_part(account.joules)
    idle = IDLE * (1 * 50 + 0 * 50 + 2 * 50 + 3 * 50)
    for part, joules in (("completed", 2 * 100 * 100), ("killed", 100 * 100), ("idle", idle)):
        assert 1.5 * joules == pytest.approx(parts[part])
    found = account.summary()
    assert sum(parts.values()) / KWH == pytest.approx(found["energy_kwh"])
    assert found["energy_kwh"] / 3 == pytest.approx(found["cooling_kwh"])
    assert (0.45, 50) == (found["peak_kw"], found["peak_at_s"])
    grams = 1.5 * 100 * (50 * 100 + 50 * 300) / KWH
    assert [0.0] == account.by_job(account.grams)[2:].tolist()
    assert grams == pytest.approx(account.by_job(account.grams)[1])
    assert 1.5 * 100 * 100 * -0.2 / KWH == pytest.approx(account.columns()["cost"][1])
    mean = 1.5 * (0.5 * 260 + 0.5 * 300)
    assert [mean] == pytest.approx([one.power for one in account.monthly_peaks])
    assert mean / 1000 * 10 == pytest.approx(found["peak_cost"])
    assert found["peak_cost"] + account.money.total == pytest.approx(found["cost"])
    # In two parts the power is 390 W, then 450 W; then 330 W.
    assert pytest.approx({
        "energy_kwh": (390 * 40 + 450 * 50 + 330 * 20) / KWH, "power_peak_kw": 0.45,
        "carbon_kg": (390 * 40 * 100 + 450 * 50 * 100 + 330 * 20 * 300) / KWH / 1000,
        "energy_cost": (390 * 40 * 0.1 - (450 * 50 + 330 * 20) * 0.2) / KWH,
    }) == account.between(10, 120)  # fmt: skip
    assert 0.39 == pytest.approx(account.between(0, 50)["power_peak_kw"])


def test_words_of_an_account():
    """Lines and rows name energy, carbon and cost in readable units."""
    energy = {
        "energy_kwh": 20_000.0, "mean_kw": 10.0, "peak_kw": 30.0, "carbon_kg": 3_000.0,
        "cost": 1234.5, "currency": "EUR", "switched_on": 3, "switched_off": 4,
        "parts_kwh": {"completed": 15_000.0, "idle": 5_000.0},
        "parts_cost": {"completed": 1_000.0, "idle": 234.5},
    }  # fmt: skip
    lines = energy_lines(energy)
    assert [
        "energy 20.0 MWh, 10.00 kW on average and 30.00 kW at most, 3,000 kg of carbon, "
        "1,234.50 EUR",
        "nodes switched off 4 times and on 3 times",
    ] == lines
    assert ("75.0 %", "25.0 %") == tuple(row[2] for row in part_rows(energy))
    assert [] == energy_lines({})
    assert ("0.250 kWh", "25.0 t") == (energy_text(0.25), carbon_text(25_000))


def test_product_of_steps():
    """A product has the edges of all its factors between two seconds."""
    found = product([Steps([0, 10, 20], [1.0, 2.0]), Steps([-5, 15, 30], [3.0, 4.0])], 5, 20)
    assert ([5, 10, 15, 20], [3.0, 6.0, 8.0]) == (found.edges.tolist(), found.values.tolist())
