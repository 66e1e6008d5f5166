"""What power contributes to a run: energy, carbon and cost, in total, by job and by user."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, override

import numpy as np

from hpcrowd.analysis.energy.account import JOB_MEANING, EnergyAccount
from hpcrowd.analysis.energy.words import PART_COLUMNS, by_whom, energy_lines, part_rows
from hpcrowd.analysis.parts import RunPart, RunParts, Shown, read_as, read_table
from hpcrowd.environment.jobs import Float64s, JobTable

if TYPE_CHECKING:
    from hpcrowd.analysis.run import Run  # circle: for its type only


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
