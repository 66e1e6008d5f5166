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

from hpcrowd.environment.engine.kernel.profile import (
    HEAD,
    LAST_NODE,
    NEXT,
    NOW,
    PREVIOUS,
    STEPS,
    TIME,
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

# Columns of noted holes: from and to (s); jobs that fit have at most MOST processors, and more than
# LEAST, as many as were free before; from and to of the gain in it (s); whether it was made in this
# walk through the queue.
FROM, TO, MOST, LEAST, GAIN_BEGIN, GAIN_END, LATE = range(7)
COLUMNS = 7

#: Jobs without a place that are remembered for a time span.
MEMORY = 16

#: Holes that are kept apart; of more the list becomes one that may be any.
GAINS = 4096

#: Holes that are refused at once.
TOGETHER = 16

#: Holes noted last that may be filled at once.
RECENT = 8

#: Spans of time for which the shortest waiting jobs are known, and jobs for each.
SPANS = 32
JOBS_A_SPAN = 64

#: Classes of processors: exact up to 7, then four for each doubling; the last is for all above.
CLASSES = 80

#: Steps examined for each waiting job, in a walk through the queue, that are many.
MANY_STEPS = 64

#: Waiting jobs for which costs are noted, as these are whole numbers.
JOBS_A_COST = 16

#: Binary logarithm of the walks in which a cost fades, so that the other way is tried again.
FORGOTTEN = 10

# Places in ``m`` after those of the profile: noted holes; earliest gain that not all jobs have
# looked at, and that of this walk; spans in use; walks until the shortest jobs are looked up
# again, -1 if they are not known; whether ``noted`` has two time spans instead of holes; whether
# holes are to be noted; what walks cost lately with spans and with holes, in steps for each
# :data:`JOBS_A_COST` waiting jobs.
NOTED, GAIN_FROM, LATE_FROM, SPANS_USED, FRESH, WHOLE, HOLES, SPAN_COST, HOLE_COST = range(5, 14)


@dataclass(eq=False, slots=True)
class Gains:
    """The noted gains, and the shortest waiting jobs."""

    noted: Int64Rows  #: see FROM, shape (COLUMNS, GAINS + TOGETHER); the last two are for a moment
    #: by time span, how many refused jobs are remembered; of each its processors, its length (s),
    #: and the time before which it found no place, shape (2, 1 + 3 * MEMORY)
    refused: Int64Rows
    begins: Int64s  #: begins of the spans (s), rising, shape (SPANS,)
    #: the shortest length (s) of a job of at most this class that is planned to start in this span
    #: or later, by span and class, shape (SPANS, CLASSES)
    shortest: Int64Rows
    #: the length (s) of the longest noted hole for this class or more, that begins in this span or
    #: earlier, by span and class, shape (SPANS, CLASSES)
    longest: Int64Rows
    stack: Int64Rows  #: begins (s) and processors of holes that are not over, shape (2, nodes)


def class_of(processors: int) -> int:
    """Return the class of a number of processors."""
    shift = 0
    while processors >> shift >= 8:
        shift += 1
    return min(4 * shift + (processors >> shift), CLASSES - 1)


def forget_jobs(gains: Gains, m: Int64s, starts: Int64Steps) -> None:
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
    m[SPANS_USED] = spans
    if not m[WHOLE]:
        _measure_noted(gains, m)


def _span_of(gains: Gains, m: Int64s, time: int) -> int:
    """Return the last span that begins at ``time`` or before."""
    span, count = 0, m[SPANS_USED]
    while count > 1:
        half = count >> 1
        span += half * int(gains.begins[span + half] <= time)
        count -= half
    return span


def know_job(gains: Gains, m: Int64s, start: int, processors: int, length: int) -> None:
    """Note a waiting job, by itself: see :func:`spread` for many."""
    for span in range(_span_of(gains, m, start) + 1):
        for kind in range(class_of(processors), CLASSES):
            if gains.shortest[span, kind] <= length:
                break
            gains.shortest[span, kind] = length


def know_many(gains: Gains, m: Int64s, start: int, kind: int, length: int) -> None:
    """Note a waiting job, of many; :func:`spread` comes after them."""
    span = _span_of(gains, m, start)
    gains.shortest[span, kind] = min(gains.shortest[span, kind], length)


def spread(gains: Gains, m: Int64s) -> None:
    """Let what is known of a span and class hold for earlier spans and higher classes."""
    shortest = gains.shortest
    for span in range(m[SPANS_USED] - 1, -1, -1):
        least = FOREVER
        for kind in range(CLASSES):
            if span + 1 < m[SPANS_USED]:
                shortest[span, kind] = min(shortest[span, kind], shortest[span + 1, kind])
            least = min(least, shortest[span, kind])
            shortest[span, kind] = least


def _widen(gains: Gains, m: Int64s, begin: int, length: int, processors: int) -> None:
    """Note how long a hole is, for jobs that need as much or less and start later."""
    longest = gains.longest
    most = class_of(processors)
    for span in range(_span_of(gains, m, begin), m[SPANS_USED]):
        if longest[span, most] >= length:
            return
        for kind in range(most, -1, -1):
            if longest[span, kind] >= length:
                break
            longest[span, kind] = length


def note(
    gains: Gains, m: Int64s, begin: int, end: int, most: int, gain: tuple[int, int, int, int]
) -> None:
    """Note a hole of at most so many processors from ``begin`` to ``end``.

    ``gain`` has the other columns: LEAST, GAIN_BEGIN, GAIN_END and LATE.
    """
    noted = gains.noted
    least, gain_begin, gain_end, late = gain
    if m[WHOLE]:
        note_span(gains, m, gain_begin, gain_end, most, late)
        return
    for k in range(m[NOTED] - 1, max(m[NOTED] - RECENT, 0) - 1, -1):
        if (
            noted[FROM, k] <= begin
            and noted[TO, k] >= end
            and noted[MOST, k] >= most
            and noted[LEAST, k] <= least
            and noted[GAIN_BEGIN, k] <= gain_begin
            and noted[GAIN_END, k] >= gain_end
        ):
            noted[LATE, k] |= late
            return
    if m[NOTED] == GAINS:
        note_span(gains, m, gain_begin, gain_end, most, late)
        return
    _widen(gains, m, begin, end - begin, most)
    k = m[NOTED]
    noted[FROM, k], noted[TO, k], noted[MOST, k], noted[LATE, k] = begin, end, most, late
    noted[LEAST, k], noted[GAIN_BEGIN, k], noted[GAIN_END, k] = least, gain_begin, gain_end
    m[NOTED] += 1


def note_span(gains: Gains, m: Int64s, begin: int, end: int, most: int, late: int) -> None:
    """Note, instead of single holes, the time in which processors became free.

    There is one time span for earlier gains and one for those of this walk.
    """
    noted = gains.noted
    if not m[WHOLE]:
        for k in range(2):
            _clear_span(noted[:, GAINS + k])
        for k in range(m[NOTED]):
            _stretch(
                noted[:, GAINS + noted[LATE, k]],
                noted[GAIN_BEGIN, k],
                noted[GAIN_END, k],
                noted[MOST, k],
            )
        for k in range(2):
            _copy(noted, k, GAINS + k)
            noted[LATE, k], gains.refused[k, 0] = k, 0
        m[NOTED], m[WHOLE] = 2, 1
    _stretch(noted[:, late], begin, end, most)
    refused = gains.refused[late]
    for k in range(1, 1 + 3 * refused[0], 3):
        refused[k + 2] = min(refused[k + 2], begin - refused[k + 1] + 1)


def _clear_span(span: Int64Steps) -> None:
    """Make a time span empty."""
    span[FROM], span[TO], span[MOST] = FOREVER, 0, 0


def _copy(noted: Int64Rows, to: int, row: int) -> None:
    """Copy a row of the noted gains."""
    for column in range(COLUMNS):
        noted[column, to] = noted[column, row]


def _stretch(span: Int64Steps, begin: int, end: int, most: int) -> None:
    """Stretch a time span over another."""
    span[FROM] = min(span[FROM], begin)
    span[TO] = max(span[TO], end)
    span[MOST] = max(span[MOST], most)


def gained(m: Int64s, begin: int, late: int) -> None:
    """Note when processors became free, and whether that was in this walk."""
    m[GAIN_FROM] = min(m[GAIN_FROM], begin)
    if late:
        m[LATE_FROM] = min(m[LATE_FROM], begin)


def _matters(gains: Gains, m: Int64s, begin: int, end: int, processors: int) -> bool:
    """Return whether a waiting job that starts after ``begin`` may fit into a hole."""
    kind = class_of(processors)
    if gains.shortest[0, kind] > end - begin:
        return False
    return gains.shortest[_span_of(gains, m, begin), kind] <= end - begin


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
    nodes, m = profile.nodes, profile.m
    least = FOREVER  # free before
    node = first
    while node != last:
        if nodes[nodes[node, NEXT], TIME] > since(profile, node):
            least = min(least, level(profile, node) - processors)
        node = nodes[node, NEXT]
    kind = 1  # processors of the smallest waiting job
    while kind < 8 and gains.shortest[0, kind] == FOREVER:
        kind += 1
    least = max(least, kind - 1)
    left = first
    while left != m[HEAD] and level(profile, nodes[left, PREVIOUS]) > least:
        left = nodes[left, PREVIOUS]
        m[STEPS] += 1
    gain = least, since(profile, first), nodes[last, TIME], late
    _note_holes(profile, gains, left, 0, FOREVER, gain)


def _note_holes(
    profile: Profile, gains: Gains, node: int, low: int, high: int, gain: tuple[int, int, int, int]
) -> None:
    """Note the holes that a gain is part of.

    Steps from ``node`` on are examined, and only times from ``low`` to ``high`` count. A hole ends
    where the begun ones, which are ever higher, have to come down. ``gain`` is as in :func:`note`.
    """
    nodes, m, stack = profile.nodes, profile.m, gains.stack
    least, gain_begin, gain_end, _ = gain
    depth = 0
    while True:
        m[STEPS] += 1
        time = max(since(profile, node), low)
        over = node == LAST_NODE or time >= high
        if not over and nodes[nodes[node, NEXT], TIME] <= time:
            node = nodes[node, NEXT]
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
                and _matters(gains, m, since_when, time, most)
            ):
                note(gains, m, since_when, time, most, gain)
        if free > least:
            stack[0, depth], stack[1, depth] = since_when, free
            depth += 1
        elif over or time >= gain_end:
            return
        node = nodes[node, NEXT]


