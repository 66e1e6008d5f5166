"""Limits of associations and QOS; the plain form is ``environment.schedulers.slurm.limits``.

What is to be checked for an option is a list, in Slurm's order, made once in Python.
"""

from __future__ import annotations

from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.engine.kernel.nodes import places as N
from hpcrowd.environment.engine.kernel.nodes.places import Site


def asked_or_held(g: Site, shares: int, d: int, tres: int) -> int:
    """Return how much of a resource a choice holds; what is asked, without shares."""
    if tres < 0:
        return 0
    if not shares:
        return g.demands[N.DEMANDS + tres, d]
    if tres == N.T_NODES:
        return shares
    found, chosen = 0, g.c[N.CHOSEN]
    for i in range(shares):
        if tres == N.T_CORES:
            found += g.nodes[chosen + N.S_CORES, i]
        elif tres == N.T_MEMORY:
            found += g.nodes[chosen + N.S_MEMORY, i]
        elif tres == N.T_GPUS:
            for kind in range(g.c[N.KINDS]):
                found += g.nodes[chosen + N.S_GPUS + kind, i]
        else:
            found += g.nodes[chosen + N.S_GPUS + tres - N.T_KINDS, i]
    return found


def left_to_run(g: Site, use: int, tres: int) -> float:
    """Return what running jobs of an account may still use until their limits, times s."""
    found = 0.0  # unlimited memory times s does not fit into 64 bits
    if tres < 0:
        return found
    now, row = g.s[S.NOW], g.c[N.FIRST_RUNNING]
    while row >= 0:
        tenure = g.rows[N.TENURE, row]
        option, first = g.ledger[N.L_OPTION, tenure], g.ledger[N.L_FIRST, tenure]
        last = g.ledger[N.L_LAST, tenure]
        left = g.ledger[N.L_START, tenure] + g.rows[N.LIMIT, row] - now
        counts = False
        for i in range(g.options[N.USES, option], g.options[N.USES_END, option]):
            counts |= g.checks[N.CHARGED, i] == use
        if counts and left > 0:
            amount = last - first if tres == N.T_NODES else 0
            for share in range(first, last):
                if tres == N.T_CORES:
                    amount += g.held[N.S_CORES, share]
                elif tres == N.T_MEMORY:
                    amount += g.held[N.S_MEMORY, share]
                elif tres == N.T_GPUS:
                    for kind in range(g.c[N.KINDS]):
                        amount += g.held[N.S_GPUS + kind, share]
                elif tres >= N.T_KINDS:
                    amount += g.held[N.S_GPUS + tres - N.T_KINDS, share]
            found += 1.0 * amount * left
        row = g.rows[N.NEXT, row]
    return found


def first_limit(g: Site, first: int, last: int, d: int, limit: int, shares: int) -> int:
    """Return the word of the first limit of a list that is in the way, 0 if none is.

    ``limit`` is the job's time limit, ``shares`` how many are chosen.
    """
    used, chosen = g.used, g.c[N.CHOSEN]
    for i in range(first, last):
        kind, most = g.checks[N.KIND, i], g.checks[N.LIMIT_AT, i]
        use, tres = g.checks[N.USE, i], g.checks[N.TRES, i]
        met = False
        if kind == N.MOST_SUBMITTED:
            met = used[N.ALL_JOBS, use] >= most
        elif kind == N.MOST_RUNNING:
            met = used[N.RUN_JOBS, use] >= most
        elif kind == N.LONGEST:
            met = limit > most
        elif kind == N.USED_MINUTES:
            met = g.reals[N.USAGE, use] / 60 >= most
        elif kind == N.NODE_MOST:
            for share in range(shares):
                on_node = 0
                if tres == N.T_CORES:
                    on_node = g.nodes[chosen + N.S_CORES, share]
                elif tres == N.T_MEMORY:
                    on_node = g.nodes[chosen + N.S_MEMORY, share]
                elif tres == N.T_GPUS:
                    for gpus in range(g.c[N.KINDS]):
                        on_node += g.nodes[chosen + N.S_GPUS + gpus, share]
                met = met or on_node > most
        else:
            amount = asked_or_held(g, shares, d, tres)
            if kind == N.JOB_MOST:
                met = amount > most
            elif kind == N.JOB_LEAST:
                met = amount < most
            else:
                there = used[N.FIRST_TRES + tres, use] if tres >= 0 else 0
                if kind == N.IN_USE:
                    met = there + amount > most
                else:
                    met = left_to_run(g, use, tres) + 1.0 * amount * limit > 60 * most
        if met:
            return g.checks[N.WORD, i]
    return 0


def count_submitted(g: Site, option: int, sign: int) -> None:
    """Note that a job joins (1) or has left (-1) the machine."""
    for i in range(g.options[N.USES, option], g.options[N.USES_END, option]):
        g.used[N.ALL_JOBS, g.checks[N.CHARGED, i]] += sign


def count_started(g: Site, option: int, first: int, last: int, sign: int) -> None:
    """Note that a job has started (1) or ended (-1) with what it holds."""
    options, used, held = g.options, g.used, g.held
    for i in range(options[N.USES, option], options[N.USES_END, option]):
        use = g.checks[N.CHARGED, i]
        used[N.RUN_JOBS, use] += sign
        used[N.FIRST_TRES + N.T_NODES, use] += sign * (last - first)
        for share in range(first, last):
            used[N.FIRST_TRES + N.T_CORES, use] += sign * held[N.S_CORES, share]
            used[N.FIRST_TRES + N.T_MEMORY, use] += sign * held[N.S_MEMORY, share]
            for kind in range(g.c[N.KINDS]):
                gpus = sign * held[N.S_GPUS + kind, share]
                used[N.FIRST_TRES + N.T_GPUS, use] += gpus
                used[N.FIRST_TRES + N.T_KINDS + kind, use] += gpus
