"""What is calibrated: a population or a scenario in a TOML file, with the parameters that are free.

A population is that of a replay; ``[free]`` names settings of its file, as the axes of a sweep do::

    [[users]]
    behaviour = "linear"

    [free]
    users.0.line.slope = "0..2"
    users.0.line.intercept = "log:1m..2h"

A file with a table ``[scenario]`` is a scenario of any of :data:`KINDS_TO_CALIBRATE`; ``[free]``
then names settings of the scenario, such as ``consequences.leave``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hpcrowd.analysis.calibration.priors import Prior
from hpcrowd.environment.errors import HpcrowdError, QuantityError
from hpcrowd.scenarios.kinds.base import Scenario, takes_settings
from hpcrowd.scenarios.kinds.files import KINDS, Source, scenario_of

if TYPE_CHECKING:
    from hpcrowd.scenarios.kinds.trace_settings import TraceScenario


#: Kinds of scenarios whose users come from the log itself.
KINDS_TO_CALIBRATE = ("replay", "resample")

#: The table of free parameters in a file.
FREE = "free"

#: Settings that a calibration sets itself.
SET_HERE = ("trace", "seed")

#: Shares of a prior at which a scenario is made before anything runs; the last is not round.
TRIED = (0.0, 1.0, 0.4142)


@dataclass(frozen=True)
class Subject:
    """A scenario with free parameters."""

    settings: dict[str, Any]  #: Settings of the scenario without its trace and seed.
    folder: Path  #: Folder of the files that it names.
    priors: tuple[Prior, ...] = ()  #: The free parameters, by their dotted names in the scenario.
    trace: Path = Path()  #: File of the log.

    @property
    def kind(self) -> type[Scenario]:
        """The kind of scenario."""
        return KINDS[self.settings["kind"]]

    def scenario(self, values: Sequence[float], seed: int = 0) -> TraceScenario:
        """Return the scenario with values of the free parameters, in the order of the priors.

        A QuantityError is raised when a setting is wrong, or settings contradict each other.
        """
        given = {prior.name: value for prior, value in zip(self.priors, values, strict=True)}
        settings = takes_settings(self.settings, given)
        settings |= {"seed": seed, "trace": str(self.trace.absolute())}
        return cast("TraceScenario", scenario_of(settings, self.folder))


def read_subject(
    path: Path, free: Sequence[str], trace: Path, settings: Mapping[str, Any] | None = None
) -> Subject:
    """Return what the file of a population or a scenario describes, with its free parameters.

    Further free parameters are NAME=LOW..HIGH and replace those of the file; further settings are
    those of the scenario, such as its scheduler. A QuantityError is raised when the file cannot be
    read, nothing is free, or a parameter cannot be.
    """
    source = Source.read(path)
    rest = {name: value for name, value in source.values.items() if name != FREE}
    if "scenario" in rest:
        source.only(["scenario", FREE])
        base, before = rest["scenario"], ""
        if not isinstance(base, dict):
            raise source.mistake("scenario: must be a table to be calibrated", ["scenario"])
        base = {name: value for name, value in base.items() if name not in SET_HERE}
    else:
        from hpcrowd.scenarios.kinds.population_files import PopulationConfig

        PopulationConfig.read(path)  # its mistakes are said with their places
        base, before = {"kind": "replay", "users": {"name": path.stem, **rest}}, "users."
    kind = base.get("kind")
    if kind not in KINDS_TO_CALIBRATE:
        raise source.mistake(
            f"kind {kind!r}: cannot be calibrated; choose {', '.join(KINDS_TO_CALIBRATE)}",
            ["scenario", "kind"],
        )
    table = source.values.get(FREE, {})
    if not isinstance(table, dict):
        raise source.mistake(f'{FREE} {table!r}: must be a table of NAME = "LOW..HIGH"', [FREE])
    priors = {}
    for name, value, place in _flat(table):
        try:
            priors[name] = Prior.parse(name, value)
        except QuantityError as error:
            raise source.mistake(str(error), [FREE, *place]) from None
    priors |= {prior.name: prior for prior in map(_option, free)}
    if not priors:
        raise QuantityError(
            f"{path}: nothing is free; add a table [{FREE}], or give --free NAME=LOW..HIGH, such "
            "as --free users.0.line.slope=0..2"
        )
    found = Subject(base | dict(settings or {}), path.parent, (), trace)
    named = [replace(prior, name=before + name) for name, prior in priors.items()]
    return replace(found, priors=tuple(_checked(found, named)))


def _option(text: str) -> Prior:
    name, equals, bounds = text.partition("=")
    if not equals or not name.strip():
        raise QuantityError(
            f"--free {text!r}: write NAME=LOW..HIGH, such as users.0.line.slope=0..2"
        )
    return Prior.parse(name.strip(), bounds.strip())


def _flat(
    table: Mapping[str, Any], way: Sequence[str] = ()
) -> Iterator[tuple[str, Any, list[str]]]:
    """Yield names and values; a nested table is the beginning of a dotted name."""
    for part, value in table.items():
        place = [*way, part]
        if isinstance(value, dict):
            yield from _flat(value, place)
        else:
            yield ".".join(place), value, place


def _checked(subject: Subject, priors: Sequence[Prior]) -> list[Prior]:
    """Return priors with what their settings want: whole numbers or any.

    A QuantityError is raised when a scenario cannot be made with them.
    """
    first: list[Prior] = []
    for prior in priors:
        head = prior.name.split(".")[0]
        if head in (*SET_HERE, *subject.kind.PREPARED_FROM):
            raise QuantityError(
                f"free {prior.name}: is used before users are simulated, so it cannot be free"
            )
        first.append(replace(prior, whole=True))
    middle = [prior.at(0.5) for prior in first]
    _try(replace(subject, priors=tuple(first)), middle, "")
    found = []
    for place, prior in enumerate(first):
        free = replace(prior, whole=False)
        values = list(middle)
        values[place] = free.at(TRIED[-1])
        try:
            _try(replace(subject, priors=tuple(first)), values, free.name)
            found.append(free)
        except QuantityError:
            found.append(prior)
    for place, prior in enumerate(found):
        for share in TRIED[:-1]:
            values = list(middle)
            values[place] = prior.at(share)
            _try(replace(subject, priors=tuple(found)), values, prior.name)
    return found


def _try(subject: Subject, values: Sequence[float], name: str) -> None:
    """Make a scenario, and say with which values it cannot be made."""
    try:
        subject.scenario(values)
    except HpcrowdError as error:
        shown = ", ".join(
            f"{prior.name} = {value:g}"
            for prior, value in zip(subject.priors, values, strict=True)
            if name in ("", prior.name)
        )
        raise QuantityError(f"free {shown}: {error}") from None
