"""Which nodes a job gets; the plain form is ``environment.machine.selection``."""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.engine.kernel.nodes.site import Nodes, Site
from hpcrowd.environment.jobs import Int64s


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


def take(site: Site, stock: int, first: int, last: int, sign: int) -> None:
    """Let shares of tenures be held (``sign`` -1) or given back (1); ``stock`` is where."""
    nodes, held = site.nodes, site.held
    for i in range(first, last):
        node = held.node[i]
        nodes.table[stock + N.FREE_CORES, node] += sign * held.cores[i]
        nodes.table[stock + N.FREE_MEMORY, node] += sign * held.memory[i]
        nodes.table[stock + N.JOBS_HERE, node] -= sign
        for kind in range(site.settings.kinds):
            nodes.table[stock + N.FREE_GPUS + kind, node] += sign * held.table[N.S_GPUS + kind, i]


def lend(site: Site, stock: int, first: int, last: int) -> None:
    """Let others use the cores of shares whose job is suspended; it keeps its memory and GPUs."""
    nodes, held = site.nodes, site.held
    for i in range(first, last):
        node, gpus = held.node[i], 0
        nodes.table[stock + N.FREE_CORES, node] += held.cores[i]
        for kind in range(site.settings.kinds):
            gpus += held.table[N.S_GPUS + kind, i]
        if not gpus:  # otherwise nobody has the whole node
            nodes.table[stock + N.JOBS_HERE, node] -= 1


def free_gpus(site: Site, stock: int, node: int, kind: int) -> int:
    """Return the free GPUs of a node: of a type, of all with -1, none with -2."""
    if kind >= 0:
        return site.nodes.table[stock + N.FREE_GPUS + kind, node]
    found = 0
    if kind == -1:
        for i in range(site.settings.kinds):
            found += site.nodes.table[stock + N.FREE_GPUS + i, node]
    return found


def usable_cores(site: Site, stock: int, d: int, node: int) -> int:
    """Return how many cores of a node a job could use; 0 if it cannot use the node."""
    gpus = 0
    if site.demands.node_gpus[d]:
        gpus = free_gpus(site, stock, node, site.demands.gpu_kind[d])
    free = site.nodes.table
    return usable_of(
        site, d, node, free[stock + N.FREE_CORES, node], free[stock + N.FREE_MEMORY, node],
        free[stock + N.JOBS_HERE, node], gpus,
    )  # fmt: skip