def _gain_of(noted: Int64Rows, k: int) -> tuple[int, int, int, int]:
    """Return the rows that :func:`note` takes as ``gain``."""
    return noted[LEAST, k], noted[GAIN_BEGIN, k], noted[GAIN_END, k], noted[LATE, k]


def fill(profile: Profile, gains: Gains, node: int) -> None:
    """Replace those of the latest holes by their rest that a job fills, which begins at a node."""
    nodes, noted, m = profile.nodes, gains.noted, profile.m
    time = since(profile, node)
    k = m[NOTED]
    lowest = max(k - RECENT, 0)
    while k > lowest:
        k -= 1
        begin, end, most, gain = noted[FROM, k], noted[TO, k], noted[MOST, k], _gain_of(noted, k)
        if not begin <= time < end:
            continue
        step = node
        while step != m[HEAD] and nodes[step, TIME] > begin:
            step = nodes[step, PREVIOUS]
        first = step
        while step != LAST_NODE and nodes[step, TIME] < end:
            lasts = nodes[nodes[step, NEXT], TIME] > since(profile, step)
            if lasts and level(profile, step) < most:
                m[NOTED] -= 1
                _copy(noted, k, m[NOTED])
                _note_holes(profile, gains, first, begin, end, gain)
                if m[WHOLE]:
                    return
                break
            step = nodes[step, NEXT]


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
    span = gains.noted[:, k]
    until = min(span[TO], start)
    if span[FROM] >= until or processors > span[MOST]:
        return start
    known = _refused_until(gains.refused[k], processors, length)
    if known >= until:
        return start
    begin = begin_in(profile, span[FROM], span[TO], processors, length, start, known)
    if begin >= 0:
        return begin
    _refuse(gains.refused[k], processors, length, until)
    return start


