"""What jobs are billed under Slurm, and when usage is counted anew.

A job is billed for its cores, or for the sum of its resources times ``TRESBillingWeights`` of its
partition; with ``PriorityFlags=MAX_TRES`` for the largest of these products. What it is billed
times seconds is its usage, for fair share and for limits on ``billing``; a limit counts whole
numbers. ``UsageFactor`` of its QOS multiplies usage, of all resources (slurm.conf(5), sacctmgr(1),
and ``_apply_new_usage`` of priority/multifactor).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo

from hpcrowd.environment.stops import FOREVER

#: A second before all others, s.
BEFORE = -(2**40)

#: Months of a period of PriorityUsageResetPeriod.
MONTHS = {"monthly": 1, "quarterly": 3, "yearly": 12}


def billable(tres: Mapping[str, int], weights: Mapping[str, float], *, largest: bool) -> float:
    """Return what a job is billed that holds some resources.

    Parameters
    ----------
    tres
        What it holds: cpu, mem (MB), node, gres/gpu, in this order, then types of GPUs.
    weights
        By resource; without any, cores count.
    largest
        Whether the largest product counts, and not the sum.
    """
    if not weights:
        return float(tres["cpu"])
    found = most = 0.0
    for name, amount in tres.items():
        product = weights.get(name, 0.0) * amount
        found, most = found + product, max(most, product)  # sum() rounds unlike compiled code
    return most if largest else found


def reset_around(period: str, now: int, origin: int, zone: tzinfo) -> tuple[int, int]:
    """Return when usage was last reset by a second, and when it will be next, s of the run.

    Parameters
    ----------
    period
        ``daily``, ``weekly`` (on Sunday), ``monthly``, ``quarterly`` or ``yearly``, at midnight;
        with ``none`` never.
    now
        s of the run.
    origin
        Unix time of its second 0.
    zone
        Time zone of the machine.
    """
    if period == "none":
        return BEFORE, FOREVER
    moment = datetime.fromtimestamp(origin + now, zone)
    begin = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if period in MONTHS:
        months = MONTHS[period]
        first = (begin.month - 1) // months * months
        begin = begin.replace(month=first + 1, day=1)
        years, month = divmod(first + months, 12)
        end = begin.replace(year=begin.year + years, month=month + 1)
    else:
        begin -= timedelta(days=begin.isoweekday() % 7 if period == "weekly" else 0)
        end = begin + timedelta(days=7 if period == "weekly" else 1)
    return round(begin.timestamp()) - origin, round(end.timestamp()) - origin
