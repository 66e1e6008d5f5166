"""Compiled code is kept, made again when a source changes or a file is damaged, or not kept."""

import ast
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numba
import pytest
from hpcrowd.environment.compilation import ENDING, MARK, SOURCES, KeptCode

from tests.support.places import ROOT

#: What a process says once that compiles for more than a second.
COMPILING = "Compiling the simulation, once on this machine (a minute or two at most) ..."

#: Runs two jobs and prints how often the loop was found compiled, and the starts.
SCRIPT = """
import numpy as np
from hpcrowd import JobTable
from hpcrowd.environment.engine.kernel import loop
from hpcrowd.environment.engine.compiled import CompiledEngine
jobs = JobTable(2)
jobs.processors[:] = jobs.run_time[:] = jobs.requested_time[:] = 1
engine = CompiledEngine(jobs, 1, "easy")
engine.submit(np.arange(2), 0)
engine.advance()
found = sum(loop.advance.stats.cache_hits.values())
print(found, *jobs.start)
"""

#: The same of the predictors, whose compiled code is in another folder.
PREDICTORS = """
import numpy as np
from hpcrowd import JobTable
from hpcrowd.environment.schedulers.predictors.kernel.prediction import meet_all
from hpcrowd.environment.schedulers.predictors.last_two import LastTwo
predictor = LastTwo()
predictor.begin(JobTable(2))
predictor.arrived(np.arange(2), 0)
print(sum(meet_all.stats.cache_hits.values()))
"""

#: A module with a small compiled function, which calls another.
SMALL = """
from hpcrowd.environment.compilation import compiled
@compiled
def twice(number):
    return 2 * number
@compiled
def more(number):
    return twice(number) + 1
"""

#: Prints the result, and how often the code was found.
CALL = """
import small
print(small.more(3))
print(sum(small.more.stats.cache_hits.values()) if hasattr(small.more, "stats") else "")
"""


@pytest.fixture
def copy(tmp_path):
    """A copy of the package, whose sources a test may change."""
    package = tmp_path / "hpcrowd"
    shutil.copytree(
        ROOT / "src/hpcrowd", package, ignore=shutil.ignore_patterns("__pycache__"), symlinks=False
    )
    return tmp_path


@pytest.fixture
def small(tmp_path):
    """A folder with the small module."""
    (tmp_path / "small.py").write_text(SMALL)
    return tmp_path


def environment(**more):
    """Return the environment of a process that keeps code next to its sources."""
    mine = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA")}
    return mine | more


def run(folder, script=SCRIPT, says=None, **more):
    """Run a script in a folder in its own process; check what it says if that is known."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.strip() in (("", COMPILING) if says is None else (says,))
    assert 0 == done.returncode
    return done.stdout.split()


def call(folder, **more):
    """Call the small function in its own process."""
    return run(folder, CALL, PYTHONPATH=str(ROOT / "src"), **more)


@pytest.mark.slow
def test_code_is_compiled_once(copy):
    """The first process compiles and says so, the second finds the code."""
    assert ["0", "0", "1"] == run(copy, says=COMPILING)
    assert ["1", "0", "1"] == run(copy, says="")


@pytest.mark.slow
@pytest.mark.parametrize("source", ["engine/kernel/heap.py", "jobs.py"])
def test_changed_sources_are_compiled_again(copy, source):
    """A change in a file that the loop only calls into counts too, which numba would not see."""
    run(copy)
    kept = set(copy.rglob(f"*{ENDING}"))
    change(copy, source)
    assert ["0", "0", "1"] == run(copy)
    assert not kept & set(copy.rglob(f"*{ENDING}"))


@pytest.mark.slow
def test_predictors_are_compiled_again(copy):
    """A change counts for the compiled code in other folders as well."""
    assert ["0"] == run(copy, PREDICTORS)
    assert ["1"] == run(copy, PREDICTORS)
    change(copy, "schedulers/predictors/kernel/experience.py")
    assert ["0"] == run(copy, PREDICTORS)


def change(folder, source):
    """Change a file, without a change of what it does."""
    path = folder / "hpcrowd/environment" / source
    path.write_text(path.read_text() + "# changed\n")


def test_all_sources_count():
    """What compiled code imports is among the sources of which a change is noticed."""
    imported = set()
    for path in (ROOT / "environment").glob("**/kernel/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hpcrowd"):
                base = (node.module or "").removeprefix("hpcrowd.environment.").replace(".", "/")
                names = [f"{base}/{alias.name}.py" for alias in node.names]
                modules = [name for name in names if (ROOT / "environment" / name).exists()]
                imported.update(modules or [f"{base}.py"])
    assert set(SOURCES) == {name for name in imported if "/kernel/" not in name}


def is_whole(path):
    """Return whether the content of a file is what its checksum promises."""
    content = path.read_bytes().removeprefix(MARK)
    return hashlib.sha256(content[32:]).digest() == content[:32]


def cut(path):
    """Keep the first half of a file."""
    os.truncate(path, path.stat().st_size // 2)


def garble(path):
    """Change bytes in the middle of a file, the machine code."""
    content = bytearray(path.read_bytes())
    for place in range(len(content) // 3, 2 * len(content) // 3, 7):
        content[place] ^= 0xFF
    path.write_bytes(content)


def replace_by_folder(path):
    """Put a folder in the place of a file."""
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut": cut,
    "garbled": garble,
    "empty": lambda path: os.truncate(path, 0),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "another version": lambda path: path.write_bytes(
        path.read_bytes().replace(b"code 1", b"code 9", 1)
    ),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "a folder": replace_by_folder,
}


@pytest.mark.slow
def test_damaged_code_is_made_again(small):
    """Whatever happened to its file, code is compiled again, and found by the next process."""
    other = str(small / "other")
    assert ["7", "0"] == call(small, XDG_CACHE_HOME=other)
    assert ["7", "1"] == call(small, XDG_CACHE_HOME=other)
    for name, damage in DAMAGES.items():
        files = list(small.glob(f"__pycache__/*{ENDING}"))
        assert files, name
        for path in files:
            damage(path)
        assert "0" == call(small, XDG_CACHE_HOME=other)[-1], name
        if name != "a folder":  # then the next place is used
            assert all(is_whole(path) for path in files), name
    assert "1" == call(small, XDG_CACHE_HOME=other)[-1]
    assert 2 == len(list(small.glob(f"other/**/*{ENDING}")))


@pytest.mark.slow
def test_of_several_processes_one_compiles(small):
    """The others wait and find the code; one whole file of each function is left."""
    begun = [
        subprocess.Popen(
            [sys.executable, "-c", CALL],
            cwd=small,
            env=environment(PYTHONPATH=str(ROOT / "src")),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(4)
    ]
    printed = [one.communicate()[0].split() for one in begun]
    assert [0] * 4 == [one.returncode for one in begun]
    assert ["7"] * 4 == [words[0] for words in printed]
    assert ["0", "1", "1", "1"] == sorted(words[-1] for words in printed)
    left = sorted(path.name for path in (small / "__pycache__").iterdir())
    kept = [name for name in left if name.endswith(ENDING)]
    assert ["small.more", "small.twice"] == [name.split(".py")[0] for name in kept]
    assert [] == [name for name in left if name.startswith(".")]


@pytest.mark.slow
def test_a_process_that_is_killed_holds_nobody_up(small):
    """What it locked while it compiled is free when it ends."""
    script = """
