"""Keys and values of Slurm's files about a machine, with the place of each.

All of its files, whatever their form, become records with the keys of slurm.conf(5) and
sacctmgr(1), compared without regard to case. Who makes something of a record takes the keys that it
understands; what is left over is not modelled. The value of a key that is not known is never
repeated: it may be a secret.

Source: man page slurm.conf(5) of Slurm 22.05, and of later versions as far as they add keys.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import IntEnum, StrEnum
from typing import NamedTuple, Self

from pydantic import BaseModel, ValidationError

from hpcrowd.environment.errors import (
    MachineError,
    QuantityError,
    echo,
    first_mistake,
    not_one_of,
)
from hpcrowd.environment.machine.hostlists import expand
from hpcrowd.environment.machine.model import LARGEST_NUMBER, Preempt

#: Words for nothing, in lower case.
NOTHING = frozenset(("", "(null)", "n/a", "none", "null"))

#: Words for no limit, in lower case.
NO_LIMIT = frozenset(("unlimited", "infinite", "-1"))

#: Values that change nothing, in lower case, whatever the key.
NEUTRAL = NOTHING | NO_LIMIT | {"no", "0", "unknown", "all", "0 sec", "0 min", "0.000000"}

#: No such values by key.
NO_VALUES: Mapping[str, Collection[str]] = {}

#: Bytes in a unit, as factors of 1024.
_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_NUMBER = re.compile(
    r"([0-9]{1,18}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})\s*([KMGTP]?)B?", re.IGNORECASE | re.ASCII
)
_SECONDS = re.compile(r"([0-9]{1,12})(?:\s*(?:sec|seconds))?", re.ASCII)
_TIME = re.compile(
    r"(?:(?P<days>\d{1,6})-(?P<dh>\d{1,6})(?::(?P<dm>\d{1,6}))?(?::(?P<ds>\d{1,6}))?"
    r"|(?P<h>\d{1,6}):(?P<hm>\d{1,6}):(?P<hs>\d{1,6})|(?P<m>\d{1,9})(?::(?P<s>\d{1,6}))?"
    r"(?:\s*min(?:utes)?)?)",
    re.ASCII,
)
_YES = frozenset(("yes", "up", "true", "1", "on", "y"))
_NO = frozenset(("no", "down", "false", "0", "off", "n"))


#: What keys of Slurm look like; anything else may be a part of a secret, such as a line of a key.
_KEY = re.compile(r"[A-Za-z][A-Za-z_]{0,39}")


def known_key(key: str) -> str:
    """Return a key for a message, if it is like those of Slurm."""
    return key if _KEY.fullmatch(key) else "a key"


def of_words(text: str) -> frozenset[str]:
    """Return the words of a text, such as keys in lower case."""
    return frozenset(text.split())


#: Settings that may change schedules and are not modelled, in lower case.
SCHEDULING = of_words("""
    allowspecresourcesusage burstbuffertype completewait defcpupergpu defmempergpu downnodes
    federationparameters frontendname jobsubmitplugins licenses maxjobcount maxmempergpu
    mcsplugin mcsparameters nodefeaturesplugins powerparameters powerplugin priorityparameters
    prioritysitefactorplugin prioritysitefactorparameters reconfigflags requeueexit
    requeueexithold resvoverrun suspendtime switchname topologyparam topologyplugin
    schedulerrootfilter clifilterplugins prologflags maxtaskspernode nodeset maxbatchrequeue
    defcpupernode jobdefaults
""")

#: The same of nodes, partitions, reservations, associations and QOS.
OF_PARTS = of_words("""
    alternate allocnodes burstbuffer corecnt exclusivetopo exclusiveuser features gracetime groups
    jobdefaults licenses limitfactor overtimelimit powerdownonidle preemptexempttime priority
    reqresv restrictedcorespergpu resumetimeout rootonly selecttypeparameters topology trespernode
    usagethreshold wckey
