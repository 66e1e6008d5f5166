"""Limits of associations and QOS; the plain form is ``environment.schedulers.slurm.limits``.

What is to be checked for an option is a list, in Slurm's order, made once in Python.
"""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.engine.kernel.nodes.site import Site
from hpcrowd.environment.jobs import Int64Rows
from hpcrowd.environment.stops import FOREVER


def held_amount(table: Int64Rows, at: int, kinds: int, first: int, last: int, tres: int) -> int:
    """Return how much of a resource shares hold; their rows begin at ``at`` of a table."""
    if tres == N.T_NODES:
        return last - first
    found = 0
    for i in range(first, last):
        if tres == N.T_CORES:
            found += table[at + N.S_CORES, i]
        elif tres == N.T_MEMORY:
            found += table[at + N.S_MEMORY, i]
        elif tres == N.T_GPUS:
            for kind in range(kinds):
                found += table[at + N.S_GPUS + kind, i]
        else:
            found += table[at + N.S_GPUS + tres - N.T_KINDS, i]
    return found


def billed(site: Site, option: int, table: Int64Rows, at: int, first: int, last: int) -> float:
    """Return what a job is billed for shares: the plain form is ``billing.billable``."""
    kinds, found, most = site.settings.kinds, 0.0, 0.0
    if not site.settings.billed:
        return 1.0 * held_amount(table, at, kinds, first, last, N.T_CORES)
    for tres in range(site.settings.billing):
        weight = site.weights.table[N.WEIGHT_ROWS + tres, option]
        if weight:
            amount = weight * held_amount(table, at, kinds, first, last, tres)
            found += amount
            most = max(most, amount)
    return most if site.settings.largest else found


def asked_or_held(site: Site, shares: int, option: int, tres: int) -> int:
    """Return how much of a resource a choice holds; what is asked, without shares."""
    if tres < 0:
        return 0
    nodes, chosen, settings = site.nodes, site.settings.chosen, site.settings
    if not shares:
        return site.demands.table[N.DEMANDS + tres, site.options.demand[option]]
    if tres == settings.billing:
        return int(billed(site, option, nodes.table, chosen, 0, shares))
    return held_amount(nodes.table, chosen, settings.kinds, 0, shares, tres)


def left_to_run(site: Site, use: int, tres: int, since: int) -> float:
    """Return what running jobs of an account may still use until their limits, times s.

    That is from a second on, or their starts.
    """
    found = 0.0  # unlimited memory times s does not fit into 64 bits
    if tres < 0:
        return found
    settings, held, row = site.settings, site.held, site.controller.first_running
    while row >= 0:
        tenure = site.rows.tenure[row]
        option, first = site.ledger.option[tenure], site.ledger.first[tenure]
        last, begin = site.ledger.last[tenure], site.ledger.start[tenure]
        left = begin + site.rows.limit[row] + site.rows.rested[row] - max(since, begin)
        counts = False
        for i in range(site.options.uses[option], site.options.uses_end[option]):
            counts |= site.checks.charged[i] == use
        if counts and left > 0:
            if tres == settings.billing:
                amount = int(billed(site, option, held.table, 0, first, last))
            else:
                amount = held_amount(held.table, 0, settings.kinds, first, last, tres)
            found += 1.0 * amount * left
        row = site.rows.next[row]
    return found


def spent_too_much(site: Site, i: int, amount: int, limit: int) -> bool:
    """Return whether decayed usage is at its limit, or would be beyond it after a job."""
    use, tres, most = site.checks.use[i], site.checks.tres[i], site.checks.limit_at[i]
    if tres < 0:
        return False
    spent = site.spent.table[N.SPENT_ROWS + tres, use]
    if not site.settings.safe:
        return spent / 60 >= most
    left = left_to_run(site, use, tres, site.controller.calculated)
    return spent + left + 1.0 * amount * limit > 60 * most or spent / 60 >= most


