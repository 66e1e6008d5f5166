r"""Files such as slurm.conf and gres.conf: lines of KEY=VALUE.

::

    # a comment; \# is no comment
    ClusterName=toy                                  keys in any case
    SchedulerParameters="bf_continue, \              a line that goes on, a value with blanks
        bf_window=2880"
    Include /etc/slurm/nodes.conf                    %c is the name of the cluster
    NodeName=DEFAULT CPUs=4                          values for the nodes that follow
    NodeName=n[1-4],m1 RealMemory=16000
    NodeSet=fast Feature=milan
    PartitionName=main Nodes=fast,n1 Default=YES

Source: man pages slurm.conf(5) and gres.conf(5), and what slurmctld 22.05 accepts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from hpcrowd.environment.errors import MachineError, echo
from hpcrowd.environment.machine.slurm.records import Kind, Record, Value

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

_PAIR = re.compile(r'\s*([\w.]+)\s*[-*+/]?=\s*(?:"([^"]*)"|(\S+)|(?=$))(?=\s|$)')
_INCLUDE = re.compile(r"\s*include\s+(\S+)\s*$", re.IGNORECASE)
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)#.*")
_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\s*$")
_ESCAPED = re.compile(r"\\(.)")

#: Returns the text of a file.
Reader = Callable[[Path], str]


def lines_of(path: Path, read: Reader, included: set[Path]) -> Iterator[tuple[str, str]]:
    """Yield file and line, and the text, of all lines with something, those of included files too.

    Parameters
    ----------
    path
        The file.
    read
        Returns the text of a file.
    included
        The files that it includes are added.
    """
    yield from _lines(path, read, included, path, {})


def _lines(
    path: Path, read: Reader, included: set[Path], first: Path, names: dict[str, str], deep: int = 0
) -> Iterator[tuple[str, str]]:
    joined, begin = "", 0
    for number, raw in enumerate([*read(path).splitlines(), ""], 1):
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
            if text.lower().startswith("clustername"):
                names["%c"] = text.partition("=")[2].split(None, 1)[0].strip('"').lower()
            yield where, text
            continue
        if deep >= DEEPEST:
            raise MachineError(f"{where}: Include {include[1]}: more than {DEEPEST} files deep")
        other = _included(include[1], first, where, names)
        included.add(other.resolve())
        yield from _lines(other, read, included, first, names, deep + 1)


def _included(name: str, first: Path, where: str, names: dict[str, str]) -> Path:
    """Return the file to include: as named, else next to the first file."""
    for mark, text in names.items():
        name = name.replace(mark, text)
    for path in (first.parent / Path(name).name, first.parent / name, Path(name)):
        if path.is_file():
            return path
    raise MachineError(f"{where}: Include {name}: no such file; put it next to {first.name}")


def records_of(
    path: Path, read: Reader, included: set[Path], kind: Kind | None = None
) -> Iterator[Record]:
    """Yield the records of a file and those that it includes, default values filled in.

    Parameters
    ----------
    path, read, included
        As for :func:`lines_of`.
    kind
        What all lines describe, such as in gres.conf.

    Raises
    ------
    MachineError
        If a line is not KEY=VALUE.
    """
    defaults: dict[Kind, dict[str, Value]] = {}
    for where, text in lines_of(path, read, included):
        values = pairs_of(text, where)
        if kind:
            yield Record(kind, where, values)
            continue
        while values:
            chosen = LINES.get(values[0].key.lower(), Kind.SETTING)
            if chosen is Kind.SETTING:
                # A line of settings holds any number of them; DownNodes takes all that is left.
                size = len(values) if values[0].key.lower() in LINES else 1
                yield Record(chosen, where, values[:size])
                values = values[size:]
                continue
            made = {value.key.lower(): value for value in values}
            known = defaults.setdefault(chosen, {})
            if values[0].text.upper() == "DEFAULT":
                known |= dict(list(made.items())[1:])
            else:
                yield Record(chosen, where, (known | made).values())
            break


def pairs_of(text: str, where: str) -> list[Value]:
    """Return the values of a line.

    Raises
    ------
    MachineError
        If something in it is not KEY=VALUE.
    """
    found, place = [], 0
    while text[place:].strip():
        match = _PAIR.match(text, place)
        if not match:
            raise MachineError(f"{where}: {echo(text[place:].strip())}: not KEY=VALUE")
        value = match[2] if match[2] is not None else match[3] or ""
        found.append(Value(match[1], value, where))
        place = match.end()
    return found
