"""The folder of a sweep: locked by one sweep, with complete files, and no run done twice.

============== ====================================================================================
study.json     the study: scenario, axes, checksums of inputs, versions; which results are written
index.jsonl    one line for each finished run, as they came; rebuilt from ``runs`` if damaged
runs/          one Parquet file for each run: its numbers, with their provenance in the metadata
jobs/          with ``keep = "jobs"``, one Parquet file for each run: its jobs
inputs/        what workers share while the sweep runs
frame.parquet  one row for each run, in the order of the design; the same in frame.csv
summary.csv    means, differences and their intervals
*.png          pictures
.lock          held by the running sweep; the system releases it when that ends
============== ====================================================================================

Each file and line has a checksum somewhere: what is damaged is done again. Other files stay.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.environment.files import json_of
from hpcrowd.environment.limits.inputs import read_text
from hpcrowd.environment.output.guard import checksum_of, checksum_of_values, forced
from hpcrowd.environment.output.whole import remove_killed, temporary_folder
from hpcrowd.environment.quantities import plural
from hpcrowd.scenarios.outputs import land_bytes
from hpcrowd.scenarios.sweeps.worker import DONE, Outcome, files_of, files_sum, kept_row
from hpcrowd.scenarios.unfinished import line_of, wire_of

#: Format of a folder; raised when a version can no longer continue what an older one began.
FORMAT = 1


#: Names of the files of runs and inputs, unfinished ones too.
OF_RUN = re.compile(r"([0-9a-f]{20})\.parquet")
OF_INPUT = re.compile(r"[0-9a-f]{20}(-[0-9a-f]{16})?\.shared")
OF_KILLED = re.compile(r"\.[0-9a-f-]{20,37}\.(parquet|shared)\..+\.\d+\.tmp")

#: Files that every sweep writes, and that must not be there before.
RESERVED = ("index.jsonl", "frame.csv", "frame.parquet", "summary.csv")


@dataclass
class SweepFolder:
    """The folder of a sweep, locked."""

    path: Path  #: where it is
    states: dict[str, str] = field(default_factory=dict)  #: state of each finished run, by its key
    #: Checksums of the tables and pictures in it, by name, several while they are replaced; None if
    #: it does not say.
    results: dict[str, list[str]] | None = field(default_factory=dict)
    identity: Mapping[str, Any] = field(default_factory=dict)  #: of the study

    @property
    def index(self) -> Path:
        """The list of finished runs."""
        return self.path / "index.jsonl"

    @property
    def study(self) -> Path:
        """The description of the study."""
        return self.path / "study.json"

    def begin(self, identity: Mapping[str, Any], *, resume: bool) -> list[str]:
        """Make the folder ready for a study, or for the rest of it; return notes for the user.

        The identity of the study has ``base`` (settings), ``axes`` (names), ``inputs`` and
        ``versions`` by name, fit for JSON. It is an error if the folder holds something else, an
        input or results have changed, or there are runs and ``resume`` is false. Notes are on other
        versions and damaged files.
        """
        self.identity = json.loads(json.dumps(identity, default=str))  # in the form of the file
        notes = self._read_study() if self.study.exists() else self._check_free()
        self._check_results(self.results or ())
        notes += self._read_index()
        if not resume:
            self.check_new(self.states)
        # The study is written first, to identify the folder even if nothing else gets done.
        self._write_study()
        remove_killed(self.path, inside=True)
        self.remove_inputs()  # of a sweep that was killed: they may be damaged
        for name in ("runs", "inputs", "jobs"):
            (self.path / name).mkdir(exist_ok=True)
            _remove(self.path / name, OF_KILLED)
        return notes

    def check_new(self, states: Mapping[str, str] | None = None) -> None:
        """Check that there are no runs, by the index unless their ``states`` are given."""
        if states is None:
            states = {key: outcome.state for key, outcome in self.outcomes().items()}
        if states:
            finished = sum(state == DONE for state in states.values())
            raise HpcrowdError(
                f"{self.path}: holds {plural(finished, 'finished run')} already; add --resume to "
                "continue, or choose another --out"
            )

    def remove_inputs(self) -> None:
        """Remove what workers share, and the folder if nothing else is in it."""
        inputs = self.path / "inputs"
        if inputs.is_dir():
            _remove(inputs, OF_INPUT)
            _remove(inputs, OF_KILLED)
            with suppress(OSError):
                inputs.rmdir()

    def _read_study(self) -> list[str]:
        """Check that the folder is of this study; return notes."""
        try:
            before = json_of(read_text(self.study))
            # None: of earlier versions
            whole = before.pop("sum", None) in (None, checksum_of_values(before))
        except (OSError, ValueError, TypeError, AttributeError):
            whole = False
        if not whole:
            if not any(kept_row(self.path, key) for key in self._keys()):
                raise HpcrowdError(
                    f"{self.study}: damaged, and no run is kept with it; remove it, or choose "
                    "another --out"
                )
            self.results = None
            return [f"{self.study} was damaged and is written again"]
        try:
            notes = _same_study(self.path, before, self.identity)
            kept = before.get("results")
            self.results = None if kept is None else {name: [*of] for name, of in kept.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise HpcrowdError(
                f"{self.study}: damaged ({type(error).__name__}); choose another --out"
            ) from None
        return notes

    def _check_free(self) -> list[str]:
        """Check that a folder without a study may become that of one."""
        others = [one.name for one in self.path.iterdir() if not one.name.startswith(".")]
        if others and not forced():
            raise HpcrowdError(
                f"{self.path}: holds {others[0]} and is not the folder of a sweep; choose "
                "another --out, or write next to it with --force"
            )
        self._check_results(RESERVED)
        return []

    def _write_study(self) -> None:
        content = {"format": FORMAT, **self.identity}
        if self.results is not None:
            content["results"] = self.results
        text = json.dumps(content | {"sum": checksum_of_values(content)}, indent=2)
        land_bytes(self.study, f"{text}\n".encode())

    def _check_results(self, names: Iterable[str], new: Path | None = None) -> None:
        """Check that files are as hpcrowd wrote them, absent, or the same as new ones."""
        for name in names:
            path = self.path / name
            if not os.path.lexists(path) or (self.results is None and path.is_file()):
                continue
            own = [] if self.results is None else self.results.get(name, [])
            same = [] if new is None else [checksum_of(new / name)]
            if path.is_symlink() or not path.is_file() or checksum_of(path) not in (*own, *same):
                raise HpcrowdError(
                    f"{path}: is not as hpcrowd wrote it, and results would replace it; move it "
                    "away, or choose another --out"
                )

    def land(self, write: Callable[[Path], None]) -> None:
        """Put the tables and pictures that ``write`` writes into the folder, for earlier ones.

        A file with such a name that is of somebody else is an error.
        """
        try:
            with temporary_folder(self.path / "results") as place:
                write(place)
                new = {path.name: checksum_of(path) for path in sorted(place.iterdir())}
                self._check_results(new, place)
                before = self.results or {}
                # Whose they are is written first, so that it is known wherever this is killed.
                self.results = before | {
                    name: sorted({*before.get(name, ()), one}) for name, one in new.items()
                }
                self._write_study()
                for name in new:
                    (place / name).replace(self.path / name)
                self.results |= {name: [one] for name, one in new.items()}
                self._write_study()
        except OSError as error:
            raise HpcrowdError(
                f"{self.path}: cannot be written: {error.strerror or error}"
            ) from error

    def _keys(self) -> set[str]:
        """Return the keys of the runs that have a file."""
        runs = self.path / "runs"
        names = (OF_RUN.fullmatch(one.name) for one in (runs.iterdir() if runs.is_dir() else ()))
        return {name[1] for name in names if name}

    def _read_index(self) -> list[str]:
        """Read the index, and correct it by the files of the runs; return notes on damage."""
        there, damaged = self._keys(), set()
        lines, torn = [], False
        for outcome, line in self._lines():
            key = "" if outcome is None else outcome.key
            if outcome is None or (outcome.state == DONE and key not in there):
                torn = True
                continue
            if outcome.state == DONE and outcome.files not in ("", files_sum(self.path, key)):
                torn = True
                damaged.add(key)
                continue
            lines.append(line)
            self.states[key] = outcome.state
        found = sorted(key for key in there if self.states.get(key) != DONE)
        for key in found:
            row = None if key in damaged else kept_row(self.path, key)
            if row is None:
                damaged.add(key)
                files_of(self.path, key)[0].unlink()
                continue
            done = Outcome(key, DONE, row, files=files_sum(self.path, key))
            lines.append(line_of(asdict(done)))
            self.states[key] = DONE
        if torn or found:
            land_bytes(self.index, "".join(lines).encode())
        again = sorted(key for key in damaged if self.states.get(key) != DONE)
        return [f"run {key}: its file was damaged, so it is done again" for key in again]

    def _lines(self) -> Iterator[tuple[Outcome | None, str]]:
        """Yield the outcomes in the index with their lines; None for a damaged line."""
        if not self.index.exists():
            return
        with self.index.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    wire = wire_of(line) if line.endswith("\n") else None
                    yield None if wire is None else _outcome(wire), line
                except TypeError:
                    yield None, line

    def add(self, outcome: Outcome, file: TextIO) -> None:
        """Add a finished run to the index, an open file."""
        file.write(line_of(asdict(outcome)))
        file.flush()
        self.states[outcome.key] = outcome.state

    def outcomes(self) -> dict[str, Outcome]:
        """Return the last outcome of each run, by its key."""
        return {outcome.key: outcome for outcome, _ in self._lines() if outcome is not None}


def _remove(folder: Path, names: re.Pattern[str]) -> None:
    """Remove the files of a folder with names of this form."""
    for path in folder.iterdir():
        if names.fullmatch(path.name) and path.is_file():
            path.unlink(missing_ok=True)


@contextmanager
def locked(path: Path) -> Iterator[SweepFolder]:
    """Yield the folder of a sweep, locked so that no other sweep can use it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = (path / ".lock").open("a+", encoding="utf-8", errors="replace")
    except OSError as error:
        raise HpcrowdError(f"{path}: cannot be written: {error.strerror or error}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise HpcrowdError(
                    f"{path}: cannot be locked: {error.strerror}; choose a folder on a file system "
                    "that can"
                ) from error
            lock.seek(0)
            who = lock.read().strip() or "another process"
            raise HpcrowdError(
                f"{path}: in use by another sweep ({who}); wait for its end, or choose another "
                "--out"
            ) from None
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {socket.gethostname()}")
        lock.flush()
        yield SweepFolder(path)
        lock.truncate(0)