def jump(
    profile: Profile, gains: Gains, processors: int, kind: int, length: int, start: int
) -> int:
    """Return the earliest start in what became free, before ``start``, or ``start`` itself."""
    m = profile.m
    if m[WHOLE]:
        found = _jump_in_span(profile, gains, 0, processors, length, start)
        return min(found, _jump_in_span(profile, gains, 1, processors, length, start))
    if (
        m[NOTED] == 0
        or gains.longest[m[SPANS_USED] - 1, kind] < length
        or gains.longest[_span_of(gains, m, start), kind] < length
    ):
        return start
    return _jump_into_hole(profile, gains, processors, length, start)


def _misses(noted: Int64Rows, k: int, processors: int, length: int, before: int) -> int:
    """Return a number below 0 if a job does not fit into a hole before a time."""
    return (
        (before - 1 - noted[FROM, k])
        | (noted[MOST, k] - processors)
        | (processors - 1 - noted[LEAST, k])
        | (noted[TO, k] - noted[FROM, k] - length)
    )


def _next_hole(
    noted: Int64Rows, k: int, count: int, processors: int, length: int, before: int
) -> int:
    """Return the first hole, from one on, into which a job fits before a time; else ``count``."""
    while k < count:
        if k % TOGETHER == 0:
            misses = -1
            for j in range(k, k + TOGETHER):
                misses &= _misses(noted, j, processors, length, before)
            if misses < 0:
                k += TOGETHER
                continue
        if _misses(noted, k, processors, length, before) >= 0:
            return k
        k += 1
    return count


