"""The power of the machine over time, and energy, carbon and cost so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcrowd.analysis.energy.account import KILO
from hpcrowd.analysis.energy.words import carbon_text, energy_text
from hpcrowd.analysis.pictures.power import (
    bins_of,
    power_columns,
    power_picture,
    power_text,
    signal_bins,
    signals_of,
)
from hpcrowd.analysis.views.load import load_edges
from hpcrowd.environment.clock import moment as local_moment
from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.inspector.panels.numbers import number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from hpcrowd.analysis.energy.account import EnergyAccount
    from hpcrowd.environment.jobs import Int64s
    from hpcrowd.scenarios.inspector.panels.asked import Asked
    from hpcrowd.scenarios.inspector.subjects.course import Course


def energy_numbers(course: Course) -> list[dict[str, Any]]:
    """Return energy, carbon and cost so far and the power now, as far as they are known.

    Of a folder of results only the totals of the whole run are known, so they are there at its end.
    """
    account = course.energy_account()
    totals = course.energy_of_all if account is None else account.so_far()
    if not totals:
        return []
    kwh = totals["energy_kwh"]
    found = [number("energy_kwh", "Energy", "kWh", kwh, "lower", energy_text(kwh))]
    if "carbon_kg" in totals:
        kg = totals["carbon_kg"]
        found.append(number("carbon_kg", "Carbon", "kg", kg, "lower", carbon_text(kg)))
    if "cost" in totals:
        cost, unit = totals["cost"], totals["currency"]
        text = f"{cost:,.2f} {unit}".rstrip()
        found.append(number("energy_cost", "Cost of energy", unit, cost, "lower", text))
    if "power_kw" in totals:
        kw = totals["power_kw"]
        found.append(number("power_now_kw", "Power now", "kW", kw, "", power_text(kw)))
    return found


def _edges(course: Course, asked: Asked, account: EnergyAccount) -> Int64s:
    """Return the bins of the load that the page shows, as far as the account goes."""
    moment = course.moment()
    edges = load_edges(moment, asked.window(moment.now), until=asked.last)
    return bins_of(account, edges)


def power_panel(course: Course, asked: Asked) -> dict[str, Any]:
    """Return power and signals over the time that the page shows; nothing where it is unknown."""
    account = course.energy_account()
    if account is None:
        return {"edges": [], "power": [], "now": None, "signals": []}
    edges = _edges(course, asked, account)
    rough = signal_bins(edges)
    return {
        "edges": edges,
        "power": (account.curve.mean(edges[:-1], edges[1:]) / KILO).round(3),
        "now": round(float(account.curve.values[-1]) / KILO, 3),
        "signals": [
            {
                "name": one.name,
                "words": one.words,
                "unit": one.unit,
                "edges": rough,
                "values": one.steps.mean(rough[:-1], rough[1:]).round(4),
            }
            for one in signals_of(account)
        ],
    }


def power_table(course: Course, asked: Asked) -> pd.DataFrame:
    """Return the power over the time that the page shows, as a table."""
    import pandas as pd

    account = course.energy_account()
    if account is None:
        return pd.DataFrame(columns=["begin_s", "end_s", "power_kw", "wasted_kw"])
    return pd.DataFrame(power_columns(account, _edges(course, asked, account)))


def picture_of_power(course: Course, asked: Asked) -> Figure:
    """Return a picture of the power over the time that the page shows.

    Raises
    ------
    QuantityError
        When the power is not known.
    """
    account = course.energy_account()
    if account is None:
        raise QuantityError(
            "save power: the power of this run is not known; give its scenario a description of "
            "power, see --power of hpcrowd replay"
        )
    when = local_moment(course.moment().clock, course.now)
    edges = _edges(course, asked, account)
    return power_picture(account, edges, course.moment().clock, f"Power: {course.label}", when)
