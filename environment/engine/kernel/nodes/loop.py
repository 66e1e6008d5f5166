"""A machine of nodes in one resumable loop: completions, arrivals, and the controller's passes.

It is :mod:`hpcrowd.environment.engine.kernel.loop` with the rules of a site: jobs are rejected for
the site's reasons, take a while to start, are killed when limits are checked, and may be preempted.
"""

from __future__ import annotations

from math import ceil

from hpcrowd.environment.engine.kernel.cluster import (
    ARRIVALS,
    COMPLETIONS,
    REACTIONS,
    Cluster,
)
from hpcrowd.environment.engine.kernel.heap import heap_pop
from hpcrowd.environment.engine.kernel.loop import next_time, over
from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.engine.kernel.nodes.backfill import backfill_cycle
from hpcrowd.environment.engine.kernel.nodes.limits import first_limit, usage_falls
from hpcrowd.environment.engine.kernel.nodes.main_pass import main_pass
from hpcrowd.environment.engine.kernel.nodes.queue import (
    accept,
    finish,
    join,
    order_again,
    use_up,
)
from hpcrowd.environment.engine.kernel.nodes.site import Site
from hpcrowd.environment.engine.kernel.nodes.suspension import let_go_on, put_off_ends
from hpcrowd.environment.engine.kernel.scheduling import close_gaps, enqueue, turned_away
from hpcrowd.environment.jobs import Int64s, State
from hpcrowd.environment.stops import FOREVER, Stop


def complete_on_nodes(cluster: Cluster, site: Site, remaining: Int64s) -> bool:
    """Complete the jobs that end now; return False if a list is full."""
    jobs, state, ends, expected = site.jobs, site.state, site.ends, cluster.expected
    while state.running and ends.time[0] == state.now:
        if state.finished == len(cluster.finished):
            return False
        if state.expected_end == expected.table.shape[1]:
            return False
        job = heap_pop(ends, state.running)
        state.running -= 1
        state.events += 1
        state.allowance -= 1
        run = jobs.run_time[job] + site.settings.latency
        outran = state.kill and run > jobs.requested_time[job]
        jobs.state[job] = State.KILLED if outran else State.COMPLETED
        state.free += jobs.processors[job]
        expected.ended[state.expected_end] = job
        state.expected_end += 1
        over(cluster, remaining, job)
    return True


def _rejected(site: Site, job: int) -> int:
    """Return the word for why the site rejects an arriving job, 0 if it does not."""
    rows = site.rows
    if rows.refusal[job]:
        return rows.refusal[job]
    if not site.settings.enforced:
        return 0
    option = site.entries.option[rows.entry[job]]
    return first_limit(
        site, site.options.at_submit[option],
        site.options.at_submit_end[option], option,
        rows.limit[job], 0,
    )  # fmt: skip


def arrive_on_nodes(cluster: Cluster, site: Site, remaining: Int64s) -> bool:
    """Process the arrivals of now; return False if an array is full."""
    jobs, state, arrivals, heap = site.jobs, site.state, cluster.sorted, cluster.arrivals
    waiting = cluster.queue
    while True:
        job = -1
        if state.sorted_next < state.sorted_end:
            candidate = arrivals[state.sorted_next]
            if jobs.submit[candidate] == state.now:
                job = candidate
        from_heap = state.arriving > 0 and heap.time[0] == state.now
        from_heap = from_heap and (job < 0 or heap.job[0] < job)
        if job < 0 and not from_heap:
            return True
        if state.queue_tail == waiting.table.shape[1]:
            if state.queue_gaps or state.queue_head:
                close_gaps(state, waiting)
            if state.queue_tail > waiting.table.shape[1] // 2:
                return False
        if state.finished == len(cluster.finished):
            return False
        if from_heap:
            job = heap_pop(heap, state.arriving)
            state.arriving -= 1
        else:
            state.sorted_next += 1
        state.events += 1
        state.allowance -= 1
        if turned_away(jobs, job, state.capacity):
            site.rows.refusal[job] = 0
            over(cluster, remaining, job)
            continue
        word = _rejected(site, job)
        site.rows.refusal[job] = word
        if word:
            jobs.state[job] = State.REJECTED
            over(cluster, remaining, job)
        else:
            accept(site, job)
            enqueue(cluster, job)


def pass_quietly(site: Site, now: int) -> None:
    """Note the passes and cycles until now in which the queue was empty."""
    c, settings = site.controller, site.settings
    if c.waiting:
        return
    due = ceil(c.last_main + settings.delay)
    if c.wanted and due < now:
        c.last_main, c.wanted, c.urgent = due, 0, 0
    every = settings.sched_interval
    if every > 0 and 0 <= c.next_full < now:
        last = now - 1 - (now - 1 - c.next_full) % every
        c.last_main, c.next_full = max(c.last_main, last), last + every
    if settings.backfill:
        at = max(ceil(c.next_backfill), c.changed)
        while at < now and c.changed >= c.last_backfill:
            _cycle_at(site, at)
            at = max(ceil(c.next_backfill), c.changed)


