r"""Workloads of Batsim: JSON with jobs and profiles.

::

    {"nb_res": 100,
     "jobs": [
      {"id": "1", "subtime": 0, "walltime": 90, "res": 4, "profile": "delay60", "user": 7},
      ...],
     "profiles": {
      "delay60": {"type": "delay", "delay": 60}}}

A profile of type ``delay`` is a run time, and so is a sequence of them. The time of all other types
depends on the platform, so their run time is unknown.

Batsim passes any other key of a job on to the scheduler. So the whole trace is written under the
names of :data:`FIELDS` and of the columns of other formats, and its header as a list of lines:
reading it back gives the same trace. Batsim's own five keys hold what Batsim can run. Where the
trace differs (no processors, no submission time, a run time that is 0 or unknown), the value is
under our key, which counts when the file is read.

Source: documentation of Batsim (Workload), and the demands of its reader (``Job::from_json``,
``Profile::from_json``): numbers of resources are whole, walltimes -1 or positive, delays positive.
"""

from __future__ import annotations

import json
import json.scanner
import re
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from hpcrowd.environment.errors import ParseError, TraceError
from hpcrowd.environment.files import check_characters
from hpcrowd.environment.header import Header
from hpcrowd.environment.traces.formats.common.base import Format, FormatOptions, Losses
from hpcrowd.environment.traces.formats.common.files import LONGEST_DOCUMENT, json_keys, shown
from hpcrowd.environment.traces.formats.common.names import (
    LARGEST_EXACT,
    NAMED,
    NOTHING,
    known,
    number_text,
    numbered_fields,
    worded,
)
from hpcrowd.environment.traces.headers import made_header
from hpcrowd.environment.traces.trace import FIELDS, Trace, all_columns

#: Most digits of a whole number; longer ones are read as floating point, and may be infinite.
LONGEST_INTEGER = 18

#: Types that wait for ``delay`` s: up to version 4 of Batsim, and later.
DELAYS = ("delay", "DelayProfile")

#: Types that run the profiles in the list ``seq``, ``repeat`` times.
SEQUENCES = ("composed", "SequentialCompositionProfile")

#: Most characters of a type's name in messages.
LONGEST_TYPE = 40

#: Keys of a job that Batsim reads, and their fields.
JOB_KEYS = {"id": "number", "subtime": "submit", "walltime": "requested_time",
            "res": "requested_processors", "profile": "run"}  # fmt: skip

#: Most other keys that are kept: each becomes a column of all jobs, and a file may have many.
MOST_COLUMNS = 100

#: Most digits of an id that is taken as a whole number.
LONGEST_NUMBER = 15

#: Delay in Batsim, s, of a job that did not run or ran for 0 s: delays must be positive.
SHORTEST_DELAY = 0.001

_TEXT_OR_CONSTANT = re.compile(rb'"(?:[^"\\]|\\.)*"|(-?Infinity|NaN)')


class _Constant(ValueError):
    """NaN or Infinity, which Python's reader accepts although JSON has no such numbers."""


def parse_json(data: bytes, source: str) -> Any:
    """Return the values in JSON text.

    Raises ParseError, which names the line, if it is malformed, and TraceError if it is nested too
    deeply.
    """
    try:
        text = data.decode()
        found = json.loads(text, parse_constant=_refuse, parse_int=_integer)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        rule = "not UTF-8, the encoding of JSON"
        raise ParseError(source, line, None, shown(data[error.start : error.end]), rule) from None
    except json.JSONDecodeError as error:
        rest = data.decode()[error.pos : error.pos + 80].split("\n")[0]
        rule = f"column {error.colno}: not JSON: {error.msg}"
        value = shown(rest.encode("ascii", "replace"))
        raise ParseError(source, error.lineno, None, value, rule) from None
    except _Constant:
        found = next(match for match in _TEXT_OR_CONSTANT.finditer(data) if match[1])
        line = data.count(b"\n", 0, found.start()) + 1
        rule = "not a number; numbers in JSON are finite"
        raise ParseError(source, line, None, shown(found[1]), rule) from None
    except RecursionError:
        raise TraceError(f"{source}: is nested too deeply to be read") from None
    try:
        check_characters(text, found)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{source}: {error}; its other half must follow") from None
    return found


def _refuse(constant: str) -> None:
    raise _Constant(constant)


def _integer(text: str) -> float:
    return int(text) if len(text) <= LONGEST_INTEGER else float(text)


