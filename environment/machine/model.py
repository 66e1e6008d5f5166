"""A machine of nodes, as a site describes it: nodes, partitions, limits, accounts, reservations.

    Machine
    ├── nodes         NodeType: count, cores, memory, GPUs by type, features
    ├── partitions    Partition: nodes, times, priority tier and factor, sharing, preemption
    ├── qos           Qos: priority, limits, whom it preempts
    ├── accounts      Account: a tree with shares and limits; users are its leaves
    ├── reservations  Reservation: nodes or cores kept for some from one second to another
    ├── priority      PrioritySettings: weights and decay of the multifactor priority
    └── scheduling    SchedulingSettings: passes, backfilling, preemption, placement, latencies

Memory is in MB as in Slurm's files (1 MB = 2**20 bytes), durations in seconds. ``None`` means no
limit. Without such a description, a cluster is a pool of equal processors.

Names and meanings follow Slurm's manual pages slurm.conf(5), sacctmgr(1) and scontrol(1); each
field says which entry it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, tzinfo
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from hpcrowd.environment.errors import MachineError, first_mistake, one_line
from hpcrowd.environment.machine.units import (
    FIRST_DATE,
    PARENT,
    UNLIMITED,
    Megabytes,
    Moment,
    Name,
    Seconds,
    Tres,
    is_optional,
)

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass as OneLine
else:
    OneLine = one_line(type(BaseModel))

#: Largest number of a description, so that sums of them do not overflow.
LARGEST_NUMBER = 2**53


class Entry(BaseModel, metaclass=OneLine):
    """A part of the description; unknown keys are errors."""

    MISTAKE: ClassVar[type[MachineError]] = MachineError

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _unlimited(cls, value: Any, info: ValidationInfo) -> Any:
        """Take the word for no limit where there may be none; refuse numbers that overflow."""
        numbers = value.values() if isinstance(value, dict) else (value,)
        if any(isinstance(one, int) and abs(one) > LARGEST_NUMBER for one in numbers):
            raise ValueError(f"must be at most {LARGEST_NUMBER:,}")
        if value == UNLIMITED and is_optional(cls.model_fields[str(info.field_name)]):
            return None
        return value


class Preempt(StrEnum):
    """What happens to a preempted job: slurm.conf, PreemptMode.

    ``suspend`` lends its cores to others and lets it go on later; it keeps its memory and GPUs.
    """

    OFF = "off"
    REQUEUE = "requeue"
    CANCEL = "cancel"
    SUSPEND = "suspend"


class NodeType(Entry):
    """Equal nodes. slurm.conf, NodeName; gres.conf."""

    name: str = Field(description="name of one node, or a host list such as n[1-4]")
    cores: int = Field(ge=1, description="cores that jobs may use (CPUs; ThreadsPerCore = 1)")
    memory: Megabytes | None = Field(None, ge=1, description="MB (RealMemory - MemSpecLimit)")
    gpus: dict[Name, int] = Field(
        default_factory=dict, description="GPUs by type; the type is empty if it has no name (Gres)"
    )
    features: tuple[Name, ...] = Field((), description="names that jobs may ask for (Feature)")
    weight: int = Field(1, ge=0, description="nodes with a small weight are used first (Weight)")

    @property
    def all_gpus(self) -> int:
        """GPUs of all types of one node."""
        return sum(self.gpus.values())


class Limits(Entry):
    """Limits that Slurm keeps for an association or a QOS. sacctmgr(1)."""

    group_jobs: int | None = Field(None, ge=0, description="running jobs in all (GrpJobs)")
    group_submit: int | None = Field(None, ge=0, description="waiting and running (GrpSubmitJobs)")
    group_tres: Tres = Field(default_factory=dict, description="in use in all (GrpTRES)")
    group_tres_minutes: Tres = Field(
        default_factory=dict, description="decayed usage, TRES minutes (GrpTRESMins)"
    )
    group_tres_run_minutes: Tres = Field(
        default_factory=dict, description="left to run, TRES minutes (GrpTRESRunMins)"
    )
    max_jobs: int | None = Field(
        None, ge=0, description="running jobs of a user (MaxJobs; of a QOS: MaxJobsPU)"
    )
    max_submit: int | None = Field(
        None, ge=0, description="waiting and running of a user (MaxSubmit; MaxSubmitPU)"
    )
    max_tres: Tres = Field(default_factory=dict, description="of one job (MaxTRES)")
    max_tres_per_node: Tres = Field(
        default_factory=dict, description="of one job on one node (MaxTRESPerNode)"
    )
    max_tres_per_user: Tres = Field(
        default_factory=dict, description="in use by one user; QOS only (MaxTRESPU)"
    )
    max_jobs_per_account: int | None = Field(None, ge=0, description="QOS only (MaxJobsPA)")
    max_submit_per_account: int | None = Field(None, ge=0, description="QOS only (MaxSubmitPA)")
    max_tres_per_account: Tres = Field(default_factory=dict, description="QOS only (MaxTRESPA)")
    max_wall: Seconds | None = Field(None, ge=0, description="s; longest time limit (MaxWall)")
    min_tres: Tres = Field(default_factory=dict, description="of one job; QOS only (MinTRES)")


class Qos(Entry):
    """A quality of service. sacctmgr(1), SPECIFICATIONS FOR QOS."""

    name: Name
    priority: int = Field(0, ge=0, description="(Priority)")
    limits: Limits = Limits()
    preempts: tuple[Name, ...] = Field((), description="QOS whose jobs it preempts (Preempt)")
    preempt_mode: Preempt | None = Field(None, description="None: the cluster's (PreemptMode)")
    deny_on_limit: bool = Field(False, description="reject jobs beyond limits (Flags=DenyOnLimit)")
    part_qos_overrides: bool = Field(False, description="(Flags=OverPartQOS)")
    no_reserve: bool = Field(False, description="backfilling keeps nothing (Flags=NoReserve)")
    no_decay: bool = Field(False, description="its usage does not decay (Flags=NoDecay)")
    usage_factor: float = Field(1.0, ge=0, description="usage counts so many times (UsageFactor)")


class Account(Entry):
    """An account, or a user in an account: an association. sacctmgr(1)."""

    account: Name
    parent: Name = Field("root", description="the account above it; of a user always its account")
    user: Name = Field("", description="empty for the account itself")
    partition: Name = Field("", description="only for jobs in this partition; empty: all")
    shares: int | None = Field(
        1, ge=0, description="raw shares; None: those of its parent (Fairshare=parent)"
    )
    limits: Limits = Limits()
    qos: tuple[Name, ...] = Field((), description="that jobs may ask for; empty: all")
    default_qos: Name = ""

    @model_validator(mode="before")
    @classmethod
    def _of_its_account(cls, values: Any) -> Any:
        """Put a user below its account."""
        if isinstance(values, dict) and values.get("user") and "account" in values:
            return {"parent": values["account"]} | values
        return values

    @field_validator("shares", mode="before")
    @classmethod
    def _of_parent(cls, value: Any) -> Any:
        return None if value == PARENT else value


class Partition(Entry):
    """Nodes with rules. slurm.conf, PartitionName."""

    name: Name
    nodes: tuple[str, ...] = Field(("ALL",), description="host lists; ALL for all (Nodes)")
    default: bool = Field(False, description="for jobs that name none (Default)")
    default_time: Seconds | None = Field(None, ge=0, description="s; None: max_time (DefaultTime)")
    max_time: Seconds | None = Field(None, ge=0, description="s (MaxTime)")
    min_nodes: int = Field(0, ge=0, description="of a job (MinNodes)")
    max_nodes: int | None = Field(None, ge=0, description="of a job (MaxNodes)")
    max_cores_per_node: int | None = Field(None, ge=1, description="(MaxCPUsPerNode)")
    default_memory_per_core: Megabytes | None = Field(None, ge=0, description="MB (DefMemPerCPU)")
    default_memory_per_node: Megabytes | None = Field(None, ge=0, description="MB (DefMemPerNode)")
    max_memory_per_core: Megabytes | None = Field(None, ge=0, description="MB (MaxMemPerCPU)")
    max_memory_per_node: Megabytes | None = Field(None, ge=0, description="MB (MaxMemPerNode)")
    priority_tier: int = Field(1, ge=0, description="(PriorityTier)")
    priority_factor: int = Field(1, ge=0, description="(PriorityJobFactor)")
    exclusive: bool = Field(False, description="jobs get whole nodes (OverSubscribe=EXCLUSIVE)")
    jobs_per_core: int = Field(
        1, ge=1, description="that may share it; counted, not simulated (OverSubscribe=FORCE:N)"
    )
    preempt_mode: Preempt | None = Field(None, description="None: the cluster's (PreemptMode)")
    grace_time: Seconds = Field(0, ge=0, description="s before a preempted job ends (GraceTime)")
    qos: Name = Field("", description="QOS whose limits hold for all its jobs (QOS)")
    allow_accounts: tuple[Name, ...] = Field((), description="empty: all (AllowAccounts)")
    deny_accounts: tuple[Name, ...] = Field((), description="(DenyAccounts)")
    allow_qos: tuple[Name, ...] = Field((), description="empty: all (AllowQos)")
    deny_qos: tuple[Name, ...] = Field((), description="(DenyQos)")
    allow_groups: tuple[Name, ...] = Field((), description="empty: all (AllowGroups)")
    least_loaded: bool = Field(False, description="spread jobs (LLN)")
    up: bool = Field(True, description="jobs may start (State=UP; DOWN and INACTIVE: not)")
    billing_weights: dict[Name, float] = Field(
        default_factory=dict,
        description="usage counts by these, mem for each MB; empty: cores (TRESBillingWeights)",
    )


class Reservation(Entry):
    """Nodes or cores kept for some, or for nobody. scontrol(1), SPECIFICATIONS FOR RESERVATION."""

    name: Name
    start: Moment = Field(description="s since the epoch of the machine's clock, or of the run")
    end: Moment
    nodes: tuple[str, ...] = Field(("ALL",), description="host lists; ALL for all (Nodes)")
    cores_per_node: int | None = Field(None, ge=1, description="None: whole nodes (CoreCnt)")
    users: tuple[Name, ...] = Field((), description="who may use it (Users)")
    accounts: tuple[Name, ...] = Field((), description="who may use it (Accounts)")
    partition: Name = Field("", description="only jobs of this partition (PartitionName)")
    maintenance: bool = Field(False, description="(Flags=MAINT)")
    ignore_running: bool = Field(False, description="(Flags=IGNORE_JOBS)")
    flexible: bool = Field(False, description="its jobs may also use other nodes (Flags=FLEX)")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.end <= self.start:
            raise ValueError("end: must be later than start")
        return self


class PrioritySettings(Entry):
    """The priority of waiting jobs. slurm.conf, Priority...; priority/multifactor."""

    kind: Literal["basic", "multifactor"] = Field("multifactor", description="(PriorityType)")
    weight_age: int = Field(0, ge=0, description="(PriorityWeightAge)")
    weight_association: int = Field(0, ge=0, description="(PriorityWeightAssoc)")
    weight_fair_share: int = Field(0, ge=0, description="(PriorityWeightFairshare)")
    weight_size: int = Field(0, ge=0, description="(PriorityWeightJobSize)")
    weight_partition: int = Field(0, ge=0, description="(PriorityWeightPartition)")
    weight_qos: int = Field(0, ge=0, description="(PriorityWeightQOS)")
    weight_tres: dict[Name, int] = Field(default_factory=dict, description="(PriorityWeightTRES)")
    max_age: Seconds = Field(604_800, ge=1, description="s; full age factor (PriorityMaxAge)")
    half_life: Seconds = Field(604_800, ge=0, description="s; 0: no decay (PriorityDecayHalfLife)")
    calculation_period: Seconds = Field(300, ge=1, description="s (PriorityCalcPeriod)")
    favor_small: bool = Field(False, description="(PriorityFavorSmall)")
    fair_tree: bool = Field(True, description="not PriorityFlags=NO_FAIR_TREE")
    depth_oblivious: bool = Field(False, description="(PriorityFlags=DEPTH_OBLIVIOUS)")
    small_relative_to_time: bool = Field(
        False, description="(PriorityFlags=SMALL_RELATIVE_TO_TIME)"
    )
    calculate_running: bool = Field(False, description="(PriorityFlags=CALCULATE_RUNNING)")
    accrue_always: bool = Field(False, description="(PriorityFlags=ACCRUE_ALWAYS)")
    max_tres: bool = Field(False, description="(PriorityFlags=MAX_TRES)")
    no_normal_all: bool = Field(False, description="(PriorityFlags=NO_NORMAL_...: raw factors)")
    usage_reset: Literal["none", "daily", "weekly", "monthly", "quarterly", "yearly"] = Field(
        "none", description="(PriorityUsageResetPeriod)"
    )
    damping: int = Field(1, ge=1, description="of classic fair share (FairShareDampeningFactor)")


class SchedulingSettings(Entry):
    """How and when jobs are started. slurm.conf, Scheduler..., Select..., Preempt..."""

    backfill: bool = Field(True, description="sched/backfill, not sched/builtin (SchedulerType)")
    bf_interval: Seconds = Field(30, ge=1, description="s between backfill cycles")
    bf_window: Seconds = Field(86_400, ge=1, description="s ahead that backfilling plans (in min.)")
    bf_resolution: Seconds = Field(60, ge=1, description="s; times of the plan are rounded to it")
    bf_max_job_test: int = Field(500, ge=1, description="jobs that a cycle looks at")
    bf_max_job_user: int = Field(0, ge=0, description="jobs of a user in a cycle; 0: no limit")
    bf_max_job_part: int = Field(0, ge=0, description="jobs of a partition; 0: no limit")
    bf_max_job_start: int = Field(0, ge=0, description="starts in a cycle; 0: no limit")
    bf_max_job_array_resv: int = Field(20, ge=0, description="planned tasks of an array")
    bf_max_job_assoc: int = Field(0, ge=0, description="jobs of an association; 0: no limit")
    bf_min_age_reserve: Seconds = Field(0, ge=0, description="s a job waits before it is planned")
    bf_min_prio_reserve: int = Field(0, ge=0, description="least priority to be planned")
    bf_continue: bool = Field(False, description="goes on after yielding its locks")
    bf_busy_nodes: bool = Field(False, description="prefers nodes that are in use")
    bf_one_resv_per_job: bool = Field(False, description="one reservation for all partitions")
    bf_yield_interval: float = Field(2.0, ge=0, description="s between yields of the locks")
    bf_yield_sleep: float = Field(0.5, ge=0, description="s for which it yields")
    bf_max_time: Seconds | None = Field(None, ge=1, description="s; None: bf_interval")
    default_queue_depth: int = Field(100, ge=0, description="jobs after a submission or an end")
    partition_job_depth: int = Field(0, ge=0, description="jobs of a partition; 0: no limit")
    sched_interval: Seconds = Field(60, description="s between full passes; -1: none")
    sched_min_interval: float = Field(2e-6, ge=0, description="s between passes")
    batch_sched_delay: float = Field(3.0, ge=0, description="s to wait after a submission")
    defer: bool = Field(False, description="no pass at each submission")
    max_sched_time: Seconds = Field(2, ge=1, description="s that a pass may take")
    assoc_limit_stop: bool = Field(False, description="a job at a limit blocks its partition")
    pack_serial_at_end: bool = Field(False, description="serial jobs go to the last nodes")
    whole_nodes: bool = Field(False, description="select/linear: nodes are never shared")
    memory_counts: bool = Field(True, description="CR_..._Memory")
    cores_count: bool = Field(True, description="CR_Core..., CR_CPU..., not CR_Memory alone")
    least_loaded: bool = Field(False, description="spread jobs (CR_LLN)")
    enforce_part_limits: Literal["no", "any", "all"] = Field("no", description="EnforcePartLimits")
    enforce_limits: bool = Field(
        False, description="limits of associations and QOS hold (AccountingStorageEnforce)"
    )
    safe_limits: bool = Field(
        False, description="group_tres_minutes hold to the ends of jobs (...Enforce=safe)"
    )
    default_memory_per_core: Megabytes | None = Field(None, ge=0, description="MB (DefMemPerCPU)")
    default_memory_per_node: Megabytes | None = Field(None, ge=0, description="MB (DefMemPerNode)")
    preempt_type: Literal["none", "partition", "qos"] = Field("none", description="PreemptType")
    preempt_mode: Preempt = Field(Preempt.OFF, description="PreemptMode")
    preempt_youngest_first: bool = Field(False, description="preempt_youngest_first")
    preempt_exempt_time: Seconds = Field(0, ge=0, description="s (PreemptExemptTime)")
    reorder_count: int = Field(1, ge=0, description="preempt_reorder_count")
    requeue: bool = Field(True, description="jobs may be requeued (JobRequeue)")
    topology: Literal["none", "tree", "block", "other"] = Field(
        "none", description="jobs on several nodes are counted, not simulated (TopologyPlugin)"
    )
    requeue_delay: Seconds = Field(121, ge=0, description="s until a requeued job is eligible")
    kill_invalid_depend: bool = Field(False, description="else such jobs wait for ever")
    over_time_limit: Seconds | None = Field(
        0, ge=0, description="s; None: no limit (OverTimeLimit)"
    )
    max_array_size: int = Field(1001, ge=0, description="MaxArraySize")
    time_limit_period: Seconds = Field(
        30, ge=1, description="s between checks of time limits (PERIODIC_TIMEOUT of slurmctld)"
    )
    limit_check_phase: Seconds = Field(
        0, ge=0, description="second of the first such check; others are whole periods away"
    )
    full_pass_phase: Seconds = Field(
        0, ge=0, description="s from the first submission to the first full pass"
    )
    backfill_phase: float = Field(
        0.0,
        ge=-1,
        description="s before which no backfill cycle comes; below 0: the controller has looked "
        "for work each second before the first submission",
    )
    calculation_phase: Seconds = Field(
        0, ge=0, description="s until priorities are first computed anew; 0: a whole period"
    )
    start_latency: float = Field(0.0, ge=0, description="s from a start to the job's first second")
    end_latency: float = Field(0.0, ge=0, description="s from a job's end to free resources")
    cycle_time: float = Field(
        0.0, ge=0, description="s that a backfill cycle takes, put between cycles"
    )


class NodeName(NamedTuple):
    """A node of the machine."""

    name: str
    kind: int  #: place of its type in ``Machine.nodes``


class Machine(Entry):
    """A machine of nodes.

    Attributes
    ----------
    not_modelled
        What a site's files say and this does not represent, with the place: ``slurm.conf:12:
        TopologyPlugin=topology/tree``.
    """

    name: Name = "cluster"
    nodes: tuple[NodeType, ...] = Field(min_length=1)
    partitions: tuple[Partition, ...] = ()
    qos: tuple[Qos, ...] = ()
    accounts: tuple[Account, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    priority: PrioritySettings = PrioritySettings()
    scheduling: SchedulingSettings = SchedulingSettings()
    not_modelled: tuple[str, ...] = ()
    _began: tuple[int, tzinfo] = PrivateAttr((0, UTC))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        from hpcrowd.environment.machine.checks import check

        check(self)
        return self

    def names(self) -> Iterator[NodeName]:
        """Yield all nodes, in the order of the description."""
        from hpcrowd.environment.machine.hostlists import expand

        for kind, node in enumerate(self.nodes):
            for name in expand(node.name):
                yield NodeName(name, kind)

    @property
    def cores(self) -> int:
        """Cores of all nodes."""
        return sum(self.nodes[kind].cores for _, kind in self.names())

    def changed(self, **values: Any) -> Machine:
        """Return a machine with other values of some fields.

        Raises
        ------
        MachineError
            If they are wrong, or do not go with the others.
        """
        try:
            return type(self).model_validate({**dict(self), **values})
        except ValidationError as error:
            raise MachineError(f"machine {', '.join(values)}: {first_mistake(error)}") from None

    @property
    def began(self) -> tuple[int, tzinfo]:
        """Unix time of second 0 of the run, and the time zone; 0 and UTC for a description."""
        return self._began

    def since(self, origin: int, zone: tzinfo = UTC) -> Machine:
        """Return the machine with the dates of its reservations as seconds since an origin.

        Parameters
        ----------
        origin
            Unix time. Times before the year 2000 are seconds of the run already, and stay.
        zone
            Time zone in which usage is reset.
        """
        moved = [
            one.model_copy(update={"start": one.start - origin, "end": one.end - origin})
            if one.start >= FIRST_DATE
            else one
            for one in self.reservations
        ]
        found = self.model_copy(update={"reservations": tuple(moved)})
        found._began = origin, zone
        return found

    def places(self, hosts: tuple[str, ...]) -> tuple[int, ...]:
        """Return the places of the nodes that host lists name, in the order of the machine."""
        from hpcrowd.environment.machine.hostlists import expand

        names = [one.name for one in self.names()]
        if any(text.upper() == "ALL" for text in hosts):
            return tuple(range(len(names)))
        wanted = {name for text in hosts for name in expand(text)}
        return tuple(place for place, name in enumerate(names) if name in wanted)

    def default_partition(self) -> Partition | None:
        """Return the partition of jobs that name none: the default, or the first."""
        for one in self.partitions:
            if one.default:
                return one
        return self.partitions[0] if self.partitions else None
