"""Accounts of energy in tables, words and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hpcrowd.analysis.energy.account import PARTS
from hpcrowd.analysis.numbers import amount_text
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

    Parameters
    ----------
    run
        The run.
    field
        ``user``, ``group``, ``queue``, ``partition`` or ``executable``.
    """
    import numpy as np

    from hpcrowd.environment.jobs import Column, name_of

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
