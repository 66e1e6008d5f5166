"""Accounts and QOS of Slurm's accounting: tables and objects of sacctmgr, and its dump."""

import json

import pytest
from hpcrowd.environment.machine.model import Account, Limits, Preempt, Qos

from tests.environment.machine.slurm.slurm_texts import CONF, NODES, number, reader, wrong


@pytest.fixture
def read(tmp_path):
    """Return a function that reads texts, by the names of their files; _ in a name is a dot."""
    return reader(tmp_path)


ASSOC = """Cluster|Account|User|Partition|Share|GrpTRES|MaxWall|QOS|Def QOS
hal|root|||1|||normal|
hal| physics|||50|cpu=100,gres/gpu:a100=4||normal|
hal|  lasers|||parent||1-00:00:00|normal|
hal|   lasers|ada|p|10|||high,normal|normal
hal| biology|||20|mem=1T||normal|
"""

TREE = [
    Account(account="root", qos=("normal",)),
    Account(account="physics", shares=50, qos=("normal",),
            limits={"group_tres": {"cpu": 100, "gres/gpu:a100": 4}}),
    Account(account="lasers", parent="physics", shares=None, qos=("normal",),
            limits={"max_wall": 86_400}),
    Account(account="lasers", user="ada", partition="p", shares=10, qos=("high", "normal"),
            default_qos="normal"),
    Account(account="biology", shares=20, qos=("normal",),
            limits={"group_tres": {"mem": 1_048_576}}),
]  # fmt: skip


@pytest.mark.parametrize("delimiter", ["|", ";", "\t", "::", "^"])
@pytest.mark.parametrize("closed", [False, True])
def test_associations(read, delimiter, closed):
    """Blanks say how deep an account is; -p puts a delimiter at the end of lines."""
    text = ASSOC.replace("\n", "|\n" if closed else "\n").replace("|", delimiter)
    assert TREE == [*read(CONF, a_txt=text).accounts]


def test_tables_of_associations_complete_each_other(read):
    """A column that one lacks comes from the other."""
    machine = read(
        CONF, a_txt="Account|User|Share|QOS\nroot||1|\nx||7|\n",
        b_txt="Account|User|Share|QOS|MaxJobs\nroot||1||\n x||7||3\n",
    )  # fmt: skip
    assert (7, 3) == (machine.accounts[1].shares, machine.accounts[1].limits.max_jobs)
    assert not any("parent" in note for note in machine.not_modelled)


#: Each limit of a QOS, with a number of its own.
HIGH = Qos(
    name="high", priority=9, preempts=("low",), preempt_mode=Preempt.REQUEUE, deny_on_limit=True,
    no_reserve=True, no_decay=True, part_qos_overrides=True, usage_factor=0.5, limits=Limits(
        group_tres={"cpu": 1}, group_tres_minutes={"cpu": 2}, group_tres_run_minutes={"cpu": 3},
        group_jobs=4, group_submit=5, max_tres={"cpu": 6}, max_tres_per_node={"cpu": 7},
        max_wall=3600, max_tres_per_user={"cpu": 8}, max_jobs=9, max_submit=10,
        max_tres_per_account={"cpu": 11}, max_jobs_per_account=12, max_submit_per_account=13,
        min_tres={"gres/gpu": 1},
    ),
)  # fmt: skip


def test_columns_of_qos(read):
    """All limits that are modelled; the rest is named."""
    machine = read(
        CONF,
        q_txt="Name|Priority|GraceTime|Preempt|PreemptMode|Flags|UsageThres|UsageFactor|GrpTRES|"
        "GrpTRESMins|GrpTRESRunMins|GrpJobs|GrpSubmit|GrpWall|MaxTRES|MaxTRESPerNode|MaxWall|"
        "MaxTRESPU|MaxJobsPU|MaxSubmitPU|MaxTRESPA|MaxJobsPA|MaxSubmitPA|MinTRES\n"
        "low|0|00:00:00||cluster|||1.000000||||||||||||||||\n"
        "high|9|00:00:00|low|requeue|DenyOnLimit,NoReserve,OverPartQOS,NoDecay||0.500000|cpu=1|"
        "cpu=2|cpu=3|4|5||cpu=6|cpu=7|01:00:00|cpu=8|9|10|cpu=11|12|13|gres/gpu=1\n",
    )
    assert (Qos(name="low"), HIGH) == machine.qos
    assert () == machine.not_modelled


DUMP = """# To edit this file start with a cluster line for the new cluster
# Cluster - 'cluster_name':MaxNodesPerJob=50
Cluster - 'hal':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'physics':Description='of: light':Organization='x':Fairshare=50:GrpTRES=cpu=100,gres/gpu:a100=4:QOS='normal'
Account - 'biology':Fairshare=20:GrpTRES=mem=1T:QOS=normal
Parent - 'physics'
Account - 'lasers':Fairshare=parent:MaxWallDurationPerJob=1440:QOS='+normal'
Parent - 'lasers'
User - 'ada':Partition='p':DefaultQOS='normal':Fairshare=10:QOS='high,normal'
QOS - 'high':Priority=7:MaxJobsPU=2
"""  # noqa: E501


