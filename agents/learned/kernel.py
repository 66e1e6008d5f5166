"""What a user remembers and notices, and how it draws a pause from a forest.

What it notices when a unit of work is released is an array of *features*, in the order of
:data:`hpcrowd.agents.learned.features.FEATURES`. The same functions run in a simulation, on
simulated times, and over a record, on recorded ones, so that a model is fitted to just what its
users will notice. This module is compiled when hpcrowd is installed.
"""

from __future__ import annotations

from math import cos, log2, log10, pi, sin
from typing import Any

import numpy as np

from hpcrowd.agents.learned.trees import HOURS
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.jobs import Float64Rows, Float64s, Int64s

#: Longest gap between submissions in a session, s (Zakay and Feitelson 2015, Definition 1).
SESSION_GAP = HOUR

#: Weight of the latest pause in a user's means.
RECENT = 0.15

#: Weight of a submission on one of the two days of the weekend; of the five others it is 1.
WEEKEND = 2.5

#: When a day begins for those who are still up, s after midnight; our choice.
DAWN = 5 * HOUR

#: Hours over which the activity to come is averaged.
AHEAD = 8

#: Units before a release that are looked at for work that is not over.
LOOK_BACK = 64

#: A value that is not known: trees put it below all others.
NOTHING = -2.0

#: Latest pauses that a user remembers, after the end of work and after a submission each; our
#: choice.
LATEST = 16


def decades(seconds: float) -> float:
    """Return log10(1 + t / 1 min) of a time of at least 0 s."""
    return log10(1.0 + max(seconds, 0.0) / 60.0)


