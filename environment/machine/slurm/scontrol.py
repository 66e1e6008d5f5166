"""What ``scontrol show node``, ``partition``, ``res`` and ``config`` print.

::

    NodeName=n1 Arch=x86_64 CoresPerSocket=8          records of KEY=VALUE, in one line (-o) or
       CPUAlloc=0 CPUEfctv=8 CPUTot=8                 several; the next begins with its name
       OS=Linux 6.1 #1 SMP                            a value may have blanks
    PartitionName=normal
       AllowGroups=ALL AllowAccounts=ALL
    ReservationName=maint StartTime=2024-01-31T12:00:00
         NodeName=n1 CoreIDs=0-1                      cores of a node, if it has not all
    Configuration data as of 2024-01-31T12:00:00
    AccountingStorageEnforce = limits                 KEY = VALUE

Source: man page scontrol(1), and what Slurm 22.05 prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpcrowd.environment.machine.slurm.records import Kind, Record, Source, Value

#: The key that begins a record.
FIRST = {
    "NodeName": Kind.NODES,
    "PartitionName": Kind.PARTITION,
    "ReservationName": Kind.RESERVATION,
}

#: Words in front of a list of settings, and in front of parts that are other files.
SETTINGS, OTHER_FILES = "Configuration data as of ", re.compile(r"[\w ]+ [Cc]onfiguration:\s*$")

_BEGIN = re.compile(r"\s*(NodeName|PartitionName|ReservationName)=")
_KEY = re.compile(r"(?:^|(?<=\s))([A-Z][A-Za-z_]*)=")
_CORES = re.compile(r"\s+NodeName=(\S+) CoreIDs=(\S+)")
_SETTING = re.compile(r"(\w+)\s+= ?(.*)")


def records_of(text: str, source: str, notes: list[str]) -> Iterator[Record]:
    """Yield the records of a text.

    Parameters
    ----------
    text, source
        The text, and its file.
    notes
        Lines that belong to no record are added.
    """
    values: list[Value] = []
    kind = Kind.NODES
    settings = others = False
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{source}:{number}"
        if line.startswith(SETTINGS):
            settings = True
        elif settings and OTHER_FILES.match(line):
            settings, others = False, True
        elif settings and (match := _SETTING.match(line)):
            yield Record(Kind.SETTING, where, [Value(match[1], match[2].strip(), where)],
                         Source.SHOWN)  # fmt: skip
        if settings:
            continue
        cores = _CORES.match(line)
        if cores and kind is Kind.RESERVATION:
            values.append(Value("CoreIDs", cores[2], where))
            continue
        if match := _BEGIN.match(line):
            if values:
                yield _record(kind, values)
            kind, values = FIRST[match[1]], []
        if values or match:
            values += _values(line, where)
        elif line.strip() and not others:
            notes.append(f"{where}: belongs to no record, left out")
    if values:
        yield _record(kind, values)


def _values(line: str, where: str) -> Iterator[Value]:
    keys = list(_KEY.finditer(line))
    ends = [key.start() for key in keys[1:]] + [len(line)]
    for key, end in zip(keys, ends, strict=False):
        yield Value(key[1], line[key.end() : end].strip(), where)


def _record(kind: Kind, values: list[Value]) -> Record:
    listed = [value.text for value in values if value.key == "CoreIDs"]
    if listed:
        where = values[0].where
        values = [value for value in values if value.key != "CoreIDs"]
        values.append(Value("CoreIDs", ";".join(listed), where))
    return Record(kind, values[0].where, values, Source.SHOWN)
