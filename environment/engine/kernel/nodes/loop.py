"""A machine of nodes in one resumable loop: completions, arrivals, and the controller's passes.

It is :mod:`hpcrowd.environment.engine.kernel.loop` with the rules of a site: jobs are rejected for
the site's reasons, take a while to start, are killed when limits are checked, and may be preempted.
"""

from __future__ import annotations

from math import ceil

from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.engine.kernel.heap import heap_pop
from hpcrowd.environment.engine.kernel.loop import next_time
from hpcrowd.environment.engine.kernel.nodes import places as N
from hpcrowd.environment.engine.kernel.nodes.backfill import backfill_cycle
from hpcrowd.environment.engine.kernel.nodes.limits import first_limit
from hpcrowd.environment.engine.kernel.nodes.main_pass import main_pass
from hpcrowd.environment.engine.kernel.nodes.places import Site
from hpcrowd.environment.engine.kernel.nodes.queue import (
    accept,
    finish,
    join,
    order_again,
    use_up,
)
from hpcrowd.environment.engine.kernel.places import Cluster
from hpcrowd.environment.engine.kernel.scheduling import close_gaps, enqueue, turned_away
from hpcrowd.environment.jobs import Int64Rows, Int64s
from hpcrowd.environment.schedulers.slurm.timing import LOOK_EVERY, MOST_PASSES
from hpcrowd.environment.stops import FOREVER


def complete_on_nodes(g: Site, ended: Int64Rows, finished: Int64s, remaining: Int64s) -> bool:
    """Complete the jobs that end now; return False if a list is full."""
    jobs, s, ends = g.jobs, g.s, g.ends
    while s[S.RUNNING] and ends[0, 0] == s[S.NOW]:
        if s[S.FINISHED_COUNT] == len(finished) or s[S.EXPECTED_END] == ended.shape[1]:
            return False
        job = heap_pop(ends, s[S.RUNNING])
        s[S.RUNNING] -= 1
        s[S.EVENTS] += 1
        s[S.ALLOWANCE] -= 1
        run = jobs[S.RUN_TIME, job] + g.c[N.LATENCY]
        outran = s[S.KILL] and run > jobs[S.REQUESTED_TIME, job]
        jobs[S.STATE, job] = S.KILLED if outran else S.COMPLETED
        s[S.FREE] += jobs[S.PROCESSORS, job]
        ended[0, s[S.EXPECTED_END]] = job
        s[S.EXPECTED_END] += 1
        _over(g.jobs, g.s, finished, remaining, job)
    return True


def _over(jobs: Int64Rows, s: Int64s, finished: Int64s, remaining: Int64s, job: int) -> None:
    """Count a job as finished for its user; note the unit if this was its last job."""
    unit = jobs[S.UNIT, job]
    if unit >= 0:
        remaining[unit] -= 1
        if remaining[unit] == 0:
            finished[s[S.FINISHED_COUNT]] = unit
            s[S.FINISHED_COUNT] += 1


def _rejected(g: Site, job: int) -> int:
    """Return the word for why the site rejects an arriving job, 0 if it does not."""
    rows = g.rows
    if rows[N.REFUSAL, job]:
        return rows[N.REFUSAL, job]
    if not g.c[N.ENFORCED]:
        return 0
    option = g.entries[N.OPTION, rows[N.ENTRY, job]]
    return first_limit(
        g, g.options[N.AT_SUBMIT, option],
        g.options[N.AT_SUBMIT_END, option], g.options[N.DEMAND, option],
        rows[N.LIMIT, job], 0,
    )  # fmt: skip


