"""Commands that are killed at random moments: outputs are whole or absent, inputs unchanged.

Every other kill waits until the command has begun to write.
"""

import hashlib
import os
import random
import shutil
import signal
import subprocess
import time
from contextlib import suppress

import pytest

from tests.support.writing import COMMANDS, FILES, run, whole, words_of

#: Factor on the number of kills.
ATTACK = int(os.environ.get("HPCROWD_ATTACK", "1"))

#: Kills of each command, after one run that is not killed.
KILLS = 3 * ATTACK

#: The same of the commands that take longest; 75 in all.
FEWER = dict.fromkeys(("judge", "stats", "gantt", "validate", "sweep", "reproduce"), 2 * ATTACK)


def files(folder):
    """Return when each file of the outputs in a folder was written; locks do not count."""
    found = (*folder.glob("out*"), *folder.glob("out*/**/*"))
    return {
        path: path.stat().st_mtime_ns for path in found if path.is_file() and path.name != ".lock"
    }


#: What Python prints if it is interrupted before it runs the program. The last: in a callback of
#: its own import, where the program's hook would have raised the interruption again.
BEFORE_US = (
    "Fatal Python error: init",
    "_get_module_details",
    '<frozen importlib._bootstrap>", line 82, in remove\nKeyboardInterrupt',
)


@pytest.mark.endurance
@pytest.mark.parametrize("command", COMMANDS)
def test_killed_at_random(tmp_path, command):
    """After each kill all is whole or absent, and no temporary file is left by a soft signal."""
    draw = random.Random(command)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    trace = tmp_path / "c.swf"
    before = hashlib.sha256(trace.read_bytes()).digest()
    began = time.monotonic()
    run(command, tmp_path)
    longest = time.monotonic() - began
    kills, most, attempt = 0, FEWER.get(command, KILLS), 0
    while kills < most:
        attempt += 1
        assert attempt < 10 * most
        if draw.random() < 0.4:
            for path in tmp_path.glob("out*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        number = draw.choice((signal.SIGINT, signal.SIGTERM, signal.SIGKILL))
        present = files(tmp_path)
        began = time.monotonic()
        process = subprocess.Popen(
            words_of(command),
            cwd=tmp_path,
            text=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        delay = draw.uniform(0.15, 1.0) * longest
        if attempt % 2:
            while process.poll() is None and not any(tmp_path.glob(".out*.tmp")):
                time.sleep(0.001)  # until it writes
            delay = draw.choice((0, draw.uniform(0, 0.02), draw.uniform(0, 0.3)))
        with suppress(subprocess.TimeoutExpired):
            process.wait(delay)
            longest = min(longest, time.monotonic() - began)
        kills += process.poll() is None
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
        assert hashlib.sha256(trace.read_bytes()).digest() == before
        outputs = sorted(tmp_path.glob("out*"))
        assert all(whole(path) for path in outputs)
        assert "Traceback" not in said or any(one in said for one in BEFORE_US)
        if number != signal.SIGKILL:
            assert [] == list(tmp_path.glob(f".*.{process.pid}.*tmp"))
        if "nothing was written" in said:
            assert present == files(tmp_path)
    run(command, tmp_path)
    assert [] == list(tmp_path.glob(".*.tmp"))
    assert all(whole(path) for path in tmp_path.glob("out*"))
