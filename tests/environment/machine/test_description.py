"""A description of a machine: what it must not contradict, TOML both ways, and its command."""

import json

import hpcrowd as hc
import numpy as np
import pytest
from hpcrowd.environment.errors import MachineError, QuantityError
from hpcrowd.environment.machine.files.toml_text import machine_toml
from hpcrowd.environment.machine.hostlists import collapse, expand, natural
from hpcrowd.environment.machine.model import Account, Limits, Machine, NodeType, Partition, Qos
from hpcrowd.environment.machine.units import memory_text, parse_memory, parse_time
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.machine.machine_cases import random_machine
from tests.environment.machine.slurm.slurm_texts import check

NODES = '[[nodes]]\nname = "n[1-3]"\ncores = 4\n'


NODE, PARTITION, QOS, USER, RESERVATION = (
    f'[[{table}]]\n{key} = "{name}"\n'
    for table, key, name in (
        ("nodes", "name", "m"), ("partitions", "name", "p"), ("qos", "name", "a"),
        ("accounts", "account", "a"), ("reservations", "name", "r"),
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PARTITION + 'nodes = ["n[1-4]"]\n', "6: node n4: not a node of the machine"),
        (PARTITION * 2, "6: partition p: described"),
        ('[[nodes]]\nname = "n[3-5]"\ncores = 1\n', "5: node n3: described twice; remove one"),
        ('[[nodes]]\nname = "n[3"\ncores = 1\n', "5: host list 'n[3': brackets do not match"),
        (NODE + "cores = 0\n", "6: nodes[1].cores 0: must be 1 or more"),
        (NODE + "cores = 99999999999999999999\n", "6: nodes[1].cores 99999999999"),
        (NODE, "4: nodes[1].cores: missing; it has no default"),
        (NODE + 'cores = 1\nmemory = "lots"\n', "7: nodes[1].memory: memory 'lots': not a number"),
        (NODE + "cores = 1\n[nodes.gpus]\na = -1\n", "8: -1 GPUs: must be 0 or "),
        (NODE + "cores = 1\nmemry = 5\n", "7: nodes[1].memry: no such setting; "),
        (PARTITION + 'max_time = "1h"\ndefault_time = "2h"\n', "7: default_time 7200 s: longer"),
        (PARTITION + 'max_time = "soon"\n', "6: partitions[0].max_time: duration 'soon': not a "),
        (PARTITION + "min_nodes = 3\nmax_nodes = 2\n", "6: min_nodes 3: more than max_nodes, 2"),
        (PARTITION + 'qos = "gold"\n', "6: QOS 'gold': not defined; define it"),
        (PARTITION + 'allow_qos = ["gold"]\n', "6: QOS 'gold': not defined; "),
        (PARTITION + "billing_weights = {cpus = 1.0}\n", "6: resource 'cpus': not known; write cp"),
        (PARTITION + 'default = true\n\n[[partitions]]\nname = "b"\ndefault = true\n',
         "10: partition b: a second default, next to p; keep one"),
        (QOS + 'preempts = ["b"]\n', "6: QOS 'b': not defined; define it"),
        (QOS + "limits = {max_tres = {cpu = -1}}\n", "6: cpu -1: must be 0 or m"),
        (QOS + "[qos.limits.max_tres]\ncores = 1\n", "7: resource 'cores': not k"),
        (USER + 'parent = "b"\n[[accounts]]\naccount = "b"\nparent = "a"\n',
         "6: accounts in a circle: a -> b -> a; one of them must be below root"),
        (USER + 'user = "u"\n', "5: account 'a': not defined; define it "),
        (USER * 2, "6: association a: described twice; remove one"),
        (USER + 'partition = "p"\n', "6: partition 'p': not defined; def"),
        (USER * 2 + 'user = "u"\nparent = "root"\n', "9: user u: below root; a user is below its"),
        (USER + PARTITION + 'allow_accounts = ["b"]\n', "8: account 'b': not defined; define it"),
        (RESERVATION + "start = 9\nend = 5\n", "4: reservations[0]: end: must be later than start"),
        (RESERVATION + 'start = "noon"\nend = 5\n', "6: reservations[0].start: time 'noon': not a"),
        ('[scheduling]\npreempt_type = "qus"\n', "5: scheduling.preempt_type 'qus': not known; "),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_its_place(tmp_path, text, message):
    """File, line, what is wrong, and the cure."""
    path = tmp_path / "m.toml"
    path.write_text(NODES + text)
    with pytest.raises(MachineError) as caught:
        hc.read_machine(path)
    assert str(caught.value).startswith(f"{path}:{message}"), str(caught.value)


def test_files_that_are_not_toml(tmp_path):
    """The message says where they end to be; a description is alone."""
    path = tmp_path / "m.toml"
    for text, read, message in (
        ("name = \n", path, r"m.toml: not TOML: .* line 1"),
        ("", path, r"m.toml: nodes: missing; it has no default"),
        (NODES, tmp_path, r"m.toml: a TOML file describes the whole machine"),
    ):
        path.write_text(text)
        (tmp_path / "slurm.conf").write_text("NodeName=n1 CPUs=1\n")
        with pytest.raises(MachineError, match=message):
            hc.read_machine(read)


def test_texts_with_units(tmp_path):
    """Times, memory, moments and words for no limit mean the same as numbers."""
    path = tmp_path / "m.toml"
    path.write_text(
        '[[nodes]]\nname = "n1"\ncores = 4\nmemory = "1.5GB"\n'
        '[[partitions]]\nname = "p"\nmax_time = "1-12:00:00"\ndefault_time = "unlimited"\n'
        '[[accounts]]\naccount = "a"\nshares = "parent"\nlimits = {max_tres = {mem = "2TB"}}\n'
        '[[accounts]]\naccount = "a"\nuser = "u"\n'
        '[[reservations]]\nname = "r"\nstart = 2026-01-05T08:00:00Z\nend = "2026-01-05T09:00:00"\n'
        '[scheduling]\nbf_window = "2d"\nover_time_limit = "unlimited"\nsched_interval = -1\n'
    )
    machine = hc.read_machine(path)
    check(machine.nodes[0], memory=1536)
    check(machine.partitions[0], max_time=129_600, default_time=None)
    check(machine.accounts[0], shares=None, limits=Limits(max_tres={"mem": 2_097_152}))
    check(machine.accounts[1], parent="a")
    check(machine.reservations[0], start=1_767_600_000, end=1_767_603_600)
    check(machine.scheduling, bf_window=172_800, over_time_limit=None, sched_interval=-1)


WORD = st.text(
    st.characters(codec="utf-8", exclude_characters=",[]=/ ").filter(str.isprintable),
    min_size=1, max_size=8,
)  # fmt: skip
TRES = st.dictionaries(st.sampled_from(["cpu", "mem", "node", "gres/gpu", "gres/gpu:a-1"]),
                       st.integers(0, 2**40))  # fmt: skip
BIG = st.integers(1, 2**53)
MAYBE = st.none() | st.integers(0, 2**31)
TIMES = st.none() | st.integers(0, 10**9)


@st.composite
def machines(draw):
    """Random machines, with some more parts of any names, numbers and texts."""
    made = random_machine(np.random.default_rng(draw(st.integers(0, 2**32 - 1))))
    words = tuple(f"x{one}" for one in draw(st.lists(WORD, max_size=3, unique=True)))
    limits = st.builds(Limits, max_jobs=MAYBE, max_wall=TIMES, max_tres=TRES, group_tres=TRES)
    node = NodeType(
        name="x1", cores=draw(st.integers(1, 999)), memory=draw(st.none() | BIG),
        gpus=draw(st.dictionaries(WORD | st.just(""), st.integers(0, 9))), features=words,
    )  # fmt: skip
    partitions = [
        Partition(name=one, nodes=("x1",), max_time=draw(TIMES), default_time=None, allow_qos=words,
                  billing_weights=draw(st.dictionaries(st.just("cpu"), st.floats(0, 1e9))))
        for one in words
    ]  # fmt: skip
    qos = [Qos(name=one, limits=draw(limits)) for one in words]
    accounts = [Account(account=one, shares=draw(MAYBE), limits=draw(limits)) for one in words]
    start = draw(st.integers(-(10**6), 2 * 10**9))
    kept = {"name": "r", "start": start, "end": start + 5, "nodes": ("x1",)}
    numbers = {"over_time_limit": draw(TIMES), "default_memory_per_core": draw(MAYBE),
               "cycle_time": draw(st.floats(0, 1e6))}  # fmt: skip
    return made.changed(
        name=draw(WORD), nodes=(*made.nodes, node), partitions=(*made.partitions, *partitions),
        qos=(*made.qos, *qos), accounts=(*made.accounts, *accounts),
        reservations=(*made.reservations, kept), not_modelled=words,
        priority={"half_life": draw(st.integers(0, 10**9))},
        scheduling=made.scheduling.model_dump() | numbers,
    )  # fmt: skip


@settings(max_examples=25)
@given(machines())
def test_toml_and_back(tmp_path_factory, machine):
    """A machine that is written and read is equal, whatever its names and limits."""
    path = tmp_path_factory.mktemp("toml") / "m.toml"
    hc.write_machine(machine, path)
    assert machine == hc.read_machine(path)
    assert path.read_text("utf-8") == machine_toml(machine)


def test_only_what_differs_is_written():
    """Defaults are left out, and units are the largest that fit."""
    machine = Machine(
        nodes=(NodeType(name="n1", cores=4, memory=65_536),),
        partitions=(Partition(name="p", max_time=5400, default_memory_per_core=2000),),
        reservations=({"name": "r", "start": 1_767_600_000, "end": 1_767_603_600},),
        scheduling={"bf_window": 172_800},
    )
    head, *parts = machine_toml(machine).rstrip().split("\n\n")
    assert "# hpcrowd machine" == head
    assert {
        '[scheduling]\nbf_window = "2d"',
        '[[nodes]]\nname = "n1"\ncores = 4\nmemory = "64GB"',
        '[[partitions]]\nname = "p"\nmax_time = "90m"\ndefault_memory_per_core = "2000MB"',
        '[[reservations]]\nname = "r"\nstart = 2026-01-05T08:00:00Z\nend = 2026-01-05T09:00:00Z',
    } == set(parts)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("12h", 43_200), ("1.5h", 5400), ("2d", 172_800), ("1-00:00:00", 86_400),
     ("1-12", 129_600), ("1-12:30", 131_400), ("08:30:00", 30_600), ("100:00:00", 360_000),
     *((wrong, None) for wrong in ("1:30", "", "-5", "1-", "8:61:00", "1d2h", "9999999-00:00:00"))],
)  # fmt: skip
def test_times(text, seconds):
    """A number with a unit, or days, hours, minutes and seconds; 1:30 might be minutes or hours."""
    if seconds is None:
        with pytest.raises(QuantityError, match="duration"):
            parse_time(text)
    else:
        assert seconds == parse_time(text)


