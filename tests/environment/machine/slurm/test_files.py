"""Each kind of Slurm's files about a machine: all its forms, and what of it is not modelled."""

import contextlib
import gzip
import json
import time

import pytest
from hpcrowd.environment.errors import MachineError
from hpcrowd.environment.machine.files.reading import read_machine
from hpcrowd.environment.machine.model import Account, NodeType, Preempt, Reservation

from tests.environment.machine.slurm.slurm_texts import CONF, NODES, check, number, reader, wrong


@pytest.fixture
def read(tmp_path):
    """Return a function that reads texts, by the names of their files; _ in a name is a dot."""
    return reader(tmp_path)


def test_keys_in_any_case_comments_quotes_and_lines_that_go_on(read):
    r"""A # ends a line unless \ is before it; \ at the end continues it, also with blanks after."""
    machine = read(
        'CLUSTERNAME = "my cluster"   # a name\n'
        "selecttype=select/cons_tres SchedulerParameters=bf_window=60,\\\nbf_continue \\  \n\n"
        "nodename=n1 cpus=4 \\\n   realmemory=1000 \\\n   feature=a\\#b\nPARTITIONNAME=p NODES=n1\n"
    )
    assert "my cluster" == machine.name
    check(machine.scheduling, bf_window=3600, bf_continue=True)
    assert NodeType(name="n1", cores=4, memory=1000, features=("a#b",)) == machine.nodes[0]


def test_default_lines(read):
    """They hold for what follows; a later one changes only what it names."""
    machine = read(
        "NodeName=DEFAULT CPUs=4 RealMemory=1000 Feature=x\nNodeName=n1\n"
        "NodeName=DEFAULT RealMemory=2000\nNodeName=n2 Feature=y\n"
        "PartitionName=DEFAULT MaxTime=60 State=DOWN\nPartitionName=a Nodes=n1\n"
        "PartitionName=b Nodes=n2 MaxTime=2-0 State=UP\n"
    )
    check(machine.nodes[0], cores=4, memory=1000, features=("x",))
    check(machine.nodes[1], cores=4, memory=2000, features=("y",))
    check(machine.partitions[0], max_time=3600, up=False)
    check(machine.partitions[1], max_time=172_800, up=True)


def test_included_files(read, tmp_path):
    """They are found next to the file, whatever their folder was; %c is the cluster's name."""
    conf = "ClusterName=Hal\nInclude /etc/slurm/%c-nodes.conf\nPartitionName=p Nodes=ALL\n"
    (tmp_path / "hal-nodes.conf").write_text("NodeName=n[1-2] CPUs=2\n")
    assert ["n[1-2]"] == [one.name for one in read(conf).nodes]
    (tmp_path / "hal-nodes.conf").write_text("\nNodeName=n[1-2] CPUs=none2\n")
    assert "hal-nodes.conf:2: CPUs='none2': not a whole number of at least 1" == wrong(read, conf)
    (tmp_path / "hal-nodes.conf").write_text("include hal-nodes.conf\n")
    assert "more than 20 files deep" in wrong(read, conf)
    (tmp_path / "hal-nodes.conf").unlink()
    (tmp_path / "slurm").mkdir()
    (tmp_path / "slurm" / "hal-nodes.conf").write_text("NodeName=n[1-3] CPUs=2\n")
    assert ["n[1-3]"] == [one.name for one in read(conf).nodes]
    assert "no such file" in wrong(read, f"Include {'x/' * 5000}y\n")
    (tmp_path / "slurm" / "hal-nodes.conf").unlink()
    assert "slurm.conf:2: Include /etc/slurm/hal-nodes.conf: no such file" in wrong(read, conf)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "A=1 " * 20_000,
        "NodeName=m1 CPUs=1 Gres=" + "gpu:a:1," * 20_000,
        f"Include {'a/' * 20_000}x",
        "PartitionName=q Nodes=" + "n[1-60000]," * 1000,
    ],
    ids=["settings", "resources", "include", "nodes"],
)
def test_long_lines(read, text):
    """What takes time in proportion to a line takes little; lists of too many nodes are refused."""
    begin = time.process_time()
    with contextlib.suppress(MachineError):
        read(f"{CONF}{text}\n")
    assert time.process_time() - begin < 5


