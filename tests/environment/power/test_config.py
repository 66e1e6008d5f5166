"""Descriptions of power in TOML, and runs with them: settings, mistakes, results, repeats."""

import json
import re
from typing import Any

import numpy as np
import pytest
from hpcrowd import HpcrowdError
from hpcrowd.analysis.energy.account import EnergyAccount
from hpcrowd.analysis.energy.part import over_time_of
from hpcrowd.analysis.results import read_results, write_results
from hpcrowd.environment.machine.model import Machine, NodeType
from hpcrowd.environment.power.in_use import types_of
from hpcrowd.environment.quantities import KWH, parse_energy, parse_power
from hpcrowd.errors import QuantityError
from hpcrowd.power import Signal
from hpcrowd.scenarios.kinds.power_files import PowerConfig
from hpcrowd.scenarios.kinds.replay import replay

NODES: dict[str, Any] = {"name": "thin", "idle": "100 W", "processor": "50 W"}

TEXT = """
source = "a meter"

[[nodes]]
name = "thin"
idle = "100 W"
processor = "0.05 kW"
on_time = "2m"
on_energy = "12 kJ"

[carbon]
file = "clean/signal.csv"
repeat = "week"

[tariff]
price = 0.3

[[tariff.periods]]
price = 0.1
opens = "22h"
closes = "6h"

[cooling]
points = [[10, 1.2]]
temperature = { file = "warm/signal.csv", factor = 0.1 }
"""

#: A week of an hour each, as a service publishes it.
CARBON = "Datetime (UTC),Carbon intensity gCO2eq/kWh (direct)\n" + "".join(
    f"2023-01-{day:02} {hour:02}:00:00,{200 + 10 * hour}\n"
    for day in range(2, 10)
    for hour in range(24)
)


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [(parse_power, "90 W", 90.0), (parse_power, "1.2kW", 1200.0), (parse_power, "3 MW", 3e6),
     (parse_power, "0 W", 0.0), (parse_energy, "500 J", 500.0), (parse_energy, "2 MJ", 2e6),
     (parse_energy, "1.5 kWh", 1.5 * KWH)],
)  # fmt: skip
def test_powers_and_energies_have_a_unit(parse, text, expected):
    """W to MW and J to MWh, with and without a space."""
    assert expected == parse(text)


@pytest.mark.parametrize("text", ["90", "-3 W", "W", "1e3 W", "3 kWh", "nan W"])
def test_other_powers_are_refused(text):
    """The message says how to write one."""
    with pytest.raises(QuantityError, match=r"power '.*': .*(write for example 90 W|0 or more)"):
        parse_power(text)


def test_a_file_is_read_with_its_signals(tmp_path):
    """Units are converted, files are found next to it, and each has its checksum by its path."""
    (tmp_path / "power.toml").write_text(TEXT)
    for folder in ("clean", "warm"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "signal.csv").write_text(CARBON)
    config = PowerConfig.read(tmp_path / "power.toml")
    power = config.made()
    pool = power.pool
    assert (100.0, 50.0) == (pool.idle, pool.processor)
    assert (120, 12e3) == (pool.on_time, pool.on_energy)
    assert isinstance(power.carbon, Signal)
    assert ("week", 430.0) == (power.carbon.repeat, power.carbon.values.max())
    assert {"power.toml", "clean/signal.csv", "warm/signal.csv"} == set(config.sums())
    again = PowerConfig.given(json.loads(json.dumps(config.plain())), tmp_path)
    assert again is not None
    assert power.nodes == again.made().nodes


def log_of(make_trace, *jobs, processors=4):
    """A log of (submit, run time, processors, requested time) jobs."""
    fields = ("submit", "run", "requested_processors", "requested_time")
    rows = [dict(zip(fields, job, strict=False)) for job in jobs]
    for row in rows:
        row.setdefault("requested_time", row["run"])
    return make_trace(
        *({"user": 1, "wait": 0, "status": 1, **row} for row in rows),
        header=f"; MaxProcs: {processors}\n",
    )