import fcntl, os, small
from hpcrowd.environment.compilation import KeptCode
def killed(self, name, content):
    os.kill(os.getpid(), 9)
KeptCode._keep = killed
small.more(3)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=small, env=environment(PYTHONPATH=str(ROOT / "src"))
    )
    assert -9 == done.returncode
    assert list(small.glob("__pycache__/.*.lock"))
    assert ["7", "0"] == call(small)


@pytest.fixture
def nowhere(small):
    """Variables with which no folder for code can be written, whoever runs the test."""
    (small / "__pycache__").write_text("not a folder\n")
    (small / "file").touch()
    return dict.fromkeys(("HOME", "XDG_CACHE_HOME", "TMPDIR"), str(small / "file/none"))


def test_nowhere_to_keep_code(small, nowhere):
    """Code is compiled and used, and one line says what that costs and what helps."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", CALL],
        cwd=small,
        env=environment(PYTHONPATH=str(ROOT / "src"), **nowhere),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ["7", "0"] == done.stdout.split()
    (line,) = (one for one in done.stderr.splitlines() if one != COMPILING)
    assert line.startswith("hpcrowd: compiled code cannot be kept (")
    assert "each run compiles anew" in line
    assert "set NUMBA_CACHE_DIR to a folder that can be written" in line


@pytest.mark.slow
def test_a_folder_may_be_given(small, nowhere):
    """NUMBA_CACHE_DIR comes first; without a home and next to read-only sources it is enough."""
    given = small / "given/deep"
    more = {**nowhere, "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": str(given)}
    assert ["7", "0"] == call(small, **more)
    assert ["7", "1"] == call(small, **more)
    assert 2 == len(list(given.rglob(f"*{ENDING}")))


def test_a_file_in_the_working_folder_names_no_folder(monkeypatch):
    """Compiled code is believed, and numba takes settings from a file that anybody may bring."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "/their/folder")
    kept = KeptCode(test_a_file_in_the_working_folder_names_no_folder)
    assert str(Path(__file__).parent / "__pycache__") == kept.cache_path


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become an unprivileged user")
def test_code_of_the_owner_serves_others(small):
    """A user who may only read finds the code that the owner of the installation compiled."""
    call(small)
    kept = {path: path.stat().st_mtime_ns for path in small.glob(f"__pycache__/*{ENDING}")}
    assert all(path.stat().st_mode & 0o044 == 0o044 for path in kept)
    for folder in (small, *list(small.parents)[:3]):
        if folder.stat().st_uid == 0 and folder != Path(folder.anchor):
            folder.chmod(folder.stat().st_mode | 0o055)
    # The process drops its rights when numba has compiled: the interpreter may be unreadable.
    first = "import multiprocessing, os, numba, small\nnumba.njit(lambda x: x)(1)\n"
    script = f"{first}os.setuid(65534)\n{CALL}"
    nobody = {"HOME": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent/cache"}
    done = run(small, script, PYTHONPATH=str(ROOT / "src"), **nobody)
    assert ["7", "1"] == done
    assert kept == {path: path.stat().st_mtime_ns for path in kept}


@pytest.mark.slow
def test_without_compilation(small):
    """With NUMBA_DISABLE_JIT the Python functions run, and nothing is said to be compiled."""
    assert ["7"] == call(small, NUMBA_DISABLE_JIT="1")
    assert [] == list(small.glob(f"__pycache__/*{ENDING}"))
