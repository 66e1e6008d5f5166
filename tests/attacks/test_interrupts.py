"""Ctrl-C ends every command at once, its workers with it; and no command is silent for long."""

import os
import random
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.environment.header import Header
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.environment.traces.trace import FIELDS, Trace

from tests.scenarios.sweeps.sweep_cases import SCENARIO, write_study
from tests.support.terminal import SOURCES, on_terminal, processes_with

#: Multiplies the number of interruptions.
ATTACK = int(os.environ.get("HPCROWD_ATTACK", "1"))

#: Seconds in which a command must end; a second on a machine that does nothing else.
SOON = 3.0

#: Seconds without any output; two on a machine that does nothing else.
SILENT = 4.0

#: Jobs of the log.
JOBS = 60_000

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


def write_log(path, jobs, gap):
    """Write a log of random jobs of 50 users on 64 processors, ``gap`` seconds apart."""
    chance = np.random.default_rng(5)
    run = chance.integers(1, 4000, jobs)
    columns = {name: np.full(jobs, -1) for name in FIELDS}
    columns |= {
        "number": np.arange(1, jobs + 1),
        "submit": np.cumsum(chance.integers(0, 2 * gap + 1, jobs)),
        "wait": chance.integers(0, 600, jobs),
        "run": run,
        "allocated_processors": chance.integers(1, 40, jobs),
        "requested_time": run * chance.integers(1, 9, jobs),
        "status": np.ones(jobs, np.int64),
        "user": chance.integers(1, 51, jobs),
    }
    write_swf(Trace(Header([b"; MaxProcs: 64"]), columns), path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a log, one whose queue grows, and a study."""
    made = tmp_path_factory.mktemp("interrupts")
    write_log(made / "big.swf", JOBS, 800)
    write_log(made / "late.swf", 8_000, 0)
    write_study(made, SCENARIO + "\n[axes]\nseed = 2000\n")
    return made


def check_interrupted(folder, command, at, number):
    """Interrupt a command and check how it ended; return how long that took."""
    mark = f"HPCROWD_MARK=mark-{os.getpid()}-{time.monotonic_ns()}"
    ended = on_terminal(command.split(), folder, at=at, number=number, more=dict([mark.split("=")]))
    if ended.after_s is None or ended.code == 0:
        return None  # it was faster
    about = f"{command} after {at:.2f} s: {ended}"
    assert (130 if number == signal.SIGINT else 143) == ended.code, about
    assert "Traceback" not in ended.printed, about
    assert "Exception ignored" not in ended.printed, about
    assert ended.after_s < SOON, about
    deadline = time.monotonic() + 5
    while (left := processes_with(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [] == left, about
    assert [] == [path.name for path in folder.iterdir() if path.name.startswith(".")], about
    return ended.after_s


@pytest.mark.endurance
@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_ends_a_command(folder, name):
    """At a random moment, from its start on: one line, exit code 130, and nothing is left."""
    chance = random.Random(f"{name} {ATTACK}")
    times = []
    for round_ in range(2 * ATTACK):
        number = signal.SIGTERM if round_ % 3 == 2 else signal.SIGINT
        at = chance.uniform(0.3, 5.0 if round_ % 2 else 1.5)
        times.append(check_interrupted(folder, COMMANDS[name], at, number))
    if any(times):
        print(f"{name}: {max(filter(None, times)):.2f} s at most")


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
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING], cwd=tmp_path, capture_output=True, text=True, timeout=30
    )
    assert ("interrupted once imported\n", "") == (done.stdout, done.stderr)


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
    done = subprocess.run(
        [sys.executable, "-c", TURNED], cwd=tmp_path, capture_output=True, text=True, timeout=30
    )
    assert (130, "hpcrowd: interrupted; nothing was written\n") == (done.returncode, done.stderr)


@pytest.mark.endurance
@pytest.mark.parametrize("name", ["replay", "stats"])
def test_no_command_is_silent(folder, name):
    """On a terminal something happens every other second."""
    ended = on_terminal(COMMANDS[name].split(), folder)
    assert 0 == ended.code
    assert ended.silence_s < SILENT


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
    begun = subprocess.Popen(
        [sys.executable, "-m", "hpcrowd", *words, "--workers", "2"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(SOURCES), "HPCROWD_MARK": mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while len(processes_with(mark)) < 4 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert 4 <= len(processes_with(mark))  # this process, two workers, and multiprocessing's own
    begun.kill()
    _, printed = begun.communicate()
    deadline = time.monotonic() + 15
    while (left := processes_with(mark)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [] == left
    assert "Traceback" not in printed


def test_an_interruption_is_not_lost(tmp_path):
    """One that comes where Python can only ignore it, as in a destructor, is raised again."""
    script = (
        "import os, signal, time\n"
        "from hpcrowd.scenarios.interrupts import watch\n"
        "watch.begin()\n"
        "class One:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "try:\n"
        "    One()\n"
        "    time.sleep(5)\n"
        "except KeyboardInterrupt:\n"
        "    print('raised', watch.code)\n"
    )
    assert ("raised 130\n", "", 0) == outcome(script)


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
    printed, errors, code = outcome(script)
    assert ("", 130) == (printed, code)
    assert "hpcrowd: interrupted\n" == errors
    assert not kept.exists()


def outcome(script):
    """Run a script; return what it printed, its errors and its exit code."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stdout, done.stderr, done.returncode
