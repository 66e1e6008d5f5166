"""Which nodes a job gets; the plain form is ``environment.machine.selection``."""

from __future__ import annotations

from hpcrowd.environment.compilation import compiled
from hpcrowd.environment.engine.kernel.nodes import places as N


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
        nodes[i] &= others[i] ^ 1


@compiled
def take(stock, held, first, last, sign):
    """Let shares be held (``sign`` -1) or given back (1)."""
    for i in range(first, last):
        node = held[N.S_NODE, i]
        stock.cores[node] += sign * held[N.S_CORES, i]
        stock.memory[node] += sign * held[N.S_MEMORY, i]
        stock.jobs[node] -= sign
        for kind in range(stock.gpus.shape[0]):
            stock.gpus[kind, node] += sign * held[N.S_GPUS + kind, i]


@compiled
def free_gpus(stock, node, kind):
    """Return the free GPUs of a node: of a type, of all with -1, none with -2."""
    if kind >= 0:
        return stock.gpus[kind, node]
    found = 0
    if kind == -1:
        for i in range(stock.gpus.shape[0]):
            found += stock.gpus[i, node]
    return found


@compiled
def usable_cores(site, stock, demands, d, node):
    """Return how many cores of a node a job could use; 0 if it cannot use the node."""
    whole = demands[N.WHOLE, d]
    if whole and stock.jobs[node]:
        return 0
    cores = min(stock.cores[node], demands[N.MOST_CORES, d])
    if not demands[N.CORES_ONLY, d]:
        memory = stock.memory[node]
        if demands[N.ALL_MEMORY, d]:
            if memory < site.nodes[N.MEMORY, node]:
                return 0
        elif memory < demands[N.NODE_MEMORY, d]:
            return 0
        per_core = demands[N.CORE_MEMORY, d]
        if per_core:
            if whole:
                if memory < per_core * site.nodes[N.CORES, node]:
                    return 0
            else:
                cores = min(cores, memory // per_core)
        each = demands[N.NODE_GPUS, d]
        if each and free_gpus(stock, node, demands[N.GPU_KIND, d]) < each:
            return 0
    cores -= cores % demands[N.PER_TASK, d]
    return cores if cores >= demands[N.LEAST_CORES, d] else 0


@compiled
def select(site, asked, stock, scratch, d, allowed, rule):
    """Choose nodes for a demand; return how many shares are in ``scratch.chosen``, -1 for none."""
    demands, usable = asked.demands, scratch.usable
    nodes = asked.sets[demands[N.SET, d]]
    count, total, largest, gpus = 0, 0, 0, 0
    for node in range(len(usable)):
        cores = 0
        if allowed[node] and nodes[node] and stock.cores[node] > 0:
            cores = usable_cores(site, stock, demands, d, node)
            if cores:
                count += 1
                total += cores
                largest = max(largest, cores)
        usable[node] = cores
    if count < demands[N.LEAST, d]:
        return -1
    wanted = demands[N.WANTED_CORES, d]
    # No choice has more than the largest nodes that it may take, or than all.
    if total < wanted or largest * min(demands[N.MOST, d], count) < wanted:
        return -1
    if demands[N.GPUS, d]:
        for node in range(len(usable)):
            if usable[node]:
                gpus += free_gpus(stock, node, demands[N.GPU_KIND, d])
        if gpus < demands[N.GPUS, d]:
            return -1
    found = _choose(site, asked, stock, scratch, d, usable, rule)
    if found < 0 and demands[N.MOST, d] < count:
        # A knapsack: the nodes with few cores are left out, the smallest first.
        fuller, least = scratch.fuller, 0
        for node in range(len(usable)):
            fuller[node] = usable[node]
        while found < 0:
            smallest = largest
            for node in range(len(usable)):
                if usable[node] > least:
                    smallest = min(smallest, usable[node])
            if smallest == largest:
                return -1
            least, count = smallest, 0
            for node in range(len(usable)):
                if fuller[node] <= least:
                    fuller[node] = 0
                else:
                    count += 1
            if count < demands[N.LEAST, d]:
                return -1
            found = _choose(site, asked, stock, scratch, d, fuller, rule)
    return found


@compiled
def _choose(site, asked, stock, scratch, d, usable, rule):
    """Choose among usable nodes; return the number of shares, -1 if they do not suffice."""
    demands = asked.demands
    # What it still lacks: cores, nodes wanted, nodes left, GPUs; and shares so far.
    cores, wanted = demands[N.WANTED_CORES, d], demands[N.LEAST, d]
    left, gpus, shares = demands[N.MOST, d], demands[N.GPUS, d], 0
    kind = demands[N.GPU_KIND, d]
    if rule != N.CONSECUTIVE:
        for place in range(_ordered(site, stock, scratch, usable, rule)):
            node = scratch.runs[0, place]
            if left <= 0 or (cores <= 0 and wanted <= 0 and gpus <= 0):
                break
            cores, wanted, left, gpus, shares = _use(
                site, stock, scratch, demands, d, usable, node, cores, wanted, left, gpus, shares
            )
        return _done(scratch, cores, wanted, gpus, shares)
    count = _runs(site, stock, scratch, usable, gpus, kind)
    runs, remaining = scratch.runs, count
    while remaining and left > 0 and not (cores <= 0 and wanted <= 0 and gpus <= 0):
        best = _best_run(site, runs, count, cores, wanted, gpus)
        runs[4, best] = 1
        remaining -= 1
        first, last = runs[0, best], runs[1, best]
        if wanted <= 1:
            alone, fewest = -1, 0
            for node in range(first, last):
                if (
                    usable[node] >= cores
                    and (gpus == 0 or free_gpus(stock, node, kind) >= gpus)
                    and (alone < 0 or usable[node] < fewest)
                ):
                    alone, fewest = node, usable[node]
            if alone >= 0:
                first, last = alone, alone + 1
        for node in range(first, last):
            if left <= 0 or (cores <= 0 and wanted <= 0 and gpus <= 0):
                break
            cores, wanted, left, gpus, shares = _use(
                site, stock, scratch, demands, d, usable, node, cores, wanted, left, gpus, shares
            )
    return _done(scratch, cores, wanted, gpus, shares)


@compiled
def _use(site, stock, scratch, demands, d, usable, node, lacking, wanted, left, gpus, shares):
    """Use a node; return what is still lacking, and the number of shares."""
    cores = usable[node]
    if left == 1 and cores < lacking:
        return lacking, wanted, left, gpus, shares  # the last node, and too small
    if not demands[N.WHOLE, d]:
        # A core is kept for each further node that it wants.
        most = lacking - (wanted - 1) * demands[N.PER_TASK, d] if wanted > 1 else lacking
        cores = max(min(cores, most), demands[N.LEAST_CORES, d])
    here = demands[N.NODE_GPUS, d]
    if gpus > 0:
        here = max(here, min(free_gpus(stock, node, demands[N.GPU_KIND, d]), gpus))
    _share(site, stock, scratch.chosen, demands, d, node, cores, here, shares)
    return (
        lacking - cores,
        wanted - 1,
        left - 1,
        gpus - (here if demands[N.GPUS, d] else 0),
        shares + 1,
    )


@compiled
def _share(site, stock, chosen, demands, d, node, cores, gpus, at):
    """Note what a job holds on a node of which it uses some cores and GPUs."""
    chosen[N.S_NODE, at] = node
    kinds = stock.gpus.shape[0]
    if demands[N.CORES_ONLY, d] and not gpus:
        chosen[N.S_CORES, at], chosen[N.S_MEMORY, at] = cores, 0
        for kind in range(kinds):
            chosen[N.S_GPUS + kind, at] = 0
        return
    whole = demands[N.WHOLE, d]
    if whole:
        cores = site.nodes[N.CORES, node]
    memory = demands[N.NODE_MEMORY, d]
    if demands[N.ALL_MEMORY, d]:
        memory = site.nodes[N.MEMORY, node]
    elif not memory:
        memory = demands[N.CORE_MEMORY, d] * cores
    chosen[N.S_CORES, at], chosen[N.S_MEMORY, at] = cores, memory
    left, wanted = gpus, demands[N.GPU_KIND, d]
    for kind in range(kinds):
        if whole:
            chosen[N.S_GPUS + kind, at] = site.gpus[kind, node]
            continue
        fits = left if wanted in (-1, kind) else 0
        got = min(stock.gpus[kind, node], fits)
        chosen[N.S_GPUS + kind, at] = got
        left -= got


@compiled
def _done(scratch, cores, wanted, gpus, shares):
    """Return the number of shares, by node, if nothing is lacking; else -1."""
    if cores > 0 or wanted > 0 or gpus > 0:
        return -1
    chosen = scratch.chosen
    for i in range(1, shares):
        k = i
        while k > 0 and chosen[N.S_NODE, k - 1] > chosen[N.S_NODE, k]:
            for field in range(chosen.shape[0]):
                kept = chosen[field, k]
                chosen[field, k] = chosen[field, k - 1]
                chosen[field, k - 1] = kept
            k -= 1
    return shares


@compiled
def _runs(site, stock, scratch, usable, gpus, kind):
    """Find runs of consecutive usable nodes of equal weight; return their number."""
    runs, weight, count = scratch.runs, site.nodes[N.WEIGHT], 0
    for node in range(len(usable)):
        cores = usable[node]
        if not cores:
            continue
        if count and runs[1, count - 1] == node and weight[node - 1] == weight[node]:
            place = count - 1
        else:
            place = count
            runs[0, place] = node
            runs[2, place] = runs[3, place] = runs[4, place] = 0
            count += 1
        runs[1, place] = node + 1
        runs[2, place] += cores
        if gpus:
            runs[3, place] += free_gpus(stock, node, kind)
    return count


@compiled
def _best_run(site, runs, count, cores, wanted, gpus):
    """Return the run to use next: the smallest that suffices, else the largest."""
    best, best_cores, best_enough = -1, 0, False
    weight = site.nodes[N.WEIGHT]
    for place in range(count):
        if runs[4, place]:
            continue
        here = runs[2, place]
        enough = here >= cores and runs[1, place] - runs[0, place] >= wanted
        if enough and gpus:
            enough = runs[3, place] >= gpus
        if best < 0:
            best, best_cores, best_enough = place, here, enough
            continue
        heavier = weight[runs[0, place]] - weight[runs[0, best]]
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
def _ordered(site, stock, scratch, usable, rule):
    """Put usable nodes in the order of a rule into ``scratch.runs[0]``; return their number."""
    order, count = scratch.runs[0], 0
    for node in range(len(usable)):
        if usable[node]:
            order[count] = node
            count += 1
    for start in range(count // 2 - 1, -1, -1):
        _sift(site, stock, order, rule, start, count)
    for last in range(count - 1, 0, -1):
        order[0], order[last] = order[last], order[0]
        _sift(site, stock, order, rule, 0, last)
    return count


@compiled
def _sift(site, stock, order, rule, start, count):
    """Let a node sink in a heap whose first node is the last in the order of a rule."""
    i, node = start, order[start]
    while 2 * i + 1 < count:
        child = 2 * i + 1
        if child + 1 < count and _later(site, stock, rule, order[child + 1], order[child]):
            child += 1
        if not _later(site, stock, rule, order[child], node):
            break
        order[i] = order[child]
        i = child
    order[i] = node


@compiled
def _later(site, stock, rule, one, other):
    """Return whether a node comes after another one in the order of a rule."""
    first, second = site.nodes[N.WEIGHT, one], site.nodes[N.WEIGHT, other]
    if first != second:
        return first > second
    if rule == N.BEST_FIT:
        if stock.cores[one] != stock.cores[other]:
            return stock.cores[one] > stock.cores[other]
    elif rule == N.SPREAD:
        mine = stock.cores[one] / site.nodes[N.CORES, one]
        its = stock.cores[other] / site.nodes[N.CORES, other]
        if mine != its:
            return mine < its
    return one > other
