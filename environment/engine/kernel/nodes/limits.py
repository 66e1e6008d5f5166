"""Limits of associations and QOS; the plain form is ``environment.schedulers.slurm.limits``.

What is to be checked for an option is a list, in Slurm's order, made once in Python.
"""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.engine.kernel.nodes.site import Site


def asked_or_held(site: Site, shares: int, d: int, tres: int) -> int:
    """Return how much of a resource a choice holds; what is asked, without shares."""
    if tres < 0:
        return 0
    if not shares:
        return site.demands.table[N.DEMANDS + tres, d]
    if tres == N.T_NODES:
        return shares
    found, chosen = 0, site.settings.chosen
    for i in range(shares):
        if tres == N.T_CORES:
            found += site.nodes.table[chosen + N.S_CORES, i]
        elif tres == N.T_MEMORY:
            found += site.nodes.table[chosen + N.S_MEMORY, i]
        elif tres == N.T_GPUS:
            for kind in range(site.settings.kinds):
                found += site.nodes.table[chosen + N.S_GPUS + kind, i]
        else:
            found += site.nodes.table[chosen + N.S_GPUS + tres - N.T_KINDS, i]
    return found


def left_to_run(site: Site, use: int, tres: int) -> float:
    """Return what running jobs of an account may still use until their limits, times s."""
    found = 0.0  # unlimited memory times s does not fit into 64 bits
    if tres < 0:
        return found
    now, row = site.state.now, site.controller.first_running
    while row >= 0:
        tenure = site.rows.tenure[row]
        option, first = site.ledger.option[tenure], site.ledger.first[tenure]
        last = site.ledger.last[tenure]
        left = site.ledger.start[tenure] + site.rows.limit[row] + site.rows.rested[row] - now
        counts = False
        for i in range(site.options.uses[option], site.options.uses_end[option]):
            counts |= site.checks.charged[i] == use
        if counts and left > 0:
            amount = last - first if tres == N.T_NODES else 0
            for share in range(first, last):
                if tres == N.T_CORES:
                    amount += site.held.cores[share]
                elif tres == N.T_MEMORY:
                    amount += site.held.memory[share]
                elif tres == N.T_GPUS:
                    for kind in range(site.settings.kinds):
                        amount += site.held.table[N.S_GPUS + kind, share]
                elif tres >= N.T_KINDS:
                    amount += site.held.table[N.S_GPUS + tres - N.T_KINDS, share]
            found += 1.0 * amount * left
        row = site.rows.next[row]
    return found


def first_limit(site: Site, first: int, last: int, d: int, limit: int, shares: int) -> int:
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
        elif kind == N.USED_MINUTES:
            met = site.fair_share.usage[use] / 60 >= most
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
            amount = asked_or_held(site, shares, d, tres)
            if kind == N.JOB_MOST:
                met = amount > most
            elif kind == N.JOB_LEAST:
                met = amount < most
            else:
                there = used.table[N.FIRST_TRES + tres, use] if tres >= 0 else 0
                if kind == N.IN_USE:
                    met = there + amount > most
                else:
                    met = left_to_run(site, use, tres) + 1.0 * amount * limit > 60 * most
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
    for i in range(options.uses[option], options.uses_end[option]):
        use = site.checks.charged[i]
        used.run_jobs[use] += sign
        used.table[N.FIRST_TRES + N.T_NODES, use] += sign * (last - first)
        for share in range(first, last):
            used.table[N.FIRST_TRES + N.T_CORES, use] += sign * held.cores[share]
            used.table[N.FIRST_TRES + N.T_MEMORY, use] += sign * held.memory[share]
            for kind in range(site.settings.kinds):
                gpus = sign * held.table[N.S_GPUS + kind, share]
                used.table[N.FIRST_TRES + N.T_GPUS, use] += gpus
                used.table[N.FIRST_TRES + N.T_KINDS + kind, use] += gpus