@pytest.mark.parametrize(
    ("keys", "cores", "memory"),
    [
        ("CPUs=8 RealMemory=1000", 8, 1000),
        ("Procs=8 RealMemory=1000", 8, 1000),
        ("Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=1000", 16, 1000),
        ("Boards=2 SocketsPerBoard=2 CoresPerSocket=4", 16, None),
        ("CPUs=8 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2", 8, None),
        ("CPUs=16 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CoreSpecCount=2", 12, None),
        ("CPUs=8 CpuSpecList=0-1,7 RealMemory=1000 MemSpecLimit=100", 5, 900),
        ("RealMemory=16k", 1, 16_384),
    ],
)
def test_cores_and_memory(read, keys, cores, memory):
    """CPUs as Slurm 22.05 counts them, less what is kept for the system."""
    machine = read(f"NodeName=n1 {keys}\nPartitionName=p Nodes=n1\n")
    assert (cores, memory) == (machine.nodes[0].cores, machine.nodes[0].memory)


def test_nodes_and_sets_of_nodes(read):
    """Nodes are in the order of scontrol, by name and number; partitions may name sets of them."""
    machine = read("NodeName=n10,n9,a2 CPUs=4\nNodeName=a10 CPUs=4\nNodeName=n[1-2] CPUs=8\n")
    assert ["a2", "a10", "n1", "n2", "n9", "n10"] == [name for name, _ in machine.names()]
    assert ["a[2,10]", "n[1-2]", "n[9-10]"] == [one.name for one in machine.nodes]
    machine = read(
        "NodeName=n[1-2] CPUs=4 Feature=x\nNodeName=n[3-4] CPUs=4\n"
        "NodeSet=xs Feature=x\nNodeSet=both Feature=x Nodes=n4\n"
        "PartitionName=a Nodes=xs,n3\nPartitionName=b Nodes=both\nPartitionName=c\n"
    )
    assert [("n[1-3]",), ("n[1-2,4]",), ()] == [one.nodes for one in machine.partitions]


def test_partitions(read):
    """Times are rounded up to whole minutes; limits may be missing; the last default one counts."""
    machine = read(
        NODES + "MaxMemPerNode=900\n"
        "PartitionName=a Nodes=n1 MaxTime=1:30 DefaultTime=1 MinNodes=1 MaxNodes=3 LLN=YES "
        "Default=YES OverSubscribe=EXCLUSIVE PriorityTier=5 PriorityJobFactor=7 GraceTime=60 "
        "PreemptMode=SUSPEND,GANG AllowAccounts=x,y DenyQos=low MaxCPUsPerNode=3 DefMemPerCPU=10 "
        'TRESBillingWeights="CPU=1.0,Mem=.25G,GRES/gpu=2"\n'
        "PartitionName=b Nodes=ALL MaxTime=INFINITE MaxNodes=UNLIMITED Priority=3 "
        "AllowAccounts=ALL Shared=FORCE:4 MaxMemPerNode=800 AllocNodes=login Default=YES\n"
    )
    first, second = machine.partitions
    check(
        first, max_time=120, default_time=60, min_nodes=1, max_nodes=3, least_loaded=True,
        exclusive=True, priority_tier=5, priority_factor=7, grace_time=60, max_cores_per_node=3,
        preempt_mode=Preempt.SUSPEND, allow_accounts=("x", "y"), deny_qos=("low",), default=False,
        billing_weights={"cpu": 1.0, "mem": 0.25 / 1024, "gres/gpu": 2.0}, max_memory_per_node=900,
    )  # fmt: skip
    check(
        second, max_time=None, max_nodes=None, priority_tier=3, priority_factor=3,
        allow_accounts=(), max_memory_per_node=800, default=True,
    )  # fmt: skip
    assert (
        "slurm.conf:4: partition a: PreemptMode=GANG",
        "slurm.conf:5: Shared=FORCE:4",
        "slurm.conf:5: partition b: AllocNodes=login",
        "slurm.conf:4: partition a: Default=YES; the last one with it counts, b",
        "QOS low: named, not described; give sacctmgr show qos -P",
    ) == machine.not_modelled


def test_scheduler_parameters_have_their_units(read):
    """Minutes, seconds and microseconds become seconds; the rest is named."""
    machine = read(
        NODES + "SchedulerParameters=bf_interval=60,bf_window=2880,bf_resolution=300,defer,"
        "bf_max_job_test=200,max_job_bf=300,bf_max_job_user=5,bf_yield_interval=1000000,"
        "sched_min_interval=2000000,batch_sched_delay=20,sched_interval=-1,max_rpc_cnt=150,"
        "preempt_reorder_count=2,max_sched_time=9,enable_user_top,bf_licenses\n"
        "DependencyParameters=kill_invalid_depend\nOverTimeLimit=UNLIMITED\n"
    )
    check(
        machine.scheduling, bf_interval=60, bf_window=172_800, bf_resolution=300,
        bf_max_job_test=300, bf_max_job_user=5, bf_yield_interval=1.0, sched_min_interval=2.0,
        batch_sched_delay=20.0, sched_interval=-1, defer=True, reorder_count=2, max_sched_time=2,
        kill_invalid_depend=True, over_time_limit=None,
    )  # fmt: skip
    notes = [note.partition("SchedulerParameters=")[2] for note in machine.not_modelled]
    assert [
        "max_rpc_cnt=150",
        "max_sched_time=9: more than half of MessageTimeout, unused as in Slurm",
        "bf_licenses",
    ] == notes