def line_of(data: bytes, job: int) -> int:
    """Return the line of a job in the list; 1 if it cannot be found."""
    begins: dict[int, int] = {}

    class Placed(json.JSONDecoder):
        def __init__(self) -> None:
            super().__init__(parse_int=_integer)
            parse: Any = getattr(self, "parse_object")  # noqa: B009 (not in the stubs)

            def parse_placed(text_and_end: Any, *rest: Any) -> Any:
                value, end = parse(text_and_end, *rest)
                begins[id(value)] = text_and_end[1]
                return value, end

            self.parse_object: Any = parse_placed
            make: Any = json.scanner.py_make_scanner  # type: ignore[attr-defined]
            self.scan_once = make(self)

    text = data.decode()
    try:
        begin = begins[id(Placed().decode(text)["jobs"][job])]
    except (RecursionError, KeyError, IndexError, TypeError, ValueError):
        return 1
    return text.count("\n", 0, begin) + 1


def run_times(profiles: dict[str, Any]) -> tuple[dict[str, float], dict[str, str]]:
    """Return run times, s, and types by profile, given what JSON has of each.

    A profile without a known run time has -1. A sequence has the type of its part with unknown run
    time, if there is one.
    """
    times: dict[str, float] = {}
    kinds: dict[str, str] = {}
    for first in profiles:
        stack = [first]
        entered: set[str] = set()
        while stack:
            name = stack[-1]
            profile = profiles.get(name)
            if name in times:
                stack.pop()
                continue
            parts = _parts(profile)
            missing = [part for part in parts if part not in times]
            if missing and name not in entered:
                entered.add(name)
                stack += dict.fromkeys(missing)
                continue
            stack.pop()
            times[name], kinds[name] = _told(profile, parts, times, kinds)
    return times, kinds


def _parts(profile: Any) -> list[str]:
    """Return the names of the profiles that a sequence is made of."""
    if not isinstance(profile, dict) or profile.get("type") not in SEQUENCES:
        return []
    parts = profile.get("seq")
    return [str(part) for part in parts] if isinstance(parts, list) else []


def _told(
    profile: Any, parts: list[str], times: dict[str, float], kinds: dict[str, str]
) -> tuple[float, str]:
    """Return the run time and the type of a profile, from those of its parts."""
    kind = profile.get("type") if isinstance(profile, dict) else None
    word = kind[:LONGEST_TYPE] if isinstance(kind, str) and kind.isprintable() else "unknown"
    time: Any = -1
    if kind in DELAYS:
        time = profile.get("delay")
    elif kind in SEQUENCES:
        repeat = profile.get("repeat", 1)
        for part in parts:
            if times.get(part, -1) < 0:  # unknown, or a sequence that contains itself
                return -1.0, kinds.get(part, word)
        if type(repeat) in (int, float) and parts:
            time = sum(times[part] for part in parts) * repeat
    if type(time) not in (int, float) or not 0 <= time <= LARGEST_EXACT:
        return -1.0, word
    return float(time), word


