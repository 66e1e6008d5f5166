"""The broker's queue, compiled: jobs by submission, of which the first that fits is found fast.

Jobs of one size stand in a list of their own, by submission; over the sizes there is a tree that
knows the earliest of the first jobs of all sizes up to any number of processors. So a queue of
thousands costs no more to look through than one of ten.

Arrays: ``sizes`` holds the first and the last job of each size, -1 none, shape (2, sizes);
``chain`` the next job of its size and the place in the order (:func:`place_of`), -1 when it does
not wait, shape (2, jobs); ``tree`` the earliest place, a heap over ``sizes`` (``tree[1]`` of all),
shape (2 * sizes,).
"""

from __future__ import annotations

from environment.jobs import UNKNOWN
from environment.kernel.places import compiled
from environment.stops import FOREVER

FIRST, LAST = 0, 1
NEXT, PLACE = 0, 1


#: Places by submission, then by row; there are less than 2**31 rows, and 2**32 seconds are an age.
ROWS = 1 << 31


@compiled
def place_of(submit, row):
    """Return the place of a job in the order of the queue."""
    return submit * ROWS + row


@compiled
def _renew(tree, size, place):
    """Note the place of the first job of a size."""
    node = (len(tree) >> 1) + size
    tree[node] = place
    while node > 1:
        node >>= 1
        tree[node] = min(tree[2 * node], tree[2 * node + 1])


@compiled
def put(tree, sizes, chain, job, size, place):
    """Put a job into the queue, most often at its end."""
    chain[PLACE, job] = place
    last = sizes[LAST, size]
    before, after = last, UNKNOWN
    if last != UNKNOWN and chain[PLACE, last] > place:  # an earlier number came in the same second
        before, after = UNKNOWN, sizes[FIRST, size]
        while chain[PLACE, after] < place:
            before, after = after, chain[NEXT, after]
    chain[NEXT, job] = after
    if after == UNKNOWN:
        sizes[LAST, size] = job
    if before == UNKNOWN:
        sizes[FIRST, size] = job
        _renew(tree, size, place)
    else:
        chain[NEXT, before] = job


@compiled
def first_up_to(tree, sizes, most):
    """Return the first job of at most so many processors, -1 if there is none."""
    half = len(tree) >> 1
    low, high = half, half + min(most, half - 1) + 1
    earliest, at = FOREVER, 0
    while low < high:
        if low & 1:
            if tree[low] < earliest:
                earliest, at = tree[low], low
            low += 1
        if high & 1:
            high -= 1
            if tree[high] < earliest:
                earliest, at = tree[high], high
        low >>= 1
        high >>= 1
    if earliest == FOREVER:
        return UNKNOWN
    while at < half:
        at = 2 * at if tree[2 * at] == earliest else 2 * at + 1
    return sizes[FIRST, at - half]


@compiled
def remove_first(tree, sizes, chain, size):
    """Take the first job of a size out of the queue."""
    job = sizes[FIRST, size]
    after = chain[NEXT, job]
    chain[PLACE, job] = UNKNOWN
    sizes[FIRST, size] = after
    if after == UNKNOWN:
        sizes[LAST, size] = UNKNOWN
        _renew(tree, size, FOREVER)
    else:
        _renew(tree, size, chain[PLACE, after])
