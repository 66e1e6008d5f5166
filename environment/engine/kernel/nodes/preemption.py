"""Whom a job preempts; the plain form is ``environment.schedulers.slurm.preemption``."""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.nodes import places as N
from hpcrowd.environment.engine.kernel.nodes.placement import (
    choose,
    clear,
    has,
    look,
    look_again,
)
from hpcrowd.environment.engine.kernel.nodes.places import Site
from hpcrowd.environment.engine.kernel.nodes.queue import fate_of, waits
from hpcrowd.environment.jobs import Int64Rows, Int64s


def copy_stock(g: Site) -> int:
    """Copy what is free to the room for it, and return its place."""
    now, future = g.c[N.STOCK], g.c[N.FUTURE]
    for field in range(N.FREE_GPUS + g.c[N.KINDS]):
        for node in range(g.nodes.shape[1]):
            g.nodes[future + field, node] = g.nodes[now + field, node]
    return future


def holds_any(g: Site, tenure: int, nodes: Int64s) -> int:
    """Return how many nodes of a set a tenure holds."""
    count = 0
    for i in range(g.ledger[N.L_FIRST, tenure], g.ledger[N.L_LAST, tenure]):
        count += has(nodes, g.held[N.S_NODE, i])
    return count


def order_of(g: Site, now: int) -> int:
    """Return the row of ``entries`` with the order of a pass: preemptors by QOS go first."""
    if g.c[N.PREEMPTS] != N.BY_QOS:
        return N.PLACED
    order, rules, count = g.entries, g.rules, g.c[N.ORDERED]
    kinds = len(rules) - N.PREEMPTED
    for i in range(count):
        order[N.BEHIND, i] = i
    for turn in range(kinds):
        qos, after, last = rules[N.QOS_TURN, turn], -1, -1
        for other in range(turn):
            above = rules[N.QOS_TURN, other]
            if rules[N.PREEMPTED + above, qos]:
                after = max(after, rules[N.LAST_OF, above])
        for i in range(count):
            row = order[N.OWNER, order[N.PLACED, i]]
            here = g.rows[N.ELIGIBLE, row] <= now and waits(g, order[N.PLACED, i])
            if here and g.rows[N.QOS, row] == qos:
                order[N.BEHIND, i] = max(i, after)
                last = max(last, order[N.BEHIND, i])
        rules[N.LAST_OF, qos] = last
    to = 0
    for k in range(count):
        if order[N.BEHIND, k] == k:
            order[N.IN_TURN, to] = order[N.PLACED, k]
            to += 1
        is_last = False
        for qos in range(kinds):
            is_last |= rules[N.LAST_OF, qos] == k
        if is_last:
            for turn in range(kinds):
                for i in range(k):
                    row = order[N.OWNER, order[N.PLACED, i]]
                    if order[N.BEHIND, i] == k and g.rows[N.QOS, row] == rules[N.QOS_TURN, turn]:
                        order[N.IN_TURN, to] = order[N.PLACED, i]
                        to += 1
    return N.IN_TURN


