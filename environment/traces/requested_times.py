"""Where requested times come from: the trace, the run times, or a model of users' estimates.

A choice is written as text, :class:`RequestedTimes`: ``given``, ``at-least:2x``, ``tsafrir:18h``,
``tsafrir:fitted``; with ``+all`` the model makes up the requested time of every job, also of those
that have one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.quantities import parse_duration, parse_factor, round_half_up
from hpcrowd.environment.streams import Streams

if TYPE_CHECKING:
    from hpcrowd.environment.traces.request_model import RequestModel

#: Name of the random stream that requested times are drawn from.
STREAM = "requested time"


@dataclass(frozen=True)
class RequestedTimes:
    """How requested times are found.

    Attributes
    ----------
    factor
        At least that many times the recorded run time; 0 for no such rule.
    model
        Makes up requested times; None for none, unless ``fitted``.
    fitted
        The model is that of the jobs that have a requested time. As some of these outrun it,
        some jobs may be given less than their run time where the model has too few long requests.
    everyone
        The model's are used for all jobs, not only for those without.
    """

    factor: float = 0.0
    model: RequestModel | None = None
    fitted: bool = False
    everyone: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return what ``text`` means.

        Raises
        ------
        QuantityError
            When it means nothing, or the model cannot have so short a longest request.
        """
        kind, _, rest = text.strip().partition(":")
        if text == "given":
            return cls()
        if kind == "at-least" and rest:
            return cls(factor=parse_factor(rest, "requested"))
        if kind == "tsafrir" and rest:
            longest, plus, who = rest.partition("+")
            if plus and who != "all":
                raise QuantityError(
                    f"requested {text!r}: {who!r} is not known; write for example tsafrir:18h+all"
                )
            if longest == "fitted":
                return cls(fitted=True, everyone=bool(plus))
            from hpcrowd.environment.traces.request_model import RequestModel

            try:
                return cls(model=RequestModel(parse_duration(longest)), everyone=bool(plus))
            except QuantityError as error:
                raise QuantityError(f"requested {text!r}: {error}") from None
        raise QuantityError(
            f"requested {text!r}: not known; choose given, or for example at-least:2x or "
            "tsafrir:18h"
        )

    def times(
        self,
        recorded: Int64s,
        run: Int64s,
        seed: int,
        note: Callable[[str, NDArray[np.bool_]], None],
    ) -> Int64s:
        """Return the requested times, s.

        Parameters
        ----------
        recorded
            As recorded, s; 0 or less where there is none. Shape (jobs,).
        run
            Recorded run times, s, shape (jobs,).
        seed
            Of the run; the model draws from its stream :data:`STREAM`.
        note
            Called with each reason for which requested times differ from the recorded ones, and
            with the jobs that it is about.

        Raises
        ------
        QuantityError
            When the model cannot be fitted, or cannot give each job a request above its run time.
        """
        missing = recorded <= 0
        if self.model is None and not self.fitted:
            note("no requested time: the recorded run time used", missing)
            requested = np.where(missing, run, recorded)
            if self.factor:
                least = np.asarray(round_half_up(self.factor * run))
                requested = np.maximum(requested, least)
            return requested
        note("no requested time: drawn from the model of users' estimates", missing)
        drawn = missing
        if self.everyone:
            drawn = np.ones(len(run), bool)
            note("requested time replaced by one of the model of users' estimates", ~missing)
        requested = recorded.copy()
        if drawn.any():
            from hpcrowd.environment.traces.request_model import RequestModel

            model = self.model or RequestModel.fit(recorded[~missing])
            stream = Streams(seed).generator(STREAM)
            requested[drawn] = model.draw(run[drawn], stream, outrun=self.fitted)
            note(
                "run time above the longest request that the model has left: that one taken",
                drawn & (run > requested),
            )
        return requested
