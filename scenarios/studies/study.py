"""Published studies: what a study declares about its findings.

A study is a dataclass of what was simulated or measured. It declares its tables, pictures,
statements and required figures; :mod:`hpcrowd.scenarios.studies.render` makes the output on a
terminal, the pages and the folder of results from them. A statement of a paper without a number
becomes a :class:`Rule`; a rule checked in one setting gives a :class:`Claim`.
"""

from __future__ import annotations

import inspect
import os
import tomllib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import UnavailableError
from hpcrowd.scenarios.studies import render
from hpcrowd.scenarios.studies.published import Printed, csv_rows, study_name
from hpcrowd.scenarios.studies.render import (
    Picture,
    Rows,
    Table,
    Version,
    marked,
    record_rows,
    version_lines,
)
from hpcrowd.scenarios.unfinished import Unfinished

if TYPE_CHECKING:
    from rich.console import Console

#: The measures by name, the same as text, and whether the rule holds; None if that is open.
Finding = tuple[dict[str, float], str, bool | None]

#: Checks a statement, see :class:`Rule`; with a second function, that says where it applies.
Check = Callable[..., Finding] | tuple[Callable[..., Finding], Callable[..., bool]]


class PublishedStudy(ABC):
    """A published study that has been run again, and the declaration of its output.

    Subclasses are dataclasses of findings. The file next to each that ends in ``.toml`` sets the
    names below, with the name of its paper in ``papers.csv``, and declares its tables, see
    :meth:`tables_of`. They define those of :meth:`tables`, :meth:`pictures`, :meth:`claims`,
    :meth:`requirements`, :meth:`data`, :meth:`rows` and :meth:`origin` that they need. Most have a
    field ``traces``: the findings on each log or trace, by name.

    Attributes
    ----------
    written
        What its data consist of, see :func:`plain`.
    """

    name: ClassVar[str]  #: Its name on the command line and in the names of its files.
    about: ClassVar[str]  #: One line for the list of studies.
    title: ClassVar[str]  #: Title of the HTML page.
    source: ClassVar[str]  #: The paper, without a full stop.
    #: Source of each table of its folder ``published``.
    published: ClassVar[Mapping[str, str]] = {}
    #: Name, in its data, of the setting of a statement or a requirement.
    setting: ClassVar[str] = "setting"
    rules: ClassVar[Sequence[Rule]] = ()  #: Statements of the text that are checked on every trace.
    listed: ClassVar[Collection[str]] = ()  #: The logs or traces of the paper.
    #: Why logs or traces of the paper cannot be read, by name.
    unreadable: ClassVar[Mapping[str, str]] = {}
    #: Significant digits of the runs that are stored next to its page, for a study that takes
    #: hours; None for one that is run again whenever its page is refreshed.
    stored_digits: ClassVar[int | None] = None
    #: Colours of the pictures on its page; None keeps all.
    picture_colours: ClassVar[int | None] = None
    #: Where the paper gives the numbers of jobs of :meth:`versions`.
    counted_in: ClassVar[str] = "the paper"

    row_heading: ClassVar[Sequence[str]] = ()  #: Headings of :meth:`rows`.
    declared: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  #: The tables of its file, by name.

    traces: Mapping[str, Any]

    def __init_subclass__(cls) -> None:
        path = Path(inspect.getfile(cls)).with_suffix(".toml")
        if not path.is_file():
            return
        found = tomllib.loads(path.read_text("utf-8"))
        if paper := found.pop("paper", None):
            known = csv_rows(Path(__file__).with_name("papers.csv"))
            cited = next(row["citation"] for row in known if row["paper"] == paper)
            places = found.get("published", {})
            found["published"] = {name: f"{cited}, {place}" for name, place in places.items()}
            found["source"] = f"{cited}, {found.pop('part')}" if "part" in found else cited
        cls.declared = found.pop("tables", {})
        for name, value in {"name": study_name(path), **found}.items():
            setattr(cls, name, value)

    # ---- declared by each study ----

    @cached_property
    def cells(self) -> Sequence[Any]:
        """The published figures with ours, if the study compares single figures."""
        return ()

    @cached_property
    def requirements(self) -> Sequence[Requirement]:
        """The required figures, trace by trace."""
        return [need for one in self.traces.values() for need in one.requirements]

    @cached_property
    def claims(self) -> Sequence[Claim]:
        """Every statement of the text in every setting that it applies to."""
        return claims_of(self.rules, self.traces) if self.rules else ()

    @abstractmethod
    def tables(self) -> Sequence[Table]:
        """Return the tables in the order in which they are shown."""

    def tables_of(self, rows: Mapping[str, Any]) -> list[Table]:
        """Return tables that its file declares, in the order of the rows of each, by name.

        A table is declared by the fields of :class:`Table`, of which ``part`` is its name unless
        given, and ``columns`` may be a list. Without a heading, it is given with the rows.
        """
        found = []
        for name, filled in rows.items():
            given = {"part": name, **self.declared[name]}
            if "heading" not in given:
                given["heading"], filled = filled
            columns = given.pop("columns", None)
            if columns is not None:
                pairs = enumerate(columns) if isinstance(columns, list) else columns.items()
                columns = {int(place): heading for place, heading in pairs}
            found.append(Table(rows=list(filled), columns=columns, **given))
        return found

    @abstractmethod
    def summary(self) -> list[str]:
        """Return what was reached and what is missing, as sentences without the full stop."""

    @abstractmethod
    def pictures(self) -> Sequence[Picture]:
        """Return the pictures that can be drawn from what was run."""

    def data(self) -> dict[str, Any]:
        """Return the findings as plain data, fit for JSON: what :func:`plain` writes of them."""
        return self.stored()

    def rows(self) -> Rows:
        """Return every figure in long form, as headings and rows; unknown is None.

        Those are the published figures with ours, if a study has ``cells``.
        """
        return record_rows(plain(self.cells))

    def groups(self) -> Mapping[str, Iterable[str]]:
        """Return the settings of each table of statements, by what these are about."""
        return {"": self.traces}

    def versions(self) -> Sequence[Version]:
        """Return the jobs of each log here and in the paper; none if the paper counts none."""
        return [
            Version(name, facts["jobs"], facts["jobs_published"])
            for name, facts in self.origin().get("traces", {}).items()
            if "jobs_published" in facts
        ]

    def origin(self) -> dict[str, Any]:
        """Return the provenance of the figures: traces, and settings if there are any."""
        return {"traces": {name: one.facts for name, one in self.traces.items()}}

    def more_parts(self, traces: Path) -> dict[str, str]:
        """Return generated parts of its page that need additional runs, in Markdown by name."""
        return {}

    def stored(self, digits: int | None = None) -> dict[str, Any]:
        """Return all runs as plain data that :meth:`of_stored` reads, with significant digits.

        They are kept next to the study's page, so that its tables and pictures can be made again
        without thousands of simulations, and a test can run some of them again.
        """
        runs: dict[str, Any] = plain(self, digits)
        return runs

    @classmethod
    def of_stored(cls, data: Mapping[str, Any]) -> Self:
        """Return the study with the runs that :meth:`stored` wrote."""
        study: Self = of_plain(cls, data)
        return study

    # ---- the same for all ----

    def sentences(self) -> list[str]:
        """Return the summary, the logs that are absent, and those of another version."""
        names = {why: [one for one in self.absent if self.absent[one] == why]
                 for why in self.absent.values()}  # fmt: skip
        lines = [f"Not available: {', '.join(ones)} ({why})" for why, ones in names.items()]
        for name, facts in self.origin().get("traces", {}).items():
            if others := facts.get("other_versions"):
                lines.append(f"{name}: {facts['source']} is used, not {', '.join(others)}")
        return [*self.summary(), *lines, *version_lines(self.versions(), self.counted_in)]

    def marked_tables(self) -> list[Table]:
        """Return the tables, what is required, and the statements.

        Names of logs that are another version are marked.
        """
        required = render.required_table(self.requirements, self.setting)
        tables = [*self.tables(), required]
        if self.claims:
            groups = self.groups().items()
            tables += [render.statement_table(self.claims, ones, about) for about, ones in groups]
        versions = self.versions()
        return [marked(table, versions) for table in tables]

    @property
    def failures(self) -> list[Requirement]:
        """The required figures that were not reached."""
        return [one for one in self.requirements if not one.holds]

    @property
    def reached(self) -> bool:
        """Whether every required figure was reached."""
        return not self.failures

    @property
    def score(self) -> str:
        """The number of reached figures, such as ``3 of 4``."""
        required = len(self.requirements)
        return f"{required - len(self.failures)} of {required}"

    @property
    def absent(self) -> dict[str, str]:
        """Why logs or traces of the paper were not available, by name."""
        away = [name for name in self.listed if name not in self.traces]
        return {name: self.unreadable.get(name, "no trace found") for name in away}

    @property
    def verdicts(self) -> Counter[bool | None]:
        """The numbers of statements that hold, do not hold, and are open (None)."""
        return Counter(claim.holds for claim in self.claims)

    @property
    def checked(self) -> str:
        """How many of the decided statements hold, in words."""
        hold = self.verdicts[True]
        return f"{hold} of {hold + self.verdicts[False]} checked statements hold"

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data, fit for JSON."""
        sources = {"sources": dict(self.published)} if self.published else {"source": self.source}
        absent = {"absent": self.absent} if self.listed else {}
        others = [asdict(one) for one in self.versions() if one.jobs != one.printed]
        versions = {"other_versions": others} if others else {}
        return {
            "study": self.name,
            **sources,
            **self.data(),
            **absent,
            **versions,
            "statements": as_data(self.claims, self.setting),
            "required": as_data(self.requirements, self.setting),
            "reached": self.reached,
        }

    def show(self, console: Console) -> None:
        """Print tables, statements and a summary on a ``rich`` console."""
        render.show_study(self, console)

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write data, pictures and a page into a folder that is complete or absent.

        Unfinished results next to it are removed.
        """
        render.write_study(self, Path(folder))
        Unfinished.remove_beside(Path(folder))

    def page_parts(self) -> dict[str, str]:
        """Return the generated parts of its page in Markdown, by name."""
        return render.page_parts(self.sentences(), self.marked_tables())


