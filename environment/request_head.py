"""The head of the distribution of requested times: the few popular ones that most jobs have.

Times and sizes are found apart from each other and then matched by
:func:`~environment.popular_times.draw_popularity`. Shares that are known take the place of the
model's nearest ones. Source of all numbers: Tsafrir, Etsion and Feitelson, "Modeling user runtime
estimates", JSSPP 2005, and the program that goes with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from environment.clock import HOUR
from environment.popular_times import POPULAR, POPULARITY, draw_popularity

#: s in a minute.
MINUTE = 60

#: Popular requests of all four logs that the authors looked at, s.
COMMON_TIMES = (
    *(minutes * MINUTE for minutes in (5, 10, 15, 20, 30)),
    *(hours * HOUR for hours in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18)),
)

#: Multiples of these fill up the popular requests, from the longest request downwards, s.
ROUND_STEPS = (
    *(hours * HOUR for hours in (200, 100, 50, 10, 5, 2, 1)),
    *(minutes * MINUTE for minutes in (20, 10, 5)),
)

#: a, b, c of the share a * exp(b * x) + c of jobs, in percent, at popularity rank x from 2 on.
SIZES = (14.0491, -0.177531, 0.462513)


def head_times(longest: int, given: Sequence[int] = (), number: int = POPULAR) -> list[int]:
    """Return the popular requests, s: the longest, then the others from the shortest on.

    Fewer than ``number`` where ``longest`` leaves no room for more.

    Parameters
    ----------
    longest
        The longest request, s.
    given
        Requests known to be popular, s: each takes the place of the nearest one, of those in
        :data:`COMMON_TIMES` only where no other is left.
    number
        How many.
    """
    common = [time for time in COMMON_TIMES if time < longest]
    times = [longest, *common][:number]
    for step in ROUND_STEPS:
        for time in range(longest // step * step, 0, -step):
            if len(times) < number and time not in times:
                times.append(time)
    new = sorted(set(given) - set(times))
    surplus = len(times) + len(new) - number
    for others in (set(times) - set(common), set(common)):
        others = others - {longest, *given}
        pairs = sorted((abs(mine - other), mine, other) for mine in new for other in others)
        for _, mine, other in pairs:
            if surplus > 0 and mine in new and other in times:
                times[times.index(other)] = mine
                new.remove(mine)
                surplus -= 1
    return [longest, *sorted({*times, *new} - {longest})]


def head_sizes(
    number: int,
    share: float,
    longest: float | None = None,
    sizes: tuple[float, float, float] = SIZES,
) -> list[float]:
    """Return the shares of the popular requests, the largest first.

    Parameters
    ----------
    number
        How many.
    share
        Of all jobs that have a popular request. What the others leave of it is that of rank 1.
    longest
        Share of the longest request where it is known; then the others share the rest.
    sizes
        See :data:`SIZES`.
    """
    a, b, c = sizes
    ranks = np.arange(2, number + 1)
    others = (a * np.exp(b * ranks) + c) / 100
    if longest is None:
        first = share - float(others.sum())
    else:
        first = longest
        if number > 1:
            others *= max(0.0, share - longest) / others.sum()
    return sorted([first, *others.tolist()], reverse=True)


def merge_sizes(
    sizes: Sequence[float], given: Mapping[int, float], longest: int, share: float
) -> tuple[list[float], dict[int, int]]:
    """Put known shares in the place of the nearest ones, and let the others share the rest.

    Parameters
    ----------
    sizes
        Shares, the largest first.
    given
        Known shares by request, s.
    longest
        The longest request, s; another takes the first place only where no other is left.
    share
        Of all jobs that have a popular request.

    Returns
    -------
    tuple
        The shares; and the place of each known one among them. Places after the first go by size.
    """
    free = list(range(len(sizes)))
    taken: dict[int, int] = {}
    for time in sorted(given, key=lambda time: (-given[time], time)):
        places = [place for place in free if place > 0 or time == longest]
        place = min(places or free, key=lambda place: abs(sizes[place] - given[time]))
        free.remove(place)
        taken[place] = time
    rest = sum(sizes[place] for place in free)
    scale = max(0.0, share - sum(given.values())) / rest if rest > 0 else 0.0
    merged = [
        given[taken[place]] if place in taken else scale * size for place, size in enumerate(sizes)
    ]
    order = [0, *sorted(range(1, len(sizes)), key=lambda place: -merged[place])]
    found = {taken[old]: new for new, old in enumerate(order) if old in taken}
    return [merged[place] for place in order], found


def draw_head(
    longest: int,
    share: float,
    given: Mapping[int, float],
    stream: np.random.Generator,
    *,
    number: int = POPULAR,
    sizes: tuple[float, float, float] = SIZES,
    table: Sequence[Sequence[int]] = tuple(POPULARITY.values()),
) -> dict[int, float]:
    """Return the popular requests, s, each with its share of all jobs.

    Parameters are those of :func:`head_times`, :func:`head_sizes` and
    :func:`~environment.popular_times.draw_popularity`.
    """
    times = head_times(longest, tuple(given), number)
    shares = head_sizes(len(times), share, given.get(longest), sizes)
    shares, places = merge_sizes(shares, given, longest, share)
    known = {times.index(time): place + 1 for time, place in places.items()}
    ranks = draw_popularity(len(times), stream, known, table)
    return {time: shares[rank - 1] for time, rank in zip(times, ranks, strict=True)}