def test_priorities_and_selection(read):
    """Flags, weights and times of the multifactor priority; what jobs share nodes by."""
    machine = read(
        "NodeName=n1 CPUs=4 RealMemory=9\nPriorityType=priority/multifactor\n"
        "PriorityFlags=DEPTH_OBLIVIOUS,NO_FAIR_TREE,INCR_ONLY\nPriorityDecayHalfLife=14-0\n"
        "PriorityCalcPeriod=00:10:00\nPriorityMaxAge=60\nPriorityFavorSmall=YES\n"
        "PriorityWeightAge=5\nPriorityWeightTRES=CPU=10,GRES/gpu=20\n"
        "PriorityUsageResetPeriod=MONTHLY\nSelectType=select/cons_tres\n"
        "SelectTypeParameters=CR_CPU,CR_LLN,CR_ONE_TASK_PER_CORE\n"
        "PreemptType=preempt/qos\nPreemptMode=CANCEL\nPreemptExemptTime=30\n"
        "EnforcePartLimits=YES\nAccountingStorageEnforce=limits,safe\n"
    )
    check(
        machine.priority, depth_oblivious=True, fair_tree=False, half_life=1_209_600,
        calculation_period=600, max_age=3600, weight_tres={"cpu": 10, "gres/gpu": 20},
        usage_reset="monthly", weight_age=5, favor_small=True,
    )  # fmt: skip
    check(
        machine.scheduling, memory_counts=False, cores_count=True, least_loaded=True,
        whole_nodes=False, preempt_type="qos", preempt_mode=Preempt.CANCEL,
        preempt_exempt_time=1800, enforce_part_limits="all", enforce_limits=True,
        safe_limits=True,
    )  # fmt: skip
    assert {
        "slurm.conf:3: PriorityFlags=INCR_ONLY",
        "slurm.conf:12: SelectTypeParameters=CR_ONE_TASK_PER_CORE",
    } == set(machine.not_modelled)


def test_what_is_not_modelled_is_named(read):
    """Settings about scheduling and unknown keys are; those of logs and ports are not."""
    machine = read(
        NODES + "SlurmctldPort=6817\nSlurmdLogFile=/var/log/x\nCompleteWait=0\n"
        "JobSubmitPlugins=lua\nLicenses=matlab:5\nPriorityWeihgtAge=5\n"
        "NodeName=f1 CPUs=4 State=FUTURE\nNodeName=d1 CPUs=4 RealMemory=9 State=DOWN\n"
    )
    assert (
        "slurm.conf:10: State=DOWN: taken as up",
        "slurm.conf:9: State=FUTURE: these nodes are left out",
        "slurm.conf:6: JobSubmitPlugins=lua",
        "slurm.conf:7: Licenses=matlab:5",
        "slurm.conf:8: PriorityWeihgtAge: a key that is not known",
    ) == machine.not_modelled


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("PartitionName=p Nodes=n9", "node n9: not a node of the machine; "),
        ("PartitionName=p Nodes=n[1-", "Nodes='n[1-': brackets do not match"),
        ("NodeName=n2 CPUs=4", "NodeName='n2': node n2 is described twice, also at "),
        ("PartitionName=p MaxTime=soon", "MaxTime='soon': not a time; write minutes"),
        ("PartitionName=p MaxTime=60 DefaultTime=120", "DefaultTime longer than MaxTime"),
        ("PartitionName=p PreemptMode=MAYBE", "PreemptMode='MAYBE': not known; choose off"),
        ("PartitionName=p State=SIDEWAYS", "State='SIDEWAYS': not known; choose UP"),
        ("SchedulerParameters=bf_interval=x", "SchedulerParameters: bf_interval='x': not a whole"),
        ("SchedulerType=sched/wiki", "SchedulerType='sched/wiki': not known; did you mean"),
        ("PriorityFavorSmall=sometimes", "PriorityFavorSmall='sometimes': neither YES nor NO"),
        ("NodeName=m1 Gres=gpu:", "Gres='gpu:': not a list of resources such as gpu:a100:4"),
        ("NodeName=m1 RealMemory=50 MemSpecLimit=60", "MemSpecLimit='60': not less than RealMem"),
        ("NodeName=m1 what is this", "what follows NodeName is not KEY=VALUE; put a value with"),
        ("StoragePass=not a secret", "what follows StoragePass is not KEY=VALUE"),
        ("not a secret", "the line is not KEY=VALUE"),
        ("=n1", "the line is not KEY=VALUE"),
        ("Epilog=\nPartitionName=", "PartitionName has no value"),
        ('NodeName=""', "a node without NodeName"),
        ("NodeName= CPUs=4", "NodeName has no value; give one, or leave it out"),
        ("NodeName=x=4", "NodeName='x=4': names have at most 255 printable characters and no ="),
        (f"NodeName={'n' * 256}", "names have at most 255 printable characters"),
        (f"NodeName=n[{'9' * 5000}]", "is not a number or range upwards"),
        ("NodeName=n[1-65000,1-65000]", "more than 65,536 names"),
        (f"PartitionName={'p' * 256} Nodes=n1", "a name has at most 255 characters, all of them"),
        ("ClusterName=a\0b", "a character of number 0; write the file as UTF-8"),
        ("PriorityWeightAge=99999999999999999",
         "PriorityWeightAge='99999999999999999': must be at most"),
        ("\nPartitionName=p Nodes=n1\nPartitionName=p Nodes=n2",
         "PartitionName='p': partition p is described twice, also at "),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_its_place(read, line, message):
    """File, line, key, value and the cure."""
    found = wrong(read, f"{NODES}{line}\n")
    assert found.startswith(f"slurm.conf:{3 + line.count(chr(10))}: ")
    assert message in found


