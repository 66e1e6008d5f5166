"""Names in a log as numbers, and back: users, groups, programs, queues, partitions.

The fields of a trace are numbers. Names in a log are numbered from 1 on, in the order in which
they first appear, and :attr:`names` keeps the name of each number.
If all words of a column are whole numbers, they are kept.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.traces.trace import Trace

#: Largest exact integer: fields are read as floating point numbers.
LARGEST_EXACT = 2**53

#: Fields whose numbers can have names.
NAMED = ("user", "group", "executable", "queue", "partition")

#: Fields with names of people, which :func:`anonymised` replaces.
OF_PEOPLE = ("user", "group", "executable")

#: Columns of :attr:`Trace.extra` that are only about machines. All others are removed with the
#: names of people, because your own columns may hold anything.
OF_MACHINES = frozenset((
    "allocated_resources", "consumed_energy", "energy", "last_run_site", "orig_site",
    "requested_local_disk", "requested_network", "requested_platform", "used_local_disk",
    "used_network",
))  # fmt: skip

#: Hexadecimal digits of a pseudonym: 48 bits, so that a collision among a million users is rare.
PSEUDONYM = 12

#: Number of values of a column that are Python objects at one time while it is written.
BLOCK = 2**16

#: Words that mean unknown.
NOTHING = frozenset(("", "-1", "(null)", "None", "null", "N/A", "n/a", "Unknown", "unknown", "-"))

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,14}")


def numbered(codes: NDArray[Any], words: Sequence[str]) -> tuple[Int64s, dict[int, str]]:
    """Return words as numbers, and the names of the numbers.

    Parameters
    ----------
    codes
        Index of each job's word in ``words``, negative if it has none; shape (jobs,).
    words
        The distinct words, in the order in which they first appear.

    Returns
    -------
    numbers, names
        Shape (jobs,), -1 where the word means unknown (:data:`NOTHING`); and names by number,
        empty if all words are whole numbers, which are kept.
    """
    telling = [word for word in words if word not in NOTHING]
    if all(_WHOLE.fullmatch(word) for word in telling):
        numbers = [UNKNOWN if word in NOTHING else int(word) for word in words]
        names: dict[int, str] = {}
    else:
        places = {word: number for number, word in enumerate(telling, start=1)}
        numbers = [places.get(word, UNKNOWN) for word in words]
        names = {number: word for word, number in places.items()}
    table = np.array([*numbers, UNKNOWN], np.int64)
    return table[np.where(np.asarray(codes) < 0, len(numbers), codes)], names


def numbered_words(words: Sequence[str]) -> tuple[Int64s, dict[int, str]]:
    """Return the words of all jobs as numbers, and the names: see :func:`numbered`."""
    places: dict[str, int] = {}
    codes = np.array([places.setdefault(word, len(places)) for word in words], np.int64)
    return numbered(codes, list(places))


def numbered_fields(
    words: Mapping[str, Sequence[str]],
) -> tuple[dict[str, Int64s], dict[str, dict[int, str]]]:
    """Return the words of all jobs as numbers, by field, and the names of fields that have some."""
    columns: dict[str, Int64s] = {}
    names: dict[str, dict[int, str]] = {}
    for field, told in words.items():
        columns[field], found = numbered_words(told)
        if found:
            names[field] = found
    return columns, names


def worded(trace: Trace, name: str, nothing: str = "-1") -> list[str]:
    """Return the values of a field as words, shape (jobs,): names if known, else numbers."""
    names = trace.names.get(name, {})
    values = trace[name].tolist()
    if not names:
        return [nothing if value == UNKNOWN else number_text(value) for value in values]
    return [
        nothing if value == UNKNOWN else names.get(value) or number_text(value) for value in values
    ]


def in_blocks(values: NDArray[Any]) -> Iterator[Any]:
    """Yield the values of an array as Python numbers, with few of them in memory at a time."""
    for begin in range(0, len(values), BLOCK):
        yield from values[begin : begin + BLOCK].tolist()


def job_texts(trace: Trace, most: float = np.inf) -> list[str]:
    """Return the numbers of jobs, if they are whole, distinct, and up to ``most``; else places."""
    numbers = trace["number"]
    fine = (numbers > 0) & (numbers <= most) & (numbers == np.floor(numbers))
    if fine.all() and len(np.unique(numbers)) == len(trace):
        return [number_text(number) for number in numbers.tolist()]
    return [str(place) for place in range(1, len(trace) + 1)]


def number_text(value: float) -> str:
    """Return the shortest text of a number that reads back as the same number."""
    return str(int(value)) if value == int(value) else repr(value)


def known(values: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Return which texts of a column of :attr:`Trace.extra` are not empty."""
    return np.array([value != "" for value in values], bool)


