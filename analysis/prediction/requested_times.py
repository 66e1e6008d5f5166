"""How near requested times come to others: those of a model to those of a log, for example."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.traces.requested_times import POPULAR, most_popular


class RequestScores(NamedTuple):
    """How two sets of requested times differ.

    Attributes
    ----------
    distinct, distinct_other
        Different requests.
    popular_share, popular_share_other
        Share of jobs with one of the twenty most popular requests of their own set.
    in_common
        Requests that are among the twenty most popular ones of both.
    total_variation
        Share of jobs whose request would have to change to get the other distribution, 0 to 1.
    ks
        Largest difference of the cumulative distributions (Kolmogorov and Smirnov), 0 to 1.
    """

    distinct: int
    distinct_other: int
    popular_share: float
    popular_share_other: float
    in_common: int
    total_variation: float
    ks: float


def compare_requests(requested: Int64s, other: Int64s) -> RequestScores:
    """Compare two sets of requested times (s, at least one each); the sets may differ in size.

    Examples
    --------
    >>> import numpy as np
    >>> compare_requests(np.array([60, 60, 300, 900]), np.array([60, 300])).ks
    0.25
    """
    both, places = np.unique(np.concatenate([requested, other]), return_inverse=True)
    first = np.bincount(places[: len(requested)], minlength=len(both)) / len(requested)
    second = np.bincount(places[len(requested) :], minlength=len(both)) / len(other)
    times, counts = most_popular(requested, POPULAR)
    times_other, counts_other = most_popular(other, POPULAR)
    return RequestScores(
        distinct=int(np.count_nonzero(first)),
        distinct_other=int(np.count_nonzero(second)),
        popular_share=int(counts.sum()) / len(requested),
        popular_share_other=int(counts_other.sum()) / len(other),
        in_common=len(np.intersect1d(times, times_other)),
        total_variation=float(np.abs(first - second).sum() / 2),
        ks=float(np.abs(np.cumsum(first - second)).max()),
    )