MISTAKES = {
    "no nodes": ({}, "nodes: missing; it has no default"),
    "no unit": ({"nodes": [NODES | {"idle": 100}]}, "power 100: without a unit"),
    "negative": ({"nodes": [NODES | {"idle": "-1 W"}]}, "power '-1 W': must be 0 or more"),
    "strange": ({"nodes": [NODES], "puee": 1.2}, "puee"),
    "pue": ({"nodes": [NODES], "pue": 0.8}, "pue"),
    "energy of no time": (
        {"nodes": [NODES | {"on_energy": "2 kJ"}]}, "on_energy without on_time",
    ),
    "two limits": (
        {"nodes": [NODES], "cap": {"watts": "1 kW", "over_time": {"file": "x.csv"}}},
        "either as watts or over_time",
    ),
    "no file": (
        {"nodes": [NODES], "carbon": {"file": "nowhere.csv"}}, "nowhere.csv: cannot be read",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_one_line(name, tmp_path):
    """What is wrong, and the rule."""
    values, message = MISTAKES[name]
    with pytest.raises(HpcrowdError, match=re.escape(message)):
        PowerConfig.configure(**{"folder": tmp_path, **values}).made()


def test_a_signal_that_the_run_exceeds_is_noted(make_trace):
    """Its last value counts, and a note says so; one that does not cover the beginning fails."""
    trace = log_of(make_trace, (0, 100, 1), (10, 300, 1))

    def energy(*times):
        carbon = Signal(np.array(times), np.array([100.0, 200.0]))
        return (
            replay(trace, power={"nodes": [NODES], "carbon": carbon}, users="rigid")
            .parts["power"]
            .account
        )

    (note,) = energy(0, 100)["notes"]
    assert "carbon: the signal ends" in note
    with pytest.raises(HpcrowdError, match=r"signal"):
        energy(50, 100)


def test_results_keep_the_account(make_trace, tmp_path):
    """A folder has the totals and the jobs, and reads the same; without power it has none."""
    trace = log_of(make_trace, (0, 100, 1), (10, 300, 2), (20, 50, 1))
    power = {"nodes": [NODES], "tariff": {"price": 0.5}}
    run = replay(trace, power=power, users="rigid")
    write_results(run, tmp_path / "out", plots=False)
    again = read_results(tmp_path / "out")
    assert run.parts["power"].account == again.parts["power"].account
    assert run.metrics["energy_kwh"] == again.metrics["energy_kwh"] > 0
    assert run.parts["power"].rows
    for name, values in run.parts["power"].rows.items():
        assert values.tolist() == again.parts["power"].rows[name].tolist()
    for frame in (again.to_frame(), again.users()):
        assert run.parts["power"].account["jobs_kwh"] == pytest.approx(frame["energy_kwh"].sum())
    plain = replay(trace, users="rigid")
    assert np.array_equal(plain.jobs.matrix, run.jobs.matrix)
    assert (None, None) == (over_time_of(plain.parts), plain.metrics["energy_kwh"])
    assert "energy" not in plain.summary()


#: A limit that falls for a while, W.
FALLING = Signal([0, 5_000, 10_000, 15_000], [1200.0, 850.0, 1000.0, 1200.0])


@pytest.mark.parametrize(
    ("policy", "limit"),
    [
        ({}, np.inf),
        ({"sleep": {"after": 60}}, np.inf),
        ({"cap": {"watts": "0.9 kW"}}, 900.0),
        ({"cap": {"over_time": FALLING, "law": {"beta": 0.5}}}, None),
    ],
    ids=["none", "sleep", "cap", "falling cap"],
)
def test_energy_in_is_energy_accounted(policy, limit, make_trace):
    """The parts of a run are the integral of its power to 1e-9, with each policy."""
    rng = np.random.default_rng(5)
    jobs = np.sort(rng.integers(0, 20_000, 120)), rng.integers(1, 900, 120), rng.integers(1, 4, 120)
    trace = log_of(make_trace, *np.stack(jobs, axis=1).tolist(), processors=8)
    node = NODES | {"asleep": "5 W", "on_time": 30, "on_energy": "9 kJ", "off_time": 20,
                    "off_energy": "1 kJ"}  # fmt: skip
    carbon = Signal([0, 9_000, 18_000], [50.0, 300.0, 90.0])
    power = {"nodes": [node], "pue": 1.4, "carbon": carbon, **policy}
    run = replay(trace, power=power, users="rigid")
    account, parts = account_of(run), run.parts["power"].account["parts_kwh"]
    seconds = np.arange(account.begin, account.end)
    curve = account.curve.at(seconds)
    assert account.joules.total / KWH == pytest.approx(sum(parts.values()), rel=1e-9)
    slept = parts.get("asleep", 0) > 0, run.parts["power"].account.get("switched_on", 0) > 0
    assert (("sleep" in policy),) * 2 == slept
    most = FALLING.values[np.searchsorted(FALLING.times, seconds, "right") - 1]
    assert np.all(curve <= 1.4 * (most if limit is None else limit) * (1 + 1e-12))
    speed = account.rates.speed
    assert (limit is None) == (speed is not None and speed.values.min() < 1)


def account_of(run):
    """The account of a run, checked against the integral of its power."""
    account = over_time_of(run.parts)
    assert isinstance(account, EnergyAccount)
    whole = float(account.curve.integral(account.begin, account.end))
    assert account.joules.total == pytest.approx(whole, rel=1e-9)
    return account


def test_types_of_nodes_by_name():
    """A type names its nodes, another is for the rest; what does not fit is one line."""
    site = Machine(nodes=(NodeType(name="n[1-3]", cores=4), NodeType(name="g1", cores=8)))
    fat = NODES | {"name": "fat", "nodes": "g1"}
    found = types_of(PowerConfig.configure(nodes=[NODES, fat]).made(), site)
    assert {"n1": "thin", "n2": "thin", "n3": "thin", "g1": "fat"} == {
        name: one.name for name, one in found.items()
    }
    assert [4, 4, 4, 8] == [one.processors for one in found.values()]
    for nodes, message in (
        ([fat], "node n1 has no type"),
        ([NODES, fat, fat], "give it once"),
        ([NODES, NODES | {"nodes": "x1"}], "'x1': not a node of the machine"),
        ([NODES, NODES], "says no nodes"),
        ([NODES | {"processors": 3}], "node n1 has 4 cores"),
    ):
        with pytest.raises(QuantityError, match=message):
            types_of(PowerConfig.configure(nodes=nodes).made(), site)


def test_energy_on_a_machine_of_nodes(make_trace, tmp_path):
    """Jobs are charged with their cores of each type of node; the rest is idle; sums agree."""
    site = tmp_path / "site.toml"
    site.write_text(
        '[[nodes]]\nname = "n[1-2]"\ncores = 4\n[[partitions]]\nname = "p"\ndefault = true\n'
    )

    def run_of(*jobs, node=None, **power):
        nodes = [NODES | {"idle": "80 W", "processor": "30 W"} | (node or {})]
        return replay(log_of(make_trace, *jobs, processors=8), power={"nodes": nodes, **power},
                      users="rigid", machine=str(site), scheduler="slurm")  # fmt: skip

    jobs = (0, 100, 4), (0, 200, 2), (50, 100, 1)
    run = run_of(*jobs)
    work = run.jobs.processors * run.jobs.lasted
    assert work * (80 / 4 + 30) / KWH == pytest.approx(run.parts["power"].rows["energy_kwh"])
    account = account_of(run)
    whole = 2 * 80 * (account.end - account.begin) + float(work.sum()) * 30
    assert whole / KWH == pytest.approx(run.parts["power"].account["energy_kwh"], rel=1e-9)
    other = run_of(*jobs, jobs={"by": "processors", "watts": {"1-2": "70 W"}})
    expected = work * np.where(run.jobs.processors <= 2, 70, 50) / KWH
    assert expected == pytest.approx(other.parts["power"].rows["energy_kwh"])
    asleep = {"asleep": "5 W", "on_time": 10, "on_energy": "1 kJ"}
    run = run_of((0, 100, 4), (5000, 100, 4), node=asleep, sleep={"after": 60})
    account_of(run)
    assert run.parts["power"].account["parts_kwh"]["asleep"] > 0
    assert "no start waits" in run.parts["power"].account["notes"][0]
