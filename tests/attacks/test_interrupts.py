"""Ctrl-C ends every command at once, its workers with it; and no command is silent for long."""

import os
import pty
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tests.attacks.test_kills import BEFORE_US
from tests.scenarios.sweeps.sweep_cases import SCENARIO, write_busy, write_study

#: Multiplies the number of interruptions.
ATTACK = int(os.environ.get("HPCROWD_ATTACK", "1"))

#: Seconds in which a command must end; a second on a machine that does nothing else.
SOON = 3.0

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")

#: Commands that take seconds on the log.
COMMANDS = {
    "replay": "replay big.swf --out run",
    "users": "replay big.swf --users think-time --json",
    "plans": "replay late.swf --scheduler conservative --json",
    "stats": "stats big.swf --out stats.html",
    "convert": "convert big.swf big.parquet",
    "clean": "clean big.swf --flurries 50/1h -o clean.swf.gz",
    "sessions": "sessions big.swf",
    "fit": "fit comprehensive big.swf -o model.json",
    "generate": "generate lublin --processors 64 --jobs 400000 -o made.swf.gz",
    "predict": "predict big.swf",
    "validate": "validate big.swf",
    "grid": "grid das3",
    "demo": "demo",
    "resample": "resample big.swf --json",
    "sweep": "sweep study.toml --out sweep --workers 2",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a log, one whose queue grows, and a study."""
    made = tmp_path_factory.mktemp("interrupts")
    write_busy(made, 60_000, name="big.swf", gap=1200, size=64)
    write_busy(made, 8_000, name="late.swf", gap=0, size=64)
    write_study(made, SCENARIO + "\n[axes]\nseed = 2000\n")
    return made


def started(words, folder, **environment):
    """Begin a command of hpcrowd as the leader of its own group of processes."""
    return subprocess.Popen(
        [sys.executable, "-m", "hpcrowd", *words],
        cwd=folder,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def processes_with(mark):
    """Return the running processes whose environment holds a text."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended, or is somebody else's
            held = mark.encode() in (folder / "environ").read_bytes()
            if held and (folder / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                found.append(int(folder.name))
    return found


def left_after(seconds, mark):
    """Return the processes with a mark that have not ended by themselves after some seconds."""
    deadline = time.monotonic() + seconds
    while (left := processes_with(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


@pytest.mark.endurance
@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_ends_a_command(folder, name):
    """At a random moment, from its start on: one line, exit code 130, and nothing is left."""
    chance = random.Random(f"{name} {ATTACK}")
    for round_ in range(2 * ATTACK):
        number = signal.SIGTERM if round_ % 3 == 2 else signal.SIGINT
        at = chance.uniform(0.3, 5.0 if round_ % 2 else 1.5)
        mark = f"mark-{os.getpid()}-{time.monotonic_ns()}"
        process = started(COMMANDS[name].split(), folder, HPCROWD_MARK=mark)
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=at)
            continue
        os.killpg(process.pid, number)
        sent = time.monotonic()
        printed, _ = process.communicate(timeout=60)
        about = f"after {at:.2f} s: {printed}"
        if any(one in printed for one in BEFORE_US):
            continue
        assert time.monotonic() - sent < SOON, about
        if process.returncode:  # else it had just ended
            assert (130 if number == signal.SIGINT else 143) == process.returncode, about
        assert "Traceback" not in printed, about
        assert "Exception ignored" not in printed, about
        assert [] == left_after(5, mark), about
        assert [] == [path.name for path in folder.iterdir() if path.name.startswith(".")], about


HALF = """
import os, signal, time

try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.05)
except KeyboardInterrupt:
    raise ImportError("initialization failed") from None
"""

IMPORTING = """
import time
from hpcrowd.scenarios.interrupts import watch

watch.begin()
try:
    import half
    time.sleep(5)
except KeyboardInterrupt:
    print("interrupted once imported")
"""


def test_an_import_ends_before_an_interruption(tmp_path):
    """Extension modules make an ImportError of it, as scipy does."""
    (tmp_path / "half.py").write_text(HALF)
    assert ("interrupted once imported\n", "", 0) == outcome(IMPORTING, tmp_path)


TURNED = """
import os, signal, time
from hpcrowd.scenarios import cli
from hpcrowd.scenarios.interrupts import watch

def outcome():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    except KeyboardInterrupt:
        raise ValueError("Invalid bounding box") from None

watch.begin()
cli._outcome = outcome
cli.main()
"""


def test_an_interruption_may_become_another_error(tmp_path):
    """As in the compiled code of matplotlib; the command was interrupted all the same."""
    assert ("", "hpcrowd: interrupted; nothing was written\n", 130) == outcome(TURNED, tmp_path)


@pytest.mark.endurance
@pytest.mark.parametrize("name", ["replay", "stats"])
def test_no_command_is_silent(folder, monkeypatch, name):
    """On a terminal something happens every other second."""
    monkeypatch.chdir(folder)
    heard = [time.monotonic()]

    def read(terminal):
        found = os.read(terminal, 65536)
        heard.append(time.monotonic())
        return found

    assert 0 == pty.spawn([sys.executable, "-m", "hpcrowd", *COMMANDS[name].split()], read)
    assert max(np.diff(heard)) < 4  # s; two on a machine that does nothing else


@pytest.mark.endurance
@pytest.mark.parametrize(
    "executor",
    [
        "processes",
        pytest.param(
            "dask", marks=pytest.mark.skipif(find_spec("distributed") is None, reason="no Dask")
        ),
    ],
)
def test_workers_end_with_a_killed_parent(folder, executor):
    """Workers whose parent was killed end within seconds by themselves, and print nothing."""
    mark = f"mark-{os.getpid()}-{executor}"
    words = ["sweep", "study.toml", "--out", f"out-{executor}", "--executor", executor]
    begun = started([*words, "--workers", "2"], folder, HPCROWD_MARK=mark)
    deadline = time.monotonic() + 60
    finished = folder / f"out-{executor}" / "index.jsonl"
    # One that waits for its work from multiprocessing would print how it ends.
    while not (finished.exists() and finished.read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert 4 <= len(processes_with(mark))  # this process, two workers, and multiprocessing's own
    begun.kill()
    printed, _ = begun.communicate()
    assert [] == left_after(15, mark)
    assert "Traceback" not in printed


LOST = """
import os, signal, time
from hpcrowd.scenarios.interrupts import watch

watch.begin()
class One:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
try:
    One()
    time.sleep(5)
except KeyboardInterrupt:
    print("raised", watch.code)
"""


def test_an_interruption_is_not_lost(tmp_path):
    """One that comes where Python can only ignore it, as in a destructor, is raised again."""
    assert ("raised 130\n", "", 0) == outcome(LOST, tmp_path)


def test_a_call_that_does_not_return_is_ended(tmp_path):
    """A library that never runs Python code again cannot keep the program from ending."""
    kept = tmp_path / "half.tmp"
    kept.touch()
    script = (
        "import numpy as np, os, signal, threading\n"
        "from pathlib import Path\n"
        "from hpcrowd.environment.output import whole\n"
        "from hpcrowd.scenarios.interrupts import watch\n"
        "watch.begin()\n"
        f"whole._temporary[Path({str(kept)!r})] = Path({str(tmp_path / 'half')!r})\n"
        "many = np.random.default_rng(1).random(30_000_000)\n"
        "threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "many.sort(kind='stable')\n"  # some seconds
    )
    assert ("", "hpcrowd: interrupted\n", 130) == outcome(script, tmp_path)
    assert not kept.exists()


def outcome(script, folder):
    """Run a script; return what it printed, its errors and its exit code."""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    return done.stdout, done.stderr, done.returncode