def _outcome(wire: dict[str, Any]) -> Outcome:
    """Return the outcome in a line of the index; a line with another form is a TypeError."""
    found = Outcome(**wire)
    values = (found.row or {}).values() if isinstance(found.row, dict | None) else [wire]
    if not isinstance(found.key, str) or not isinstance(found.state, str):
        raise TypeError("not the name and state of a run")
    if not all(isinstance(value, int | float | None) for value in values):
        raise TypeError("not the numbers of a run")
    return found


def _same_study(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Check that a folder is of the same study; return notes on permitted changes."""
    if before.get("format") != FORMAT:
        raise HpcrowdError(
            f"{path}: begun by another version (format {before.get('format')}, here {FORMAT}); "
            "choose another --out"
        )
    for name, checksum in now["inputs"].items():
        old = before["inputs"].get(name)
        if old is not None and old != checksum:
            raise HpcrowdError(
                f"{path}: {name} has changed since the sweep began (SHA-256 {old[:12]} then, "
                f"{checksum[:12]} now); put the old file back, or choose another --out"
            )
    varied = {*before["axes"], *now["axes"]}
    for name in (*before["base"], *now["base"]):
        old, new = before["base"].get(name), now["base"].get(name)
        if name not in varied and old != new:
            raise HpcrowdError(
                f"{path}: holds another study: {name} is {_short(old)} there and {_short(new)} "
                "here; choose another --out"
            )
    return [
        f"{name} was {before['versions'].get(name)} when the sweep began and is {version} now: "
        "runs of both may differ; the metadata of each file in runs/ has its version"
        for name, version in now["versions"].items()
        if before["versions"].get(name) != version
    ]


def _short(value: Any) -> str:
    text = json.dumps(value)
    return "not given" if value is None else text if len(text) <= 60 else text[:59] + "…"
