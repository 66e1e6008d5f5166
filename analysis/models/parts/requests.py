"""Requested times of generated jobs, by the model of Tsafrir, Etsion and Feitelson (2005)."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from pydantic import Field

from hpcrowd.analysis.features.bags import bags
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.models.parts.base import Drawn, Floats, Part
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.traces.requested_times import LEAST_LONGEST, RequestModel

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
