"""Whom a job preempts; slurm.conf(5), PreemptType and PreemptMode."""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.engine.kernel.nodes.placement import (
    choose,
    clear,
    has,
    lend,
    look,
    look_again,
    select,
)
from hpcrowd.environment.engine.kernel.nodes.queue import fate_of, waits
from hpcrowd.environment.engine.kernel.nodes.site import Lists, Site
from hpcrowd.environment.jobs import Int64s


def copy_stock(site: Site) -> int:
    """Copy what is free to the room for it, and return its place."""
    settings = site.settings
    now, future = settings.stock, settings.future
    for field in range(N.FREE_GPUS + settings.kinds):
        for node in range(site.nodes.table.shape[1]):
            site.nodes.table[future + field, node] = site.nodes.table[now + field, node]
    return future


def holds_any(site: Site, tenure: int, nodes: Int64s) -> int:
    """Return how many nodes of a set a tenure holds."""
    count = 0
    for i in range(site.ledger.first[tenure], site.ledger.last[tenure]):
        count += has(nodes, site.held.node[i])
    return count


def order_of(site: Site, now: int) -> int:
    """Return the row of ``entries`` with the order of a pass: preemptors by QOS go first."""
    if site.settings.preempts != N.BY_QOS:
        return N.PLACED
    order, rules, count = site.entries, site.rules, site.controller.ordered
    kinds = rules.table.shape[0] - N.PREEMPTED
    for i in range(count):
        order.behind[i] = i
    for turn in range(kinds):
        qos, after, last = rules.qos_turn[turn], -1, -1
        for other in range(turn):
            above = rules.qos_turn[other]
            if rules.table[N.PREEMPTED + above, qos]:
                after = max(after, rules.last_of[above])
        for i in range(count):
            row = order.owner[order.placed[i]]
            here = site.rows.eligible[row] <= now and waits(site, order.placed[i])
            if here and site.rows.qos[row] == qos:
                order.behind[i] = max(i, after)
                last = max(last, order.behind[i])
        rules.last_of[qos] = last
    to = 0
    for k in range(count):
        if order.behind[k] == k:
            order.in_turn[to] = order.placed[k]
            to += 1
        is_last = False
        for qos in range(kinds):
            is_last |= rules.last_of[qos] == k
        if is_last:
            for turn in range(kinds):
                for i in range(k):
                    row = order.owner[order.placed[i]]
                    if order.behind[i] == k and site.rows.qos[row] == rules.qos_turn[turn]:
                        order.in_turn[to] = order.placed[i]
                        to += 1
    return N.IN_TURN


def candidates(site: Site, entry: int, now: int) -> int:
    """Put running jobs that a waiting one may preempt into ``lists.victim``; return their number.

    The first is the first to go.
    """
    settings = site.settings
    kind, rows, ledger = settings.preempts, site.rows, site.ledger
    if kind == N.NOBODY:
        return 0
    option, mine = site.entries.option[entry], site.entries.owner[entry]
    tier = site.rules.tier[site.options.partition[option]]
    nodes = site.sets[settings.sets + site.demands.set[site.options.demand[option]]]
    victims, count = site.lists, 0
    row = site.controller.first_running
    while row >= 0:
        tenure, other = rows.tenure[row], row
        row = rows.next[row]
        its_tier = site.rules.tier[site.options.partition[ledger.option[tenure]]]
        if kind == N.BY_PARTITION:
            lower = its_tier < tier
        else:
            theirs = rows.qos[other]
            lower = rows.qos[mine] >= 0 and theirs >= 0
            lower = lower and site.rules.table[N.PREEMPTED + rows.qos[mine], theirs] != 0
        if (
            lower
            and holds_any(site, tenure, nodes)
            and (rows.suspended[other] >= 0 or now - ledger.start[tenure] >= settings.exempt)
            and fate_of(site, other) != N.KEPT
        ):
            victims.victim[count] = other
            if settings.youngest_first:
                victims.first_key[count] = -ledger.start[tenure]
                victims.second_key[count] = other
            else:
                victims.first_key[count] = rank_of(site, other)
                victims.second_key[count] = ledger.last[tenure] - ledger.first[tenure]
            count += 1
    _sort(victims, 0, count)
    return count


