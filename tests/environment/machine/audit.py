"""Checks of a finished run on a machine of nodes, independent of the schedulers.

From the description of the machine, the table of jobs and a scheduler's ledger of what each job
held, :func:`faults` finds what must not be: a node with more in use than it has, a job without what
it asked for or where it may not run, a limit exceeded, a reservation entered. It shares no code
with schedulers, placement or their counts of what is free.

It checks a limit when a job starts or is submitted, as use grows only then, and it checks for that
job the limit that holds for it: that of its partition's QOS before that of its own. Decayed usage
(``group_tres_minutes``) is added up anew from the runs, period by period. Rules for
``allow_groups`` are not checked.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from hpcrowd.environment.errors import SchedulerError
from hpcrowd.environment.jobs import UNKNOWN, JobTable, State, name_of
from hpcrowd.environment.machine.model import Account, Limits, Machine, Partition, Qos, Reservation
from hpcrowd.environment.machine.selection import Share
from hpcrowd.environment.requests import Ask
from hpcrowd.environment.schedulers.slurm.queue import Tenure

from tests.environment.machine.audit_usage import Charge, billed, usage_faults

#: s; later than any end.
NEVER = 2**62

#: s; the limit of a job that asked for none, in a partition without one.
YEAR = 365 * 86_400

#: Faults that a message names.
MOST_SHOWN = 5


class _Run(NamedTuple):
    """A run with what is known of its job."""

    row: int
    start: int
    end: int  #: :data:`NEVER` if it goes on
    limit: int  #: s, its time limit
    shares: Sequence[Share]
    partition: Partition
    whole: bool
    reservation: str
    current: bool = True  #: of the last submission
    pauses: Sequence[tuple[int, int]] = ()


class _Payer(NamedTuple):
    """Under which names a job counts."""

    user: str
    account: str
    qos: str
    chain: tuple[Account, ...]  #: its association and those above


def audit(machine: Machine, jobs: JobTable, ledger: Iterable[Tenure]) -> None:
    """Check a run; :class:`SchedulerError` with the first of the :func:`faults`, if any."""
    found = faults(machine, jobs, ledger)
    if found:
        more = f" (and {len(found) - MOST_SHOWN} more)" if len(found) > MOST_SHOWN else ""
        raise SchedulerError(f"faults of the schedule: {'; '.join(found[:MOST_SHOWN])}{more}")


def faults(machine: Machine, jobs: JobTable, ledger: Iterable[Tenure]) -> list[str]:
    """Return the faults of a run, one line each.

    Reservations of the machine are in seconds since the origin; the ledger is what each job held
    in each run, in the order of the starts.
    """
    return _Audit(machine, jobs, list(ledger)).all_faults()


class _Audit:
    """One check of one run."""

    def __init__(self, machine: Machine, jobs: JobTable, ledger: Sequence[Tenure]) -> None:
        self.machine, self.jobs, self.ledger = machine, jobs, ledger
        self.found: list[str] = []
        nodes = sorted(machine.names(), key=lambda node: _natural(node.name))
        self.names = [node.name for node in nodes]
        self.kinds = [machine.nodes[node.kind] for node in nodes]
        self.gpu_types = sorted({name for kind in machine.nodes for name in kind.gpus})
        parts = machine.partitions or (Partition(name="all", default=True),)
        self.partitions = {one.name: one for one in parts}
        self.default = next((one for one in parts if one.default), parts[0]).name
        self.qos = {one.name: one for one in machine.qos}
        self._payer, self._places = cache(self._found_payer), cache(self._found_places)
        self._unlisted = cache(lambda account, user: Account(account=account, user=user))

    def all_faults(self) -> list[str]:
        """Return all faults."""
        runs = list(self._sound_runs())
        self._check_table()
        for run in runs:
            if run.current:
                self._check_place(run)
                self._check_request(run)
        for check in (self._check_reservations, self._check_nodes, self._check_throttles):
            check(runs)
        if self.machine.scheduling.enforce_limits:
            self._check_limits(runs)
            self._check_submissions()
        return self.found

    def _fault(self, row: int, text: str) -> None:
        self.found.append(f"job {self.jobs.number[row]} (row {row}): {text}")

    def _number(self, ask: Ask, row: int) -> int:
        requests = self.jobs.requests
        return UNKNOWN if requests is None else int(requests[ask][row])

    def _word(self, ask: Ask, row: int) -> str:
        return "" if self.jobs.requests is None else self.jobs.requests.word(ask, row)

    def _found_places(self, hosts: tuple[str, ...]) -> set[int]:
        order = {name: place for place, name in enumerate(self.names)}
        given = [one.name for one in self.machine.names()]
        return {order[given[place]] for place in self.machine.places(hosts)}

    # the ledger and the table

    def _sound_runs(self) -> Iterator[_Run]:
        """Yield the runs of the ledger that name known jobs, nodes and partitions."""
        for one in self.ledger:
            row = one.row
            if not 0 <= row < len(self.jobs):
                self.found.append(f"row {row}: in the ledger, and not in the table")
                continue
            partition = self.partitions.get(one.partition)
            nodes = [share.node for share in one.holding]
            if partition is None:
                self._fault(row, f"ran in partition {one.partition!r}, which there is not")
                continue
            if not nodes or not 0 <= min(nodes) <= max(nodes) < len(self.names):
                self._fault(row, f"holds nodes {nodes}, of {len(self.names)}")
                continue
            if len(nodes) > len(set(nodes)):
                self._fault(row, f"holds a node twice: {nodes}")
            ended = one.end if one.end != UNKNOWN else int(self.jobs.end[row])
            whole = (
                partition.exclusive
                or self.machine.scheduling.whole_nodes
                or self._number(Ask.EXCLUSIVE, row) == 1
            )
            yield _Run(
                row, one.start, NEVER if ended == UNKNOWN else ended, self._limit(row),
                one.holding, partition, whole, self._word(Ask.RESERVATION, row),
                self._current(one), one.pauses,
            )  # fmt: skip

    def _current(self, one: Tenure) -> bool:
        """Return whether a run is of the last submission of its job.

        Of one that was preempted, left the queue and came back or was renounced, the table has the
        last submission only, or none.
        """
        return one.end == UNKNOWN or one.submitted >= self.jobs.submit[one.row] != UNKNOWN

    def _limit(self, row: int) -> int:
        asked = int(self.jobs.requested_time[row])
        if asked >= 0:
            return asked
        known = [self.partitions[name] for name in self._asked(row) if name in self.partitions]
        first = known[0] if known else self.partitions[self.default]
        return first.default_time or first.max_time or YEAR

    def _asked(self, row: int) -> list[str]:
        named = [name.strip() for name in self._word(Ask.PARTITIONS, row).split(",")]
        if any(named):
            return [name for name in named if name]
        queue = name_of(self.jobs.names, "queue", int(self.jobs.queue[row]))
        return [queue if queue in self.partitions else self.default]

    def _check_table(self) -> None:
        """Check that the ledger and the table agree on each job."""
        jobs, by_row = self.jobs, defaultdict(list)
        for one in self.ledger:
            by_row[one.row].append(one)
        for row in range(len(jobs)):
            runs = by_row.get(row, [])
            state, start, end = State(int(jobs.state[row])), int(jobs.start[row]), jobs.end[row]
            lasting = [one for one in runs if one.end == UNKNOWN]
            last = runs[-1] if runs else None
            for before, after in pairwise(runs):
                if before.end == UNKNOWN or before.end > after.start:
                    self._fault(row, f"started at {after.start} s while it ran already")
            for one in runs:
                self._check_start(row, one)
            if state in (State.COMPLETED, State.KILLED) and len(lasting) != 1:
                self._fault(row, f"{state.name.lower()} after {len(lasting)} runs to the end")
            if state in (State.REJECTED, State.RENOUNCED) and any(map(self._current, runs)):
                self._fault(row, f"{state.name.lower()}, and ran")
            # A job that was given up in the log leaves when its turn comes, after 0 s.
            gave_up = (state, start) == (State.CANCELLED, UNKNOWN) and last and end == last.start
            if lasting and (last is not lasting[0] or last.start != start) and not gave_up:
                self._fault(row, f"started at {start} s, in the ledger at {runs[-1].start} s")
            if start != UNKNOWN and (last is None or last.start != start):
                self._fault(row, f"started at {start} s, and the ledger knows nothing of it")
            if state == State.FAILED and (last is None or last.end != end):
                self._fault(row, f"failed at {end} s, and was not preempted then")
            self._check_duration(row, state, start, int(end), lasting[0].pauses if lasting else ())

    def _check_start(self, row: int, one: Tenure) -> None:
        least = max(one.submitted, one.eligible)
        if self._current(one):
            least = max(least, int(self.jobs.submit[row]), self._number(Ask.BEGIN, row))
            if self.jobs.enqueued[row] != UNKNOWN:
                least = max(least, int(self.jobs.enqueued[row]))
        if one.start < least:
            self._fault(row, f"started at {one.start} s, before it could, {least} s")
        if one.end != UNKNOWN and one.end < one.start:
            self._fault(row, f"preempted at {one.end} s, before it started, {one.start} s")

    def _check_duration(
        self, row: int, state: State, start: int, end: int, pauses: Sequence[tuple[int, int]]
    ) -> None:
        suspended = sum((end if to == UNKNOWN else to) - since for since, to in pauses)
        lasted, needs = end - start - suspended, int(self.jobs.run_time[row])
        known = int(self.jobs.paused[row])
        if end != UNKNOWN and suspended != max(known, 0):
            self._fault(row, f"suspended for {known} s, in the ledger for {suspended} s")
        rises = [start, *(second for pause in pauses for second in pause if second != UNKNOWN)]
        if pauses and rises != sorted(rises):
            self._fault(row, f"suspended at {list(pauses)}, which is not in order of time")
        if state == State.COMPLETED and lasted < needs:
            self._fault(row, f"completed after {lasted} s of {needs} s")
        if state == State.KILLED and lasted < self.jobs.requested_time[row]:
            limit = self.jobs.requested_time[row]
            self._fault(row, f"killed after {lasted} s, before its limit of {limit} s")

    # where a job may run, and what it gets

    def _check_place(self, run: _Run) -> None:
        row, part, payer = run.row, run.partition, self._payer(run.row)
        where = f"partition {part.name}"
        if part.name not in self._asked(row):
            self._fault(row, f"ran in {where}, and asked for {','.join(self._asked(row))}")
        places = {share.node for share in run.shares}
        strange = places - self._places(part.nodes)
        if strange:
            self._fault(row, f"ran on {self._named(strange)}, not in {where}")
        if not part.up:
            self._fault(row, f"started in {where}, which is down")
        most = part.max_nodes
        if len(places) < part.min_nodes or (most is not None and len(places) > most):
            self._fault(row, f"ran on {len(places)} nodes, against the limits of {where}")
        if part.max_time is not None and run.limit > part.max_time:
            self._fault(row, f"limit {run.limit} s, above {part.max_time} s of {where}")
        if (
            (part.allow_accounts and payer.account not in part.allow_accounts)
            or payer.account in part.deny_accounts
            or (part.allow_qos and payer.qos not in part.allow_qos)
            or payer.qos in part.deny_qos
        ):
            self._fault(row, f"account {payer.account} and QOS {payer.qos} may not use {where}")
        features = self._word(Ask.FEATURES, row)
        for place in sorted(places):
            if features and not _satisfied(features, set(self.kinds[place].features)):
                self._fault(row, f"ran on {self.names[place]}, which is not {features}")

    def _named(self, places: Iterable[int]) -> str:
        return ",".join(self.names[place] for place in sorted(places))

    def _check_request(self, run: _Run) -> None:
        """Check that a job got the nodes, cores, memory and GPUs it asked for."""
        row, shares = run.row, run.shares
        per_task = max(self._number(Ask.CORES_PER_TASK, row), 1)
        tasks, per_node = self._number(Ask.TASKS, row), self._number(Ask.TASKS_PER_NODE, row)
        wanted = tasks * per_task if tasks > 0 else int(self.jobs.processors[row])
        least, most = self._number(Ask.NODES, row), self._number(Ask.MAX_NODES, row)
        cores = sum(share.cores for share in shares)
        if cores < wanted:
            self._fault(row, f"holds {cores} cores, and asked for {wanted}")
        if len(shares) < least or 0 < most < len(shares):
            self._fault(row, f"holds {len(shares)} nodes, and asked for {least} to {most}")
        part = run.partition
        for share in shares:
            name, node = self.names[share.node], self.kinds[share.node]
            if run.whole:
                has = tuple(node.gpus.get(kind, 0) for kind in self.gpu_types)
                if share.cores != node.cores or share.gpus != has:
                    self._fault(row, f"holds a part of {name}, not the whole node")
                continue
            if share.cores < 1 or share.cores % per_task:
                self._fault(row, f"{share.cores} cores of {name}: not tasks of {per_task}")
            if per_node > 0 and share.cores > per_node * per_task:
                self._fault(row, f"{share.cores} cores of {name}: more than {per_node} tasks")
            if part.max_cores_per_node and share.cores > part.max_cores_per_node:
                self._fault(row, f"{share.cores} cores of {name}: above {part.max_cores_per_node}")
        self._check_gpus(run, tasks if tasks > 0 else -(-wanted // per_task), per_node)
        if self.machine.scheduling.memory_counts:
            self._check_memory(run)

    def _check_gpus(self, run: _Run, tasks: int, per_node: int) -> None:
        row, kind = run.row, self._word(Ask.GPU_TYPE, run.row)
        counted = []
        for share in run.shares:
            by_type = dict(zip(self.gpu_types, share.gpus, strict=False))
            counted.append(by_type.get(kind, 0) if kind else sum(by_type.values()))
        total, on_node = self._number(Ask.GPUS, row), self._number(Ask.GPUS_PER_NODE, row)
        per_task = self._number(Ask.GPUS_PER_TASK, row)
        if per_task > 0 and per_node <= 0 and not run.whole:
            total = max(total, per_task * tasks)
        elif per_task > 0 and per_node > 0:
            on_node = max(on_node, per_task * per_node)
        if sum(counted) < total or min(counted) < on_node:
            wanted = f"{max(total, 0)} in all and {max(on_node, 0)} on each node"
            self._fault(row, f"holds {counted} GPUs {kind}, and asked for {wanted}")

    def _check_memory(self, run: _Run) -> None:
        row = run.row
        node, core = (self._number(ask, row) for ask in (Ask.MEMORY_PER_NODE, Ask.MEMORY_PER_CORE))
        if node == core == UNKNOWN and self.jobs.requested_memory[row] > 0:
            core = -(-int(self.jobs.requested_memory[row]) // 1024)
        for defaults in (run.partition, self.machine.scheduling):
            if node == core == UNKNOWN:
                node = defaults.default_memory_per_node or UNKNOWN
            if node == core == UNKNOWN:
                core = defaults.default_memory_per_core or UNKNOWN
        for share in run.shares:
            has = self.kinds[share.node].memory
            wanted = max(node, core * share.cores)
            if node == 0 and has is not None:
                wanted = has
            if share.memory < wanted:
                name = self.names[share.node]
                self._fault(row, f"holds {share.memory} MB of {name}, and asked for {wanted} MB")

    # what is in use

    def _check_nodes(self, runs: Sequence[_Run]) -> None:
        """Check each node at every second at which a job starts."""
        on_node: dict[int, list[tuple[_Run, Share]]] = defaultdict(list)
        for run in runs:
            for share in run.shares:
                on_node[share.node].append((run, share))
        for node, held in on_node.items():
            kind = self.kinds[node]
            # Jobs of no length begin and end before others go on in the same second.
            parts = [(place, part, share) for run, share in held
                     for place, part in enumerate(_active(run))]  # fmt: skip
            active = [one[1:] for one in sorted(parts, key=lambda one: one[0] > 0)]
            for run, _, now in _sweep(active, lambda one: one[0]):
                used = sum(share.cores for _, share in now)
                if used > kind.cores:
                    self._over(run, f"{self.names[node]}: {used} of {kind.cores} cores in use")
                if len(now) > 1 and any(other.whole for other, _ in now):
                    self._over(run, f"{self.names[node]}: a job that asked for all is not alone")
            if kind.memory is None and not self.gpu_types:
                continue
            for run, _, now in _sweep(held, lambda one: one[0]):
                uses = []
                if kind.memory is not None:
                    uses.append(("MB", sum(share.memory for _, share in now), kind.memory))
                for place, name in enumerate(self.gpu_types):
                    used = sum(share.gpus[place] for _, share in now if share.gpus)
                    uses.append((f"GPUs {name}", used, kind.gpus.get(name, 0)))
                for what, used, has in uses:
                    if used > has:
                        self._over(run, f"{self.names[node]}: {used} of {has} {what} in use")

    def _over(self, run: _Run, text: str) -> None:
        self._fault(run.row, f"started at {run.start} s; {text}")

    def _check_throttles(self, runs: Sequence[_Run]) -> None:
        arrays = defaultdict(list)
        for run in runs:
            if self._number(Ask.ARRAY, run.row) != UNKNOWN:
                arrays[self._number(Ask.ARRAY, run.row)].append(run)
        for array, tasks in arrays.items():
            for run, _, now in _sweep(tasks, lambda one: one):
                most = self._number(Ask.THROTTLE, run.row)
                if 0 < most < len(now):
                    self._over(run, f"array {array}: {len(now)} tasks run, {most} may")

    # reservations

    def _check_reservations(self, runs: Sequence[_Run]) -> None:
        kept = [(one, self._places(one.nodes)) for one in self.machine.reservations]
        known = {one.name for one, _ in kept}
        for run in runs:
            if run.reservation and run.reservation not in known:
                self._fault(run.row, f"ran in reservation {run.reservation}, which there is not")
            # A job that goes on beyond its limit is not the scheduler's fault.
            until = min(run.end, run.start + max(run.limit, 1))
            held = {share.node for share in run.shares}
            for one, nodes in kept:
                if one.name == run.reservation:
                    self._check_inside(run, until, one, nodes)
                    continue
                meets = until > one.start and run.start < one.end
                if meets and held & nodes and one.cores_per_node is None:
                    where = self._named(held & nodes)
                    self._over(run, f"{where} is kept for reservation {one.name}")
        for one, nodes in kept:
            if one.cores_per_node is not None:
                others = [run for run in runs if run.reservation != one.name]
                self._check_cores_left(others, one, one.cores_per_node, nodes)

    def _check_inside(self, run: _Run, until: int, one: Reservation, nodes: set[int]) -> None:
        held = {share.node for share in run.shares}
        if run.start < one.start or until > one.end:
            self._over(run, f"outside the time of reservation {one.name}")
        if not one.flexible and held - nodes:
            self._over(run, f"{self._named(held - nodes)} is outside reservation {one.name}")
        payer = self._payer(run.row)
        if (one.users or one.accounts) and not (
            payer.user in one.users or {up.account for up in payer.chain} & set(one.accounts)
        ):
            self._over(run, f"user {payer.user} may not use reservation {one.name}")

    def _check_cores_left(
        self, runs: Sequence[_Run], kept: Reservation, cores: int, nodes: set[int]
    ) -> None:
        """Check that other jobs leave the cores of each node that a reservation keeps."""
        for node in nodes:
            held = []
            for run in runs:
                first = max(run.start, kept.start)
                last = min(run.end, run.start + max(run.limit, 1), kept.end)
                mine = [share for share in run.shares if share.node == node]
                if mine and first < last:
                    held.append((run._replace(start=first, end=last), mine[0]))
            for run, _, now in _sweep(held, lambda one: one[0]):
                used, most = sum(share.cores for _, share in now), self.kinds[node].cores - cores
                if used > most:
                    text = f"{used} cores in use, {most} are not kept for reservation {kept.name}"
                    self._over(run, f"{self.names[node]}: {text}")

    # limits

    def _found_payer(self, row: int) -> _Payer:
        names, listed = self.jobs.names, self.machine.accounts
        user = name_of(names, "user", int(self.jobs.user[row]))
        account = self._word(Ask.ACCOUNT, row)
        if not account:
            group = name_of(names, "group", int(self.jobs.group[row]))
            account = group if any(one.account == group for one in listed) else ""
        mine = [one for one in listed if one.user and one.user == user]
        if account:
            first = self._asked(row)[0]
            mine = [one for one in mine if one.account == account and one.partition in ("", first)]
            mine.sort(key=lambda one: one.partition == "")
        own = mine[0] if mine else self._unlisted(account or "root", user)
        above = {one.account: one for one in listed if not one.user}
        chain, name = [own], own.account
        while name in above:
            chain.append(above[name])
            if name == "root":
                break
            name = above[name].parent
        default = next((one.default_qos for one in chain if one.default_qos), "")
        qos = self._word(Ask.QOS, row) or default or ("normal" if "normal" in self.qos else "")
        return _Payer(user, own.account, qos, tuple(chain))

    def _rules(self, row: int, partition: Partition) -> list[Qos]:
        """Return the QOS whose limits hold for a job; the first that has a limit decides."""
        own = self.qos.get(self._payer(row).qos)
        both = [self.qos.get(partition.qos), own]
        if own is not None and own.part_qos_overrides:
            both.reverse()
        return list({one.name: one for one in both if one is not None}.values())

    def _counted(self, row: int, partition: Partition) -> set[tuple[str, ...]]:
        """Return what a job counts on: QOS with and without its user and account, associations."""
        payer = self._payer(row)
        keys: set[tuple[str, ...]] = set()
        for qos in self._rules(row, partition):
            keys |= {("qos", qos.name), ("qos", qos.name, "user", payer.user)}
            keys.add(("qos", qos.name, "account", payer.account))
        return keys | {_key(one) for one in payer.chain}

    def _tres(self, shares: Sequence[Share]) -> dict[str, int]:
        found = Counter({"node": len(shares)})
        for share in shares:
            found["cpu"] += share.cores
            found["mem"] += share.memory
            found["gres/gpu"] += sum(share.gpus)
            for name, count in zip(self.gpu_types, share.gpus, strict=False):
                found[f"gres/gpu:{name}"] += count
        return found

    def _check_limits(self, runs: Sequence[_Run]) -> None:
        """Check limits on jobs, resources and times whenever a job starts."""
        known = [
            (run, self._tres(run.shares), self._counted(run.row, run.partition)) for run in runs
        ]
        for run, tres, _ in known:
            tres["billing"] = billed(self.machine, run.partition, tres)
        for run, (_, tres, _), now in _sweep(known, lambda one: one[0]):
            payer, decided = self._payer(run.row), set[Any]()

            def used(key: tuple[str, ...], name: str = "", now: list[_Known] = now) -> int:
                return sum(held[name] if name else 1 for _, held, keys in now if key in keys)

            for qos in self._rules(run.row, run.partition):
                keys = {
                    "": ("qos", qos.name),
                    "user": ("qos", qos.name, "user", payer.user),
                    "account": ("qos", qos.name, "account", payer.account),
                }
                for what, key, name, most in _in_use(qos.limits, of_qos=True):
                    if what not in decided and used(keys[key], name) > most:
                        self._over(run, f"QOS {qos.name}: {what} above {most}")
                self._check_size(run, tres, qos.limits, f"QOS {qos.name}", decided)
                decided |= {what for what, *_ in _in_use(qos.limits, of_qos=True)}
                decided |= {(what, name) for what, name, _ in _sizes(qos.limits)}
                self._check_left(run, qos.limits, f"QOS {qos.name}", keys[""], now)
                self._check_usage(run, qos, f"QOS {qos.name}", keys[""], known, now)
            for one in payer.chain:
                whose = f"association {one.user or one.account}"
                self._check_left(run, one.limits, whose, _key(one), now)
                self._check_usage(run, one, whose, _key(one), known, now)
                for what, key, name, most in _in_use(one.limits, of_qos=False):
                    if (one.user or not key) and used(_key(one), name) > most:
                        self._over(run, f"{whose}: {what} above {most}")
                if one.user:
                    self._check_size(run, tres, one.limits, whose, set())

    def _check_left(
        self, run: _Run, limits: Limits, whose: str, key: tuple[str, ...], now: list[_Known]
    ) -> None:
        """Check what running jobs may still use until their time limits."""
        at = run.start
        for name, most in limits.group_tres_run_minutes.items():
            left = sum(
                held[name] * max(other.start + other.limit + _paused(other, at) - at, 0)
                for other, held, keys in now
                if key in keys
            )
            if left > 60 * most:
                self._over(run, f"{whose}: {left} s of {name} left to run, above {most} minutes")

    def _check_usage(
        self, run: _Run, rule: Qos | Account, whose: str, key: tuple[str, ...],
        known: list[_Known], now: list[_Known],
    ) -> None:  # fmt: skip
        """Check decayed usage; safe limits also with what running jobs may still use."""
        factors = {one.name: one.usage_factor for one in self.machine.qos}
        ran = [
            Charge(one.start, one.end, held, factors.get(self._payer(one.row).qos, 1.0))
            for one, held, keys in known if key in keys and one.start <= run.start
        ]  # fmt: skip
        running = [
            Charge(one.start, one.start + one.limit + _paused(one, run.start), held)
            for one, held, keys in now if key in keys
        ]  # fmt: skip
        for text in usage_faults(self.machine, rule, run.start, ran, running):
            self._over(run, f"{whose}: {text}")

    def _check_size(
        self, run: _Run, tres: dict[str, int], limits: Limits, whose: str, decided: set[Any]
    ) -> None:
        for what, name, most in _sizes(limits):
            has = tres.get(name, 0)
            if what == "max_tres_per_node":
                has = max(self._tres([share]).get(name, 0) for share in run.shares)
            elif what == "max_wall":
                has = run.limit
            if (what, name) not in decided and (has < most if what == "min_tres" else has > most):
                self._over(run, f"{whose}: {has} {name}, against {what} {most}")

    def _check_submissions(self) -> None:
        """Check limits on waiting and running jobs whenever one is submitted."""
        jobs, known = self.jobs, []
        for row in range(len(jobs)):
            came, state = int(jobs.enqueued[row]), int(jobs.state[row])
            if came == UNKNOWN or state in (State.REJECTED, State.RENOUNCED):
                continue
            left = NEVER if state == State.UNFINISHED else int(jobs.end[row])
            asked = [self.partitions[name] for name in self._asked(row) if name in self.partitions]
            clear = bool(asked) and len({one.qos for one in asked}) == 1
            part = asked[0] if clear else Partition(name="several")
            run = _Run(row, came, left, 0, (), part, False, "")
            known.append((run, clear, self._counted(row, part)))
        for run, (_, clear, _), now in _sweep(known, lambda one: one[0]):
            payer, decided = self._payer(run.row), set[str]()
            rules = self._rules(run.row, run.partition) if clear else []
            counts = Counter(key for _, _, keys in now for key in keys)
            of_qos: dict[str, tuple[str, ...]] = {
                "max_submit": ("user", payer.user),
                "max_submit_per_account": ("account", payer.account),
                "group_submit": (),
            }
            for qos in rules:
                for what, key in of_qos.items():
                    most = getattr(qos.limits, what)
                    if most is not None and what not in decided:
                        decided.add(what)
                        if counts["qos", qos.name, *key] > most:
                            self._fault(run.row, f"QOS {qos.name}: {what} above {most}")
            for one in payer.chain:
                whose = f"association {one.user or one.account}"
                for what in ("group_submit", *(("max_submit",) if one.user else ())):
                    most = getattr(one.limits, what)
                    if most is not None and counts[_key(one)] > most:
                        self._fault(run.row, f"{whose}: {what} above {most}")


#: A run with its resources and what it counts on.
_Known = tuple[_Run, dict[str, int], set[tuple[str, ...]]]


def _key(one: Account) -> tuple[str, ...]:
    return ("association", one.account, one.user, one.partition)


def _in_use(limits: Limits, *, of_qos: bool) -> Iterator[tuple[str, str, str, int]]:
    """Yield limits on what is in use: name, whose (empty for all), resource, number."""
    for what, key in (("group", ""), ("max", "user"), ("max", "account")):
        more = "_per_account" if key == "account" else ""
        most = getattr(limits, f"{what}_jobs{more}")
        if most is not None and (of_qos or not more):
            yield f"{what}_jobs{more}", key, "", most
        whose = f"_per_{key}" if key else ""
        for name, most in getattr(limits, f"{what}_tres{whose}").items():
            if of_qos or not key:
                yield f"{what}_tres{whose} {name}", key, name, most


def _sizes(limits: Limits) -> Iterator[tuple[str, str, int]]:
    """Yield the limits on one job: which, on what, and how much."""
    for what in ("max_tres", "min_tres", "max_tres_per_node"):
        yield from ((what, name, most) for name, most in getattr(limits, what).items())
    if limits.max_wall is not None:
        yield "max_wall", "s of limit", limits.max_wall


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """Return a key for the order of nodes: numbers in names count as numbers."""
    parts = re.findall(r"\d+|\D+", name)
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0,
             "" if part.isdecimal() else part) for part in parts]  # fmt: skip


def _satisfied(features: str, has: set[str]) -> bool:
    """Return whether a node has features such as ``a&b``, ``a|b``, ``[a|b]&c``; left to right."""
    value, both, depth, word = True, True, 0, ""
    for sign in features.replace("[", "(").replace("]", ")") + "&":
        if depth == 0 and sign in "&,|":
            inner = word.startswith("(")
            one = _satisfied(word[1:-1], has) if inner else word.split("*")[0].strip() in has
            value = (value and one) if both else (value or one)
            both, word = sign != "|", ""
            continue
        depth += (sign == "(") - (sign == ")")
        word += sign
    return value


def _paused(run: _Run, now: int) -> int:
    """Return for how long a run was suspended before a second, without a pause that goes on."""
    return sum(to - since for since, to in run.pauses if UNKNOWN != to <= now)


def _active(run: _Run) -> Iterator[_Run]:
    """Yield the parts of a run in which it was not suspended.

    A job that goes on and is suspended again in the same second does not count there: others may
    have begun in between.
    """
    if not run.pauses:
        yield run
        return
    begin = run.start
    for since, to in run.pauses:
        if since > begin or begin == run.start:
            yield run._replace(start=begin, end=since)
        if to == UNKNOWN:
            return
        begin = to
    if run.end > begin or begin == run.start:
        yield run._replace(start=begin)


def _sweep[One](
    items: Iterable[One], run_of: Callable[[One], _Run]
) -> Iterator[tuple[_Run, One, list[One]]]:
    """Yield each start, in order of time, with all that is there then, itself included.

    What ends in a second has left before others start in it. What lasts no time counts with those
    that are there at its start, and with none that start after it.
    """
    there: list[One] = []
    for item in sorted(items, key=lambda one: run_of(one).start):  # stable: in order of the ledger
        run = run_of(item)
        there = [one for one in there if run_of(one).end > run.start]
        there.append(item)
        yield run, item, list(there)
