"""Requested times as users choose them: the model of Tsafrir, Etsion and Feitelson (2005).

Users choose few, round times, often the longest that is allowed. :class:`RequestModel` draws how
many jobs ask for how long: a *head* of twenty popular requests and a *tail* of many rare ones.
:mod:`environment.request_counts` hands them out to jobs, none of which gets less than its run time.
Numbers and rules are those of "Modeling user runtime estimates", JSSPP 2005, and the program that
goes with it, but for :data:`~environment.popular_times.POPULARITY`, which is measured by us.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self

import numpy as np

from environment.clock import HOUR
from environment.errors import QuantityError
from environment.jobs import Int64s
from environment.popular_times import POPULAR, POPULARITY, most_popular
from environment.quantities import plural, round_half_up
from environment.request_counts import apportion, assign, fit_counts
from environment.request_head import MINUTE, SIZES, draw_head

#: Shortest longest request that the model is made for, s.
LEAST_LONGEST = HOUR

#: Share of jobs that have one of the popular requests.
HEAD_SHARE = 0.89

#: Number of different requests by number of jobs: linear between these points, flat above.
DISTINCT = (
    *((0, 0), (20, 10), (200, 20), (1_000, 35)),
    *((10_000, 90), (70_000, 340), (250_000, 565)),
)

#: a, b of the other rule for that number, a * jobs ** b.
DISTINCT_POWER = (0.653566, 0.547761)

#: Power of the popularity rank, from 21 on, that the share of a rare request goes by. The factor
#: of the source, 795.6 percent, has no effect: the shares are scaled to what the head leaves.
TAIL_POWER = -2.267

#: c, d of a = 1 + c * distinct ** d. Rare requests are longest * (a - 1) * x / (a - x), x from 0 to
#: 1 by their order.
TAIL_TIMES = (12.1039, -0.6026)

#: What is added to a rare request that is taken already, in this order, s.
OFFSETS = (0, 30, -30, 20, -20, 10, -10)

#: A fit takes the longest request that at least this share of jobs has for the longest of all:
#: logs have a few requests of years. Chosen here.
RARE = 1e-4


@dataclass(frozen=True)
class RequestModel:
    """How many jobs ask for how long.

    Attributes
    ----------
    longest
        The longest request, s; at least 1 h.
    popular
        Requests known to be popular, s, each with its share of jobs; up to 20 with the longest.
        They take the place of the model's own.
    head_share
        Share of jobs that have one of the popular requests.
    distinct
        Number of different requests; None takes it by the number of jobs: ``law``.
    law
        ``linear`` (:data:`DISTINCT`) or ``power`` (:data:`DISTINCT_POWER`).
    number
        Of popular requests.
    sizes, tail_power, tail_times
        See :data:`~environment.request_head.SIZES`, :data:`TAIL_POWER` and :data:`TAIL_TIMES`.
    table
        See :data:`~environment.popular_times.POPULARITY`.
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
        if self.law not in ("linear", "power"):
            raise QuantityError(f"law {self.law!r}: not known; choose linear or power")

    @classmethod
    def fit(
        cls, requested: Int64s, popular: int = POPULAR, *, rare: float = RARE, longest: int = 0
    ) -> Self:
        """Return the model of given requests.

        Parameters
        ----------
        requested
            Requested times, s; positive.
        popular
            How many popular requests are taken over with their shares, the longest among them; 0
            takes over only longest and number of different ones.
        rare
            See :data:`RARE`.
        longest
            s, where it is known. Longer requests count as this one.

        Raises
        ------
        QuantityError
            When there is none, or the longest is below 1 h.
        """
        requested = np.asarray(requested, np.int64)
        if not len(requested) or int(requested.min()) < 1:
            raise QuantityError(
                f"requests: {plural(len(requested), 'job')} with a positive one needed, all of them"
            )
        if not longest:
            times, counts = np.unique(requested, return_counts=True)
            longest = int(times[counts >= rare * len(requested)].max(initial=0)) or int(times[-1])
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
        """Return the number of different requests of so many jobs, from 1 to ``jobs``."""
        if self.distinct is not None:
            found = float(self.distinct)
        elif self.law == "power":
            a, b = DISTINCT_POWER
            found = a * jobs**b
        else:
            found = float(np.interp(jobs, *np.array(DISTINCT, float).T))
        return max(1, min(jobs, max(round_half_up(found), len(self.popular))))

    def histogram(self, jobs: int, stream: np.random.Generator) -> tuple[Int64s, Int64s]:
        """Draw requests for so many jobs.

        Parameters
        ----------
        jobs
            How many; 1 or more.
        stream
            Where randomness comes from.

        Returns
        -------
        tuple
            Requests (s), the shortest first, and how many jobs have each; the sum is ``jobs``.

        Raises
        ------
        QuantityError
            When ``head_share`` leaves nothing for the longest request.
        """
        if jobs < 1:
            raise QuantityError(f"jobs {jobs}: at least 1 is needed to draw requested times")
        head = draw_head(
            self.longest,
            self.head_share,
            self.popular,
            stream,
            number=self.number,
            sizes=self.sizes,
            table=self.table,
        )
        if min(head.values()) < 0:
            raise QuantityError(
                f"head_share {self.head_share}: leaves nothing for the longest request; give its "
                "share among the popular ones"
            )
        distinct = self.distinct_for(jobs)
        own = sorted(head.keys() - self.popular.keys(), key=lambda time: (-head[time], -time))
        # Few jobs have few different requests: the popular ones. No rule of the source's.
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

        A job that runs longer than the longest request asks for that.

        Parameters
        ----------
        run_times
            s, shape (jobs,).
        stream
            Where randomness comes from.
        outrun
            Where more jobs run for long than requests are that long, let them ask for the longest
            that is left: in logs some jobs do outrun their requests.

        Raises
        ------
        QuantityError
            When too many jobs run too long, unless ``outrun``; see
            :func:`~environment.request_counts.assign`.
        """
        if not len(run_times):
            return np.zeros(0, np.int64)
        requests = np.repeat(*self.histogram(len(run_times), stream))
        runs = np.minimum(run_times, self.longest)
        if outrun:
            order = np.argsort(runs, kind="stable")
            runs[order] = np.minimum(runs[order], requests)
        return assign(requests, runs, stream)
