"""Forecasts again and again: the state is read anew, and earlier forecasts are checked.

The folder has ``latest/`` with the last forecast, ``forecasts.jsonl`` with what each forecast said
of each job that waited, and ``fared.jsonl`` with when the job has started, compared with that. A
line is added, never changed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.forecast.conformal import LEVELS
from hpcrowd.analysis.forecast.report import write
from hpcrowd.environment.clock import moment
from hpcrowd.environment.errors import HpcrowdError, QuantityError
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.limits.numbers import check_within
from hpcrowd.environment.quantities import plural
from hpcrowd.scenarios.terminal import say
from hpcrowd.scenarios.unfinished import line_of, wire_of

if TYPE_CHECKING:
    from hpcrowd.environment.state.state import ClusterState
    from hpcrowd.scenarios.forecasts.forecast import Forecast, Found

#: Shortest and longest time between two forecasts, s.
SHORTEST, LONGEST = 1, 7 * 86400

SAID, FARED, LATEST = "forecasts.jsonl", "fared.jsonl", "latest"

#: What each line of a file says.
KEYS = {
    SAID: {"job", "asked_at", "levels", "start"},
    FARED: {"job", "asked_at", "start", "median_error_s", "in_50", "in_90"},
}


def watch(given: Forecast, every: int, out: Path, rounds: int | None = None) -> None:
    """Forecast every few seconds until Ctrl-C, or for some rounds, and keep all in a folder.

    The files of the forecast are read anew each time. An HpcrowdError is raised if the state cannot
    be read the first time; later that is a line, and tried again.
    """
    check_within("watch", every, SHORTEST, LONGEST)
    if not isinstance(given.source, Path):
        raise QuantityError("--watch: needs a file that something writes anew, such as squeue")
    for name in (SAID, FARED):
        if (out / name).exists() and (out / name).stat().st_size and not any(_read(out / name)):
            raise HpcrowdError(
                f"{out / name}: holds no line that a watch wrote; choose another --out"
            )
    out.mkdir(parents=True, exist_ok=True)
    done = 0
    while rounds is None or done < rounds:
        began = time.monotonic()
        try:
            state = given.state()
            fared = check(state, out)
            found = given.run(state=state)
        except HpcrowdError as error:
            if not done:
                raise
            say(f"hpcrowd: {error}; trying again in {every} s")
        else:
            write(
                found.answers, out / LATEST, effects=found.effects, eaten=found.eaten,
                configuration=given.plain(), trace=given.source_account(),
                again=[replace(given).again(out)],
            )  # fmt: skip
            _append(out / SAID, _lines_of(state, found))
            say(_words(state, fared, out))
        done += 1
        if rounds is None or done < rounds:
            time.sleep(max(0.0, every - (time.monotonic() - began)))


def check(state: ClusterState, out: Path) -> int:
    """Note how earlier forecasts fared; return how many are new."""
    jobs = state.jobs
    started = {
        _name(state, row): int(jobs.recorded_start[row]) + state.clock.unix_start
        for row in np.flatnonzero(jobs.recorded_start != UNKNOWN).tolist()
    }
    known = {(line["job"], line["asked_at"]) for line in _read(out / FARED)}
    fresh = []
    for line in _read(out / SAID):
        key = line["job"], line["asked_at"]
        start = started.get(line["job"])
        if key in known or start is None or start < line["asked_at"]:
            continue
        low, lower, median, upper, high = line["start"]
        withheld = low is None and median is not None  # no bounds were promised
        fresh.append(
            {
                "job": line["job"], "asked_at": line["asked_at"], "start": start,
                "median_error_s": None if median is None else start - median,
                "in_50": None if withheld else _within(start, lower, upper),
                "in_90": None if withheld else _within(start, low, high),
            }
        )  # fmt: skip
    _append(out / FARED, fresh)
    return len(fresh)


def _within(start: int, low: int | None, high: int | None) -> bool:
    return (low is not None and start >= low) and (high is None or start <= high)


def _name(state: ClusterState, row: int) -> str:
    """Return what the resource manager calls a job, or its number."""
    number = int(state.jobs.number[row])
    return state.jobs.names.get("job", {}).get(number, str(number))


def _lines_of(state: ClusterState, found: Found) -> Iterator[dict[str, Any]]:
    """Yield what a forecast says of each waiting job; times are Unix seconds."""
    unix = state.clock.unix_start
    by_number = {int(state.jobs.number[row]): _name(state, row) for row in state.waiting.tolist()}
    for one in found.answers.jobs:
        if one.number is not None:
            yield {
                "job": by_number[one.number],
                "asked_at": state.now + unix,
                "levels": list(LEVELS),
                "start": [round(at) + unix if np.isfinite(at) else None for at in one.start],
            }


def _words(state: ClusterState, fared: int, out: Path) -> str:
    """Return a line about a forecast, and how those before have fared."""
    lines = list(_read(out / FARED))
    words = (
        f"{moment(state.clock, state.now)}: {plural(len(state.running), 'job')} running, "
        f"{len(state.waiting):,} waiting"
    )
    if not lines:
        return f"{words}; no forecast can be checked yet"
    promised = [line for line in lines if line["in_90"] is not None]
    inside = ""
    if promised:
        held = [100 * np.mean([one[name] for one in promised]) for name in ("in_90", "in_50")]
        inside = f": {held[0]:.0f} % within the 90 % bounds, {held[1]:.0f} % within the 50 % bounds"
    errors = [abs(one["median_error_s"]) for one in lines if one["median_error_s"] is not None]
    middle = f", median error {np.median(errors) / 60:.0f} min" if errors else ""
    return f"{words}; {fared:,} forecasts checked now, {len(lines):,} in all{inside}{middle}"


def _read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file; what is damaged, or not whole, is left out."""
    if path.exists():
        with path.open(encoding="utf-8", errors="replace") as file:
            wires = [wire_of(line) for line in file]
        yield from (one for one in wires if one is not None and KEYS[path.name] <= one.keys())


def _append(path: Path, lines: Any) -> None:
    """Add lines to a file, all at once, in the place of a last one that is not whole."""
    text = "".join(map(line_of, lines))
    if text:
        with path.open("a+b") as file:
            file.seek(0)
            before = file.read()
            file.truncate(before.rfind(b"\n") + 1)
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
