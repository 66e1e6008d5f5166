"""Commands that are killed at random moments: outputs are whole or absent, inputs unchanged."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hpcrowd.environment.output.guard import is_ours
from hpcrowd.environment.traces.formats.registry import read_trace

#: Factor on the number of kills.
ATTACK = int(os.environ.get("HPCROWD_ATTACK", "1"))

#: Kills of each command, after one run that is not killed.
KILLS = 4 * ATTACK

LOG = "; Version: 2.2\n; MaxProcs: 8\n" + "".join(
    f"{n} {n * 900} 0 {n * 37 % 600 + 10} {2 ** (n % 4)} -1 -1 {2 ** (n % 4)} 900 -1 1 {n % 5 + 1}"
    " 1 1 1 1 -1 -1\n"
    for n in range(1, 121)
)

COMMANDS = {
    "fit": "fit lublin c.swf -o out.json --force",
    "generate": "generate lublin --processors 8 --jobs 200 -o out.swf --force",
    "judge": "judge lublin c.swf --seeds 2 -o out.html --force",
    "stats": "stats c.swf -o out.html --force",
    "convert": "convert c.swf out.csv --force",
    "clean": "clean c.swf --larger -o out.swf --force",
    "window": "window c.swf --from 0d --to 1d -o out.swf --force",
    "sessions": "sessions c.swf --user 1 --png out.png --force",
    "replay": "replay c.swf --out out",
    "resample": "resample c.swf --days 1 --out out",
    "validate": "validate c.swf --users rigid --out out",
    "report": "report c.swf -o out.html --figures out",
    "compare": "compare c.swf c.swf --out out",
    "demo": "demo --days 1 --out out",
}


def whole(path: Path) -> bool:
    """Return whether a file or folder is complete."""
    if path.is_dir():
        return isinstance(json.loads((path / "provenance.json").read_text()), dict)
    if path.suffix in (".swf", ".csv"):
        return len(read_trace(path)) > 0
    text = path.read_bytes()
    ends = {".json": b"}\n", ".html": b"</html>\n", ".png": b"IEND\xaeB`\x82"}
    return is_ours(path) and text.endswith(ends[path.suffix])


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_killed_at_random(tmp_path: Path, command: str) -> None:
    """After each kill all is whole or absent, and no temporary file is left by a soft signal."""
    draw = random.Random(command)
    trace = tmp_path / "c.swf"
    trace.write_text(LOG)
    before = hashlib.sha256(trace.read_bytes()).digest()
    words = [sys.executable, "-m", "hpcrowd", *COMMANDS[command].split()]
    began = time.monotonic()
    subprocess.run(words, cwd=tmp_path, capture_output=True, check=True, timeout=120)
    longest = time.monotonic() - began
    for number in (draw.choice((signal.SIGINT, signal.SIGTERM, signal.SIGKILL))
                   for _ in range(KILLS)):  # fmt: skip
        present = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("out*")}
        process = subprocess.Popen(
            words, cwd=tmp_path, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        time.sleep(draw.uniform(0.15, 1.0) * longest)
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
        assert hashlib.sha256(trace.read_bytes()).digest() == before
        outputs = sorted(tmp_path.glob("out*"))
        assert all(whole(path) for path in outputs)
        if number != signal.SIGKILL:
            assert [] == list(tmp_path.glob(".*.tmp"))
        if "nothing was written" in said:
            assert present == {path.name: path.stat().st_mtime_ns for path in outputs}
    subprocess.run(words, cwd=tmp_path, capture_output=True, check=True, timeout=120)
    assert [] == list(tmp_path.glob(".*.tmp"))