GPU_NODES = "NodeName=n[1-2] CPUs=4 RealMemory=9 Gres={}\nSelectType=select/cons_tres\n"


@pytest.mark.parametrize(
    ("gres", "conf", "expected"),
    [
        ("gpu:a100:4", "", {"a100": 4}),
        ("gpu:4", "", {"": 4}),
        ("gpu", "", {"": 1}),
        ("gpu:1g.5gb:4(S:0-1),gpu:v100:no_consume:2(S:0,1)", "", {"1g.5gb": 4, "v100": 2}),
        ("gpu:4", "Name=gpu Type=a100 File=/dev/nvidia[0-3]\n", {"a100": 4}),
        ("gpu:4", "NodeName=n[1-9] Name=gpu Type=x File=/dev/nvidia[0-1]\n"
         "NodeName=n1,n2 Name=gpu Type=y Count=2\n", {"x": 2, "y": 2}),
        ("gpu:4", "NodeName=other Name=gpu Type=x Count=4\n", {"": 4}),
    ],
)  # fmt: skip
def test_gpus(read, gres, conf, expected):
    """Counts come from slurm.conf, types also from gres.conf."""
    machine = read(GPU_NODES.format(gres), **({"gres_conf": conf} if conf else {}))
    assert [expected] == [one.gpus for one in machine.nodes]
    assert () == machine.not_modelled


def test_other_resources_are_named(read):
    """So are resources that Slurm finds itself, and other counts in the two files."""
    conf = GPU_NODES.format("gpu:4,mps:400")
    machine = read(conf, gres_conf="AutoDetect=nvml\nName=gpu Count=2\n")
    assert {
        "gres.conf:1: AutoDetect=nvml: GPUs are those of Gres in slurm.conf",
        "slurm.conf:1: Gres=mps:400",
        "slurm.conf:1: Gres of 4 GPUs, gres.conf of 2",
    } == set(machine.not_modelled)


SHOWN = """NodeName=n1 Arch=x86_64 CoresPerSocket=4 
   CPUAlloc=0 CPUEfctv=12 CPUTot=16 AvailableFeatures=milan,gpu ActiveFeatures=milan
   Gres=gpu:a100:2(S:0)
   OS=Linux 6.1.0 #1 SMP PREEMPT
   RealMemory=64000 Sockets=2 Boards=1 CoreSpecCount=2 MemSpecLimit=4000
   State=MIXED+PLANNED ThreadsPerCore=2 Weight=3 Owner=N/A

NodeName=n2 CoresPerSocket=4 
   CPUTot=4 Gres=(null) AvailableFeatures=(null) RealMemory=64000 Sockets=1
   State=DOWN*+DRAIN ThreadsPerCore=1

"""  # noqa: W291

PARTITION = """PartitionName=p
   AllowGroups=ALL AllowAccounts=a,b AllowQos=ALL
   Default=YES QoS=N/A DefaultTime=NONE MaxNodes=UNLIMITED MaxTime=1-00:00:00 MinNodes=0
   Nodes=n[1-2]
   OverSubscribe=EXCLUSIVE OverTimeLimit=NONE PreemptMode=GANG,SUSPEND State=UP TotalCPUs=64
   JobDefaults=DefCpuPerGPU=4
   DefMemPerCPU=2000 MaxMemPerNode=UNLIMITED
"""

