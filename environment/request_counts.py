"""From shares to jobs: whole numbers that sum up, and requests handed out to jobs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from environment.errors import QuantityError
from environment.jobs import Int64s
from environment.quantities import plural, round_half_up


def apportion(shares: Mapping[int, float], jobs: int) -> dict[int, int]:
    """Return whole numbers of jobs near to the shares, by largest remainders."""
    exact = {time: share * jobs for time, share in shares.items()}
    found = {time: int(value) for time, value in exact.items()}
    missing = min(jobs, round_half_up(sum(exact.values()))) - sum(found.values())
    by_remainder = sorted(exact, key=lambda time: (found[time] - exact[time], time))
    for time in by_remainder[:missing]:
        found[time] += 1
    return found


def fit_counts(counts: Mapping[int, int], total: int) -> dict[int, int]:
    """Return counts that sum to ``total``, changed from the largest on.

    First in proportion, then by one each, then down to one, then down to none; only the last takes
    a request away.

    Parameters
    ----------
    counts
        Jobs by request; 1 or more each.
    total
        Jobs.

    Raises
    ------
    QuantityError
        When there is no request whose count could grow.
    """
    found = dict(counts)
    by_size = sorted(found, key=lambda time: (-found[time], time))
    before, missing = sum(found.values()), total - sum(found.values())
    if missing and not found:
        raise QuantityError(
            f"popular requests: leave {plural(missing, 'job')} without one; let their shares sum "
            "to 1 or allow more different requests"
        )
    factor = abs(missing) / max(before, 1)
    sign = 1 if missing > 0 else -1
    for step in ("proportion", "one", "to one", "to none"):
        for time in by_size:
            count = found[time]
            change = {
                "proportion": int(np.ceil(factor * count)),
                "one": 1,
                "to one": count - 1,
                "to none": count,
            }[step]
            if sign < 0:
                change = min(change, count - (step != "to none"))
            change = min(change, abs(missing))
            found[time] += sign * change
            missing -= sign * change
    return found


def assign(requests: Int64s, run_times: Int64s, stream: np.random.Generator) -> Int64s:
    """Hand out requests to jobs at random, so that none is below its job's run time.

    Jobs choose in the order of their run times, the longest first, each uniformly among the
    requests that are left and long enough.

    Parameters
    ----------
    requests, run_times
        s, shape (jobs,).
    stream
        Where randomness comes from.

    Returns
    -------
    Int64s
        Requested time of each job, s.

    Raises
    ------
    QuantityError
        When there is no such way: some n jobs run longer than all but fewer than n requests.
    """
    order = np.argsort(-run_times, kind="stable")
    runs, left = run_times[order], np.sort(requests)[::-1]
    short: NDArray[np.bool_] = left < runs
    if short.any():
        run = int(runs[int(np.argmax(short))])
        long_jobs, long_requests = int((runs >= run).sum()), int((left >= run).sum())
        raise QuantityError(
            f"requested times: {plural(long_jobs, 'job')} of {run} s or more, but only "
            f"{plural(long_requests, 'request')} drawn for so long; choose a longer longest "
            "request, a larger share of jobs that have it, or another seed"
        )
    enough = np.searchsorted(-left, -runs, side="right")  # requests that are long enough
    uniform = stream.random(len(runs))
    pool = left.tolist()
    for place, (end, u) in enumerate(zip(enough.tolist(), uniform.tolist(), strict=True)):
        chosen = place + int(u * (end - place))
        pool[place], pool[chosen] = pool[chosen], pool[place]
    found = np.empty(len(runs), np.int64)
    found[order] = pool
    return found
