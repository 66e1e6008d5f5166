"""Users and requested times of generated jobs, for models without them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from hpcrowd.analysis.features.bags import bags
from hpcrowd.analysis.features.workload import Workload, whole
from hpcrowd.analysis.models.parts.base import Drawn, Floats, Part
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.traces.request_model import LEAST_LONGEST, RequestModel


def draw_from(shares: Floats, count: int, random: np.random.Generator) -> Int64s:
    """Return indices drawn in proportion to shares, which need not add up to 1."""
    ends = np.cumsum(shares)
    drawn = np.searchsorted(ends, random.random(count) * ends[-1], side="right")
    places: Int64s = np.minimum(drawn, len(shares) - 1).astype(np.int64)
    return places


def like(shares: Sequence[float], users: int) -> Int64s:
    """Return which of the users each of another number is like, at equal steps of their rank."""
    return ((np.arange(users) + 0.5) * (len(shares) / users)).astype(np.int64)


class UserShares(Part):
    """Users by their share of the bags; the user of a bag may also submit the next one.

    Users are drawn per bag, not per job, because all jobs of a bag have the same user.
    """

    name: ClassVar[str] = "users"
    title: ClassVar[str] = "users by their share of bags"
    source: ClassVar[str] = "our own"

    weights: tuple[PositiveFloat, ...] = Field(
        min_length=1, description="share of the bags of each user, falling; adds up to 1"
    )
    groups: tuple[PositiveInt, ...] = Field(
        min_length=1, description="group of each user, from 1 on"
    )
    stay: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="probability, beyond chance, that the next bag has the same user",
    )

    @model_validator(mode="after")
    def _as_many(self) -> Self:
        if len(self.weights) != len(self.groups):
            raise ValueError(f"{len(self.weights)} weights of users for {len(self.groups)} groups")
        return self

    @classmethod
    def fit(cls, workload: Workload) -> Self:
        """Return the users of a workload; if no user is known, one user for all jobs.

        The probability of staying is that of two successive bags having the same user, corrected
        for chance: (s - q) / (1 - q) with q the sum of squared shares.
        """
        known = workload.user >= 0
        if not known.any():
            return cls(weights=(1.0,), groups=(1,), notes=("no users recorded: one for all",))
        first = bags(workload).first
        first = first[known[first]]
        of_bags = workload.user[first]
        numbers, place, counts = np.unique(of_bags, return_inverse=True, return_counts=True)
        group = np.zeros(len(numbers), np.int64)
        group[place] = workload.group[first]
        order = np.argsort(-counts, kind="stable")
        shares = counts[order] / counts.sum()
        names = np.unique(group[order], return_inverse=True)[1] + 1
        by_chance = float((shares**2).sum())
        same = float(np.mean(of_bags[1:] == of_bags[:-1])) if len(of_bags) > 1 else 0.0
        stay = (same - by_chance) / (1 - by_chance) if by_chance < 1 else 0.0
        return cls(
            weights=tuple(shares.tolist()),
            groups=tuple(names.tolist()),
            stay=min(max(stay, 0.0), 1 - 1e-9),
        )

    def resized(self, users: int) -> Self:
        """Return as many users as wanted, with the same distribution of shares.

        Users are taken at equal steps of the rank by share, with their groups, so that of ten times
        as many ten are like each of these.
        """
        rank = like(self.weights, users)
        shares = np.asarray(self.weights)[rank]
        return self.model_copy(
            update={
                "weights": tuple((shares / shares.sum()).tolist()),
                "groups": tuple(np.asarray(self.groups)[rank].tolist()),
            }
        )

    def assign(self, count: int, random: np.random.Generator) -> tuple[Int64s, Int64s]:
        """Return user and group (numbers from 1 on) of ``count`` bags, each of shape (count,)."""
        drawn = draw_from(np.asarray(self.weights), count, random)
        fresh = random.random(count) >= self.stay
        if count:
            fresh[0] = True
        last = np.maximum.accumulate(np.where(fresh, np.arange(count), 0))
        place = drawn[last]
        return place + 1, np.asarray(self.groups, np.int64)[place]


# Load and users, which published models leave open but a workload needs. None of this has a
# source; all are defaults of parameters, chosen here.

#: Offered load for published parameters if the paper does not give arrivals.
LOAD = 0.7

#: Number of users and groups for published models without users, and the exponent of the Zipf
#: distribution of their jobs.
USERS, GROUPS, EXPONENT = 100, 10, 1.0


def chosen_users() -> UserShares:
    """Return users for a model without users."""
    rank = np.arange(1, USERS + 1)
    weight = rank**-EXPONENT
    return UserShares(
        weights=tuple((weight / weight.sum()).tolist()),
        groups=tuple(((rank - 1) % GROUPS + 1).tolist()),
        notes=(f"{USERS} users in {GROUPS} groups, chosen here",),
    )


def gap_for_load(work: float, machine: int) -> float:
    """Return the mean time between arrivals that gives :data:`LOAD`, s.

    ``work`` is the mean processors x s per arrival.
    """
    return work / (LOAD * machine)


#: Least share of jobs with a requested time for a fit; chosen here.
LEAST_SHARE = 0.1


class Requests(Part):
    """Requested times: the popular ones of the trace with their shares, and rare ones.

    All jobs of a bag request the same time, if possible long enough for the longest of them.
    """

    name: ClassVar[str] = "tsafrir"
    title: ClassVar[str] = "users' estimates, popular and rare ones"
    source: ClassVar[str] = "Tsafrir, Etsion and Feitelson, JSSPP 2005"

    longest_s: int = Field(ge=LEAST_LONGEST, description="s; the longest request")
    popular: tuple[tuple[int, float], ...] = Field(
        (), description="s, and share of the bags that request it"
    )
    head_share: float = Field(gt=0, le=1, description="share of bags with a popular request")
    distinct: int = Field(ge=1, description="number of different requests")

    @classmethod
    def fit(cls, workload: Workload) -> Self | None:
        """Return the requests of a workload; None if it has too few of them for a fit."""
        if not len(workload):
            return None
        asked = workload.requested_time[bags(workload).first]
        known = asked[asked > 0]
        if len(known) < max(1, LEAST_SHARE * len(asked)):
            return None
        try:
            found = RequestModel.fit(np.maximum(whole(known), 1))
        except QuantityError:
            return None  # no request reaches an hour: there are no meaningful estimates
        return cls(
            longest_s=found.longest,
            popular=tuple(sorted(found.popular.items())),
            head_share=found.head_share,
            distinct=found.distinct or 1,
        )

    @cached_property
    def model(self) -> RequestModel:
        """The model of requested times."""
        return RequestModel(
            self.longest_s,
            dict(self.popular),
            head_share=self.head_share,
            distinct=self.distinct,
        )

    def times(self, drawn: Drawn, random: np.random.Generator) -> Floats:
        """Return a requested time for each job, s, the same for all jobs of a bag."""
        names, bag = np.unique(drawn.bag, return_inverse=True)
        longest = np.zeros(len(names))
        np.maximum.at(longest, bag, drawn.run_time)
        asked = self.model.draw(np.maximum(whole(longest), 1), random, outrun=True)
        return np.asarray(asked, np.float64)[bag]