@dataclass(frozen=True)
class Requirement:
    """A figure that has to be reached."""

    setting: str  #: The log or the trace; empty if a study has only one.
    what: str  #: The figure.
    #: As texts.
    ours: str
    required: str
    holds: bool  #: Whether it is reached.


@dataclass(frozen=True)
class Claim:
    """A statement of the text in one setting."""

    #: Its name, its section in the text, and its words with the rule.
    name: str
    section: str
    what: str
    setting: str  #: The log, the load or the kind of workload it was checked on.
    numbers: dict[str, float]  #: The measures, by name.
    text: str  #: The same as text.
    holds: bool | None  #: Whether the rule holds; None if that is open.


@dataclass(frozen=True)
class Rule:
    """How a statement is checked."""

    #: As in :class:`Claim`.
    name: str
    section: str
    what: str
    #: Measures the findings on a setting; may raise :class:`UnavailableError`.
    check: Callable[..., Finding]
    #: Settings that the statement is about, such as logs; None for all.
    settings: Collection[str] | None = None
    #: Returns whether the statement is about the findings on a setting; None for all.
    applies: Callable[..., bool] | None = None

    def claim(self, setting: str, *found: Any) -> Claim:
        """Return the statement on the findings on a setting; open if that is not known."""
        try:
            numbers, text, holds = self.check(*found)
        except UnavailableError as error:
            numbers, text, holds = {}, f"not available: {error}", None
        holds = None if holds is None else bool(holds)  # comparisons of arrays give numpy's
        return Claim(self.name, self.section, self.what, setting, numbers, text, holds)