def _jump_into_hole(
    profile: Profile, gains: Gains, processors: int, length: int, start: int
) -> int:
    """Return the earliest start in the noted holes, or ``start``; measure filled holes again."""
    noted, m = gains.noted, profile.m
    found = start
    m[STEPS] += m[NOTED] >> 3  # a look is about an eighth of a step
    k = 0
    while True:
        k = _next_hole(noted, k, m[NOTED], processors, length, found)
        if k == m[NOTED]:
            return found
        begin, end = noted[FROM, k], noted[TO, k]
        node = node_at(profile, max(begin, m[NOW]))
        if is_free(profile, node, processors, max(begin, m[NOW]) + length):
            found = min(found, since(profile, run_begin(profile, node, processors)))
            k += 1
            continue
        gain = _gain_of(noted, k)
        m[NOTED] -= 1
        _copy(noted, k, m[NOTED])
        _note_holes(profile, gains, node, begin, end, gain)
        if m[WHOLE]:
            found = _jump_in_span(profile, gains, 0, processors, length, start)
            return min(found, _jump_in_span(profile, gains, 1, processors, length, start))


def _measure_noted(gains: Gains, m: Int64s) -> None:
    """Measure the noted holes again."""
    noted = gains.noted
    for span in range(m[SPANS_USED]):
        for kind in range(CLASSES):
            gains.longest[span, kind] = 0
    for k in range(m[NOTED]):
        _widen(gains, m, noted[FROM, k], noted[TO, k] - noted[FROM, k], noted[MOST, k])


def _choose(m: Int64s, waiting: int) -> None:
    """Decide whether to note holes from now on, by the steps of this walk and of earlier ones."""
    cost = m[STEPS] * JOBS_A_COST // max(waiting, MANY_STEPS)
    if m[HOLES] and m[WHOLE]:  # too many holes: spans were searched all the same
        m[SPAN_COST] = cost
        return
    this, other = (HOLE_COST, SPAN_COST) if m[HOLES] else (SPAN_COST, HOLE_COST)
    m[this] = cost
    m[other] -= (m[other] >> FORGOTTEN) + 1
    if cost > max(MANY_STEPS * JOBS_A_COST, m[other]):
        m[HOLES] = 1 - m[HOLES]


def age(gains: Gains, m: Int64s, waiting: int) -> None:
    """After a walk through the queue: forget older gains, keep those made in the walk.

    ``waiting`` is the length of the queue.
    """
    noted = gains.noted
    m[GAIN_FROM], m[LATE_FROM] = m[LATE_FROM], FOREVER
    _choose(m, waiting)
    m[STEPS] = 0
    if m[GAIN_FROM] == FOREVER:
        m[NOTED] = m[WHOLE] = 0
    elif m[WHOLE]:
        _copy(noted, 0, 1)
        noted[LATE, 0] = 0
        _clear_span(noted[:, 1])
        for k in range(gains.refused.shape[1]):
            gains.refused[0, k] = gains.refused[1, k]
        gains.refused[1, 0] = 0
        if m[HOLES]:  # they may be anywhere, and are measured when a job does not fit
            noted[GAIN_BEGIN, 0], noted[GAIN_END, 0] = noted[FROM, 0], noted[TO, 0]
            noted[FROM, 0], noted[TO, 0], noted[LEAST, 0] = 0, FOREVER, 0
            m[NOTED], m[WHOLE] = 1, 0
    else:
        kept = 0
        for k in range(m[NOTED]):
            if noted[LATE, k]:
                _copy(noted, kept, k)
                noted[LATE, kept] = 0
                kept += 1
        m[NOTED] = kept
    if m[HOLES]:
        _measure_noted(gains, m)
