"""What jobs have in common on a machine of nodes, as numbers for compiled code.

Jobs alike are resolved once: their user, account, QOS and partitions, what they ask for in each
partition, the limits to be checked, and the parts of their priorities that do not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from hpcrowd.environment.engine.kernel.arrays import wider
from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.machine.demand import Demand
from hpcrowd.environment.machine.model import Limits, Preempt
from hpcrowd.environment.schedulers.slurm.limits import resource_word
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob
from hpcrowd.environment.schedulers.slurm.rules import SiteRules

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

NO_LIMITS = Limits()


class Check(NamedTuple):
    """A limit to be checked, see ``kernel.nodes.site``."""

    kind: int
    use: int
    tres: int
    limit: int
    word: int


class Grown:
    """An array with columns that are added one by one.

    Parameters
    ----------
    rows
        Rows; 0 for an array of one dimension.
    kind
        Type of its numbers.
    """

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
    """All options of the jobs of a run.

    Parameters
    ----------
    rules
        Limits and priorities.
    """

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
        self._tres = {name: place for place, name in enumerate(self.tres_names)}
        self.uses: dict[tuple[str, ...], int] = {}
        self.users: dict[str, int] = {}
        self._qos = {one.name: one for one in layout.machine.qos}
        self._places: dict[int, int] = {}
        self._sets: list[int] = []
        self._demands = Grown(N.DEMANDS + N.T_KINDS + kinds)
        self._known_demands: dict[tuple[Demand, int], int] = {}
        #: What each demand is.
        self.demands: list[Demand] = []
        self._options = Grown(N.OPTION_ROWS)
        self._factors = Grown(N.WEIGHT_ROWS, np.float64)
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
            checks, charged, words = self._checks, self._charged, self.words
            width = max(checks.count, charged.count, len(words)) + 1
            made = N.Checks(np.zeros((N.CHECK_ROWS, width), np.int64))
            table = np.asarray(made.table)
            table[:CHECK_COLUMNS, : checks.count] = checks.array[:, : checks.count]
            made.charged[: charged.count] = charged.array[: charged.count]
            made.minutes[: len(words)] = [word.endswith("CPUMinutesLimit") for word in words]
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
        static = (factors.size, factors.partition, factors.qos, factors.tres)
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
        rules = self.site_rules.limits.rules(job, partition)
        lists = (self._at_submission, self._before, self._after)
        return (
            self._fate(job, partition), any(qos.no_reserve for qos, _ in rules),
            *(place for one in lists for place in self._list(tuple(one(job, partition)))),
            *self._charges(tuple(self._uses_of(job, partition))), self.partitions[partition],
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
        key = one, tres["cpu"]
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
                self._checks.add(one)
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

    def _uses_of(self, job: QueuedJob, partition: str) -> Iterator[int]:
        """Yield the accounts with limits that a job counts on."""
        for qos, name in self.site_rules.limits.rules(job, partition):
            if qos.limits != NO_LIMITS:
                yield self._use("qos", name)
                yield self._use("qos", name, "user", job.user)
                yield self._use("qos", name, "account", job.association.name)
        for one in job.association.up():
            if one.account.limits != NO_LIMITS:
                yield self._use("assoc", str(one.place))

    def _count(self, kind: int, use: int, limit: int | None, text: str) -> Iterator[Check]:
        if limit is not None:
            yield Check(kind, use, -1, limit, self.word(text))

    def _at_submission(self, job: QueuedJob, partition: str) -> Iterator[Check]:
        seen: set[str] = set()
        for qos, name in self.site_rules.limits.rules(job, partition):
            limits = qos.limits
            for limit, key, text in (
                (limits.max_submit, ("user", job.user), "QOSMaxSubmitJobPerUserLimit"),
                (
                    limits.max_submit_per_account,
                    ("account", job.association.name),
                    "QOSMaxSubmitJobPerAccountLimit",
                ),
                (limits.group_submit, (), "QOSGrpSubmitJobsLimit"),
            ):
                if limit is not None and text not in seen:
                    seen.add(text)
                    yield from self._count(
                        N.MOST_SUBMITTED, self._use("qos", name, *key), limit, text
                    )
            if qos.deny_on_limit:
                yield from self._of_job(limits, "QOS")
        for one in job.association.up():
            limits, use = one.account.limits, self._use("assoc", str(one.place))
            yield from self._count(
                N.MOST_SUBMITTED, use, limits.group_submit, "AssocGrpSubmitJobsLimit"
            )
            if one.user:
                yield from self._count(
                    N.MOST_SUBMITTED, use, limits.max_submit, "AssocMaxSubmitJobLimit"
                )

    def _before(self, job: QueuedJob, partition: str) -> Iterator[Check]:
        seen: set[str] = set()
        for qos, name in self.site_rules.limits.rules(job, partition):
            limits = qos.limits
            for limit, key, text in (
                (limits.group_jobs, (), "QOSGrpJobsLimit"),
                (limits.max_jobs, ("user", job.user), "QOSMaxJobsPerUserLimit"),
                (
                    limits.max_jobs_per_account,
                    ("account", job.association.name),
                    "QOSMaxJobsPerAccountLimit",
                ),
            ):
                if limit is not None and text not in seen:
                    seen.add(text)
                    yield from self._count(
                        N.MOST_RUNNING, self._use("qos", name, *key), limit, text
                    )
            yield from self._count(N.LONGEST, 0, limits.max_wall, "QOSMaxWallDurationPerJobLimit")
        for one in job.association.up():
            limits, use = one.account.limits, self._use("assoc", str(one.place))
            yield from self._count(N.MOST_RUNNING, use, limits.group_jobs, "AssocGrpJobsLimit")
            if one.user:
                yield from self._count(N.MOST_RUNNING, use, limits.max_jobs, "AssocMaxJobsLimit")
                yield from self._count(
                    N.LONGEST, 0, limits.max_wall, "AssocMaxWallDurationPerJobLimit"
                )

    def _after(self, job: QueuedJob, partition: str) -> Iterator[Check]:
        for qos, name in self.site_rules.limits.rules(job, partition):
            limits, use = qos.limits, self._use("qos", name)
            yield from self._beyond(limits.group_tres, use, "QOSGrp", "Limit")
            yield from self._of_job(limits, "QOS")
            user, account = ("user", job.user), ("account", job.association.name)
            yield from self._beyond(
                limits.max_tres_per_user, self._use("qos", name, *user), "QOSMax", "PerUserLimit"
            )
            yield from self._beyond(
                limits.max_tres_per_account,
                self._use("qos", name, *account),
                "QOSMax",
                "PerAccountLimit",
            )
            yield from self._run_minutes(limits, use, "QOS")
        for one in job.association.up():
            limits, use = one.account.limits, self._use("assoc", str(one.place))
            yield from self._beyond(limits.group_tres, use, "AssocGrp", "Limit")
            minutes = limits.group_tres_minutes.get("cpu")
            yield from self._count(N.USED_MINUTES, one.place, minutes, "AssocGrpCPUMinutesLimit")
            yield from self._run_minutes(limits, use, "Assoc")
            if one.user:
                yield from self._of_job(limits, "Assoc")

    def _beyond(self, limits: dict[str, int], use: int, begin: str, end: str) -> Iterator[Check]:
        for name, limit in limits.items():
            word = self.word(f"{begin}{resource_word(name)}{end}")
            yield Check(N.IN_USE, use, self._tres.get(name, -1), limit, word)

    def _run_minutes(self, limits: Limits, use: int, whose: str) -> Iterator[Check]:
        for name, most in limits.group_tres_run_minutes.items():
            text = f"{whose}GrpCPURunMinutesLimit" if name == "cpu" else f"{whose}GrpTRES"
            yield Check(N.RUN_MINUTES, use, self._tres.get(name, -1), most, self.word(text))

    def _of_job(self, limits: Limits, whose: str) -> Iterator[Check]:
        kinds: Iterable[tuple[int, dict[str, int], str, str]] = (
            (N.JOB_MOST, limits.max_tres, "Max", "PerJobLimit"),
            (N.JOB_LEAST, limits.min_tres, "Min", ""),
            (N.NODE_MOST, limits.max_tres_per_node, "Max", "PerNode"),
        )
        for kind, values, begin, end in kinds:
            for name, limit in values.items():
                word = self.word(f"{whose}{begin}{resource_word(name)}{end}")
                yield Check(kind, 0, self._tres.get(name, -1), limit, word)


def words_of(nodes: int, count: int) -> Int64s:
    """Return a set of nodes as words of 64 bits, of a machine with that many."""
    words = -(-count // 64)
    return np.frombuffer(nodes.to_bytes(8 * words, "little"), np.int64).copy()
