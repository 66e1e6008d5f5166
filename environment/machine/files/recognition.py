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
    r"SchedulerType|PriorityType|SchedulerParameters|SlurmUser|DownNodes)[ \t]*=",
    re.IGNORECASE | re.MULTILINE,
)
_GRES = re.compile(
    r"^[ \t]*(NodeName[ \t]*=[ \t]*\S+[ \t]+)?(Name|AutoDetect)[ \t]*=",
    re.IGNORECASE | re.MULTILINE,
)
_SHOWN = re.compile(
    r"\s*(NodeName=\S+ [^\n]*(\n[^\n]*){0,3}CPUAlloc=|PartitionName=\S+\s+AllowGroups=|"
    r"ReservationName=\S+ StartTime=|Configuration data as of )"
)
_DUMP = re.compile(r"^(Cluster|Parent|Account|User) - ", re.MULTILINE)
_OBJECTS = re.compile(r'"(\w+)"\s*:\s*\[\s*(?:\{|\])')

#: Lists that come with any objects.
OTHER_LISTS = frozenset(("errors", "warnings", "command"))

#: Names of files whose form is known.
NAMES = {"slurm.conf": Form.CONF, "gres.conf": Form.GRES}


def form_of(path: Path, head: str) -> Form | None:
    """Return what a file is; None if it does not describe a machine.

    Parameters
    ----------
    path
        Its path.
    head
        How it begins, unpacked.
    """
    if path.suffix == ".toml":
        return Form.TOML
    name = path.name.removesuffix(".gz").removesuffix(".in")
    if name in NAMES:
        return NAMES[name]
    if head.lstrip().startswith("{"):
        lists = [name for name in _OBJECTS.findall(head) if name not in OTHER_LISTS]
        return Form.OBJECTS if lists and lists[0] in LISTS else None
    if _SHOWN.match(head):
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