class WorkloadReader:
    """Makes a trace from the jobs and profiles of a document.

    Parameters
    ----------
    data, source
        The content of the file, and its name in messages.
    document
        The parsed content: ``jobs`` (objects, or else an error) and ``profiles`` by name.
    """

    def __init__(self, data: bytes, source: str, document: Any) -> None:
        self._data, self._source, self._document = data, source, document
        self._jobs, self._profiles = document["jobs"], document["profiles"]
        self._repaired: Counter[str] = Counter()

    def trace(self) -> Trace:
        """Return the trace.

        Raises
        ------
        TraceError, ParseError
            If something is wrong with a job; the error names the line.
        """
        for place, job in enumerate(self._jobs):
            if not isinstance(job, dict):
                raise TraceError(f"{self._source}: job {place + 1} of the list is not an object")
        columns: dict[str, Any] = {name: self._own(name) for name in FIELDS if name not in NAMED}
        words, names = numbered_fields(
            {name: [_text(job.get(name)) for job in self._jobs] for name in NAMED}
        )
        columns |= words
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
        return Trace(
            header,
            all_columns(columns, len(self._jobs)),
            comments,
            source=self._source,
            names=names,
            extra=extra,
            repaired=self._repaired,
        )

    def _own(self, name: str) -> Any:
        """Return a field under its own name; words that are not numbers are unknown and counted."""
        values = [job.get(name, -1) for job in self._jobs]
        good = [_is_number(value) for value in values]
        if not all(good):
            self._repaired[f"{name} is not a number: unknown"] += len(good) - sum(good)
        return np.array([v if g else -1 for v, g in zip(values, good, strict=True)], np.float64)

    def _required(self, key: str) -> Any:
        for place, job in enumerate(self._jobs):
            if not _is_number(job.get(key)):
                self._refuse(place, key, "not a number, which Batsim requires")
            if key == "res" and not (job[key] >= 0 and job[key] % 1 == 0):
                self._refuse(place, key, "not a whole number from 0 on, which Batsim requires")
        return np.array([job[key] for job in self._jobs], np.float64)

    def _walltimes(self) -> Any:
        """Return the time limits of jobs, s, -1 for no limit."""
        values = [job.get("walltime", -1) for job in self._jobs]
        for place, value in enumerate(values):
            if not _is_number(value) or not (value == -1 or value > 0):
                self._refuse(place, "walltime", "neither positive nor -1 for none")
        return np.array(values, np.float64)

    def _runs(self) -> Any:
        """Return the run times of jobs, s, from their profiles; -1 if unknown."""
        for place, job in enumerate(self._jobs):
            name = job.get("profile")
            if not isinstance(name, str) or not isinstance(self._profiles.get(name), dict):
                self._refuse(place, "profile", "no profile has this name")
        times, kinds = run_times(self._profiles)
        runs = np.array([times[job["profile"]] for job in self._jobs], np.float64)
        for place in np.flatnonzero(runs < 0).tolist():
            if "run" not in self._jobs[place]:
                kind = kinds[self._jobs[place]["profile"]]
                self._repaired[f"profile of type {kind} has no run time: unknown"] += 1
        return runs

    def _numbers(self, own: Any) -> tuple[Any, list[str]]:
        """Return job numbers, and the ids that differ from the number."""
        ids = []
        for place, job in enumerate(self._jobs):
            value = job.get("id")
            if not isinstance(value, str) and not _is_number(value):
                self._refuse(place, "id", "neither text nor a number")
            ids.append(_text(value))
        if again := first_repeat(ids):
            before, place = again
            rule = f"the id of another job, too: line {line_of(self._data, before)}; ids are unique"
            self._refuse(place, "id", rule)
        told = np.array(["number" in job for job in self._jobs], bool)
        rest = np.flatnonzero(~told)
        found, texts = numbered_ids([ids[place] for place in rest])
        more = np.full(len(ids), "", np.object_)
        own[rest], more[rest] = found, texts
        return own, more.tolist()

    def _extra(self, ids: list[str]) -> dict[str, Any]:
        """Return the keys that neither Batsim nor a trace knows, as texts, shape (jobs,)."""
        ours = {*FIELDS, *JOB_KEYS}
        keys = [
            key for key in dict.fromkeys(k for job in self._jobs for k in job) if key not in ours
        ]
        if len(keys) > MOST_COLUMNS:
            rest = set(keys[MOST_COLUMNS:])
            reason = f"more than {MOST_COLUMNS} different keys: the others ignored"
            self._repaired[reason] = sum(not rest.isdisjoint(job) for job in self._jobs)
        columns = {key: [_text(job.get(key)) for job in self._jobs] for key in keys[:MOST_COLUMNS]}
        if any(ids):
            told = columns.get("job_id", [""] * len(ids))
            columns["job_id"] = [one or other for one, other in zip(told, ids, strict=True)]
        return {key: np.array(texts, np.object_) for key, texts in columns.items() if any(texts)}

    def _header(self, columns: dict[str, Any]) -> tuple[Header, list[tuple[int, bytes]]]:
        """Return the header that was written with the jobs, else one that describes the machine."""
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
        made = made_header(jobs=len(self._jobs), notes=notes, processors=size, overuse=False)
        return made, comments

    def _refuse(self, place: int, key: str, rule: str) -> None:
        line = line_of(self._data, place)
        value, name = (self._jobs[place].get(one) for one in (key, "id"))
        if key != "id" and (_is_number(name) or (isinstance(name, str) and name.isprintable())):
            rule = f"job {_text(name)[:LONGEST_TYPE]}: {rule}"
        raise ParseError(
            self._source, line, key, shown(_text(value).encode("ascii", "replace")), rule
        )


def first_repeat(ids: Sequence[Hashable]) -> tuple[int, int] | None:
    """Return the places of an id and of its first repetition; None if all are distinct."""
    if len(set(ids)) == len(ids):
        return None
    places: dict[Hashable, int] = {}
    return next((places[one], place) for place, one in enumerate(ids)
                if places.setdefault(one, place) != place)  # fmt: skip


