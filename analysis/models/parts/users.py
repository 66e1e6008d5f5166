"""Who submits generated jobs, and how long they ask for, where a model says nothing of it."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from hpcrowd.analysis.features.bags import bags
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.models.parts.base import Drawn, Floats, Part
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.traces.request_model import LEAST_LONGEST, RequestModel


def draw_from(shares: Floats, count: int, random: np.random.Generator) -> Int64s:
    """Return so many places, each with its share, which need not add up to 1."""
    ends = np.cumsum(shares)
    drawn = np.searchsorted(ends, random.random(count) * ends[-1], side="right")
    places: Int64s = np.minimum(drawn, len(shares) - 1).astype(np.int64)
    return places


class UserShares(Part):
    """Users by their share of the bags; whoever submitted a bag may submit the next one too.

    Bags are drawn instead of jobs because all jobs of a bag have the same user.
    """

    name: ClassVar[str] = "users"
    title: ClassVar[str] = "users by their share of bags"
    source: ClassVar[str] = "our own"

    weights: tuple[PositiveFloat, ...] = Field(
        min_length=1, description="share of the bags of each user, most first; adds up to 1"
    )
    groups: tuple[PositiveInt, ...] = Field(
        min_length=1, description="group of each user, from 1 on"
    )
    stay: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="probability that the next bag has the same user, beyond chance",
    )

    @model_validator(mode="after")
    def _as_many(self) -> Self:
        if len(self.weights) != len(self.groups):
            raise ValueError(f"{len(self.weights)} weights of users for {len(self.groups)} groups")
        return self

    @classmethod
    def fit(cls, workload: Workload) -> Self:
        """Return the users of a workload; without known users one, who submits everything.

        The probability to stay is that of two bags after each other with the same user, less what
        chance gives: (s - q) / (1 - q) with q the sum of squared shares.
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

    def assign(self, count: int, random: np.random.Generator) -> tuple[Int64s, Int64s]:
        """Return user and group of so many bags, numbers from 1 on, each of shape (count,)."""
        drawn = draw_from(np.asarray(self.weights), count, random)
        fresh = random.random(count) >= self.stay
        if count:
            fresh[0] = True
        last = np.maximum.accumulate(np.where(fresh, np.arange(count), 0))
        place = drawn[last]
        return place + 1, np.asarray(self.groups, np.int64)[place]


# What published models leave open and a workload cannot do without: load and users. Nothing here
# has a source; all of it are defaults of parameters, chosen here.

#: Offered load that published parameters get where the paper says nothing of arrivals.
LOAD = 0.7

#: Users of published models that have none, their groups, and the exponent of the Zipf
#: distribution of what they submit.
USERS, GROUPS, EXPONENT = 100, 10, 1.0


def chosen_users() -> UserShares:
    """Return users for a model that knows none."""
    rank = np.arange(1, USERS + 1)
    weight = rank**-EXPONENT
    return UserShares(
        weights=tuple((weight / weight.sum()).tolist()),
        groups=tuple(((rank - 1) % GROUPS + 1).tolist()),
        notes=(f"{USERS} users in {GROUPS} groups are chosen here",),
    )


def gap_for_load(work: float, machine: int) -> float:
    """Return the mean time between arrivals that offers :data:`LOAD`, s.

    Parameters
    ----------
    work
        Processors x s that come with an arrival in the mean.
    machine
        Processors of the machine.
    """
    return work / (LOAD * machine)


#: Share of jobs with a requested time below which there is too little to fit to; chosen here.
LEAST_SHARE = 0.1


class Requests(Part):
    """How long jobs ask for: the popular times of the trace with their shares, and rare ones.

    All jobs of a bag ask for the same, long enough for the longest of them where the times allow.
    """

    name: ClassVar[str] = "tsafrir"
    title: ClassVar[str] = "users' estimates, popular and rare ones"
    source: ClassVar[str] = "Tsafrir, Etsion and Feitelson, JSSPP 2005"

    longest_s: int = Field(ge=LEAST_LONGEST, description="s; the longest request")
    popular: tuple[tuple[int, float], ...] = Field(
        (), description="s, and share of the bags that ask for it"
    )
    head_share: float = Field(gt=0, le=1, description="share of bags with a popular request")
    distinct: int = Field(ge=1, description="number of different requests")

    @classmethod
    def fit(cls, workload: Workload) -> Self | None:
        """Return the requests of a workload; None where it has too few of them to fit to."""
        if not len(workload):
            return None
        asked = workload.requested_time[bags(workload).first]
        known = asked[asked > 0]
        if len(known) < max(1, LEAST_SHARE * len(asked)):
            return None
        try:
            found = RequestModel.fit(np.maximum(np.asarray(round_half_up(known)), 1))
        except QuantityError:
            return None  # nobody asks for an hour: there are no estimates worth the name
        return cls(
            longest_s=found.longest,
            popular=tuple(sorted(found.popular.items())),
            head_share=found.head_share,
            distinct=found.distinct or 1,
        )

    @cached_property
    def model(self) -> RequestModel:
        """The model itself."""
        return RequestModel(
            self.longest_s,
            dict(self.popular),
            head_share=self.head_share,
            distinct=self.distinct,
        )

    def times(self, drawn: Drawn, random: np.random.Generator) -> Floats:
        """Return a requested time for each job, s, the same for all of a bag."""
        names, bag = np.unique(drawn.bag, return_inverse=True)
        longest = np.zeros(len(names))
        np.maximum.at(longest, bag, drawn.run_time)
        whole = np.maximum(np.asarray(round_half_up(longest)), 1)
        asked = self.model.draw(whole, random, outrun=True)
        return np.asarray(asked, np.float64)[bag]
