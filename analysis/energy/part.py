"""What power contributes to a run: energy, carbon and cost, in numbers, tables and words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, override

import numpy as np

from hpcrowd.analysis.energy.account import JOB_MEANING, PARTS, EnergyAccount
from hpcrowd.analysis.numbers import amount_text
from hpcrowd.analysis.parts import RunPart, RunParts, Shown, read_as, read_table
from hpcrowd.environment.jobs import Column, Float64s, JobTable, name_of
from hpcrowd.environment.quantities import plural

if TYPE_CHECKING:
    from hpcrowd.analysis.run import Run  # circle: for its type only


#: Columns of :func:`part_rows`.
PART_COLUMNS = ("energy", "share", "carbon", "cost")

#: Users or groups that a table of energy lists.
MOST_LISTED = 10


def energy_text(kwh: float) -> str:
    """Return an energy in a readable unit."""
    return amount_text(kwh, "kWh", "MWh")


def carbon_text(kg: float) -> str:
    """Return a mass of carbon in a readable unit."""
    return amount_text(kg, "kg", "t")


def part_rows(energy: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return rows of what energy was used for: the meaning, then :data:`PART_COLUMNS`."""
    total = energy["energy_kwh"] or 1.0
    rows: list[tuple[str, ...]] = []
    for name, meaning in PARTS.items():
        if not (kwh := energy["parts_kwh"].get(name, 0.0)):
            continue
        kg = energy.get("parts_carbon_kg", {}).get(name)
        cost = energy.get("parts_cost", {}).get(name)
        rows.append(
            (
                meaning,
                energy_text(kwh),
                f"{100 * kwh / total:.1f} %",
                "-" if kg is None else carbon_text(kg),
                "-" if cost is None else f"{cost:,.2f} {energy['currency']}",
            )
        )
    return rows


def energy_lines(energy: Mapping[str, Any]) -> list[str]:
    """Return printed lines on energy, carbon and cost; none without a description of power."""
    if not energy:
        return []
    total = energy["energy_kwh"]
    words = [
        f"energy {energy_text(total)}",
        f"{energy['mean_kw']:,.2f} kW on average and {energy['peak_kw']:,.2f} kW at most",
    ]
    if "carbon_kg" in energy:
        words.append(f"{carbon_text(energy['carbon_kg'])} of carbon")
    if "cost" in energy:
        words.append(f"{energy['cost']:,.2f} {energy['currency']}")
    lines = [", ".join(words)]
    if energy["switched_on"] or energy["switched_off"]:
        lines.append(
            f"nodes switched off {energy['switched_off']:,} times and on "
            f"{energy['switched_on']:,} times"
        )
    return lines + list(energy.get("notes", []))


def by_whom(run: Run, field: str) -> list[tuple[str, str, str, str]]:
    """Return who used most energy: name, jobs, energy and the part that brought no result.

    The field is ``user``, ``group``, ``queue``, ``partition`` or ``executable``.
    """
    columns = run.parts["power"].rows
    if not columns:
        return []
    numbers, place = np.unique(run.jobs.column(Column[field.upper()]), return_inverse=True)
    kwh = np.bincount(place, columns["energy_kwh"])
    lost = np.bincount(place, columns["wasted_kwh"])
    count = np.bincount(place)
    order = np.argsort(-kwh, kind="stable")[:MOST_LISTED]
    return [
        (
            name_of(run.jobs.names, field, int(numbers[one])),
            plural(int(count[one]), "job"),
            energy_text(float(kwh[one])),
            energy_text(float(lost[one])),
        )
        for one in order.tolist()
        if kwh[one]
    ]


class Energy(RunPart):
    """Energy, carbon and cost; ``rows`` has the columns :data:`JOB_MEANING`, shape (jobs,) each.

    Parameters
    ----------
    account, rows
        As for :class:`~hpcrowd.analysis.parts.RunPart`.
    over_time
        The account that has power over time; None if the run was read from a folder.
    """

    name, key, file, meaning = "power", "energy", "energy", JOB_MEANING
    title, drawn, leads = "Energy", ("power",), True
    picture = "hpcrowd.analysis.pictures.power:write_power"

    def __init__(
        self,
        account: Mapping[str, Any] | None = None,
        rows: Mapping[str, Float64s] | None = None,
        over_time: EnergyAccount | None = None,
    ) -> None:
        super().__init__(account, rows)
        self.over_time = over_time

    @override
    def totals(self) -> dict[str, Any]:
        return {} if self.over_time is None else self.over_time.summary()

    @override
    def table(self) -> Mapping[str, Float64s]:
        return {} if self.over_time is None else self.over_time.columns()

    @override
    def metrics(self, jobs: JobTable, found: Mapping[str, Any]) -> dict[str, Any]:
        energy = self.account
        return energy and {
            "energy_kwh": energy["energy_kwh"],
            "energy_wasted_kwh": energy["wasted_kwh"],
            "energy_idle_kwh": energy["parts_kwh"].get("idle", 0.0),
            "power_peak_kw": energy["peak_kw"],
            "carbon_kg": energy.get("carbon_kg"),
            "energy_cost": energy.get("cost"),
        }

    @override
    def metrics_between(self, jobs: JobTable, begin: int, end: int) -> dict[str, Any]:
        if self.over_time is None or begin == end:
            return {}
        return self.over_time.between(begin, end)

    @override
    def job_columns(self) -> Mapping[str, Float64s]:
        columns: Mapping[str, Float64s] = self.rows
        return columns

    @override
    def lines(self, configuration: Mapping[str, Any]) -> list[str]:
        return energy_lines(self.account)

    @override
    def shown(self) -> list[Shown]:
        rows = part_rows(self.account) if self.account else []
        what = "What the energy was used for, cooling included"
        return [Shown(("energy of", *PART_COLUMNS), rows, what)] if rows else []

    @override
    def reported(self, run: Run) -> list[Shown]:
        found = self.shown()
        for field in ("user", "group"):
            rows = by_whom(run, field)
            if len(rows) > 1 or (rows and field == "user"):
                heads = (field, "jobs", "energy", "without a result")
                found.append(Shown(heads, rows, f"The {field}s with most energy"))
        return found

    @override
    def user_sums(self) -> list[str]:
        return list(self.rows)

    @override
    def numbers(self) -> dict[str, Mapping[str, Any]]:
        energy = self.account
        return energy and {"energy": energy, "energy.parts": energy["parts_kwh"]}

    @override
    def columns(self, jobs: JobTable) -> dict[str, Any]:
        return {"number": jobs.number, **self.rows} if self.rows else {}

    @override
    @classmethod
    def read_rows(cls, path: Path, jobs: JobTable) -> dict[str, Float64s]:

        found = read_table("energy", path)
        with read_as("energy", path):
            known = [
                name for name in found.column_names if name in JOB_MEANING and name != "number"
            ]
            return {name: found[name].to_numpy().astype(np.float64) for name in known}


def over_time_of(parts: RunParts) -> EnergyAccount | None:
    """Return the energy of a run over time; None if it is not known."""
    power = parts["power"]
    return power.over_time if isinstance(power, Energy) else None
