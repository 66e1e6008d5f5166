"""Fits the scheduler that a site really had to its record.

The candidates are the policies of the library and :class:`~environment.schedulers.policies.site.
Site`, whose rules are tried one after the other: partitions of queues, processors in use, hours in
which jobs do not start, the order of the queue, limits of users, priorities. What to try is read
from the record: how many processors queues held at most, at which hours jobs started. A rule is
kept if starts from moments of the record come nearer to the recorded ones, and if they do so at
later moments, too. In the end the rules are compared with the best single policy, at further
moments that no search has seen; unless they start more waiting jobs within ten minutes of the
record, beyond noise, the single policy is what is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.clock import HOUR, WEEK, Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.quantities import format_duration
from hpcrowd.environment.schedulers.policies.site import ORDERS, WORKING_DAYS, Site
from hpcrowd.environment.state.moments import NEVER, REACH, Moment, Score, moments_of
from hpcrowd.environment.streams import Streams

#: Single policies that are tried.
SINGLES = (
    "easy", "fcfs", "sjf", "easy:backfill=sjbf", "easy:order=estimate", "easy:order=-processors",
    "easy:order=processors", "easy:order=area", "easy:order=slowdown", "easy:reservations=3",
    "conservative", "fair-share", "fair-share:backfill=none", "ljf", "wfp3",
)  # fmt: skip

#: Moments of a fit, and the share of the last of them, which are held out (our choice: rules that
#: do not last are of no use for what comes).
MOMENTS, HELD_OUT = 60, 1 / 3

#: Share of the times that moments are drawn again in which a rule must pay, and all rules
#: together must be better than the best single policy (our choice).
SURE = 0.95

#: Place of ten minutes in :data:`~hpcrowd.environment.state.moments.WITHIN`.
TEN_MINUTES = 1

#: Least record that a scheduler is fitted to, s, and least waiting jobs that are compared.
SHORTEST, LEAST_JOBS = 4 * REACH, 100

#: Latest part of the record that counts, in jobs: sites change (our choice).
MOST_JOBS = 100_000

#: Rounds through the kinds of rules.
ROUNDS = 2

#: Times that moments are drawn again for weights, and most candidates with weights.
DRAWS, MOST_KEPT = 400, 12

#: Least share of the jobs that a queue must have to get rules of its own, and most such queues.
QUEUE_SHARE, MOST_QUEUES = 0.003, 8

#: Most sizes of jobs that get partitions, the most usual of those that waited; their name there.
MOST_SIZES, SIZE = 5, "size "

#: Requested times from which on hours are tried, s.
LONG = (600, 1800, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 12 * HOUR, 15 * HOUR)

#: An hour is closed if starts per waiting job are below these shares of their mean over hours.
CLOSED = (0.1, 0.25, 0.45)

#: Shares of the machine, and limits of users, that are tried.
IN_USE = (0.8, 0.85, 0.9, 0.95)
USER_JOBS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
USER_SHARES = (0.06, 0.1, 0.15, 0.25, 0.35, 0.5)
USER_QUEUED = (1, 2, 4, 8)

#: Jobs that waited longer were not started at once, s.
WAITED = 60

#: Edges of classes of how long a job has waited, by which delays are drawn, s (our choice).
SO_FAR = (1, 60, 600, HOUR, 6 * HOUR, 24 * HOUR)


@dataclass(frozen=True)
class Candidate:
    """A scheduler that was tried."""

    text: str  #: as for ``--scheduler``
    score: Score  #: at moments


@dataclass(frozen=True)
class SiteFit:
    """What was found.

    Attributes
    ----------
    best, single, rules
        The fitted scheduler, the best single policy, and the best rules of a site, with scores at
        moments of the last third that the search did not use. The fitted scheduler is one of the
        other two.
    others
        Candidates that do nearly as well, with their weights: how often each is the best when
        moments are drawn again. The fitted scheduler is among them.
    sure
        Share of the times that these moments are drawn again in which the rules start more waiting
        jobs within ten minutes of the record than the single policy.
    delays
        By class of :data:`SO_FAR`: how much later than the fitted scheduler the site let waiting
        jobs of the record start, s, or the seconds that a start takes; the last is of new jobs.
    causes
        Shares of the time in which jobs waited in the record, by what was in the way.
    tried
        Number of candidates.
    """

    best: Candidate
    single: Candidate
    rules: Candidate
    others: tuple[tuple[Candidate, float], ...]
    sure: float
    delays: tuple[Int64s, ...]
    causes: dict[str, float]
    tried: int

    @property
    def text(self) -> str:
        """The fitted scheduler as for ``--scheduler``."""
        return self.best.text

    def agreement(self) -> dict[str, float]:
        """Return, for each option of the fitted scheduler, the weight of candidates with it."""
        name, options = _split(self.text)
        found = {}
        for option, value in options.items():
            found[f"{option}={value}"] = sum(
                weight for one, weight in self.others if _split(one.text)[1].get(option) == value
            )
        return found or {name: sum(w for one, w in self.others if _split(one.text)[0] == name)}

    def lines(self) -> list[str]:
        """Return in a few lines what was found."""

        def shares(one: Candidate) -> str:
            return "  ".join(f"{100 * share:5.1f} %" for share in one.score.shares)

        kept = self.text == self.rules.text
        outcome = "kept" if kept else "so the best single policy is taken"
        found = [
            f"fitted scheduler: {self.text}",
            "starts of waiting jobs at later moments: within 1 min, 10 min, 1 h",
            f"  best single policy  {shares(self.single)}  {self.single.text}",
            f"  best rules          {shares(self.rules)}  {self.rules.text}",
            f"rules are better within 10 min in {_percent(self.sure)} of draws of these moments, "
            f"{_percent(SURE)} are needed: {outcome}",
        ]
        sure = [f"{what} {_percent(share)}" for what, share in self.agreement().items()]
        found.append(f"confidence, from moments drawn again: {', '.join(sure)}")
        causes = [f"{what} {_percent(share)}" for what, share in self.causes.items()]
        found.append(f"jobs waited in the record while: {', '.join(causes)}")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return all of it, fit for JSON."""

        def plain(one: Candidate) -> dict[str, Any]:
            return {
                "scheduler": one.text,
                "held_out_within_60_600_3600_s": one.score.shares.tolist(),
                "new_jobs_within_60_600_3600_s": one.score.new_shares.tolist(),
            }

        return {
            "fitted": plain(self.best),
            "best_single_policy": plain(self.single),
            "best_rules": plain(self.rules),
            "rules_better_within_600_s_share_of_draws": self.sure,
            "weights": {one.text: weight for one, weight in self.others},
            "agreement": self.agreement(),
            "waiting_time_by_cause": self.causes,
            "candidates_tried": self.tried,
            "moments_held_out": len(self.best.score.counts),
        }


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _split(text: str) -> tuple[str, dict[str, str]]:
    name, _, rest = text.partition(":")
    return name, dict(one.split("=", 1) for one in rest.split(",") if "=" in one)