def _cycle_at(site: Site, now: int) -> None:
    """Note that a cycle of backfilling happens; after a quiet time the rhythm begins anew."""
    c = site.controller
    late = max(now - c.next_backfill, 0.0)
    c.next_backfill += late // N.LOOK_EVERY * N.LOOK_EVERY
    c.next_backfill += site.settings.cycle
    c.last_backfill = now
    if c.planned_on:
        c.changed, c.planned_on = now, 0


def calculated(site: Site, now: int) -> bool:
    """Compute usage and priorities for the periods that have ended; False if shares are needed."""
    c = site.controller
    period = site.settings.period
    while True:
        if c.ranking:  # shares have been computed
            c.ranking = 0
            if c.waiting:
                c.changed = now
            order_again(site, c.calculated)
        if c.calculated + period > now:
            return True
        use_up(site)
        c.ranking = 1
        return False


def next_pass(site: Site, now: int) -> int:
    """Return when to have a pass although nothing happens; FOREVER if none would help."""
    c, settings = site.controller, site.settings
    if _stuck(site):
        return FOREVER
    found = FOREVER
    if settings.backfill and c.changed >= c.last_backfill:
        found = min(found, max(ceil(c.next_backfill), now + 1))
    if c.wanted:
        found = min(found, max(int(c.last_main + settings.delay), now + 1))
    if settings.sched_interval > 0:
        found = min(found, max(c.next_full, now + 1))
    if c.next_eligible < FOREVER:
        c.next_eligible = FOREVER
        for i in range(c.ordered):
            eligible = site.rows.eligible[site.entries.owner[site.entries.placed[i]]]
            if now < eligible:
                c.next_eligible = min(c.next_eligible, eligible)
        found = min(found, c.next_eligible)
    return found if found < FOREVER else now + 1


def _stuck(site: Site) -> bool:
    """Return whether the waiting jobs cannot start unless others are submitted."""
    c, settings = site.controller, site.settings
    if c.running or c.wanted:
        return False
    looked = c.looked_at_all
    for i in range(settings.reservations):
        if site.rules.until[i] > looked:
            return False
    for i in range(c.ordered):
        entry = site.entries.placed[i]
        row, option = site.entries.owner[entry], site.entries.option[entry]
        if site.rows.eligible[row] > looked:
            return False
        if settings.minutes and usage_falls(site, option, site.rows.limit[row]):
            return False
    return True


def run_controller(site: Site, now: int) -> None:
    """Do the passes that are due at a second."""
    c, settings = site.controller, site.settings
    let_go_on(site, now)
    every, since = settings.sched_interval, now - c.last_main
    full = every > 0 and now >= c.next_full
    due = c.wanted and since >= settings.delay
    if full or due or c.urgent:
        if full or due:
            c.last_main = now
        if full:
            c.next_full = now + every
        for _ in range(N.MOST_PASSES):
            c.wanted = c.urgent = 0
            stopped = c.stopped
            main_pass(site, now, full)
            if c.stopped == stopped:
                break
        c.looked_at_all = now if full else -1
    if settings.backfill and now >= c.next_backfill and c.changed >= c.last_backfill:
        _cycle_at(site, now)
        stopped = c.stopped
        backfill_cycle(site, now)
        if c.stopped > stopped:
            main_pass(site, now, False)
    let_go_on(site, now)  # some that were suspended in this pass may have freed too much


def let_these_end(site: Site, ended: Int64s) -> bool:
    """Let jobs end between two passes; return False if shares are needed first."""
    if not let_end(site, ended):
        return False
    site.controller.ended_at = 0
    return True


def let_end(site: Site, ended: Int64s) -> bool:
    """Let jobs end; return False if shares are needed first, then go on where it was."""
    c, jobs, rows = site.controller, site.jobs, site.rows
    while c.ended_at < len(ended):
        job = ended[c.ended_at]
        if rows.status[job] == N.RUNNING:
            end = jobs.end[job]
            pass_quietly(site, end)
            if not calculated(site, end):
                return False
            killed = jobs.state[job] != State.COMPLETED
            finish(site, job, end, killed)
        c.ended_at += 1
    return True


