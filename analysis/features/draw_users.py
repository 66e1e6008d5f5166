"""Panels on users: their ranks by jobs, their share of the jobs, how long they think."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from analysis.features.panels import (
    LETTERS,
    begin,
    drawable,
    label_below,
    logarithmic_counts,
    logarithmic_times,
    nothing,
    percent,
)
from analysis.features.users import jobs_of_users, responses_thought_about, think_times
from analysis.features.workload import Floats, Workload
from environment.errors import UnavailableError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Bins of response times to a factor of ten, and the fewest batches of one that is drawn.
BINS, FEWEST = 2, 10

#: Most workloads whose quartiles are drawn as bands; of more only the medians.
BANDS = 3


def draw_ranks(
    axes: Axes, workloads: Sequence[Workload], title: str = "Jobs of each user, busiest first"
) -> None:
    """Draw the jobs of each user against the user's rank, on logarithmic axes."""
    begin(axes, title)
    drawn, missing = drawable(workloads, jobs_of_users)
    if not drawn:
        return nothing(axes, missing)
    for one in drawn:
        rank = np.arange(1, len(one.found) + 1)
        axes.plot(rank, one.found, **one.look, marker=".", markersize=3.5)
    logarithmic_counts(axes, max(len(one.found) for one in drawn))
    logarithmic_counts(axes, max(int(one.found[0]) for one in drawn), vertical=True)
    label_below(axes, "rank of the user", missing)


def draw_user_shares(
    axes: Axes, workloads: Sequence[Workload], title: str = "Jobs of the busiest users together"
) -> None:
    """Draw the share of the jobs that the busiest users have together, by how many they are."""
    begin(axes, title)
    drawn, missing = drawable(workloads, jobs_of_users)
    if not drawn:
        return nothing(axes, missing)
    for one in drawn:
        rank = np.arange(1, len(one.found) + 1)
        together = np.cumsum(one.found) / one.found.sum()
        axes.plot(rank, together, **one.look, marker=".", markersize=3.5)
    logarithmic_counts(axes, max(len(one.found) for one in drawn))
    percent(axes)
    label_below(axes, "so many of the busiest users", missing)


def think_quartiles(workload: Workload) -> Floats:
    """Return, for bins of the response time, its middle and the quartiles of the think time, s.

    Returns
    -------
    array
        Shape (4, bins): middle of the bin in logarithms, lower quartile, median, upper quartile.

    Raises
    ------
    UnavailableError
        When no bin has :data:`FEWEST` batches.
    """
    response = np.maximum(responses_thought_about(workload), 1)
    think = np.maximum(think_times(workload), 1)
    place = np.floor(np.log10(response) * BINS).astype(np.int64)
    bins, count = np.unique(place, return_counts=True)
    kept = bins[count >= FEWEST]
    if not len(kept):
        raise UnavailableError(f"fewer than {FEWEST} batches of like response times")
    middle = 10 ** ((kept + 0.5) / BINS)
    quartiles = [np.percentile(think[place == which], (25, 50, 75)) for which in kept]
    return np.vstack([middle, np.transpose(quartiles)])


def draw_think_times(
    axes: Axes, workloads: Sequence[Workload], title: str = "Think time after a batch"
) -> None:
    """Draw medians and quartiles of think times against the response time of the batch before.

    Zakay and Feitelson 2015, section IV; times below 1 s stand at 1 s.
    """
    begin(axes, title)
    drawn, missing = drawable(workloads, think_quartiles)
    if not drawn:
        return nothing(axes, missing)
    for one in drawn:
        middle, low, median, high = one.found
        axes.plot(middle, median, **one.look, marker="o", markersize=4)
        if len(drawn) <= BANDS:
            colour = one.look["color"]
            axes.fill_between(middle, low, high, color=colour, alpha=0.2, linewidth=0)
    found = np.hstack([one.found for one in drawn])
    logarithmic_times(axes, found[0].min() / 1.8, found[0].max() * 1.8)
    logarithmic_times(axes, max(found[1].min() / 1.5, 0.8), found[3].max() * 1.5, vertical=True)
    axes.set_ylabel("think time", fontsize=LETTERS)
    label_below(axes, "response time of the batch before", missing)