def test_dump(read):
    """The file of sacctmgr dump says what the table says, and newer ones also QOS."""
    machine = read(CONF, hal_cfg=DUMP)
    expected = {(one.account, one.user): one for one in TREE}
    expected["root", "root"] = Account(account="root", user="root")
    assert expected == {(one.account, one.user): one for one in machine.accounts}
    assert {"high": 7, "normal": 0} == {one.name: one.priority for one in machine.qos}
    assert "hal.cfg:5: not a line of sacctmgr dump; leave it out" == wrong(
        read, CONF, hal_cfg=DUMP.replace("User - 'root'", "Users - x\nUser - 'root'", 1)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Account|User|Share|QOS\nroot||1\n", "a.txt:2: 3 columns, the header has 4; print"),
        ("Account|User|Share|MaxJobs|QOS\nx||1|many|\n", "a.txt:2: MaxJobs='many': not a whole"),
        ("Account|User|Share|MaxJobs|QOS\nx||1|-4|\n", "a.txt:2: MaxJobs='-4': not a whole"),
        (f"Account|User|Share|GrpTRES|QOS\nx||1|gres/{'g' * 256}=4|\n", "a.txt:2: group_tres"),
        ("Account|User|Share|GrpTRES|QOS\nx||1|cpus=4|\n", "a.txt:2: resource 'cpus': not known"),
        ("Account|User|ParentName|Share|QOS\nx||y|1|\ny||x|1|\n",
         "a.txt:2: accounts in a circle: x -> y -> x; one of them must be below root"),
        ("Cluster|Account|User|Share|QOS\na|x||1|\nb|x||1|\n",
         "a.txt:3: a second cluster, b, next to a; print one with cluster=NAME"),
        ("Account|User|Partition|Share|QOS\nx|||1|\nx|ada|none9|1|\n",
         "a.txt:3: partition 'none9': not defined"),
    ],
)  # fmt: skip
def test_mistakes_in_accounting(read, text, message):
    """File, line, key, value and the cure."""
    assert wrong(read, CONF, a_txt=text).startswith(message)


def test_names_without_a_description(read):
    """QOS and accounts that are only named have no limits and no shares; they are noted."""
    machine = read(
        NODES + "PartitionName=p Nodes=ALL AllowQos=gold AllowAccounts=physics,gone\n",
        a_txt="Account|User|Share|QOS\nroot||1|silver\nphysics||1|\n",
    )
    assert ["silver", "gold"] == [one.name for one in machine.qos]
    assert 0 == next(one.shares for one in machine.accounts if one.account == "gone")
    assert {
        "QOS gold: named, not described; give sacctmgr show qos -P",
        "QOS silver: named, not described; give sacctmgr show qos -P",
        "account gone: named, not described",
    } <= set(machine.not_modelled)


def resource(kind, count, name=""):
    """Return a resource of sacctmgr --json."""
    return {"type": kind, "name": name, "id": 1, "count": count}


@pytest.mark.parametrize("plain", [False, True])
def test_objects_of_associations(read, plain):
    """``sacctmgr show assoc --json`` says the same as the table, in both kinds of numbers."""

    def one(account, parent="root", shares=1, **more):
        tres, no = {"total": more.pop("total", []), "per": {"job": []}}, number(None, plain=plain)
        wall = number(more.pop("wall", None), plain=plain)
        jobs = {"per": {"count": no, "wall_clock": wall}, "active": no}
        return {
            "account": account, "cluster": "hal", "user": "", "partition": "", "flags": [],
            "parent_account": parent, "shares_raw": shares, "max": {"jobs": jobs, "tres": tres},
            "default": {"qos": ""}, "qos": ["normal"], "priority": no, **more,
        }  # fmt: skip

    found = [
        one("root", ""),
        one("physics", shares=50,
            total=[resource("cpu", 100), resource("gres", 4, "gpu:a100")]),
        one("lasers", "physics", 2**31 - 1, wall=1440),
        one("lasers", "", 10, user="ada", partition="p", qos=["high", "normal"],
            default={"qos": "normal"}),
        one("biology", shares=20, total=[resource("mem", 1_048_576)]),
    ]  # fmt: skip
    text = json.dumps({"associations": found, "meta": {}, "errors": []}, indent=1)
    machine = read(CONF, a_json=text)
    assert TREE == [*machine.accounts]
    assert not [note for note in machine.not_modelled if note.startswith("a.json")]


@pytest.mark.parametrize("plain", [False, True])
def test_objects_of_qos(read, plain):
    """``sacctmgr show qos --json``: limits, flags, whom it preempts; the rest is named."""

    def limit(value):
        return number(value, plain=plain)

    def of(**numbers):
        return {name: [resource("cpu", count)] for name, count in numbers.items()}

    active = {"per": {"user": limit(9), "account": limit(12)}}
    most = {
        "active_jobs": {"count": limit(4)},
        "jobs": {"count": limit(5), "active_jobs": active,
                 "per": {"user": limit(10), "account": limit(13)}},
        "tres": {"minutes": {"per": of(qos=3) | {"job": []}, **of(total=2)}, **of(total=1),
                 "per": of(user=8, job=6, node=7, account=11)},
        "wall_clock": {"per": {"job": limit(60), "qos": limit(None)}},
    }  # fmt: skip
    least = {"tres": {"per": {"job": [resource("gres", 1, "gpu")]}}}
    high = {
        "name": "high", "priority": limit(9), "usage_factor": limit(0.5), "id": 7,
        "flags": ["DENY_LIMIT", "NO_RESERVE", "OVERRIDE_PARTITION_QOS", "NO_DECAY", "NOT_SET"],
        "limits": {"max": most, "min": least, "grace_time": 30},
        "preempt": {"list": ["low"], "mode": ["REQUEUE"], "exempt_time": limit(None)},
    }  # fmt: skip
    low = {"name": "low", "preempt": {"list": [], "mode": ["DISABLED"]}, "flags": [],
           "limits": {"grace_time": 0}}  # fmt: skip
    machine = read(CONF, q_json=json.dumps({"qos": [high, low]}, indent=1))
    assert (HIGH, Qos(name="low")) == machine.qos
    notes = [note for note in machine.not_modelled if note.startswith("q.json")]
    assert ["q.json:4: QOS high: GraceTime=30 sec"] == notes
