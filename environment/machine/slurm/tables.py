"""Tables of ``sacctmgr show``: associations, QOS and reservations, with -P or -p.

::

    Cluster|Account|User|Partition|Share|QOS|Def QOS        show assoc, any columns
    toy|root|||1|normal|
    toy| physics|||50|normal|                               show assoc tree: blanks say how deep
    toy|  physics|u1||10|high,normal|normal
    Name|Priority|MaxTRESPU|MaxJobsPU|Preempt|PreemptMode   show qos, any columns
    normal|50|cpu=64|24||cluster

Without a header (-n), associations are read if they have the columns Cluster, Account, User,
Partition, Share, QOS and maybe Def QOS.

Source: man page sacctmgr(1), and what Slurm 22.05 prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpcrowd.environment.errors import MachineError
from hpcrowd.environment.machine.slurm.records import Kind, Record, Value

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


def kind_of(text: str) -> Kind | None:
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


def records_of(text: str, source: str, kind: Kind, notes: list[str]) -> Iterator[Record]:
    """Yield the rows of a table.

    Parameters
    ----------
    text, source
        The table, and its file.
    kind
        What it is about; see :func:`kind_of`.
    notes
        A header that is missing is noted.

    Raises
    ------
    MachineError
        If a row does not fit to the header.
    """
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