def arrive_on_nodes(cluster: Cluster, g: Site, remaining: Int64s) -> bool:
    """Process the arrivals of now; return False if an array is full."""
    jobs, s, arrivals, heap = g.jobs, g.s, cluster.sorted, cluster.heap
    waiting, finished = cluster.queue, cluster.finished
    while True:
        job = -1
        if s[S.SORTED_NEXT] < s[S.SORTED_END]:
            candidate = arrivals[s[S.SORTED_NEXT]]
            if jobs[S.SUBMIT, candidate] == s[S.NOW]:
                job = candidate
        from_heap = s[S.HEAP_SIZE] > 0 and heap[0, 0] == s[S.NOW] and (job < 0 or heap[1, 0] < job)
        if job < 0 and not from_heap:
            return True
        if s[S.QUEUE_TAIL] == waiting.shape[1]:
            if s[S.QUEUE_GAPS] or s[S.QUEUE_HEAD]:
                close_gaps(s, waiting)
            if s[S.QUEUE_TAIL] > waiting.shape[1] // 2:
                return False
        if s[S.FINISHED_COUNT] == len(finished):
            return False
        if from_heap:
            job = heap_pop(heap, s[S.HEAP_SIZE])
            s[S.HEAP_SIZE] -= 1
        else:
            s[S.SORTED_NEXT] += 1
        s[S.EVENTS] += 1
        s[S.ALLOWANCE] -= 1
        if turned_away(jobs, job, s[S.CAPACITY]):
            g.rows[N.REFUSAL, job] = 0
            _over(g.jobs, g.s, finished, remaining, job)
            continue
        word = _rejected(g, job)
        g.rows[N.REFUSAL, job] = word
        if word:
            jobs[S.STATE, job] = S.REJECTED
            _over(g.jobs, g.s, finished, remaining, job)
        else:
            accept(g, job)
            enqueue(cluster, job)


def pass_quietly(g: Site, now: int) -> None:
    """Note the passes and cycles until now in which the queue was empty."""
    c, amounts = g.c, g.reals[N.AMOUNTS]
    if c[N.ALL_WAITING]:
        return
    due = ceil(c[N.LAST_MAIN] + amounts[N.DELAY])
    if c[N.WANTED] and due < now:
        c[N.LAST_MAIN], c[N.WANTED], c[N.URGENT] = due, 0, 0
    every = c[N.SCHED_INTERVAL]
    if every > 0 and 0 <= c[N.NEXT_FULL] < now:
        last = now - 1 - (now - 1 - c[N.NEXT_FULL]) % every
        c[N.LAST_MAIN], c[N.NEXT_FULL] = max(c[N.LAST_MAIN], last), last + every
    if c[N.BACKFILL]:
        at = max(ceil(amounts[N.NEXT_BACKFILL]), c[N.CHANGED])
        while at < now and c[N.CHANGED] >= c[N.LAST_BACKFILL]:
            _cycle_at(g, at)
            at = max(ceil(amounts[N.NEXT_BACKFILL]), c[N.CHANGED])


def _cycle_at(g: Site, now: int) -> None:
    """Note that a cycle of backfilling happens; after a quiet time the rhythm begins anew."""
    amounts = g.reals[N.AMOUNTS]
    late = max(now - amounts[N.NEXT_BACKFILL], 0.0)
    amounts[N.NEXT_BACKFILL] += late // LOOK_EVERY * LOOK_EVERY
    amounts[N.NEXT_BACKFILL] += amounts[N.CYCLE]
    g.c[N.LAST_BACKFILL] = now
    if g.c[N.PLANNED_ON]:
        g.c[N.CHANGED], g.c[N.PLANNED_ON] = now, 0


def calculated(g: Site, now: int) -> bool:
    """Compute usage and priorities for the periods that have ended; False if shares are needed."""
    c, period = g.c, g.c[N.PERIOD]
    while True:
        if c[N.RANKING]:  # shares have been computed
            c[N.RANKING] = 0
            if c[N.ALL_WAITING]:
                c[N.CHANGED] = now
            order_again(g, c[N.CALCULATED])
        if c[N.CALCULATED] + period > now:
            return True
        use_up(g)
        c[N.RANKING] = 1
        return False


def next_pass(g: Site, now: int) -> int:
    """Return when to have a pass although nothing happens; FOREVER if none would help."""
    c, amounts = g.c, g.reals[N.AMOUNTS]
    if _stuck(g):
        return FOREVER
    found = FOREVER
    if c[N.BACKFILL] and c[N.CHANGED] >= c[N.LAST_BACKFILL]:
        found = min(found, max(ceil(amounts[N.NEXT_BACKFILL]), now + 1))
    if c[N.WANTED]:
        found = min(found, max(int(c[N.LAST_MAIN] + amounts[N.DELAY]), now + 1))
    if c[N.SCHED_INTERVAL] > 0:
        found = min(found, max(c[N.NEXT_FULL], now + 1))
    if c[N.NEXT_ELIGIBLE] < FOREVER:
        c[N.NEXT_ELIGIBLE] = FOREVER
        for i in range(c[N.ORDERED]):
            eligible = g.rows[N.ELIGIBLE, g.entries[N.OWNER, g.entries[N.PLACED, i]]]
            if now < eligible:
                c[N.NEXT_ELIGIBLE] = min(c[N.NEXT_ELIGIBLE], eligible)
        found = min(found, c[N.NEXT_ELIGIBLE])
    return found if found < FOREVER else now + 1


