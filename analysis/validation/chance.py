"""How near to the record a model of a month could be that knows the level of a log exactly.

Jobs come in busy and in quiet months, which follow each other by chance. A model that foresees the
mean of the whole log for each month knows more than any can know, and still misses most of them. So
the months of a log are put into another order many times, at random, and the ratio of the mean to
the month after each origin is computed, as for a model: its median over the origins varies between
the orders as much as chance makes it. What a model must keep to cannot be less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hpcrowd.environment.clock import DAY, HOUR

if TYPE_CHECKING:
    from hpcrowd.analysis.curves import Floats
    from hpcrowd.analysis.validation.validation import Protocol
    from hpcrowd.environment.jobs import Int64s, JobTable

#: Orders of the months of a log that are drawn (our choice).
ORDERS = 1000

#: A ratio is near if it is as far from 1 as this, at most (the aim of the study).
NEAR = 0.1

#: Share of the time of a log before the first of the origins that are evenly spaced (our choice).
FIRST = 0.25


class Chance(NamedTuple):
    """The median over the origins of the ratio of a model that knows the level of a log."""

    low: float  #: The 5 % quantile over the orders.
    high: float  #: The 95 % quantile.
    near: float  #: Share of the orders in which it is within :data:`NEAR` of 1.


def by_chance(jobs: JobTable, rules: Protocol, generator: np.random.Generator) -> dict[str, Chance]:
    """Return what chance does to the ratios of jobs and processor-hours; nothing of short logs.

    Parameters
    ----------
    jobs
        The log, with recorded submissions.
    rules
        Origins or days between them, and days.
    generator
        Of the orders.
    """
    submit = jobs.recorded_submit
    day = (submit - submit.min()) // DAY
    months, rest = divmod(int(day.max(initial=0)), rules.days)
    if months < 3:  # one before an origin, one after it, and one that may be elsewhere
        return {}
    there = (day >= rest) & (day < rest + months * rules.days)
    day = day[there] - rest
    hours = (jobs.processors * jobs.run_time)[there] / HOUR
    size = months * rules.days
    table = np.stack((np.bincount(day, minlength=size), np.bincount(day, hours, minlength=size)))
    blocks = table.reshape(2, months, rules.days)
    found = np.full((ORDERS, 2), np.nan)
    for number in range(ORDERS):
        order = np.roll(
            blocks[:, generator.permutation(months)].reshape(2, -1),
            generator.integers(rules.days), axis=1,
        )  # fmt: skip
        upto = np.concatenate((np.zeros((2, 1)), np.cumsum(order, axis=1)), axis=1)
        at = _origins(upto[0], rules)
        month = upto[:, at + rules.days] - upto[:, at]
        if len(at) and (month > 0).all():
            found[number] = np.median(blocks.sum(axis=(1, 2))[:, None] / months / month, axis=1)
    found = found[~np.isnan(found[:, 0])]
    if not len(found):
        return {}
    return {
        name: Chance(
            float(np.quantile(ratio, 0.05)),
            float(np.quantile(ratio, 0.95)),
            float((np.abs(ratio - 1) <= NEAR).mean()),
        )
        for name, ratio in zip(("jobs", "processor_hours"), found.T, strict=True)
    }


def _origins(upto: Floats, rules: Protocol) -> Int64s:
    """Return the days of the origins, given the jobs of a log before each day, and in all."""
    days = len(upto) - 1
    if rules.apart is None:
        at = np.searchsorted(upto, np.array(rules.origins) * upto[-1])
    else:
        at = np.arange(round(FIRST * days), days, rules.apart)
    found: Int64s = at[(at >= rules.days) & (at + rules.days <= days)]
    return found
