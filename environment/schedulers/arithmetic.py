"""Sums that policies do alike as ordinary Python and compiled: decay, and late ends of jobs."""

from __future__ import annotations

#: s; added to the expected run time each time that a job outruns it: 1, 5, 15, 30 minutes, 1, 2, 5,
#: 10, 20, 50, 100 hours (Tsafrir, Etsion and Feitelson 2007; unconfirmed).
INCREMENTS = (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000)

#: The last of them, s.
LAST_INCREMENT = INCREMENTS[-1]

#: The natural logarithm of 2.
LN2 = 0.6931471805599453

#: Number of half-lives after which nothing is left of a usage.
GONE = 1100

#: Terms of the series of exp(-x) for 0 <= x <= ln 2; the first left out is below 1e-20.
TERMS = 18


def believed_end(start: int, estimate: int, requested: int, now: int) -> int:
    """Return when a job that runs at ``now`` is expected to end, for schedulers that plan ahead.

    That is its start plus its estimate. Once that time has passed, the estimate is raised by the
    :data:`INCREMENTS`, one after another, then repeatedly by the last one, to the first time after
    ``now``; but to the requested time first, if that is still to come (Tsafrir, Etsion and
    Feitelson 2007: gradual correction, bounded by the request; increments unconfirmed).

    Parameters
    ----------
    start, now
        s since the origin.
    estimate, requested
        s; the estimate when the job arrived, and the requested time.
    """
    end = start + estimate
    if end > now:
        return end
    more = 0
    for increment in INCREMENTS:
        more += increment
        if end + more > now:
            break
    if end + more <= now:
        last = LAST_INCREMENT
        more += (now - end - more) // last * last + last
    raised = end + more
    return min(raised, start + requested) if start + requested > now else raised


def half(lives: float) -> float:
    """Return 2^-lives by sums and products alone, which give the same bits everywhere."""
    if lives >= GONE:
        return 0.0
    whole = int(lives)
    x = (lives - float(whole)) * LN2
    left = 1.0
    for term in range(TERMS, 0, -1):
        left = 1.0 - x * left / float(term)
    for _ in range(whole):
        left *= 0.5
    return left