def rank_of(site: Site, row: int) -> int:
    """Return the rank of a running job among those that are preempted: low ones go first."""
    if site.settings.preempts == N.BY_PARTITION:
        option = site.ledger.option[site.rows.tenure[row]]
        return site.rules.tier[site.options.partition[option]]
    return site.rules.qos_rank[site.rows.qos[row]]


def _sort(victims: Lists, first: int, last: int) -> None:
    """Sort by the second and third row; equal ones keep their order."""
    for i in range(first + 1, last):
        row, a, b = victims.victim[i], victims.first_key[i], victims.second_key[i]
        k = i
        while k > first and (
            victims.first_key[k - 1] > a
            or (victims.first_key[k - 1] == a and victims.second_key[k - 1] > b)
        ):
            for field in range(N.VICTIM, N.SECOND_KEY + 1):
                victims.table[field, k] = victims.table[field, k - 1]
            k -= 1
        victims.victim[k], victims.first_key[k], victims.second_key[k] = row, a, b


def _lenders_last(site: Site, count: int) -> int:
    """Put the candidates that would be suspended behind the others; return how many those are."""
    victims, others = site.lists.victim, 0
    for i in range(count):
        row = victims[i]
        if fate_of(site, row) != N.SUSPENDED:
            for k in range(i, others, -1):
                victims[k] = victims[k - 1]
            victims[others] = row
            others += 1
    return others


def _copy_lent(site: Site, first: int, last: int) -> int:
    """Copy what is free with the cores that some candidates lend, and return its place."""
    future = copy_stock(site)
    for i in range(first, last):
        tenure = site.rows.tenure[site.lists.victim[i]]
        lend(site, future, site.ledger.first[tenure], site.ledger.last[tenure])
    return future


def choose_victims(
    site: Site, entry: int, d: int, allowed: Int64s, now: int
) -> tuple[int, int, int]:
    """Choose nodes for a job, and whom to preempt for them.

    Those that would be suspended lend their cores first, all of them. If that is not enough, the
    other candidates go one by one until it fits; then those that hold most of the chosen nodes are
    tried first.

    Returns
    -------
    tuple
        The number of chosen shares, -1 for none, and the first and behind the last candidate, in
        ``lists.victim``, that lend or go; marks in ``lists.in_the_way`` say which of those that go
        hold some of the chosen nodes.
    """
    there = candidates(site, entry, now)
    if not there:
        return -1, 0, 0
    count = _lenders_last(site, there)
    if count < there:
        future = _copy_lent(site, count, there)
        shares = select(site, future, d, allowed)
        if shares >= 0:
            return shares, count, there
    shares, removed = _choose_going(site, d, allowed, count, there)
    return shares, 0, removed


def _choose_going(site: Site, d: int, allowed: Int64s, count: int, there: int) -> tuple[int, int]:
    """Choose nodes, and who of the first candidates goes; those behind ``count`` lend cores."""
    victims, rows = site.lists, site.rows
    nodes, removed, shares = site.sets[N.WORK + 5], 0, -1
    reorder = site.settings.reorder
    for again in range(reorder + 2):
        future = _copy_lent(site, count, there)
        look(site, future, d, allowed)
        removed, shares = 0, -1
        for i in range(count):
            look_again(site, future, d, rows.tenure[victims.victim[i]], allowed)
            removed += 1
            shares = choose(site, future, d)
            if shares >= 0:
                break
        if shares < 0:
            return -1, 0
        clear(nodes)
        for i in range(shares):
            node = site.nodes.table[site.settings.chosen + N.S_NODE, i]
            nodes[node >> 6] |= 1 << (node & 63)
        if again > reorder or count <= again + 1:
            break
        last = victims.victim[removed - 1]
        for i in range(removed - 1, 0, -1):
            victims.victim[i] = victims.victim[i - 1]
        victims.victim[0] = last
        for i in range(1, removed):
            victims.first_key[i] = -holds_any(site, rows.tenure[victims.victim[i]], nodes)
            victims.second_key[i] = 0
        _sort(victims, 1, removed)
    for i in range(removed):
        victims.in_the_way[i] = holds_any(site, rows.tenure[victims.victim[i]], nodes) > 0
    return shares, removed
