"""The source of requested times: the trace, the run times, or a model of users' estimates.

A choice is written as text, :class:`RequestedTimes`: ``given``, ``at-least:2x``, ``tsafrir:18h``,
``tsafrir:fitted``; with ``+all`` the model draws the requested time of every job, even of those
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
    """How requested times are determined.

    Attributes
    ----------
    factor
        Least multiple of the recorded run time; 0 for no such rule.
    model
        Model that requested times are drawn from; None for none, unless ``fitted``.
    fitted
        Whether the model is fitted to the jobs with a requested time. As some of these outrun it,
        some jobs may get less than their run time if the model has too few long requests.
    everyone
        Whether the model is used for all jobs, not only for those without a requested time.
    """

    factor: float = 0.0
    model: RequestModel | None = None
    fitted: bool = False
    everyone: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a choice.

        Raises
        ------
        QuantityError
            If it is not valid, or the longest request is too short for the model.
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
            Recorded requested times, s; 0 or less if there is none. Shape (jobs,).
        run
            Recorded run times, s, shape (jobs,).
        seed
            Seed of the run; the model draws from its stream :data:`STREAM`.
        note
            Called with each reason why requested times differ from the recorded ones, and with the
            jobs concerned.

        Raises
        ------
        QuantityError
            If the model cannot be fitted, or cannot give each job a request of at least its run
            time.
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
            note("requested time replaced by one from the model of users' estimates", ~missing)
        requested = recorded.copy()
        if drawn.any():
            from hpcrowd.environment.traces.request_model import RequestModel

            model = self.model or RequestModel.fit(recorded[~missing])
            stream = Streams(seed).generator(STREAM)
            requested[drawn] = model.draw(run[drawn], stream, outrun=self.fitted)
            note(
                "run time above the longest request left in the model: that one used",
                drawn & (run > requested),
            )
        return requested
