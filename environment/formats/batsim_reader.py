"""A workload of Batsim as a trace: what each key of its JSON says of a job."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np

from environment.errors import ParseError, TraceError
from environment.formats.base import LARGEST_EXACT
from environment.formats.batsim_profiles import run_times
from environment.formats.files import shown
from environment.formats.headers import made_header
from environment.formats.json_text import line_of
from environment.formats.names import NAMED, number_text, numbered_words
from environment.trace import FIELDS, Header, Trace, smallest

#: Keys of a job that Batsim reads, and the fields that they are.
JOB_KEYS = {"id": "number", "subtime": "submit", "walltime": "requested_time",
            "res": "requested_processors", "profile": "run"}  # fmt: skip

#: Kinds of further keys that are kept; a file may have any number, each is a column of all jobs.
MOST_COLUMNS = 100

#: Digits of the longest whole number that an id is taken as.
LONGEST_NUMBER = 15


class WorkloadReader:
    """Makes a trace of the jobs and profiles of a document.

    Parameters
    ----------
    data, source
        The file, and what messages call it.
    document, jobs, profiles
        What it holds, with its jobs (objects, or else an error) and its profiles by name.
    """

    def __init__(
        self, data: bytes, source: str, document: Any, jobs: list[Any], profiles: dict[str, Any]
    ) -> None:
        self._data, self._source, self._document = data, source, document
        self._jobs, self._profiles = jobs, profiles
        self._repaired: Counter[str] = Counter()

    def trace(self) -> Trace:
        """Return the trace.

        Raises
        ------
        TraceError, ParseError
            What is wrong with a job, with its line.
        """
        for place, job in enumerate(self._jobs):
            if not isinstance(job, dict):
                raise TraceError(f"{self._source}: job {place + 1} of the list is no object")
        columns: dict[str, Any] = {}
        names: dict[str, dict[int, str]] = {}
        for name in FIELDS:
            if name in NAMED:
                columns[name], found = numbered_words([_text(job.get(name)) for job in self._jobs])
                if found:
                    names[name] = found
            else:
                columns[name] = self._own(name)
        batsim = {
            "submit": self._required("subtime"),
            "requested_time": self._walltimes(),
            "requested_processors": self._required("res"),
            "run": self._runs(),
        }
        for name, values in batsim.items():
            told = np.array([name in job for job in self._jobs], bool)
            columns[name] = np.where(told, columns[name], values)
        columns["number"], ids = self._numbers(columns["number"])
        extra = self._extra(ids)
        header, comments = self._header(columns)
        columns = {name: smallest(columns[name]) for name in FIELDS}
        return Trace(
            header, columns, comments, source=self._source, names=names, extra=extra,
            repaired=self._repaired,
        )  # fmt: skip

    def _own(self, name: str) -> Any:
        """Return a field under its own name; a word that is no number is unknown, and counted."""
        values = [job.get(name, -1) for job in self._jobs]
        good = [_is_number(value) for value in values]
        if not all(good):
            self._repaired[f"{name} is no number: unknown"] += len(good) - sum(good)
        return np.array([v if g else -1 for v, g in zip(values, good, strict=True)], np.float64)

    def _required(self, key: str) -> Any:
        for place, job in enumerate(self._jobs):
            if not _is_number(job.get(key)):
                self._refuse(place, key, "not a number; Batsim demands one")
        return np.array([job[key] for job in self._jobs], np.float64)

    def _walltimes(self) -> Any:
        """Return the most that jobs may run, s, -1 for no limit."""
        values = [job.get("walltime", -1) for job in self._jobs]
        for place, value in enumerate(values):
            if not _is_number(value) or not (value == -1 or value > 0):
                self._refuse(place, "walltime", "neither positive nor -1 for none")
        return np.array(values, np.float64)

    def _runs(self) -> Any:
        """Return what jobs run, s, from their profiles; -1 where these do not tell."""
        for place, job in enumerate(self._jobs):
            name = job.get("profile")
            if not isinstance(name, str) or not isinstance(self._profiles.get(name), dict):
                self._refuse(place, "profile", "no profile of this name")
        times, kinds = run_times(self._profiles)
        runs = np.array([times[job["profile"]] for job in self._jobs], np.float64)
        for place in np.flatnonzero(runs < 0).tolist():
            if "run" not in self._jobs[place]:
                kind = kinds[self._jobs[place]["profile"]]
                self._repaired[f"profile of type {kind} tells no run time: unknown"] += 1
        return runs

    def _numbers(self, own: Any) -> tuple[Any, list[str]]:
        """Return numbers of jobs, and their ids where these tell more than the number."""
        ids = []
        for place, job in enumerate(self._jobs):
            value = job.get("id")
            if not isinstance(value, str) and not _is_number(value):
                self._refuse(place, "id", "neither text nor a number")
            ids.append(_text(value))
        told = np.array(["number" in job for job in self._jobs], bool)
        rest = np.flatnonzero(~told)
        found, texts = numbered_ids([ids[place] for place in rest])
        more = np.full(len(ids), "", np.object_)
        own[rest], more[rest] = found, texts
        return own, more.tolist()

    def _extra(self, ids: list[str]) -> dict[str, Any]:
        """Return the keys that neither Batsim nor a trace has, as texts, shape (jobs,)."""
        ours = {*FIELDS, *JOB_KEYS}
        keys = [
            key for key in dict.fromkeys(k for job in self._jobs for k in job) if key not in ours
        ]
        if len(keys) > MOST_COLUMNS:
            rest = set(keys[MOST_COLUMNS:])
            reason = f"keys beyond the first {MOST_COLUMNS} kinds: ignored"
            self._repaired[reason] = sum(not rest.isdisjoint(job) for job in self._jobs)
        columns = {key: [_text(job.get(key)) for job in self._jobs] for key in keys[:MOST_COLUMNS]}
        if any(ids):
            told = columns.get("job_id", [""] * len(ids))
            columns["job_id"] = [one or other for one, other in zip(told, ids, strict=True)]
        return {key: np.array(texts, np.object_) for key, texts in columns.items() if any(texts)}

    def _header(self, columns: dict[str, Any]) -> tuple[Header, list[tuple[int, bytes]]]:
        """Return the header that was written with the jobs, else one that tells the machine."""
        lines, marks = self._document.get("header"), self._document.get("comments")
        comments = []
        if isinstance(marks, list):
            for mark in marks:
                match mark:
                    case [int(before), str(text)] if 0 <= before <= len(self._jobs):
                        comments += [(before, line) for line in _comment_lines(text)]
        comments.sort(key=lambda comment: comment[0])
        if isinstance(lines, list) and all(isinstance(line, str) for line in lines):
            return Header([line for text in lines for line in _comment_lines(text)]), comments
        processors = self._document.get("nb_res")
        if not _is_number(processors) or processors < 1:
            processors = None
        notes = ["from a workload of Batsim"]
        told = self._document.get("description")
        if isinstance(told, str) and told.isprintable():
            notes.append(told)
        size = None if processors is None else int(processors)
        return made_header(jobs=len(self._jobs), notes=notes, processors=size), comments

    def _refuse(self, place: int, key: str, rule: str) -> None:
        line = line_of(self._data, lambda document: document["jobs"][place])
        value = self._jobs[place].get(key)
        raise ParseError(
            self._source, line, key, shown(_text(value).encode("ascii", "replace")), rule
        )


def numbered_ids(ids: list[str]) -> tuple[Any, list[str]]:
    """Return ids of jobs as numbers, and the ids that say more.

    Parameters
    ----------
    ids
        Such as ``17`` or ``w0!17``, where a workload is named first.

    Returns
    -------
    numbers, more
        The whole numbers that ids end in, if these are different ones, else places counted from 1;
        and the ids, "" where they are just the number; shape (jobs,).
    """
    last = [text.rpartition("!")[2] for text in ids]
    whole = [word.isascii() and word.isdigit() and len(word) <= LONGEST_NUMBER for word in last]
    found = [int(word) for word in last] if all(whole) else []
    numbers = found if found and len(set(found)) == len(found) else range(1, len(ids) + 1)
    more = ["" if text == str(number) else text for text, number in zip(ids, numbers, strict=True)]
    return np.array(numbers, np.float64), more


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= LARGEST_EXACT


def _text(value: Any) -> str:
    """Return any value of JSON as text, "" for nothing."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return number_text(value) if _is_number(value) else json.dumps(value)


def _comment_lines(text: str) -> list[bytes]:
    """Return text as lines of a header, which begin with a semicolon or are blank."""
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = text.encode("utf-8", "replace")
    lines = data.split(b"\n")
    return [line if line.lstrip()[:1] in (b";", b"") else b"; " + line for line in lines]
