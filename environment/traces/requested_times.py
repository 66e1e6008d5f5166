"""The source of requested times: the trace, the run times, or a model of users' estimates.

A choice is written as text, :class:`RequestedTimes`: ``given``, ``at-least:2x``, ``missing:7d``,
``missing:queue``, ``missing:long=14d,debug=30m,2d``, ``tsafrir:18h``, ``tsafrir:fitted``; with
``+all`` the model draws the requested time of every job, even of those that have one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Int64s, Names, number_of
from hpcrowd.environment.quantities import parse_duration, parse_factor, round_half_up
from hpcrowd.environment.registry import imported
from hpcrowd.environment.streams import Streams

#: The model of users' estimates.
MODEL = "hpcrowd.environment.traces.request_model:RequestModel"

#: Name of the random stream that requested times are drawn from.
STREAM = "requested time"

#: The longest request in the log of a job in the same queue, instead of a limit.
OF_QUEUE = "queue"

#: Why requested times differ from the recorded ones.
RUN_TIME = "no requested time: the recorded run time used"
LIMIT = "no requested time: the limit that was given used"
LONGEST = "no requested time: the longest one in the queue used"
ABOVE = "run time above the limit that stands for a missing requested time: the run time used"


@dataclass(frozen=True)
class RequestedTimes:
    """How requested times are determined."""

    factor: float = 0.0  #: least multiple of the recorded run time; 0 for no such rule
    #: A ``traces.request_model.RequestModel`` that requested times are drawn from; None for none,
    #: unless ``fitted``.
    model: Any = None
    #: Whether the model is fitted to the jobs with a requested time. As some of these outrun it,
    #: some jobs may get less than their run time if the model has too few long requests.
    fitted: bool = False
    #: Whether the model is used for all jobs, not only for those without a requested time.
    everyone: bool = False
    #: What jobs without a requested time request, s, by queue; the key None is for all others.
    limits: Mapping[str | None, int] = field(default_factory=dict)
    of_queue: bool = False  #: whether these others request as much as any job in their queue does

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a choice.

        Raises QuantityError if it is not valid, or the longest request is too short for the model.
        """
        kind, _, rest = text.strip().partition(":")
        if text == "given":
            return cls()
        if kind == "at-least" and rest:
            return cls(factor=parse_factor(rest, "requested"))
        if kind == "missing" and rest:
            return cls._with_limits(text, rest)
        if kind == "tsafrir" and rest:
            longest, plus, who = rest.partition("+")
            if plus and who != "all":
                raise QuantityError(
                    f"requested {text!r}: {who!r} is not known; write for example tsafrir:18h+all"
                )
            if longest == "fitted":
                return cls(fitted=True, everyone=bool(plus))
            try:
                return cls(model=imported(MODEL)(parse_duration(longest)), everyone=bool(plus))
            except QuantityError as error:
                raise QuantityError(f"requested {text!r}: {error}") from None
        raise QuantityError(
            f"requested {text!r}: not known; choose given, or for example at-least:2x, missing:7d "
            "or tsafrir:18h"
        )

    @classmethod
    def _with_limits(cls, text: str, rest: str) -> Self:
        """Return the choice ``missing``: a limit for all queues, for single ones, or ``queue``."""
        limits: dict[str | None, int] = {}
        of_queue = False
        for part in rest.split(","):
            name, named, duration = part.rpartition("=")
            queue = name.strip() if named else None
            if queue in limits or (of_queue and queue is None):
                raise QuantityError(
                    f"requested {text!r}: {queue or 'all other queues'} twice; give one limit"
                )
            if not named and duration.strip() == OF_QUEUE:
                of_queue = True
                continue
            try:
                limits[queue] = parse_duration(duration)
            except QuantityError as error:
                raise QuantityError(f"requested {text!r}: {error}") from None
            if not limits[queue]:
                raise QuantityError(f"requested {text!r}: a limit of 0 s; give a longer one")
        if of_queue and None in limits:
            raise QuantityError(f"requested {text!r}: all other queues twice; give one limit")
        return cls(limits=limits, of_queue=of_queue)

    def times(
        self,
        recorded: Int64s,
        run: Int64s,
        seed: int,
        note: Callable[[str, NDArray[np.bool_]], None],
        queue: Int64s | None = None,
        names: Names | None = None,
    ) -> Int64s:
        """Return the requested times, s.

        Raises QuantityError if the model cannot be fitted, or cannot give each job a request of at
        least its run time, or a queue with a limit is not known.

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
        queue
            Queue of each job, shape (jobs,); one for all unless given.
        names
            Names of the log, for limits of queues by name.
        """
        missing = recorded <= 0
        if self.limits or self.of_queue:
            queue = np.zeros(len(run), np.int64) if queue is None else queue
            return self._limited(recorded, run, note, queue, names or {})
        if self.model is None and not self.fitted:
            note(RUN_TIME, missing)
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
            model = self.model or imported(MODEL).fit(recorded[~missing])
            stream = Streams(seed).generator(STREAM)
            requested[drawn] = model.draw(run[drawn], stream, outrun=self.fitted)
            note(
                "run time above the longest request left in the model: that one used",
                drawn & (run > requested),
            )
        return requested

    def _limited(
        self,
        recorded: Int64s,
        run: Int64s,
        note: Callable[[str, NDArray[np.bool_]], None],
        queue: Int64s,
        names: Names,
    ) -> Int64s:
        """Return the requested times, limits for those that are missing."""
        missing = recorded <= 0
        limit = np.full(len(run), self.limits.get(None, 0))
        if self.of_queue:
            queues, index = np.unique(queue, return_inverse=True)
            longest = np.zeros(len(queues), np.int64)
            np.maximum.at(longest, index, np.maximum(recorded, 0))
            limit = longest[index]
        given = np.full(len(run), not self.of_queue)
        for name, seconds in self.limits.items():
            if name is not None:
                mine = queue == number_of(names, "queue", name)
                limit[mine], given[mine] = seconds, True
        note(LONGEST, missing & ~given & (limit > 0))
        note(LIMIT, missing & given & (limit > 0))
        note(RUN_TIME, missing & (limit == 0))
        note(ABOVE, missing & (limit > 0) & (run > limit))
        return np.where(missing, np.maximum(run, limit), recorded)
