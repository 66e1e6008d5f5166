"""Which bag each arriving job belongs to: the main loop of Algorithm 1, compiled."""

from __future__ import annotations

import numpy as np

from analysis.models.part import Floats
from environment.jobs import Int64s
from environment.kernel.places import compiled

#: Most bags that are open at once; of more, the one that had no job for longest is closed.
MOST_OPEN = 64

#: Sizes that are counted together, to find the largest that fits without looking at each.
BLOCK = 64


@compiled  # type: ignore[untyped-decorator]
def _largest(most: int, waiting: Int64s, blocks: Int64s) -> int:
    """Return the largest size up to ``most`` of which a bag waits; 0 if there is none."""
    size = min(most, len(waiting) - 1)
    while size > 0:
        if blocks[size // BLOCK] == 0:
            size = size // BLOCK * BLOCK - 1
        elif waiting[size] == 0:
            size -= 1
        else:
            return size
    return 0


@compiled  # type: ignore[untyped-decorator]
def _places(
    arrivals: Floats,
    sizes: Int64s,
    gap: float,
    leave: float,
    leaving: Floats,
    picking: Floats,
    room: Int64s,
    waiting: Int64s,
    blocks: Int64s,
    places: Int64s,
    open_bag: Int64s,
    left: Int64s,
    last: Floats,
) -> None:
    """Fill ``places`` with the bag of each job; the bag of the last job stands last among the open.

    ``room`` has how many jobs come without a break longer than the gap, from each on; empty, bags
    begin wherever they are drawn. ``waiting`` and ``blocks`` are how many bags of each size, and of
    each block of sizes, wait for room.

    ``open_bag``, ``left`` and ``last`` are room for the bags that are open: their numbers, jobs
    that are still to come, and arrival of their last job.
    """
    begun = 0
    count = 0
    current = False  # whether the last of the open ones is the bag of the last job
    for job in range(len(arrivals)):
        current = current and arrivals[job] - last[count - 1] <= gap
        kept = 0
        for i in range(count):
            if arrivals[job] - last[i] <= gap:
                open_bag[kept], left[kept], last[kept] = open_bag[i], left[i], last[i]
                kept += 1
        count = kept
        others = count - 1 if current else count
        most = room[job] - left[:count].sum() if len(room) else 1
        chosen = -1
        if current and (leaving[job] >= leave or (others == 0 and most < 1)):
            chosen = count - 1
        elif others > 0:
            chosen = int(picking[job] * others)
        if chosen < 0:
            size = sizes[job]
            if len(room):
                waiting[size] += 1
                blocks[size // BLOCK] += 1
                size = _largest(most, waiting, blocks)
                if size > 0:
                    waiting[size] -= 1
                    blocks[size // BLOCK] -= 1
                else:
                    size = 1
            bag, rest = begun, size - 1
            begun += 1
            if count == len(open_bag):
                chosen = 0
        else:
            bag, rest = open_bag[chosen], left[chosen] - 1
        if chosen >= 0:
            for i in range(chosen, count - 1):
                open_bag[i], left[i], last[i] = open_bag[i + 1], left[i + 1], last[i + 1]
            count -= 1
        current = rest > 0
        if current:
            open_bag[count], left[count], last[count] = bag, rest, arrivals[job]
            count += 1
        places[job] = bag


def bag_places(
    arrivals: Floats,
    sizes: Int64s,
    gap: float,
    random: np.random.Generator,
    *,
    leave: float = 0.0,
    wait: bool = False,
) -> Int64s:
    """Return the number of the bag of each job, from 0 on, shape (jobs,).

    Parameters
    ----------
    arrivals
        s, rising, shape (jobs,).
    sizes
        Jobs of the bag that is drawn when one begins with a job, shape (jobs,).
    gap
        s; Delta, the longest time between two jobs of a bag.
    random
        The stream to draw from.
    leave
        Probability that a job does not continue the bag of the job before it though that has jobs
        to come. Such a job, or one after the end of a bag, continues one of the other open bags, by
        chance; a new one begins when there is none.
    wait
        Whether bags wait until jobs arrive in time for all of them: where one begins, it is the
        largest of those drawn so far that fits, and a single job when none does. Otherwise the bag
        that is drawn begins, and ends where a job comes too late: Algorithm 1.
    """
    size = len(arrivals)
    places = np.empty(size, np.int64)
    chances = random.random((2, size)) if leave > 0 else np.zeros((2, size))
    largest = int(sizes.max(initial=1)) if wait else 0
    _places(
        np.ascontiguousarray(arrivals, np.float64),
        np.ascontiguousarray(sizes, np.int64),
        float(gap),
        float(leave),
        chances[0],
        chances[1],
        _room(arrivals, gap) if wait else np.zeros(0, np.int64),
        np.zeros(largest + 1, np.int64),
        np.zeros(largest // BLOCK + 1, np.int64),
        places,
        np.zeros(MOST_OPEN, np.int64),
        np.zeros(MOST_OPEN, np.int64),
        np.zeros(MOST_OPEN),
    )
    return places


def _room(arrivals: Floats, gap: float) -> Int64s:
    """Return how many jobs come without a break longer than the gap, from each on."""
    ends = np.append(np.flatnonzero(np.diff(arrivals) > gap), len(arrivals) - 1)
    place = np.arange(len(arrivals))
    room: Int64s = ends[np.searchsorted(ends, place)] - place + 1
    return room