def hour_of(wall: int) -> int:
    """Return the hour of a rhythm of a local time, s since a Monday, 00:00."""
    hour = (wall // HOUR) % 24
    return hour + 24 if (wall // DAY) % 7 >= 5 else hour


def _mean(before: float, value: float) -> float:
    return value if before == NOTHING else before + RECENT * (value - before)


def _whole(array: Any) -> Any:
    return np.array(array, np.int64)


def _numbers(array: Any) -> Any:
    return np.array(array, np.float64)


class Rhythm:
    """The rhythm of everybody.

    Parameters
    ----------
    common
        Submissions in each hour, mean 1, shape (HOURS,).
    prior
        Submissions of a user that weigh as much.
    """

    common: Float64s
    prior: float

    def __init__(self, common: Any, prior: float) -> None:
        self.common = _numbers(common)
        self.prior = prior


class Pauses:
    """The latest pauses of a user of one kind: after a submission, or after the end of work."""

    count: int  # how many there were
    pause: Int64s  # s, of each of the latest, in turn
    released: Int64s  # when it began, s after midnight

    def __init__(self) -> None:
        self.count = 0
        self.pause = np.zeros(LATEST, np.int64)
        self.released = np.zeros(LATEST, np.int64)

    def note(self, pause: int, released: int) -> None:
        """Remember a pause."""
        place = self.count % LATEST
        self.pause[place] = pause
        self.released[place] = released
        self.count += 1

    def copy(self) -> Pauses:
        """Return the same as it is now."""
        other = Pauses()
        other.count = self.count
        other.pause[:] = self.pause
        other.released[:] = self.released
        return other


class Memory:
    """What a user remembers; :data:`NOTHING` where it does not know. Pauses are in decades."""

    first: float  # its first submission, s
    sent: float  # the last submission of its last unit, s
    began: float  # the first submission of that unit, s
    session: float  # when its session began, s
    batches: float  # units in this session
    pauses: float  # pauses so far
    days: float  # days on which it has submitted
    last_day: float  # the last of them
    last: float  # its last pause
    before: float  # the one before
    after_end: float  # mean pause after the end of work
    after_submission: float  # mean pause after a submission
    long_pause: float  # mean of pauses longer than the gap between sessions
    short_pause: float  # mean of the others
    spread: float  # mean distance of a pause from the mean
    stays: float  # how often it stays in its session
    break_before: float  # the pause before this session
    response: float  # mean response time, decades
    submissions: float  # the sum of its rhythm
    rhythm: Float64s  # submissions in each hour, shape (HOURS,)
    after_ends: Pauses
    after_submissions: Pauses

    def __init__(self) -> None:
        self.first = self.sent = self.began = self.session = self.last_day = NOTHING
        self.last = self.before = self.after_end = self.after_submission = NOTHING
        self.long_pause = self.short_pause = self.spread = self.stays = NOTHING
        self.break_before = self.response = NOTHING
        self.batches = self.pauses = self.days = self.submissions = 0.0
        self.rhythm = np.zeros(HOURS)
        self.after_ends = Pauses()
        self.after_submissions = Pauses()

    def copy(self) -> Memory:
        """Return what it remembers now."""
        other = Memory()
        other.first, other.sent, other.began = self.first, self.sent, self.began
        other.session, other.batches, other.pauses = self.session, self.batches, self.pauses
        other.days, other.last_day = self.days, self.last_day
        other.last, other.before = self.last, self.before
        other.after_end, other.after_submission = self.after_end, self.after_submission
        other.long_pause, other.short_pause = self.long_pause, self.short_pause
        other.spread = self.spread
        other.stays, other.break_before = self.stays, self.break_before
        other.response, other.submissions = self.response, self.submissions
        other.rhythm[:] = self.rhythm
        other.after_ends = self.after_ends.copy()
        other.after_submissions = self.after_submissions.copy()
        return other

    def after(self, ended: bool) -> Pauses:
        """Return its pauses after the end of work, or after submissions."""
        return self.after_ends if ended else self.after_submissions

    def activity(self, rhythm: Rhythm, wall: int) -> float:
        """Return how active the user is at a local time; 1 is the mean over the hours."""
        here = hour_of(wall)
        base = here - here % 24
        hour = here % 24
        # Hours beside it count half, as few submissions say little about a single hour.
        mine = (
            2.0 * self.rhythm[here]
            + self.rhythm[base + (hour + 1) % 24]
            + self.rhythm[base + (hour + 23) % 24]
        ) / 4.0
        both = mine * HOURS + rhythm.prior * rhythm.common[here]
        found: float = both / (self.submissions + rhythm.prior)
        return found

    def note(self, ended: int, released: int, first: int, last: int, wall: int) -> None:
        """Remember the submission of a unit.

        ``ended`` is 1 if the end of another unit released it, 0 if a submission did, -1 if nothing;
        ``released`` is when; ``first`` and ``last`` are its first and last submission, all s;
        ``wall`` is the local time of the first.
        """
        if self.first == NOTHING:
            self.first = first
        goes_on = self.sent != NOTHING and first - self.sent <= SESSION_GAP
        if ended >= 0:
            self._note_pause(ended == 1, first - released, goes_on)
            self.after(ended == 1).note(first - released, (wall - (first - released)) % DAY)
        if not goes_on:
            self.session = first
            self.batches = 0.0
        self.batches += 1
        day = wall // DAY
        if day != self.last_day:
            self.days += 1
            self.last_day = day
        self.began = first
        self.sent = last
        hour = hour_of(wall)
        weight = 1.0 if hour < 24 else WEEKEND
        self.rhythm[hour] += weight
        self.submissions += weight

    def _note_pause(self, ended: bool, lasted: int, goes_on: bool) -> None:
        pause = decades(lasted)
        self.before = self.last
        self.last = pause
        mean = self.after_end if ended else self.after_submission
        if mean != NOTHING:
            self.spread = _mean(self.spread, abs(pause - mean))
        if ended:
            self.after_end = _mean(mean, pause)
        else:
            self.after_submission = _mean(mean, pause)
        if lasted > SESSION_GAP:
            self.long_pause = _mean(self.long_pause, pause)
        else:
            self.short_pause = _mean(self.short_pause, pause)
        self.stays = _mean(self.stays, 1.0 if goes_on else 0.0)
        if not goes_on:
            self.break_before = pause
        self.pauses += 1


class Jobs:
    """The columns of the table of jobs that users look at, recorded or simulated."""

    processors: Int64s
    requested_time: Int64s  # s
    submit: Int64s  # s
    start: Int64s  # s
    end: Int64s  # s

    def __init__(
        self, processors: Any, requested_time: Any, submit: Any, start: Any, end: Any
    ) -> None:
        self.processors = processors
        self.requested_time = requested_time
        self.submit, self.start, self.end = submit, start, end


def notice(
    features: Float64s,
    memory: Memory,
    rhythm: Rhythm,
    jobs: Jobs,
    rows: Int64s,
    before: int,
    ended: bool,
    at: int,
    wall: int,
    open_units: int,
) -> None:
    """Write what a user notices when a unit is released into ``features``.

    ``rows`` are the jobs of the unit that released it, ``before`` the number of jobs of the unit
    submitted last, ``at`` the second and ``wall`` its local time, ``open_units`` how many units of
    the user are not over.
    """
    decisive = rows[len(rows) - 1]
    if ended:
        for i in range(len(rows)):
            if jobs.end[rows[i]] > jobs.end[decisive]:
                decisive = rows[i]
    _notice_answer(features, memory, jobs, decisive, ended)
    features[7] = log2(max(jobs.processors[decisive], 1))
    features[8] = log2(before)
    features[9] = len(rows) if ended else 0
    features[10] = open_units
    features[11] = decades(at - memory.session)
    features[12] = log2(1 + memory.batches)
    features[13] = decades(at - memory.sent)
    features[14] = decades(memory.sent - memory.began)
    features[19] = memory.last
    features[20] = memory.before
    features[21] = memory.after_end
    features[22] = memory.after_submission
    features[23] = memory.long_pause
    features[24] = memory.short_pause
    features[25] = memory.spread
    features[26] = memory.stays
    features[27] = memory.break_before
    features[28] = memory.response
    features[29] = log2(1 + memory.pauses)
    features[30] = log2(1 + memory.days)
    features[31] = decades(at - memory.first)
    _notice_time(features, memory, rhythm, wall)


def _notice_answer(
    features: Float64s, memory: Memory, jobs: Jobs, decisive: int, ended: bool
) -> None:
    """Write how quickly the system answered, which the memory keeps, and what was asked for."""
    requested = jobs.requested_time[decisive]
    asked = decades(requested) if requested > 0 else NOTHING
    response = waited = ran = NOTHING
    if ended:
        over, began, sent = jobs.end[decisive], jobs.start[decisive], jobs.submit[decisive]
        response = decades(over - sent)
        waited = decades(began - sent) if began >= 0 else response
        ran = decades(over - began) if began >= 0 else 0.0
        memory.response = _mean(memory.response, response)
    known = ended and requested > 0
    features[0] = ended
    features[1] = response
    features[2] = waited
    features[3] = ran
    features[4] = asked
    features[5] = response - asked if known else NOTHING
    features[6] = ran - asked if known else NOTHING


def _notice_time(features: Float64s, memory: Memory, rhythm: Rhythm, wall: int) -> None:
    """Write the time of day and week, and how active the user is now and soon."""
    of_day = wall % DAY
    features[15] = of_day / HOUR
    features[16] = (wall // DAY) % 7
    features[17] = sin(2 * pi * of_day / DAY)
    features[18] = cos(2 * pi * of_day / DAY)
    features[32] = memory.activity(rhythm, wall)
    ahead = 0.0
    for hour in range(1, AHEAD + 1):
        ahead += memory.activity(rhythm, wall + hour * HOUR)
    features[33] = ahead / AHEAD
    for day in range(1, 4):
        ahead = 0.0
        for hour in range(24):
            ahead += memory.activity(rhythm, (wall // DAY + day) * DAY + hour * HOUR)
        features[33 + day] = ahead / 24.0


#: Kinds of pauses, see :func:`kind_of`.
KINDS = 7

#: Numbers between 0 and 1 for a pause, see :func:`draw_pause`.
CHANCES = 3

#: Number of features.
NOTICED = 37


class Nodes:
    """The nodes of a forest; see :class:`~hpcrowd.agents.learned.trees.Forest`."""

    root: Int64s
    feature: Int64s
    threshold: Float64s
    child: Int64s

    def __init__(self, forest: Any) -> None:
        self.root, self.feature = _whole(forest.root), _whole(forest.feature)
        self.threshold, self.child = _numbers(forest.threshold), _whole(forest.child)

    def leaf_of(self, tree: int, features: Float64s) -> int:
        """Return the leaf of a tree that the features belong to."""
        node: int = self.root[tree]
        while self.feature[node] >= 0:
            right = features[self.feature[node]] > self.threshold[node]
            node = self.child[node] + (1 if right else 0)
        return node


def transported(pause: int, released: int, absence: int, wall: int) -> int:
    """Return a pause that began at a time of day, s after midnight, as if at a local time, s.

    A long one keeps its days and the time of day at which it ended: who came back the next day at
    nine comes back at nine.
    """
    if pause < absence:
        return pause
    since = (released - DAWN) % DAY + pause
    return pause if since < DAY else since - (wall - DAWN) % DAY


def kind_of(pause: int) -> int:
    """Return the kind of a pause: 0 up to an hour, then wider and wider."""
    if pause <= HOUR:
        return 0
    if pause <= 4 * HOUR:
        return 1
    if pause <= 10 * HOUR:
        return 2
    if pause <= 36 * HOUR:
        return 3
    if pause <= 84 * HOUR:
        return 4
    if pause <= 10 * DAY:
        return 5
    return 6


class Chance:
    """A number between 0 and 1 that is used up in several choices."""

    left: float

    def __init__(self, chance: float) -> None:
        self.left = chance

    def take(self, share: float) -> bool:
        """Return whether something of this share is chosen, and go on with the rest."""
        if self.left < share:
            self.left = self.left / share
            return True
        self.left = (self.left - share) / (1.0 - share)
        return False


class PauseForest:
    """A forest of pauses, from which users draw.

    Parameters
    ----------
    forest
        Its arrays and numbers, a :class:`~hpcrowd.agents.learned.trees.Forest`.
    """

    nodes: Nodes
    size: Int64s
    members: Int64s
    pause: Int64s
    released: Int64s
    lift: Float64s
    rhythm: Rhythm
    own: float
    pull: float
    absence: int
    pauses: Int64s  # room for the examples of a leaf, s
    active: Float64s  # how active the user will be at the end of each

    def __init__(self, forest: Any) -> None:
        self.nodes = Nodes(forest)
        self.size, self.members = _whole(forest.size), _whole(forest.members)
        self.pause, self.released = _whole(forest.pause), _whole(forest.released)
        self.lift = _numbers(forest.lift)
        self.rhythm = Rhythm(forest.common, forest.prior)
        self.own, self.pull = forest.own, forest.pull
        self.absence = forest.absence
        most = int(forest.size.max())
        self.pauses, self.active = np.zeros(most, np.int64), np.zeros(most)

    def trees(self) -> int:
        """Return how many trees there are."""
        return len(self.nodes.root)

    def _own(self, pauses: Pauses, place: int, wall: int) -> int:
        """Return a pause that the user remembers, as if it began at a local time, s."""
        return transported(pauses.pause[place], pauses.released[place], self.absence, wall)

    def _weight(self, example: int, active: float, now: float) -> float:
        """Return the weight of an example, with how active the user is at its end, and now."""
        weight: float = (active / now / self.lift[example]) ** self.pull
        return weight

    def draw(self, features: Float64s, memory: Memory, wall: int, chances: Float64s) -> int:
        """Return a pause, s.

        It is one of the user's own latest pauses, the more often the more there are, or one from a
        leaf of the forest. There, first the kind of the pause is chosen, by how often it comes and
        by how much more or less active the user will be then than those who made such pauses; then
        one of this kind, by how active the user will be at its end; of short ones each counts
        alike.

        ``chances`` are numbers between 0 and 1: for the tree or own pause, the kind and the pause.
        """
        own = memory.after(features[0] > 0.0)
        known = min(own.count, LATEST)
        share = known / (known + self.own)
        chance = chances[0]
        if chance < share:
            return self._own(own, int(chance / share * known), wall)
        chance = (chance - share) / (1.0 - share)
        leaf = self.nodes.leaf_of(int(chance * self.trees()), features)
        return self._draw_from(leaf, memory, wall, Chance(chances[1]), Chance(chances[2]))

    def _draw_from(
        self, leaf: int, memory: Memory, wall: int, of_kind: Chance, of_pause: Chance
    ) -> int:
        """Return a pause of a leaf, s."""
        size, first = self.size[leaf], self.nodes.child[leaf]
        now = memory.activity(self.rhythm, wall)
        total, kind = 0.0, 0
        for k in range(size):
            example = self.members[first + k]
            pause = transported(self.pause[example], self.released[example], self.absence, wall)
            active = memory.activity(self.rhythm, wall + pause)
            weight = self._weight(example, active, now)
            self.pauses[k], self.active[k] = pause, active
            total += weight
            if of_kind.take(weight / total):
                kind = kind_of(pause)
        total, chosen = 0.0, 0
        for k in range(size):
            if kind_of(self.pauses[k]) == kind:
                weight = self.active[k] if kind > 0 else 1.0
                total += weight
                if of_pause.take(weight / total):
                    chosen = self.pauses[k]
        return chosen

    def all_pauses(
        self,
        pauses: Int64s,
        weights: Float64s,
        active: Float64s,
        features: Float64s,
        memory: Memory,
        wall: int,
    ) -> int:
        """Write all pauses that a user may draw, and the weight of each; return how many.

        A pause that several trees offer comes several times. ``active`` is room for as many.
        """
        own = memory.after(features[0] > 0.0)
        known = min(own.count, LATEST)
        count = 0
        for place in range(known):
            pauses[count] = self._own(own, place, wall)
            weights[count] = 1.0 / (known + self.own)
            count += 1
        now = memory.activity(self.rhythm, wall)
        others = self.own / (known + self.own) / self.trees()
        for tree in range(self.trees()):
            leaf = self.nodes.leaf_of(tree, features)
            first, whole = count, 0.0
            begin = self.nodes.child[leaf]
            for place in range(begin, begin + self.size[leaf]):
                example = self.members[place]
                pause = transported(self.pause[example], self.released[example], self.absence, wall)
                pauses[count] = pause
                active[count] = memory.activity(self.rhythm, wall + pause)
                weights[count] = self._weight(example, active[count], now)
                whole += weights[count]
                count += 1
            _share_kinds(pauses, weights, active, first, count, others, whole)
        return count


def _share_kinds(
    pauses: Int64s,
    weights: Float64s,
    active: Float64s,
    first: int,
    count: int,
    share: float,
    whole: float,
) -> None:
    """Share the weight of each kind of pause of a leaf, whose share is given, among its pauses."""
    for kind in range(KINDS):
        before = after = 0.0
        for k in range(first, count):
            if kind_of(pauses[k]) == kind:
                before += weights[k]
                weights[k] = active[k] if kind > 0 else 1.0
                after += weights[k]
        for k in range(first, count):
            if kind_of(pauses[k]) == kind:
                weights[k] *= share * before / after / whole


class ChoiceForest:
    """A forest of choices.

    Parameters
    ----------
    choices
        Its arrays, :class:`~hpcrowd.agents.learned.trees.Choices`.
    """

    nodes: Nodes
    waits: Float64s
    again: Float64s

    def __init__(self, choices: Any) -> None:
        self.nodes = Nodes(choices)
        self.waits, self.again = _numbers(choices.waits), _numbers(choices.again)

    def chances(self, features: Float64s) -> tuple[float, float]:
        """Return the chances to wait for the end of a unit, and to submit such a unit again."""
        waits = again = 0.0
        trees = len(self.nodes.root)
        for tree in range(trees):
            leaf = self.nodes.leaf_of(tree, features)
            waits += self.waits[leaf]
            again += self.again[leaf]
        return waits / trees, again / trees


class Units:
    """The recorded units of users, one row each, and what they noticed then."""

    released: Int64s  # when the unit was released, s
    reason: Int64s  # 1 ended, 0 follows, -1 nothing
    source: Int64s  # the unit that released it
    start: Int64s  # its first submission, s
    last: Int64s  # and its last one
    end: Int64s  # s
    wall: Int64s  # local time of the release, s
    begins: Int64s  # of the first submission
    closes: Int64s  # of the last one
    rows: Int64s  # rows of the jobs of all units
    first: Int64s  # the first row of each unit, and one more
    features: Float64Rows  # what the user noticed at each release
    after: Float64Rows  # and when it had submitted the unit

    def __init__(self, columns: Any, rows: Any, first: Any, features: Any, after: Any) -> None:
        whole = [_whole(column) for column in columns]
        self.released, self.reason, self.source, self.start, self.last = whole[:5]
        self.end, self.wall, self.begins, self.closes = whole[5:]
        self.rows, self.first = _whole(rows), _whole(first)
        self.features, self.after = features, after

    def walk(self, kept: list[Any], rhythm: Rhythm, jobs: Jobs, low: int, high: int) -> None:
        """Let a user live through its units, ``low`` to ``high``.

        What it remembered at each release is put into ``kept``, None where nothing released it.
        """
        memory = Memory()
        first = self.first
        for unit in range(low, high):
            if self.reason[unit] >= 0:
                of = self.source[unit]
                notice(
                    self.features[unit], memory, rhythm, jobs,
                    self.rows[first[of] : first[of + 1]], first[unit] - first[unit - 1],
                    self.reason[unit] == 1, self.released[unit], self.wall[unit],
                    self._open_at(self.released[unit], low, unit),
                )  # fmt: skip
                kept[unit] = memory.copy()
            memory.note(
                self.reason[unit], self.released[unit], self.start[unit], self.last[unit],
                self.begins[unit],
            )  # fmt: skip
            notice(
                self.after[unit], memory, rhythm, jobs,
                self.rows[first[unit] : first[unit + 1]], first[unit + 1] - first[unit],
                False, self.last[unit], self.closes[unit],
                self._open_at(self.last[unit], low, unit + 1),
            )  # fmt: skip

    def _open_at(self, at: int, low: int, high: int) -> int:
        """Return how many of a user's last units before ``high`` are not over at a second."""
        count = 0
        for unit in range(max(high - LOOK_BACK, low), high):
            if self.end[unit] > at:
                count += 1
        return count
