"""A plan of reservations kept from pass to pass: conservative and selective backfilling.

The same policies, written to be read, stand in ``environment/schedulers/plan.py``. There every
waiting job is looked at in every pass. Here a job with a reservation is only looked at when
something became free before its start that it may not have seen, and is not plainly too small.

Rows of ``queue``: see :data:`JOB`; by submission and job number. ``believed`` holds for each
running job when it is believed to end; ``due`` is a heap of these times, in which entries that
``believed`` does not confirm are void. ``misses`` holds searches of this walk that found nothing.
"""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.believed import believed_end
from hpcrowd.environment.engine.kernel.heap import heap_pop, heap_push
from hpcrowd.environment.engine.kernel.loop import advance
from hpcrowd.environment.engine.kernel.places import (
    END,
    ENQUEUED,
    ESTIMATE,
    EXPECTED_END,
    NEVER,
    NOW,
    PASS,
    PROCESSORS,
    PROMISED,
    QUEUE_HEAD,
    QUEUE_TAIL,
    REQUESTED_TIME,
    RUNNING,
    START,
    WAITING,
    WAKE,
    compiled,
    inlined,
)
from hpcrowd.environment.engine.kernel.profile import (
    BEFORE,
    BLOCKS,
    FREE,
    GAIN_FROM,
    LATELY,
    TIME,
    WIDTH,
    after,
    age_gains,
    change,
    earlier,
    earliest,
    fits_now,
    free_now,
    most_gained,
    pass_time,
    position_of,
    read,
)
from hpcrowd.environment.engine.kernel.scheduling import start_job
from hpcrowd.environment.stops import FOREVER

#: Rows of the queue: job, processors, length in the plan (s), planned start or NEVER, whether the
#: job is to have a reservation, submission, category.
JOB, NEED, LENGTH, PLANNED, RESERVED, SUBMITTED, CATEGORY = range(7)
QUEUE_ROWS = 7

#: More places in ``m`` after those of the profile: jobs in the queue, entries of ``due``, whether
#: a job is to find its first place, known misses and where the next goes, changes of reservations.
COUNT, DUE, UNPLACED, MISSES, NEXT_MISS, MOVES = range(3, 9)
PLACES = 9


@compiled
def take_over(jobs, s, steps, heads, m, believed, due, running):
    """Put jobs that run already into the plan."""
    now = s[NOW]
    for k in range(len(running)):
        job = running[k]
        end = believed_end(jobs[START, job], jobs[ESTIMATE, job], jobs[REQUESTED_TIME, job], now)
        change(steps, heads, m, now, end, -jobs[PROCESSORS, job], 0)
        believed[job] = end
        heap_push(due, m[DUE], end, job)
        m[DUE] += 1


@compiled
def take_back(jobs, s, steps, heads, m, believed, ended):
    """Free what jobs that ended were believed to hold."""
    now = s[NOW]
    for k in range(len(ended)):
        job = ended[k]
        if believed[job] > now:
            change(steps, heads, m, now, believed[job], jobs[PROCESSORS, job], BEFORE)
        believed[job] = NEVER


@compiled
def expect_longer(jobs, s, steps, heads, m, believed, due):
    """Believe running jobs that outran what was believed to go on; return whether there are any."""
    now = s[NOW]
    any_late = False
    while m[DUE] and due[0, 0] <= now:
        time = due[0, 0]
        job = heap_pop(due, m[DUE])
        m[DUE] -= 1
        if believed[job] == time:
            end = believed_end(
                jobs[START, job], jobs[ESTIMATE, job], jobs[REQUESTED_TIME, job], now
            )
            change(steps, heads, m, now, end, -jobs[PROCESSORS, job], 0)
            believed[job] = end
            heap_push(due, m[DUE], end, job)
            m[DUE] += 1
            any_late = True
    return any_late


@compiled
def make_room(steps, heads, m, queue):
    """Cancel reservations where the plan asks for more than there is; the latest in the queue."""
    position = 0
    while position < m[BLOCKS] * WIDTH:
        time = read(steps, heads, position, TIME)
        while time < FOREVER and read(steps, heads, position, FREE) < 0:
            k = m[COUNT] - 1
            coming = FOREVER  # the first reservation after this time
            while k >= 0:
                start = queue[PLANNED, k]
                if start != NEVER and start <= time < start + queue[LENGTH, k]:
                    break
                if start > time:
                    coming = min(coming, start)
                k -= 1
            if k < 0:  # nothing but running jobs and maintenance, until perhaps later in the step
                time = coming
                if time < FOREVER:
                    position = position_of(steps, heads, m, time)
                continue
            queue[PLANNED, k] = NEVER
            m[UNPLACED] = 1
            change(steps, heads, m, start, start + queue[LENGTH, k], queue[NEED, k], BEFORE)
            position = position_of(steps, heads, m, time)
        position = after(heads, position)


