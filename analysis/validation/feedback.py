"""Whether feedback helps to foresee what users do after an event, and whether logs can say so.

Before an event everything is as recorded. In the weeks after it the machine is as it was, and users
go on from their own record (:mod:`hpcrowd.agents.populations.past`), in futures of the same random
numbers:

============ ===================================================================================
users        what they do
============ ===================================================================================
rigid        go on as they did before, whatever the machine does
unaware      wait for what they waited for, on a machine that goes on as before the event
aware        the same, on the machine as it was after the event: this is feedback
============ ===================================================================================

The machine is one of two: that of the log under EASY, closed in outages, and of the size that it
had after a change of its capacity; or one on which jobs wait as recorded
(:mod:`.recorded_waits`). Outages are not scored themselves: nobody can log in, whatever users want.
Spans of the fortnight from the end of the event on are. To isolate the event, the same is asked at
an ordinary moment of the same log, weekday and hour.

All numbers are logarithms of multiples of what was usual in the four weeks before. *Who* submits is
asked of each user who did in these weeks. Two figures say whether feedback helps:

gain
    CRPS of rigid users less that of aware ones, at events, less the same at ordinary moments; for
    who submits the Brier score, mean over users.
strength
    Of the answer to the event, where 0 is none and 1 is that of the model: the slope of what came
    over what aware users do, both less what unaware ones do, and less the same at the ordinary
    moment; for who submits less the mean of all users, and what goes with how often rigid users
    come, as models may be wrong about all busy users. This is the regression of forecast
    encompassing (Harvey, Leybourne and Newbold, Journal of Business and Economic Statistics 16,
    1998), with one half of the futures as instruments for the other; events count by the variance
    of the futures. It is unknown where the shift of aware users is smaller than its error.

Intervals come from resampling logs, and in each log stretches of four weeks. The power of the test
is that in worlds which are known: in each, one future of the same users is what came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.forecast.futures import Outset
from hpcrowd.analysis.paired import CONFIDENCE
from hpcrowd.analysis.validation.events import Event
from hpcrowd.analysis.validation.foresight import ORDINARY, choose_events, interval
from hpcrowd.analysis.validation.recorded_waits import AsWaited, Waits
from hpcrowd.analysis.validation.scores import RESAMPLES, Estimate, crps
from hpcrowd.environment.clock import DAY, HOUR, WEEK, Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.platform.changes import Change, Maintenance, Resize
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.state.state import ClusterState
from hpcrowd.environment.streams import Streams

Bools = NDArray[np.bool_]

#: What is foreseen: numbers, and for each user of the days before whether it submits.
NUMBERS, WHO = ("jobs", "processor-hours", "users"), "who"
MEASURES = (*NUMBERS, WHO)

#: Days after the end of an event that are scored, from and to.
SPANS = ((0, 1), (1, 3), (3, 7), (7, 14))

#: Days that are scored in all, and days before that say what is usual.
AFTER, BEFORE = 14, 28

#: Kinds of events that change what users meet; holidays are the users' own.
KINDS = ("outage", "capacity", "load", "waits", "queue")

#: Kinds that can be done to a simulated machine.
IMPOSED = ("outage", "capacity")

#: Machines, and users of each; rigid ones are the same on both.
MACHINES = ("easy", "recorded waits")

#: Futures of each kind of users (our choice).
FUTURES = 20

#: Share of the usual that is added to multiples, so that nothing at all is finite (our choice).
FLOOR = 0.1

#: Fewest jobs in the days before; fewer say little about what is usual (our choice: five a day).
LEAST_JOBS = 5 * BEFORE

#: Days of the log before a moment that are known to it, as in judgements of forecasts.
KNOWN_DAYS = 120

#: Weeks between an event and its ordinary moment (our choice: no common days, the same season).
NEAREST, FARTHEST = 4, 20

#: Weeks that are resampled as one: fortnights that overlap are in the same or the next.
TOGETHER = 4

#: Power that is enough (Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988).
ENOUGH = 0.8

#: Fewest events that intervals are given for (our choice).
FEWEST = 5

#: Factor by which a machine of recorded waits is larger, so that it is never full.
LARGER = 1000


@dataclass(frozen=True)
class Question:
    """A log, and how it is asked."""

    jobs: JobTable  #: With recorded waits.
    #: Local time, and size of the machine.
    clock: Clock
    processors: int
    events: Sequence[Event]  #: All that happened.
    futures: int = FUTURES  #: Of each kind of users, at each moment.
    seed: int = 0  #: Of everything random.


@dataclass(frozen=True)
class Moment:
    """A moment from which users go on."""

    event: Event  #: The event; an ordinary one has its length.
    pair: int  #: Which pair of an event and an ordinary moment it belongs to.


@dataclass(frozen=True)
class Seen:
    """What was foreseen from a moment, and what came.

    Natural logarithms of multiples of the usual.
    """

    moment: Moment  #: The moment.
    came: Floats  #: As recorded, shape (measures, spans).
    #: In futures, by machine and users, shape (futures, measures, spans).
    foreseen: dict[tuple[str, str], Floats]
    #: Which of the users of the days before submitted, shape (users, spans), and in futures, shape
    #: (futures, users, spans).
    who_came: Bools
    who: dict[tuple[str, str], Bools]


# ---- moments -------------------------------------------------------------------------------------


def moments_of(question: Question, most: int) -> list[Moment]:
    """Return the largest events, ``most`` of each kind, each with its ordinary moment.

    Events without a month before them, a fortnight after them, or an ordinary moment are left out;
    a QuantityError is raised if none is left.
    """
    jobs = question.jobs
    found: list[Moment] = []
    taken: set[int] = set()
    fit = [one for one in question.events if one.kind in KINDS]
    for event in choose_events(fit, jobs, most):
        if not _has_enough(jobs, event):
            continue
        ordinary = min(
            (one for one in _like(event) if one.begin not in taken and _has_enough(jobs, one)),
            key=lambda one: (_disturbance(question.events, one), abs(one.begin - event.begin)),
            default=None,
        )
        if ordinary is not None:
            taken.add(ordinary.begin)
            pair = len(found) // 2
            found += [Moment(event, pair), Moment(ordinary, pair)]
    if not found:
        raise QuantityError(
            f"feedback: no event with {BEFORE} days before it, {AFTER} after it, and an ordinary "
            f"moment within {FARTHEST} weeks; give a longer log"
        )
    return found


def _like(event: Event) -> Iterator[Event]:
    """Yield moments at the weekday and hour of an event, some weeks before and after."""
    for weeks in (*range(-FARTHEST, -NEAREST + 1), *range(NEAREST, FARTHEST + 1)):
        shift = weeks * WEEK
        yield Event(ORDINARY, event.begin + shift, event.end + shift, 0.0, 0.0, 1.0)


def _has_enough(jobs: JobTable, event: Event) -> bool:
    submit = jobs.recorded_submit
    begin = event.begin - BEFORE * DAY
    if begin < submit.min() or event.end + AFTER * DAY > submit.max():
        return False
    return int(((submit >= begin) & (submit < event.begin)).sum()) >= LEAST_JOBS


def _disturbance(events: Sequence[Event], moment: Event) -> int:
    """Return for how long events last from a week before to a fortnight after a moment, s."""
    low, high = moment.begin - WEEK, moment.end + AFTER * DAY
    # A change for good counts as a week.
    return sum(
        max(min(one.end + WEEK * one.lasting, high) - max(one.begin, low), 0) for one in events
    )


# ---- futures -------------------------------------------------------------------------------------


def see(question: Question, moment: Moment) -> Seen:
    """Return what is foreseen from a moment, and what came."""
    jobs, event = question.jobs, moment.event
    at, since = event.begin, event.end
    usual = _usual(jobs, at)
    submit = jobs.recorded_submit
    work = jobs.processors * jobs.run_time / HOUR
    came = _multiples(measured(submit, jobs.user, work, since), usual)
    users = np.unique(jobs.user[(submit >= at - BEFORE * DAY) & (submit < at)])
    known = np.flatnonzero((submit <= at) & (submit > at - KNOWN_DAYS * DAY))
    state = ClusterState.of(jobs.take(known), at, question.clock, question.processors)
    # Some logs have more processors in use at times than their headers say.
    state.processors = max(state.processors, state.used)
    first = Outset(state, since - at + AFTER * DAY)
    seed = int(Streams(question.seed).sequence("feedback", at).generate_state(1)[0])
    foreseen, who = {}, {}
    for key, changes, waits in _arms(question, event, state):
        outset = replace(first, **changes)
        # What is known is the same for all users.
        outset.__dict__.update(past=first.past, run_times=first.run_times)
        futures = [_simulated(outset, number, seed, waits) for number in range(question.futures)]
        foreseen[key] = np.array([_multiples(measured(*one, since), usual) for one in futures])
        who[key] = np.array([who_submits(users, *one[:2], since) for one in futures])
    who_came = who_submits(users, submit, jobs.user, since)
    return Seen(moment, came, foreseen, who_came, who)


def _arms(
    question: Question, event: Event, state: ClusterState
) -> Iterator[tuple[tuple[str, str], dict[str, Any], Waits | None]]:
    """Yield the machines and users, how their outsets differ, and waits if these are recorded."""
    until = event.end + AFTER * DAY
    large = LARGER * state.processors
    outages = [
        (max(one.begin, event.begin), one.end)
        for one in question.events
        if one.kind == "outage" and one.end > event.begin and one.begin < until
    ]
    yield ("", "rigid"), {"users": "rigid", "processors": large}, None
    if event.kind in (*IMPOSED, ORDINARY):
        before, after = _sizes(question.jobs, event, state)
        changes: list[Change] = [Maintenance(*times, announced=0, jobs="fail") for times in outages]
        if after != before:
            changes.append(Resize(event.begin, after))
        yield ("easy", "unaware"), {"processors": before}, None
        yield ("easy", "aware"), {"processors": before, "platform": changes}, None
    for users, repeats in (("unaware", True), ("aware", False)):
        waits = Waits(
            question.jobs, event.begin, repeats=repeats, outages=() if repeats else outages
        )
        yield ("recorded waits", users), {"processors": large}, waits


def _sizes(jobs: JobTable, event: Event, state: ClusterState) -> tuple[int, int]:
    """Return the size of the machine before and after an event.

    The larger one is that of the machine, and the smaller one has room for all that was in use, and
    for the largest job.
    """
    size = state.processors
    if event.kind != "capacity":
        return size, size
    near = np.abs(jobs.recorded_submit - event.begin) <= BEFORE * DAY
    least = max(int(jobs.processors[near].max(initial=1)), state.used)
    ratio = (event.after + 1) / (event.before + 1)
    small = min(max(round(size * min(ratio, 1 / ratio)), least), size)
    return (small, size) if ratio > 1 else (size, small)


def _simulated(
    outset: Outset, number: int, seed: int, waits: Waits | None
) -> tuple[Int64s, Int64s, Floats]:
    """Return submissions, s, users and processor-hours of the jobs that come in one future."""
    seen: list[Any] = []

    def watch(simulation: Any) -> None:
        waited = {} if waits is None else AsWaited(simulation, waits).waited
        seen.extend((simulation, len(simulation.jobs), waited))

    outset.simulate(number, seed, watch)
    simulation, present, waited = seen
    jobs: JobTable = simulation.jobs
    rows = np.arange(present, len(jobs))
    run = jobs.run_time[rows] - np.array([waited.get(row, 0) for row in rows.tolist()], np.int64)
    return jobs.submit[rows], jobs.user[rows], jobs.processors[rows] * run / HOUR


def measured(submit: Int64s, user: Int64s, work: Floats, since: int) -> Floats:
    """Return what is submitted in the spans from a second on, shape (measures, spans).

    Submissions, s, users, and processor-hours have shape (jobs,).
    """
    return np.array(
        [_measure(submit, user, work, since + a * DAY, since + b * DAY) for a, b in SPANS]
    ).T


def who_submits(users: Int64s, submit: Int64s, user: Int64s, since: int) -> Bools:
    """Return which users submit in the spans from a second on, shape (users, spans)."""
    return np.array(
        [np.isin(users, user[(submit >= since + a * DAY) & (submit < since + b * DAY)])
         for a, b in SPANS]
    ).T  # fmt: skip


def _measure(submit: Int64s, user: Int64s, work: Floats, low: int, high: int) -> list[float]:
    inside = (submit >= low) & (submit < high) & (submit != UNKNOWN)
    return [inside.sum(), work[inside].sum(), len(np.unique(user[inside]))]


def _usual(jobs: JobTable, at: int) -> Floats:
    """Return the mean of what was submitted in stretches as long as the spans before a second."""
    submit, user = jobs.recorded_submit, jobs.user
    work = jobs.processors * jobs.run_time / HOUR
    found = [
        np.mean([_measure(submit, user, work, at - (k + 1) * days * DAY, at - k * days * DAY)
                 for k in range(BEFORE // days)], axis=0)
        for days in (b - a for a, b in SPANS)
    ]  # fmt: skip
    return np.array(found).T


def _multiples(numbers: Floats, usual: Floats) -> Floats:
    """Return logarithms of multiples of the usual."""
    found: Floats = np.log(numbers / np.maximum(usual, 1e-9) + FLOOR)
    return found


# ---- verdicts ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """Whether feedback helps to foresee a measure in some days after some events."""

    kind: str  #: Of the events, ``all`` for any.
    machine: str  #: One of :data:`MACHINES`.
    measure: str  #: One of :data:`MEASURES`.
    days: str  #: After the event, such as ``2-3``, or ``all``.
    events: int  #: How many.
    #: CRPS without feedback less that with it: at events, at ordinary moments, and the difference.
    at_events: Estimate
    at_ordinary: Estimate
    gain: Estimate
    #: CRPS of unaware users less that of aware ones, at events: what it helps to know the machine.
    knowing: Estimate
    strength: Estimate  #: Of the answer to the event: 0 none, 1 that of the model.
    #: Of the answer to what the machine does at ordinary moments; only of who submits.
    strength_ordinary: Estimate
    #: Share of known worlds in which the interval decides for the truth, with feedback and without:
    #: of the gain against 0, and of the strength against 0 or 1.
    power_gain: tuple[float, float]
    power_strength: tuple[float, float]
    #: Probability to find the gain of worlds with feedback, and a strength of 1, if the intervals
    #: are as wide as those of the log.
    power_here: tuple[float, float]
    #: Events with which that probability would be :data:`ENOUGH`.
    needed: tuple[float, float]

    def plain(self) -> dict[str, Any]:
        """Return it as plain data, fit for JSON."""

        def known(value: Any) -> Any:
            if isinstance(value, Estimate):
                return value.plain()
            if isinstance(value, tuple):
                return [None if np.isnan(one) else one for one in value]
            return value

        return {name: known(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class _Pairs:
    """Pairs of an event and an ordinary moment: shape (pairs, 2, ..., measures, spans)."""

    came: Floats
    rigid: Floats  #: Futures are the third axis here.
    unaware: Floats
    aware: Floats
    #: Who came, and did in futures of the three kinds of users; for each pair the two moments.
    who_came: list[list[Bools]]
    who: dict[str, list[list[Bools]]]

    def world(self, which: str, number: int) -> _Pairs:
        """Return pairs in which a future of some users is what came, foreseen by the others."""
        came = getattr(self, which)[:, :, number]
        others = {
            name: np.delete(getattr(self, name), number, axis=2)
            for name in ("rigid", "unaware", "aware")
        }
        who = {
            name: [[np.delete(one, number, axis=0) for one in both] for both in pairs]
            for name, pairs in self.who.items()
        }
        who_came = [[one[number] for one in both] for both in self.who[which]]
        return _Pairs(came, **others, who_came=who_came, who=who)


def verdicts(logs: Mapping[str, Sequence[Seen]], seed: int = 0) -> list[Verdict]:
    """Return whether feedback helps, over all pairs of all logs, by kind of event and over all."""
    found: list[Verdict] = []
    for machine in MACHINES:
        pairs: list[tuple[str, Seen, Seen]] = []
        for name, each in logs.items():
            whole = list(zip(each[::2], each[1::2], strict=True))
            pairs += [(name, *both) for both in whole if (machine, "aware") in both[0].foreseen]
        kinds = sorted({event.moment.event.kind for _, event, _ in pairs})
        for kind in ("all", *kinds) if len(kinds) > 1 else kinds:
            mine = [one for one in pairs if kind in ("all", one[1].moment.event.kind)]
            found += _verdicts(kind, machine, mine, seed)
    return found


def _verdicts(
    kind: str, machine: str, pairs: Sequence[tuple[str, Seen, Seen]], seed: int
) -> Iterator[Verdict]:
    weights = _resamples([(name, event.moment.event.begin) for name, event, _ in pairs], seed)
    if len(pairs) < FEWEST:
        weights = weights[:1]

    def stacked(users: tuple[str, str]) -> Floats:
        return np.array([[one.foreseen[users] for one in both[1:]] for both in pairs])

    keys = {"rigid": ("", "rigid"), "unaware": (machine, "unaware"), "aware": (machine, "aware")}
    real = _Pairs(
        np.array([[one.came for one in both[1:]] for both in pairs]),
        **{name: stacked(users) for name, users in keys.items()},
        who_came=[[one.who_came for one in both[1:]] for both in pairs],
        who={
            name: [[one.who[users] for one in both[1:]] for both in pairs]
            for name, users in keys.items()
        },
    )
    figures = _figures(real, weights)
    futures = range(real.rigid.shape[2])
    closed, open_ = (
        [_figures(real.world(users, number), weights) for number in futures]
        for users in ("aware", "rigid")
    )
    names = [f"{a + 1}-{b}" if b > a + 1 else f"{b}" for a, b in SPANS] + ["all"]
    for m, measure in enumerate(MEASURES):
        for s, days in enumerate(names):
            one = {name: _estimate(values[:, m, s]) for name, values in figures.items()}
            with_, without = (
                {name: [_estimate(world[name][:, m, s]) for world in worlds]
                 for name in ("gain", "strength")}
                for worlds in (closed, open_)
            )  # fmt: skip
            effect = float(np.mean([e.value for e in with_["gain"]]))
            yield Verdict(
                kind, machine, measure, days, len(pairs), **one,
                power_gain=(_share([e.low > 0 for e in with_["gain"]], one["gain"]),
                            _share([e.high < 0 for e in without["gain"]], one["gain"])),
                power_strength=(_share([e.low > 0 for e in with_["strength"]], one["strength"]),
                                _share([e.high < 1 for e in without["strength"]], one["strength"])),
                power_here=(_power(effect, one["gain"]), _power(1.0, one["strength"])),
                needed=(_needed(effect, one["gain"], len(pairs)),
                        _needed(1.0, one["strength"], len(pairs))),
            )  # fmt: skip


def _share(decided: Sequence[bool], real: Estimate) -> float:
    return float(np.mean(decided)) if np.isfinite(real.low) else float("nan")


def _power(effect: float, found: Estimate) -> float:
    """Return the probability to find an effect with intervals as wide as one that was found."""
    error = _error(found)
    return float(norm.cdf(effect / error - LIMIT)) if error > 0 else float("nan")


def _needed(effect: float, found: Estimate, events: int) -> float:
    """Return the number of events that find an effect with :data:`ENOUGH` probability."""
    if not effect > 0:
        return float("nan")
    return events * float(((LIMIT + norm.ppf(ENOUGH)) * _error(found) / effect) ** 2)


#: Half the width of an interval, in standard errors.
LIMIT = float(norm.ppf((1 + CONFIDENCE) / 2))


def _error(found: Estimate) -> float:
    """Return the standard error that an interval stands for."""
    return (found.high - found.low) / (2 * LIMIT)


def _figures(pairs: _Pairs, weights: Floats) -> dict[str, Floats]:
    """Return the figures for each row of weights, shape (rows, measures, spans and all)."""
    scores = {
        name: np.concatenate(
            (_crps(getattr(pairs, name), pairs.came), _brier(pairs.who[name], pairs.who_came)),
            axis=2,
        )
        for name in pairs.who
    }
    gain = scores["rigid"] - scores["aware"]
    total = weights.sum(axis=1)[:, None, None]

    def mean(values: Floats) -> Floats:
        found = np.tensordot(weights, values, 1) / total
        return np.concatenate((found, found.mean(axis=2, keepdims=True)), axis=2)

    def slope(over: Floats, under: Floats) -> Floats:
        over, under = (np.tensordot(weights, one, 1) for one in (over, under))
        over, under = (
            np.concatenate((one, one.sum(axis=2, keepdims=True)), axis=2) for one in (over, under)
        )
        found: Floats = np.divide(over, under, where=under > 0, out=np.full(over.shape, np.nan))
        return found

    # Of numbers it is the ordinary moment that the event is compared with.
    unknown = np.full((len(pairs.came), len(NUMBERS), len(SPANS)), np.nan)
    at_events, at_ordinary = (
        [np.concatenate(both, axis=1) for both in zip(numbers, _of_who(pairs, which), strict=True)]
        for which, numbers in enumerate((_products(pairs), (unknown, unknown)))
    )
    return {
        "at_events": mean(gain[:, 0]),
        "at_ordinary": mean(gain[:, 1]),
        "gain": mean(gain[:, 0] - gain[:, 1]),
        "knowing": mean(scores["unaware"][:, 0] - scores["aware"][:, 0]),
        "strength": slope(*at_events),
        "strength_ordinary": slope(*at_ordinary),
    }


#: Halves of the futures, which have no errors in common that would look like an answer.
HALVES = (slice(None, None, 2), slice(1, None, 2))


def _products(pairs: _Pairs) -> tuple[Floats, Floats]:
    """Return what the slope of numbers is the ratio of, each of shape (pairs, numbers, spans)."""
    x, y = [], []
    for half in HALVES:
        middle = pairs.unaware[:, :, half].mean(axis=2)
        shift, error = pairs.aware[:, :, half].mean(axis=2) - middle, pairs.came - middle
        # What is usual in an ordinary fortnight, and wrong in all futures, is left out.
        x.append(shift[:, 0] - shift[:, 1])
        y.append(error[:, 0] - error[:, 1])
    precision = 1 / (pairs.unaware.var(axis=2, ddof=1).sum(axis=1) + FLOOR**2)
    return precision * (x[0] * y[1] + x[1] * y[0]) / 2, precision * x[0] * x[1]


def _of_who(pairs: _Pairs, which: int) -> tuple[Floats, Floats]:
    """Return the same of who submits, after events, 0, or ordinary moments, 1.

    Each has shape (pairs, 1, spans).
    """
    found = []
    for came, rigid, unaware, aware in zip(
        pairs.who_came, *(pairs.who[name] for name in ("rigid", "unaware", "aware")), strict=True
    ):
        often = rigid[which].mean(axis=0)
        x: list[Floats] = []
        y: list[Floats] = []
        for half in HALVES:
            middle = unaware[which][half].mean(axis=0)
            x.append(_unrelated(aware[which][half].mean(axis=0) - middle, often))
            y.append(_unrelated(came[which] - middle, often))
        found.append(((x[0] * y[1] + x[1] * y[0]).sum(axis=0) / 2, (x[0] * x[1]).sum(axis=0)))
    over, under = np.moveaxis(np.array(found), 1, 0)
    return over[:, None], under[:, None]


def _unrelated(values: Floats, often: Floats) -> Floats:
    """Return values of users less their mean, and less what goes with how often users come.

    All have shape (users, spans). A model may be wrong about all busy users, event or not.
    """
    values, often = (one - one.mean(axis=0) for one in (values, often))
    spread = (often**2).sum(axis=0)
    slope = np.divide((values * often).sum(axis=0), spread, where=spread > 0, out=0.0 * spread)
    found: Floats = values - slope * often
    return found


def _brier(members: list[list[Bools]], came: list[list[Bools]]) -> Floats:
    """Return the mean Brier score over users, shape (pairs, 2, 1, spans).

    It is without the part that is due to the number of futures, as the CRPS.
    """
    found = []
    for both, truth in zip(members, came, strict=True):
        for one, outcome in zip(both, truth, strict=True):
            said = one.mean(axis=0)
            noise = said * (1 - said) / (len(one) - 1)
            found.append(((said - outcome) ** 2 - noise).mean(axis=0))
    return np.array(found).reshape(len(members), 2, 1, len(SPANS))


def _crps(members: Floats, came: Floats) -> Floats:
    """Return the CRPS of each number that came, of the same shape."""
    draws = np.moveaxis(members, 2, -1)
    return crps(draws.reshape(-1, draws.shape[-1]), came.reshape(-1)).reshape(came.shape)


def _resamples(places: Sequence[tuple[str, int]], seed: int) -> Floats:
    """Return how often each pair is drawn, first once each, shape (1 + resamples, pairs).

    Logs are drawn, and in each its stretches of some weeks; places are logs and seconds.
    """
    generator = Streams(seed).generator("pairs")
    logs: dict[str, dict[int, list[int]]] = {}
    for pair, (name, at) in enumerate(places):
        logs.setdefault(name, {}).setdefault(at // (TOGETHER * WEEK), []).append(pair)
    found = np.zeros((1 + RESAMPLES, len(places)))
    found[0] = 1
    stretches = [list(each.values()) for each in logs.values()]
    for row in found[1:]:
        for log in generator.integers(len(stretches), size=len(stretches)).tolist():
            mine = stretches[log]
            for one in generator.integers(len(mine), size=len(mine)).tolist():
                np.add.at(row, mine[one], 1)
    return found


def _estimate(values: Floats) -> Estimate:
    """Return the first value with the percentiles of the others, if there are any that differ."""
    drawn = values[1:][np.isfinite(values[1:])]
    value = float(values[0])
    if not np.isfinite(value) or not len(drawn) or not np.ptp(drawn):
        return Estimate(value, float("nan"), float("nan"))
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Estimate(value, float(low), float(high))


# ---- rows for tables -----------------------------------------------------------------------------

#: Headings of the table of verdicts.
HEADINGS = (
    "submitted", "days after", "gain", "knowing the event", "strength", "strength, ordinary",
    "power, gain", "power, strength", "power here", "events needed",
)  # fmt: skip


def rows(found: Sequence[Verdict], kind: str, machine: str) -> list[list[str]]:
    """Return a row for each measure and span of a kind of events on a machine."""
    return [
        [
            one.measure, one.days, _small(one.gain), _small(one.knowing),
            interval(one.strength), interval(one.strength_ordinary),
            *(
                " / ".join("-" if np.isnan(power) else f"{100 * power:.0f} %" for power in each)
                for each in (one.power_gain, one.power_strength, one.power_here)
            ),
            " / ".join("-" if np.isnan(count) else f"{count:,.0f}" for count in one.needed),
        ]
        for one in found
        if (one.kind, one.machine) == (kind, machine)
    ]  # fmt: skip


def _small(found: Estimate) -> str:
    """Return a number with three digits, and its interval if there is one."""
    if np.isnan(found.low):
        return f"{found.value:.3f}"
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


def conclusion(one: Verdict) -> str:
    """Return in a sentence what a verdict says."""
    what = f"{one.measure}, days {one.days}, {plural(one.events, 'event')}, {one.machine}"
    if np.isnan(one.gain.low):
        said = f"the log does not show; at least {FEWEST} events are needed for an interval"
    elif one.gain.low > 0:
        said = "feedback helps"
    elif one.gain.high < 0:
        said = "feedback makes it worse"
    else:
        said = "the log does not show whether feedback helps"
    known = [power for power in one.power_here if not np.isnan(power)]
    if known:
        said += f"; it would find full feedback with probability {max(known):.2f}"
    return f"{what}: {said}"
