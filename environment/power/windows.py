"""Jobs with slack wait for a window of clean or cheap energy before they join the queue.

This is temporal workload shifting without interruption, as of Wiesner et al., "Let's wait awhile:
how temporal workload shifting can reduce carbon emissions in the cloud" (Middleware 2021,
arXiv:2110.13234). At its submission a job gets the start at which the mean of a signal over its
length is smallest; of several such starts, the earliest. Here the length is the requested time,
which is what a scheduler knows, and the start is that of its time in the queue: the scheduler may
start it later.

Checked against the program of the authors (github.com/dos-group/lets-wait-awhile, ``strategy.py``
and ``simulate.py``): starts every 30 minutes, the mean over all starts that are allowed, the
earliest of the best, and errors of forecasts as normal noise on each step, with a standard
deviation relative to the mean of the signal (0, 5 and 10 % there). Their deadlines (the next
workday, twice a week) are replaced by a slack. The threshold, the share of users and the least gain
are ours.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.errors import QuantityError, check_choice
from hpcrowd.environment.holds.rules import Cause
from hpcrowd.environment.jobs import Float64s, Int64s
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.signals.steps import Steps
from hpcrowd.environment.stops import FOREVER
from hpcrowd.environment.streams import Streams

#: s between possible starts: the resolution of the signals of Wiesner et al. (2021).
STEP = 1800

#: s; longest that a job waits for its window, unless given. Our choice: from evening to noon.
SLACK = 12 * HOUR

#: s; longest that a job waits whose slack is a multiple of its requested time. Our choice.
MOST_SLACK = DAY

#: Integrals are equal if they differ by less than this part of the largest from the beginning on.
ROUNDING = 1e-13


@dataclass(frozen=True)
class StartWindow:
    """A policy: jobs wait for the best time to join the queue, within their slack.

    Attributes
    ----------
    follow
        The signal: ``carbon`` for clean energy, ``price`` for cheap energy.
    slack
        s; longest that a job waits for its window.
    slack_factor
        Instead, the slack as a multiple of the requested time; None to use ``slack``.
    most_slack
        s; largest slack from ``slack_factor``.
    step
        s; jobs start at once or at a multiple of this in local time.
    shortest
        s; jobs with a shorter requested time start at once.
    share
        Share of the users whose jobs wait; drawn once for each user.
    threshold
        In the unit of the signal. If given, a job starts when the signal is first not above it; at
        once if that is not within its slack. None for the smallest mean.
    forecast_error
        Standard deviation of the forecast of each step, relative to the mean of the signal's
        magnitude; 0 for perfect foresight.
    min_gain
        Smallest gain for which a job waits, relative to the mean of the signal if it started at
        once.

    Raises
    ------
    QuantityError
        If a number is out of its range.
    """

    follow: Literal["carbon", "price"] = "carbon"
    slack: int = SLACK
    slack_factor: float | None = None
    most_slack: int = MOST_SLACK
    step: int = STEP
    shortest: int = 0
    share: float = 1.0
    threshold: float | None = None
    forecast_error: float = 0.0
    min_gain: float = 0.0

    def __post_init__(self) -> None:
        check_choice("start window, follow", self.follow, ("carbon", "price"))
        if self.step < 1:
            raise QuantityError(f"start window: step {self.step} s: must be 1 s or more")
        factor = 0.0 if self.slack_factor is None else self.slack_factor
        for name, value in (
            ("slack", self.slack),
            ("slack_factor", factor),
            ("most_slack", self.most_slack),
            ("shortest", self.shortest),
            ("forecast_error", self.forecast_error),
            ("min_gain", self.min_gain),
        ):
            if not 0 <= value < float("inf"):
                raise QuantityError(f"start window: {name} {value:g}: must be 0 or more")
        if not 0 <= self.share <= 1:
            raise QuantityError(f"start window: share {self.share:g}: from 0 to 1")

    def slack_of(self, requested: int) -> int:
        """Return how long a job with a requested time may wait, s."""
        if self.slack_factor is None:
            return self.slack
        return min(round_half_up(self.slack_factor * max(requested, 0)), self.most_slack)

    def rule(self, steps: Steps, streams: Streams, clock: Clock | None = None) -> OpenWindow:
        """Return what decides in a run when jobs join the queue, for ``Rules.window``.

        Parameters
        ----------
        steps
            The signal; its first and last value are taken to go on outside.
        streams
            The streams of the run.
        clock
            Local time; by default the run begins at a full hour.
        """
        return OpenWindow(self, steps, streams, clock or Clock())


class OpenWindow:
    """Decides in a run when jobs join the queue.

    Parameters
    ----------
    policy, steps, streams, clock
        As for :meth:`StartWindow.rule`.

    Attributes
    ----------
    cause
        Why jobs are held.
    forecast
        The signal as it is foreseen.
    """

    def __init__(self, policy: StartWindow, steps: Steps, streams: Streams, clock: Clock) -> None:
        self.policy = policy
        self.cause = Cause.CLEAN if policy.follow == "carbon" else Cause.CHEAP
        self.forecast = forecast(steps, policy.forecast_error, streams)
        self._streams, self._clock = streams, clock
        self._moves: dict[int, bool] = {}  # by user
        # Python's lists are faster than arrays for one number at a time.
        self._edges: list[int] = self.forecast.edges.tolist()
        self._values: list[float] = self.forecast.values.tolist()
        self._sums: list[float] = self.forecast.cumulative(self.forecast.edges).tolist()
        self._rounding = rounding(self.forecast)

    def moves(self, user: int) -> bool:
        """Return whether the jobs of a user may wait."""
        if user not in self._moves:
            draw = self._streams.generator("start window", "user", user).random()
            self._moves[user] = bool(draw < self.policy.share)
        return self._moves[user]

    def starts(
        self, users: Sequence[int], requested: Sequence[int], at: Sequence[int]
    ) -> list[int]:
        """Return the seconds at which jobs may join the queue, each when it is submitted or later.

        Parameters
        ----------
        users, requested, at
            For each job its user, its requested time, s, and the second of its submission.
        """
        policy = self.policy
        choose = self._best if policy.threshold is None else self._below
        return [
            choose(second, slack, length)
            if length >= policy.shortest and (slack := policy.slack_of(length)) and self.moves(user)
            else second
            for user, length, second in zip(users, requested, at, strict=True)
        ]

    def _below(self, now: int, slack: int, length: int) -> int:
        """Return when the signal is first not above the threshold; ``now`` if not within slack."""
        edges, values, threshold = self._edges, self._values, self.policy.threshold
        assert threshold is not None  # chosen with it only
        place = max(bisect_right(edges, now) - 1, 0)
        second = now
        while second <= now + slack:
            if place >= len(values) - 1:  # the last value goes on
                return second if values[-1] <= threshold else now
            if values[place] <= threshold:
                return second
            place += 1
            second = edges[place]
        return now

    def _best(self, now: int, slack: int, length: int) -> int:
        """Return the same as :func:`best_start`, without arrays."""
        edges, values, sums, step = self._edges, self._values, self._sums, self.policy.step
        last, length = len(values) - 1, max(length, 1)
        left = min(max(bisect_right(edges, now) - 1, 0), last)
        right = min(max(bisect_right(edges, now + length, left) - 1, 0), last)
        first = now + -self._clock.wall(now) % step
        begin = first + step if first == now else first
        starts: list[int] = [now, *range(begin, now + slack + 1, step)]
        areas: list[float] = []
        left_end = edges[left + 1] if left < last else FOREVER
        right_end = edges[right + 1] if right < last else FOREVER
        for second in starts:
            until = second + length
            while second >= left_end:
                left += 1
                left_end = edges[left + 1] if left < last else FOREVER
            while until >= right_end:
                right += 1
                right_end = edges[right + 1] if right < last else FOREVER
            before = sums[left] + values[left] * (second - edges[left])
            areas.append(sums[right] + values[right] * (until - edges[right]) - before)
        least = min(areas)
        near = least + self._rounding
        if areas[0] <= near or areas[0] - least < self.policy.min_gain * abs(areas[0]):
            return now
        return starts[next(place for place, area in enumerate(areas) if area <= near)]


def best_start(
    steps: Steps,
    now: int,
    slack: int,
    length: int,
    step: int = STEP,
    *,
    clock: Clock | None = None,
    min_gain: float = 0.0,
) -> int:
    """Return the start at which the mean of a signal over a length of time is smallest.

    Parameters
    ----------
    steps
        The signal; its first and last value are taken to go on outside.
    now, slack
        The start is from ``now`` to ``slack`` seconds later.
    length
        s; at least 1 is taken.
    step
        s; starts are ``now``, and the multiples of this in local time.
    clock
        Local time. Within the slack clocks do not change.
    min_gain
        Smallest gain, relative to the mean from ``now`` on, for a start other than ``now``.

    Returns
    -------
    second
        Of several with the same mean the earliest.

    Examples
    --------
    >>> best_start(Steps([0, 3600, 7200], [300.0, 100.0]), 600, 7200, 1800)
    3600
    """
    first = now + -(clock or Clock()).wall(now) % step
    grid = np.arange(first + step if first == now else first, now + slack + 1, step)
    starts: Int64s = np.concatenate([[now], grid]).astype(np.int64)
    areas: Float64s = steps.cumulative(starts + max(length, 1)) - steps.cumulative(starts)
    near = areas.min() + rounding(steps)
    if areas[0] <= near or areas[0] - areas.min() < min_gain * abs(areas[0]):
        return now
    return int(starts[np.argmax(areas <= near)])


def rounding(steps: Steps) -> float:
    """Return how far integrals of a signal may differ that are equal but for rounding."""
    return ROUNDING * float(np.abs(steps.cumulative(steps.edges)).max())


def forecast(steps: Steps, error: float, streams: Streams) -> Steps:
    """Return a signal with normal noise on each step.

    Parameters
    ----------
    steps
        The signal.
    error
        Standard deviation of the noise, relative to the mean magnitude of the signal.
    streams
        The streams of the run.
    """
    if not error:
        return steps
    size = error * float(np.average(np.abs(steps.values), weights=np.diff(steps.edges)))
    noise = streams.generator("start window", "forecast").normal(0.0, size, len(steps.values))
    return Steps(steps.edges, steps.values + noise)