@inlined
def _place(jobs, steps, heads, m, queue, i, start):
    """Give a job of the queue its place in the plan."""
    queue[PLANNED, i] = start
    change(steps, heads, m, start, start + queue[LENGTH, i], -queue[NEED, i], 0)
    m[MOVES] += 1
    job = queue[JOB, i]
    if jobs[PROMISED, job] == NEVER:
        jobs[PROMISED, job] = start


@compiled
def _known_misses(m, misses, need, length):
    """Return before when no start is possible, since jobs that want no more found none."""
    known = -1
    for k in range(m[MISSES]):
        if misses[0, k] <= need and misses[1, k] <= length:
            known = max(known, misses[2, k])
    return known


@compiled
def _note_misses(m, misses, need, length, start):
    """Note that a job of this size and length found no start before ``start``."""
    for k in range(m[MISSES]):
        if misses[0, k] >= need and misses[1, k] >= length and misses[2, k] <= start:
            misses[0, k], misses[1, k], misses[2, k] = need, length, start
            return
    k = m[NEXT_MISS]
    misses[0, k], misses[1, k], misses[2, k] = need, length, start
    m[MISSES] = max(m[MISSES], k + 1)
    m[NEXT_MISS] = (k + 1) % misses.shape[1]


@compiled
def _forget_misses(m, misses, since):
    """Something became free from ``since`` on: only what ends before that is known any more."""
    for k in range(m[MISSES]):
        misses[2, k] = min(misses[2, k], since - misses[1, k] + 1)


@compiled
def compress(jobs, s, steps, heads, m, queue, misses, every):
    """Let each job with a reservation, in order, take the earliest place there is.

    A job that finds none, since part of the machine is down, looks again later if ``every`` job is
    to have one.
    """
    if m[GAIN_FROM] == FOREVER and m[UNPLACED] == 0:
        return
    now = s[NOW]
    most = most_gained(heads, m)
    m[MISSES] = m[NEXT_MISS] = m[UNPLACED] = 0
    for i in range(m[COUNT]):
        if queue[RESERVED, i] == 0:
            continue
        start = queue[PLANNED, i]
        need = queue[NEED, i]
        length = queue[LENGTH, i]
        if start == NEVER:
            start = earliest(steps, heads, m, need, length)
            if start == FOREVER:
                queue[RESERVED, i] = every
            else:
                _place(jobs, steps, heads, m, queue, i, start)
            continue
        if start == now or start <= m[GAIN_FROM] or need > most:
            continue
        known = _known_misses(m, misses, need, length)
        if known >= start:
            known = start - 1  # its own place was not free for those who found nothing
        found = earlier(steps, heads, m, need, length, start, known)
        if found < 0:
            _note_misses(m, misses, need, length, start)
            continue
        _note_misses(m, misses, need, length, found)
        change(steps, heads, m, start, start + length, need, LATELY)
        _place(jobs, steps, heads, m, queue, i, found)
        _forget_misses(m, misses, start)
        position = position_of(steps, heads, m, start)
        while position < m[BLOCKS] * WIDTH and read(steps, heads, position, TIME) < start + length:
            most = max(most, read(steps, heads, position, FREE))
            position = after(heads, position)
    if m[GAIN_FROM] < FOREVER:
        age_gains(steps, heads, m)


@compiled
def start_due(jobs, s, m, queue, ends, believed, due):
    """Start what is planned for now; return the next planned start, FOREVER if there is none."""
    now = s[NOW]
    to = 0
    wake = FOREVER
    for i in range(m[COUNT]):
        start = queue[PLANNED, i]
        if start == now:
            job = queue[JOB, i]
            end = now + queue[LENGTH, i]
            start_job(jobs, s, ends, job)
            believed[job] = end
            heap_push(due, m[DUE], end, job)
            m[DUE] += 1
            continue
        if start != NEVER:
            wake = min(wake, start)
        if to < i:
            for row in range(QUEUE_ROWS):
                queue[row, to] = queue[row, i]
        to += 1
    m[COUNT] = to
    return wake


@compiled
def join(jobs, m, queue, arrived, reserved, cuts):
    """Put jobs that arrived into the queue, by submission and number."""
    for k in range(len(arrived)):
        job = arrived[k]
        at = m[COUNT]
        m[COUNT] += 1
        submit = jobs[ENQUEUED, job]
        while at > 0 and (
            queue[SUBMITTED, at - 1] > submit
            or (queue[SUBMITTED, at - 1] == submit and queue[JOB, at - 1] > job)
        ):
            for row in range(QUEUE_ROWS):
                queue[row, at] = queue[row, at - 1]
            at -= 1
        estimate = jobs[ESTIMATE, job]
        category = 0
        while category < len(cuts) and estimate >= cuts[category]:
            category += 1
        queue[JOB, at] = job
        queue[NEED, at] = jobs[PROCESSORS, job]
        queue[LENGTH, at] = max(estimate, 1)
        queue[PLANNED, at] = NEVER
        queue[RESERVED, at] = reserved
        queue[SUBMITTED, at] = submit
        queue[CATEGORY, at] = category
        if reserved:
            m[UNPLACED] = 1


