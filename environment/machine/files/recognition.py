"""What a file about a machine is, by its name and how it begins."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path

from hpcrowd.environment.machine.slurm import tables
from hpcrowd.environment.machine.slurm.objects import LISTS
from hpcrowd.environment.machine.slurm.records import Kind


class Form(StrEnum):
    """A kind of file."""

    TOML = "TOML"
    CONF = "slurm.conf"
    GRES = "gres.conf"
    SCONTROL = "scontrol show"
    OBJECTS = "scontrol show --json"
    DUMP = "sacctmgr dump"
    ASSOCIATIONS = "sacctmgr show assoc"
    QOS = "sacctmgr show qos"
    RESERVATIONS = "sacctmgr show reservation"


#: Keys that only slurm.conf has, at the beginning of a line.
_CONF = re.compile(
    r"^[ \t]*(ClusterName|NodeName|PartitionName|NodeSet|SlurmctldHost|ControlMachine|SelectType|"
    r"SchedulerType|PriorityType|SchedulerParameters|DownNodes)[ \t]*=",
    re.IGNORECASE | re.MULTILINE,
)
_GRES = re.compile(
    r"^[ \t]*(NodeName[ \t]*=[ \t]*\S+[ \t]+)?(AutoDetect[ \t]*=|Name[ \t]*=[ \t]*(\S[^\n]*"
    r"[ \t](File|Count|Type|Flags|Cores)[ \t]*=|(gpu|mps|shard|nic|mic)[ \t]*$))",
    re.IGNORECASE | re.MULTILINE,
)
#: What other files of a cluster have, which may hold secrets: slurmdbd.conf, cgroup.conf,
#: acct_gather.conf, keys and certificates.
_OTHER = re.compile(
    r"^[ \t]*((Dbd|Storage|Purge|Archive|Cgroup|Constrain|EnergyIPMI|Profile(HDF5|Influx))\w*"
    r"[ \t]*=|-----BEGIN )",
    re.IGNORECASE | re.MULTILINE,
)
_TOML = re.compile(r"^[ \t]*(\[\[[ \t]*nodes[ \t]*\]\]|nodes[ \t]*=)", re.MULTILINE)
_SHOWN = re.compile(
    r"^[ \t]*(NodeName=\S+ [^\n]*(\n[^\n]*){0,3}(CPUAlloc|CfgTRES)=|"
    r"PartitionName=\S+\s+AllowGroups=|ReservationName=\S+ StartTime=|Configuration data as of )",
    re.MULTILINE,
)
_DUMP = re.compile(r"^(Cluster|Parent|Account|User) - ", re.MULTILINE)
_OBJECTS = re.compile(r'"(\w+)"\s*:\s*\[\s*(?:\{|\])')

#: Lists that come with any objects.
OTHER_LISTS = frozenset(("errors", "warnings", "command"))

#: Names of files whose form is known.
NAMES = {"slurm.conf": Form.CONF, "gres.conf": Form.GRES}

#: Files next to slurm.conf that do not describe a machine, and may hold secrets.
OTHERS = frozenset((
    "slurmdbd.conf", "cgroup.conf", "acct_gather.conf", "slurmrestd.conf", "plugstack.conf",
    "job_container.conf", "burst_buffer.conf", "helpers.conf", "mpi.conf", "oci.conf",
    "topology.conf", "topology.yaml", "resources.yaml", "namespace.yaml", "switch.conf",
))  # fmt: skip

#: Endings of keys and certificates.
SECRET = (".key", ".pem", ".crt", ".pub", ".jwks")


def form_of(path: Path, head: str, *, named: bool = True) -> Form | None:
    """Return what a file is; None if it does not describe a machine.

    Both its name and what it contains must allow for it: a file next to it may hold secrets.

    Parameters
    ----------
    path
        Its path.
    head
        How it begins, unpacked.
    named
        Whether somebody named it, and not its folder.
    """
    if path.suffix == ".toml":
        return Form.TOML if named or _TOML.search(head) else None
    name = path.name.removesuffix(".gz").removesuffix(".in")
    if name in NAMES:
        return NAMES[name]
    if name in OTHERS or name.endswith(SECRET) or _OTHER.search(head):
        return None
    if head.lstrip().startswith("{"):
        lists = [name for name in _OBJECTS.findall(head) if name not in OTHER_LISTS]
        return Form.OBJECTS if lists and lists[0] in LISTS else None
    if _SHOWN.search(head):
        return Form.SCONTROL
    kind = tables.kind_of(head)
    if kind:
        return {
            Kind.ASSOCIATION: Form.ASSOCIATIONS,
            Kind.QOS: Form.QOS,
            Kind.RESERVATION: Form.RESERVATIONS,
        }[kind]
    if _DUMP.search(head):
        return Form.DUMP
    text = "\n".join(line for line in head.splitlines() if not line.lstrip().startswith("#"))
    if _GRES.search(text):
        return Form.GRES
    return Form.CONF if _CONF.search(text) else None
