r"""Slurm's texts about a machine: its files, and what scontrol and sacctmgr print.

slurm.conf, gres.conf and files that they include have lines of KEY=VALUE::

    # a comment; \# is no comment
    ClusterName=toy                                  keys in any case
    SchedulerParameters="bf_continue, \              a line that goes on, a value with blanks
        bf_window=2880"
    Include /etc/slurm/nodes.conf                    %c is the name of the cluster
    NodeName=DEFAULT CPUs=4                          values for the nodes that follow
    NodeName=n[1-4],m1 RealMemory=16000
    NodeSet=fast Feature=milan
    PartitionName=main Nodes=fast,n1 Default=YES

``scontrol show`` of nodes, partitions, reservations and the configuration::

    NodeName=n1 Arch=x86_64 CoresPerSocket=8          records of KEY=VALUE, in one line (-o) or
       CPUAlloc=0 CPUEfctv=8 CPUTot=8                 several; the next begins with its name
       OS=Linux 6.1 #1 SMP                            a value may have blanks
    PartitionName=normal
       AllowGroups=ALL AllowAccounts=ALL
    ReservationName=maint StartTime=2024-01-31T12:00:00
         NodeName=n1 CoreIDs=0-1                      cores of a node, if it has not all
    Configuration data as of 2024-01-31T12:00:00
    AccountingStorageEnforce = limits                 KEY = VALUE

Tables of ``sacctmgr show`` with -P or -p: associations, QOS and reservations. Associations without
a header (-n) are read if they have the columns Cluster, Account, User, Partition, Share, QOS and
maybe Def QOS::

    Cluster|Account|User|Partition|Share|QOS|Def QOS        show assoc, any columns
    toy|root|||1|normal|
    toy| physics|||50|normal|                               show assoc tree: blanks say how deep
    toy|  physics|u1||10|high,normal|normal
    Name|Priority|MaxTRESPU|MaxJobsPU|Preempt|PreemptMode   show qos, any columns
    normal|50|cpu=64|24||cluster

The file that ``sacctmgr dump CLUSTER`` writes. What the line of the cluster says holds for root, as
its name is that of the whole cluster::

    # a comment
    Cluster - 'toy':Fairshare=1:QOS='normal'
    Parent - 'root'
    User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
    Account - 'physics':Description='p':Organization='o':Fairshare=50:GrpTRES=gres/gpu:a100=4
    Parent - 'physics'
    User - 'ada':Partition='long':MaxJobs=4:DefaultQOS='high':QOS='+high,normal'
    QOS - 'high':Priority=100                        Slurm 24.05 and later

Source: man pages slurm.conf(5), gres.conf(5), scontrol(1) and sacctmgr(1), FLAT FILE DUMP AND LOAD,
and what Slurm 22.05 accepts and prints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from hpcrowd.environment.errors import MachineError
from hpcrowd.environment.limits.inputs import is_input
from hpcrowd.environment.machine.checks import ROOT
from hpcrowd.environment.machine.slurm.records import Kind, Record, Source, Value, known_key
from hpcrowd.environment.machine.slurm.settings import HARMLESS

#: Keys that take the rest of their line, in lower case.
LINES = {
    "nodename": Kind.NODES,
    "partitionname": Kind.PARTITION,
    "nodeset": Kind.NODE_SET,
    "downnodes": Kind.SETTING,
    "frontendname": Kind.SETTING,
    "switchname": Kind.SETTING,
}

#: Most files that include each other.
DEEPEST = 20

_PAIR = re.compile(
    r'\s*([\w.]+)\s*[-*+/]?=(\s*)(?:"([^"]*)"|(([A-Z][A-Za-z]+=)?\S+)|(?=$))(?=\s|$)'
)
_NAME = re.compile(r'clustername\s*=\s*"?([^\s"]+)', re.IGNORECASE)
_INCLUDE = re.compile(r"\s*include\s+(\S+)\s*$", re.IGNORECASE)
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)#.*")
_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\s*$")
_ESCAPED = re.compile(r"\\(.)")

#: Returns the text of a file.
Reader = Callable[[Path], str]


def lines_of(path: Path, read: Reader, included: set[Path]) -> Iterator[tuple[str, str]]:
    """Yield file and line, and the text, of all lines with something, those of included files too.

    The files that it includes are added to ``included``.
    """
    yield from _lines(path, read, included, path, {})


def _lines(
    path: Path, read: Reader, included: set[Path], first: Path, names: dict[str, str], deep: int = 0
) -> Iterator[tuple[str, str]]:
    joined, begin = "", 0
    for number, raw in enumerate([*read(path).splitlines(), ""], 1):
        if not (raw or joined):
            continue
        line = _COMMENT.sub(r"\1", raw)
        begin = begin if joined else number
        goes_on = _CONTINUED.search(line)
        if goes_on:
            joined += line[: goes_on.start()] + goes_on[1]
            continue
        text, joined = _ESCAPED.sub(r"\1", joined + line).strip(), ""
        if not text:
            continue
        where = f"{path}:{begin}"
        include = _INCLUDE.match(text)
        if not include:
            if name := _NAME.match(text):
                names["%c"] = name[1].lower()
            yield where, text
            continue
        if deep >= DEEPEST:
            raise MachineError(f"{where}: Include {include[1]}: more than {DEEPEST} files deep")
        other = _included(include[1], first, where, names)
        included.add(other.resolve())
        yield from _lines(other, read, included, first, names, deep + 1)


def _included(name: str, first: Path, where: str, names: dict[str, str]) -> Path:
    """Return the file to include: below the folder of the first file, else as named.

    A copy of a folder has the files of an absolute path with as much of it as was copied.
    """
    for mark, text in names.items():
        name = name.replace(mark, text)
    parts = Path(name.lstrip("/")).parts[-DEEPEST:]
    below = [first.parent.joinpath(*parts[begin:]) for begin in range(len(parts))]
    for path in (*below, Path(name)):
        if is_input(path):
            return path
    raise MachineError(f"{where}: Include {name}: no such file; put it next to {first.name}")


def conf_records(
    path: Path, read: Reader, included: set[Path], kind: Kind | None = None
) -> Iterator[Record]:
    """Yield the records of a file and those that it includes, default values filled in.

    Parameters as of :func:`lines_of`; ``kind`` is what all lines describe, as in gres.conf.
    """
    defaults: dict[Kind, dict[str, Value]] = {}
    for where, text in lines_of(path, read, included):
        values = pairs_of(text, where)
        if kind:
            yield Record(kind, where, values)
            continue
        for place, value in enumerate(values):
            chosen = LINES.get(value.key.lower())
            if chosen is None:  # a line of settings holds any number of them
                yield Record(Kind.SETTING, where, [value])
                continue
            made = {one.key.lower(): one for one in values[place:]}
            known = defaults.setdefault(chosen, {})
            if chosen is Kind.SETTING or value.text.upper() != "DEFAULT":
                yield Record(chosen, where, (known | made).values())
            else:
                known |= dict(list(made.items())[1:])
            break


def pairs_of(text: str, where: str) -> list[Value]:
    """Return the values of a line.

    The message about what is not KEY=VALUE repeats no value, as it may be a secret.
    """
    found: list[Value] = []
    place, text = 0, text.rstrip()
    while place < len(text):
        match = _PAIR.match(text, place)
        if not match:
            what = f"what follows {known_key(found[-1].key)}" if found else "the line"
            raise MachineError(
                f"{where}: {what} is not KEY=VALUE; put a value with blanks in quotes"
            )
        key, blank, quoted, plain, next_key = match.groups()
        value, place = plain if quoted is None else quoted, match.end()
        if blank and next_key and "tres" not in key.lower():
            value, place = None, match.start(4)
        if value is None and key.lower() not in HARMLESS:
            raise MachineError(f"{where}: {known_key(key)} has no value; give one, or leave it out")
        found.append(Value(key, value or "", where))
    return found


# scontrol show

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


def shown_records(text: str, source: str, notes: list[str]) -> Iterator[Record]:
    """Yield the records of what ``scontrol show`` printed; lines that belong to none are noted."""
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


# tables of sacctmgr show

#: Names of columns in headers, and the keys of the same meaning.
KEYS = {
    "share": "Fairshare", "rawshares": "Fairshare", "grpsubmit": "GrpSubmitJobs",
    "maxsubmit": "MaxSubmitJobs", "maxtrespn": "MaxTRESPerNode", "parname": "Parent",
    "parentname": "Parent", "defqos": "DefaultQOS", "grptresmin": "GrpTRESMins",
    "maxtrespu": "MaxTRESPerUser", "maxjobspu": "MaxJobsPerUser", "maxsubmitpu": "MaxSubmitPerUser",
    "maxtrespa": "MaxTRESPerAccount", "maxjobspa": "MaxJobsPerAccount",
    "maxsubmitpa": "MaxSubmitPerAccount", "usagethres": "UsageThreshold",
    "maxtrespernode": "MaxTRESPerNode", "par name": "Parent",
}  # fmt: skip

#: Columns of a table of associations without a header.
HEADLESS = ("Cluster", "Account", "User", "Partition", "Fairshare", "QOS", "DefaultQOS")

#: Columns that show what a table is about, as Slurm spells them.
MARKS = {
    Kind.ASSOCIATION: {"Account", "User"},
    Kind.RESERVATION: {"Name", "TimeStart", "TimeEnd"},
}

#: Columns that only a table of QOS has, next to Name; one of them is enough.
OF_QOS = {"Priority", "Preempt", "MaxTRESPU", "UsageFactor", "MaxJobsPU", "GrpTRES", "PreemptMode"}

#: Columns of other tables of Slurm that also have an account and a user.
OF_OTHERS = {"JobID", "RawUsage", "Admin", "Def Acct", "Used", "RawShares"}

_DELIMITER = re.compile(r"\s*[A-Za-z]+(?: [A-Z][A-Za-z]*)?([^\w\s.+%()-]+|\t)")
_HEADLESS = re.compile(r"[^|]+\|\s*root\|\|\|(\d+|parent)\|[^|]*(\|[^|]*)?")


def kind_of_table(text: str) -> Kind | None:
    """Return what a table is about; None if it is not such a table."""
    first = text.lstrip("\ufeff\n\r ").partition("\n")[0].rstrip("\r")
    if _HEADLESS.fullmatch(first.removesuffix("|")):
        return Kind.ASSOCIATION
    names = set(_header(first)[0])
    if len(names) < 2 or names & OF_OTHERS:
        return None
    if MARKS[Kind.ASSOCIATION] <= names and names & {"Share", "QOS", "Def QOS"}:
        return Kind.ASSOCIATION
    if MARKS[Kind.RESERVATION] <= names:
        return Kind.RESERVATION
    return Kind.QOS if "Name" in names and names & OF_QOS else None


def _header(line: str) -> tuple[list[str], str]:
    """Return the columns of a header, and the delimiter."""
    match = _DELIMITER.match(line)
    if not match:
        return [], ""
    return [name.strip() for name in line.removesuffix(match[1]).split(match[1])], match[1]


def table_records(text: str, source: str, kind: Kind, notes: list[str]) -> Iterator[Record]:
    """Yield the rows of a table about a kind of thing; a header that is missing is noted."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    begin, first = lines[0]
    if _HEADLESS.fullmatch(first.removesuffix("|")):
        names, delimiter = list(HEADLESS[: first.removesuffix("|").count("|") + 1]), "|"
        notes.append(f"{source}:{begin}: no header; columns taken as {', '.join(names)}")
    else:
        names, delimiter = _header(first.lstrip("\ufeff"))
        lines = lines[1:]
    keys = [KEYS.get(name.lower().replace(" ", ""), name.replace(" ", "")) for name in names]
    above: list[str] = []  # accounts that a row is below, by depth
    for number, line in lines:
        cells = line.removesuffix(delimiter).split(delimiter)
        cells += [""] * (len(keys) - len(cells) if line.endswith(delimiter) else 0)
        where = f"{source}:{number}"
        if len(cells) != len(keys):
            raise MachineError(
                f"{where}: {len(cells)} columns, the header has {len(keys)}; print the table with "
                "-P and another --delimiter"
            )
        values = [Value(key, cell, where) for key, cell in zip(keys, cells, strict=True)]
        row = Record(kind, where, (value._replace(text=value.text.strip()) for value in values))
        if kind is Kind.ASSOCIATION:
            _place_in_tree(row, dict(zip(map(str.lower, keys), cells, strict=True)), above)
        yield row


