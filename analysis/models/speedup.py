"""Downey's speedup of a parallel job from its average parallelism and the variance of that.

As it is remembered, and not confirmed by a source at hand: Downey, *A Model For Speedup of Parallel
Programs*, 1997.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from analysis.models.part import Floats


def speedup(processors: ArrayLike, parallelism: ArrayLike, sigma: ArrayLike) -> Floats:
    """Return how many times faster a job is than on one processor.

    Parameters
    ----------
    processors
        n, at least 1.
    parallelism
        A, average parallelism, at least 1; no job is faster than that.
    sigma
        Variance of parallelism, in its square; at least 0.

    Notes
    -----
    With little variance (sigma <= 1)

        S = A n / (A + sigma (n - 1) / 2)                    for n <= A
        S = A n / (sigma (A - 1/2) + n (1 - sigma / 2))      for A <= n <= 2 A - 1
        S = A                                                beyond

    and with much of it

        S = n A (sigma + 1) / (sigma (n + A - 1) + A)        for n <= A + A sigma - sigma
        S = A                                                beyond
    """
    n, a, s = np.broadcast_arrays(
        *(np.asarray(each, np.float64) for each in (processors, parallelism, sigma))
    )
    # Denominators are positive where the branch holds; where it does not, nothing is made of them.
    little = np.where(
        n <= a,
        a * n / (a + s * (n - 1) / 2),
        np.where(n <= 2 * a - 1, a * n / np.maximum(s * (a - 0.5) + n * (1 - s / 2), 0.5), a),
    )
    much = np.where(n <= a + a * s - s, n * a * (s + 1) / (s * (n + a - 1) + a), a)
    found: Floats = np.where(s <= 1, little, much)
    return found