def usable_of(site: Site, d: int, node: int, cores: int, memory: int, jobs: int, gpus: int) -> int:
    """Return how many cores of a node a job could use, given what is free there."""
    demands = site.demands
    whole = demands.whole[d]
    if whole and jobs:
        return 0
    cores = min(cores, demands.most_cores[d])
    if not demands.cores_only[d]:
        if demands.all_memory[d]:
            if memory < site.nodes.memory[node]:
                return 0
        elif memory < demands.node_memory[d]:
            return 0
        per_core = demands.core_memory[d]
        if per_core:
            if whole:
                if memory < per_core * site.nodes.cores[node]:
                    return 0
            else:
                cores = min(cores, memory // per_core)
        if gpus < demands.node_gpus[d]:
            return 0
    if demands.per_task[d] > 1:
        cores -= cores % demands.per_task[d]
    return cores if cores >= demands.least_cores[d] else 0


def select(site: Site, stock: int, d: int, allowed: Int64s) -> int:
    """Choose nodes for a demand; return how many shares are chosen, -1 if it does not fit."""
    look(site, stock, d, allowed)
    return choose(site, stock, d)


def _learn_nodes(site: Site, stock: int, d: int) -> None:
    """Note what a job could use of each node of its set now."""
    table, nodes = site.nodes, site.sets[site.settings.sets + site.demands.set[d]]
    counts_gpus, kind = site.demands.gpus[d] > 0, site.demands.gpu_kind[d]
    for node in range(table.table.shape[1]):
        cores = gpus = 0
        if has(nodes, node) and table.table[stock + N.FREE_CORES, node] > 0:
            cores = usable_cores(site, stock, d, node)
            if cores and counts_gpus:
                gpus = free_gpus(site, stock, node, kind)
        table.base[node], table.base_gpus[node] = cores, gpus


def look(site: Site, stock: int, d: int, allowed: Int64s) -> None:
    """Note which nodes of a set a job could use, and what they have in all."""
    c = site.controller
    table, places = site.nodes, site.nodes.table.shape[1]
    if stock != site.settings.stock or c.base_of != d:
        _learn_nodes(site, stock, d)
        c.base_of = d if stock == site.settings.stock else -1
    count, total, most = _look(table.base, table.usable, allowed)
    gpus = 0
    if site.demands.gpus[d]:
        for node in range(places):
            here = table.base_gpus[node] if table.usable[node] else 0
            gpus += here
            table.gpus_here[node] = here
    c.u_nodes, c.u_cores, c.u_most, c.u_gpus = count, total, most, gpus


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


def look_again(site: Site, stock: int, d: int, tenure: int, allowed: Int64s) -> None:
    """Let a running job give its shares back, and note what that changes for a demand."""
    held = site.held
    first, last = site.ledger.first[tenure], site.ledger.last[tenure]
    nodes, kind = site.sets[site.settings.sets + site.demands.set[d]], site.demands.gpu_kind[d]
    take(site, stock, first, last, 1)
    for i in range(first, last):
        node = held.node[i]
        if has(allowed, node) and has(nodes, node):
            cores = usable_cores(site, stock, d, node)
            gpus = free_gpus(site, stock, node, kind)
            note_usable(site, d, node, cores, gpus)


def note_usable(site: Site, d: int, node: int, cores: int, gpus: int) -> None:
    """Note how many cores of a node a job could use now, and the GPUs there."""
    c, table = site.controller, site.nodes
    before = table.usable[node]
    if cores:
        c.u_nodes += before == 0
        c.u_most = max(c.u_most, cores)
        if site.demands.gpus[d]:
            c.u_gpus += gpus - table.gpus_here[node]
            table.gpus_here[node] = gpus
    table.usable[node] = cores
    c.u_cores += cores - before


def may_suffice(site: Site, d: int) -> bool:
    """Return whether the nodes that were looked at have enough, if chosen well.

    No choice has more than the largest nodes that it may take, or than all.
    """
    c = site.controller
    demands, wanted = site.demands, site.demands.wanted_cores[d]
    return (
        c.u_nodes >= demands.least[d]
        and c.u_cores >= wanted
        and c.u_most * min(demands.most[d], c.u_nodes) >= wanted
        and c.u_gpus >= demands.gpus[d]
    )


def choose(site: Site, stock: int, d: int) -> int:
    """Choose among nodes that were looked at; return how many shares are chosen, -1 for none."""
    demands, table, places = site.demands, site.nodes, site.nodes.table.shape[1]
    if not may_suffice(site, d):
        return -1
    count, largest = site.controller.u_nodes, site.controller.u_most
    found = _choose(site, stock, d, N.USABLE)
    if found < 0 and demands.most[d] < count:
        # A knapsack: the nodes with few cores are left out, the smallest first.
        least = 0
        for node in range(places):
            table.fuller[node] = table.usable[node]
        while found < 0:
            smallest = largest
            for node in range(places):
                if table.usable[node] > least:
                    smallest = min(smallest, table.usable[node])
            if smallest == largest:
                return -1
            least, count = smallest, 0
            for node in range(places):
                if table.fuller[node] <= least:
                    table.fuller[node] = 0
                else:
                    count += 1
            if count < demands.least[d]:
                return -1
            found = _choose(site, stock, d, N.FULLER)
    return found


def _choose(site: Site, stock: int, d: int, usable: int) -> int:
    """Choose among usable nodes, cores in a row; return the number of shares, -1 for too few."""
    demands, nodes = site.demands, site.nodes
    # What it still lacks: cores, nodes wanted, nodes left, GPUs; and shares so far.
    cores, wanted = demands.wanted_cores[d], demands.least[d]
    left, gpus, shares = demands.most[d], demands.gpus[d], 0
    kind = demands.gpu_kind[d]
    if site.settings.rule != N.CONSECUTIVE:
        for place in range(_ordered(site, stock, d, usable)):
            if left <= 0 or (cores <= 0 and wanted <= 0 and gpus <= 0):
                break
            cores, wanted, left, gpus, shares = _use(
                site, stock, d, usable, nodes.run_first[place], cores, wanted, left, gpus, shares
            )
        return _done(site, cores, wanted, gpus, shares)
    count = _runs(site, stock, usable, gpus, kind)
    remaining = count
    while remaining and left > 0 and not (cores <= 0 and wanted <= 0 and gpus <= 0):
        best = _best_run(nodes, count, cores, wanted, gpus)
        nodes.run_used[best] = 1
        remaining -= 1
        first, last = nodes.run_first[best], nodes.run_end[best]
        if wanted <= 1:
            alone, fewest = -1, 0
            for node in range(first, last):
                here = nodes.table[usable, node]
                if (
                    here >= cores
                    and (alone < 0 or here < fewest)
                    and (gpus == 0 or free_gpus(site, stock, node, kind) >= gpus)
                ):
                    alone, fewest = node, here
            if alone >= 0:
                first, last = alone, alone + 1
        for node in range(first, last):
            if left <= 0 or (cores <= 0 and wanted <= 0 and gpus <= 0):
                break
            cores, wanted, left, gpus, shares = _use(
                site, stock, d, usable, node, cores, wanted, left, gpus, shares
            )
    return _done(site, cores, wanted, gpus, shares)


def _use(
    site: Site,
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
    demands, cores = site.demands, site.nodes.table[usable, node]
    if left == 1 and cores < lacking:
        return lacking, wanted, left, gpus, shares  # the last node, and too small
    if not demands.whole[d]:
        # A core is kept for each further node that it wants.
        most = lacking - (wanted - 1) * demands.per_task[d] if wanted > 1 else lacking
        cores = max(min(cores, most), demands.least_cores[d])
    here = demands.node_gpus[d]
    if gpus > 0:
        here = max(here, min(free_gpus(site, stock, node, demands.gpu_kind[d]), gpus))
    _share(site, stock, d, node, cores, here, shares)
    if demands.gpus[d]:
        gpus -= here
    return lacking - cores, wanted - 1, left - 1, gpus, shares + 1


def _share(site: Site, stock: int, d: int, node: int, cores: int, gpus: int, at: int) -> None:
    """Note what a job holds on a node of which it uses some cores and GPUs."""
    settings = site.settings
    nodes, demands, chosen, kinds = site.nodes, site.demands, settings.chosen, settings.kinds
    nodes.table[chosen + N.S_NODE, at] = node
    if demands.cores_only[d] and not gpus:
        nodes.table[chosen + N.S_CORES, at], nodes.table[chosen + N.S_MEMORY, at] = cores, 0
        for kind in range(kinds):
            nodes.table[chosen + N.S_GPUS + kind, at] = 0
        return
    whole = demands.whole[d]
    if whole:
        cores = nodes.cores[node]
    memory = demands.node_memory[d]
    if demands.all_memory[d]:
        memory = nodes.memory[node]
    elif not memory:
        memory = demands.core_memory[d] * cores
    nodes.table[chosen + N.S_CORES, at], nodes.table[chosen + N.S_MEMORY, at] = cores, memory
    left, wanted = gpus, demands.gpu_kind[d]
    for kind in range(kinds):
        if whole:
            nodes.table[chosen + N.S_GPUS + kind, at] = nodes.table[settings.all_gpus + kind, node]
            continue
        got = 0
        if wanted in (-1, kind):
            got = min(nodes.table[stock + N.FREE_GPUS + kind, node], left)
        nodes.table[chosen + N.S_GPUS + kind, at] = got
        left -= got


def _done(site: Site, cores: int, wanted: int, gpus: int, shares: int) -> int:
    """Return the number of shares, by node, if nothing is lacking; else -1."""
    if cores > 0 or wanted > 0 or gpus > 0:
        return -1
    nodes, chosen = site.nodes, site.settings.chosen
    for i in range(1, shares):
        k = i
        while k > 0 and nodes.table[chosen + N.S_NODE, k - 1] > nodes.table[chosen + N.S_NODE, k]:
            for field in range(chosen, chosen + N.S_GPUS + site.settings.kinds):
                kept = nodes.table[field, k]
                nodes.table[field, k] = nodes.table[field, k - 1]
                nodes.table[field, k - 1] = kept
            k -= 1
    return shares


def _runs(site: Site, stock: int, usable: int, gpus: int, kind: int) -> int:
    """Find runs of consecutive usable nodes of equal weight; return their number."""
    nodes, count, usable_here = site.nodes, 0, site.nodes.table[usable]
    for node in range(nodes.table.shape[1]):
        cores = usable_here[node]
        if not cores:
            continue
        joins = count and nodes.run_end[count - 1] == node
        if joins and nodes.weight[node - 1] == nodes.weight[node]:
            place = count - 1
        else:
            place = count
            nodes.run_first[place] = node
            nodes.run_cores[place] = nodes.run_gpus[place] = nodes.run_used[place] = 0
            count += 1
        nodes.run_end[place] = node + 1
        nodes.run_cores[place] += cores
        if gpus:
            nodes.run_gpus[place] += free_gpus(site, stock, node, kind)
    return count


def _best_run(nodes: Nodes, count: int, cores: int, wanted: int, gpus: int) -> int:
    """Return the run to use next: the smallest that suffices, else the largest."""
    best, best_cores, best_enough = -1, 0, False
    for place in range(count):
        if nodes.run_used[place]:
            continue
        here = nodes.run_cores[place]
        enough = here >= cores and nodes.run_end[place] - nodes.run_first[place] >= wanted
        if enough and gpus:
            enough = nodes.run_gpus[place] >= gpus
        if best < 0:
            best, best_cores, best_enough = place, here, enough
            continue
        heavier = nodes.weight[nodes.run_first[place]]
        heavier -= nodes.weight[nodes.run_first[best]]
        if heavier < 0 or (
            heavier == 0
            and (
                (enough and (not best_enough or here < best_cores))
                or (not enough and not best_enough and here > best_cores)
            )
        ):
            best, best_cores, best_enough = place, here, enough
    return best


def _ordered(site: Site, stock: int, d: int, usable: int) -> int:
    """Put usable nodes in the order of the rule into ``run_first``; return their number."""
    nodes, rule, count = site.nodes, site.settings.rule, 0
    if site.own_order is not None:
        return site.own_order(stock, d, usable)
    for node in range(nodes.table.shape[1]):
        if nodes.table[usable, node]:
            nodes.run_first[count] = node
            count += 1
    for start in range(count // 2 - 1, -1, -1):
        _sift(nodes, stock, rule, start, count)
    for last in range(count - 1, 0, -1):
        kept = nodes.run_first[0]
        nodes.run_first[0] = nodes.run_first[last]
        nodes.run_first[last] = kept
        _sift(nodes, stock, rule, 0, last)
    return count


def _sift(nodes: Nodes, stock: int, rule: int, start: int, count: int) -> None:
    """Let a node sink in a heap whose first node is the last in the order of a rule."""
    i, node = start, nodes.run_first[start]
    while 2 * i + 1 < count:
        child = 2 * i + 1
        if child + 1 < count and _later(
            nodes, stock, rule, nodes.run_first[child + 1], nodes.run_first[child]
        ):
            child += 1
        if not _later(nodes, stock, rule, nodes.run_first[child], node):
            break
        nodes.run_first[i] = nodes.run_first[child]
        i = child
    nodes.run_first[i] = node


def _later(nodes: Nodes, stock: int, rule: int, one: int, other: int) -> bool:
    """Return whether a node comes after another one in the order of a rule."""
    if nodes.weight[one] != nodes.weight[other]:
        return nodes.weight[one] > nodes.weight[other]
    mine, its = nodes.table[stock + N.FREE_CORES, one], nodes.table[stock + N.FREE_CORES, other]
    if rule == N.BEST_FIT:
        if mine != its:
            return mine > its
    elif rule == N.SPREAD:
        part, its_part = mine / nodes.cores[one], its / nodes.cores[other]
        if part != its_part:
            return part < its_part
    return one > other