def _place_in_tree(row: Record, cells: dict[str, str], above: list[str]) -> None:
    """Give an account its parent, by the blanks before its name."""
    account = cells.get("account", "")
    depth = len(account) - len(account.lstrip())
    if not cells.get("user", "").strip():
        if "parent" not in row.values and 0 < depth <= len(above):
            row.values["parent"] = Value("Parent", above[depth - 1], row.where)
        above[depth:] = [account.strip()]


# sacctmgr dump

_DUMPED = re.compile(r"(Cluster|Parent|Account|User|QOS) - ('[^']*'|\"[^\"]*\"|[^:\s]+)\s*(:.*)?$")

# A colon also stands before the type of a GPU, which no quotes protect: a key follows elsewhere.
_DUMP_OPTION = re.compile(
    r":([A-Z][A-Za-z]+)\s*[-+]?=\s*((?:'[^']*'|\"[^\"]*\")(?=$|:[A-Z])|.*?"
    r"(?=$|:(?:Def|Adm|Coord|Fair|Share|Max|Grp|Min|QOS|Desc|Org|Part|Prio|WCKey|Flags|Preempt|"
    r"Usage|Grace|Limit|Comment)[A-Za-z]*\s*[-+]?=))"
)


def dump_records(text: str, source: str) -> Iterator[Record]:
    """Yield the associations of a file, and QOS if it has them."""
    parent, cluster = ROOT, ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        where = f"{source}:{number}"
        match = _DUMPED.match(line)
        options = list(_DUMP_OPTION.finditer(match[3] or "")) if match else []
        if match is None or sum(len(one[0]) for one in options) != len((match[3] or "").rstrip()):
            raise MachineError(f"{where}: not a line of sacctmgr dump; leave it out")
        what, name = match[1], match[2].strip("'\"")
        values = [
            Value(KEYS.get(one[1].lower(), one[1]), one[2].strip("'\""), where) for one in options
        ]
        if what == "Parent":
            parent = name
        elif what == "QOS":
            yield Record(Kind.QOS, where, [Value("Name", name, where), *values])
        else:
            cluster = name if what == "Cluster" else cluster
            named = {
                "Cluster": {"Account": ROOT},
                "Account": {"Account": name, "Parent": parent},
                "User": {"Account": parent, "User": name},
            }[what] | {"Cluster": cluster}
            values = [value for value in values if value.key != "MaxNodesPerJob"] + [
                Value("MaxTRES", f"node={value.text}", where)
                for value in values
                if value.key == "MaxNodesPerJob"
            ]
            yield Record(
                Kind.ASSOCIATION,
                where,
                [*values, *(Value(key, one, where) for key, one in named.items())],
            )