def _stuck(g: Site) -> bool:
    """Return whether the waiting jobs cannot start unless others are submitted."""
    c = g.c
    if c[N.ALL_RUNNING] or c[N.WANTED]:
        return False
    looked = c[N.LOOKED_AT_ALL]
    for i in range(g.c[N.RESERVATIONS]):
        if g.rules[N.UNTIL, i] > looked:
            return False
    for i in range(c[N.ORDERED]):
        row = g.entries[N.OWNER, g.entries[N.PLACED, i]]
        if g.rows[N.ELIGIBLE, row] > looked or g.checks[N.MINUTES, g.rows[N.REASON, row]]:
            return False
    return True


def run_controller(g: Site, now: int) -> None:
    """Do the passes that are due at a second."""
    c, amounts = g.c, g.reals[N.AMOUNTS]
    every, since = c[N.SCHED_INTERVAL], now - c[N.LAST_MAIN]
    full = every > 0 and now >= c[N.NEXT_FULL]
    due = c[N.WANTED] and since >= amounts[N.DELAY]
    if full or due or c[N.URGENT]:
        if full or due:
            c[N.LAST_MAIN] = now
        if full:
            c[N.NEXT_FULL] = now + every
        for _ in range(MOST_PASSES):
            c[N.WANTED] = c[N.URGENT] = 0
            stopped = c[N.STOPPED]
            main_pass(g, now, full)
            if c[N.STOPPED] == stopped:
                break
        c[N.LOOKED_AT_ALL] = now if full else -1
    if c[N.BACKFILL] and now >= amounts[N.NEXT_BACKFILL] and c[N.CHANGED] >= c[N.LAST_BACKFILL]:
        _cycle_at(g, now)
        stopped = c[N.STOPPED]
        backfill_cycle(g, now)
        if c[N.STOPPED] > stopped:
            main_pass(g, now, False)


def let_these_end(g: Site, ended: Int64s) -> bool:
    """Let jobs end between two passes; return False if shares are needed first."""
    if not let_end(g, ended):
        return False
    g.c[N.ENDED_AT] = 0
    return True


def let_end(g: Site, ended: Int64s) -> bool:
    """Let jobs end; return False if shares are needed first, then go on where it was."""
    c, jobs, rows = g.c, g.jobs, g.rows
    while c[N.ENDED_AT] < len(ended):
        job = ended[c[N.ENDED_AT]]
        if rows[N.STATUS, job] == N.RUNNING:
            end = jobs[S.END, job]
            pass_quietly(g, end)
            if not calculated(g, end):
                return False
            killed = jobs[S.STATE, job] != S.COMPLETED
            finish(g, job, end, killed)
        c[N.ENDED_AT] += 1
    return True


def pass_on_nodes(g: Site, ended: Int64s, arrived: Int64s) -> bool:
    """Let jobs end and join, then do the passes of now; return False if shares are needed first.

    It goes on where it was when it is called again.
    """
    c, s, rows = g.c, g.s, g.rows
    now = s[S.NOW]
    if not let_end(g, ended):
        return False
    while c[N.ARRIVED_AT] < len(arrived):
        job = arrived[c[N.ARRIVED_AT]]
        if rows[N.STATUS, job] in (N.AWAY, N.ACCEPTED):
            pass_quietly(g, now)
            if not calculated(g, now):
                return False
            join(g, job, now)
        c[N.ARRIVED_AT] += 1
    # Without waiting jobs there is no pass.
    if c[N.ALL_WAITING]:
        pass_quietly(g, now)
        if not calculated(g, now):
            return False
        run_controller(g, now)
        s[S.WAKE] = next_pass(g, now)
    else:
        if c[N.WANTED] and (c[N.URGENT] or now - c[N.LAST_MAIN] >= g.reals[N.AMOUNTS, N.DELAY]):
            c[N.LAST_MAIN], c[N.WANTED], c[N.URGENT] = now, 0, 0
        s[S.WAKE] = FOREVER
    c[N.ENDED_AT] = c[N.ARRIVED_AT] = 0
    c[N.PASSES] += 1
    return True