RESERVATIONS = """ReservationName=maint StartTime=2026-01-05T08:00:00 EndTime=2026-01-05T09:00:00 Duration=01:00:00
   Nodes=n[1-2] NodeCnt=2 CoreCnt=16 PartitionName=(null) Flags=MAINT,IGNORE_JOBS,SPEC_NODES,DAILY
   Users=root,-bob Accounts=(null) State=INACTIVE

ReservationName=part StartTime=2026-01-05T08:00:00 EndTime=2026-01-06T08:00:00 Duration=1-00:00:00
   Nodes=n[1-2] NodeCnt=2 CoreCnt=4 PartitionName=p Flags=FLEX
     NodeName=n1 CoreIDs=0-1
     NodeName=n2 CoreIDs=0,3
   Users=(null) Accounts=a,b State=INACTIVE
"""  # noqa: E501

CONFIG = """Configuration data as of 2026-01-05T19:03:03
ClusterName             = hal
OverTimeLimit           = 5 min
PriorityType            = priority/multifactor
PriorityFlags           = 
SchedulerParameters     = bf_window=60
SelectType              = select/cons_tres

Cgroup Support Configuration:
PriorityType            = not a setting of Slurm

Slurmctld(primary) at hal is UP
"""  # noqa: W291


def test_what_scontrol_shows(read):
    """Nodes, partitions, reservations and settings, without slurm.conf."""
    machine = read(n_txt=SHOWN, p_txt=PARTITION, r_txt=RESERVATIONS, c_txt=CONFIG)
    assert "hal" == machine.name
    assert (
        NodeType(name="n1", cores=12, memory=60_000, gpus={"a100": 2}, weight=3,
                 features=("milan", "gpu")),
        NodeType(name="n2", cores=4, memory=64_000),
    ) == machine.nodes  # fmt: skip
    check(
        machine.partitions[0], nodes=("n[1-2]",), allow_accounts=("a", "b"), default=True,
        default_time=None, max_time=86_400, exclusive=True, preempt_mode=Preempt.SUSPEND,
        default_memory_per_core=2000,
    )  # fmt: skip
    assert (
        Reservation(name="maint", start=1_767_600_000, end=1_767_603_600, nodes=("n[1-2]",),
                    users=("root",), maintenance=True, ignore_running=True),
        Reservation(name="part", start=1_767_600_000, end=1_767_686_400, nodes=("n[1-2]",),
                    cores_per_node=2, accounts=("a", "b"), partition="p", flexible=True),
    ) == machine.reservations  # fmt: skip
    assert (300, 3600) == (machine.scheduling.over_time_limit, machine.scheduling.bf_window)
    assert {
        "n.txt:1: ThreadsPerCore=2: jobs may share a core, as CPUs are threads",
        "n.txt:10: State=DOWN*+DRAIN: taken as up",
        "p.txt:1: partition p: PreemptMode=GANG",
        "p.txt:6: partition p: JobDefaults=DefCpuPerGPU=4",
        "r.txt:1: reservation maint: Flags=DAILY",
        "r.txt:1: reservation maint: -bob may not use it",
    } == set(machine.not_modelled)


def test_what_scontrol_shows_elsewhere(read):
    """Records with blanks in front; nodes with only CfgTRES; what belongs to no record."""
    machine = read(
        n_txt=f"a banner\n{SHOWN.replace('NodeName=n2', '  NodeName=n2')}"
        "NodeName=g1 CfgTRES=cpu=64,mem=514404M,billing=64,gres/gpu=4,gres/gpu:a100=4\n"
        "NodeName=g2 CfgTRES=cpu=8,mem=1G,billing=8,gres/gpu=2 CPUTot=4 Gres=(null)\n"
        "NodeName=g3 CfgTRES=cpu=8,mem=1G,gres/gpu=16,gres/gpu:b=4\n"
        "NodeName=g4 RealMemory=9 CfgTRES=gres/gpu=2\n"
    )
    assert (
        NodeType(name="g1", cores=64, memory=514_404, gpus={"a100": 4}),
        NodeType(name="g2", cores=4, memory=1024),
        NodeType(name="g3", cores=8, memory=1024, gpus={"": 12, "b": 4}),
        NodeType(name="g4", cores=1, memory=9, gpus={"": 2}),
    ) == machine.nodes[:4]
    assert ["n1", "n2"] == [one.name for one in machine.nodes[4:]]
    notes = ("n.txt:1: belongs to no record", "n.txt:16: CPUs not given: taken as 1, as in Slurm")
    assert all(any(note.startswith(one) for note in machine.not_modelled) for one in notes)


