"""The base of all kinds of runs: settings, preparation of inputs, and the simulation.

A kind is a subclass of :class:`Scenario` that is listed in :data:`scenarios.kinds.files.KINDS`.
That one class configures calls in Python, TOML files, sweeps, and the options of the command: a
setting is a field, declared once with its default, its meaning and its rules. A run has two steps,
so that many runs can share the first: :meth:`Scenario.prepare` reads and converts inputs,
:meth:`Scenario.run` simulates; :meth:`Scenario.stage` returns the simulation before it begins, for
callers that look at it while it runs.

Settings are looked at much more often than run, so that the module of a kind imports what
simulates where it is used.
"""

from __future__ import annotations

import inspect
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Union,
    get_args,
    get_origin,
)

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic.fields import FieldInfo

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.limits.inputs import is_input, opened
from hpcrowd.environment.limits.numbers import LARGEST_SEED
from hpcrowd.environment.registry import Registry, imported, located, place_of, source_of
from hpcrowd.environment.traces.formats.registry import is_collected, trace_path
from hpcrowd.scenarios.kinds.fields import FileConfig, Strict

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.decisions import DecisionLog
    from hpcrowd.agents.behaviours.user import User
    from hpcrowd.agents.work.recorded import Work
    from hpcrowd.analysis.parts import RunPart
    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.clock import Clock
    from hpcrowd.environment.cluster import ClusterSpec
    from hpcrowd.environment.jobs import Int64s, JobTable
    from hpcrowd.environment.parts.part import Part
    from hpcrowd.environment.simulation import Simulation
    from hpcrowd.environment.traces.trace import Trace


#: Called with the simulation now and then.
Watch = Callable[["Simulation"], Any]


@dataclass
class Staged:
    """A simulation with its users on it that is ready to begin.

    :meth:`run` runs it to its end; to look at it in between, run ``staged.model`` piece by piece
    and call :meth:`result` at the end.
    """

    model: Simulation  #: the simulation
    users: Sequence[User]  #: its users, agents of ``model``; more may come while it runs
    finish: Callable[[], Run]  #: returns a run of what has happened so far
    work: Work | None = None  #: the recorded sessions of users who replay; None if there are none
    log: DecisionLog | None = None  #: log of the decisions of users; None for no log
    prepare_s: float = 0.0  #: seconds that staging took
    #: What reading the inputs dropped, repaired or assumed, in words, one line each, as
    #: :attr:`hpcrowd.analysis.run.Run.notes` of its run.
    notes: Sequence[str] = ()

    def __repr__(self) -> str:
        return f"<Staged {self.model!r}>"

    def run(self, progress: Watch | None = None) -> Run:
        """Run to the end and return the run; call ``progress`` now and then with the simulation."""
        began = time.perf_counter()
        self.model.run(progress=progress)
        simulate_s = time.perf_counter() - began
        run = self.result()
        run.wall_s["simulate"] = round(simulate_s, 3)
        return run

    def result(self) -> Run:
        """Return a run of what has happened so far."""
        run = self.finish()
        if self.log is not None:
            from hpcrowd.agents.behaviours.decisions import Decisions
            from hpcrowd.analysis.accounts.decisions import LoggedDecisions

            run.parts["decisions"] = LoggedDecisions(rows=Decisions.of(self.log))
        run.wall_s["prepare"] = round(self.prepare_s, 3)
        return run


class Beginning(NamedTuple):
    """What a run begins with."""

    jobs: JobTable
    clusters: Mapping[str, ClusterSpec]  #: by name, the first one with speed 1
    clock: Clock
    trace: Trace | None = None  #: what was recorded, if there is a record
    rows: Int64s | None = None  #: row of each job in it, -1 for none; None if they are other jobs


