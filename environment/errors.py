"""The exceptions of hpcrowd. Each message is one line: what, its value, where, the rule, the cure.

    HpcrowdError
    ├── TraceError(ValueError)        a trace cannot be read or lacks what is needed
    │   ├── ParseError                one line of it is malformed (path, line, field, value)
    │   └── ArchiveError              a log of the archive is not available, or its file is damaged
    ├── ResultsError(ValueError)      a folder of results cannot be read
    ├── SignalError(ValueError)       a price or carbon signal cannot be used
    ├── QuantityError(ValueError)     a duration, factor or choice cannot be understood
    ├── ModelFileError(ValueError)    a file with a trained or fitted model cannot be used
    ├── ModelFitError(ValueError)     a model cannot be fitted to this workload
    ├── UnavailableError(ValueError)  a feature cannot be measured on this workload
    ├── SchedulerError(RuntimeError)  a scheduler made an impossible decision
    ├── PredictorError(RuntimeError)  a predictor was used before it was trained or started
    └── SimulationError(RuntimeError) users or the run loop requested something impossible

Each is a subclass of the builtin exception that a caller would catch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from re import findall
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


class HpcrowdError(Exception):
    """Base class of all exceptions of hpcrowd; the message is one line."""


class TraceError(HpcrowdError, ValueError):
    """A trace cannot be read, or it lacks what is needed."""


class ParseError(TraceError):
    """One line of a trace is malformed.

    Attributes
    ----------
    path, line, field, value
        The place (``line`` counts from 1; ``field`` is a name or None), and the value there.
    """

    def __init__(self, path: str, line: int, field: str | None, value: str, rule: str) -> None:
        self.path, self.line, self.field, self.value, self.rule = path, line, field, value, rule
        where = f"{path}, line {line}" + (f", field {field}" if field else "")
        super().__init__(f"{where}: {value!r}: {rule}")


class ArchiveError(TraceError):
    """A log of the Parallel Workloads Archive is not available, or its file is damaged."""


class ResultsError(HpcrowdError, ValueError):
    """A folder of results cannot be read, or it holds something else."""


class SignalError(HpcrowdError, ValueError):
    """A signal over time cannot be read, has gaps, or does not cover the requested time.

    Attributes
    ----------
    where, field, value
        The file, with the line if there is one; the column and its value, or empty.
    rule
        What is wrong, and the cure.
    """

    def __init__(self, where: str, rule: str, field: str = "", value: str = "") -> None:
        self.where, self.rule, self.field, self.value = where, rule, field, value
        place = where + (f", field {field}" if field else "")
        super().__init__(f"{place}: {value!r}: {rule}" if value or field else f"{place}: {rule}")


class QuantityError(HpcrowdError, ValueError):
    """A duration, a factor or a named choice cannot be understood."""


class ModelFileError(HpcrowdError, ValueError):
    """A file with a trained or fitted model is missing, damaged, or of a newer version."""


class ModelFitError(HpcrowdError, ValueError):
    """A model cannot be fitted to this workload.

    Attributes
    ----------
    what
        The model and the parameter, with its value.
    rule
        What is wrong, and the cure.
    """

    def __init__(self, what: str, rule: str) -> None:
        self.what, self.rule = what, rule
        super().__init__(f"{what}: {rule}")


class UnavailableError(HpcrowdError, ValueError):
    """A feature cannot be measured on this workload; the message gives the reason."""


class SchedulerError(HpcrowdError, RuntimeError):
    """A scheduler started a job that cannot start, or left jobs waiting for ever."""


class PredictorError(HpcrowdError, RuntimeError):
    """A predictor was used before it was trained or started."""


class SimulationError(HpcrowdError, RuntimeError):
    """Users or the run loop requested something impossible, such as a submission in the past."""


def first_mistake(error: ValidationError) -> str:
    """Return the first mistake that pydantic found: where, value, rule."""
    first = error.errors()[0]
    cause = first.get("ctx", {}).get("error")
    place = ""
    for part in first["loc"]:
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else str(part)
    if isinstance(cause, HpcrowdError):
        return f"{place}: {cause}" if len(first["loc"]) > 1 else str(cause)
    rule = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        return f"{place}: no such setting; the reference lists all settings"
    if first["type"] == "union_tag_invalid":
        name, given = first["ctx"]["discriminator"].strip("'"), first["ctx"]["tag"]
        known = first["ctx"]["expected_tags"].replace("'", "").split(", ")
        return f"{place}.{name} {given!r}: {not_one_of(given, known)}"
    if first["type"] == "literal_error":
        rule = not_one_of(first["input"], findall(r"'([^']+)'", first["ctx"]["expected"]))
    if first["type"] == "missing":
        return f"{place}: missing; it has no default"
    return f"{place} {first['input']!r}: {rule}" if place else rule


def nearest(value: object, known: Iterable[object]) -> str:
    """Return "did you mean ...?" with the nearest known value; empty if none is near."""
    from difflib import get_close_matches

    near = get_close_matches(str(value), map(str, known), 1)
    return f"did you mean {near[0]}? " if near else ""


def not_one_of(value: object, known: Iterable[object]) -> str:
    """Return the rule and the cure for a value that is not one of the known ones."""
    names = [str(one) for one in known]
    return f"not known; {nearest(value, names)}choose {', '.join(names)}"


def check_choice(what: str, value: object, known: Collection[object]) -> None:
    """Make sure that a value is one of the known ones.

    Parameters
    ----------
    what
        What the value is, such as the name of a setting.
    value, known
        As for :func:`not_one_of`.

    Raises
    ------
    QuantityError
        When it is not.
    """
    if value not in known:
        raise QuantityError(f"{what} {value!r}: {not_one_of(value, known)}")


def missing(library: str, extra: str = "fits") -> str:
    """Return the message for a library of an extra that is not installed, with the cure."""
    return f'{library} is not installed; pip install "hpcrowd[{extra}]"'
