"""Think times: the pause between the release of a unit of work and its submission.

The second part of a composed behaviour, see :mod:`hpcrowd.agents.behaviours.composed`.

======================= ==========================================================================
:class:`RecordedPauses` as recorded
:class:`LinearThink`    a line over the response time (dynamic think times)
:class:`OwnPauses`      drawn from the user's own pauses within sessions (fluid)
:class:`Continuation`   stay or take a break, by the response time (distribution)
======================= ==========================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, override

import numpy as np

from hpcrowd.agents.behaviours.parts import UNCONFIRMED, Parameter, Part, setting
from hpcrowd.agents.behaviours.when import Reason
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.options import made
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.registry import Seam

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.user import ReplayUser
    from hpcrowd.agents.behaviours.when import Release
    from hpcrowd.agents.work.units import Units


#: Longer think times are absences, not reactions to a response, s (Zakay and Feitelson 2015,
#: section VII-B: breaks are shorter; the same for dynamic think times, unconfirmed).
LONGEST_BREAK = 8 * HOUR

#: Sources of numbers.
ZAKAY = "Zakay and Feitelson 2015, section VII-B"
DYNAMIC = f"{UNCONFIRMED}; told of Schlagkamp, JSSPP 2015"

#: Largest value that counts as 0 in a fitted line, s and s of think time per s of response.
SMALL = 1e-6


class Pause(NamedTuple):
    """A pause and its meaning."""

    seconds: int
    stays: bool = False  #: the user stays at work during it, whatever the window


class Think(Part):
    """Decides about pauses. Shared by all users of a behaviour; subclass it."""

    seam = Seam("Think", 'think = "{0}" in a file of users, or in Python Composed(when, think)')

    #: Whether it draws from pauses within sessions, which do not exist if units are sessions.
    draws: ClassVar[bool] = False

    #: Whether it must hear of each submission, see :meth:`submitted`.
    remembers: ClassVar[bool] = False

    #: Whether the log calls a pause a break if the user does not stay at work.
    breaks: ClassVar[bool] = False

    @classmethod
    def make(cls, fit: Units, settings: Any = None) -> Think:
        """Return the part.

        Parameters
        ----------
        fit
            Recorded units that it is fitted to.
        settings
            An object of the class that :attr:`settings` names, or options by name; None for the
            defaults.
        """
        part: Think = made(cls, (), settings)
        return part

    def begin(self, user: ReplayUser) -> None:
        """Prepare for a user, before the run begins."""

    def pause(self, user: ReplayUser, release: Release) -> Pause:
        """Return the pause of a released unit; never for the first work of a user."""
        raise NotImplementedError(f"{type(self).__name__} must define pause()")

    def submitted(self, user: ReplayUser, release: Release, first: int, last: int) -> None:
        """Hear that a unit was submitted, its first and last job at these seconds."""

    def foresee(self, user: ReplayUser, release: Release, least: int, draws: int) -> Int64s | None:
        """Return draws of the pause of a unit, s, if everything before it went as recorded.

        None if :meth:`pause` says the same without a simulation.

        Parameters
        ----------
        user, release
            The user, and the recorded release of its unit.
        least
            s; the pause is known to last at least this.
        draws
            Number of draws; fewer are possible.
        """
        return None


class RecordedPauses(Think):
    """The recorded think time or inter-arrival time, depending on what released the unit."""

    name = "recorded"

    @override
    def pause(self, user: ReplayUser, release: Release) -> Pause:
        return Pause(release.pause)


def response_time(jobs: JobTable, rows: Int64s | slice) -> int:
    """Return the simulated response time, s, of that of these jobs which ended last.

    A job that never ran (rejected or renounced) has a response time of 0. Ties go to the later job.
    """
    ends = jobs.end[rows]
    last = len(ends) - 1 - int(ends[::-1].argmax()) if len(ends) > 1 else 0
    end = int(ends[last])
    return end - int(jobs.submit[rows][last]) if end != UNKNOWN else 0


@dataclass(frozen=True)
class LinearThink(Think):
    """Think times that grow with the response time: slope * response + intercept.

    It replaces only recorded think times shorter than ``cut``; longer ones are absences and stay as
    recorded, as do inter-arrival times. The response is that of the job that ended last in the unit
    that was waited for last (dynamic think times: Schlagkamp, JSSPP 2015).

    Attributes
    ----------
    slope
        s of think time per s of response; the default is unconfirmed.
    intercept
        s; the default is unconfirmed.
    cut
        s; see :data:`LONGEST_BREAK`.

    Raises
    ------
    QuantityError
        If a think time could be negative.
    """

    name = "linear"
    table = "line"
    fitted: ClassVar[str] = "fitted to the trace; {} in a line that is given without it"

    slope: float = setting(
        0.4826, "think time per response time", "s/s", DYNAMIC, least=0, shown=fitted
    )
    intercept: float = setting(
        1779.0, "think time after an immediate response", "s", DYNAMIC, least=0, shown=fitted
    )
    cut: int = setting(
        LONGEST_BREAK, "recorded think times from this on stay as they are", "s", DYNAMIC, above=0
    )

    def __post_init__(self) -> None:
        if not (0 <= self.slope < inf and 0 <= self.intercept < inf):
            raise QuantityError(
                f"think time {self.slope:g} * response + {self.intercept:g} s: would be negative "
                "for some response; give a slope and an intercept of at least 0"
            )
        if self.cut <= 0:
            raise QuantityError(f"cut {self.cut} s: must be more than 0")

    @override
    @classmethod
    def make(cls, fit: Units, settings: LinearThink | None = None) -> LinearThink:
        return settings or cls.fit(fit)

    @classmethod
    def fit(cls, units: Units, cut: int = LONGEST_BREAK) -> LinearThink:
        """Fit the line by least squares to the recorded (response, think time) pairs.

        Parameters
        ----------
        units
            Recorded units.
        cut
            s; pairs with a think time of at least this are left out.

        Raises
        ------
        QuantityError
            If there are fewer than two different responses, or the line gives negative think times.
        """
        response, think = think_time_pairs(units, cut)
        if len(np.unique(response)) < 2:
            raise QuantityError(
                f"think times: {len(think)} pairs of response and think time below {cut} s; a line "
                "needs two different responses; give slope and intercept"
            )
        slope, intercept = np.polyfit(response.astype(float), think.astype(float), 1)
        # A line through the origin may miss it by a rounding error.
        slope, intercept = (0.0 if abs(x) < SMALL else float(x) for x in (slope, intercept))
        return cls(slope, intercept, cut)

    @override
    def pause(self, user: ReplayUser, release: Release) -> Pause:
        if release.reason != Reason.ENDED or release.pause >= self.cut:
            return Pause(release.pause)
        response = response_time(user.model.jobs, user.jobs_of(release.awaited))
        return Pause(round_half_up(self.slope * response + self.intercept))


#: A given line is the part itself.
LinearThink.settings = LinearThink


def think_time_pairs(units: Units, cut: int = LONGEST_BREAK) -> tuple[Int64s, Int64s]:
    """Return recorded response times and the think times after them, s, each shape (pairs,).

    A unit makes a pair when it waited for another and its think time is less than ``cut`` s; the
    response is that of the job that ended last in the unit that was waited for last.
    """
    which = (units.think_time != UNKNOWN) & (units.think_time < cut)
    return units.response[units.awaited[which]], units.think_time[which]


class OwnPauses(Think):
    """A pause drawn from those the user made within sessions (Zakay and Feitelson 2015, VII-C).

    It is a think time if a dependency released the unit, an inter-arrival time if the batch before
    did. A user without any such pause draws from those of all users; if there are none, pauses are
    0. The user stays at work during the pause.

    Parameters
    ----------
    units
        Recorded units, those the pauses are taken from.
    """

    name = "own"
    draws = True

    def __init__(self, units: Units) -> None:
        self.inside = Samples(units, units.continues == 1)

    @override
    @classmethod
    def make(cls, fit: Units, settings: None = None) -> OwnPauses:
        return cls(fit)

    @override
    def pause(self, user: ReplayUser, release: Release) -> Pause:
        return Pause(self.inside.draw(user, release.reason), stays=True)


@dataclass(frozen=True)
class ContinuationLaw:
    """Probability to continue a session, limit / (decline * response + 1), response in minutes.

    Attributes
    ----------
    limit
        Probability after an immediate response: 0.8 (Zakay and Feitelson 2015, section VII-B, after
        Shmueli and Feitelson 2007).
    decline
        Per minute of response time: 0.05 (same).
    """

    limit: float = setting(
        0.8, "probability to continue after an immediate response", "", ZAKAY, least=0, most=1
    )
    decline: float = setting(
        0.05, "how fast it falls with the response time", "1/min", ZAKAY, least=0
    )

    def __post_init__(self) -> None:
        if not (0 <= self.limit <= 1 and 0 <= self.decline < inf):
            raise QuantityError(
                f"continuation {self.limit:g} / ({self.decline:g} * response + 1): limit must be a "
                "probability and decline at least 0 per minute"
            )

    def probability(self, response: float) -> float:
        """Return the probability after a response time in s."""
        return self.limit / (self.decline * response / 60 + 1)


class Continuation(Think):
    """Stay in the session or take a break (Zakay and Feitelson 2015, section VII-B).

    A user who continues draws one of their own pauses within sessions and stays. Otherwise the user
    draws a break from their own pauses between sessions that were shorter than 8 hours, and comes
    back when the window is open. The response is that of the job that ended last in the unit waited
    for last; it is 0 for a unit that waited for none. Users without own pauses draw as in
    :class:`OwnPauses`.

    Parameters
    ----------
    units
        Recorded units, those the pauses are taken from.
    law
        Probability to continue.
    longest_break
        Upper limit of breaks, s.
    """

    name = "continuation"
    settings = ContinuationLaw
    table = "law"
    others = (
        Parameter(
            "longest_break", "breaks are shorter (in Python only)", "s", ZAKAY, LONGEST_BREAK
        ),
    )
    draws = True
    breaks = True

    def __init__(
        self,
        units: Units,
        law: ContinuationLaw | None = None,
        longest_break: int = LONGEST_BREAK,
    ) -> None:
        self.law = law or ContinuationLaw()
        self.inside = Samples(units, units.continues == 1)
        self.between = Samples(units, units.continues == 0, longest_break)

    @override
    @classmethod
    def make(cls, fit: Units, settings: ContinuationLaw | None = None) -> Continuation:
        return cls(fit, settings)

    @override
    def pause(self, user: ReplayUser, release: Release) -> Pause:
        response = 0
        if release.awaited != UNKNOWN:
            response = response_time(user.model.jobs, user.jobs_of(release.awaited))
        if user.stream.random() < self.law.probability(response):
            return Pause(self.inside.draw(user, release.reason), stays=True)
        return Pause(self.between.draw(user, release.reason))


class Samples:
    """Recorded pauses to draw from, by user, think times separate from inter-arrival times.

    Parameters
    ----------
    units
        Recorded units.
    which
        The units whose pauses count, shape (units,).
    below
        s; only shorter pauses count. None for all.
    """

    def __init__(self, units: Units, which: np.ndarray, below: int | None = None) -> None:
        self._values: dict[Reason, tuple[Int64s, Int64s]] = {}
        users = len(units.user_first) - 1
        for reason, pauses in (
            (Reason.ENDED, units.think_time),
            (Reason.FOLLOWS, units.inter_arrival),
        ):
            good = which & (pauses != UNKNOWN)
            if below is not None:
                good &= pauses < below
            # Units are ordered by user, so each user's pauses are a slice of this.
            first = np.searchsorted(units.user[good], np.arange(users + 1))
            self._values[reason] = first, pauses[good]
        self._numbers = {int(number): place for place, number in enumerate(units.users)}

    def of(self, user: ReplayUser, reason: Reason) -> Int64s:
        """Return the pauses that the user draws from: its own, or those of all users if none."""
        first, values = self._values[reason]
        place = self._numbers.get(user.number)
        if place is not None and first[place] < first[place + 1]:
            return values[first[place] : first[place + 1]]
        return values

    def draw(self, user: ReplayUser, reason: Reason) -> int:
        """Return one pause, s."""
        values = self.of(user, reason)
        return int(values[user.stream.integers(len(values))]) if len(values) else 0
