"""Bags placed in the arrivals of jobs, and runs of one class; compiled at installation."""

from __future__ import annotations

import numpy as np

from hpcrowd.environment.jobs import Float64Rows, Float64s, Int64s

#: Most open bags; with more, the one without a job for longest is closed.
MOST_OPEN = 64

#: Sizes per block of counts, to find the largest that fits without looking at each.
BLOCK = 64


class OpenBags:
    """Bags to which jobs are to come, in the order of their last jobs."""

    count: int
    bag: Int64s  # its number
    left: Int64s  # jobs still to come
    last: Float64s  # arrival of its last job, s

    def __init__(self) -> None:
        self.count = 0
        self.bag, self.left = np.zeros(MOST_OPEN, np.int64), np.zeros(MOST_OPEN, np.int64)
        self.last = np.zeros(MOST_OPEN)

    def put(self, bag: int, left: int, last: float) -> None:
        """Put one behind the others."""
        self.bag[self.count], self.left[self.count], self.last[self.count] = bag, left, last
        self.count += 1

    def close(self, place: int) -> None:
        """Close one."""
        self.count -= 1
        for i in range(place, self.count):
            self.bag[i], self.left[i] = self.bag[i + 1], self.left[i + 1]
            self.last[i] = self.last[i + 1]

    def close_before(self, now: float, gap: float) -> None:
        """Close those whose last job is longer ago than the gap."""
        count, self.count = self.count, 0
        for i in range(count):
            if now - self.last[i] <= gap:
                self.put(self.bag[i], self.left[i], self.last[i])

    def to_come(self) -> int:
        """Return how many jobs are still to come."""
        total = 0
        for i in range(self.count):
            total += self.left[i]
        return total


class WaitingBags:
    """Bags that wait until enough jobs arrive in time, by size up to the largest."""

    largest: int
    waiting: Int64s
    blocks: Int64s  # by block of sizes

    def __init__(self, largest: int) -> None:
        self.largest = largest
        self.waiting = np.zeros(largest + 1, np.int64)
        self.blocks = np.zeros(largest // BLOCK + 1, np.int64)

    def change(self, size: int, by: int) -> None:
        """Note that bags of a size wait, or that they do no longer."""
        self.waiting[size] += by
        self.blocks[size // BLOCK] += by

    def largest_up_to(self, most: int) -> int:
        """Return the largest size up to ``most`` with a waiting bag; 0 if there is none."""
        size = min(most, self.largest)
        while size > 0:
            if self.blocks[size // BLOCK] == 0:
                size = size // BLOCK * BLOCK - 1
            elif self.waiting[size] == 0:
                size -= 1
            else:
                return size
        return 0

    def exchange(self, size: int, most: int) -> int:
        """Let a bag wait, and take the largest that fits instead; 1 if none does."""
        self.change(size, 1)
        found = self.largest_up_to(most)
        if found > 0:
            self.change(found, -1)
            return found
        return 1


def place_bags(
    places: Int64s,
    arrivals: Float64s,
    sizes: Int64s,
    gap: float,
    leave: float,
    leaving: Float64s,
    picking: Float64s,
    room: Int64s,
    waiting: WaitingBags,
) -> None:
    """Fill ``places`` with the bag of each job; the bag of the last job is the last open one.

    ``room`` has the number of jobs, from each on, without a break longer than the gap; if empty,
    bags begin wherever they are drawn. ``leaving`` and ``picking`` are numbers between 0 and 1; the
    others are as for :func:`~hpcrowd.analysis.models.jobs.comprehensive.bag_places`.
    """
    begun = 0
    current = False  # whether the last open one is the bag of the last job
    bags = OpenBags()
    for job in range(len(arrivals)):
        current = current and arrivals[job] - bags.last[bags.count - 1] <= gap
        bags.close_before(arrivals[job], gap)
        others = bags.count - 1 if current else bags.count
        most = room[job] - bags.to_come() if len(room) else 1
        chosen = -1
        if current and (leaving[job] >= leave or (others == 0 and most < 1)):
            chosen = bags.count - 1
        elif others > 0:
            chosen = int(picking[job] * others)
        if chosen < 0:
            size = waiting.exchange(sizes[job], most) if len(room) else sizes[job]
            bag, rest = begun, size - 1
            begun += 1
            if bags.count == MOST_OPEN:
                chosen = 0
        else:
            bag, rest = bags.bag[chosen], bags.left[chosen] - 1
        if chosen >= 0:
            bags.close(chosen)
        current = rest > 0
        if current:
            bags.put(bag, rest, arrivals[job])
        places[job] = bag


class Counted:
    """Values of each class, to be drawn by how often they come.

    Parameters
    ----------
    values
        The values of all classes.
    ends
        How many come up to each.
    bounds
        The same up to each class, and behind the last.
    """

    values: Int64s
    ends: Int64s
    bounds: Int64s

    def __init__(self, values: Int64s, ends: Int64s, bounds: Int64s) -> None:
        self.values, self.ends, self.bounds = values, ends, bounds

    def draw(self, chance: float, begin: int, end: int) -> int:
        """Return the value at a random count from ``begin`` to ``end``."""
        wanted = begin + min(int(chance * (end - begin)), end - begin - 1)
        low, high = 0, len(self.ends)
        while low < high:
            middle = (low + high) // 2
            if self.ends[middle] <= wanted:
                low = middle + 1
            else:
                high = middle
        value: int = self.values[low]
        return value

    def draw_of(self, chance: float, which: int) -> int:
        """Return a value of a class."""
        return self.draw(chance, self.bounds[which], self.bounds[which + 1])


def fill_runs(
    chances: Float64Rows, lengths: Counted, follows: Counted, label: Int64s, run: Int64s
) -> None:
    """Fill class and run of each job; row 0 of ``chances`` is for the first class."""
    size = len(label)
    begun = follows.draw(chances[0, 0], 0, follows.ends[len(follows.ends) - 1])
    place, number = 0, 0
    while place < size:
        length = lengths.draw_of(chances[1, number], begun)
        end = min(place + length, size)
        for job in range(place, end):
            label[job], run[job] = begun, number
        begun = follows.draw_of(chances[2, number], begun)
        place = end
        number += 1