@compiled
def count_slowdowns(jobs, ended, cuts, bound, slowdowns, counts, thresholds):
    """Add the slowdowns of jobs that ended, by category; thresholds are their means."""
    for k in range(len(ended)):
        job = ended[k]
        category = 0
        while category < len(cuts) and jobs[ESTIMATE, job] >= cuts[category]:
            category += 1
        run = max(jobs[END, job] - jobs[START, job], bound)
        slowdowns[category] += (jobs[END, job] - jobs[ENQUEUED, job]) / run
        counts[category] += 1
        thresholds[category] = slowdowns[category] / counts[category]


@compiled
def select_others(jobs, s, steps, heads, m, queue, thresholds):
    """Start jobs without a reservation that fit; give one to those who have waited long enough."""
    now = s[NOW]
    for i in range(m[COUNT]):
        if queue[RESERVED, i]:
            continue
        need, length = queue[NEED, i], queue[LENGTH, i]
        if need <= free_now(steps, heads) and fits_now(steps, heads, m, need, length):
            queue[PLANNED, i] = now
            change(steps, heads, m, now, now + length, -need, 0)
            continue
        waited = now - queue[SUBMITTED, i]
        if (waited + length) / length > thresholds[queue[CATEGORY, i]]:
            start = earliest(steps, heads, m, need, length)
            if start < FOREVER:
                queue[RESERVED, i] = 1
                _place(jobs, steps, heads, m, queue, i, start)


#: Blocks of a plan that are always to spare.
SPARE_BLOCKS = 5 * 256 // WIDTH


@compiled
def blocks_for(jobs):
    """Return the blocks that a plan may need in a pass, with so many jobs running, waiting or over.

    Steps begin and end with jobs, and with places that jobs left in this walk or the last. Two
    blocks beside each other may fill as little as a quarter of one, since only smaller ones unite.
    """
    return 8 * 6 * jobs // WIDTH + SPARE_BLOCKS


@compiled
def has_room(s, ends, m, steps, queue, due, arrived):
    """Return whether a pass with so many newcomers cannot fill an array."""
    waiting = m[COUNT] + arrived
    jobs = s[RUNNING] + waiting
    return (
        waiting <= queue.shape[1]
        and m[DUE] + jobs <= due.shape[1]
        and blocks_for(jobs + s[EXPECTED_END]) <= len(steps)
        and s[RUNNING] + s[WAITING] < ends.shape[1]
    )


@compiled
def planned_pass(
    jobs, s, ends, m, steps, heads, queue, due, believed, misses, every, adaptive, cuts, bound,
    slowdowns, counts, thresholds, ended, arrived,
):  # fmt: skip
    """Do one pass; return the next planned start, FOREVER if there is none.

    ``every`` job has a reservation, or those whose expansion factor is above its threshold;
    ``adaptive`` thresholds are the mean slowdowns of the jobs that ended, by category.
    """
    take_back(jobs, s, steps, heads, m, believed, ended)
    pass_time(steps, heads, m, s[NOW])
    if expect_longer(jobs, s, steps, heads, m, believed, due):
        make_room(steps, heads, m, queue)
    join(jobs, m, queue, arrived, every, cuts)
    compress(jobs, s, steps, heads, m, queue, misses, every)
    if not every:
        if adaptive:
            count_slowdowns(jobs, ended, cuts, bound, slowdowns, counts, thresholds)
        select_others(jobs, s, steps, heads, m, queue, thresholds)
    return start_due(jobs, s, m, queue, ends, believed, due)


@compiled
def advance_planned(
    jobs, s, sorted_arrivals, heap, arrived, ends, ended, remaining, finished, links, edges,
    unit_rows, halt,
    m, steps, heads, queue, due, believed, misses, every, adaptive, cuts, bound, slowdowns, counts,
    thresholds,
):  # fmt: skip
    """Run as ``loop.advance`` does; return ``PASS`` only when an array has to grow for it."""
    while True:
        stop = advance(jobs, s, sorted_arrivals, heap, arrived, ends, ended, remaining, finished,
                       links, edges, unit_rows, halt)  # fmt: skip
        if stop != PASS:
            return stop
        if not has_room(s, ends, m, steps, queue, due, s[QUEUE_TAIL] - s[QUEUE_HEAD]):
            return PASS
        s[WAKE] = planned_pass(
            jobs, s, ends, m, steps, heads, queue, due, believed, misses, every, adaptive, cuts,
            bound, slowdowns, counts, thresholds, ended[0, : s[EXPECTED_END]],
            arrived[0, s[QUEUE_HEAD] : s[QUEUE_TAIL]],
        )  # fmt: skip
        s[EXPECTED_END] = s[QUEUE_HEAD] = s[QUEUE_TAIL] = 0
