"""How popular requests are, by their length: measured on logs, and drawn for a model.

The *time rank* of a popular request is 0 for the longest of all, then 1, 2, ... from the shortest
on; its *popularity rank* is 1 for the request that most jobs have. Tsafrir, Etsion and Feitelson
(2005) draw popularity ranks by time rank from such a table of four logs (SDSC-106, CTC, KTH, BLUE).
:data:`POPULARITY` is not theirs: it is measured by us, by :func:`popularity_by_time`, on logs of
the Parallel Workloads Archive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from environment.errors import QuantityError
from environment.jobs import Int64s

#: Number of popular requests, the "head" (Tsafrir et al. 2005).
POPULAR = 20

#: Popularity rank by time rank, by log. Measured by us with :func:`popularity_by_time` on jobs
#: whose requested time (field 9) is positive: KTH-SP2-1996-2.1-cln, jobs that ask for 4 h at most
#: (the limit by day there); SDSC-DS-2004-2.1-cln; CEA-Curie-2011-2.1-cln. These are logs whose
#: longest popular request is among the three most popular ones, as the model has it.
POPULARITY: dict[str, tuple[int, ...]] = {
    "KTH-SP2 up to 4 h": (
        *(1, 4, 10, 14, 20, 2, 3, 7, 12, 6),
        *(19, 5, 18, 16, 9, 17, 15, 13, 8, 11),
    ),
    "SDSC-DS": (
        *(2, 12, 8, 3, 14, 10, 20, 4, 19, 5),
        *(16, 17, 1, 18, 6, 11, 9, 13, 7, 15),
    ),
    "CEA-Curie": (
        *(1, 19, 20, 4, 5, 10, 16, 2, 3, 13),
        *(6, 7, 14, 11, 18, 12, 17, 15, 8, 9),
    ),
}

#: Candidates that are drawn at each time rank; the most popular of them is taken (Tsafrir et al.).
DRAWS = 2


def most_popular(requested: Int64s, number: int = POPULAR) -> tuple[Int64s, Int64s]:
    """Return the most popular requests (s) and how many jobs have each, the most popular first.

    Of two that are as popular, the shorter comes first.
    """
    times, counts = np.unique(requested, return_counts=True)
    first = np.lexsort((times, -counts))[:number]
    return times[first].astype(np.int64), counts[first].astype(np.int64)


def popularity_by_time(requested: Int64s, number: int = POPULAR) -> tuple[int, ...]:
    """Return the popularity rank (from 1 on) of the most popular requests, by their time rank.

    Parameters
    ----------
    requested
        Requested times, s.
    number
        How many requests count as popular.

    Raises
    ------
    QuantityError
        When there are fewer different requests.

    Examples
    --------
    >>> import numpy as np
    >>> popularity_by_time(np.array([60, 60, 60, 300, 900, 900]), number=3)
    (2, 1, 3)
    """
    times, _ = most_popular(requested, number)
    if len(times) < number:
        raise QuantityError(f"requests: {len(times)} different ones; at least {number} are needed")
    ranks = (np.argsort(times) + 1).tolist()
    return ranks[-1], *ranks[:-1]


def draw_popularity(
    number: int,
    stream: np.random.Generator,
    given: Mapping[int, int] | None = None,
    table: Sequence[Sequence[int]] = tuple(POPULARITY.values()),
    draws: int = DRAWS,
) -> list[int]:
    """Draw a popularity rank for each time rank: the "pool algorithm" of Tsafrir et al. (2005).

    At each time rank the ranks that the logs have there join a pool. A rank that no log has later
    is taken now; else the most popular of a few drawn from the pool. The longest request gets
    rank 1.

    Parameters
    ----------
    number
        Of popular requests; 1 or more.
    stream
        Where randomness comes from.
    given
        Popularity ranks that are known, by time rank; no other request gets them.
    table
        Popularity ranks by time rank, one sequence for each log.
    draws
        Candidates that are drawn.
    """
    given = given or {}
    last: dict[int, int] = {}
    for log in table:
        for place, rank in enumerate(log):
            last[rank] = max(last.get(rank, 0), place)
    free = set(range(1, number + 1)) - set(given.values())
    pool: list[int] = []
    found = []
    for place in range(number):
        pool += [log[place] for log in table if place < len(log)]
        pool = [rank for rank in pool if rank in free]
        due = [rank for rank in free if last.get(rank, number) <= place]
        if place in given:
            rank = given[place]
        elif place == 0:
            rank = min(free)
        elif due:
            rank = min(due)
        elif pool:
            rank = min(pool[index] for index in stream.integers(len(pool), size=draws))
        else:  # only with fewer requests than the table has, or with given ones
            rank = min(free)
        free.discard(rank)
        found.append(rank)
    return found
