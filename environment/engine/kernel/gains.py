"""What became free in the plan, and which waiting jobs may use it to start earlier.

A reservation is as early as possible when it is made or moved. It can be earlier only where
processors became free since. If that is just before its start, the job slides into it, which one
step of the profile shows. Otherwise it jumps, into a hole that is long and wide enough. There are
two ways to find holes:

Spans
    The time in which processors became free is known, of earlier gains and of those of this walk
    through the queue, and is searched for each job. Jobs without a place are remembered: whoever
    needs as much for as long has none either.
Holes
    The holes that a gain made are noted, if some waiting job that starts later may fit. In a long
    queue nearly all jobs are then refused by a look at a table. A noted hole that was filled since
    is replaced by what is left of it, when a job does not fit.

Spans are better in short queues, holes in long ones; the steps that walks examined decide.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpcrowd.environment.engine.kernel.arrays import rows
from hpcrowd.environment.engine.kernel.profile import (
    LAST_NODE,
    Profile,
    begin_in,
    is_free,
    level,
    node_at,
    run_begin,
    since,
)
from hpcrowd.environment.jobs import Int64Rows, Int64s, Int64Steps
from hpcrowd.environment.stops import FOREVER

#: Rows of noted holes.
HOLE_ROWS = 7

#: Jobs without a place that are remembered for a time span.
MEMORY = 16

#: Holes that are kept apart; of more the list becomes one that may be any.
GAINS = 4096

#: Holes that are refused at once.
TOGETHER = 16

#: Holes noted last that may be filled at once.
RECENT = 8

#: Spans of time for which the shortest waiting jobs are known, and jobs for each.
SPANS = 1024
JOBS_A_SPAN = 12

#: Classes of processors: exact up to 7, then four for each doubling; the last is for all above.
CLASSES = 80

#: Steps examined for each waiting job, in a walk through the queue, that are many.
MANY_STEPS = 64

#: Waiting jobs for which costs are noted, as these are whole numbers.
JOBS_A_COST = 16

#: Binary logarithm of the walks in which a cost fades, so that the other way is tried again.
FORGOTTEN = 10


@dataclass(eq=False, slots=True)
class Gains:
    """The noted gains, and the shortest waiting jobs."""

    noted: Int64Rows  #: holes, shape (HOLE_ROWS, GAINS + TOGETHER); the last two are for a moment
    #: by time span, how many refused jobs are remembered; of each its processors, its length (s),
    #: and the time before which it found no place, shape (2, 1 + 3 * MEMORY)
    refused: Int64Rows
    begins: Int64s  #: begins of the spans (s), rising, shape (SPANS,)
    #: the shortest length (s) of a job of at most this class that is planned to start in this span
    #: or later, by span and class, shape (SPANS, CLASSES)
    shortest: Int64Rows
    #: the length (s) of the longest noted hole that jobs of this class may use, in a Fenwick tree
    #: over the spans in which they begin, by place and class; of all first, shape (1 + SPANS,
    #: CLASSES)
    longest: Int64Rows
    stack: Int64Rows  #: begins (s) and processors of holes that are not over, shape (2, nodes)
    count: int = 0  #: noted holes
    gain_from: int = FOREVER  #: earliest gain that not all jobs have looked at
    late_from: int = FOREVER  #: and that of this walk
    spans: int = 1  #: in use
    fresh: int = 0  #: walks until the shortest jobs are looked up again, -1 if they are not known
    whole: bool = False  #: ``noted`` has two time spans instead of holes
    holes: bool = False  #: these are to be noted
    span_cost: int = 0  #: of walks with spans lately, in steps for each JOBS_A_COST waiting jobs
    hole_cost: int = 0  #: and with holes

    #: Of a noted hole its begin and end (s); jobs that fit have at most ``most`` processors, and
    #: more than ``least``, as many as were free before; begin and end of the gain in it (s);
    #: whether it was made in this walk through the queue.
    begin, end, most, least, gain_begin, gain_end, late = rows("noted", HOLE_ROWS)


def class_of(processors: int) -> int:
    """Return the class of a number of processors."""
    shift = 0
    while processors >> shift >= 8:
        shift += 1
    return min(4 * shift + (processors >> shift), CLASSES - 1)


def forget_jobs(gains: Gains, starts: Int64Steps) -> None:
    """Begin new spans, at these starts (s) of waiting jobs; no job is known."""
    spans = len(starts)
    for k in range(spans):
        at = k
        while at > 0 and gains.begins[at - 1] > starts[k]:
            gains.begins[at] = gains.begins[at - 1]
            at -= 1
        gains.begins[at] = starts[k]
    gains.begins[0] = -FOREVER
    for k in range(spans):
        for kind in range(CLASSES):
            gains.shortest[k, kind] = FOREVER
    gains.spans = spans
    if not gains.whole:
        _measure_noted(gains)


def _span_of(gains: Gains, time: int) -> int:
    """Return the last span that begins at ``time`` or before."""
    span, count = 0, gains.spans
    while count > 1:
        half = count >> 1
        span += half * int(gains.begins[span + half] <= time)
        count -= half
    return span


def know_job(gains: Gains, start: int, kind: int, length: int) -> int:
    """Note a waiting job, by itself, and return its span: see :func:`know_many`."""
    last = span = _span_of(gains, start)
    while span >= 0 and gains.shortest[span, kind] > length:  # else neither in earlier spans
        for larger in range(kind, CLASSES):
            gains.shortest[span, larger] = min(gains.shortest[span, larger], length)
        span -= 1
    return last


def know_many(gains: Gains, start: int, kind: int, length: int) -> int:
    """Note a waiting job, of many, and return its span; :func:`spread` comes after them."""
    span = _span_of(gains, start)
    gains.shortest[span, kind] = min(gains.shortest[span, kind], length)
    return span


def spread(gains: Gains) -> None:
    """Let what is known of a span and class hold for earlier spans and higher classes."""
    shortest = gains.shortest
    for span in range(gains.spans - 1, -1, -1):
        least = FOREVER
        for kind in range(CLASSES):
            if span + 1 < gains.spans:
                shortest[span, kind] = min(shortest[span, kind], shortest[span + 1, kind])
            least = min(least, shortest[span, kind])
            shortest[span, kind] = least


def _widen(gains: Gains, k: int) -> None:
    """Note how long a hole is, for jobs that it has room for and that start later."""
    longest, length = gains.longest, gains.end[k] - gains.begin[k]
    first, last = class_of(gains.least[k] + 1), class_of(gains.most[k])
    for kind in range(first, last + 1):
        longest[0, kind] = max(longest[0, kind], length)
    place = 1 + _span_of(gains, gains.begin[k])
    while place <= gains.spans:
        longer = False
        for kind in range(first, last + 1):
            longer |= longest[place, kind] < length
            longest[place, kind] = max(longest[place, kind], length)
        if not longer:  # nor in a place above
            return
        place += place & -place


def may_jump(gains: Gains, kind: int, length: int, span: int) -> bool:
    """Return whether a job of a class may fit into what became free up to the end of a span."""
    if gains.whole:
        return True
    if gains.count == 0 or gains.longest[0, kind] < length:
        return False
    place = span + 1
    while place:
        if gains.longest[place, kind] >= length:
            return True
        place -= place & -place
    return False


def note(gains: Gains, begin: int, end: int, most: int, gain: tuple[int, int, int, int]) -> None:
    """Note a hole of at most so many processors from ``begin`` to ``end``.

    ``gain`` has the others of its rows: ``least``, ``gain_begin``, ``gain_end`` and ``late``.
    """
    least, gain_begin, gain_end, late = gain
    if gains.whole:
        note_span(gains, gain_begin, gain_end, most, late)
        return
    for k in range(gains.count - 1, max(gains.count - RECENT, 0) - 1, -1):
        if (
            gains.begin[k] <= begin
            and gains.end[k] >= end
            and gains.most[k] >= most
            and gains.least[k] <= least
            and gains.gain_begin[k] <= gain_begin
            and gains.gain_end[k] >= gain_end
        ):
            gains.late[k] |= late
            return
    if gains.count == GAINS:
        note_span(gains, gain_begin, gain_end, most, late)
        return
    k = gains.count
    gains.begin[k], gains.end[k], gains.most[k], gains.late[k] = begin, end, most, late
    gains.least[k], gains.gain_begin[k], gains.gain_end[k] = least, gain_begin, gain_end
    gains.count += 1
    _widen(gains, k)


def note_span(gains: Gains, begin: int, end: int, most: int, late: int) -> None:
    """Note, instead of single holes, the time in which processors became free.

    There is one time span for earlier gains and one for those of this walk.
    """
    if not gains.whole:
        for k in range(2):
            _clear_span(gains, GAINS + k)
        for k in range(gains.count):
            whole = GAINS + gains.late[k]
            _stretch(gains, whole, gains.gain_begin[k], gains.gain_end[k], gains.most[k])
        for k in range(2):
            _copy(gains, k, GAINS + k)
            gains.late[k], gains.refused[k, 0] = k, 0
        gains.count, gains.whole = 2, True
    _stretch(gains, late, begin, end, most)
    refused = gains.refused[late]
    for k in range(1, 1 + 3 * refused[0], 3):
        refused[k + 2] = min(refused[k + 2], begin - refused[k + 1] + 1)


def _clear_span(gains: Gains, k: int) -> None:
    """Make a time span empty."""
    gains.begin[k], gains.end[k], gains.most[k] = FOREVER, 0, 0


def _copy(gains: Gains, to: int, row: int) -> None:
    """Copy a row of the noted gains."""
    for column in range(HOLE_ROWS):
        gains.noted[column, to] = gains.noted[column, row]


def _stretch(gains: Gains, k: int, begin: int, end: int, most: int) -> None:
    """Stretch a time span over another."""
    gains.begin[k] = min(gains.begin[k], begin)
    gains.end[k] = max(gains.end[k], end)
    gains.most[k] = max(gains.most[k], most)


def gained(gains: Gains, begin: int, late: int) -> None:
    """Note when processors became free, and whether that was in this walk."""
    gains.gain_from = min(gains.gain_from, begin)
    if late:
        gains.late_from = min(gains.late_from, begin)


def _matters(gains: Gains, begin: int, end: int, processors: int) -> bool:
    """Return whether a waiting job that starts after ``begin`` may fit into a hole."""
    kind = class_of(processors)
    if gains.shortest[0, kind] > end - begin:
        return False
    return gains.shortest[_span_of(gains, begin), kind] <= end - begin


def examine(
    profile: Profile, gains: Gains, first: int, last: int, processors: int, late: int
) -> None:
    """Note the holes that a gain made, which waiting jobs may fit into.

    Parameters
    ----------
    profile, gains
        The plan.
    first, last
        Nodes where the gain begins and ends.
    processors
        How many became free.
    late
        Whether it was made in this walk.
    """
    least = FOREVER  # free before
    node = first
    while node != last:
        if profile.time[profile.next[node]] > since(profile, node):
            least = min(least, level(profile, node) - processors)
        node = profile.next[node]
    kind = 1  # processors of the smallest waiting job
    while kind < 8 and gains.shortest[0, kind] == FOREVER:
        kind += 1
    least = max(least, kind - 1)
    left = first
    while left != profile.head and level(profile, profile.previous[left]) > least:
        left = profile.previous[left]
        profile.steps += 1
    gain = least, since(profile, first), profile.time[last], late
    _note_holes(profile, gains, left, 0, FOREVER, gain)


def _note_holes(
    profile: Profile, gains: Gains, node: int, low: int, high: int, gain: tuple[int, int, int, int]
) -> None:
    """Note the holes that a gain is part of.

    Steps from ``node`` on are examined, and only times from ``low`` to ``high`` count. A hole ends
    where the begun ones, which are ever higher, have to come down. ``gain`` is as in :func:`note`.
    """
    stack = gains.stack
    least, gain_begin, gain_end, _ = gain
    depth = 0
    while True:
        profile.steps += 1
        time = max(since(profile, node), low)
        over = node == LAST_NODE or time >= high
        if not over and profile.time[profile.next[node]] <= time:
            node = profile.next[node]
            continue
        time = min(time, high)
        free = 0 if over else level(profile, node)
        since_when = time
        while depth and stack[1, depth - 1] >= free:
            depth -= 1
            since_when = stack[0, depth]
            most = stack[1, depth]
            if (
                most > free
                and since_when < gain_end
                and time > gain_begin
                and _matters(gains, since_when, time, most)
            ):
                note(gains, since_when, time, most, gain)
        if free > least:
            stack[0, depth], stack[1, depth] = since_when, free
            depth += 1
        elif over or time >= gain_end:
            return
        node = profile.next[node]


def _gain_of(gains: Gains, k: int) -> tuple[int, int, int, int]:
    """Return the rows that :func:`note` takes as ``gain``."""
    return gains.least[k], gains.gain_begin[k], gains.gain_end[k], gains.late[k]


def fill(profile: Profile, gains: Gains, node: int) -> None:
    """Replace those of the latest holes by their rest that a job fills, which begins at a node."""
    time = since(profile, node)
    k = gains.count
    lowest = max(k - RECENT, 0)
    while k > lowest:
        k -= 1
        begin, end, most = gains.begin[k], gains.end[k], gains.most[k]
        if not begin <= time < end:
            continue
        gain = _gain_of(gains, k)
        step = node
        while step != profile.head and profile.time[step] > begin:
            step = profile.previous[step]
        first = step
        while step != LAST_NODE and profile.time[step] < end:
            lasts = profile.time[profile.next[step]] > since(profile, step)
            if lasts and level(profile, step) < most:
                gains.count -= 1
                _copy(gains, k, gains.count)
                _note_holes(profile, gains, first, begin, end, gain)
                if gains.whole:
                    return
                break
            step = profile.next[step]


def _refused_until(refused: Int64s, processors: int, length: int) -> int:
    """Return before when no job can start that needs as much, since others found no place."""
    until = -1
    for k in range(1, 1 + 3 * refused[0], 3):
        if refused[k] <= processors and refused[k + 1] <= length:
            until = max(until, refused[k + 2])
    return until


def _refuse(refused: Int64s, processors: int, length: int, until: int) -> None:
    """Remember that a job found no place before ``until``."""
    count = refused[0]
    at = count if count < MEMORY else (processors + length) % MEMORY
    for k in range(count):
        of = 1 + 3 * k
        if refused[of] >= processors and refused[of + 1] >= length and refused[of + 2] <= until:
            at = k
            break
    of = 1 + 3 * at
    refused[of], refused[of + 1], refused[of + 2] = processors, length, until
    refused[0] = max(count, at + 1)


def _jump_in_span(
    profile: Profile, gains: Gains, k: int, processors: int, length: int, start: int
) -> int:
    """Return the earliest start in a time span, or ``start`` itself."""
    until = min(gains.end[k], start)
    if gains.begin[k] >= until or processors > gains.most[k]:
        return start
    known = _refused_until(gains.refused[k], processors, length)
    if known >= until:
        return start
    begin = begin_in(profile, gains.begin[k], gains.end[k], processors, length, start, known)
    if begin >= 0:
        return begin
    _refuse(gains.refused[k], processors, length, until)
    return start


def jump(profile: Profile, gains: Gains, processors: int, length: int, start: int) -> int:
    """Return the earliest start in what became free, before ``start``, or ``start`` itself."""
    if gains.whole:
        found = _jump_in_span(profile, gains, 0, processors, length, start)
        return min(found, _jump_in_span(profile, gains, 1, processors, length, start))
    return _jump_into_hole(profile, gains, processors, length, start)


def _next_hole(gains: Gains, k: int, count: int, processors: int, length: int, before: int) -> int:
    """Return the first hole, from one on, into which a job fits before a time; else ``count``."""
    while k < count:
        misses = -1  # below 0 while no hole fits; this way the compiler takes several at once
        for j in range(TOGETHER):
            misses &= (
                (before - 1 - gains.begin[k + j])
                | (gains.most[k + j] - processors)
                | (processors - 1 - gains.least[k + j])
                | (gains.end[k + j] - gains.begin[k + j] - length)
            )
        if misses >= 0:
            break
        k += TOGETHER
    while k < count and not (
        gains.begin[k] < before
        and gains.most[k] >= processors > gains.least[k]
        and gains.end[k] - gains.begin[k] >= length
    ):
        k += 1
    return min(k, count)


def _jump_into_hole(
    profile: Profile, gains: Gains, processors: int, length: int, start: int
) -> int:
    """Return the earliest start in the noted holes, or ``start``; measure filled holes again."""
    found = start
    profile.steps += gains.count >> 3  # a look is about an eighth of a step
    k = 0
    while True:
        k = _next_hole(gains, k, gains.count, processors, length, found)
        if k == gains.count:
            return found
        begin, end = gains.begin[k], gains.end[k]
        node = node_at(profile, max(begin, profile.now))
        if is_free(profile, node, processors, max(begin, profile.now) + length):
            found = min(found, since(profile, run_begin(profile, node, processors)))
            k += 1
            continue
        gain = _gain_of(gains, k)
        gains.count -= 1
        _copy(gains, k, gains.count)
        _note_holes(profile, gains, node, begin, end, gain)
        if gains.whole:
            found = _jump_in_span(profile, gains, 0, processors, length, start)
            return min(found, _jump_in_span(profile, gains, 1, processors, length, start))


def _measure_noted(gains: Gains) -> None:
    """Measure the noted holes again."""
    for place in range(1 + gains.spans):
        for kind in range(CLASSES):
            gains.longest[place, kind] = 0
    for k in range(gains.count):
        _widen(gains, k)


def _choose(gains: Gains, steps: int, waiting: int) -> None:
    """Decide whether to note holes from now on, by the steps of this walk and of earlier ones."""
    cost = steps * JOBS_A_COST // max(waiting, MANY_STEPS)
    if gains.holes and gains.whole:  # too many holes: spans were searched all the same
        gains.span_cost = cost
        return
    if gains.holes:
        gains.hole_cost = cost
        gains.span_cost -= (gains.span_cost >> FORGOTTEN) + 1
        other = gains.span_cost
    else:
        gains.span_cost = cost
        gains.hole_cost -= (gains.hole_cost >> FORGOTTEN) + 1
        other = gains.hole_cost
    if cost > max(MANY_STEPS * JOBS_A_COST, other):
        gains.holes = not gains.holes


def age(profile: Profile, gains: Gains, waiting: int) -> None:
    """After a walk through the queue: forget older gains, keep those made in the walk.

    ``waiting`` is the length of the queue.
    """
    gains.gain_from, gains.late_from = gains.late_from, FOREVER
    _choose(gains, profile.steps, waiting)
    profile.steps = 0
    if gains.gain_from == FOREVER:
        gains.count, gains.whole = 0, False
    elif gains.whole:
        _copy(gains, 0, 1)
        gains.late[0] = 0
        _clear_span(gains, 1)
        for k in range(gains.refused.shape[1]):
            gains.refused[0, k] = gains.refused[1, k]
        gains.refused[1, 0] = 0
        if gains.holes:  # they may be anywhere, and are measured when a job does not fit
            gains.gain_begin[0], gains.gain_end[0] = gains.begin[0], gains.end[0]
            gains.begin[0], gains.end[0], gains.least[0] = 0, FOREVER, 0
            gains.count, gains.whole = 1, False
    else:
        kept = 0
        for k in range(gains.count):
            if gains.late[k]:
                _copy(gains, kept, k)
                gains.late[kept] = 0
                kept += 1
        gains.count = kept
    if gains.holes:
        _measure_noted(gains)