def anonymised(trace: Trace, salt: str | None = None) -> Trace:
    """Return ``trace`` with pseudonyms instead of the names of people, their groups and programs.

    Without a salt they get numbers alone, from 1 on in the order of first appearance. Else a
    pseudonym is the beginning of the HMAC-SHA256 of the name, keyed with the salt: a name gets the
    same pseudonym in every log that is anonymised with the same salt, and without the salt nobody
    can test guesses of names. Numbers are then assigned in the order of the pseudonyms, so that
    neither the numbers of the log nor the order of first submissions remains.
    Text columns beyond the fields are removed, with the identifiers of jobs, except
    :data:`OF_MACHINES`. Header and comments stay.
    """
    columns, names = dict(trace.columns), dict(trace.names)
    for field in OF_PEOPLE:
        words = worded(trace, field, "")
        table = {word: word for word in words if word}
        if salt is not None:
            table = {word: pseudonym(field, word, salt) for word in table}
        known = table if salt is None else sorted(set(table.values()))
        places = {name: number for number, name in enumerate(known, start=1)}
        numbers = [places[table[word]] if word else UNKNOWN for word in words]
        columns[field] = np.array(numbers, np.int64)
        names.pop(field, None)
        if salt is not None:
            names[field] = {number: name for name, number in places.items()}
    extra = {name: values for name, values in trace.extra.items() if name in OF_MACHINES}
    return replace(trace, columns=columns, names=names, extra=extra)


def forget_names(jobs: JobTable) -> None:
    """Give users, groups and programs of a table numbers from 1 on, and jobs none of their names.

    What :func:`anonymised` does with a trace, for jobs that come from no trace. What they ask of
    nodes, such as an account, is forgotten, too.
    """
    jobs.requests = None
    for name in OF_PEOPLE:
        column: Int64s = getattr(jobs, name)
        known = column != UNKNOWN
        column[known] = np.unique(column[known], return_inverse=True)[1] + 1
    jobs.names = {
        name: words for name, words in jobs.names.items() if name in ("queue", "partition")
    }


def pseudonym(field: str, word: str, salt: str) -> str:
    """Return the pseudonym of a name."""
    return hmac.new(salt.encode(), f"{field}:{word}".encode(), hashlib.sha256).hexdigest()[
        :PSEUDONYM
    ]


def names_table(trace: Trace) -> str:
    """Return names as CSV, ``field,number,name``, with the identifiers of jobs if there are any."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("field", "number", "name"))
    for field in NAMED:
        names = trace.names.get(field, {})
        rows.writerows((field, number, names[number]) for number in sorted(names))
    if "job_id" in trace.extra:
        pairs = zip(trace["number"].tolist(), trace.extra["job_id"], strict=True)
        rows.writerows(("job", number_text(number), name) for number, name in pairs)
    return text.getvalue()


def parse_names(text: str, source: str = "names") -> dict[str, dict[int, str]]:
    """Return the names in a text of :func:`names_table`, by field and number.

    Identifiers of jobs are left out. Raises TraceError if a line is not a field, a number and a
    name.
    """
    found: dict[str, dict[int, str]] = {}
    for place, row in enumerate(csv.reader(io.StringIO(text)), start=1):
        if place == 1 or row[:1] == ["job"]:
            continue
        try:
            field, number, name = row
            names = found.setdefault(field, {})
            names[int(number)] = name
        except ValueError:
            raise TraceError(
                f"{source}, line {place}: {','.join(row)!r} is not field,number,name"
            ) from None
    return found


def parse_numbers(words: Sequence[bytes]) -> NDArray[np.float64] | None:
    """Return words as numbers, or None if one of them is not a finite, exact number."""
    try:
        values = np.array([float(word) for word in words], np.float64)
    except ValueError:
        return None
    good = np.all(np.abs(values) <= LARGEST_EXACT) and b"_" not in b" ".join(words)
    return values if good else None


def is_number(word: bytes) -> bool:
    """Return whether a word is a finite number that is exact as a floating point number."""
    try:
        return abs(float(word)) <= LARGEST_EXACT and b"_" not in word
    except ValueError:
        return False


def is_large(word: bytes) -> bool:
    """Return whether a word is a number, but too large to be exact or to be finite."""
    try:
        number = float(word)
    except ValueError:
        return False
    return abs(number) > LARGEST_EXACT and word.lstrip(b"+-")[:1].isdigit() and b"_" not in word


def elapsed(begin: NDArray[Any], end: NDArray[Any]) -> NDArray[Any]:
    """Return the time from ``begin`` to ``end``, -1 where either is unknown; shape (jobs,)."""
    return np.where((begin != UNKNOWN) & (end != UNKNOWN), end - begin, UNKNOWN)


def plain(text: str) -> str:
    """Return a text as one line, without control characters and with single blanks."""
    text = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(text.split())
