"""Weekly activity profiles of users, hour by hour, and think times that pass at their pace.

Plain feedback replay loses the rhythm of day and night (Madon et al. 2024, section 7.3.2): a think
time passes as fast at night as at noon. With :class:`ActiveTime` it passes at the pace of the
user's own activity instead.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, override

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.agents.behaviours.activity import Activity
from hpcrowd.agents.behaviours.decisions import Why
from hpcrowd.agents.behaviours.parts import setting
from hpcrowd.environment.clock import CYCLE, HOUR, WEEK, Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.quantities import round_half_up

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.user import User
    from hpcrowd.agents.behaviours.when import Release
    from hpcrowd.agents.work.units import Units


#: Hours of the week, the bins of a profile.
WEEK_HOURS = WEEK // HOUR

#: Number of a user's starts that weigh as much as the profile of all users. Our choice: on KTH-SP2,
#: HPC2N and LANL-CM5 it preserves the rhythm better than 20 or 100.
PRIOR = 5.0


class WeeklyProfile:
    """Relative activity in each hour of the local week.

    Parameters
    ----------
    weights
        Shape (168,), from Monday 0:00 on, at least 0; their scale does not matter.

    Raises
    ------
    QuantityError
        If they are not 168 numbers of at least 0, or all are 0.
    """

    def __init__(self, weights: ArrayLike) -> None:
        values = np.asarray(weights, np.float64)
        if values.shape != (WEEK_HOURS,) or not np.isfinite(values).all() or values.min() < 0:
            raise QuantityError(
                f"profile of shape {values.shape}: give {WEEK_HOURS} weights of at least 0, one "
                "for each hour of the week from Monday 0:00 on"
            )
        if not values.any():
            raise QuantityError("profile of zeros: never active; give some hour a weight")
        self.weights: NDArray[np.float64] = values / values.mean()
        # Active seconds since Monday 0:00 at the beginning of each hour; scaled so that a week has
        # as many active seconds as seconds.
        self._rate: list[float] = self.weights.tolist()
        self._active: list[float] = np.concatenate([[0.0], np.cumsum(self.weights)]).tolist()

    def active(self, wall: float) -> float:
        """Return the active seconds up to a local time, s since some Monday 0:00."""
        weeks, of_week = divmod(wall, WEEK)
        hour, rest = divmod(of_week, HOUR)
        return weeks * WEEK + self._active[int(hour)] * HOUR + self._rate[int(hour)] * rest

    def wall_at(self, active: float) -> float:
        """Return the local time up to which there are ``active`` active seconds.

        If there are several, it is the last one, where the next hour with a weight begins.
        """
        weeks, rest = divmod(active, WEEK)
        rest /= HOUR
        hour = min(bisect_right(self._active, rest), WEEK_HOURS) - 1
        while self._rate[hour] == 0:  # the sum of a week may have a rounding error
            hour -= 1
        return weeks * WEEK + hour * HOUR + (rest - self._active[hour]) / self._rate[hour] * HOUR

    def next_active(self, wall: int) -> int:
        """Return the local time ``wall``, or when the next hour with a weight begins."""
        hour = wall // HOUR
        if self._rate[hour % WEEK_HOURS] > 0:
            return wall
        while self._rate[hour % WEEK_HOURS] == 0:
            hour += 1
        return hour * HOUR

    def between(self, clock: Clock, begin: int, end: int) -> float:
        """Return the active seconds from second ``begin`` to ``end`` of a run."""
        # A cycle of the calendar has as many active seconds as seconds.
        whole = max(end - begin, 0) // CYCLE * CYCLE
        total, end = float(whole), end - whole
        while begin < end:
            change = clock.next_change(begin, end)
            until = end if change is None else change
            total += self._along(clock.wall(begin), until - begin)
            begin = until
        return total

    def after(self, clock: Clock, begin: int, active: float) -> int:
        """Return when ``active`` active seconds have passed since second ``begin``.

        If that is in an hour without weight, it is the beginning of the next hour with one.
        """
        whole = int(active // CYCLE) * CYCLE
        active -= whole
        while True:
            wall = clock.wall(begin)
            monday = wall // WEEK * WEEK  # floats are more precise near 0
            end = monday + round_half_up(self.wall_at(self.active(wall - monday) + active))
            end = begin + self.next_active(max(end, wall)) - wall
            change = clock.next_change(begin, end)
            if change is None:
                return end + whole
            active = max(0.0, active - self._along(wall, change - begin))
            begin = change

    def _along(self, wall: int, seconds: int) -> float:
        """Return the active seconds of a stretch of time without a clock change."""
        of_week = wall % WEEK
        return self.active(of_week + seconds) - self.active(of_week)


@dataclass(frozen=True)
class Profiles:
    """Weekly profiles of users.

    Attributes
    ----------
    by_user
        Profile by user number.
    common
        Profile of all other users.
    """

    by_user: Mapping[int, WeeklyProfile]
    common: WeeklyProfile

    def of(self, number: int) -> WeeklyProfile:
        """Return the profile of the user with this number."""
        return self.by_user.get(number, self.common)

    @classmethod
    def fit(cls, units: Units, clock: Clock, prior: float = PRIOR) -> Profiles:
        """Fit the weekly profile of each user, and of all, to the recorded starts of units.

        The weight of an hour is the user's number of starts in it plus ``prior`` times the share
        that the hour has among all users' starts, one start added to each hour.

        Parameters
        ----------
        units
            Recorded units.
        clock
            Local time.
        prior
            Number of starts, see :data:`PRIOR`; with a large one all profiles are nearly the same.

        Raises
        ------
        QuantityError
            If ``prior`` is not above 0.
        """
        check_prior(prior)
        users = len(units.users)
        hour = clock.second_of_week(units.start) // HOUR
        everybody = np.bincount(hour, minlength=WEEK_HOURS) + 1.0
        common = everybody / everybody.sum()
        own = np.bincount(units.user * WEEK_HOURS + hour, minlength=users * WEEK_HOURS)
        by_user = {
            number: WeeklyProfile(counts + prior * common)
            for number, counts in zip(
                units.users.tolist(), own.reshape(users, WEEK_HOURS), strict=True
            )
        }
        return cls(by_user, WeeklyProfile(common))


def check_prior(prior: float) -> None:
    """Check that a prior is valid.

    Raises
    ------
    QuantityError
        If it is not above 0: a user without a start in an hour would never submit in it.
    """
    if not 0 < prior < float("inf"):
        raise QuantityError(f"prior {prior:g}: must be more than 0 starts, to smooth the profile")


@dataclass(frozen=True)
class Fitted:
    """Activity windows fitted to each user's record, see :class:`ActiveTime`.

    Attributes
    ----------
    prior
        Starts, see :data:`PRIOR`.
    """

    prior: float = setting(
        PRIOR,
        "starts that weigh as much as the profile of all users",
        "starts",
        "chosen here",
        above=0,
    )


class ActiveTime(Activity):
    """Pauses pass as fast as the user is active at that hour of the week.

    Let A(t) be the active seconds of a user up to t by its profile. A pause of p s that began, as
    recorded, at r0 takes A(r0 + p) - A(r0) active seconds. Released at r, the unit arrives at the
    first t in an hour with a weight at which A(t) - A(r) is as large. So a pause released at its
    recorded second takes as long as recorded; one that begins at the end of a day continues the
    next morning; and arrivals that are moved follow the profile.

    Parameters
    ----------
    units
        The units that are replayed, for their recorded seconds.
    profiles
        Profiles, or the units to fit them to.
    prior
        Number of starts that smooths fitted profiles, see :data:`PRIOR`.
    """

    name = "fitted"
    settings = Fitted
    why = Why.PACE

    def __init__(self, units: Units, profiles: Profiles | Units, prior: float = PRIOR) -> None:
        check_prior(prior)
        self.profiles = profiles
        self.prior = prior
        self._start = memoryview(units.start)
        self._of: dict[int, WeeklyProfile] = {}

    @override
    @classmethod
    def make(cls, units: Units, fit: Units, settings: Fitted | None = None) -> ActiveTime:
        return cls(units, fit, PRIOR if settings is None else settings.prior)

    @override
    def begin(self, user: User) -> None:
        if not isinstance(self.profiles, Profiles):
            self.profiles = Profiles.fit(self.profiles, user.model.clock, self.prior)
        self._of[user.number] = self.profiles.of(user.number)

    @override
    def is_open(self, user: User, at: int) -> bool:
        hour = user.model.clock.wall(at) % WEEK // HOUR
        return bool(self._of[user.number].weights[hour] > 0)

    @override
    def next_open(self, user: User, at: int, release: Release) -> int:
        clock, profile = user.model.clock, self._of[user.number]
        if release.unit == UNKNOWN:  # nothing that was recorded
            return profile.after(clock, at, 0)
        recorded = self._start[release.unit] - release.pause
        if release.at == recorded:
            return at
        active = profile.between(clock, recorded, recorded + at - release.at)
        return profile.after(clock, release.at, active)
