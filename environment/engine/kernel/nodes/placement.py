"""Which nodes a job gets; the plain form is ``environment.machine.selection``."""

from __future__ import annotations

from hpcrowd.environment.compilation import compiled, inlined
from hpcrowd.environment.engine.kernel.nodes import places as N


@compiled
def has(nodes, node):
    """Return 1 if a set holds a node, else 0."""
    # With the mask the compiler knows that the place is not negative.
    return (nodes[(node >> 6) & 0xFFFFFFFF] >> (node & 63)) & 1


@inlined
def bits_of(word):
    """Return how many bits of a word are set, counted in pairs, nibbles and bytes."""
    word = word - ((word >> 1) & 0x5555555555555555)
    word = (word & 0x3333333333333333) + ((word >> 2) & 0x3333333333333333)
    return (((word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F) * 0x0101010101010101) >> 56


@compiled
def has_as_many(nodes, least):
    """Return whether a set holds as many nodes."""
    count = 0
    for i in range(len(nodes)):
        count += bits_of(nodes[i])
        if count >= least:
            return True
    return count >= least


@compiled
def size(nodes):
    """Return how many nodes a set holds."""
    count = 0
    for i in range(len(nodes)):
        count += bits_of(nodes[i])
    return count


@compiled
def copy_set(nodes, others):
    """Make a set of nodes equal to another one."""
    for i in range(len(nodes)):
        nodes[i] = others[i]


@compiled
def keep_only(nodes, others):
    """Keep only the nodes of a set that are in another one too."""
    for i in range(len(nodes)):
        nodes[i] &= others[i]


@compiled
def remove(nodes, others):
    """Take the nodes of another set out of a set."""
    for i in range(len(nodes)):
        nodes[i] &= ~others[i]


@compiled
def clear(nodes):
    """Take all nodes out of a set."""
    for i in range(len(nodes)):
        nodes[i] = 0


@compiled
def take(g, stock, first, last, sign):
    """Let shares of tenures be held (``sign`` -1) or given back (1); ``stock`` is where."""
    nodes, held = g.nodes, g.held
    for i in range(first, last):
        node = held[N.S_NODE, i]
        nodes[stock + N.FREE_CORES, node] += sign * held[N.S_CORES, i]
        nodes[stock + N.FREE_MEMORY, node] += sign * held[N.S_MEMORY, i]
        nodes[stock + N.JOBS_HERE, node] -= sign
        for kind in range(g.c[N.KINDS]):
            nodes[stock + N.FREE_GPUS + kind, node] += sign * held[N.S_GPUS + kind, i]


@compiled
def free_gpus(g, stock, node, kind):
    """Return the free GPUs of a node: of a type, of all with -1, none with -2."""
    if kind >= 0:
        return g.nodes[stock + N.FREE_GPUS + kind, node]
    found = 0
    if kind == -1:
        for i in range(g.c[N.KINDS]):
            found += g.nodes[stock + N.FREE_GPUS + i, node]
    return found


@inlined
def usable_cores(g, stock, d, node):
    """Return how many cores of a node a job could use; 0 if it cannot use the node."""
    gpus = 0
    if g.demands[N.NODE_GPUS, d]:
        gpus = free_gpus(g, stock, node, g.demands[N.GPU_KIND, d])
    return usable_of(
        g, d, node, g.nodes[stock + N.FREE_CORES, node], g.nodes[stock + N.FREE_MEMORY, node],
        g.nodes[stock + N.JOBS_HERE, node], gpus,
    )  # fmt: skip


@inlined
def usable_of(g, d, node, cores, memory, jobs, gpus):
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


@compiled
def select(g, stock, d, allowed):
    """Choose nodes for a demand; return how many shares are chosen, -1 if it does not fit."""
    look(g, stock, d, allowed)
    return choose(g, stock, d)


@compiled
def _learn_nodes(g, stock, d):
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


@compiled
def look(g, stock, d, allowed):
    """Note which nodes of a set a job could use, and in ``c`` what they have in all."""
    table, c, places = g.nodes, g.c, g.nodes.shape[1]
    if stock != c[N.STOCK] or c[N.BASE_OF] != d:
        _learn_nodes(g, stock, d)
        c[N.BASE_OF] = d if stock == c[N.STOCK] else -1
    count, total, most, gpus = 0, 0, 0, 0
    for i in range(len(allowed)):
        # Short rows, which the compiler goes through several nodes at a time.
        word, first, last = allowed[i], i << 6, min((i + 1) << 6, places)
        base, usable = table[N.BASE, first:last], table[N.USABLE, first:last]
        if not word:
            usable[:] = 0
            continue
        for bit in range(len(base)):
            cores = base[bit] & -((word >> bit) & 1)
            count += cores > 0
            total += cores
            most = max(most, cores)
            usable[bit] = cores
    if g.demands[N.GPUS, d]:
        for node in range(places):
            here = table[N.BASE_GPUS, node] if table[N.USABLE, node] else 0
            gpus += here
            table[N.GPUS_HERE, node] = here
    c[N.U_NODES], c[N.U_CORES], c[N.U_MOST], c[N.U_GPUS] = count, total, most, gpus


@compiled
def look_again(g, stock, d, tenure, allowed):
    """Let a running job give its shares back, and note what that changes for a demand."""
    held = g.held
    first, last = g.ledger[N.L_FIRST, tenure], g.ledger[N.L_LAST, tenure]
    nodes, kind = g.sets[g.c[N.SETS] + g.demands[N.SET, d]], g.demands[N.GPU_KIND, d]
    c, counts_gpus, sums = g.c, g.demands[N.GPUS, d] > 0, sums_of_usable(g.c)
    take(g, stock, first, last, 1)
    for i in range(first, last):
        node = held[N.S_NODE, i]
        if has(allowed, node) and has(nodes, node):
            cores = usable_cores(g, stock, d, node)
            gpus = free_gpus(g, stock, node, kind)
            sums = note_usable(g.nodes, counts_gpus, node, cores, gpus, sums)
    c[N.U_NODES], c[N.U_CORES], c[N.U_MOST], c[N.U_GPUS] = sums


@inlined
def note_usable(table, counts_gpus, node, cores, gpus, sums):
    """Note how many cores of a node a job could use now, and the GPUs there; return the sums.

    ``sums`` are of all nodes: number, cores, most of one, GPUs.
    """
    count, total, most, all_gpus = sums
    before = table[N.USABLE, node]
    if cores:
        count += before == 0
        most = max(most, cores)
        if counts_gpus:
            all_gpus += gpus - table[N.GPUS_HERE, node]
            table[N.GPUS_HERE, node] = gpus
    table[N.USABLE, node] = cores
    return count, total + cores - before, most, all_gpus


@inlined
def sums_of_usable(c):
    """Return number, cores, most of one and GPUs of the nodes that were looked at."""
    return c[N.U_NODES], c[N.U_CORES], c[N.U_MOST], c[N.U_GPUS]


@compiled
def may_suffice(g, d):
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


@compiled
def choose(g, stock, d):
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


@compiled
def _choose(g, stock, d, usable):
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


@compiled
def _use(g, stock, d, usable, node, lacking, wanted, left, gpus, shares):
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


@compiled
def _share(g, stock, d, node, cores, gpus, at):
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


@compiled
def _done(g, cores, wanted, gpus, shares):
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


@compiled
def _runs(g, stock, usable, gpus, kind):
    """Find runs of consecutive usable nodes of equal weight; return their number."""
    nodes, count = g.nodes, 0
    for node in range(nodes.shape[1]):
        cores = nodes[usable, node]
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


@compiled
def _best_run(nodes, count, cores, wanted, gpus):
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


@compiled
def _ordered(g, stock, usable):
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


@compiled
def _sift(nodes, stock, rule, start, count):
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


@compiled
def _later(nodes, stock, rule, one, other):
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