HOSTS = st.from_regex(r"[a-z]{1,2}[0-9]{0,3}([a-z][0-9]{1,2})?", fullmatch=True)


@given(st.integers(0, 2**50), st.lists(HOSTS))
def test_memory_and_host_lists_and_back(megabytes, names):
    """The shortest text means the same; collapsed names expand to the same, in order."""
    assert megabytes == parse_memory(memory_text(megabytes))
    assert names == list(expand(collapse(names)))


def test_host_lists_are_short():
    """Ranges of the same width are joined; names are ordered by their numbers."""
    assert "n[1-3,7],gpu[08-10],x" == collapse(expand("n1,n2,n[3,7],gpu08,gpu09,gpu10,x"))
    assert ["a2b1", "a2b10", "a10"] == sorted(["a10", "a2b10", "a2b1"], key=natural)


CONF = (
    "SelectType=select/cons_tres\nPriorityWeightAge=5\nPriorityType=priority/multifactor\n"
    "NodeName=n[1-2] CPUs=4 RealMemory=1000\nNodeName=g1 CPUs=8 RealMemory=2048 Gres=gpu:x:2\n"
    "PartitionName=p Nodes=ALL Default=YES MaxTime=60 PreemptMode=OFF AllowAccounts=a\n"
    "Licenses=matlab:3\n"
)


