"""A cluster of a real batch system, brought up on this machine in a folder of its own."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

#: Accounts of every Debian that submit the jobs.
ADA, BOB = "games", "daemon"

#: Longest time for anything, s.
LONGEST = 120


def free_ports(count: int) -> list[int]:
    """Numbers of ports that nobody uses."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("", 0))
    ports: list[int] = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Cell(ABC):
    """Daemons in a folder, and commands that talk to them."""

    #: Files with the numbers of the daemons' processes, in the order in which they stop.
    files: tuple[str, ...]

    def __init__(self, root: Path) -> None:
        self.root = root
        self.env = {**os.environ, "HOME": "/tmp"}

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[Self]:
        """Start a cell in a new folder; stop it in the end."""
        root = Path(tempfile.mkdtemp(prefix="cell-"))
        root.chmod(0o755)
        cell = cls(root)
        try:
            cell.start()
            yield cell
        finally:
            cell.stop()
            shutil.rmtree(root, ignore_errors=True)

    @abstractmethod
    def start(self) -> None:
        """Write the files of the cell, and start its daemons."""

    @abstractmethod
    def states(self) -> dict[str, str]:
        """State of each job in the queue."""

    def run(self, *command: object, user: str | None = None) -> str:
        """Run a command as root or another user; return what it prints."""
        group = pwd.getpwnam(user).pw_gid if user else None
        done = subprocess.run(
            [str(word) for word in command], env=self.env, cwd="/tmp", text=True, check=False,
            capture_output=True, timeout=LONGEST, user=user, group=group,
            extra_groups=[] if user else None,
        )  # fmt: skip
        assert 0 == done.returncode, (command, done.stdout, done.stderr)
        return done.stdout

    def until(self, *command: object, longest: float = LONGEST, needed: bool = True) -> bool:
        """Run a command until it succeeds; return whether it did."""
        end = time.monotonic() + longest
        words = [str(word) for word in command]
        while subprocess.run(words, env=self.env, check=False, capture_output=True).returncode:
            if time.monotonic() > end:
                logs = [one.read_text(errors="replace")[-2000:] for one in self.root.glob("*.log")]
                assert not needed, "\n".join([f"{words} fails", *logs])
                return False
            time.sleep(0.2)
        return True

    def wait(self, job: str | None = None, state: str = "RUNNING") -> None:
        """Wait until a job has a state, or until nothing waits or runs."""
        end = time.monotonic() + LONGEST
        while (states := self.states()) and (job is None or states.get(job) != state):
            assert time.monotonic() < end, states
            time.sleep(0.2)

    def stop(self) -> None:
        """Stop the daemons; those that do not stop when asked to are killed."""
        for file in (file for name in self.files for file in self.root.glob(name)):
            process, end = int(file.read_text()), time.monotonic() + 20
            for sign in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.kill(process, sign)
                    while time.monotonic() < end and Path(f"/proc/{process}").exists():
                        time.sleep(0.1)
                except ProcessLookupError:
                    break