""")

#: Limits, of anything.
_LIMIT = re.compile(r"(def|grp|max|min)(cpu|job|mem|nodes|prio|submit|tres|wall)[a-z]*")


class Kind(StrEnum):
    """What a record describes."""

    NODES = "node"
    NODE_SET = "node set"
    PARTITION = "partition"
    SETTING = "setting"
    GRES = "generic resource"
    ASSOCIATION = "association"
    QOS = "QOS"
    RESERVATION = "reservation"


class Source(IntEnum):
    """Where a record comes from; larger ones know better."""

    CONFIGURED = 0
    SHOWN = 1


class Value(NamedTuple):
    """A value of a key as written, with file and line, ``slurm.conf:12``."""

    key: str
    text: str
    where: str

    def wrong(self, rule: str) -> MachineError:
        """Return the error for this value."""
        return MachineError(f"{self.where}: {self.key}={echo(self.text)}: {rule}")

    @property
    def nothing(self) -> bool:
        """Whether it says nothing."""
        return self.text.strip().lower() in NOTHING

    @property
    def note(self) -> str:
        """The value as a line of what is not modelled."""
        return f"{self.where}: {self.key}={self.text}"

    def not_modelled(self, what: str = "") -> str:
        """Return the line about it as a part of ``what``; its text only if the key is known."""
        key = self.key.lower()
        if key in SCHEDULING | OF_PARTS or _LIMIT.fullmatch(key):
            shown = f"{self.key}={self.text}"
        else:
            shown = f"{known_key(self.key)}: a key that is not known"
        return ": ".join(filter(None, (self.where, what, shown)))


class Record:
    """Keys, in lower case, and values about one thing, with its place and source."""

    def __init__(
        self, kind: Kind, where: str, values: Iterable[Value], source: Source = Source.CONFIGURED
    ) -> None:
        self.kind, self.source, self.where = kind, source, where
        self.values: dict[str, Value] = {value.key.lower(): value for value in values}
        self._taken: set[str] = set()

    def take(self, *keys: str) -> Value | None:
        """Return the value of the first of these keys that has one, and count them as understood.

        A value such as ``(null)`` counts as none.
        """
        found = None
        for key in keys:
            value = self.values.get(key.lower())
            if value is not None:
                self._taken.add(key.lower())
                if found is None and not value.nothing:
                    found = value
        return found

    def text(self, *keys: str) -> str:
        """Return the text of the first of these keys that has one; empty for none."""
        value = self.take(*keys)
        return value.text if value else ""

    def unused(
        self,
        what: str = "",
        harmless: Collection[str] = (),
        neutral: Mapping[str, Collection[str]] = NO_VALUES,
    ) -> list[str]:
        """Return lines about the values that nobody has taken and that may change something.

        ``what`` is what the record describes, such as ``partition p``; ``harmless`` keys have
        nothing to do with scheduling, and ``neutral`` values by key change nothing.
        """
        return [
            value.not_modelled(what)
            for key, value in self.values.items()
            if key not in self._taken
            and key not in harmless
            and value.text.strip().lower() not in NEUTRAL
            and value.text.lower() not in neutral.get(key, ())
        ]

    def over(self, other: Record) -> Self:
        """Return a record with the values of another where this one has none."""
        self.values = other.values | {
            key: value
            for key, value in self.values.items()
            if key not in other.values or not value.nothing
        }
        return self


def by_name(
    records: Iterable[Record], kind: Kind, key: str, names: Callable[[Value], Iterable[str]]
) -> dict[str, Record]:
    """Return the record of each thing of a kind by the names in the value of a key.

    What ``scontrol`` shows goes before slurm.conf; twice in one of them is an error.
    """
    found: dict[str, Record] = {}
    merged: dict[tuple[int, int], Record] = {}
    for record in records:
        if record.kind is not kind:
            continue
        value = record.take(key)
        if value is None:
            raise MachineError(f"{record.where}: a {kind} without {key}")
        for name in names(value):
            before = found.get(name)
            if before is None:
                found[name] = record
            elif before.source is record.source:
                raise value.wrong(f"{kind} {name} is described twice, also at {before.where}")
            else:
                less, more = sorted((before, record), key=lambda one: one.source)
                pair = id(less), id(more)
                if pair not in merged:
                    merged[pair] = more.over(less)
                found[name] = merged[pair]
    return found


def whole(value: Value, least: int = 0) -> int:
    """Return a whole number, maybe with a unit of 1024 or of seconds."""
    match = _SECONDS.fullmatch(value.text.strip())
    number = int(match[1]) if match else None
    if number is None:
        scaled = _NUMBER.fullmatch(value.text.strip())
        if scaled and "." not in scaled[1]:
            number = int(scaled[1]) * 1024 ** _UNITS[scaled[2].upper()]
    if number is None or number < least:
        raise value.wrong(f"not a whole number of at least {least}")
    if number > LARGEST_NUMBER:
        raise value.wrong(f"must be at most {LARGEST_NUMBER:,}")
    return number


def number(value: Value | None, default: int = 0) -> int:
    """Return a whole number of at least 0, or a default where there is none."""
    return default if value is None else whole(value)


def count(value: Value | None) -> int | None:
    """Return a limit, which may be missing or unlimited."""
    if value is None or value.text.strip().lower() in NO_LIMIT:
        return None
    return whole(value)


def real(value: Value) -> float:
    """Return a number of at least 0."""
    try:
        number = float(value.text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise value.wrong("not a number of at least 0")
    return number


def megabytes(value: Value | None) -> int | None:
    """Return memory in MB; None where there is no limit, which may be written 0.

    A unit counts MB: slurmctld takes ``16k`` for 16,384 MB, and does not take ``16g``.
    """
    if value is not None and value.text.strip()[-1:].upper() in _UNITS.keys() - {"", "K", "M"}:
        raise value.wrong("not a number of MB")
    return count(value) or None


def _megabytes(value: Value, text: str) -> int:
    match = _NUMBER.fullmatch(text.strip())
    if not match:
        raise value.wrong("not a size of memory in MB, or with a unit such as 64G")
    return int(float(match[1]) * 1024.0 ** (_UNITS[match[2].upper() or "M"] - 2))


def seconds(value: Value) -> int:
    """Return a time that is in minutes unless its form says more, in s.

    ``90``, ``1:30`` (minutes:seconds), ``1:00:00``, ``2-12`` (days-hours), ``2-12:30``,
    ``2-12:30:00``: sbatch(1), --time.
    """
    match = _TIME.fullmatch(value.text.strip())
    if not match:
        raise value.wrong("not a time; write minutes, minutes:seconds, or days-hours:minutes")
    part = {key: int(text or 0) for key, text in match.groupdict().items()}
    return (
        part["days"] * 86400
        + (part["dh"] + part["h"]) * 3600
        + (part["dm"] + part["hm"] + part["m"]) * 60
        + part["ds"]
        + part["hs"]
        + part["s"]
    )


def limit(value: Value | None) -> int | None:
    """Return a time limit in s, whole minutes rounded up; None where there is none."""
    if value is None or value.text.strip().lower() in NO_LIMIT:
        return None
    return -(-seconds(value) // 60) * 60


def yes(value: Value | None, *, default: bool = False) -> bool:
    """Return whether something is switched on."""
    if value is None:
        return default
    word = value.text.strip().lower()
    if word not in _YES | _NO:
        raise value.wrong("neither YES nor NO")
    return word in _YES


def words(value: Value | None) -> tuple[str, ...]:
    """Return the words of a list; none for ALL."""
    if value is None or value.text.strip().upper() == "ALL":
        return ()
    return tuple(filter(None, (word.strip() for word in value.text.split(","))))


def hosts(value: Value) -> list[str]:
    """Return the names of a host list."""
    try:
        return list(expand(value.text))
    except QuantityError as error:
        raise value.wrong(str(error).partition(": ")[2]) from None


def tres(value: Value | None) -> dict[str, int]:
    """Return trackable resources, ``cpu=64,mem=4G,gres/gpu:a100=2``; memory in MB."""
    found = {}
    for name, text in _pairs(value):
        assert value is not None
        if text in NO_LIMIT:
            continue
        if name == "mem":
            found[name] = _megabytes(value, text)
        else:
            found[name] = whole(Value(f"{value.key}: {name}", text, value.where))
    return found


def weights(value: Value | None) -> dict[str, float]:
    """Return weights by resource, ``CPU=1.0,Mem=0.25G,GRES/gpu=2``; that of memory for each MB."""
    found = {}
    for name, text in _pairs(value):
        assert value is not None
        match = _NUMBER.fullmatch(text)
        if not match:
            raise value.wrong(f"{name}: {text!r} is not a weight, such as 1.5 or 0.25G")
        unit = _UNITS[match[2].upper()]
        per = 1024.0 ** max(unit - 2, 0) if name == "mem" else 1024.0**unit
        found[name] = float(match[1]) / per
    return found


def _pairs(value: Value | None) -> Iterator[tuple[str, str]]:
    for word in words(value):
        name, equals, text = word.partition("=")
        if not equals or not name.strip():
            assert value is not None
            raise value.wrong("not a list such as cpu=64,mem=4G,gres/gpu=2")
        yield name.strip().lower(), text.strip()


def preemption(value: Value | None) -> tuple[Preempt | None, list[str]]:
    """Return what happens to preempted jobs, and the words that are not modelled."""
    mode, other = None, []
    for word in words(value):
        name = word.lower()
        if name in ("gang", "within", "priority"):
            other.append(word)
        elif name == "cluster":
            continue
        elif name in tuple(Preempt):
            mode = Preempt(name)
        else:
            assert value is not None
            raise value.wrong(not_one_of(name, Preempt))
    return mode, other


def make[Part: BaseModel](kind: type[Part], where: str, **fields: object) -> Part:
    """Return a part of the description; file and line are for the message if a field is wrong."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise MachineError(f"{where}: {first_mistake(error)}") from None
