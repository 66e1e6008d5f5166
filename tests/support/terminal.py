"""Run a command on a pseudo-terminal: how it ends after a signal, and how long it is silent."""

import os
import pty
import select
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.places import ROOT

SOURCES = ROOT / "src"


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int  # minus the signal that killed it
    took_s: float
    after_s: float | None  # from the signal to the end; None if it had ended before
    silence_s: float  # the longest time without output
    printed: str


def on_terminal(
    words: Sequence[str],
    folder: Path,
    *,
    at: float | None = None,
    number: int = signal.SIGINT,
    limit: float = 120,
    more: Mapping[str, str] | None = None,
) -> Ended:
    """Run a command of hpcrowd; send all its processes a signal ``at`` s after the beginning."""
    began = time.monotonic()
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.environ.update({"PYTHONPATH": str(SOURCES), "COLUMNS": "100", **(more or {})})
        os.execv(sys.executable, [sys.executable, "-m", "hpcrowd", *words])
    printed, last, silence = b"", began, 0.0
    sent: float | None = None
    while True:
        now = time.monotonic()
        if at is not None and sent is None and now - began >= at:
            os.killpg(process, number)
            sent = now
        if now - began > limit:
            os.killpg(process, signal.SIGKILL)
        found = b""
        if select.select([terminal], [], [], 0.02)[0]:
            try:
                found = os.read(terminal, 65536)
            except OSError:  # the last process has closed it
                break
            if not found:
                break
            printed += found
        now = time.monotonic()
        silence = max(silence, now - last)
        last = now if found else last
    status = os.waitpid(process, 0)[1]
    os.close(terminal)
    now = time.monotonic()
    return Ended(
        os.waitstatus_to_exitcode(status),
        now - began,
        None if sent is None else now - sent,
        silence,
        printed.decode(errors="replace"),
    )


def processes_with(mark: str) -> list[int]:
    """Return the running processes whose environment holds a text."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            held = mark.encode() in (folder / "environ").read_bytes()
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:  # it has just ended, or is somebody else's
            continue
        if held and state not in "ZX":
            found.append(int(folder.name))
    return found
