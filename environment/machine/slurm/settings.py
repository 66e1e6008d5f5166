"""Settings of slurm.conf about priorities and scheduling.

Source: man page slurm.conf(5) of Slurm 22.05, whose defaults hold where a file says nothing; units
of SchedulerParameters and the bounds of ``max_sched_time`` as there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from hpcrowd.environment.errors import not_one_of
from hpcrowd.environment.machine.model import Preempt, PrioritySettings, SchedulingSettings
from hpcrowd.environment.machine.slurm.records import (
    Kind,
    Record,
    Source,
    Value,
    limit,
    megabytes,
    number,
    of_words,
    preemption,
    seconds,
    weights,
    whole,
    words,
    yes,
)

#: Options of SchedulerParameters that are numbers: field, and seconds (or one) of a unit.
OPTIONS: dict[str, tuple[str, float]] = {
    "bf_interval": ("bf_interval", 1),
    "bf_window": ("bf_window", 60),
    "bf_resolution": ("bf_resolution", 1),
    "bf_max_job_test": ("bf_max_job_test", 1),
    "max_job_bf": ("bf_max_job_test", 1),
    "bf_max_job_user": ("bf_max_job_user", 1),
    "bf_max_job_part": ("bf_max_job_part", 1),
    "bf_max_job_start": ("bf_max_job_start", 1),
    "bf_max_job_array_resv": ("bf_max_job_array_resv", 1),
    "bf_max_job_assoc": ("bf_max_job_assoc", 1),
    "bf_min_age_reserve": ("bf_min_age_reserve", 1),
    "bf_min_prio_reserve": ("bf_min_prio_reserve", 1),
    "bf_yield_interval": ("bf_yield_interval", 1e-6),
    "bf_yield_sleep": ("bf_yield_sleep", 1e-6),
    "bf_max_time": ("bf_max_time", 1),
    "default_queue_depth": ("default_queue_depth", 1),
    "partition_job_depth": ("partition_job_depth", 1),
    "sched_interval": ("sched_interval", 1),
    "sched_min_interval": ("sched_min_interval", 1e-6),
    "batch_sched_delay": ("batch_sched_delay", 1),
    "max_sched_time": ("max_sched_time", 1),
    "preempt_reorder_count": ("reorder_count", 1),
}

#: Options that are switches, and their fields.
SWITCHES = {
    one: one
    for one in (
        "bf_continue", "bf_busy_nodes", "bf_one_resv_per_job", "defer", "assoc_limit_stop",
        "pack_serial_at_end", "preempt_youngest_first",
    )
}  # fmt: skip

#: Flags of PriorityFlags, and their fields; NO_FAIR_TREE switches off.
FLAGS = {
    "accrue_always": "accrue_always",
    "calculate_running": "calculate_running",
    "depth_oblivious": "depth_oblivious",
    "max_tres": "max_tres",
    "no_normal_all": "no_normal_all",
    "small_relative_to_time": "small_relative_to_time",
}

#: Weights of PrioritySettings, and their keys.
WEIGHTS = {
    "weight_age": "PriorityWeightAge",
    "weight_association": "PriorityWeightAssoc",
    "weight_fair_share": "PriorityWeightFairshare",
    "weight_size": "PriorityWeightJobSize",
    "weight_partition": "PriorityWeightPartition",
    "weight_qos": "PriorityWeightQOS",
}

#: Words of SelectTypeParameters that are modelled, or that only say where on a node a job runs.
SELECTION = of_words("""
    cr_lln cr_cpu cr_cpu_memory cr_core cr_core_memory cr_memory cr_core_default_dist_block
    other_cons_tres other_linear
""")

#: s in which a message must be answered, unless MessageTimeout says otherwise.
MESSAGE_TIMEOUT = 10

#: A number, which may be a value of an option.
_NUMBER = re.compile(r"-?[0-9.]{1,12}[a-z%]?", re.IGNORECASE)

#: Values that change nothing, by key.
NEUTRAL = {
    "topologyplugin": {"topology/none", "topology/default", "topology/flat"},
    "mcsplugin": {"mcs/none"},
    "maxjobcount": {"10000"},
    "maxtaskspernode": {"512"},
    "maxbatchrequeue": {"5"},
    "prologflags": {"alloc", "contain", "alloc,contain", "x11", "contain,x11", "alloc,contain,x11"},
    "mcsparameters": {"(null)"},
    "schedulerrootfilter": {"1"},
}

#: Options of SchedulerParameters that do not change schedules.
HARMLESS_OPTIONS = of_words("""
    enable_user_top nohold_on_prolog_fail max_script_size bf_node_space_size salloc_wait_nodes
    sbatch_wait_nodes no_env_cache enable_hetjob_steps disable_hetjob_steps step_retry_count
    step_retry_time max_submit_line_size max_switch_wait default_gbytes no_backup_scheduling
    bb_array_stage_cnt requeue_setup_env_fail disable_job_shrink enable_job_state_cache
