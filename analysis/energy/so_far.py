"""What a run in progress has used so far: totals without parts, from the curve of power alone.

:meth:`~hpcrowd.analysis.energy.account.EnergyAccount.summary` has the same totals, and takes many
times longer: it integrates the power of each run of a job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.energy.account import KILO
from hpcrowd.environment.quantities import KWH

if TYPE_CHECKING:
    from hpcrowd.analysis.energy.account import EnergyAccount
    from hpcrowd.environment.signals.steps import Steps


def totals_so_far(account: EnergyAccount) -> dict[str, Any]:
    """Return totals of an account.

    Returns
    -------
    dict
        ``energy_kwh``; what is known of ``carbon_kg`` and of ``cost``, with its ``currency``; and
        ``power_kw``, the power in the last second.
    """
    curve, rates = account.curve, account.rates
    found = {
        "energy_kwh": float(curve.integral(account.begin, account.end)) / KWH,
        "power_kw": float(curve.values[-1]) / KILO,
    }
    if rates.carbon is not None:
        found["carbon_kg"] = integral_of_product(curve, rates.carbon) / KWH / KILO
    if rates.price is not None:
        money = integral_of_product(curve, rates.price) / KWH
        currency = "" if account.tariff is None else account.tariff.currency
        return {**found, "cost": money + account.peak_cost, "currency": currency}
    return found


def integral_of_product(curve: Steps, signal: Steps) -> float:
    """Return the integral of the product of two step functions, over the time of the second.

    Parameters
    ----------
    curve
        The one with more steps.
    signal
        The one with fewer steps, within the time of the curve.
    """
    return float(np.diff(curve.cumulative(signal.edges)) @ signal.values)
