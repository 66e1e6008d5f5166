"""Jobs that are suspended to make room, and go on later; slurm.conf(5), PreemptMode, SUSPEND.

A suspended job keeps its memory and GPUs, and its cores against all that may not preempt it; it
goes on once those that hold its cores have ended. The rest of gang scheduling is not simulated:
jobs of one partition do not take turns.
"""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.cluster import NEVER
from hpcrowd.environment.engine.kernel.heap import heap_push
from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.engine.kernel.nodes.placement import clear, has
from hpcrowd.environment.engine.kernel.nodes.preemption import rank_of
from hpcrowd.environment.engine.kernel.nodes.queue import forget_end, halt, note_end
from hpcrowd.environment.engine.kernel.nodes.site import Site


def suspend_in_the_way(site: Site, first: int, last: int, shares: int, now: int) -> None:
    """Suspend those of some candidates whose cores a choice of shares needs, and no more of them.

    Candidates are gone through in their order; some that would go on at once are not suspended.
    """
    rows, nodes, chosen = site.rows, site.nodes, site.settings.chosen
    victims, wanted = site.lists, site.sets[N.WORK + 5]
    _count_busy(site)
    clear(wanted)
    for i in range(shares):
        node = nodes.table[chosen + N.S_NODE, i]
        nodes.busy[node] += nodes.table[chosen + N.S_CORES, i]
        wanted[node >> 6] |= 1 << (node & 63)
    for i in range(first, last):
        row = victims.victim[i]
        victims.in_the_way[i] = rows.suspended[row] < 0 and _is_in_the_way(site, row)
        if victims.in_the_way[i]:
            _add_busy(site, row, -1)
    for i in range(first, last):
        row = victims.victim[i]
        if victims.in_the_way[i] and not _goes_on(site, row):
            rows.suspended[row] = site.controller.changed = now


def _is_in_the_way(site: Site, row: int) -> bool:
    """Return whether a job holds cores of a wanted node that has too few."""
    nodes, held, tenure = site.nodes, site.held, site.rows.tenure[row]
    for i in range(site.ledger.first[tenure], site.ledger.last[tenure]):
        node = held.node[i]
        if has(site.sets[N.WORK + 5], node) and nodes.busy[node] > nodes.cores[node]:
            return True
    return False


def let_go_on(site: Site, now: int) -> None:
    """Let suspended jobs go on whose cores nobody uses any more: high tiers first."""
    c, rows, paused, count = site.controller, site.rows, site.lists.victim, 0
    if not site.settings.suspends:
        return
    row = c.first_running
    while row >= 0:
        if rows.suspended[row] >= 0:
            place = count
            while place > 0 and _goes_first(site, row, paused[place - 1]):
                paused[place] = paused[place - 1]
                place -= 1
            paused[place] = row
            count += 1
        row = rows.next[row]
    if count:
        _count_busy(site)
    for i in range(count):
        row = paused[i]
        if _goes_on(site, row):
            forget_end(site, row)
            rows.rested[row] += now - rows.suspended[row]
            rows.suspended[row] = -1
            note_end(site, row, c.running - 1)
            c.changed = now


def _goes_first(site: Site, row: int, other: int) -> bool:
    """Return whether a suspended job goes on before another one, if both could."""
    rank, its_rank = rank_of(site, row), rank_of(site, other)
    if rank != its_rank:
        return rank > its_rank
    start = site.ledger.start[site.rows.tenure[row]]
    its_start = site.ledger.start[site.rows.tenure[other]]
    return start < its_start or (start == its_start and row < other)


def _count_busy(site: Site) -> None:
    """Count the cores of the jobs that are not suspended, by node."""
    for node in range(site.nodes.table.shape[1]):
        site.nodes.busy[node] = 0
    row = site.controller.first_running
    while row >= 0:
        if site.rows.suspended[row] < 0:
            _add_busy(site, row, 1)
        row = site.rows.next[row]


def _add_busy(site: Site, row: int, sign: int) -> None:
    """Let the cores of a job be busy (1), or no more (-1)."""
    tenure = site.rows.tenure[row]
    for i in range(site.ledger.first[tenure], site.ledger.last[tenure]):
        site.nodes.busy[site.held.node[i]] += sign * site.held.cores[i]


def _goes_on(site: Site, row: int) -> bool:
    """Return whether the cores of a job are free; they are busy then."""
    nodes, held, tenure = site.nodes, site.held, site.rows.tenure[row]
    for i in range(site.ledger.first[tenure], site.ledger.last[tenure]):
        if nodes.busy[held.node[i]] + held.cores[i] > nodes.cores[held.node[i]]:
            return False
    _add_busy(site, row, 1)
    return True


def put_off_ends(site: Site, now: int) -> None:
    """Put off the ends of the jobs that a pass left suspended, and note those of the others.

    So a job that is suspended and goes on within one second was never suspended.
    """
    c, rows, pauses, jobs, state = site.controller, site.rows, site.pauses, site.jobs, site.state
    if not site.settings.suspends:
        return
    row = c.first_running
    while row >= 0:
        pause = rows.pause[row]
        if rows.suspended[row] >= 0 and pause < 0:
            rows.left[row], rows.pause[row] = jobs.end[row] - now, c.pauses
            jobs.end[row] = NEVER
            halt(site, row)
            state.free += jobs.processors[row]
            pauses.tenure[c.pauses], pauses.begin[c.pauses] = rows.tenure[row], now
            pauses.end[c.pauses] = -1
            c.pauses += 1
        elif rows.suspended[row] < 0 and pause >= 0:
            rows.pause[row], pauses.end[pause] = -1, now
            jobs.end[row] = now + rows.left[row]
            jobs.paused[row] = max(jobs.paused[row], 0) + now - pauses.begin[pause]
            heap_push(site.ends, state.running, jobs.end[row], row)
            state.running += 1
            state.free -= jobs.processors[row]
        row = rows.next[row]