""")

#: Settings that have nothing to do with schedules.
HARMLESS = of_words("""
    accountingstoragetype defaultstoragetype defaultstorageuser defaultstoragehost
    defaultstorageport defaultstorageloc defaultstoragepass accountingstoragebackuphost
    accountingstorageexternalhost accountingstoragehost accountingstorageloc
    accountingstorageparameters accountingstoragepass accountingstorageport
    accountingstoragetres accountingstorageuser accountingstoreflags accountingstorejobcomment
    acctgatherenergytype acctgatherfilesystemtype acctgatherinfinibandtype
    acctgatherinterconnecttype acctgathernodefreq acctgatherprofiletype allowedkmemspace
    allowedramspace allowedswapspace authaltparameters authalttypes authinfo authtype backupaddr
    backupcontroller batchstarttimeout bcastexclude bcastparameters boot_time cacherefresh
    cachegroups cgroupautomount cgroupmountpoint cgroupplugin certmgrparameters certmgrtype
    checkpointtype communicationparameters constraincores constraindevices constrainkmemspace
    constrainramspace constrainswapspace controladdr controlmachine corespecplugin cpufreqdef
    cpufreqgovernors credtype cryptotype debugflags dataparserparameters disablerootjobs
    eiotimeout enablecontrollers epilog epilogmsgtime epilogslurmctld epilogtimeout
    extsensorsfreq extsensorstype fasticonfig fastschedule firstjobid frontendaddr getenvtimeout
    gpufreqdef grestypes groupupdateforce groupupdatetime hash_val hashplugin
    healthcheckinterval healthchecknodestate healthcheckprogram httpparsertype ignoresystemd
    ignoresystemdonfailure inactivelimit interactivestepoptions jobacctgatherfrequency
    jobacctgatherparams jobacctgathertype jobcheckpointdir jobcomphost jobcomploc jobcompparams
    jobcomppass jobcompport jobcomptype jobcompuser jobcontainertype jobcredentialprivatekey
    jobcredentialpubliccertificate jobfileappend killonbadexit killwait launchparameters
    launchtype logtimeformat maildomain mailprog maxdbdmsgs maxjobid maxkmempercent maxnodecount
    maxrampercent maxstepcount maxswappercent memlimitenforce memoryswappiness messagetimeout
    minjobage minkmemspace minramspace mpidefault mpiparams multiple_slurmd next_job_id
    plugindir plugstackconfig prepparameters prepplugins privatedata proctracktype prolog
    prologepilogtimeout prologslurmctld prologtimeout propagateprioprocess
    propagateresourcelimits propagateresourcelimitsexcept rebootprogram resumefailprogram
    resumeprogram resumerate resumetimeout resvepilog resvprolog returntoservice routeplugin
    sallocdefaultcommand sbcastparameters schedulertimeslice scronparameters slurm_conf
    slurm_version slurmctldaddr slurmctlddebug slurmctldhost slurmctldlogfile
    slurmctldparameters slurmctldpidfile slurmctldplugstack slurmctldport
    slurmctldprimaryoffprog slurmctldprimaryonprog slurmctldsyslogdebug slurmctldtimeout
    slurmddebug slurmdlogfile slurmdparameters slurmdpidfile slurmdport slurmdspooldir
    slurmdsyslogdebug slurmdtimeout slurmduser slurmschedlogfile slurmschedloglevel slurmuser
    srunepilog srunportrange srunprolog statesavelocation suspendexcnodes suspendexcparts
    suspendexcstates suspendprogram suspendrate suspendtimeout schedulerport switchparameters
    switchtype taskepilog taskplugin taskpluginparam taskprolog tcptimeout tlsparameters tlstype
    tmpfs trackwckey treewidth unkillablestepprogram unkillablesteptimeout urlparsertype usepam
    vsizefactor waittime x11parameters clusternode namespacetype namespaceplugin metricstype
