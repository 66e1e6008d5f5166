"""Damaged descriptions of machines and states, and the readers that read them.

Good files of every kind get a secret under a key that hpcrowd does not know, and are damaged then.
Run as a program, it is the worker of ``test_mutated_files``: kind, folder and number of cases.
"""

import io
import json
import os
import random
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.environment.machine.files.reading import read_machine
from hpcrowd.environment.signals.signal import read_signal
from hpcrowd.environment.state.files import read_state, write_state
from hpcrowd.environment.state.slurm import state_of_slurm
from hpcrowd.environment.state.state import ClusterState
from hpcrowd.scenarios.commands.look.machine import show
from rich.console import Console

from tests.attacks.mutation_bases import SIGNAL
from tests.attacks.mutation_cases import (
    EXTREMES,
    alarm,
    limit,
    mutated_text,
    mutated_tree,
    mutated_words,
    places,
    verdict,
)
from tests.environment.machine.slurm.slurm_texts import CONF
from tests.environment.machine.slurm.test_accounts import ASSOC, DUMP
from tests.environment.machine.slurm.test_files import CONFIG, PARTITION, RESERVATIONS, SHOWN
from tests.environment.state.test_slurm import PAST
from tests.environment.state.test_slurm_now import forms

#: s of a processor that a file may take, s of any time, and bytes beyond those of the good files.
LONGEST, LONGEST_OF_ALL, MEMORY = 5.0, 60, 2**30

#: What must not come out again, and where it is in a file: under its own key or in a comment.
SECRET = "S3CRET"
HIDDEN = re.compile(rb"(pass(word)?[\"']?\s*[:=]\s*[\"']?|#[^\n]*)S3CRET", re.IGNORECASE)

SLURM_CONF = """ClusterName=hal   # the name
AccountingStoragePass=a JobCompPass=b AuthInfo=c
Include /etc/slurm/nodes.conf
SelectType=select/cons_tres SchedulerParameters=bf_window=60,bf_continue,bf_max_job_user=5 Epilog=
PriorityType=priority/multifactor PriorityWeightAge=5 PriorityWeightTRES=CPU=10,GRES/gpu=20
PriorityDecayHalfLife=14-0 PriorityFlags=NO_FAIR_TREE PreemptType=preempt/qos \\
  PreemptMode=REQUEUE
NodeName=DEFAULT RealMemory=1000 Feature=x
NodeName=n[1-4],m1 CPUs=8 Sockets=2 CoresPerSocket=4 Gres=gpu:a100:4(S:0),mps:100 CoreSpecCount=1
NodeSet=xs Feature=x
DownNodes=n1 State=DOWN
PartitionName=DEFAULT MaxTime=2-0 State=UP
PartitionName=a Nodes=xs,n[1-2] DefaultTime=60 Default=YES TRESBillingWeights="CPU=1.0,Mem=.25G"
PartitionName=b Nodes=ALL PriorityTier=5 OverSubscribe=EXCLUSIVE AllowAccounts=x,y QOS=high
"""

GRES_CONF = """AutoDetect=off
NodeName=n[1-2] Name=gpu Type=a100 File=/dev/nvidia[0-3] Cores=0-3
NodeName=m1 Name=gpu Type=v100 Count=2
Name=mps Count=100
"""

NODES = (
    '{"nodes": [{"name": "n1", "cpus": 8, "real_memory": 9, "features": ["a"], "gres": "gpu:2", '
)
OBJECTS = {
    "n.json": NODES + '"state": ["IDLE"]}], "partitions": [{"name": "p", "nodes": "n1", '
    '"priority_tier": 1, "maximum_memory_per_node": 9, "max_time_limit": {"set": true, "number": '
    '60}}], "reservations": [{"name": "r", "start_time": 1000, "end_time": 2000, "node_list": '
    '"n1", "flags": ["MAINT"], "core_specializations": [{"node": "n1", "core": "0-2"}]}]}',
    "a.json": '{"associations": [{"account": "x", "user": "", "parent_account": "root", '
    '"shares_raw": 5, "qos": ["high"], "max": {"jobs": {"active": 4, "per": {"wall_clock": 60}}, '
    '"tres": {"total": [{"type": "cpu", "name": "", "count": 4}]}}}]}',
    "q.json": '{"qos": [{"name": "high", "priority": {"set": true, "number": 7}, "flags": '
    '["DENY_LIMIT"], "limits": {"max": {"tres": {"per": {"user": [{"type": "gres", "name": '
    '"gpu", "count": 2}]}}}}}]}',
}

QOS = """Name|Priority|MaxTRESPU|MaxJobsPU|Preempt|Flags|MaxWall
high|7|cpu=9,mem=4G|3|low|DenyOnLimit|1-00:00:00
"""