def numbered_ids(ids: list[str]) -> tuple[Any, list[str]]:
    """Return job ids, ``17`` or ``w0!17``, as numbers, and those that are more than a number.

    The numbers are the whole ones at the ends of the ids if they are distinct, else places counted
    from 1; of an id that is only the number the second is "". Shapes (jobs,).
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


def _parse(data: bytes, source: str, options: FormatOptions) -> Trace:
    if not data.strip():
        raise TraceError(f"{source}: is empty; a workload of Batsim has jobs and profiles")
    document = parse_json(data, source)
    told = document if isinstance(document, dict) else {}
    if not isinstance(told.get("jobs"), list) or not isinstance(told.get("profiles"), dict):
        raise TraceError(
            f"{source}: not a workload of Batsim, which has a list jobs and a map profiles"
        )
    if not told["jobs"]:
        raise TraceError(f"{source}: contains no jobs")
    try:
        return WorkloadReader(data, source, told).trace()
    except RecursionError:
        raise TraceError(f"{source}: a job is nested too deeply to be read") from None


def _generate(trace: Trace, lost: Losses, options: FormatOptions) -> bytes:
    """Return a workload with one job per line, and one profile for each run time."""
    words = {}
    odd = NOTHING - {"-1"}
    for name in NAMED:
        words[name] = worded(trace, name)
        lost.add(name, sum(w in odd for w in words[name]), "a word that means unknown")
    extra = {}
    for name, texts in trace.extra.items():
        if name in FIELDS or name in JOB_KEYS:
            lost.add(name, known(texts), "the name has another meaning in this format")
        elif known(texts).any():
            extra[name] = texts.tolist()
    for name in list(extra)[MOST_COLUMNS:]:
        lost.add(name, known(trace.extra[name]), f"more than {MOST_COLUMNS} columns")
        del extra[name]
    values = {name: trace[name].tolist() for name in FIELDS if name not in NAMED}
    numbers: Counter[float] = Counter(values["number"])
    delays: dict[str, float] = {}
    largest = 1
    jobs = []
    for place in range(len(trace)):
        row = {name: column[place] for name, column in values.items() if column[place] != -1}
        job, delay = _job(row, place, numbers)
        largest = max(largest, job["res"])
        delays[job["profile"]] = delay
        job |= {name: _brief(value) for name, value in row.items()}
        for name in NAMED:
            word = words[name][place]
            if word != "-1":
                job[name] = word if trace.names.get(name) else _brief(trace[name][place].item())
        job |= {name: column[place] for name, column in extra.items() if column[place]}
        jobs.append(json.dumps(job))
    document: dict[str, Any] = {
        "nb_res": trace.header.processors or max(largest, trace.size.processors or 1),
        "header": [line.decode("utf-8", "surrogateescape") for line in trace.header.lines],
    }
    if trace.comments:
        comments = [
            (place, line.decode("utf-8", "surrogateescape")) for place, line in trace.comments
        ]
        document["comments"] = comments
    profiles = [
        f"{json.dumps(name)}: " + json.dumps({"type": "delay", "delay": delay})
        for name, delay in delays.items()
    ]
    parts = [json.dumps({key: value})[1:-1] for key, value in document.items()]
    parts.append('"jobs": [\n' + ",\n".join(jobs) + "\n]")
    parts.append('"profiles": {\n' + ",\n".join(profiles) + "\n}")
    return ("{" + ",\n".join(parts) + "}\n").encode()


def _job(
    row: dict[str, float], place: int, numbers: Counter[float]
) -> tuple[dict[str, Any], float]:
    """Return the keys of a job that Batsim reads, with its delay in s.

    Values that these keys hold exactly are removed from ``row``; our own keys hold the rest.
    """
    submit, run = row.get("submit", -1), row.get("run", -1)
    number, walltime = row.get("number", -1), row.get("requested_time", -1)
    requested = row.get("requested_processors", -1)
    job: dict[str, Any] = {}
    if 0 <= number < 10**LONGEST_NUMBER and number == int(number) and numbers[number] == 1:
        job["id"] = number_text(row.pop("number"))
    else:
        job["id"] = f"line{place + 1}"
        row["number"] = number
    job["subtime"] = _brief(max(submit, 0))
    row.pop("submit", None)
    if submit < 0:
        row["submit"] = submit
    if walltime > 0:
        job["walltime"] = _brief(row.pop("requested_time"))
    size = requested if requested > 0 else row.get("allocated_processors", -1)
    job["res"] = max(int(-(-size // 1)), 1)
    row.pop("requested_processors", None)
    if job["res"] != requested:
        row["requested_processors"] = requested
    delay = _brief(run if run > 0 else SHORTEST_DELAY)
    job["profile"] = f"delay{number_text(delay)}"
    row.pop("run", None)
    if run <= 0:
        row["run"] = run
    return job, delay


def _brief(value: float) -> float:
    return int(value) if value == int(value) else value


def _looks_like(head: bytes) -> bool:
    """Return whether it is JSON with the keys of workloads, or of their jobs."""
    keys = json_keys(head)
    whole = not keys.get("", frozenset()).isdisjoint(("nb_res", "profiles"))
    return whole or {"id", "subtime"} <= keys.get("jobs", frozenset())


#: Workloads of Batsim.
BATSIM = Format(
    "batsim",
    "workload of Batsim (JSON)",
    (".json",),
    _looks_like,
    _parse,
    _generate,
    longest_line=LONGEST_DOCUMENT,
)

parse_batsim, generate_batsim = BATSIM.parse, BATSIM.generate
read_batsim, write_batsim = BATSIM.read, BATSIM.write