def test_what_the_command_shows(tmp_path, call):
    """Nodes, partitions, QOS, accounts, priority, reservations, and what is not modelled."""
    rows = "".join(f"PartitionName=p{place} Nodes=n1\n" for place in range(1103))
    for name, text in {
        "slurm.conf": CONF + rows,
        "q.txt": "Name|Priority|MaxJobsPU\nhigh|7|3\n",
        "a.txt": "Account|User|Share|QOS\nroot||1|\n a||5|\n  b||parent|\n  b|u||high\n",
        "r.txt": "ReservationName=r StartTime=1970-01-01T00:00:05 EndTime=1970-01-01T00:00:09\n"
        "   Nodes=n1\n",
    }.items():
        (tmp_path / name).write_text(text)
    code, out, err = call("machine", tmp_path)
    assert (0, "") == (code, err)
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert [
        "cluster: 3 nodes, 16 cores, 2 GPUs", "", "nodes features GPUs count cores memory weight",
        "g1 2 x 1 8 2GB 1", "n[1-2] 2 4 1000MB 1", "",
        "partition preempted nodes default time max time tier factor",
        "p default, not for all off 3 1h 1h 1 1",
    ] == lines[:8]  # fmt: skip
    assert lines[106].startswith("p98 ")
    assert "1,004 more, with --json" in lines[107]
    assert [
        "QOS limits preempts priority", "high max_jobs 3 7", "", "account limits shares users",
        "root 1", "a 5", "b parent 1", "", "priority: weight_age 5", "", "scheduling: defaults", "",
        'reservation r: start 5, end 9, nodes ["n1"]', "", "not modelled (1):",
        "slurm.conf:7: Licenses=matlab:3",
    ] == lines[-16:]  # fmt: skip


def test_the_command_as_json_and_toml(tmp_path, call):
    """One object on standard output; the file is read as the same machine; mistakes are a line."""
    conf, out = tmp_path / "slurm.conf", tmp_path / "out.toml"
    conf.write_text(CONF)
    code, printed, err = call("machine", conf, "--json", "--out", out)
    assert (0, f"{out}: 3 nodes\n") == (code, err)
    machine = hc.read_machine(conf)
    assert machine == Machine.model_validate(json.loads(printed)) == hc.read_machine([out])
    assert 0 == call("machine", out, "--out", tmp_path / "again.toml")[0]
    assert out.read_text() == (tmp_path / "again.toml").read_text()
    conf.write_text(f"{CONF}PartitionName=q Nodes=n9\n")
    code, printed, err = call("machine", conf, "--out", tmp_path / "none.toml")
    assert (2, "", 1) == (code, printed, err.count("\n"))
    assert f"hpcrowd: {conf}:8: node n9: not a node of the machine" in err
    assert not (tmp_path / "none.toml").exists()
    assert 2 == call("machine", conf, "--zone", "Mars/Olympus")[0]
