"""Which nodes a job gets; the plain form is ``environment.machine.selection``."""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.nodes import places as N
from hpcrowd.environment.engine.kernel.nodes.places import Site
from hpcrowd.environment.jobs import Int64Rows, Int64s


def has(nodes: Int64s, node: int) -> int:
    """Return 1 if a set holds a node, else 0."""
    return (nodes[node >> 6] >> (node & 63)) & 1


def bits_of(word: int) -> int:
    """Return how many bits of a word are set, counted in pairs, nibbles and bytes."""
    word = word - ((word >> 1) & 0x5555555555555555)
    word = (word & 0x3333333333333333) + ((word >> 2) & 0x3333333333333333)
    return (((word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F) * 0x0101010101010101) >> 56


def has_as_many(nodes: Int64s, least: int) -> bool:
    """Return whether a set holds as many nodes."""
    count = 0
    for i in range(len(nodes)):
        count += bits_of(nodes[i])
        if count >= least:
            return True
    return count >= least


def size(nodes: Int64s) -> int:
    """Return how many nodes a set holds."""
    count = 0
    for i in range(len(nodes)):
        count += bits_of(nodes[i])
    return count


def copy_set(nodes: Int64s, others: Int64s) -> None:
    """Make a set of nodes equal to another one."""
    for i in range(len(nodes)):
        nodes[i] = others[i]


def keep_only(nodes: Int64s, others: Int64s) -> None:
    """Keep only the nodes of a set that are in another one too."""
    for i in range(len(nodes)):
        nodes[i] &= others[i]


def remove(nodes: Int64s, others: Int64s) -> None:
    """Take the nodes of another set out of a set."""
    for i in range(len(nodes)):
        nodes[i] &= ~others[i]


def clear(nodes: Int64s) -> None:
    """Take all nodes out of a set."""
    for i in range(len(nodes)):
        nodes[i] = 0


def take(g: Site, stock: int, first: int, last: int, sign: int) -> None:
    """Let shares of tenures be held (``sign`` -1) or given back (1); ``stock`` is where."""
    nodes, held = g.nodes, g.held
    for i in range(first, last):
        node = held[N.S_NODE, i]
        nodes[stock + N.FREE_CORES, node] += sign * held[N.S_CORES, i]
        nodes[stock + N.FREE_MEMORY, node] += sign * held[N.S_MEMORY, i]
        nodes[stock + N.JOBS_HERE, node] -= sign
        for kind in range(g.c[N.KINDS]):
            nodes[stock + N.FREE_GPUS + kind, node] += sign * held[N.S_GPUS + kind, i]


def free_gpus(g: Site, stock: int, node: int, kind: int) -> int:
    """Return the free GPUs of a node: of a type, of all with -1, none with -2."""
    if kind >= 0:
        return g.nodes[stock + N.FREE_GPUS + kind, node]
    found = 0
    if kind == -1:
        for i in range(g.c[N.KINDS]):
            found += g.nodes[stock + N.FREE_GPUS + i, node]
    return found


def usable_cores(g: Site, stock: int, d: int, node: int) -> int:
    """Return how many cores of a node a job could use; 0 if it cannot use the node."""
    gpus = 0
    if g.demands[N.NODE_GPUS, d]:
        gpus = free_gpus(g, stock, node, g.demands[N.GPU_KIND, d])
    return usable_of(
        g, d, node, g.nodes[stock + N.FREE_CORES, node], g.nodes[stock + N.FREE_MEMORY, node],
        g.nodes[stock + N.JOBS_HERE, node], gpus,
    )  # fmt: skip


def usable_of(g: Site, d: int, node: int, cores: int, memory: int, jobs: int, gpus: int) -> int:
    """Return how many cores of a node a job could use, given what is free there."""
    demands = g.demands
    whole = demands[N.WHOLE, d]
    if whole and jobs:
        return 0
    cores = min(cores, demands[N.MOST_CORES, d])
    if not demands[N.CORES_ONLY, d]:
        if demands[N.ALL_MEMORY, d]:
            if memory < g.nodes[N.MEMORY, node]:
                return 0
        elif memory < demands[N.NODE_MEMORY, d]:
            return 0
        per_core = demands[N.CORE_MEMORY, d]
        if per_core:
            if whole:
                if memory < per_core * g.nodes[N.CORES, node]:
                    return 0
            else:
                cores = min(cores, memory // per_core)
        if gpus < demands[N.NODE_GPUS, d]:
            return 0
    if demands[N.PER_TASK, d] > 1:
        cores -= cores % demands[N.PER_TASK, d]
    return cores if cores >= demands[N.LEAST_CORES, d] else 0


def select(g: Site, stock: int, d: int, allowed: Int64s) -> int:
    """Choose nodes for a demand; return how many shares are chosen, -1 if it does not fit."""
    look(g, stock, d, allowed)
    return choose(g, stock, d)


def _learn_nodes(g: Site, stock: int, d: int) -> None:
    """Note what a job could use of each node of its set now."""
    table, nodes = g.nodes, g.sets[g.c[N.SETS] + g.demands[N.SET, d]]
    counts_gpus, kind = g.demands[N.GPUS, d] > 0, g.demands[N.GPU_KIND, d]
    for node in range(table.shape[1]):
        cores = gpus = 0
        if has(nodes, node) and table[stock + N.FREE_CORES, node] > 0:
            cores = usable_cores(g, stock, d, node)
            if cores and counts_gpus:
                gpus = free_gpus(g, stock, node, kind)
        table[N.BASE, node], table[N.BASE_GPUS, node] = cores, gpus


def look(g: Site, stock: int, d: int, allowed: Int64s) -> None:
    """Note which nodes of a set a job could use, and in ``c`` what they have in all."""
    table, c, places = g.nodes, g.c, g.nodes.shape[1]
    if stock != c[N.STOCK] or c[N.BASE_OF] != d:
        _learn_nodes(g, stock, d)
        c[N.BASE_OF] = d if stock == c[N.STOCK] else -1
    count, total, most = _look(table[N.BASE], table[N.USABLE], allowed)
    gpus = 0
    if g.demands[N.GPUS, d]:
        for node in range(places):
            here = table[N.BASE_GPUS, node] if table[N.USABLE, node] else 0
            gpus += here
            table[N.GPUS_HERE, node] = here
    c[N.U_NODES], c[N.U_CORES], c[N.U_MOST], c[N.U_GPUS] = count, total, most, gpus


def _look(base: Int64s, usable: Int64s, allowed: Int64s) -> tuple[int, int, int]:
    """Note the usable cores of allowed nodes; return how many nodes, cores, and most of one."""
    count, total, most = 0, 0, 0
    for i in range(len(allowed)):
        word, first, last = allowed[i], i << 6, min((i + 1) << 6, len(base))
        if not word:
            for node in range(first, last):
                usable[node] = 0
            continue
        for node in range(first, last):
            cores = base[node] & -(word & 1)
            word >>= 1
            count += cores > 0
            total += cores
            most = max(most, cores)
            usable[node] = cores
    return count, total, most


def look_again(g: Site, stock: int, d: int, tenure: int, allowed: Int64s) -> None:
    """Let a running job give its shares back, and note what that changes for a demand."""
    held = g.held
    first, last = g.ledger[N.L_FIRST, tenure], g.ledger[N.L_LAST, tenure]
    nodes, kind = g.sets[g.c[N.SETS] + g.demands[N.SET, d]], g.demands[N.GPU_KIND, d]
    take(g, stock, first, last, 1)
    for i in range(first, last):
        node = held[N.S_NODE, i]
        if has(allowed, node) and has(nodes, node):
            cores = usable_cores(g, stock, d, node)
            gpus = free_gpus(g, stock, node, kind)
            note_usable(g, d, node, cores, gpus)


def note_usable(g: Site, d: int, node: int, cores: int, gpus: int) -> None:
    """Note how many cores of a node a job could use now, and the GPUs there."""
    c, table = g.c, g.nodes
    before = table[N.USABLE, node]
    if cores:
        c[N.U_NODES] += before == 0
        c[N.U_MOST] = max(c[N.U_MOST], cores)
        if g.demands[N.GPUS, d]:
            c[N.U_GPUS] += gpus - table[N.GPUS_HERE, node]
            table[N.GPUS_HERE, node] = gpus
    table[N.USABLE, node] = cores
    c[N.U_CORES] += cores - before


def may_suffice(g: Site, d: int) -> bool:
    """Return whether the nodes that were looked at have enough, if chosen well.

    No choice has more than the largest nodes that it may take, or than all.
    """
    c, demands, wanted = g.c, g.demands, g.demands[N.WANTED_CORES, d]
    return (
        c[N.U_NODES] >= demands[N.LEAST, d]
        and c[N.U_CORES] >= wanted
        and c[N.U_MOST] * min(demands[N.MOST, d], c[N.U_NODES]) >= wanted
        and c[N.U_GPUS] >= demands[N.GPUS, d]
    )


def choose(g: Site, stock: int, d: int) -> int:
    """Choose among nodes that were looked at; return how many shares are chosen, -1 for none."""
    demands, table, c, places = g.demands, g.nodes, g.c, g.nodes.shape[1]
    if not may_suffice(g, d):
        return -1
    count, largest = c[N.U_NODES], c[N.U_MOST]
    found = _choose(g, stock, d, N.USABLE)
    if found < 0 and demands[N.MOST, d] < count:
        # A knapsack: the nodes with few cores are left out, the smallest first.
        least = 0
        for node in range(places):
            table[N.FULLER, node] = table[N.USABLE, node]
        while found < 0:
            smallest = largest
            for node in range(places):
                if table[N.USABLE, node] > least:
                    smallest = min(smallest, table[N.USABLE, node])
            if smallest == largest:
                return -1
            least, count = smallest, 0
            for node in range(places):
                if table[N.FULLER, node] <= least:
                    table[N.FULLER, node] = 0
                else:
                    count += 1
            if count < demands[N.LEAST, d]:
                return -1
            found = _choose(g, stock, d, N.FULLER)
    return found


def _choose(g: Site, stock: int, d: int, usable: int) -> int:
    """Choose among usable nodes, cores in a row; return the number of shares, -1 for too few."""
    demands, nodes = g.demands, g.nodes
    # What it still lacks: cores, nodes wanted, nodes left, GPUs; and shares so far.
    cores, wanted = demands[N.WANTED_CORES, d], demands[N.LEAST, d]
    left, gpus, shares = demands[N.MOST, d], demands[N.GPUS, d], 0
    kind = demands[N.GPU_KIND, d]
    if g.c[N.RULE] != N.CONSECUTIVE:
        for place in range(_ordered(g, stock, usable)):
            if left <= 0 or (cores <= 0 and wanted <= 0 and gpus <= 0):
                break
            cores, wanted, left, gpus, shares = _use(
                g, stock, d, usable, nodes[N.RUN_FIRST, place], cores, wanted, left, gpus, shares
            )
        return _done(g, cores, wanted, gpus, shares)
    count = _runs(g, stock, usable, gpus, kind)
    remaining = count
    while remaining and left > 0 and not (cores <= 0 and wanted <= 0 and gpus <= 0):
        best = _best_run(nodes, count, cores, wanted, gpus)
        nodes[N.RUN_USED, best] = 1
        remaining -= 1
        first, last = nodes[N.RUN_FIRST, best], nodes[N.RUN_END, best]
        if wanted <= 1:
            alone, fewest = -1, 0
            for node in range(first, last):
                here = nodes[usable, node]
                if (
                    here >= cores
                    and (alone < 0 or here < fewest)
                    and (gpus == 0 or free_gpus(g, stock, node, kind) >= gpus)
                ):
                    alone, fewest = node, here
            if alone >= 0:
                first, last = alone, alone + 1
        for node in range(first, last):
            if left <= 0 or (cores <= 0 and wanted <= 0 and gpus <= 0):
                break
            cores, wanted, left, gpus, shares = _use(
                g, stock, d, usable, node, cores, wanted, left, gpus, shares
            )
    return _done(g, cores, wanted, gpus, shares)


def _use(
    g: Site,
    stock: int,
    d: int,
    usable: int,
    node: int,
    lacking: int,
    wanted: int,
    left: int,
    gpus: int,
    shares: int,
) -> tuple[int, int, int, int, int]:
    """Use a node; return what is still lacking, and the number of shares."""
    demands, cores = g.demands, g.nodes[usable, node]
    if left == 1 and cores < lacking:
        return lacking, wanted, left, gpus, shares  # the last node, and too small
    if not demands[N.WHOLE, d]:
        # A core is kept for each further node that it wants.
        most = lacking - (wanted - 1) * demands[N.PER_TASK, d] if wanted > 1 else lacking
        cores = max(min(cores, most), demands[N.LEAST_CORES, d])
    here = demands[N.NODE_GPUS, d]
    if gpus > 0:
        here = max(here, min(free_gpus(g, stock, node, demands[N.GPU_KIND, d]), gpus))
    _share(g, stock, d, node, cores, here, shares)
    if demands[N.GPUS, d]:
        gpus -= here
    return lacking - cores, wanted - 1, left - 1, gpus, shares + 1


def _share(g: Site, stock: int, d: int, node: int, cores: int, gpus: int, at: int) -> None:
    """Note what a job holds on a node of which it uses some cores and GPUs."""
    nodes, demands, chosen, kinds = g.nodes, g.demands, g.c[N.CHOSEN], g.c[N.KINDS]
    nodes[chosen + N.S_NODE, at] = node
    if demands[N.CORES_ONLY, d] and not gpus:
        nodes[chosen + N.S_CORES, at], nodes[chosen + N.S_MEMORY, at] = cores, 0
        for kind in range(kinds):
            nodes[chosen + N.S_GPUS + kind, at] = 0
        return
    whole = demands[N.WHOLE, d]
    if whole:
        cores = nodes[N.CORES, node]
    memory = demands[N.NODE_MEMORY, d]
    if demands[N.ALL_MEMORY, d]:
        memory = nodes[N.MEMORY, node]
    elif not memory:
        memory = demands[N.CORE_MEMORY, d] * cores
    nodes[chosen + N.S_CORES, at], nodes[chosen + N.S_MEMORY, at] = cores, memory
    left, wanted = gpus, demands[N.GPU_KIND, d]
    for kind in range(kinds):
        if whole:
            nodes[chosen + N.S_GPUS + kind, at] = nodes[g.c[N.ALL_GPUS] + kind, node]
            continue
        got = 0
        if wanted in (-1, kind):
            got = min(nodes[stock + N.FREE_GPUS + kind, node], left)
        nodes[chosen + N.S_GPUS + kind, at] = got
        left -= got


def _done(g: Site, cores: int, wanted: int, gpus: int, shares: int) -> int:
    """Return the number of shares, by node, if nothing is lacking; else -1."""
    if cores > 0 or wanted > 0 or gpus > 0:
        return -1
    nodes, chosen = g.nodes, g.c[N.CHOSEN]
    for i in range(1, shares):
        k = i
        while k > 0 and nodes[chosen + N.S_NODE, k - 1] > nodes[chosen + N.S_NODE, k]:
            for field in range(chosen, chosen + N.S_GPUS + g.c[N.KINDS]):
                kept = nodes[field, k]
                nodes[field, k] = nodes[field, k - 1]
                nodes[field, k - 1] = kept
            k -= 1
    return shares


def _runs(g: Site, stock: int, usable: int, gpus: int, kind: int) -> int:
    """Find runs of consecutive usable nodes of equal weight; return their number."""
    nodes, count, usable_here = g.nodes, 0, g.nodes[usable]
    for node in range(nodes.shape[1]):
        cores = usable_here[node]
        if not cores:
            continue
        joins = count and nodes[N.RUN_END, count - 1] == node
        if joins and nodes[N.WEIGHT, node - 1] == nodes[N.WEIGHT, node]:
            place = count - 1
        else:
            place = count
            nodes[N.RUN_FIRST, place] = node
            nodes[N.RUN_CORES, place] = nodes[N.RUN_GPUS, place] = nodes[N.RUN_USED, place] = 0
            count += 1
        nodes[N.RUN_END, place] = node + 1
        nodes[N.RUN_CORES, place] += cores
        if gpus:
            nodes[N.RUN_GPUS, place] += free_gpus(g, stock, node, kind)
    return count


def _best_run(nodes: Int64Rows, count: int, cores: int, wanted: int, gpus: int) -> int:
    """Return the run to use next: the smallest that suffices, else the largest."""
    best, best_cores, best_enough = -1, 0, False
    for place in range(count):
        if nodes[N.RUN_USED, place]:
            continue
        here = nodes[N.RUN_CORES, place]
        enough = here >= cores and nodes[N.RUN_END, place] - nodes[N.RUN_FIRST, place] >= wanted
        if enough and gpus:
            enough = nodes[N.RUN_GPUS, place] >= gpus
        if best < 0:
            best, best_cores, best_enough = place, here, enough
            continue
        heavier = nodes[N.WEIGHT, nodes[N.RUN_FIRST, place]]
        heavier -= nodes[N.WEIGHT, nodes[N.RUN_FIRST, best]]
        if heavier < 0 or (
            heavier == 0
            and (
                (enough and (not best_enough or here < best_cores))
                or (not enough and not best_enough and here > best_cores)
            )
        ):
            best, best_cores, best_enough = place, here, enough
    return best


def _ordered(g: Site, stock: int, usable: int) -> int:
    """Put usable nodes in the order of the rule into ``RUN_FIRST``; return their number."""
    nodes, rule, count = g.nodes, g.c[N.RULE], 0
    for node in range(nodes.shape[1]):
        if nodes[usable, node]:
            nodes[N.RUN_FIRST, count] = node
            count += 1
    for start in range(count // 2 - 1, -1, -1):
        _sift(nodes, stock, rule, start, count)
    for last in range(count - 1, 0, -1):
        kept = nodes[N.RUN_FIRST, 0]
        nodes[N.RUN_FIRST, 0] = nodes[N.RUN_FIRST, last]
        nodes[N.RUN_FIRST, last] = kept
        _sift(nodes, stock, rule, 0, last)
    return count


def _sift(nodes: Int64Rows, stock: int, rule: int, start: int, count: int) -> None:
    """Let a node sink in a heap whose first node is the last in the order of a rule."""
    i, node = start, nodes[N.RUN_FIRST, start]
    while 2 * i + 1 < count:
        child = 2 * i + 1
        if child + 1 < count and _later(
            nodes, stock, rule, nodes[N.RUN_FIRST, child + 1], nodes[N.RUN_FIRST, child]
        ):
            child += 1
        if not _later(nodes, stock, rule, nodes[N.RUN_FIRST, child], node):
            break
        nodes[N.RUN_FIRST, i] = nodes[N.RUN_FIRST, child]
        i = child
    nodes[N.RUN_FIRST, i] = node


def _later(nodes: Int64Rows, stock: int, rule: int, one: int, other: int) -> bool:
    """Return whether a node comes after another one in the order of a rule."""
    if nodes[N.WEIGHT, one] != nodes[N.WEIGHT, other]:
        return nodes[N.WEIGHT, one] > nodes[N.WEIGHT, other]
    mine, its = nodes[stock + N.FREE_CORES, one], nodes[stock + N.FREE_CORES, other]
    if rule == N.BEST_FIT:
        if mine != its:
            return mine > its
    elif rule == N.SPREAD:
        part, its_part = mine / nodes[N.CORES, one], its / nodes[N.CORES, other]
        if part != its_part:
            return part < its_part
    return one > other