def usage_falls(site: Site, option: int, limit: int) -> bool:
    """Return whether time alone takes usage below the limits that keep a job waiting.

    ``limit`` is the job's time limit.
    """
    falls = False
    for i in range(site.options.after[option], site.options.after_end[option]):
        if site.checks.kind[i] == N.USED_MINUTES and spent_too_much(
            site, i, asked_or_held(site, 0, option, site.checks.tres[i]), limit
        ):
            if site.spent.kept[site.checks.use[i]] >= 1 and site.controller.next_reset == FOREVER:
                return False
            falls = True
    return falls


def first_limit(site: Site, first: int, last: int, option: int, limit: int, shares: int) -> int:
    """Return the word of the first limit of a list that is in the way, 0 if none is.

    ``limit`` is the job's time limit, ``shares`` how many are chosen.
    """
    used, chosen = site.used, site.settings.chosen
    for i in range(first, last):
        kind, most = site.checks.kind[i], site.checks.limit_at[i]
        use, tres = site.checks.use[i], site.checks.tres[i]
        met = False
        if kind == N.MOST_SUBMITTED:
            met = used.all_jobs[use] >= most
        elif kind == N.MOST_RUNNING:
            met = used.run_jobs[use] >= most
        elif kind == N.LONGEST:
            met = limit > most
        elif kind == N.NODE_MOST:
            for share in range(shares):
                on_node = 0
                if tres == N.T_CORES:
                    on_node = site.nodes.table[chosen + N.S_CORES, share]
                elif tres == N.T_MEMORY:
                    on_node = site.nodes.table[chosen + N.S_MEMORY, share]
                elif tres == N.T_GPUS:
                    for gpus in range(site.settings.kinds):
                        on_node += site.nodes.table[chosen + N.S_GPUS + gpus, share]
                met = met or on_node > most
        else:
            amount = asked_or_held(site, shares, option, tres)
            if kind == N.USED_MINUTES:
                met = spent_too_much(site, i, amount, limit)
            elif kind == N.JOB_MOST:
                met = amount > most
            elif kind == N.JOB_LEAST:
                met = amount < most
            else:
                there = used.table[N.FIRST_TRES + tres, use] if tres >= 0 else 0
                if kind == N.IN_USE:
                    met = there + amount > most
                else:
                    left = left_to_run(site, use, tres, site.state.now)
                    met = left + 1.0 * amount * limit > 60 * most
        if met:
            return site.checks.word[i]
    return 0


def count_submitted(site: Site, option: int, sign: int) -> None:
    """Note that a job joins (1) or has left (-1) the machine."""
    for i in range(site.options.uses[option], site.options.uses_end[option]):
        site.used.all_jobs[site.checks.charged[i]] += sign


def count_started(site: Site, option: int, first: int, last: int, sign: int) -> None:
    """Note that a job has started (1) or ended (-1) with what it holds."""
    options, used, held = site.options, site.used, site.held
    bill, by_weights = 0, site.settings.billed
    if by_weights:
        bill = sign * int(billed(site, option, held.table, 0, first, last))
    for i in range(options.uses[option], options.uses_end[option]):
        use = site.checks.charged[i]
        used.run_jobs[use] += sign
        used.table[N.FIRST_TRES + N.T_NODES, use] += sign * (last - first)
        used.table[N.FIRST_TRES + site.settings.billing, use] += bill
        for share in range(first, last):
            cores = sign * held.cores[share]
            used.table[N.FIRST_TRES + N.T_CORES, use] += cores
            if not by_weights:
                used.table[N.FIRST_TRES + site.settings.billing, use] += cores
            used.table[N.FIRST_TRES + N.T_MEMORY, use] += sign * held.memory[share]
            for kind in range(site.settings.kinds):
                gpus = sign * held.table[N.S_GPUS + kind, share]
                used.table[N.FIRST_TRES + N.T_GPUS, use] += gpus
                used.table[N.FIRST_TRES + N.T_KINDS + kind, use] += gpus
