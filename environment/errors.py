"""The exceptions of hpcrowd. Each message is one line: what, its value, where, the rule, the cure.

    HpcrowdError
    ├── TraceError(ValueError)        a trace cannot be read or lacks what is needed
    │   ├── ParseError                one line of it is malformed (path, line, field, value)
    │   └── ArchiveError              a log of the archive is not available, or its file is damaged
    ├── ResultsError(ValueError)      a folder of results cannot be read
    ├── SignalError(ValueError)       a price or carbon signal cannot be used
    ├── QuantityError(ValueError)     a duration, factor or choice cannot be understood
    ├── MachineError(ValueError)      a description of a machine is wrong
    ├── ModelFileError(ValueError)    a file with a trained or fitted model cannot be used
    ├── ModelFitError(ValueError)     a model cannot be fitted to this workload
    ├── UnavailableError(ValueError)  a feature cannot be measured on this workload
    ├── SchedulerError(RuntimeError)  a scheduler made an impossible decision
    ├── PredictorError(RuntimeError)  a predictor was used before it was trained or started
    ├── SimulationError(RuntimeError) users or the run loop requested something impossible
    └── FixedError(AttributeError)    something was assigned that does not change like that

Each is a subclass of the builtin exception that a caller would catch.

What messages repeat of the input is short and without control characters: a file or an option can
hold a megabyte where a number belongs, or characters that change the colour of a terminal, its
title or what is already on it. Every exception passes its message through :func:`harmless`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails


#: Most characters of one value that a message repeats; some repeat it twice.
LONGEST_ECHO = 80

#: Most characters of a word without blanks, such as a path, that is not shortened.
LONGEST_WORD = 180

#: Most characters of a whole message; the longest lists of choices take about a thousand.
LONGEST_MESSAGE = 2_000

#: What takes the place of the part that is left out.
GAP = " ... "

# A quoted text, as repr() writes it; an apostrophe within a word does not begin one.
_QUOTED = re.compile(r"""(?<!\w)(['"])((?:\\.|(?!\1).)*+)(?:\1(?!\w)|$)""")
# A list or a table, as repr() writes it.
_LISTED = re.compile(rf"(?<![\w.])[\[{{].{{{LONGEST_ECHO},}}[\]}}]")
_WORD = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")
# What follows a word for a password, as in ``StoragePass=`` or ``"password": "``.
_SECRET = re.compile(
    r"""((?:pass(?:word|wd|phrase)?|secret)(?:\s*=\s*["']?|["']?\s*:\s*["']))[^\s"']+""",
    re.IGNORECASE,
)


def shortened(text: str, most: int = LONGEST_ECHO) -> str:
    """Return a text with its middle left out if it has more than ``most`` characters."""
    if len(text) <= most:
        return text
    end = (most - len(GAP)) // 3
    return text[: most - len(GAP) - end] + GAP + text[-end:]


def without_secrets(text: str) -> str:
    """Return a text with dots for what follows a word for a password.

    Values of keys that are not known are not repeated at all; this is for those that a damaged line
    has made a part of another value.
    """
    return _SECRET.sub(r"\1...", text)


def printable(text: str) -> str:
    """Return a text with escapes such as ``\\x1b`` for all characters that are not printable.

    Line breaks become blanks.
    """
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else " " if one.isspace() and one.isascii() else _escape(one)
        for one in text
    )


def echo(value: object) -> str:
    """Return how a message shows a value: as Python writes it, shortened."""
    if isinstance(value, str):
        value = value if len(value) <= LONGEST_ECHO else shortened(value)
    return shortened(printable(repr(value)))


def harmless(message: str) -> str:
    """Return a message as one line, with long values in it shortened."""
    message = without_secrets(printable(shortened(message, 4 * LONGEST_MESSAGE)))
    if len(message) > LONGEST_ECHO:
        message = _QUOTED.sub(lambda found: f"{found[1]}{shortened(found[2])}{found[1]}", message)
        message = _LISTED.sub(lambda found: shortened(found[0]), message)
        message = _WORD.sub(lambda found: shortened(found[0]), message)
        # Most messages begin with a place, such as a path, which may have blanks.
        place, colon, rest = message.partition(": ")
        if rest and len(place) > LONGEST_WORD:
            message = shortened(place) + colon + rest
    return shortened(message, LONGEST_MESSAGE)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


class HpcrowdError(Exception):
    """Base class of all exceptions of hpcrowd; the message is one line.

    What it repeats of the input is shortened, and cannot control a terminal.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(harmless(str(message)))


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
        shown = f"{where}: {echo(value)}" if value or field else where
        super().__init__(f"{shown}: {rule}")


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
        shown = f"{place}: {echo(value)}" if value or field else place
        super().__init__(f"{shown}: {rule}")


class QuantityError(HpcrowdError, ValueError):
    """A duration, a factor or a named choice cannot be understood."""


class MachineError(HpcrowdError, ValueError):
    """A description of a machine of nodes cannot be read, or contradicts itself.

    Attributes
    ----------
    place
        Keys and places in lists that lead to the mistake, as in its TOML file; empty if the message
        names file and line.
    """

    def __init__(self, message: object = "", place: tuple[str | int, ...] = ()) -> None:
        self.place = place
        super().__init__(message)


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


def no_attribute(what: object, name: str, ways: Mapping[str, str]) -> AttributeError:
    """Return the error for an attribute that people try, with the way to what it means."""
    way = f"; {ways[name]}" if name in ways else ""
    message = f"a {type(what).__name__.lower()} has no attribute {name!r}{way}"
    return AttributeError(message, name=name, obj=what)


class FixedError(HpcrowdError, AttributeError):
    """Something was assigned that does not change like that; the message says how it changes."""


#: Smaller lower bounds are said to be 0: nobody reads a second in days.
LEAST_SHOWN = 1e-3

#: Rules by the kind of a mistake that pydantic finds, with what it knows of it in braces.
RULES = {
    "greater_than_equal": "must be {ge} or more",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be {le} or less",
    "less_than": "must be less than {lt}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "finite_number": "must be a finite number",
    "too_short": "must have {min_length} or more",
    "too_long": "must have {max_length} or fewer",
    "string_too_short": "must have {min_length} characters or more",
    "string_too_long": "must have {max_length} characters or fewer",
} | {
    f"{kind}_{end}": f"must be {what}"
    for kind, what in (
        ("int", "a whole number"), ("float", "a number"), ("bool", "true or false"),
        ("string", "a text"), ("list", "a list"), ("tuple", "a list"), ("dict", "a table"),
        ("model", "a table"), ("dataclass", "a table"), ("path", "a path"),
        ("model_attributes", "a table"),
    )
    for end in ("type", "parsing", "parsing_size", "from_float")
}  # fmt: skip


def _rule(mistake: ErrorDetails) -> str:
    """Return the rule that a mistake breaks, in our words where there are some."""
    try:
        known = mistake.get("ctx", {}).items()
        if 0 < mistake.get("ctx", {}).get("ge", 0) < LEAST_SHOWN:
            return "must be more than 0"
        numbers = {one: f"{n:.10g}" if isinstance(n, float) else n for one, n in known}
        return RULES[mistake["type"]].format(**numbers)
    except KeyError:
        message = mistake["msg"].removeprefix("Value error, ")
        return message.replace("Input should be", "must be").replace("Input should", "must")


def one_line(kind: type) -> Any:
    """Return a class of pydantic's classes that makes a mistake in a call one line.

    It is an error of the class's ``MISTAKE``, a QuantityError unless it has one. ``kind`` is the
    class of pydantic's ``BaseModel``, which is not imported here.
    """
    from pydantic import ValidationError

    def call(cls: Any, *args: Any, **values: Any) -> Any:
        try:
            return kind.__call__(cls, *args, **values)
        except ValidationError as error:
            mistake = getattr(cls, "MISTAKE", QuantityError)
            raise mistake(first_mistake(error, getattr(cls, "model_fields", ()))) from None

    return type("OneLine", (kind,), {"__call__": call})


def first_mistake(error: ValidationError, known: Iterable[str] = ()) -> str:
    """Return the first mistake that pydantic found: where, value, rule.

    Of a name that is not known, one of the ``known`` settings is suggested.
    """
    first = error.errors()[0]
    cause = first.get("ctx", {}).get("error")
    place = ""
    for part in first["loc"]:
        name = shortened(str(part))
        place += f"[{part}]" if isinstance(part, int) else f".{name}" if place else name
    if isinstance(cause, HpcrowdError):
        return f"{place}: {cause}" if len(first["loc"]) > 1 else str(cause)
    rule = _rule(first)
    if first["type"] == "extra_forbidden":
        near = nearest(first["loc"][-1], known) if len(first["loc"]) == 1 else ""
        return f"{place}: no such setting; {near}the reference lists all settings"
    if first["type"] == "union_tag_invalid":
        name, given = first["ctx"]["discriminator"].strip("'"), first["ctx"]["tag"]
        known = first["ctx"]["expected_tags"].replace("'", "").split(", ")
        return f"{place}.{name} {echo(given)}: {not_one_of(given, known)}"
    if first["type"] == "union_tag_not_found":
        name = first["ctx"]["discriminator"].strip("'")
        return f"{place}: {name} is missing, which says what it is; the reference lists its values"
    if first["type"] == "literal_error":
        rule = not_one_of(first["input"], re.findall(r"'([^']+)'", first["ctx"]["expected"]))
    if first["type"] == "missing":
        return f"{place}: missing; it has no default"
    return f"{place}{_input(first['input'], first['type'])}: {rule}" if place else rule


def _input(value: Any, wrong: str) -> str:
    """Return how a message shows a wrong value: not the values of keys that may not be known."""
    parts = value if isinstance(value, list) else [value]
    if any(isinstance(part, dict) for part in parts) or wrong in ("model_type", "dict_type"):
        return ""
    return f" {echo(value)}"


#: Settings and options that people mean by other words, as lists and other programs call them.
MEANT = {
    "scheduler": ("policy", "policies", "algorithm", "scheduling"),
    "users": ("behaviour", "behavior", "behaviours", "behaviors", "user", "user_model", "agents"),
    "processors": (
        "processor", "nodes", "cores", "cpus", "procs", "n_processors", "num_processors", "size",
        "max_procs", "resources",
    ),
    "requested": ("walltime", "walltimes", "requested_time", "requests"),
    "estimates": ("estimate", "predictor", "prediction", "runtime_prediction"),
    "sessions": ("session", "threshold"),
    "seed": ("random_seed", "random_state", "rng"),
    "seeds": ("repetitions", "replications", "repeat", "runs"),
    "from": ("start", "begin", "since", "after"),
    "to": ("end", "until", "before", "stop"),
    "out": ("output", "output_dir", "outdir", "folder", "directory"),
    "processes": ("jobs", "workers", "threads", "parallel"),
    "json": ("as_json", "format"),
}  # fmt: skip

#: What does it, of words that are no setting of a run.
ELSEWHERE = {
    **dict.fromkeys(("from", "to", *MEANT["from"], *MEANT["to"]), "`hpcrowd window` cuts a log"),
    **dict.fromkeys(("load", "scale", "factor"), "processors 0.8x raises the load by a quarter"),
}


def meant_by(word: str, known: Collection[str]) -> str:
    """Return which of the known settings somebody means by another word; empty if none."""
    word = word.lstrip("-").replace("-", "_").lower()
    return next((name for name, words in MEANT.items() if word in words and name in known), "")


def elsewhere(word: str, known: Collection[str]) -> str:
    """Return what does it, of a word that is none of the known settings; empty if unknown."""
    word = word.lstrip("-").replace("-", "_")
    return "" if meant_by(word, known) else ELSEWHERE.get(word, "")


def nearest(value: object, known: Iterable[object]) -> str:
    """Return "did you mean ...?" with the nearest known value; empty if none is near."""
    from difflib import get_close_matches

    names, word = [str(one) for one in known], str(value)[:LONGEST_ECHO]
    # The search takes the square of the length.
    if (does := elsewhere(word, names)) and "processors" in names:
        return f"{does}; "
    meant = meant_by(word, names)
    near = [meant] if meant else get_close_matches(word, names, 1)
    return f"did you mean {near[0]}? " if near else ""


def not_one_of(value: object, known: Iterable[object]) -> str:
    """Return the rule and the cure for a value that is not one of the known ones."""
    names = [str(one) for one in known]
    return f"not known; {nearest(value, names)}choose {', '.join(names)}"


def check_choice(what: str, value: object, known: Collection[object]) -> None:
    """Make sure that a value of ``what``, such as a setting, is one of the known ones.

    Raises QuantityError when it is not.
    """
    if value not in known:
        raise QuantityError(f"{what} {echo(value)}: {not_one_of(value, known)}")


def missing(library: str, extra: str = "fits") -> str:
    """Return the message for a library of an extra that is not installed, with the cure."""
    return f'{library} is not installed; pip install "hpcrowd[{extra}]"'