STATE = "\n".join((
    json.dumps({"format": "hpcrowd state", "version": 1, "now": 827, "origin": 1767600074,
                "zone": "UTC", "known": True, "processors": 80, "jobs": 3, "requests": True,
                "closed": [[900, 1000]], "partitions": ["p"]}),
    json.dumps({"number": 1, "id": "12_3", "user": 1, "user_name": "ada", "processors": 16, "queue":
                1, "queue_name": "p", "requested_time": 1200, "submit": 0, "start": 5,
                "nodes": "n[1-4]", "partition": "p"}),
    json.dumps({"number": 2, "user": 2, "processors": 4, "submit": 30, "held": "Dependency",
                "asks": {"nodes": 1, "features": "a100"}}),
    json.dumps({"number": 3, "processors": 4, "submit": 30, "start": 40, "end": 50}),
)) + "\n"  # fmt: skip

#: Good files by kind; the first ones of a kind are damaged, others are next to them.
KINDS: dict[str, dict[str, str | bytes]] = {
    "slurm.conf": {"slurm.conf": SLURM_CONF, "nodes.conf": "NodeName=z1 CPUs=1\n"},
    "gres.conf": {"gres.conf": GRES_CONF, "slurm.conf": SLURM_CONF.replace("Include", "#")},
    "scontrol": {"n.txt": SHOWN + "  NodeName=z1 CfgTRES=cpu=8,mem=1G,gres/gpu:a=2\n",
                 "p.txt": PARTITION, "r.txt": RESERVATIONS, "c.txt": CONFIG},
    "objects": {**OBJECTS},
    "sacctmgr": {"a.txt": ASSOC, "hal.cfg": DUMP, "q.txt": QOS, "slurm.conf": CONF},
    "squeue": {"squeue.txt": forms()["squeue"], "jobs.txt": forms()["scontrol"],
               "queue.json": forms()["json"], "past.txt": PAST},
    "state": {"now.state": STATE},
    "signal": {"signal.csv": "\n".join(SIGNAL.split("\n")[:50]) + "\n"},
}  # fmt: skip

#: Files that are not damaged.
BESIDE = {"gres.conf": ("slurm.conf",), "sacctmgr": ("slurm.conf",), "squeue": ("past.txt",)}


def _machine(path: Path) -> str:
    machine = read_machine(path.parent if path.suffix != ".json" else [path, *others(path)])
    show(machine, Console(file=(shown := io.StringIO()), width=200))
    return machine.model_dump_json() + shown.getvalue()


def others(path: Path) -> list[Path]:
    """Return the other files of a folder."""
    return [one for one in path.parent.iterdir() if one != path]


def _state(state: ClusterState, folder: Path) -> str:
    out = folder.parent / "written.state"
    write_state(state, out)
    return repr(state) + out.read_text()


#: Readers by kind: all that comes out, as a text.
READERS: dict[str, Callable[[Path], str]] = {
    **dict.fromkeys(("slurm.conf", "gres.conf", "scontrol", "objects", "sacctmgr"), _machine),
    "squeue": lambda path: _state(
        state_of_slurm(path, path.with_name("past.txt"), processors=64, zone="UTC"), path.parent
    ),
    "state": lambda path: _state(read_state(path), path.parent),
    "signal": lambda path: repr(read_signal(path)) + str(read_signal(path).values.sum()),
}


def with_secret(name: str, data: bytes, draw: random.Random) -> bytes:
    """Return a good file with a secret under a key that hpcrowd does not know, or in a comment."""
    suffix, text = Path(name).suffix, data.decode()
    lines = text.rstrip("\n").split("\n")
    # The name of a job may have line ends, and anything in it.
    safe = [n for n, line in enumerate(lines) if "JobId=" not in text or "Partition=" in line]
    place = draw.choice(safe)
    if suffix in (".json", ".state"):
        found = json.loads(lines[place] if suffix == ".state" else text)
        tables = [found, *(one for way in places(found) if isinstance(one := at(found, way), dict))]
        draw.choice(tables)["password"] = SECRET
        if suffix != ".state":
            return _written(found)
        lines[place] = json.dumps(found)
    elif "|" in lines[0] or suffix == ".csv":
        mark = "|" if "|" in lines[0] else ","
        lines = [f"{lines[0]}{mark}PASSWORD", *(f"{line}{mark}{SECRET}" for line in lines[1:])]
    elif suffix == ".cfg":
        lines[place] += f":Password='{SECRET}'" if draw.random() < 0.5 else f"\nPass={SECRET}"
    elif draw.random() < 0.4 or "JobId=" in text:
        lines[place] += f" IpmiPass={SECRET}"
    else:
        lines.insert(place, draw.choice(("StoragePass=", "#", "StoragePass = ")) + SECRET)
    return "\n".join(lines).encode() + b"\n"


def _written(tree: Any) -> bytes:
    return json.dumps(tree).encode("utf-8", "surrogatepass")


def at(tree: Any, way: tuple[Any, ...]) -> Any:
    """Return the value at the end of a way."""
    for part in way:
        tree = tree[part]
    return tree


