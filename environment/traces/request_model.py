"""Requested times as users choose them: the model of Tsafrir, Etsion and Feitelson (2005).

Users choose few, round times, often the longest that is allowed. :class:`RequestModel` draws the
histogram of requested times: a *head* of twenty popular requests and a *tail* of many rare ones.
:func:`assign` distributes them over jobs so that no job gets less than its run time.

The *time rank* of a popular request is 0 for the longest of all, then 1, 2, ... from the shortest
on; its *popularity rank* is 1 for the request that most jobs have. The authors draw popularity
ranks by time rank from a table of four logs (SDSC-106, CTC, KTH, BLUE). :data:`POPULARITY` is not
theirs: we measured it with :func:`popularity_by_time` on logs of the Parallel Workloads Archive.
All other numbers and rules are those of the source.

Source: Tsafrir, Etsion and Feitelson, "Modeling user runtime estimates", JSSPP 2005, and the
program published with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.errors import QuantityError, check_choice
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.quantities import plural, round_half_up

#: Number of popular requests, the "head" (Tsafrir et al. 2005).
POPULAR = 20

#: Popularity rank by time rank, by log. Measured by us with :func:`popularity_by_time` on jobs
#: whose requested time (field 9) is positive: KTH-SP2-1996-2.1-cln, jobs that request at most 4 h
#: (the limit by day there); SDSC-DS-2004-2.1-cln; CEA-Curie-2011-2.1-cln. In these logs the longest
#: popular request is among the three most popular ones, as in the model.
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

#: Number of candidates drawn at each time rank; the most popular one is taken (Tsafrir et al.).
DRAWS = 2

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

#: Smallest value of the longest request that the model is made for, s.
LEAST_LONGEST = HOUR

#: Share of jobs with one of the popular requests.
HEAD_SHARE = 0.89

#: Number of different requests by number of jobs: linear between these points, flat above.
DISTINCT = (
    *((0, 0), (20, 10), (200, 20), (1_000, 35)),
    *((10_000, 90), (70_000, 340), (250_000, 565)),
)

#: a, b of the alternative rule for that number, a * jobs ** b.
DISTINCT_POWER = (0.653566, 0.547761)

#: The share of a rare request is proportional to this power of its popularity rank, from 21 on.
#: The source's factor, 795.6 percent, has no effect: shares are scaled to what the head leaves.
TAIL_POWER = -2.267

#: c, d in a = 1 + c * distinct ** d. Rare requests are longest * (a - 1) * x / (a - x), with x from
#: 0 to 1 in their order.
TAIL_TIMES = (12.1039, -0.6026)

#: Offsets, s, that are tried in this order if a rare request is already taken.
OFFSETS = (0, 30, -30, 20, -20, 10, -10)

#: A fit takes as the longest request the longest one that at least this share of jobs has: logs
#: have a few requests of years. Our choice.
RARE = 1e-4


def most_popular(requested: Int64s, number: int = POPULAR) -> tuple[Int64s, Int64s]:
    """Return the most popular requests (s) and the number of jobs with each, most popular first.

    Of two equally popular ones the shorter comes first.
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
        Number of requests that count as popular.

    Raises
    ------
    QuantityError
        If there are fewer distinct requests.

    Examples
    --------
    >>> import numpy as np
    >>> popularity_by_time(np.array([60, 60, 60, 300, 900, 900]), number=3)
    (2, 1, 3)
    """
    times, _ = most_popular(requested, number)
    if len(times) < number:
        raise QuantityError(f"requests: {len(times)} distinct values; at least {number} are needed")
    ranks = (np.argsort(times) + 1).tolist()
    return ranks[-1], *ranks[:-1]


def apportion(shares: Mapping[int, float], jobs: int) -> dict[int, int]:
    """Return whole numbers of jobs close to the shares, by largest remainders."""
    exact = {time: share * jobs for time, share in shares.items()}
    found = {time: int(value) for time, value in exact.items()}
    missing = min(jobs, round_half_up(sum(exact.values()))) - sum(found.values())
    by_remainder = sorted(exact, key=lambda time: (found[time] - exact[time], time))
    for time in by_remainder[:missing]:
        found[time] += 1
    return found


def fit_counts(counts: Mapping[int, int], total: int) -> dict[int, int]:
    """Return counts by request, 1 or more each, that sum to ``total``; the largest change first.

    First in proportion, then by one each, then down to one, then down to none; only the last takes
    a request away. Raises QuantityError if there is no request whose count could grow.
    """
    found = dict(counts)
    by_size = sorted(found, key=lambda time: (-found[time], time))
    before, missing = sum(found.values()), total - sum(found.values())
    if missing and not found:
        raise QuantityError(
            f"popular requests: leave {plural(missing, 'job')} without one; make their shares sum "
            "to 1 or allow more distinct requests"
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
    """Distribute requests over jobs at random, so that no request is below its job's run time, s.

    Jobs choose in the order of their run times, the longest first, each uniformly among the
    requests that are left and long enough. Raises QuantityError if that is impossible: n jobs need
    long requests and fewer than n requests are that long.
    """
    order = np.argsort(-run_times, kind="stable")
    runs, left = run_times[order], np.sort(requests)[::-1]
    short: NDArray[np.bool_] = left < runs
    if short.any():
        run = int(runs[int(np.argmax(short))])
        long_jobs, long_requests = int((runs >= run).sum()), int((left >= run).sum())
        raise QuantityError(
            f"requested times: {plural(long_jobs, 'job')} of {run} s or more, but only "
            f"{plural(long_requests, 'request')} drawn that long; increase the longest request or "
            "the share of jobs that have it, or change the seed"
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


@dataclass(frozen=True)
class RequestModel:
    """A model of the distribution of requested times.

    Attributes
    ----------
    longest
        The longest request, s; at least 1 h.
    popular
        Requests known to be popular, s, each with its share of jobs; up to 20 with the longest.
        They replace the model's own.
    head_share
        Share of jobs with one of the popular requests.
    distinct
        Number of distinct requests; None computes it from the number of jobs, see ``law``.
    law
        ``linear`` (:data:`DISTINCT`) or ``power`` (:data:`DISTINCT_POWER`).
    number
        Number of popular requests.
    sizes, tail_power, tail_times
        See :data:`SIZES`, :data:`TAIL_POWER` and :data:`TAIL_TIMES`.
    table
        See :data:`POPULARITY`.
    """

    longest: int
    popular: Mapping[int, float] = field(default_factory=dict)
    head_share: float = HEAD_SHARE
    distinct: int | None = None
    law: Literal["linear", "power"] = "linear"
    number: int = POPULAR
    sizes: tuple[float, float, float] = SIZES
    tail_power: float = TAIL_POWER
    tail_times: tuple[float, float] = TAIL_TIMES
    table: Sequence[Sequence[int]] = tuple(POPULARITY.values())

    def __post_init__(self) -> None:
        if self.longest < LEAST_LONGEST:
            raise QuantityError(
                f"longest request {self.longest} s: must be at least {LEAST_LONGEST} s, 1h"
            )
        for time, share in self.popular.items():
            if not 0 < time <= self.longest or not 0 <= share <= 1:
                raise QuantityError(
                    f"popular request {time} s of share {share}: must be positive, at most the "
                    f"longest ({self.longest} s), and its share from 0 to 1"
                )
        most = self.number - (self.longest not in self.popular)
        if len(self.popular) > most or sum(self.popular.values()) > 1 + 1e-9:
            raise QuantityError(
                f"popular requests: {len(self.popular)} with a share of "
                f"{sum(self.popular.values()):.3g}; at most {most} are possible, with a share of 1"
            )
        if not 0 < self.head_share <= 1:
            raise QuantityError(f"head_share {self.head_share}: must be above 0 and at most 1")
        if self.distinct is not None and self.distinct < 1:
            raise QuantityError(f"distinct {self.distinct}: must be 1 or more")
        check_choice("law", self.law, ("linear", "power"))

    @classmethod
    def fit(cls, requested: Int64s, popular: int = POPULAR) -> Self:
        """Return the model fitted to given requests.

        Parameters
        ----------
        requested
            Requested times, s; positive.
        popular
            Number of popular requests, with the longest, that are copied with their shares; 0
            copies only the longest request and the number of distinct ones.

        Raises
        ------
        QuantityError
            If there is none, or the longest is below 1 h.
        """
        requested = np.asarray(requested, np.int64)
        if not len(requested) or int(requested.min()) < 1:
            raise QuantityError(
                f"requests: {plural(len(requested), 'job')}; all need a positive requested time"
            )
        times, counts = np.unique(requested, return_counts=True)
        longest = int(times[counts >= RARE * len(requested)].max(initial=0)) or int(times[-1])
        requested = np.minimum(requested, longest)
        distinct = len(np.unique(requested))
        if not popular:
            return cls(longest, distinct=distinct)
        times, counts = most_popular(requested[requested < longest], popular - 1)
        shares = {longest: float((requested == longest).mean())}
        for time, count in zip(times.tolist(), counts.tolist(), strict=True):
            shares[time] = count / len(requested)
        known = min(1.0, sum(shares.values()))
        share = known if popular >= min(POPULAR, distinct) else max(HEAD_SHARE, known)
        return cls(longest, shares, head_share=share, distinct=distinct)

    def distinct_for(self, jobs: int) -> int:
        """Return the number of distinct requests for ``jobs`` jobs, from 1 to ``jobs``."""
        if self.distinct is not None:
            found = float(self.distinct)
        elif self.law == "power":
            a, b = DISTINCT_POWER
            found = a * jobs**b
        else:
            found = float(np.interp(jobs, *np.array(DISTINCT, float).T))
        return max(1, min(jobs, max(round_half_up(found), len(self.popular))))

    def histogram(self, jobs: int, stream: np.random.Generator) -> tuple[Int64s, Int64s]:
        """Draw the histogram of requests for ``jobs`` jobs.

        Parameters
        ----------
        jobs
            Number of jobs, 1 or more.
        stream
            Random numbers.

        Returns
        -------
        tuple
            Requests (s), shortest first, and the number of jobs with each; the sum is ``jobs``.

        Raises
        ------
        QuantityError
            If ``head_share`` leaves nothing for the longest request.
        """
        if jobs < 1:
            raise QuantityError(f"jobs {jobs}: at least 1 is needed to draw requested times")
        head = self._head(stream)
        if min(head.values()) < 0:
            raise QuantityError(
                f"head_share {self.head_share}: leaves nothing for the longest request; give its "
                "share among the popular ones"
            )
        distinct = self.distinct_for(jobs)
        own = sorted(head.keys() - self.popular.keys(), key=lambda time: (-head[time], -time))
        # Few jobs have few distinct requests: the popular ones. Not a rule of the source.
        whole = sum(self.popular.values()) > 1 - 1e-9
        kept = max(distinct - len(self.popular), 0 if whole else 1)
        for time in own[kept:]:
            del head[time]
        shares = {time: share for time, share in head.items() if time not in self.popular}
        rare = max(distinct - len(head), 0 if shares or whole else 1)
        shares |= self._tail(rare, distinct, head, stream)
        fixed = apportion(self.popular, jobs)
        counts = {time: max(1, round_half_up(share * jobs)) for time, share in shares.items()}
        counts = fit_counts(counts, jobs - sum(fixed.values())) | fixed
        found = sorted((time, count) for time, count in counts.items() if count)
        times, numbers = np.array(found, np.int64).T
        return times, numbers

    def _head(self, stream: np.random.Generator) -> dict[int, float]:
        """Return the popular requests, s, each with its share of all jobs.

        Times and sizes are computed separately and then matched by :meth:`draw_popularity`. Known
        shares replace the nearest ones.
        """
        times = self.head_times()
        shares, places = self.merge_sizes(self.head_sizes(len(times)))
        known = {times.index(time): place + 1 for time, place in places.items()}
        ranks = self.draw_popularity(len(times), stream, known)
        return {time: shares[rank - 1] for time, rank in zip(times, ranks, strict=True)}

    def head_times(self) -> list[int]:
        """Return the popular requests, s: the longest, then the others from the shortest on.

        Fewer than :attr:`number` if the longest leaves no room for more. Each request known to be
        popular replaces the nearest one; those in :data:`COMMON_TIMES` are replaced only if no
        other is left.
        """
        longest, given = self.longest, self.popular
        common = [time for time in COMMON_TIMES if time < longest]
        times = [longest, *common][: self.number]
        for step in ROUND_STEPS:
            for time in range(longest // step * step, 0, -step):
                if len(times) < self.number and time not in times:
                    times.append(time)
        new = sorted(set(given) - set(times))
        surplus = len(times) + len(new) - self.number
        for others in (set(times) - set(common), set(common)):
            others = others - {longest, *given}
            pairs = sorted((abs(mine - other), mine, other) for mine in new for other in others)
            for _, mine, other in pairs:
                if surplus > 0 and mine in new and other in times:
                    times[times.index(other)] = mine
                    new.remove(mine)
                    surplus -= 1
        return [longest, *sorted({*times, *new} - {longest})]

    def head_sizes(self, number: int) -> list[float]:
        """Return the shares of ``number`` popular requests, the largest first.

        Rank 1 gets what the others leave of the share of the head; if the share of the longest
        request is known, the others share the rest.
        """
        a, b, c = self.sizes
        ranks = np.arange(2, number + 1)
        others = (a * np.exp(b * ranks) + c) / 100
        if self.longest not in self.popular:
            first = self.head_share - float(others.sum())
        else:
            first = self.popular[self.longest]
            if number > 1:
                others *= max(0.0, self.head_share - first) / others.sum()
        return sorted([first, *others.tolist()], reverse=True)

    def merge_sizes(self, sizes: Sequence[float]) -> tuple[list[float], dict[int, int]]:
        """Replace the nearest shares by the known ones; the others share the rest.

        Parameters
        ----------
        sizes
            Shares, the largest first. A request other than the longest takes the first place only
            if no other place is left.

        Returns
        -------
        tuple
            The shares, and the place of each known one among them. After the first place they are
            ordered by size.
        """
        given = self.popular
        free = list(range(len(sizes)))
        taken: dict[int, int] = {}
        for time in sorted(given, key=lambda time: (-given[time], time)):
            places = [place for place in free if place > 0 or time == self.longest]
            place = min(places or free, key=lambda place: abs(sizes[place] - given[time]))
            free.remove(place)
            taken[place] = time
        rest = sum(sizes[place] for place in free)
        scale = max(0.0, self.head_share - sum(given.values())) / rest if rest > 0 else 0.0
        merged = [
            given[taken[place]] if place in taken else scale * size
            for place, size in enumerate(sizes)
        ]
        order = [0, *sorted(range(1, len(sizes)), key=lambda place: -merged[place])]
        found = {taken[old]: new for new, old in enumerate(order) if old in taken}
        return [merged[place] for place in order], found

    def draw_popularity(
        self, number: int, stream: np.random.Generator, given: Mapping[int, int]
    ) -> list[int]:
        """Draw a popularity rank for each time rank: the "pool algorithm" of Tsafrir et al. (2005).

        At each time rank the popularity ranks of the logs at that time rank join a pool. A rank
        that no log has at a later time rank is taken now; else the most popular of a few drawn from
        the pool. The longest request gets rank 1.

        Parameters
        ----------
        number
            Number of popular requests, 1 or more.
        stream
            Random numbers.
        given
            Known popularity ranks, by time rank; no other request gets them.
        """
        last: dict[int, int] = {}
        for log in self.table:
            for place, rank in enumerate(log):
                last[rank] = max(last.get(rank, 0), place)
        free = set(range(1, number + 1)) - set(given.values())
        pool: list[int] = []
        found = []
        for place in range(number):
            pool += [log[place] for log in self.table if place < len(log)]
            pool = [rank for rank in pool if rank in free]
            due = [rank for rank in free if last.get(rank, number) <= place]
            if place in given:
                rank = given[place]
            elif place == 0:
                rank = min(free)
            elif due:
                rank = min(due)
            elif pool:
                rank = min(pool[index] for index in stream.integers(len(pool), size=DRAWS))
            else:  # only with fewer requests than in the table, or with given ranks
                rank = min(free)
            free.discard(rank)
            found.append(rank)
        return found

    def _tail(
        self, number: int, distinct: int, head: Mapping[int, float], stream: np.random.Generator
    ) -> dict[int, float]:
        """Return the rare requests, s, with their shares."""
        times: list[int] = []
        c, d = self.tail_times
        a = 1 + c * float(distinct) ** d
        x = np.arange(1, number + 1) / max(number, 1)
        for seconds in (self.longest * (a - 1) * x / (a - x)).tolist():
            minute = round_half_up(seconds / MINUTE) * MINUTE
            free = (
                minute + offset
                for offset in OFFSETS
                if 0 < minute + offset < self.longest
                and minute + offset not in head
                and minute + offset not in times
            )
            if (time := next(free, None)) is not None:
                times.append(time)
        if not times:
            return {}
        shares = (self.number + 1.0 + np.arange(len(times))) ** self.tail_power
        rest = 1 - max(self.head_share, sum(self.popular.values()))
        shares *= max(0.0, rest) / shares.sum()
        return dict(zip(times, stream.permutation(shares).tolist(), strict=True))

    def draw(
        self, run_times: Int64s, stream: np.random.Generator, *, outrun: bool = False
    ) -> Int64s:
        """Return a requested time for each job, s: at least its run time, at most the longest.

        A job that runs longer than the longest request gets the longest request.

        Parameters
        ----------
        run_times
            s, shape (jobs,).
        stream
            Random numbers.
        outrun
            If there are more long jobs than long requests, give these jobs the longest request that
            is left: in logs some jobs do outrun their requests.

        Raises
        ------
        QuantityError
            If too many jobs run too long, unless ``outrun``; see
            :func:`assign`.
        """
        if not len(run_times):
            return np.zeros(0, np.int64)
        requests = np.repeat(*self.histogram(len(run_times), stream))
        runs = np.minimum(run_times, self.longest)
        if outrun:
            order = np.argsort(runs, kind="stable")
            runs[order] = np.minimum(runs[order], requests)
        return assign(requests, runs, stream)