class _Search:
    """The search on one record."""

    def __init__(
        self,
        jobs: JobTable,
        clock: Clock,
        processors: int,
        rows: Int64s,
        seed: int,
        say: Callable[[int, int], Any],
    ) -> None:
        self.jobs, self.clock, self.processors = jobs, clock, processors
        self.moments = moments_of(jobs, clock, processors, rows, seed)
        self.held_out = np.arange(len(self.moments)) >= (1 - HELD_OUT) * len(self.moments)
        self.seed = seed
        self.seen: dict[str, float] = {}
        self.whole: dict[str, Candidate] = {}
        self.say = say

    def seen_value(self, text: str) -> float:
        """Return the value of a scheduler at the moments of the search."""
        if text not in self.seen:
            mine = [one for one, out in zip(self.moments, self.held_out, strict=True) if not out]
            self.seen[text] = Score.of(mine, text).value
            self.say(len(self.seen), 0)
        return self.seen[text]

    def candidate(self, text: str) -> Candidate:
        """Return a scheduler with its score at all moments."""
        if text not in self.whole:
            self.whole[text] = Candidate(text, Score.of(self.moments, text))
        return self.whole[text]

    def pays(self, text: str, before: str) -> bool:
        """Return whether a scheduler is better than another, also at the later moments."""
        if self.seen_value(text) <= self.seen_value(before):
            return False
        new, old = self.candidate(text).score, self.candidate(before).score
        if new.at(self.held_out).value <= old.at(self.held_out).value:
            return False
        better = [new.at(rows).value > old.at(rows).value for rows in self._drawn]
        return float(np.mean(better)) >= SURE

    @cached_property
    def _drawn(self) -> Int64s:
        """Moments drawn again, shape (DRAWS, moments)."""
        draw = Streams(self.seed).generator("fitted scheduler", "moments")
        return draw.integers(0, len(self.moments), (DRAWS, len(self.moments)))

    def best_site(self) -> str:
        """Return the best rules of a site, found one after the other."""
        now: dict[str, Any] = {}
        for _ in range(ROUNDS):
            before = dict(now)
            for propose in (
                self._hours, self._partitions, self._by_size, self._in_use, self._orders,
                self._users, self._priorities,
            ):  # fmt: skip
                now = self._improved(now, propose)
            if now == before:
                break
        return _text(now)

    def _improved(self, now: dict[str, Any], propose: Any) -> dict[str, Any]:
        """Return the options with what pays of the proposals, the best ones first."""
        while True:
            options = [now | change for change in propose(now)]
            ranked = sorted(options, key=lambda one: -self.seen_value(_text(one)))
            better = next((one for one in ranked[:3] if self.pays(_text(one), _text(now))), None)
            if better is None:
                return now
            now = better
            if propose in (self._in_use, self._orders):
                return now

    # What to try.

    @cached_property
    def _queues(self) -> list[int]:
        """Queues that may get rules, those with the most work first."""
        numbers, counts = np.unique(self.jobs.queue, return_counts=True)
        many = numbers[(counts >= QUEUE_SHARE * len(self.jobs)) & (numbers >= 0)]
        if len(many) < 2:
            return []
        held = self.jobs.processors * np.maximum(self.jobs.run_time, 0)
        work = {int(one): int(held[self.jobs.queue == one].sum()) for one in many}
        return sorted(work, key=lambda one: -work[one])[:MOST_QUEUES]

    def _busy(self, queues: tuple[int, ...] | None) -> Int64s:
        """Return what jobs of some queues held at most, nearly always and always, processors."""
        jobs = self.jobs
        mine = (jobs.recorded_start != UNKNOWN) & (jobs.recorded_end > jobs.recorded_start)
        if queues is not None:
            mine &= np.isin(jobs.queue, queues)
        return busiest(jobs.recorded_start[mine], jobs.recorded_end[mine], jobs.processors[mine])

    def _hours(self, now: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield rules of hours beside those that there are, or shifted ends of these."""
        rules = [one for one in now.get("hours", "").split("+") if one]
        jobs = self.jobs
        classes = {format_hours(long): jobs.requested_time > long for long in LONG}
        classes |= {f"queue {one}": jobs.queue == one for one in self._queues}
        taken = {one.rpartition(":")[0] for one in rules}
        for name, which in classes.items():
            if name not in taken:
                for begin, end in closed_hours(jobs, which, self.clock):
                    yield {"hours": "+".join([*rules, f"{name}:{begin}-{end}"])}
        for place, rule in enumerate(rules):
            name, _, hours = rule.rpartition(":")
            begin, end = map(int, hours.split("-"))
            without = rules[:place] + rules[place + 1 :]
            yield {"hours": "+".join(without)}
            for first, last in ((-1, 0), (1, 0), (0, -1), (0, 1), (-3, 0), (3, 0), (0, 3), (0, -3)):
                a, b = (begin + first) % 24, (end + last) % 24
                if a != b:
                    yield {"hours": "+".join([*without, f"{name}:{a}-{b}"])}

    def _partitions(self, now: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield partitions with one queue more, at first all queues on nodes of other sizes."""
        parts = [one for one in now.get("partitions", "").split("/") if one]
        groups = [
            tuple(map(int, one.rpartition(":")[0].split("+")))
            for one in parts
            if not one.startswith(SIZE)
        ]
        taken = {queue for group in groups for queue in group}
        if not groups:
            for some in self._by_grain:
                for place in range(len(NEARLY_ALWAYS)):
                    yield from self._divided([some], place)
        for queue in self._queues[1:]:
            if queue in taken:
                continue
            for place in range(len(groups) + 1):
                new = [*groups[:place], (*(groups[place : place + 1] or [()])[0], queue)]
                sizes = [one for one in parts if one.startswith(SIZE)]
                yield from self._divided([*new, *groups[place + 1 :]], USUAL, sizes)

    def _by_size(self, now: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield partitions of jobs of the largest sizes together, or one more or one less."""
        parts = [one for one in now.get("partitions", "").split("/") if one]
        queues = [one for one in parts if not one.startswith(SIZE)]
        known = list(self._held_by_size.items())
        for first in range(len(known) - 1):
            for place in range(len(known[first][1])):
                some = [f"{SIZE}{least}:{held[place]}" for least, held in known[first:]]
                yield {"partitions": "/".join([*queues, *some])}
        for least, held in known:
            name = f"{SIZE}{least}:"
            others = [one for one in parts if not one.startswith(name)]
            for most in held:
                yield {"partitions": "/".join([*others, f"{name}{most}"])}
            if len(others) < len(parts):
                yield {"partitions": "/".join(others)}

    @cached_property
    def _held_by_size(self) -> dict[int, list[int]]:
        """Usual sizes of jobs that waited, with processors to try for jobs of the size.

        These hold one such job at a time, or what such jobs usually held at once.
        """
        jobs = self.jobs
        waited = jobs.recorded_start - jobs.recorded_submit > WAITED
        numbers, counts = np.unique(jobs.processors[waited], return_counts=True)
        usual = np.sort(numbers[np.argsort(-counts, kind="stable")][:MOST_SIZES])
        ran = (jobs.recorded_start != UNKNOWN) & (jobs.recorded_end > jobs.recorded_start)
        found = {}
        for least, above in zip(usual, [*usual[1:], NEVER], strict=True):
            mine = ran & (jobs.processors >= least) & (jobs.processors < above)
            (often,) = busiest(
                jobs.recorded_start[mine], jobs.recorded_end[mine], jobs.processors[mine], (OFTEN,)
            )
            found[int(least)] = [int(least), max(int(often), int(least))]
        return found

    def _divided(
        self, groups: list[tuple[int, ...]], place: int, sizes: Sequence[str] = ()
    ) -> Iterator[dict[str, Any]]:
        """Yield partitions of such sizes, with what the other queues use, and without."""
        queues = [
            f"{'+'.join(map(str, group))}:{int(self._sizes(group)[place])}" for group in groups
        ]
        text = "/".join([*queues, *sizes])
        yield {"partitions": text}
        others = tuple(set(self._all_queues) - {one for group in groups for one in group})
        rest = int(self._sizes(others)[place])
        if rest < self.processors:
            yield {"partitions": text, "processors": rest}

    @cached_property
    def _by_grain(self) -> list[tuple[int, ...]]:
        """Groups of queues whose jobs come in other multiples of processors than most work."""
        grains: dict[int, list[int]] = {}
        for queue in self._all_queues if self._queues else ():
            sizes = self.jobs.processors[self.jobs.queue == queue]
            grains.setdefault(int(np.gcd.reduce(sizes)), []).append(queue)
        return [tuple(some) for some in grains.values() if self._queues[0] not in some]

    @cached_property
    def _all_queues(self) -> list[int]:
        return [int(one) for one in np.unique(self.jobs.queue)]

    @cached_property
    def _known_sizes(self) -> dict[tuple[int, ...], Int64s]:
        return {}

    def _sizes(self, queues: tuple[int, ...]) -> Int64s:
        """Return sizes of a partition to try."""
        if queues not in self._known_sizes:
            self._known_sizes[queues] = np.maximum(self._busy(queues), 1)
        return self._known_sizes[queues]

    def _in_use(self, now: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield processors in use."""
        sizes = {int(share * self.processors) for share in IN_USE}
        sizes |= set(self._busy(None).tolist())
        if "processors" in now:
            sizes |= {int(now["processors"] * factor) for factor in (0.95, 1.05)}
        yield from ({"processors": size} for size in sorted(sizes) if 0 < size < self.processors)
        yield {"processors": None}

    def _orders(self, now: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield orders, with and without backfilling."""
        for order in ORDERS:
            for sign in ("", "-"):
                for backfill in ("queue", "none"):
                    yield {"order": sign + order, "backfill": backfill}

    def _users(self, now: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield limits of users."""
        for name, values in (
            ("user-jobs", USER_JOBS),
            ("user-processors", [max(int(one * self.processors), 1) for one in USER_SHARES]),
            ("user-queued", USER_QUEUED),
        ):
            yield from ({name: value} for value in (*values, None) if value != now.get(name))

    def _priorities(self, now: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield priorities of one more queue."""
        given = dict(one.split(":") for one in now.get("priorities", "").split("+") if one)
        for queue in self._queues:
            for value in ("1", "-1"):
                new = given | {str(queue): value}
                if new != given:
                    yield {"priorities": "+".join(f"{a}:{b}" for a, b in new.items())}

    # What was found.

    def weights(self, best: str) -> tuple[tuple[Candidate, float], ...]:
        """Return the candidates that are the best at moments drawn again, and how often."""
        tried = [self.candidate(text) for text in self._nearly_best(best)]
        wins = np.zeros(len(tried))
        for rows in self._drawn:
            wins[int(np.argmax([one.score.at(rows).value for one in tried]))] += 1
        found = [(one, float(won) / DRAWS) for one, won in zip(tried, wins, strict=True) if won]
        return tuple(sorted(found, key=lambda one: -one[1]))

    def _nearly_best(self, best: str) -> list[str]:
        """Return the fitted scheduler, and those that do best at the moments of the search."""
        ranked = sorted(self.seen, key=lambda text: -self.seen[text])
        return list(dict.fromkeys([best, *ranked[:MOST_KEPT]]))


def _text(options: dict[str, Any]) -> str:
    """Return the text of a site's rules; those that are the default are left out."""
    default = {"order": "submit", "backfill": "queue", "hours": "", "partitions": ""}
    words = [
        f"{name}={value}"
        for name, value in sorted(options.items())
        if value is not None and value != default.get(name)
    ]
    return ":".join(["site", ",".join(words)]) if words else "site"


def format_hours(long: int) -> str:
    """Return a requested time as rules of hours have it."""
    return f"{long // HOUR}h" if long % HOUR == 0 else f"{long // 60}m"


#: Shares of the time in which queues hold no more than what is tried as their processors, and in
#: which jobs of a size do.
NEARLY_ALWAYS, OFTEN = (0.99, 0.999, 1.0), 0.8

#: Place of the share that is tried where only one is.
USUAL = 1


def busiest(
    start: Int64s, end: Int64s, processors: Int64s, shares: Sequence[float] = NEARLY_ALWAYS
) -> Int64s:
    """Return what jobs held at most in shares of the time in which they held any, processors."""
    times = np.concatenate((start, end))
    if not len(times):
        return np.zeros(len(shares), np.int64)
    steps = np.concatenate((processors, -processors))
    order = np.argsort(times, kind="stable")
    held = np.cumsum(steps[order])[:-1]
    lasts = np.diff(times[order])
    some = (held > 0) & (lasts > 0)
    held, lasts = held[some], lasts[some]
    order = np.argsort(held, kind="stable")
    share = np.cumsum(lasts[order]) / max(int(lasts.sum()), 1)
    places = np.minimum(np.searchsorted(share, shares), max(len(held) - 1, 0))
    found: Int64s = held[order][places]
    return found


def closed_hours(jobs: JobTable, which: NDArray[np.bool_], clock: Clock) -> list[tuple[int, int]]:
    """Return spans of hours of working days in which few waiting jobs start, from and to.

    Of some jobs of a record, shape (jobs,), those that waited. One span, the longest, for each of
    :data:`CLOSED`.
    """
    submit, start = jobs.recorded_submit, jobs.recorded_start
    rows = np.flatnonzero(which & (start != UNKNOWN) & (start - submit > WAITED))
    if len(rows) < LEAST_JOBS:
        return []
    begins, waits = hours_of(start[rows], clock), np.zeros(7 * 24)
    first = hours_of(submit[rows], clock)
    length = np.minimum((start[rows] - submit[rows]) // HOUR, WEEK // HOUR).astype(np.int64)
    for ahead in range(int(length.max()) + 1):
        there = length >= ahead
        waits += np.bincount((first[there] + ahead) % (7 * 24), minlength=7 * 24)
    starts = np.bincount(begins, minlength=7 * 24)
    days = slice(0, WORKING_DAYS * 24)
    begun = starts[days].reshape(-1, 24).sum(0)
    present = waits[days].reshape(-1, 24).sum(0)
    rate = begun / np.maximum(present, 1)
    mean = begun.sum() / max(present.sum(), 1)
    found: list[tuple[int, int]] = []
    for share in CLOSED:
        low = rate < share * mean
        if low.any() and not low.all():
            span = _longest(low)
            if span not in found:
                found.append(span)
    return found


def hours_of(seconds: Int64s, clock: Clock) -> Int64s:
    """Return hours of the week in local time, shape (jobs,)."""
    return clock.second_of_week(seconds) // HOUR


def _longest(low: NDArray[np.bool_]) -> tuple[int, int]:
    """Return the longest span of a circle of hours that is low, from and to."""
    best = (0, 0, 0)
    for begin in range(24):
        length = 0
        while length < 23 and low[(begin + length) % 24]:
            length += 1
        best = max(best, (length, -begin, (begin + length) % 24))
    return -best[1], best[2]


def causes_of(search: _Search, text: str) -> dict[str, float]:
    """Return shares of waiting jobs at the moments by what was in the way under fitted rules."""
    site = _site(text)
    counts = dict.fromkeys(CAUSES, 0)
    for one in search.moments:
        jobs, now = one.jobs, one.now
        first, last = one.running, one.running + one.waiting
        need, queues = jobs.processors, jobs.queue
        parts = site.parts_of(queues[:last], need[:last])
        sizes = [site.processors or one.processors, *(size for _, size in site.parts)]
        held = np.bincount(parts[:first], need[:first], len(sizes))
        free = one.processors - int(need[:first].sum())
        site.clock = one.clock
        shut = site.hours_at(now)[0] if site.rules else 0
        rules = site.rules_of(jobs.requested_time[:last], queues[:last])
        waits = np.arange(first, last)
        waits = waits[jobs.recorded_submit[waits] < now]
        runs = np.bincount(jobs.user[:first] + 1, minlength=int(jobs.user[:last].max()) + 2)
        for row in waits.tolist():
            place = 4
            if need[row] > free:
                place = 0
            elif rules[row] & shut:
                place = 1
            elif held[parts[row]] + need[row] > sizes[parts[row]]:
                place = 2
            elif runs[jobs.user[row] + 1]:
                place = 3
            counts[CAUSES[place]] += 1
    whole = max(sum(counts.values()), 1)
    return {name: count / whole for name, count in counts.items() if count}


#: What is in the way of waiting jobs; the first that applies counts.
CAUSES = (
    "no room", "closed hours", "partition full", "their user runs others", "none of these",
)  # fmt: skip


def _site(text: str) -> Site:
    """Return rules of a site from the text of a scheduler; none for another policy."""
    from hpcrowd.environment.schedulers.names import parse_scheduler

    made = parse_scheduler(text)
    return made if isinstance(made, Site) else Site()


def delays_of(moments: Sequence[Moment], text: str) -> tuple[Int64s, ...]:
    """Return how much later than a scheduler the site let jobs start, see :class:`SiteFit`."""
    found: list[list[Int64s]] = [[] for _ in range(len(SO_FAR) + 2)]
    for one in moments:
        starts, last = one.starts(text), one.running + one.waiting
        waits = np.arange(one.running, last)
        waits = waits[one.start[waits] < NEVER]
        submit, real = one.jobs.recorded_submit, one.start
        late = np.maximum(real - starts, 0)  # the seconds that a start takes, or
        late = np.where(late > WAITED, real - np.maximum(submit, one.now), late)
        late[starts == NEVER] = 0  # for want of room
        kinds = np.searchsorted(SO_FAR, one.now - submit[waits], side="right")
        for kind in np.unique(kinds).tolist():
            found[kind].append(late[waits[kinds == kind]])
        found[-1].append(late[one.new])
    return tuple(
        np.sort(np.concatenate(parts)) if parts else np.zeros(1, np.int64) for parts in found
    )


def fit_site(
    jobs: JobTable,
    clock: Clock,
    processors: int,
    *,
    moments: int = MOMENTS,
    seed: int = 0,
    progress: Callable[[int, int], Any] | None = None,
) -> SiteFit:
    """Fit the scheduler that a site really had to its record.

    Parameters
    ----------
    jobs
        The record, with recorded submissions, starts and ends.
    clock, processors
        Local time, and size of the machine.
    moments
        From how many moments schedulers are tried; the last third is held out from the search.
    seed
        Of everything that is drawn.
    progress
        Called with the number of schedulers that have been tried, and 0.

    Raises
    ------
    QuantityError
        If the record has no waits, or is too short.
    """
    rows, later = _rows(jobs, moments)
    search = _Search(jobs, clock, processors, rows, seed, progress or (lambda done, total: None))
    judged = sum(len(one.judged) for one in search.moments)
    if judged < LEAST_JOBS:
        raise QuantityError(
            f"scheduler fitted: {judged} jobs wait at {len(search.moments)} moments of the record, "
            f"and {LEAST_JOBS} are needed; name a policy, such as easy"
        )
    single, rules = max(SINGLES, key=search.seen_value), search.best_site()
    unseen = moments_of(jobs, clock, processors, later, seed)
    single_policy, site = (Candidate(one, Score.of(unseen, one)) for one in (single, rules))
    sure = _share_better(site.score, single_policy.score, seed)
    best = site if sure >= SURE and search.pays(rules, single) else single_policy
    return SiteFit(
        best, single_policy, site, search.weights(best.text), sure,
        delays_of(search.moments, best.text), causes_of(search, best.text), len(search.seen),
    )  # fmt: skip


def _share_better(score: Score, other: Score, seed: int) -> float:
    """Return in which share of draws of moments more starts are within ten minutes."""
    more = score.waiting[:, TEN_MINUTES] - other.waiting[:, TEN_MINUTES]
    draw = Streams(seed).generator("fitted scheduler", "comparison")
    return float((more[draw.integers(0, len(more), (DRAWS, len(more)))].sum(axis=1) > 0).mean())


def _rows(jobs: JobTable, moments: int) -> tuple[Int64s, Int64s]:
    """Return the jobs at whose submissions moments are: of the search, and of the comparison.

    As many of the comparison are between those that the search holds out.
    """
    submit, start = jobs.recorded_submit, jobs.recorded_start
    known = np.flatnonzero((submit >= 0) & (start != UNKNOWN))
    if not len(known) or not (start[known] > submit[known]).any():
        raise QuantityError(
            "scheduler fitted: the record has no waits to fit it to; name a policy, such as easy"
        )
    order = known[np.argsort(submit[known], kind="stable")][-MOST_JOBS:]
    times = submit[order]
    if times[-1] - times[0] < SHORTEST:
        raise QuantityError(
            f"scheduler fitted: the record is {format_duration(int(times[-1] - times[0]))} long, "
            f"and at least {format_duration(SHORTEST)} are needed; name a policy, such as easy"
        )
    first = int(np.searchsorted(times, times[0] + REACH))
    last = int(np.searchsorted(times, times[-1] - REACH))
    last = max(last, first)
    rows = np.unique(order[np.linspace(first, last, moments).astype(np.int64)])
    # The search holds out the last of its moments; half a step later begin those between them.
    begin = last - (last - first) * HELD_OUT
    between = np.linspace(begin, last, moments, endpoint=False) + (last - begin) / moments / 2
    return rows, np.setdiff1d(order[between.astype(np.int64)], rows)
