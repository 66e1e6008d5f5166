"""A made-up archive of two logs on a local server that can be made to misbehave."""

import csv
import gzip
import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from hpcrowd import fetch
from hpcrowd.errors import ArchiveError
from hpcrowd.traces import archive_logs

#: Header of the made-up logs.
HEADER = """; Version: 2.2
; Computer: Toy
; Installation: Toy Centre
; Acknowledge: Ada Example
; Copyright: may be copied
;   if this line is kept
; Information: http://toy.example/
;              of 4 processors
; MaxProcs: 4
"""


def text_of(jobs: int, gap_s: int) -> bytes:
    """Return a log as text; some of its numbers do not pack well, so that its file is not tiny."""
    numbers = np.random.default_rng(jobs).integers(1, 10**9, (jobs, 3))
    lines = [
        f"{row + 1} {row * gap_s} 0 {a % 5000} 1 {b} {c} 1 3600 -1 1 {row % 6 + 1} 1 -1 -1 -1 -1 -1"
        for row, (a, b, c) in enumerate(numbers)
    ]
    return (HEADER + "\n".join(lines) + "\n").encode()


#: Name, folder of the archive and content of each log: jobs by the minute, jobs by the day.
LOGS = {"TOY-A-1999-1": ("toy_a", text_of(2000, 60)), "TOY-B-1999-1": ("toy_b", text_of(30, 86400))}


def packed(name: str) -> bytes:
    """Return the file of a log."""
    return gzip.compress(LOGS[name][1], mtime=0)


def write_table(path: Path, base: str) -> None:
    """Write a table of these logs at an address."""
    columns = [*archive_logs()[0].__dataclass_fields__]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        for name, (place, text) in LOGS.items():
            row = {"name": name, "machine": "Toy", "processors": 4}
            row |= {"jobs": text.count(b"\n") - HEADER.count("\n")}
            row |= {"url": f"{base}/l_{place}/{name}.swf.gz"}
            for kind, content in (("", packed(name)), ("_unpacked", text)):
                row |= {f"bytes{kind}": len(content)}
                row |= {f"sha256{kind}": hashlib.sha256(content).hexdigest()}
            writer.writerow(row)


class Server(ThreadingHTTPServer):
    """Serves the logs, and notes what it was asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str | None]] = []  # path and Range header of each request
        self.files = {
            f"/l_{place}/{name}.swf.gz": packed(name) for name, (place, _) in LOGS.items()
        }
        self.statuses: list[int] = []  # answers to the next requests instead
        self.ranges = True  # whether it sends parts
        self.cut: list[int] = []  # sizes of the next answers, which end early
        self.stall = False  # stops half-way through an answer, until released
        self.shift = 0  # bytes that its parts begin too early
        self.released = threading.Event()

    @property
    def base(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """Answers one request as the server was set to."""

    server: Server

    def do_GET(self) -> None:
        """Send a file, or part of one."""
        server, wanted = self.server, self.headers["Range"]
        server.asked.append((self.path, wanted))
        content = server.files.get(self.path)
        if server.statuses or content is None:
            self.refuse(server.statuses.pop(0) if server.statuses else 404)
            return
        begin = 0
        if wanted and server.ranges:
            begin = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])  # type: ignore[index]
            if begin >= len(content):
                self.refuse(416, f"bytes */{len(content)}")
                return
            begin = max(begin - server.shift, 0)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        body = content[begin:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if server.stall:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            server.released.wait(30)
            return
        self.wfile.write(body[: server.cut.pop(0)] if server.cut else body)

    def refuse(self, status: int, content_range: str = "") -> None:
        """Send a status and nothing else."""
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "ftp://127.0.0.1/log.swf.gz")
        if content_range:
            self.send_header("Content-Range", content_range)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


#: The larger log, the size of its file, and where the server has it.
A = "TOY-A-1999-1"
SIZE = len(packed(A))
TARGET = f"/l_toy_a/{A}.swf.gz"


@contextmanager
def archive(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Serve the made-up archive in place of the real one; ``folder/cache`` is the cache."""
    with Server() as server:
        write_table(folder / "table.csv", server.base)
        monkeypatch.setattr("hpcrowd.environment.traces.archive.logs.TABLE", folder / "table.csv")
        monkeypatch.setenv("HPCROWD_CACHE", str(folder / "cache"))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.delenv("HPCROWD_ARCHIVE", raising=False)
        monkeypatch.delenv("HPCROWD_TRACES", raising=False)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            server.shutdown()
            thread.join()


def get(name: str = A, *, timeout_s: float = 5.0, retries: int = 0) -> Path:
    """Fetch a log, without patience."""
    return fetch(name, timeout_s=timeout_s, retries=retries, pause_s=0.01)


def refusal(call: Callable[[], object]) -> str:
    """Return the one line of the error that a call ends with."""
    with pytest.raises(ArchiveError) as caught:
        call()
    return str(caught.value)


def names(folder: Path) -> list[str]:
    """Return the names of all files in a folder."""
    return sorted(path.name for path in folder.iterdir())
