"""Whom a job preempts; the plain form is ``environment.schedulers.slurm.preemption``."""

from __future__ import annotations

from hpcrowd.environment.compilation import compiled
from hpcrowd.environment.engine.kernel.nodes import places as N
from hpcrowd.environment.engine.kernel.nodes.placement import select, take
from hpcrowd.environment.engine.kernel.nodes.queue import fate_of


@compiled
def copy_stock(stock, scratch):
    """Return a copy of what is free, in the room for it."""
    for node in range(len(stock.cores)):
        scratch.cores[node], scratch.memory[node] = stock.cores[node], stock.memory[node]
        scratch.jobs[node] = stock.jobs[node]
        for kind in range(stock.gpus.shape[0]):
            scratch.gpus[kind, node] = stock.gpus[kind, node]
    return N.Stock(scratch.cores, scratch.memory, scratch.gpus, scratch.jobs)


@compiled
def holds_any(state, tenure, nodes):
    """Return how many nodes of a set a tenure holds."""
    count = 0
    for i in range(state.ledger[N.L_FIRST, tenure], state.ledger[N.L_LAST, tenure]):
        count += nodes[state.held[N.S_NODE, i]]
    return count


@compiled
def candidates(site, asked, queue, state, scratch, entry, now):
    """Put running jobs that a waiting one may preempt into ``victims[0]``; return their number.

    The first is the first to go.
    """
    kind, rows, ledger = site.settings[N.PREEMPTS], queue.rows, state.ledger
    if kind == N.NOBODY:
        return 0
    option, mine = queue.entries[N.OPTION, entry], queue.entries[N.OWNER, entry]
    tier = site.partitions[N.TIER, asked.options[N.PARTITION, option]]
    nodes = asked.sets[asked.demands[N.SET, asked.options[N.DEMAND, option]]]
    victims, count = scratch.victims, 0
    row = state.c[N.FIRST_RUNNING]
    while row >= 0:
        tenure, other = rows[N.TENURE, row], row
        row = rows[N.NEXT, row]
        its_tier = site.partitions[N.TIER, asked.options[N.PARTITION, ledger[N.L_OPTION, tenure]]]
        if kind == N.BY_PARTITION:
            lower = its_tier < tier
        else:
            theirs = rows[N.QOS, other]
            lower = rows[N.QOS, mine] >= 0 and theirs >= 0
            lower = lower and site.preempts[rows[N.QOS, mine], theirs] != 0
        if (
            lower
            and holds_any(state, tenure, nodes)
            and now - ledger[N.L_START, tenure] >= site.settings[N.EXEMPT]
            and fate_of(site, asked, queue, state, other) != N.KEPT
        ):
            victims[0, count] = other
            if site.settings[N.YOUNGEST_FIRST]:
                victims[1, count], victims[2, count] = -ledger[N.L_START, tenure], other
            else:
                rank = its_tier if kind == N.BY_PARTITION else site.ranks[rows[N.QOS, other]]
                victims[1, count] = rank
                victims[2, count] = ledger[N.L_LAST, tenure] - ledger[N.L_FIRST, tenure]
            count += 1
    _sort(victims, 0, count)
    return count


@compiled
def _sort(victims, first, last):
    """Sort by the second and third row; equal ones keep their order."""
    for i in range(first + 1, last):
        row, a, b = victims[0, i], victims[1, i], victims[2, i]
        k = i
        while k > first and (
            victims[1, k - 1] > a or (victims[1, k - 1] == a and victims[2, k - 1] > b)
        ):
            for field in range(3):
                victims[field, k] = victims[field, k - 1]
            k -= 1
        victims[0, k], victims[1, k], victims[2, k] = row, a, b


@compiled
def choose_victims(site, asked, queue, state, stock, scratch, d, allowed, count):
    """Choose nodes, and whom to preempt for them.

    Candidates, ``count`` of them in ``victims[0]``, go one by one until it fits; then those that
    hold most of the chosen nodes are tried first.

    Returns
    -------
    tuple
        The number of chosen shares, -1 for none, and of candidates that were removed, the first in
        ``victims[0]``; those hold some of the chosen nodes that are marked in ``victims[3]``.
    """
    victims, ledger, rows = scratch.victims, state.ledger, queue.rows
    nodes, removed, shares = scratch.allowed[5], 0, -1
    reorder = site.settings[N.REORDER]
    for again in range(reorder + 2):
        future = copy_stock(stock, scratch)
        removed, shares = 0, -1
        for i in range(count):
            tenure = rows[N.TENURE, victims[0, i]]
            take(future, state.held, ledger[N.L_FIRST, tenure], ledger[N.L_LAST, tenure], 1)
            removed += 1
            shares = select(site, asked, future, scratch, d, allowed, site.settings[N.RULE])
            if shares >= 0:
                break
        if shares < 0:
            return -1, 0
        for node in range(len(nodes)):
            nodes[node] = 0
        for i in range(shares):
            nodes[scratch.chosen[N.S_NODE, i]] = 1
        if again > reorder or count <= again + 1:
            break
        last = victims[0, removed - 1]
        for i in range(removed - 1, 0, -1):
            victims[0, i] = victims[0, i - 1]
        victims[0, 0] = last
        for i in range(1, removed):
            victims[1, i] = -holds_any(state, rows[N.TENURE, victims[0, i]], nodes)
            victims[2, i] = 0
        _sort(victims, 1, removed)
    for i in range(removed):
        victims[3, i] = holds_any(state, rows[N.TENURE, victims[0, i]], nodes) > 0
    return shares, removed