def rules_of(place: str, checks: Mapping[str, Check]) -> tuple[Rule, ...]:
    """Return the statements of a study, in the order of the text.

    A file of comma-separated values, such as ``song2005/statements``, has a line for each: name,
    section, words with the rule, and settings between spaces, none for all. How each is checked is
    by name, in the same order; see :class:`Rule`.
    """
    rows = csv_rows(Path(__file__).parent / f"{place}.csv")
    assert [row["name"] for row in rows] == list(checks), f"{place}: other checks than statements"
    found = []
    for row in rows:
        check = checks[row["name"]]
        how, applies = check if isinstance(check, tuple) else (check, None)
        settings = tuple(row["settings"].split()) or None
        found.append(Rule(row["name"], row["section"], row["what"], how, settings, applies))
    return tuple(found)


def claims_of(rules: Iterable[Rule], found: Mapping[str, Any]) -> list[Claim]:
    """Return every statement in every setting that it applies to, statement by statement.

    Findings are by setting; a tuple is several arguments of a check.
    """
    places = {name: one if isinstance(one, tuple) else (one,) for name, one in found.items()}
    return [
        rule.claim(setting, *place)
        for rule in rules
        for setting, place in places.items()
        if rule.settings is None or setting in rule.settings
        if rule.applies is None or rule.applies(*place)
    ]


