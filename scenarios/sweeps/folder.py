"""The folder of a sweep: locked by one sweep, with complete files, and no run done twice.

============== ====================================================================================
study.json     the study: scenario, axes, checksums of inputs, versions
index.jsonl    one line for each finished run, as they came; rebuilt from ``runs`` if damaged
runs/          one Parquet file for each run: its numbers, with their provenance in the metadata
jobs/          with ``keep = "jobs"``, one Parquet file for each run: its jobs
inputs/        what workers share while the sweep runs
frame.parquet  one row for each run, in the order of the design; the same in frame.csv
summary.csv    means, differences and their intervals
*.png          pictures
.lock          held by the running sweep; the system releases it when that ends
============== ====================================================================================
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.environment.files import json_of
from hpcrowd.environment.limits.inputs import read_text
from hpcrowd.environment.output.guard import forced
from hpcrowd.environment.output.whole import UNFINISHED
from hpcrowd.environment.quantities import plural
from hpcrowd.scenarios.outputs import land_bytes
from hpcrowd.scenarios.sweeps.worker import DONE, Outcome, read_row

#: Format of a folder; raised when a version can no longer continue what an older one began.
FORMAT = 1


@dataclass
class SweepFolder:
    """The folder of a sweep, locked.

    Attributes
    ----------
    path
        Where it is.
    states
        State of each finished run, by its key.
    """

    path: Path
    states: dict[str, str] = field(default_factory=dict)

    @property
    def index(self) -> Path:
        """The list of finished runs."""
        return self.path / "index.jsonl"

    def begin(self, identity: Mapping[str, Any], *, resume: bool) -> list[str]:
        """Make the folder ready for a study, or for the rest of it.

        Parameters
        ----------
        identity
            Of the study: ``base`` (settings), ``axes`` (names), ``inputs`` and ``versions`` by
            name, fit for JSON.
        resume
            Continue if there are runs already.

        Returns
        -------
        list of str
            Notes for the user: versions that changed.

        Raises
        ------
        HpcrowdError
            When the folder holds something else, an input has changed, or there are runs and
            ``resume`` is false.
        """
        named = self.path / "study.json"
        told: list[str] = []
        if named.exists():
            now = json.loads(json.dumps(identity, default=str))  # in the form that was written
            try:
                before = json_of(read_text(named))
                told = _same_study(self.path, before, now)
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                raise HpcrowdError(
                    f"{named}: damaged ({type(error).__name__}); choose another --out"
                ) from None
        elif not forced() and (
            others := [one.name for one in self.path.iterdir() if not one.name.startswith(".")]
        ):
            raise HpcrowdError(
                f"{self.path}: holds {others[0]} and is not the folder of a sweep; choose "
                "another --out, or write next to it with --force"
            )
        self._read_index()
        if self.states and not resume:
            raise HpcrowdError(
                f"{self.path}: holds {plural(len(self.states), 'run')} of this study already; add "
                "--resume to continue, or choose another --out"
            )
        # The study is written first, to identify the folder even if nothing else gets done.
        text = json.dumps({"format": FORMAT, **identity}, indent=2, default=str)
        land_bytes(named, f"{text}\n".encode())
        for name in ("runs", "inputs", "jobs"):
            (self.path / name).mkdir(exist_ok=True)
            for path in (self.path / name).glob(f".*{UNFINISHED}"):
                path.unlink(missing_ok=True)  # of a sweep that was killed
        return told

    def _read_index(self) -> None:
        """Read the index, and correct it by the files of the runs."""
        there = {path.stem for path in (self.path / "runs").glob("*.parquet")}
        lines, torn = [], False
        for outcome, line in self._lines():
            if outcome is None or (outcome.state == DONE and outcome.key not in there):
                torn = True
                continue
            lines.append(line)
            self.states[outcome.key] = outcome.state
        found = [key for key in sorted(there) if self.states.get(key) != DONE]
        for key in found:
            row = read_row(self.path / "runs" / f"{key}.parquet")
            lines.append(_line(Outcome(key, DONE, row)))
            self.states[key] = DONE
        if torn or found:
            land_bytes(self.index, "".join(lines).encode())

    def _lines(self) -> Iterator[tuple[Outcome | None, str]]:
        """Yield the outcomes in the index with their lines; None for a damaged line."""
        if not self.index.exists():
            return
        with self.index.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    yield _outcome(json_of(line)), line
                except (ValueError, TypeError):
                    yield None, line

    def add(self, outcome: Outcome, file: TextIO) -> None:
        """Add a finished run to the index, an open file."""
        file.write(_line(outcome))
        file.flush()
        self.states[outcome.key] = outcome.state

    def outcomes(self) -> dict[str, Outcome]:
        """Return the last outcome of each run, by its key."""
        return {outcome.key: outcome for outcome, _ in self._lines() if outcome is not None}


def _line(outcome: Outcome) -> str:
    return json.dumps(asdict(outcome), allow_nan=False) + "\n"


@contextmanager
def locked(path: Path) -> Iterator[SweepFolder]:
    """Yield the folder of a sweep, locked so that no other sweep can use it.

    Raises
    ------
    HpcrowdError
        When another sweep works there, or the folder cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = (path / ".lock").open("a+", encoding="utf-8")
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
