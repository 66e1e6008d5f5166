"""What a finished simulation leaves for accounts of energy: blocks of jobs, and the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.energy.account import PARTS, Blocks, EnergyAccount, Rates, Rest
from hpcrowd.environment.engine.attempts import Runs, runs_of
from hpcrowd.environment.jobs import UNKNOWN, Float64s, Int64s, JobTable, State
from hpcrowd.environment.power.in_use import PowerInUse
from hpcrowd.environment.signals.steps import Steps

if TYPE_CHECKING:
    from hpcrowd.environment.cluster import Cluster
    from hpcrowd.environment.engine.attempts import Attempt
    from hpcrowd.environment.machine.layout import Layout
    from hpcrowd.environment.power.description import NodePower, Power
    from hpcrowd.environment.power.sleep import SleepRule
    from hpcrowd.environment.schedulers.slurm.queue import Tenure
    from hpcrowd.environment.simulation import Simulation


_PLACE = {name: place for place, name in enumerate(PARTS)}

#: The part of a job by the state in which it ended.
_PART_OF = np.zeros(len(State), np.int64)
for _state, _part in (
    (State.COMPLETED, "completed"),
    (State.KILLED, "killed"),
    (State.FAILED, "failed"),
    (State.CANCELLED, "cancelled"),
    (State.UNFINISHED, "unfinished"),
):
    _PART_OF[_state] = _PLACE[_part]


def account_of(model: Simulation, until: int | None = None) -> EnergyAccount | None:
    """Return the energy of the first cluster; None without a description of power.

    It goes from the first submission to the last end of a run of a job, or to second ``until`` of a
    run that goes on.
    """
    cluster, in_use = model.cluster, model.parts.of(PowerInUse)
    if in_use is None:
        return None
    power, jobs = in_use.power, cluster.jobs
    runs = runs_of(jobs, cluster.attempts)
    begin, end = _span(runs.table, cluster, until)
    if begin >= end:
        return None
    ledger = getattr(cluster.engine.scheduler, "ledger", None)
    if ledger is not None:
        assert cluster.engine.scheduler is not None
        blocks, there = _on_nodes(cluster, in_use, ledger, begin, end)
    else:
        watts = in_use.watts(np.arange(len(jobs)))
        blocks = pool_blocks(runs, watts, power.pool, begin, end, cluster.number)
        there = _beside(cluster, power, runs.stopped, begin, end)
    rates, notes = _rates(model, in_use, begin, end)
    if ledger is not None and power.sleep is not None:
        notes.append(
            "nodes sleep where they would be on again for their next job, as if that were known: "
            "on a machine of nodes no start waits for them"
        )
    return EnergyAccount(
        blocks,
        there,
        rates,
        len(jobs),
        model.clock,
        power.tariff,
        (*power.notes, *notes),
    )


def _span(runs: JobTable, cluster: Cluster, until: int | None) -> tuple[int, int]:
    """Return the first second of an account and the one after its last; equal if there is none."""
    here = runs.cluster == cluster.number
    submitted = runs.submit[here & (runs.submit != UNKNOWN)]
    if not len(submitted):
        return 0, 0
    begin = max(int(submitted.min()), cluster.engine.began)
    if until is not None:
        return begin, max(begin, until)
    over = here & (runs.start != UNKNOWN) & (runs.state != State.UNFINISHED)
    return begin, max(begin, int(runs.end[over].max(initial=UNKNOWN)))


def _rates(model: Simulation, in_use: PowerInUse, begin: int, end: int) -> tuple[Rates, list[str]]:
    power = in_use.power
    timeline = model.cluster.engine.timeline
    levels_of = () if timeline is None else timeline.levels
    speed = None
    if power.cap is not None and power.cap.law is not None and len(levels_of) > 1:
        times = np.array([at for at, _ in levels_of], np.int64)
        factors = np.array([f for _, f in levels_of]) ** power.cap.law.exponent
        speed = _within(times, factors, begin, end)
    found: dict[str, Steps | None] = {"carbon": None, "tariff": None}
    notes = []
    for name in ("pue", "carbon", "tariff"):
        if getattr(power, name) is not None:
            found[name], note = in_use.over(name, begin, end)
            notes += [note] if note else []
    pue = found["pue"]
    assert pue is not None
    return Rates(pue, speed, found["carbon"], found["tariff"]), notes


def _within(times: Int64s, values: Float64s, begin: int, end: int) -> Steps:
    """Return values from their times on, between two seconds; the last one at a time counts."""
    edges = np.unique(np.concatenate([[begin, end], times[(times > begin) & (times < end)]]))
    place = np.searchsorted(times, edges[:-1], side="right") - 1
    return Steps(edges, values[np.maximum(place, 0)])


def pool_blocks(
    runs: Runs,
    watts: Float64s,
    node: NodePower,
    begin: int,
    end: int,
    cluster: int,
) -> Blocks:
    """Return what the runs of jobs drew between two seconds on equal processors of a cluster.

    ``watts`` are W per processor of each job, its share of the idle power included, shape (jobs,).
    """
    table, part = runs.table, _PART_OF[runs.table.state]
    part[len(table) - len(runs.stopped) :] = [_part_of(one) for one in runs.stopped]
    first, last = np.maximum(table.start, begin), np.minimum(table.end, end)
    here = np.flatnonzero(
        (table.start != UNKNOWN) & (table.cluster == cluster) & (first < last)
    )  # fmt: skip
    row, processors = runs.row[here], table.processors[here]
    idle = np.asarray(node.idle_processor * processors, np.float64)
    return Blocks(
        row,
        first[here],
        last[here],
        idle,
        np.maximum(watts[row] * processors - idle, 0.0),
        part[here],
    )


def _part_of(stopped: Attempt) -> int:
    """Return the part of a run that was stopped."""
    if stopped.fate == "fail":
        return _PLACE["failed"]
    return _PLACE["preempted" if stopped.cause == "preempted" else "stopped"]


def _beside(
    cluster: Cluster, power: Power, stopped: Sequence[Attempt], begin: int, end: int
) -> Steps | Rest:
    """Return what equal processors draw beside jobs, as an account takes it."""
    engine, node = cluster.engine, power.pool
    history = [(0, cluster.processors)]
    timeline = cluster.engine.timeline
    if timeline is not None:
        history = [(at, up) for at, _, up in timeline.history]
    if power.sleep is None:
        times = np.array([at for at, _ in history], np.int64)
        there = np.array([up for _, up in history], np.float64) * node.idle_processor
        return _within(times, there, begin, end)
    from hpcrowd.environment.power.sleep import holdings, sleep_states

    held = holdings(cluster.jobs, cluster.number, engine.delayed, stopped, end)
    states = sleep_states(
        held.acquired,
        held.released,
        held.processors,
        cluster.processors,
        power.sleep,
        node,
        engine.began,
        end,
    )
    edges, keep = _clipped(states.edges, begin, end)
    each = 1 / node.processors

    def watts(counts: Int64s, of_node: float) -> Float64s:
        return np.asarray(counts[keep] * (of_node * each), np.float64)

    return Rest(
        edges,
        {
            "idle": watts(states.on + states.waiting, node.idle),
            "asleep": watts(states.asleep, node.asleep),
            "switching": watts(states.switching_on, node.switching_on)
            + watts(states.switching_off, node.switching_off),
        },
        states.switched_on,
        states.switched_off,
    )


def _clipped(edges: Int64s, begin: int, end: int) -> tuple[Int64s, slice]:
    """Return edges between two seconds, and which steps they bound."""
    first = int(np.searchsorted(edges, begin, side="right")) - 1
    last = int(np.searchsorted(edges, end, side="left"))
    found = edges[first : last + 1].copy()
    found[0], found[-1] = begin, end
    return found, slice(first, last)


# ---- a machine of nodes -----------------------------------------------------------------------


def _on_nodes(
    cluster: Cluster, in_use: PowerInUse, ledger: Sequence[Tenure], begin: int, end: int
) -> tuple[Blocks, Steps | Rest]:
    scheduler: Any = cluster.engine.scheduler
    layout: Layout = scheduler.layout
    jobs = cluster.jobs
    types = [in_use.types[name] for name in layout.names]
    per_core = [one.idle_processor for one in types]
    given = in_use.power.draw is not None or in_use.measured is not None
    watts = in_use.watts(np.arange(len(jobs))) if given else None
    fate = {(one.row, one.start): _part_of(one) for one in cluster.attempts}
    found: list[tuple[int, int, int, float, float, int]] = []
    on_nodes: list[tuple[int, int, int]] = []
    for run in ledger:
        stop = run.end if run.end != UNKNOWN else int(jobs.end[run.row])
        if stop == UNKNOWN or stop > end:
            stop = end
        if run.end == UNKNOWN:
            part = int(_PART_OF[jobs.state[run.row]])
        else:
            part = fate.get((run.row, run.start), _PLACE["preempted"])
        idle = sum(share.cores * per_core[share.node] for share in run.holding)
        if watts is None:
            added = sum(
                share.cores * types[share.node].processor + sum(share.gpus) * types[share.node].gpu
                for share in run.holding
            )
        else:  # GPUs are in it
            cores = sum(share.cores for share in run.holding)
            added = max(cores * float(watts[run.row]) - idle, 0.0)
        on_nodes += [(share.node, run.start, stop) for share in run.holding]
        for first, last in _without(max(run.start, begin), stop, run.pauses):
            found.append((run.row, first, last, idle, added, part))
    table = np.array(found, np.float64).reshape(-1, 6)  # whole numbers below 2**53 are exact
    row, first_s, last_s, part_of = (table[:, place].astype(np.int64) for place in (0, 1, 2, 5))
    blocks = Blocks(row, first_s, last_s, table[:, 3].copy(), table[:, 4].copy(), part_of)
    if in_use.power.sleep is not None:
        busy = np.array(on_nodes, np.int64).reshape(-1, 3)
        return blocks, _nodes_asleep(types, busy, in_use.power.sleep, blocks, begin, end)
    total = sum(one.idle for one in types)
    return blocks, Steps.constant(total, begin, end)


def _nodes_asleep(
    types: Sequence[NodePower],
    busy: Int64s,
    rule: SleepRule,
    blocks: Blocks,
    begin: int,
    end: int,
) -> Rest:
    """Return what nodes drew beside jobs if they slept whenever no job had to wait for that.

    The types are of the nodes; ``busy`` is node, and from when to when, s, it held a job, shape
    (runs on nodes, 3).
    """
    from hpcrowd.environment.power.sleep import sleep_states_of_nodes

    edges, held, _ = blocks.levels(begin, end)
    states = []
    for one in dict.fromkeys(types):
        mine = np.flatnonzero([other == one for other in types])
        place = np.full(len(types), -1)
        place[mine] = np.arange(len(mine))
        runs = busy[place[busy[:, 0]] >= 0]
        found = sleep_states_of_nodes(
            place[runs[:, 0]], runs[:, 1], runs[:, 2], len(mine), rule, one, begin, end
        )
        states.append((one, found))
    every = np.unique(np.concatenate([edges, *(found.edges for _, found in states)]))
    every = every[(every >= begin) & (every <= end)]
    watts = {name: np.zeros(len(every) - 1) for name in ("idle", "asleep", "switching")}
    for one, found in states:
        for name, counts, each in (
            ("idle", found.on + found.running, one.idle),
            ("asleep", found.asleep, one.asleep),
            ("switching", found.switching_on, one.switching_on),
            ("switching", found.switching_off, one.switching_off),
        ):
            watts[name] += each * Steps(found.edges, np.asarray(counts, np.float64)).on(every)
    watts["idle"] = np.maximum(watts["idle"] - Steps(edges, held).on(every), 0.0)
    return Rest(
        every,
        watts,
        sum(found.switched_on for _, found in states),
        sum(found.switched_off for _, found in states),
    )


def _without(begin: int, end: int, pauses: Sequence[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    """Yield the pieces of a run between its pauses."""
    for first, last in pauses:
        if begin < first < end:
            yield begin, first
        begin = end if last == UNKNOWN else max(begin, last)
    if begin < end:
        yield begin, end