""")


class Settings:
    """The settings of all files; the last value of a key counts. What is not modelled is noted."""

    def __init__(self, records: Iterable[Record], notes: list[str]) -> None:
        self.notes = notes
        self.all = Record(Kind.SETTING, "", ())
        chosen = [one for one in records if one.kind is Kind.SETTING]
        for source in Source:
            for record in chosen:
                if record.source is source:
                    self.all.values |= record.values

    def name(self) -> str | None:
        """Return the name of the cluster."""
        value = self.all.take("ClusterName")
        return value.text if value else None

    def partition_defaults(self) -> dict[str, int | None]:
        """Return the fields of partitions that say nothing about them."""
        return {
            "max_memory_per_core": megabytes(self.all.take("MaxMemPerCPU")),
            "max_memory_per_node": megabytes(self.all.take("MaxMemPerNode")),
        }

    def priority(self) -> PrioritySettings:
        """Return how jobs are ordered."""
        take = self.all.take
        kind = take("PriorityType")
        name = kind.text.lower().removeprefix("priority/") if kind else "basic"
        if kind and name not in ("basic", "multifactor"):
            raise kind.wrong(not_one_of(name, ("basic", "multifactor")))
        if kind is None and any(key.startswith("priorityweight") for key in self.all.values):
            self.notes.append("PriorityType not given: taken as priority/basic, weights are unused")
        flags = {word.lower(): word for word in words(take("PriorityFlags"))}
        self.notes += [
            f"{self._at('PriorityFlags')}: PriorityFlags={word}"
            for flag, word in flags.items()
            if flag not in FLAGS and flag not in ("no_fair_tree", "fair_tree")
        ]
        fields: dict[str, Any] = {
            field: whole(value) for field, key in WEIGHTS.items() if (value := take(key))
        }
        for field, key in (("max_age", "PriorityMaxAge"), ("half_life", "PriorityDecayHalfLife"),
                           ("calculation_period", "PriorityCalcPeriod")):  # fmt: skip
            if value := take(key):
                fields[field] = seconds(value)
        reset, damping = take("PriorityUsageResetPeriod"), take("FairShareDampeningFactor")
        if reset and reset.text.lower() == "now":
            self.notes.append(reset.note)
        elif reset:
            fields["usage_reset"] = reset.text.lower()
            known = ("daily", "weekly", "monthly", "quarterly", "yearly")
            if fields["usage_reset"] not in known:
                raise reset.wrong(not_one_of(reset.text, [one.upper() for one in known]))
        if damping:
            fields["damping"] = whole(damping, 1)
        of_tres = weights(take("PriorityWeightTRES"))
        return PrioritySettings(
            kind=name,
            weight_tres={tres: int(weight) for tres, weight in of_tres.items()},
            favor_small=yes(take("PriorityFavorSmall")),
            fair_tree="no_fair_tree" not in flags,
            **{field: flag in flags for flag, field in FLAGS.items()},
            **fields,
        )

    def scheduling(self) -> SchedulingSettings:
        """Return how and when jobs are started."""
        take = self.all.take
        fields = self._options() | self._selection() | self._preemption()
        for field, key in (("default_memory_per_core", "DefMemPerCPU"),
                           ("default_memory_per_node", "DefMemPerNode")):  # fmt: skip
            fields[field] = megabytes(take(key))
        scheduler = take("SchedulerType")
        if scheduler and scheduler.text.lower() not in ("sched/backfill", "sched/builtin"):
            raise scheduler.wrong(not_one_of(scheduler.text, ("sched/backfill", "sched/builtin")))
        backfill = scheduler is None or scheduler.text.lower() == "sched/backfill"
        fields["backfill"] = backfill and fields.get("backfill", True)
        parts = take("EnforcePartLimits")
        if parts:
            word = parts.text.lower()
            fields["enforce_part_limits"] = {"yes": "all", "1": "all", "0": "no"}.get(word, word)
            if fields["enforce_part_limits"] not in ("no", "any", "all"):
                raise parts.wrong(not_one_of(parts.text, ("NO", "ANY", "ALL")))
        fields |= self._enforced(take("AccountingStorageEnforce"))
        fields["topology"] = self._topology(take("TopologyPlugin"))
        fields["requeue"] = yes(take("JobRequeue"), default=True)
        over, largest = take("OverTimeLimit"), take("MaxArraySize")
        if over:
            fields["over_time_limit"] = limit(over)
        if largest:
            fields["max_array_size"] = whole(largest)
        depends = take("DependencyParameters")
        asked = {word.lower(): word for word in words(depends)}
        fields["kill_invalid_depend"] = "kill_invalid_depend" in asked
        self.notes += [
            f"{self._at('DependencyParameters')}: DependencyParameters={word}"
            for name, word in asked.items()
            if name not in ("kill_invalid_depend", "disable_remote_singleton")
        ]
        return SchedulingSettings(**fields)

    def left(self) -> None:
        """Note the settings that nobody has taken."""
        self.notes += self.all.unused(harmless=HARMLESS, neutral=NEUTRAL)

    def _at(self, key: str) -> str:
        return self.all.values[key.lower()].where

    def _options(self) -> dict[str, Any]:
        """Return what SchedulerParameters says."""
        value = self.all.take("SchedulerParameters")
        timeout = self.all.take("MessageTimeout")
        most = number(timeout, MESSAGE_TIMEOUT) // 2
        fields: dict[str, Any] = {}
        more = self.all.take("PreemptParameters")
        own = [(more, f"preempt_{word.lower()}", word) for word in words(more)]
        for source, name, word in [*((value, word.lower(), word) for word in words(value)), *own]:
            assert source is not None
            name, equals, text = (one.strip() for one in name.partition("="))
            one = Value(f"{source.key}: {name}", text, source.where)
            note = f"{source.where}: {source.key}={option_of(word)}"
            if name in SWITCHES:
                fields[SWITCHES[name]] = text not in ("no", "false", "0")
            elif name == "bf_interval" and text == "-1":
                fields["backfill"] = False
            elif name == "sched_interval" and text == "-1":
                fields["sched_interval"] = -1
            elif name == "max_sched_time" and text.isdecimal() and int(text) > most:
                self.notes.append(f"{note}: more than half of MessageTimeout, unused as in Slurm")
            elif name == "bf_max_time" and text == "0":
                continue
            elif name in OPTIONS and equals:
                field, unit = OPTIONS[name]
                least = SchedulingSettings.model_fields[field].metadata
                amount = whole(one, min((rule.ge for rule in least if hasattr(rule, "ge")),
                                        default=0) if unit >= 1 else 0)  # fmt: skip
                fields[field] = amount * unit if unit < 1 else amount * int(unit)
            elif name == "kill_invalid_depend":
                self.notes.append(f"{note}: unused, as in Slurm; write DependencyParameters")
            elif name not in HARMLESS_OPTIONS:
                self.notes.append(note)
        fields.setdefault("max_sched_time", min(max(most, 1), 2))
        return fields

    def _selection(self) -> dict[str, Any]:
        """Return what jobs share nodes by."""
        kind, given = self.all.take("SelectType"), self.all.take("SelectTypeParameters")
        name = kind.text.lower().removeprefix("select/") if kind else "linear"
        if kind is None:
            self.notes.append(
                "SelectType not given: taken as select/linear, the default of Slurm up to 22.05; "
                "later it is select/cons_tres"
            )
        parameters = [word.lower() for word in words(given)]
        if kind and name not in ("linear", "cons_res", "cons_tres"):
            self.notes.append(kind.note)
        linear = name == "linear" or "other_linear" in parameters
        parameters = parameters or ([] if linear else ["cr_core_memory"])
        for word in parameters:
            if word not in SELECTION:
                assert given is not None
                self.notes.append(f"{given.where}: SelectTypeParameters={word.upper()}")
        resources = ("cr_cpu", "cr_core", "cr_socket", "cr_board")
        return {
            "whole_nodes": linear,
            "memory_counts": any(word.endswith("_memory") for word in parameters),
            "cores_count": linear or any(word.startswith(resources) for word in parameters),
            "least_loaded": "cr_lln" in parameters,
        }

    def _preemption(self) -> dict[str, Any]:
        kind, exempt = self.all.take("PreemptType"), self.all.take("PreemptExemptTime")
        name = kind.text.lower().removeprefix("preempt/") if kind else "none"
        if kind and name not in ("none", "partition_prio", "qos"):
            raise kind.wrong(not_one_of(name, ("none", "partition_prio", "qos")))
        value = self.all.take("PreemptMode")
        mode, other = preemption(value)
        self.notes += [f"{self._at('PreemptMode')}: PreemptMode={word}" for word in other]
        return {
            "preempt_type": "partition" if name == "partition_prio" else name,
            "preempt_mode": mode or Preempt.OFF,
            "preempt_exempt_time": seconds(exempt) if exempt and exempt.text != "-1" else 0,
        }

    def _topology(self, value: Value | None) -> str:
        """Return the kind of topology, which is noted if there is one."""
        if value is None or value.text.lower() in NEUTRAL["topologyplugin"]:
            return "none"
        self.notes.append(value.note)
        kind = value.text.lower().removeprefix("topology/")
        return kind if kind in ("tree", "block") else "other"

    def _enforced(self, value: Value | None) -> dict[str, Any]:
        enforced = {word.lower() for word in words(value)}
        if value and value.text.lower() == "all":
            enforced = {"limits", "qos", "safe"}
        self.notes += [
            f"{self._at('AccountingStorageEnforce')}: AccountingStorageEnforce={word}"
            for word in sorted(enforced & {"wckeys", "nojobs"})
        ]
        safe = "safe" in enforced
        return {"enforce_limits": safe or "limits" in enforced, "safe_limits": safe}


def option_of(word: str) -> str:
    """Return an option that is not known, with its value if that is a number."""
    name, equals, value = word.partition("=")
    return word if not equals or _NUMBER.fullmatch(value) else name