def read_by(setting: str, place: str, entries: str = "") -> Any:
    """Return the validator of a setting that a file, a table or an object of a class gives.

    Parameters
    ----------
    setting
        Its name.
    place
        Where the class is, a :class:`FileConfig`, which is imported where the setting is given, so
        that mistakes are found before anything runs.
    entries
        The table's setting that a list is the value of; empty if it must be a table.
    """

    def read(given: Any, info: ValidationInfo) -> Any:
        if given is None:
            return None
        if entries and isinstance(given, list | tuple):
            given = {entries: given}
        return imported(place).given(given, info.data["folder"])

    return field_validator(setting, mode="before")(read)


class Scenario(Strict):
    """All settings of one run."""

    # Numbers are accepted where the setting is text, such as processors = 200.
    model_config = ConfigDict(coerce_numbers_to_str=True, arbitrary_types_allowed=True)

    #: The setting that names the input of the run, such as a trace; and whether a TOML file has to
    #: give it. Python functions and commands take the input itself.
    INPUT: ClassVar[str] = ""
    NEEDS_INPUT: ClassVar[bool] = True

    #: Settings of a kind that are listed right after a shared one; its others come before these.
    AFTER: ClassVar[Mapping[str, str]] = {}

    #: Fields that :meth:`prepare` uses; runs with equal values share what it returns.
    PREPARED_FROM: ClassVar[tuple[str, ...]] = ()

    #: Folder of the files that it names; not part of the TOML file.
    folder: Path = Field(Path(), exclude=True, description="folder of the files that it names")
    kind: str = Field(description="what is run")
    seed: int = Field(0, ge=0, le=LARGEST_SEED, description="seed of everything random")

    @classmethod
    def shared_settings(cls) -> tuple[str, ...]:
        """Return the names of settings that this kind has in common with others, in order."""
        return ("seed",)

    @classmethod
    def settings(cls) -> dict[str, FieldInfo]:
        """Return the settings in the order in which people see them.

        Those of the kind alone come first, then those that it shares. The input of the run is not
        among them.
        """
        shared = cls.shared_settings()
        alone = [
            name
            for name in cls.model_fields
            if name not in ("folder", "kind", cls.INPUT, *shared, *cls.AFTER)
        ]
        names = [*alone, *shared]
        for name, before in cls.AFTER.items():
            names.insert(names.index(before) + 1, name)
        return {name: cls.model_fields[name] for name in names}

    @classmethod
    def in_file(cls) -> list[str]:
        """Return the names of all settings that a TOML file may have, in order."""
        names = dict.fromkeys(["kind", "seed", cls.INPUT, *cls.settings()])
        return [name for name in names if name]

    def check(self) -> None:
        """Check that the input is given and that all files exist."""
        if self.INPUT and self.NEEDS_INPUT and getattr(self, self.INPUT) is None:
            raise QuantityError(f"{self.INPUT}: missing; it has no default")
        for name, path in self.files().items():
            if not is_input(path):
                raise QuantityError(f"{name} {str(path)!r}: no such file")

    def files(self) -> dict[str, Path]:
        """Return the files that the run reads, by the field or place that names each."""
        return {name: value.file for name, value in self.from_files() if value.file is not None}

    def from_files(self) -> list[tuple[str, FileConfig]]:
        """Return the settings that tables or files of their own describe, by name."""
        return [(name, value) for name, value in self if isinstance(value, FileConfig)]

    def sums(self) -> dict[str, str]:
        """Return the checksums of the files of such settings, and of those that they name."""
        found: dict[str, str] = {}
        for _, value in self.from_files():
            found |= value.sums()
        return found

    def of_sources(self) -> dict[str, Any]:
        """Return the checksums of the files with your own code by name, if there are any."""
        found = {path for value in _own_in(self) if (path := source_of(value)) is not None}
        sums = {path.name: checksum(path) for path in sorted(found)}
        return {"sources_sha256": sums} if sums else {}

    def trace_file(self, trace: str | os.PathLike[str]) -> Path:
        """Return the file of a trace: in the folder, or a log of the archive."""
        return trace_path(trace, folder=self.folder)

    def completed(self) -> dict[str, Any]:
        """Return every setting that has a value, fit for TOML; files by their absolute paths.

        Logs of the archive keep their names, which mean the same everywhere.
        """
        found = self.model_dump(mode="json", exclude_none=True)
        values = {name: found[name] for name in self.in_file() if name in found}
        values |= {
            name: str(path.absolute())
            for name, path in self.files().items()
            if name in values and not is_collected(values[name])
        }
        return values

    def identity(self) -> dict[str, Any]:
        """Return what the results depend on, fit for JSON: settings and contents of files."""
        found: dict[str, Any] = {name: checksum(path) for name, path in self.files().items()}
        found |= {f"files_of_{name}": value.sums() for name, value in self.from_files()}
        return {**self.completed(), **found, **self.of_sources()}

    def sharing(self) -> dict[str, Any]:
        """Return what the result of :meth:`prepare` depends on, fit for JSON."""
        identity = self.identity()
        return {name: identity.get(name) for name in ("kind", *self.PREPARED_FROM)}

    def prepare(self) -> Any:
        """Return what :meth:`run` needs in addition to the settings; it can be pickled."""
        raise NotImplementedError(f"{type(self).__name__} has to define prepare()")

    def stage(self, prepared: Any, log: DecisionLog | None = None) -> Staged:
        """Return the simulation before it begins.

        Parameters
        ----------
        prepared
            Result of :meth:`prepare`, of this scenario or one that shares it. It is changed, and
            cannot be used again.
        log
            Log for the decisions of users.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define stage()")

    def simulation(self, begins: Beginning, **more: Any) -> Simulation:
        """Return the simulation of a run, with further arguments of its class.

        What acts in the run must be possible on these clusters.
        """
        from hpcrowd.environment.simulation import Simulation

        parts = [*self.parts(begins), *more.pop("parts", ())]
        jobs, clusters, clock = begins[:3]
        model = Simulation(jobs, clusters, clock=clock, seed=self.seed, parts=parts, **more)
        self.attach(model, begins)
        return model

    def parts(self, begins: Beginning) -> list[Part]:
        """Return what else acts in the run, by its settings."""
        return []

    def attach(self, model: Simulation, begins: Beginning) -> None:
        """Let more act in the run, once its clusters are there; before users join."""

    def outcome(self, model: Simulation) -> JobTable:
        """Return the jobs of a run, as its results have them."""
        return model.jobs

    def results(self, model: Simulation, begins: Beginning) -> list[RunPart]:
        """Return what parts contributed to a run, whose simulation has run to its end.

        The jobs of ``begins`` are those of :meth:`outcome` now, and rows are of them.
        """
        return []

    def ended(self, model: Simulation, begins: Beginning, *more: RunPart, **about: Any) -> Run:
        """Return a run of what has happened so far.

        Parameters
        ----------
        model, begins
            As for :meth:`results`.
        *more
            Further parts of it.
        **about
            What else is known about it, arguments of :class:`~hpcrowd.analysis.run.Run`.
        """
        from hpcrowd.analysis.parts import RunParts
        from hpcrowd.analysis.run import Run

        size = sum(cluster.processors for cluster in model.clusters.values())
        parts = RunParts(*self.results(model, begins), *more)
        known: dict[str, Any] = {"processors": size, "label": self.label(), "clock": begins.clock}
        return Run(jobs=begins.jobs, attempts=model.attempts, parts=parts, **(known | about))

    def run(
        self, prepared: Any, progress: Watch | None = None, log: DecisionLog | None = None
    ) -> Run:
        """Simulate to the end; ``prepared`` and ``log`` are those of :meth:`stage`."""
        return self.stage(prepared, log).run(progress)

    def plain(self) -> dict[str, Any]:
        """Return the settings, fit for JSON, as in the provenance of a run."""
        names, objects = self.settings(), self.objects()
        found = self.model_dump(mode="json", include=set(names) - set(objects)) | objects
        return {name: found[name] for name in names if name in found}

    def objects(self) -> dict[str, Any]:
        """Return the settings that are described by objects, fit for JSON, by name."""
        found: dict[str, Any] = {name: value.plain() for name, value in self.from_files()}
        if not isinstance(own := getattr(self, "users", ""), str | tuple | FileConfig):
            found["users"] = getattr(own, "__qualname__", repr(own))
        return found

    def described(self, **more: Any) -> dict[str, Any]:
        """Return what is needed to repeat the run, fit for JSON: the settings, and ``more``.

        Of these, ``sums``, checksums of files, are called ``files_sha256``.
        """
        sums = more.pop("sums", {})
        found = {"kind": self.kind, **self.plain(), **more, **self.of_sources()}
        return found | ({"files_sha256": sums} if sums else {})

    def label(self) -> str:
        """Return a short name for a run: how it differs from others of its kind."""
        return self.kind

    def title(self) -> str:
        """Return a short name for a run among others: its input, then its label."""
        return self.label()


#: What parts add to kinds of runs, in the order in which they act in a run: where the subclass of
#: :class:`Scenario` is of which a kind of run becomes one, by the name of the kind. A part is
#: called like the setting that it adds.
SETTINGS: Registry[Mapping[str, type[Scenario]]] = Registry(
    {
        "platform": "hpcrowd.scenarios.kinds.parts.platform:SETTINGS",
        "machine": "hpcrowd.scenarios.kinds.parts.machine:SETTINGS",
        "power": "hpcrowd.scenarios.kinds.parts.power:SETTINGS",
        "reactions": "hpcrowd.scenarios.kinds.parts.reactions:SETTINGS",
        "holds": "hpcrowd.scenarios.kinds.parts.holds:SETTINGS",
        "given_up": "hpcrowd.scenarios.kinds.parts.given_up:SETTINGS",
        "population": "hpcrowd.scenarios.kinds.parts.population:SETTINGS",
    }
)


def with_parts[S: Scenario](kind: type[S]) -> type[S]:
    """Give a kind of run the settings of all parts that are installed."""
    name = kind.model_fields["kind"].default
    found = [settings.get(name) for settings in SETTINGS.installed()]
    new = [one for one in reversed(found) if one is not None and not issubclass(kind, one)]
    made_of: Any = type(kind)
    own = {"__module__": kind.__module__, "__doc__": kind.__doc__}
    mixed: type[S] = made_of(kind.__name__, (kind, *new), own)
    mixed.AFTER = {
        setting: before
        for one in mixed.__mro__
        for setting, before in vars(one).get("AFTER", {}).items()
    }
    return mixed


#: Settings that take the place of your own code.
TAKES_OWN = ("scheduler", "users", "behaviour", "when", "think", "window", "do")


def _own_in(settings: Any, folder: Path = Path()) -> Iterator[Any]:
    """Yield the values of settings that may be your own code, also of those in tables inside."""
    if isinstance(settings, BaseModel):
        settings = {name: getattr(settings, name) for name in type(settings).model_fields}
    if isinstance(settings, Mapping):
        folder = settings.get("folder", folder)
        for name, value in settings.items():
            if name in TAKES_OWN and isinstance(value, str):
                inside = place_of(located(value, folder))
                there = inside is not None and inside.file is not None and inside.file.is_file()
                yield located(value, folder) if there else value  # some know their folder already
            elif name in TAKES_OWN and not isinstance(value, Collection | BaseModel):
                yield value
            yield from _own_in(value, folder)
    elif isinstance(settings, list | tuple):
        for value in settings:
            yield from _own_in(value, folder)


#: Types of settings that take more than the model stores.
TAKES = {
    "processors": "str | int",
    "speed": "str | float",
    "scheduler": "str | Scheduler | type[Scheduler]",
    "estimates": "str | float | Estimates | Predictor",
    "users": "str | Callable[[Work], Behaviour] | PopulationConfig | Mixture",
}


def _type_of(name: str, field: FieldInfo) -> str:
    """Return the type of a setting as people write it."""
    if name in TAKES and get_origin(field.annotation) is not Literal:
        return TAKES[name]
    return re.sub(
        r"(typing|pathlib|hpcrowd|collections)[\w.]*\.(?=\w)", "", _words(field.annotation)
    )


def _words(kind: Any) -> str:
    """Return a type as people write it, without what pydantic is to do with its values."""
    if get_origin(kind) is Annotated:
        return _words(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return " | ".join(_words(one) for one in get_args(kind))
    return str(kind) if get_origin(kind) else "None" if kind is NoneType else kind.__name__


def with_settings[F: Callable[..., Any]](
    model: type[Scenario], also: Sequence[str] = ()
) -> Callable[[F], F]:
    """Give a function that takes settings as keywords the signature and the help that list them.

    Their names, types, defaults and descriptions come from those of ``model``, and from those of
    its fields that ``also`` names.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        shown = [one for one in signature.parameters.values() if one.kind != one.VAR_KEYWORD]
        lines = ["Settings, unless ``config`` is given", "------------------------------------"]
        fields = {name: model.model_fields[name] for name in also} | model.settings()
        for name, field in fields.items():
            default = inspect.Parameter.empty if field.is_required() else field.get_default()
            only, kind = inspect.Parameter.KEYWORD_ONLY, _type_of(name, field)
            shown.append(inspect.Parameter(name, only, default=default, annotation=kind))
            given = "" if field.is_required() else f", default {default!s}"
            lines += [f"{name}{given}", f"    {field.description}."]
        described: Any = function
        described.__signature__ = signature.replace(parameters=shown)
        described.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\n" + "\n".join(lines)
        return function

    return decorate


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file, as hexadecimal digits."""
    try:
        stat = path.stat()
        return _checksum(path.resolve(), stat.st_mtime_ns, stat.st_size)
    except OSError as error:
        raise QuantityError(f"{path}: cannot be read: {error.strerror or error}") from error


@lru_cache(maxsize=256)
def _checksum(path: Path, _written: int, _size: int) -> str:
    """Return the checksum of a file at a time of writing; kept, as many runs need it."""
    with opened(path) as file:
        digest = sha256()
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def takes_settings(values: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of nested ``values`` with other ``settings``, by dotted name.

    Parameters
    ----------
    values
        Tables and lists as in a TOML file; not changed.
    settings
        Values by name, such as ``scheduler`` or ``platform.changes.0.processors``; a number selects
        an element of a list.

    Raises
    ------
    QuantityError
        When a part of a dotted name is neither a table nor a list.
    """
    changed: dict[str, Any] = _copied(values)
    for name, value in settings.items():
        *way, last = name.split(".")
        place: Any = changed
        for done, part in enumerate(way):
            place = _below(place, part, name, ".".join(way[: done + 1]))
        if isinstance(place, list):
            _below(place, last, name, name)
            place[int(last)] = value
        else:
            place[last] = value
    return changed


def laid_over(below: Any, above: Any) -> Any:
    """Return the tables ``below``, with settings replaced by those in ``above``."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return below | {name: laid_over(below.get(name), value) for name, value in above.items()}


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copied(one) for name, one in value.items()}
    return [_copied(one) for one in value] if isinstance(value, list) else value


def _below(place: Any, part: str, name: str, so_far: str) -> Any:
    """Return the table or list below another, making tables that are not there yet."""
    if isinstance(place, list):
        if not part.isdigit() or int(part) >= len(place):
            raise QuantityError(
                f"{name}: {so_far}: no such element; there are {len(place)}, counted from 0"
            )
        return place[int(part)]
    below = place.setdefault(part, {})
    if not isinstance(below, dict | list):
        raise QuantityError(
            f"{name}: {so_far} is {below!r} and has no settings below it; write it as a table"
        )
    return below