def pass_on_nodes(site: Site, ended: Int64s, arrived: Int64s) -> bool:
    """Let jobs end and join, then do the passes of now; return False if shares are needed first.

    It goes on where it was when it is called again.
    """
    c, state, rows = site.controller, site.state, site.rows
    now = state.now
    if not let_end(site, ended):
        return False
    while c.arrived_at < len(arrived):
        job = arrived[c.arrived_at]
        if rows.status[job] in (N.AWAY, N.ACCEPTED):
            pass_quietly(site, now)
            if not calculated(site, now):
                return False
            join(site, job, now)
        c.arrived_at += 1
    # Without waiting jobs there is no pass.
    if c.waiting:
        pass_quietly(site, now)
        if not calculated(site, now):
            return False
        run_controller(site, now)
        state.wake = next_pass(site, now)
    else:
        let_go_on(site, now)
        if c.wanted and (c.urgent or now - c.last_main >= site.settings.delay):
            c.last_main, c.wanted, c.urgent = now, 0, 0
        state.wake = FOREVER
    put_off_ends(site, now)
    c.ended_at = c.arrived_at = 0
    c.passes += 1
    return True


def has_room(site: Site, ended: int, arrived: int, more: int) -> bool:
    """Return whether no array can become full in a pass.

    It starts no more jobs than wait, on no more nodes than there are, each with a core that was
    free or of jobs that it stops. ``more`` are entries of the arrived jobs.
    """
    c, settings = site.controller, site.settings
    starts, stops = c.waiting + arrived, c.running
    shares = min(starts * site.nodes.table.shape[1], 2 * settings.all_cores)
    spans = 2 * min(settings.bf_tests, c.ordered + more) + 4
    listed = max(
        c.running + starts,
        c.stopped + stops,
        c.over + stops + ended,
        spans,
    )
    return (
        listed <= site.lists.table.shape[1]
        and spans <= site.spans.shape[0]
        and site.state.running + starts <= site.ends.table.shape[1]
        and c.tenures + starts <= site.ledger.table.shape[1]
        and c.shares + shares <= site.held.table.shape[1]
        and (not settings.suspends or c.pauses + listed <= site.pauses.table.shape[1])
        and min(stops * site.nodes.table.shape[1], settings.all_cores) + shares
        <= site.releases.table.shape[1]
    )


def sort_stops(site: Site) -> None:
    """Put the jobs that this pass stopped in the order of their rows."""
    c, stopped = site.controller, site.lists
    for i in range(c.stopped_before + 1, c.stopped):
        k = i
        while k > c.stopped_before and (stopped.stopped_row[k - 1] > stopped.stopped_row[k]):
            for field in range(N.STOPPED_ROW, N.STOPPED_START + 1):
                kept = stopped.table[field, k]
                stopped.table[field, k] = stopped.table[field, k - 1]
                stopped.table[field, k - 1] = kept
            k -= 1


def _note_cancelled(cluster: Cluster, site: Site, remaining: Int64s) -> bool:
    """Count jobs as finished that the pass cancelled; return False if the list is full."""
    c, state = site.controller, site.state
    while c.stopped_before < c.stopped:
        if state.finished == len(cluster.finished):
            return False
        if site.lists.stopped_fate[c.stopped_before] == N.CANCELLED:
            over(cluster, remaining, site.lists.stopped_row[c.stopped_before])
        c.stopped_before += 1
    return True


def advance_on_nodes(cluster: Cluster, remaining: Int64s, halt: int, site: Site) -> int:
    """Run until users must be notified, ``halt``, or something is needed; return why it stopped."""
    state = site.state
    while True:
        if state.phase == COMPLETIONS:
            time = next_time(cluster)
            if time > halt:
                state.now = max(state.now, halt)
                return Stop.HALT
            if time == FOREVER:
                return Stop.DONE
            if state.allowance <= 0 and not state.finished:
                return Stop.PAUSE
            state.now = time
            if not complete_on_nodes(cluster, site, remaining):
                return Stop.ROOM
            state.phase = REACTIONS
            if state.finished:
                return Stop.FINISHED
        if state.phase == REACTIONS:
            if halt <= state.now:
                return Stop.HALT
            state.phase = ARRIVALS
        if state.phase == ARRIVALS:
            if not arrive_on_nodes(cluster, site, remaining):
                return Stop.ROOM
            if state.finished:
                state.phase = REACTIONS
                return Stop.FINISHED
            state.phase = N.PASSING
            if site.settings.predicts:
                return N.PREDICT
        if state.phase == N.PASSING:
            ended = cluster.expected.ended[: state.expected_end]
            arrived = cluster.queue.job[state.queue_head : state.queue_tail]
            more = 0
            for job in arrived:
                more += site.rows.count[job]
            if not has_room(site, len(ended), len(arrived), more):
                return N.GROW
            if not pass_on_nodes(site, ended, arrived):
                return N.RANK
            state.expected_end = state.queue_head = state.queue_tail = 0
            sort_stops(site)
            state.phase = N.NOTING
        if not _note_cancelled(cluster, site, remaining):
            return Stop.ROOM
        state.phase = COMPLETIONS
        if state.finished:
            return Stop.FINISHED
