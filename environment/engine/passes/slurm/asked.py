"""What jobs have in common on a machine of nodes, as numbers for compiled code.

Jobs alike are resolved once: their user, account, QOS and partitions, what they ask for in each
partition, the limits to be checked, and the parts of their priorities that do not change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcrowd.environment.engine.kernel.arrays import wider
from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.machine.demand import Demand
from hpcrowd.environment.machine.model import Preempt
from hpcrowd.environment.schedulers.slurm.admission import SiteRules
from hpcrowd.environment.schedulers.slurm.limits import Check
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob

#: Reason of jobs whose nodes are kept for others, in Slurm's words.
NODES_KEPT = (
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
)

#: Words of the controller itself, by place.
WORDS = ("None", "BeginTime", "JobArrayTaskLimit", "Priority", "Resources", NODES_KEPT,
         "PartitionDown", "ReqNodeNotAvail")  # fmt: skip

#: What happens to jobs that are preempted.
FATES = {Preempt.OFF: N.KEPT, Preempt.REQUEUE: N.REQUEUED, Preempt.CANCEL: N.CANCELLED,
         Preempt.SUSPEND: N.SUSPENDED}  # fmt: skip

#: Rows of checks that belong to one.
CHECK_COLUMNS = 5

#: Amounts beyond this are as good as it, so that sums of them do not overflow.
LARGEST = 2**61


class Grown:
    """An array with columns, or numbers for no rows, that are added one by one."""

    def __init__(self, rows: int, kind: Any = np.int64) -> None:
        self.array: Any = np.zeros((rows, 16) if rows else 16, kind)
        self.count = 0

    def reserve(self, more: int) -> None:
        """Make room for more columns."""
        if self.count + more > self.array.shape[-1]:
            self.array = wider(self.array, 2 * (self.count + more))

    def add(self, column: Any) -> int:
        """Add a column, or a number; return its place."""
        self.reserve(1)
        self.array[..., self.count] = column
        self.count += 1
        return self.count - 1


class AskedBook:
    """All options of the jobs of a run, by the limits and priorities of its site."""

    def __init__(self, rules: SiteRules) -> None:
        self.site_rules, self.layout = rules, rules.layout
        layout = self.layout
        kinds = len(layout.gpu_types)
        self.partitions = {name: place for place, name in enumerate(layout.partitions)}
        self.partition_names = list(self.partitions)
        self.words: list[str] = []
        self._numbers: dict[str, int] = {}
        for word in WORDS:
            self.word(word)
        self.tres_names = ["cpu", "mem", "node", "gres/gpu"]
        self.tres_names += [f"gres/gpu:{name}" for name in layout.gpu_types]
        self.tres_names.append("billing")
        self._tres = {name: place for place, name in enumerate(self.tres_names)}
        self.uses: dict[tuple[str, ...], int] = {}
        self.users: dict[str, int] = {}
        self._qos = {one.name: one for one in layout.machine.qos}
        self._places: dict[int, int] = {}
        self._sets: list[int] = []
        self._demands = Grown(N.DEMANDS + N.T_KINDS + kinds + 1)
        self._known_demands: dict[tuple[Demand, int, int], int] = {}
        #: What each demand is.
        self.demands: list[Demand] = []
        self._options = Grown(N.OPTION_ROWS)
        self._factors = Grown(N.WEIGHT_ROWS + N.T_KINDS + kinds, np.float64)
        self._known_options: dict[Any, int] = {}
        self._known_rules: dict[Any, tuple[int, ...]] = {}
        self._checks, self._charged = Grown(CHECK_COLUMNS), Grown(0)
        self._known_checks: dict[tuple[Check, ...], tuple[int, int]] = {}
        self._known_uses: dict[tuple[int, ...], tuple[int, int]] = {}
        self._arrays: tuple[Any, ...] | None = None

    def word(self, text: str) -> int:
        """Return the number of a word, which is added if it is new."""
        if text not in self._numbers:
            self._numbers[text] = len(self.words)
            self.words.append(text)
            self._arrays = None
        return self._numbers[text]

    @property
    def sets(self) -> list[int]:
        """Sets of nodes that are asked for."""
        return self._sets

    def arrays(self) -> tuple[Any, ...]:
        """Return ``demands``, ``options``, ``weights`` and ``checks`` of ``kernel.nodes.Site``."""
        if self._arrays is None:
            checks, charged = self._checks, self._charged
            width = max(checks.count, charged.count) + 1
            made = N.Checks(np.zeros((N.CHECK_ROWS, width), np.int64))
            table = np.asarray(made.table)
            table[:CHECK_COLUMNS, : checks.count] = checks.array[:, : checks.count]
            made.charged[: charged.count] = charged.array[: charged.count]
            self._arrays = self._demands.array, self._options.array, self._factors.array, table
        return self._arrays

    def partition_of(self, option: int) -> str:
        """Return the name of the partition of an option."""
        return self.partition_names[int(N.Options(self._options.array).partition[option])]

    def user(self, name: str) -> int:
        """Return the number of a user."""
        return self.users.setdefault(name, len(self.users))

    def option(self, job: QueuedJob, partition: str) -> int:
        """Return the number of what a job asks in a partition."""
        demand = self._demand(job, partition)
        factors = self.site_rules.priorities.of(job, partition, -1)
        weights = self.layout.partitions[partition].billing_weights or {"cpu": 1.0}
        static = (
            factors.size, factors.partition, factors.qos, factors.tres,
            self.site_rules.limits.usage_factor(job),
            *(weights.get(name, 0.0) for name in self.tres_names[:-1]),
        )  # fmt: skip
        one = job.association
        whose = job.user, one.place, one.name, job.qos, partition
        if whose not in self._known_rules:
            self._known_rules[whose] = self._rules_of(job, partition)
        rules = self._known_rules[whose]
        key = demand, static, rules
        if key not in self._known_options:
            self._arrays = None
            self._factors.add(static)
            found = self._options.add((demand, rules[-1], *rules[:-1]))
            self._known_options[key] = found
        return self._known_options[key]

    def _rules_of(self, job: QueuedJob, partition: str) -> tuple[int, ...]:
        """Return the rows of an option behind ``PARTITION``, and last the partition itself.

        They do not depend on what a job asks for.
        """
        limits = self.site_rules.limits
        rules = limits.rules(job, partition)
        lists = limits.checks_at_submission, limits.checks_before, limits.checks_after
        uses = limits.uses(job, partition, limited=True)
        return (
            self._fate(job, partition), any(qos.no_reserve for qos in rules),
            *(place for one in lists for place in self._list(tuple(one(job, partition)))),
            *self._charges(tuple(self._use(*one) for one in uses)), self.partitions[partition],
        )  # fmt: skip

    def _fate(self, job: QueuedJob, partition: str) -> int:
        """Return what happens to such a job that is preempted, if it may be requeued."""
        settings, found = self.layout.settings, None
        if settings.preempt_type == "partition":
            found = self.layout.partitions[partition].preempt_mode
        elif settings.preempt_type == "qos" and job.qos in self._qos:
            found = self._qos[job.qos].preempt_mode
        found = settings.preempt_mode if found is None else found
        return FATES[found]

    def _demand(self, job: QueuedJob, partition: str) -> int:
        one = job.demands[partition]
        tres = job.tres(partition, self.layout)
        key = one, tres["cpu"], tres["billing"]
        if key in self._known_demands:
            return self._known_demands[key]
        self._arrays = None
        if one.nodes not in self._places:
            self._places[one.nodes] = len(self._sets)
            self._sets.append(one.nodes)
        self.demands.append(one)
        found = self._known_demands[key] = self._demands.add(
            (
                self._places[one.nodes], one.least_nodes, one.most_nodes, one.cores,
                one.cores_per_task, one.least_cores, one.most_cores, one.memory_per_node,
                one.memory_per_core, one.whole_memory, one.gpus, one.gpus_per_node, one.gpu_kind,
                one.whole, one.cores_only,
                *(min(tres.get(name, 0), LARGEST) for name in self.tres_names),
            )
        )  # fmt: skip
        return found

    # limits; their order is that of LimitKeeper

    def _list(self, checks: tuple[Check, ...]) -> tuple[int, int]:
        """Return first and end of a list of checks."""
        if checks not in self._known_checks:
            first = self._checks.count
            for one in checks:
                use = self._use(*one.use) if one.use else 0
                tres = self._tres.get(one.resource, -1)
                self._checks.add((one.kind, use, tres, one.limit, self.word(one.reason)))
            self._known_checks[checks] = first, self._checks.count
        return self._known_checks[checks]

    def _charges(self, uses: tuple[int, ...]) -> tuple[int, int]:
        """Return first and end of a list of accounts of use."""
        if uses not in self._known_uses:
            first = self._charged.count
            for one in uses:
                self._charged.add(one)
            self._known_uses[uses] = first, self._charged.count
        return self._known_uses[uses]

    def _use(self, *key: str) -> int:
        """Return the number of an account of use such as ``("qos", "normal", "user", "ada")``."""
        return self.uses.setdefault(key, len(self.uses))


def words_of(nodes: int, count: int) -> Int64s:
    """Return a set of nodes as words of 64 bits, of a machine with that many."""
    words = -(-count // 64)
    return np.frombuffer(nodes.to_bytes(8 * words, "little"), np.int64).copy()