def test_one_line_a_record_and_local_times(read, tmp_path):
    """With -o, all values of a record are in one line; times are those of the zone."""
    lines = ["".join(f" {line.strip()}" for line in text.splitlines()).strip()
             for text in SHOWN.split("\n\n")]  # fmt: skip
    whole = read(n_txt=SHOWN, p_txt=PARTITION, r_txt=RESERVATIONS)
    there = read_machine([tmp_path], "Europe/Paris").reservations
    assert whole.reservations[0].start - 3600 == there[0].start
    assert whole.nodes == read(n_txt="\n".join(lines) + "\n").nodes


def test_what_is_shown_goes_before_what_is_configured(read):
    """A value of scontrol counts; one that only slurm.conf has stays."""
    machine = read(
        "NodeName=n[1-2] CPUs=2 RealMemory=100\nNodeName=n3 CPUs=3 RealMemory=100\n"
        "PartitionName=p Nodes=n3 MaxTime=5 TRESBillingWeights=CPU=2\nClusterName=conf\n"
        "PriorityWeightAge=7\n",
        n_txt=SHOWN, p_txt=PARTITION, c_txt=CONFIG,
    )  # fmt: skip
    cores = {name: machine.nodes[kind].cores for name, kind in machine.names()}
    assert {"n1": 12, "n2": 4, "n3": 3} == cores
    check(machine.partitions[0], nodes=("n[1-2]",), max_time=86_400, billing_weights={"cpu": 2.0})
    assert ("hal", 7) == (machine.name, machine.priority.weight_age)


def test_objects(read):
    """The shapes of 22.05 and of later versions say the same."""
    node = {"name": "n1", "cpus": 8, "sockets": 1, "cores": 4, "threads": 2, "boards": 1,
            "real_memory": 1000, "features": "a,b", "gres": "gpu:x:2", "weight": 3,
            "state": "idle"}  # fmt: skip
    changed = {"features": ["a", "b"], "state": ["IDLE", "PLANNED"], "effective_cpus": 8}
    later = {"nodes": [node | changed], "last_update": number(5), "meta": {}, "errors": []}
    flat = {"partitions": [
        {"name": "p", "nodes": "n1", "max_time_limit": 60, "default_time_limit": 4294967294,
         "priority_tier": 4, "priority_job_factor": 5, "flags": ["default"],
         "maximum_nodes_per_job": -1 % 2**32, "default_memory_per_cpu": 2**63 + 500,
         "allowed_accounts": "a", "preemption_mode": ["disabled"], "min nodes per job": 1},
    ]}  # fmt: skip
    nested = {"partitions": [
        {"name": "p", "nodes": {"configured": "n1", "total": 1}, "accounts": {"allowed": "a"},
         "qos": {"allowed": "", "assigned": ""}, "priority": {"job_factor": 5, "tier": 4},
         "maximums": {"time": number(60), "nodes": number(None), "shares": 1},
         "minimums": {"nodes": 1}, "partition": {"state": ["UP"]},
         "defaults": {"time": {"set": False, "infinite": False, "number": 0},
                      "memory_per_cpu": 9, "partition_memory_per_cpu": number(500)}},
    ], "meta": {"command": ["show", "partitions"]}}  # fmt: skip
    made = {"cores": 8, "memory": 1000, "features": ("a", "b"), "gpus": {"x": 2}, "weight": 3}
    for nodes, partitions, default in (({"nodes": [node]}, flat, True), (later, nested, False)):
        machine = read(n_json=json.dumps(nodes, indent=1), p_json=json.dumps(partitions, indent=1))
        assert (NodeType(name="n1", **made),) == machine.nodes
        check(
            machine.partitions[0], nodes=("n1",), max_time=3600, default_time=None,
            priority_tier=4, priority_factor=5, max_nodes=None, min_nodes=1,
            default_memory_per_core=500, default_memory_per_node=None, allow_accounts=("a",),
            default=default,
        )  # fmt: skip


