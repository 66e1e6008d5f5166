"""Held-out pauses: what a behaviour predicts from the first part of a trace.

A behaviour that keeps recorded pauses repeats the record, so its agreement with the record means
nothing. :class:`HeldOut` restricts any composed behaviour to the first part of a trace. Where the
behaviour would use the recorded pause of a unit of the second part, it gets a pause drawn from the
first part, :class:`PausePool`, together with the unit that the pause comes from. The behaviour then
applies its own rules (a line over the response time, an activity window).

:class:`OpenOrder` is the order of users who ignore responses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, override

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.behaviours.composed import Composed
from hpcrowd.agents.behaviours.think import response_time
from hpcrowd.agents.behaviours.when import BatchOrder, Reason, Release, SessionGraph, When
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.quantities import round_half_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hpcrowd.agents.behaviours.user import ReplayUser
    from hpcrowd.agents.work.recorded import Work


#: Number of a user's pauses that weigh as much as those of all users together; the same number as
#: for smoothing activity profiles (:data:`PRIOR`), and as arbitrary.
PAUSE_PRIOR = 5.0

#: Pauses that count as after similar responses: their share of all, and their least number. Our
#: choice: as few as still give a distribution to draw from.
SIMILAR_SHARE, SIMILAR_LEAST = 0.02, 20

#: Draws after which a pause known to last longer is taken to be longer than all known ones.
TRIES = 100


class OpenOrder(When):
    """Batches keep their order and wait for nothing: each follows the submission of the last one.

    These are the users of a conventional simulation, who ignore responses, if their recorded
    submission times may not be used.
    """

    def __init__(self, work: Work) -> None:
        units = work.by_batch
        super().__init__(work, units)
        self._gap = memoryview(units.inter_arrival)

    @override
    def begin(self, user: ReplayUser) -> Sequence[Release]:
        return self.first(user)

    @override
    def finished(self, user: ReplayUser, unit: int, now: int) -> Sequence[Release]:
        return ()

    @override
    def sent(self, user: ReplayUser, unit: int, last: int) -> Release | None:
        after = unit + 1
        if after == user.units.stop:
            return None
        return Release(after, last, Reason.FOLLOWS, self._gap[after], UNKNOWN)


@dataclass(frozen=True)
class Releases:
    """The recorded release of each unit, all of shape (units,).

    Attributes
    ----------
    at
        s; the release, or the recorded start if nothing released the unit.
    reason
        Values of :class:`~hpcrowd.agents.behaviours.when.Reason`.
    pause
        s; from the release to the start.
    awaited
        The unit that was waited for last, -1 none.
    """

    at: Int64s
    reason: Int64s
    pause: Int64s
    awaited: Int64s

    def of(self, unit: int) -> Release:
        """Return the recorded release of a unit."""
        return Release(
            unit,
            int(self.at[unit]),
            Reason(int(self.reason[unit])),
            int(self.pause[unit]),
            int(self.awaited[unit]),
        )


def recorded_releases(when: When) -> Releases:
    """Return the releases that a mechanism finds in its record.

    Raises
    ------
    QuantityError
        If it is not a :class:`SessionGraph`, :class:`BatchOrder` or
        :class:`OpenOrder`.
    """
    units = when.units
    awaited = units.awaited
    waits = awaited != UNKNOWN
    over = np.where(waits, units.end[awaited], UNKNOWN)
    sent = np.full(len(units), UNKNOWN)
    sent[1:] = units.last[:-1]
    follows = units.inter_arrival != UNKNOWN
    if isinstance(when, SessionGraph):
        ended, follows = waits, np.zeros(len(units), bool)
    elif isinstance(when, BatchOrder):
        before = awaited == np.arange(len(units)) - 1
        ended = waits & ((over > sent) | ((over == sent) & before))
    elif isinstance(when, OpenOrder):
        ended, awaited = np.zeros(len(units), bool), np.full(len(units), UNKNOWN)
    else:
        raise QuantityError(
            f"{type(when).__name__}: releases of the record are not known; use sessions or batches"
        )
    at = np.where(ended, over, np.where(follows, sent, units.start))
    reason = np.where(ended, Reason.ENDED, np.where(follows, Reason.FOLLOWS, Reason.START))
    return Releases(at, reason.astype(np.int64), units.start - at, awaited)


class PausePool:
    """Recorded pauses of the first part, to draw from instead of those of the second part.

    A user with n pauses of the given reason draws one of them with probability n / (n + prior),
    else one of all users'. So no user is predicted from one or two pauses alone.

    Parameters
    ----------
    releases
        Recorded releases.
    user
        Index of each unit's user, ascending, shape (units,).
    known
        Which units belong to the first part, shape (units,).
    prior
        Pauses, see :data:`PAUSE_PRIOR`; infinite makes all users alike.

    Raises
    ------
    QuantityError
        If the first part has no pauses.
    """

    def __init__(
        self,
        releases: Releases,
        user: Int64s,
        known: NDArray[np.bool_],
        prior: float = PAUSE_PRIOR,
    ) -> None:
        if not prior >= 0:
            raise QuantityError(f"prior {prior:g}: must be 0 pauses or more")
        self.releases, self.prior = releases, prior
        places = np.arange(int(user.max(initial=UNKNOWN)) + 2)
        self._rows: dict[Reason, tuple[Int64s, Int64s]] = {}
        for reason in (Reason.ENDED, Reason.FOLLOWS):
            rows = np.flatnonzero(known & (releases.reason == reason))
            self._rows[reason] = np.searchsorted(user[rows], places), rows
        if not any(len(rows) for _, rows in self._rows.values()):
            raise QuantityError(
                "first part: no user submitted twice, so there is no pause to draw; "
                "choose a larger --split"
            )

    def own(self, place: int, reason: Reason) -> int:
        """Return the number of pauses for a reason of the user at an index."""
        first, _ = self._rows[reason]
        return int(first[place + 1] - first[place])

    def draw(self, user: ReplayUser, release: Release) -> Release:
        """Return a release with a drawn pause, and the recorded unit that the pause comes from.

        Reason, second and the unit waited for stay. If there is no pause for the reason, one for
        the other reason is drawn.
        """
        first, rows = self._rows[release.reason]
        if not len(rows):
            other = Reason.FOLLOWS if release.reason == Reason.ENDED else Reason.ENDED
            first, rows = self._rows[other]
        begin, end = int(first[user.place]), int(first[user.place + 1])
        own = end - begin
        stream = user.stream
        if own and stream.random() * (own + self.prior) < own:
            unit = int(rows[begin + stream.integers(own)])
        else:
            unit = int(rows[stream.integers(len(rows))])
        return release._replace(unit=unit, pause=int(self.releases.pause[unit]))


class SimilarPauses(PausePool):
    """Pauses of all users after responses like the one that the user has just had.

    If a response released the unit, the pause is one of those that followed the most similar
    responses, by rank, of the first part. No line or other form is assumed: any relation between
    response and pause comes from the record.

    Parameters
    ----------
    releases, user, known
        See :class:`PausePool`.
    response
        s; recorded response of each unit, shape (units,).
    share
        Share of the pauses that count as similar, see :data:`SIMILAR_SHARE`.
    """

    def __init__(
        self,
        releases: Releases,
        user: Int64s,
        known: NDArray[np.bool_],
        response: Int64s,
        share: float = SIMILAR_SHARE,
    ) -> None:
        super().__init__(releases, user, known, float("inf"))
        rows = np.flatnonzero(known & (releases.reason == Reason.ENDED))
        self._sorted = rows[np.argsort(response[releases.awaited[rows]], kind="stable")]
        self._response = response[releases.awaited[self._sorted]]
        self._width = min(len(rows), max(SIMILAR_LEAST, round_half_up(share * len(rows))))

    @override
    def draw(self, user: ReplayUser, release: Release) -> Release:
        if release.reason != Reason.ENDED or not self._width:
            return super().draw(user, release)
        response = response_time(user.model.jobs, user.jobs_of(release.awaited))
        low, high = np.searchsorted(self._response, (response, response + 1)).tolist()
        first = (low + high - self._width) // 2
        first = min(max(first, 0), len(self._sorted) - self._width)
        unit = int(self._sorted[first + user.stream.integers(self._width)])
        return release._replace(unit=unit, pause=int(self.releases.pause[unit]))


class HeldOut(Composed):
    """A behaviour that has seen only the first part of a trace.

    Units of the first part are submitted at their recorded seconds (or when they are released, if
    that is later). From then on users decide, with drawn pauses. As no other unit came before the
    second part began, a pause that would end earlier is drawn again, and if none is long enough,
    see :func:`outlasting`.

    Parameters
    ----------
    behaviour
        The behaviour, whose parts are used; it replays the whole trace, with parts fitted to the
        first part.
    known
        Which units belong to the first part, shape (units,).
    since
        s; when the second part begins.
    pool
        The pool of pauses; None keeps the recorded ones.
    """

    def __init__(
        self,
        behaviour: Composed,
        known: NDArray[np.bool_],
        since: int,
        pool: PausePool | None,
    ) -> None:
        super().__init__(
            behaviour.when,
            behaviour.think,
            behaviour.window,
            behaviour.reactions,
            waits=behaviour.waits,
        )
        self.since = since
        self.pool = pool
        self._known = known.tolist()
        self._start = memoryview(behaviour.when.units.start)

    @override
    def arrival(self, user: ReplayUser, release: Release) -> int:
        if self._known[release.unit]:
            return max(self._start[release.unit], release.at)
        if release.reason == Reason.START:
            return super().arrival(user, release)
        for _ in range(1 if release.at >= self.since else TRIES):
            drawn = release if self.pool is None else self.pool.draw(user, release)
            at = super().arrival(user, drawn)
            if at >= self.since:
                return at
        return release.at + outlasting(user, release, self.since - release.at)


def outlasting(user: ReplayUser, release: Release, waited: int) -> int:
    """Return a pause, s, of a user who is silent for longer than all known pauses.

    It lasts ``waited`` s already, and ends before the last submission of the record: as its work
    is given, so is that the user comes back. In between the chance to last t falls as 1 / t, a law
    without a scale.
    """
    most = max(user.work.last_submission - release.at, waited, 1)
    least = max(waited, 1) / most
    return min(round_half_up(waited / (1.0 - user.stream.random() * (1.0 - least))), most)
