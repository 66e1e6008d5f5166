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

from hpcrowd.environment.errors import MachineError
from hpcrowd.environment.limits.inputs import is_input
from hpcrowd.environment.machine.slurm.records import Kind, Record, Value, known_key
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


def records_of(
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