def test_objects_of_reservations(read):
    """With the line of the object in messages."""
    one = {"name": "r", "node_list": "n[1-2]", "start_time": number(1000), "end_time": number(2000),
           "flags": ["MAINT"], "users": "", "accounts": "a", "partition": "",
           "core_specializations": [{"node": "n1", "core": "0-2"}]}  # fmt: skip
    machine = read(NODES, r_json=json.dumps({"reservations": [one]}, indent=1))
    assert (Reservation(name="r", start=1000, end=2000, nodes=("n[1-2]",), cores_per_node=3,
                        accounts=("a",), maintenance=True),) == machine.reservations  # fmt: skip
    odd = {"reservations": [one | {"core_specializations": 7}]}
    assert read(NODES, r_json=json.dumps(odd)).reservations[0].cores_per_node is None
    late = json.dumps({"reservations": [one | {"end_time": 900}]}, indent=1)
    assert "r.json:4: EndTime='900': reservation r: not later than its start" == wrong(
        read, NODES, r_json=late
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("slurm.conf", "DbdPass=SECRET\nNodeName=m1 CPUs=1 IpmiPass=SECRET\nJobCompPass=SECRET\n"),
        ("slurm.conf", "PartitionName=q Nodes=n1 Token=SECRET\nMIIEow=SECRET\n"),
        ("slurm.conf", "SchedulerParameters=key=SECRET\nPreemptParameters=key=SECRET\n"),
        ("slurm.conf", "StoragePass=SECRET and SECRET\n"),
        ("slurm.conf", "StoragePass : SECRET\n"),
        ("q.txt", "Name|Priority|Secret\nhigh|7|SECRET\n"),
        ("a.txt", "Account|User|Share|QOS|Secret\nx||1||SECRET\n"),
        ("hal.cfg", "Cluster - 'hal':Fairshare=1\nStoragePass=SECRET\n"),
        ("hal.cfg", "Cluster - 'hal':Fairshare=1:Comment='SECRET'\n"),
        ("n.txt", "SECRET\nNodeName=m1 CPUAlloc=0 CPUTot=1 Key=SECRET\n"),
        ("n.json", '{"nodes": [{"name": "m1", "cpus": 1, "password": "SECRET"}]}'),
        ("n.json", '{"nodes": [{"name": "m1", "cpus": 1, "password": "SECRET"]}'),
    ],
)
def test_values_of_unknown_keys_are_never_repeated(read, name, text):
    """They may be passwords: not in messages, nor in what is not modelled, nor in the machine."""
    try:
        shown = read(CONF + text) if name == "slurm.conf" else read(CONF, **{name: text})
    except MachineError as error:
        shown = error
    assert "SECRET" not in str(shown)


def test_files_that_are_something_else(read, tmp_path):
    """In a folder they are left out; by name they are refused with what can be read."""
    others = {
        "jobs.json": '{"meta": {}, "jobs": [{"nodes": "n1"}], "errors": []}',
        "plan.csv": "id,account,user,partition,qos\n1,x,y,z,w\n",
        "sacct.txt": "JobID|Account|User|QOS\n1|x|y|z\n",
        "dbd-old.txt": "ClusterName=x\nDbdHost=x\nStoragePass=secret\n",
        "cgroup.conf": "ClusterName=x\n",
        "acct_gather.conf": "EnergyIPMIPassword=secret\nName=x\n",
        "jwt.key": "-----BEGIN PRIVATE KEY-----\nNodeName=secret\n",
        "notes.md": "NodeName is a key\n",
        "empty.txt": "",
    }
    for name, text in others.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "inside").mkdir()
    (tmp_path / "app.toml").write_text('[app]\npassword = "secret"\n')
    machine = read(CONF)
    assert 3 == len(list(machine.names()))
    assert () == machine.not_modelled
    for name in others:
        with pytest.raises(MachineError, match="does not describe a machine; give a TOML file"):
            read_machine(tmp_path / name)
    (tmp_path / "slurm.conf").unlink()
    with pytest.raises(MachineError, match="nothing describes a machine"):
        read_machine(tmp_path)


def test_packed_files_and_marks(tmp_path):
    """gzip, a byte order mark and line ends of Windows change nothing; what is cut is named."""
    (tmp_path / "slurm.conf.gz").write_bytes(gzip.compress(CONF.encode()))
    (tmp_path / "q.txt").write_bytes(b"\xef\xbb\xbfName|Priority\r\nhigh|7\r\n")
    assert 7 == read_machine(tmp_path).qos[0].priority
    (tmp_path / "cut.gz").write_bytes(gzip.compress(CONF.encode() * 100)[:40])
    for names, why in (
        (["gone"], "No such file"),
        (["cut.gz"], "cut short"),
        ([], "no files: nothing describes a machine"),
        (["q.txt"], r"q.txt: no nodes; give slurm.conf"),
    ):
        with pytest.raises(MachineError, match=why):
            read_machine([tmp_path / name for name in names])


FILES = ("slurm.conf", "sdiag.txt", "gres.conf", "sacctmgr-dump.txt", "sacctmgr-qos.txt")