def has_room(g: Site, ended: int, arrived: int, more: int) -> bool:
    """Return whether no array can become full in a pass.

    It starts no more jobs than wait, on no more nodes than there are, each with a core that was
    free or of jobs that it stops. ``more`` are entries of the arrived jobs.
    """
    c = g.c
    starts, stops = c[N.ALL_WAITING] + arrived, c[N.ALL_RUNNING]
    shares = min(starts * g.nodes.shape[1], 2 * c[N.ALL_CORES])
    spans = 2 * min(c[N.BF_TESTS], c[N.ORDERED] + more) + 4
    listed = max(c[N.ALL_RUNNING] + starts, c[N.STOPPED] + stops, c[N.OVER] + stops + ended, spans)
    return (
        listed <= g.lists.shape[1]
        and spans <= g.spans.shape[0]
        and g.s[S.RUNNING] + starts <= g.ends.shape[1]
        and c[N.TENURES] + starts <= g.ledger.shape[1]
        and c[N.SHARES] + shares <= g.held.shape[1]
        and min(stops * g.nodes.shape[1], c[N.ALL_CORES]) + shares <= g.releases.shape[1]
    )


def _sort_stops(g: Site) -> None:
    """Put the jobs that this pass stopped in the order of their rows."""
    stopped = g.lists
    for i in range(g.c[N.STOPPED_BEFORE] + 1, g.c[N.STOPPED]):
        k = i
        while k > g.c[N.STOPPED_BEFORE] and (
            stopped[N.STOPPED_ROW, k - 1] > stopped[N.STOPPED_ROW, k]
        ):
            for field in range(N.STOPPED_ROW, N.STOPPED_START + 1):
                kept = stopped[field, k]
                stopped[field, k] = stopped[field, k - 1]
                stopped[field, k - 1] = kept
            k -= 1


def _note_cancelled(g: Site, finished: Int64s, remaining: Int64s) -> bool:
    """Count jobs as finished that the pass cancelled; return False if the list is full."""
    c, s = g.c, g.s
    while c[N.STOPPED_BEFORE] < c[N.STOPPED]:
        if s[S.FINISHED_COUNT] == len(finished):
            return False
        if g.lists[N.STOPPED_FATE, c[N.STOPPED_BEFORE]] == N.CANCELLED:
            _over(g.jobs, g.s, finished, remaining, g.lists[N.STOPPED_ROW, c[N.STOPPED_BEFORE]])
        c[N.STOPPED_BEFORE] += 1
    return True


def advance_on_nodes(cluster: Cluster, remaining: Int64s, halt: int, g: Site) -> int:
    """Run until users must be notified, ``halt``, or something is needed; return why it stopped."""
    s = g.s
    while True:
        if s[S.PHASE] == S.COMPLETIONS:
            time = next_time(g.jobs, s, cluster.sorted, cluster.heap, g.ends)
            if time > halt:
                s[S.NOW] = max(s[S.NOW], halt)
                return S.HALT
            if time == FOREVER:
                return S.DONE
            if s[S.ALLOWANCE] <= 0 and not s[S.FINISHED_COUNT]:
                return S.PAUSE
            s[S.NOW] = time
            if not complete_on_nodes(g, cluster.expected, cluster.finished, remaining):
                return S.ROOM
            s[S.PHASE] = S.REACTIONS
            if s[S.FINISHED_COUNT]:
                return S.FINISHED
        if s[S.PHASE] == S.REACTIONS:
            if halt <= s[S.NOW]:
                return S.HALT
            s[S.PHASE] = S.ARRIVALS
        if s[S.PHASE] == S.ARRIVALS:
            if not arrive_on_nodes(cluster, g, remaining):
                return S.ROOM
            if s[S.FINISHED_COUNT]:
                s[S.PHASE] = S.REACTIONS
                return S.FINISHED
            s[S.PHASE] = N.PASSING
        if s[S.PHASE] == N.PASSING:
            ended = cluster.expected[0, : s[S.EXPECTED_END]]
            arrived = cluster.queue[0, s[S.QUEUE_HEAD] : s[S.QUEUE_TAIL]]
            more = 0
            for job in arrived:
                more += g.rows[N.COUNT, job]
            if not has_room(g, len(ended), len(arrived), more):
                return N.GROW
            if not pass_on_nodes(g, ended, arrived):
                return N.RANK
            s[S.EXPECTED_END] = s[S.QUEUE_HEAD] = s[S.QUEUE_TAIL] = 0
            _sort_stops(g)
            s[S.PHASE] = N.NOTING
        if not _note_cancelled(g, cluster.finished, remaining):
            return S.ROOM
        s[S.PHASE] = S.COMPLETIONS
        if s[S.FINISHED_COUNT]:
            return S.FINISHED