def as_data(ones: Iterable[Any], setting: str) -> list[dict[str, Any]]:
    """Return requirements or claims as plain data, fit for JSON.

    Their settings have a name in the study, such as ``log``; if all are empty, they are left out.
    """
    found = [asdict(one) for one in ones]
    if not any(one["setting"] for one in found):
        return [{name: one[name] for name in one if name != "setting"} for one in found]
    return [
        {(setting if name == "setting" else name): value for name, value in one.items()}
        for one in found
    ]


# ---- plain data ------------------------------------------------------------------------------


def plain(value: Any, digits: int | None = None) -> Any:
    """Return dataclasses, arrays and lists as plain data fit for JSON; nan becomes None.

    Of a dataclass all fields are written, or else the fields, properties and methods that its
    ``written`` names; if that is a mapping, by other names. Several words of a key are joined.
    Numbers in arrays may be rounded to significant digits.
    """
    if isinstance(value, Printed):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        names = getattr(value, "written", None) or [field.name for field in fields(value)]
        names = names if isinstance(names, Mapping) else dict(zip(names, names, strict=True))
        found = {name: attrgetter(own)(value) for name, own in names.items()}
        return {name: plain(one() if callable(one) else one, digits) for name, one in found.items()}
    if isinstance(value, Mapping):
        return {_key(name): plain(one, digits) for name, one in value.items()}
    if isinstance(value, np.ndarray):
        return _numbers(value.tolist(), digits)
    if isinstance(value, list | tuple):
        return [plain(one, digits) for one in value]
    return None if value != value else value


def _key(name: Any) -> str:
    if isinstance(name, tuple):
        return ", ".join(map(_key, name))
    return f"{name:g}" if isinstance(name, float) else str(name)


def _numbers(value: Any, digits: int | None) -> Any:
    if isinstance(value, list):
        return [_numbers(one, digits) for one in value]
    if value != value:
        return None
    return value if digits is None else float(f"{value:.{digits}g}")


def of_plain(kind: Any, data: Any) -> Any:
    """Return a value of a type from what :func:`plain` wrote: its inverse, except for rounding.

    The type is a dataclass, one of mapping, list or tuple, of numpy's arrays of numbers, or a plain
    one. Names that are not fields of a dataclass are left out.
    """
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{one.name: of_plain(hints[one.name], data[one.name]) for one in fields(kind)})
    origin = get_origin(kind)
    if origin in (np.ndarray, NDArray):  # an alias that numpy does not always resolve
        return np.array(data, dtype=np.float64)  # nan where there is None
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {name: of_plain(get_args(kind)[1], one) for name, one in data.items()}
    if origin is tuple or (isinstance(origin, type) and issubclass(origin, Sequence)):
        ones = [of_plain(get_args(kind)[0], one) for one in data]
        return tuple(ones) if origin is tuple else ones
    return data