@pytest.mark.parametrize("run", ["runA", "runB", "runC", "runD", "runF"])
def test_runs_of_a_real_slurm(referee_runs, run):
    """All that a run's files say of its machine is read, whatever of them is given."""
    machines = [read_machine([referee_runs / run])]
    machines.append(read_machine([referee_runs / run / name for name in FILES]))
    for machine in machines:
        assert [
            "b1 8 256000 {} milan,bigmem 20", "g[1-2] 8 64000 {'toy': 2} milan,gpu 1",
            "m[1-3] 8 32000 {} milan 1", "n[1-4] 8 32000 {} skylake 1",
        ] == [" ".join(map(str, (one.name, one.cores, one.memory, one.gpus, ",".join(one.features),
                                 one.weight))) for one in machine.nodes]  # fmt: skip
        assert [
            ("normal", 8, 3600, 86400, 2, 50), ("debug", 2, 600, 1800, 3, 100),
            ("gpu", 2, 3600, 86400, 2, 50), ("long", 3, 14400, 172800, 2, 10),
            ("scavenger", 10, 3600, 86400, 1, 0),
        ] == [(one.name, len(machine.places(one.nodes)), one.default_time, one.max_time,
               one.priority_tier, one.priority_factor) for one in machine.partitions]  # fmt: skip
        assert "normal" == getattr(machine.default_partition(), "name", None)
        assert Preempt.REQUEUE is machine.partitions[-1].preempt_mode
        priorities = {one.name: one.priority for one in machine.qos}
        assert {"high": 100, "low": 1, "normal": 50} == priorities
        assert {"root": 1, "biology": 20, "chemistry": 30, "physics": 50} == {
            one.account: one.shares for one in machine.accounts if not one.user
        }
        some = Account(account="physics", parent="physics", user="u2", shares=10,
                       qos=("high", "low", "normal"), default_qos="normal")  # fmt: skip
        assert some in machine.accounts
        check(machine.scheduling, bf_window=172_800, default_memory_per_core=2000)
        check(machine.priority, half_life=14_400, calculation_period=60)
    for name in ("scheduling", "priority"):
        assert getattr(machines[0], name) == getattr(machines[1], name)


def test_first_machine_of_a_real_slurm(slurm_dumps):
    """The configuration and dumps of eight nodes give one machine; what is missing is named."""
    machine = read_machine([slurm_dumps.parent / "slurm.conf.in", slurm_dumps])
    assert [NodeType(name="n[1-6]", cores=4, memory=16000),
            NodeType(name="n[7-8]", cores=4, memory=16000, gpus={"toy": 2})] == [
        *machine.nodes
    ]  # fmt: skip
    assert ["main", "short", "gpu", "scav"] == [one.name for one in machine.partitions]
    assert 4 == machine.qos[2].limits.max_jobs
    assert any("reservation maint: its nodes" in note for note in machine.not_modelled)


@pytest.mark.parametrize("pairs", [False, True])
def test_settings_as_objects(read, pairs):
    """As in the text, in any case and with underscores; plain numbers of times are seconds."""
    settings = {
        "cluster_name": "hal", "PriorityType": "priority/multifactor", "SLURM_VERSION": "25.05.1",
        "priority_weight_fairshare": 7, "PriorityMaxAge": "1-00:00:00",
        "priority_decay_half_life": {"set": True, "infinite": False, "number": 100_000},
        "scheduler_parameters": ["bf_window=60", "bf_continue"], "licenses": None,
        "TopologyPlugin": "topology/tree",
    }  # fmt: skip
    config = [{"name": key, "value": value} for key, value in settings.items()]
    shown = {"config": config if pairs else settings, "meta": {}, "errors": []}
    machine = read("NodeName=n1 CPUs=4\nPriorityMaxAge=5\n", config_json=json.dumps(shown))
    check(machine.priority, weight_fair_share=7, max_age=86_400, half_life=100_000)
    check(machine.scheduling, bf_window=3600, bf_continue=True)
    assert "hal" == machine.name
    assert "config.json: TopologyPlugin=topology/tree" in machine.not_modelled
    assert "tree" == machine.scheduling.topology


def test_settings_that_are_no_objects_are_named(read):
    """A text in place of settings is an error in one line."""
    with pytest.raises(MachineError, match=r"config.json: config: neither an object nor a list"):
        read("NodeName=n1 CPUs=4\n", config_json='{"config": {"a": 1}, "config": [3]}')


@pytest.mark.parametrize(
    ("word", "jobs"), [("NO", 1), ("EXCLUSIVE", 1), ("FORCE", 4), ("FORCE:1", 1), ("YES:3", 3)]
)
def test_jobs_that_share_a_core(read, word, jobs):
    """OverSubscribe says how many may; four without a number."""
    machine = read(f"NodeName=n1 CPUs=4\nPartitionName=p Nodes=n1 OverSubscribe={word}\n")
    assert jobs == machine.partitions[0].jobs_per_core