def damaged(name: str, data: bytes, draw: random.Random) -> bytes:
    """Return a damaged file: its values, its keys or its form."""
    suffix, chance = Path(name).suffix, draw.random()
    if suffix == ".json" and chance < 0.7:
        return _written(mutated_tree(json.loads(data), draw))
    if suffix == ".state" and chance < 0.7:
        lines = data.splitlines()
        place = draw.randrange(len(lines))
        lines[place] = _written(mutated_tree(json.loads(lines[place]), draw))
        return b"\n".join(lines) + b"\n"
    if chance < 0.5:
        return damaged_pairs(data, draw)
    return (mutated_words if chance < 0.6 else mutated_text)(data, draw)


def damaged_pairs(data: bytes, draw: random.Random) -> bytes:
    """Return a file where a key has no value, a value no key, or another value."""
    found = list(re.finditer(rb"([\w.-]+)([=|,:]+)([^\s|,:=]*)", data))
    for _ in range(draw.choice((1, 1, 2))):
        if not found:
            return data
        key, mark, value = (one := found.pop(draw.randrange(len(found)))).groups()
        if SECRET.encode() in value:
            continue
        nasty = draw.choice((*EXTREMES, "n" * 300_000, "n[1-65536],m[1-65536]", "ALL", "a[b", '"'))
        new = draw.choice((
            key + mark, mark + value, mark, b"", key, key + mark + mark + value, mark * 3000,
            key + b"\0" + mark + value, key + mark + value + b"\0", key + mark + nasty.encode(),
            key + mark + nasty.encode(), nasty.encode() + mark + value, key + b" " + mark + b" ",
        ))  # fmt: skip
        data = data[: one.start()] + new + data[one.end() :]
        found = [other for other in found if other.end() < one.start()]
    return data


def hidden(data: bytes) -> bool:
    """Return whether each secret of a file is still in a column, under a key or in a comment."""
    lines = data.split(b"\n")
    if SECRET.encode() not in data.replace(b"\0", b""):
        return True
    for mark in (b"|", b","):
        if lines[0].endswith(mark + b"PASSWORD"):
            holding = [line for line in lines[1:] if SECRET.encode() in line]
            return all(
                line.endswith(mark + SECRET.encode()) and line.count(mark) == lines[0].count(mark)
                for line in holding
            )
    return len(HIDDEN.findall(data)) == data.count(SECRET.encode())


def outcome_of(reader: Callable[[Path], str], path: Path) -> tuple[int, str, str, Any]:
    """Return how reading ended: code, what came out, the one line, and any other exception."""
    try:
        return 0, reader(path), "", None
    except HpcrowdError as caught:
        return 2, "", f"hpcrowd: {caught}", None
    except BaseException as caught:  # noqa: BLE001
        return 2, "", "", caught


def cases(kind: str, folder: Path, count: int) -> Iterator[dict[str, str]]:
    """Read damaged files of a kind, and yield what went wrong; in that folder."""
    (inside := folder / "inside").mkdir(parents=True, exist_ok=True)
    for name, content in KINDS[kind].items():
        (inside / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    names = [name for name in KINDS[kind] if name not in BESIDE.get(kind, ())]
    for name in names:  # good files can be read
        assert READERS[kind](inside / name)
    for number in range(count):
        draw = random.Random(f"{kind} {number}")
        path = inside / (name := draw.choice(names))
        good = path.read_bytes()
        data = with_secret(name, good, draw) if draw.random() < 0.6 else good
        path.write_bytes(data := damaged(name, data, draw))
        began = time.process_time()
        signal.alarm(LONGEST_OF_ALL if signal.getsignal(signal.SIGALRM) is alarm else 0)
        code, out, message, error = outcome_of(READERS[kind], path)
        signal.alarm(0)
        took = time.process_time() - began
        path.write_bytes(good)
        wrong = verdict(code, message, error)
        if took > LONGEST:
            wrong = f"takes {took:.1f} s"
        if SECRET in out + message and hidden(data):
            place = (out + message).index(SECRET)
            wrong = f"shows the secret: {(out + message)[max(place - 200, 0) : place + 50]}"
        if wrong:
            yield {"case": f"{kind} {number}", "command": name, "wrong": wrong,
                   "data": data[:3000].decode("utf-8", "backslashreplace")}  # fmt: skip


def main() -> None:
    """Run as a worker: kind, folder, number of cases."""
    kind, count = sys.argv[1], sys.argv[3]
    folder = Path(sys.argv[2]).resolve()
    os.chdir(folder)
    assert not list(cases(kind, folder, 1))  # what is imported once is not counted
    limit(MEMORY)
    for one in cases(kind, folder, int(count)):
        print(json.dumps(one), flush=True)
    print(json.dumps({"done": kind}))


if __name__ == "__main__":
    main()