def candidates(g: Site, entry: int, now: int) -> int:
    """Put running jobs that a waiting one may preempt into ``lists[VICTIM]``; return their number.

    The first is the first to go.
    """
    kind, rows, ledger = g.c[N.PREEMPTS], g.rows, g.ledger
    if kind == N.NOBODY:
        return 0
    option, mine = g.entries[N.OPTION, entry], g.entries[N.OWNER, entry]
    tier = g.rules[N.TIER, g.options[N.PARTITION, option]]
    nodes = g.sets[g.c[N.SETS] + g.demands[N.SET, g.options[N.DEMAND, option]]]
    victims, count = g.lists, 0
    row = g.c[N.FIRST_RUNNING]
    while row >= 0:
        tenure, other = rows[N.TENURE, row], row
        row = rows[N.NEXT, row]
        its_tier = g.rules[N.TIER, g.options[N.PARTITION, ledger[N.L_OPTION, tenure]]]
        if kind == N.BY_PARTITION:
            lower = its_tier < tier
        else:
            theirs = rows[N.QOS, other]
            lower = rows[N.QOS, mine] >= 0 and theirs >= 0
            lower = lower and g.rules[N.PREEMPTED + rows[N.QOS, mine], theirs] != 0
        if (
            lower
            and holds_any(g, tenure, nodes)
            and now - ledger[N.L_START, tenure] >= g.c[N.EXEMPT]
            and fate_of(g, other) != N.KEPT
        ):
            victims[N.VICTIM, count] = other
            if g.c[N.YOUNGEST_FIRST]:
                victims[N.FIRST_KEY, count], victims[N.SECOND_KEY, count] = (
                    -ledger[N.L_START, tenure],
                    other,
                )
            else:
                rank = (
                    its_tier if kind == N.BY_PARTITION else g.rules[N.QOS_RANK, rows[N.QOS, other]]
                )
                victims[N.FIRST_KEY, count] = rank
                victims[N.SECOND_KEY, count] = ledger[N.L_LAST, tenure] - ledger[N.L_FIRST, tenure]
            count += 1
    _sort(victims, 0, count)
    return count


def _sort(victims: Int64Rows, first: int, last: int) -> None:
    """Sort by the second and third row; equal ones keep their order."""
    for i in range(first + 1, last):
        row, a, b = victims[N.VICTIM, i], victims[N.FIRST_KEY, i], victims[N.SECOND_KEY, i]
        k = i
        while k > first and (
            victims[N.FIRST_KEY, k - 1] > a
            or (victims[N.FIRST_KEY, k - 1] == a and victims[N.SECOND_KEY, k - 1] > b)
        ):
            for field in range(N.VICTIM, N.SECOND_KEY + 1):
                victims[field, k] = victims[field, k - 1]
            k -= 1
        victims[N.VICTIM, k], victims[N.FIRST_KEY, k], victims[N.SECOND_KEY, k] = row, a, b


def choose_victims(g: Site, d: int, allowed: Int64s, count: int) -> tuple[int, int]:
    """Choose nodes, and whom to preempt for them.

    Candidates, ``count`` of them in ``lists[VICTIM]``, go one by one until it fits; then those that
    hold most of the chosen nodes are tried first.

    Returns
    -------
    tuple
        The number of chosen shares, -1 for none, and of candidates that were removed, the first in
        ``lists[VICTIM]``; marks in ``lists[IN_THE_WAY]`` say which hold some of the chosen nodes.
    """
    victims, rows = g.lists, g.rows
    nodes, removed, shares = g.sets[N.WORK + 5], 0, -1
    reorder = g.c[N.REORDER]
    for again in range(reorder + 2):
        future = copy_stock(g)
        look(g, future, d, allowed)
        removed, shares = 0, -1
        for i in range(count):
            look_again(g, future, d, rows[N.TENURE, victims[N.VICTIM, i]], allowed)
            removed += 1
            shares = choose(g, future, d)
            if shares >= 0:
                break
        if shares < 0:
            return -1, 0
        clear(nodes)
        for i in range(shares):
            node = g.nodes[g.c[N.CHOSEN] + N.S_NODE, i]
            nodes[node >> 6] |= 1 << (node & 63)
        if again > reorder or count <= again + 1:
            break
        last = victims[N.VICTIM, removed - 1]
        for i in range(removed - 1, 0, -1):
            victims[N.VICTIM, i] = victims[N.VICTIM, i - 1]
        victims[N.VICTIM, 0] = last
        for i in range(1, removed):
            victims[N.FIRST_KEY, i] = -holds_any(g, rows[N.TENURE, victims[N.VICTIM, i]], nodes)
            victims[N.SECOND_KEY, i] = 0
        _sort(victims, 1, removed)
    for i in range(removed):
        victims[N.IN_THE_WAY, i] = holds_any(g, rows[N.TENURE, victims[N.VICTIM, i]], nodes) > 0
    return shares, removed
