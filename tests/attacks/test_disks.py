"""Disks that are full or read-only, under every command that writes: all is whole or as before."""

import os
import random
import resource
import shutil
import subprocess
from functools import cache, partial

import pytest

from tests.support.writing import COMMANDS, FILES, run, whole, words_of

#: Factor on the number of full disks for each command.
ATTACK = int(os.environ.get("HPCROWD_ATTACK", "1"))

#: Commands that keep what is done, and go on from there.
KEEPING = ("sweep", "reproduce")

#: How to have a mount that ends with the process: as root, and without.
ALONE = (["unshare", "--mount"], ["unshare", "--mount", "--map-root-user"])

#: Mounts a small disk on the folder $1, copies $2 into it, leaves $3 pages free, and runs the rest.
FULL = """
mount -t tmpfs -o size=8m none "$1" && cp -a "$2/." "$1" && cd "$1" || exit 99
dd if=/dev/zero of=filler bs=4096 2> /dev/null
truncate -s -$((4096 * $3)) filler
after="$4"; shift 4; "$@"; code=$?
rm filler; cp -a . "$after"; exit $code
"""

#: Makes a copy of the folder $2 in $1 read-only, and runs the rest in it.
READ_ONLY = """
cp -a "$2/." "$1" && mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && cd "$1" || exit 99
after="$4"; shift 4; "$@"; code=$?
cp -a . "$after"; exit $code
"""


@pytest.fixture
def alone():
    """Words before a command that let it mount what others do not see."""
    for words in ALONE:
        if shutil.which(words[0]):
            mount = [*words, "mount", "-t", "tmpfs", "none", "/mnt"]
            if not subprocess.run(mount, capture_output=True, check=False, timeout=60).returncode:
                return words
    pytest.skip("this system does not let a process mount a disk of its own")


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Run a command once, and return the folder with its inputs and outputs."""

    @cache
    def make(command):
        folder = tmp_path_factory.mktemp(command)
        for name, text in FILES.items():
            (folder / name).write_text(text)
        run(command, folder)
        return folder

    return make


def copy(made, folder, *, old):
    """Copy a folder, with or without what the command wrote; return the sizes of that, bytes."""
    shutil.copytree(made, folder)
    outputs = list(folder.glob("out*"))
    inner = [one for path in outputs for one in path.glob("**/*")]
    sizes = [path.stat().st_size for path in (*outputs, *inner) if path.is_file()]
    for path in [] if old else outputs:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return sizes


def contents(folder):
    """Return every file of a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.glob("**/*")
        if path.is_file() and path.name != ".lock"
    }


def check(done, before, after, command):
    """Check that a command failed in one line, and left everything as it was."""
    said = [line for line in done.stderr.splitlines() if line.startswith("hpcrowd: ")]
    assert (2, 1) == (done.returncode, len(said)), done.stderr
    assert "Traceback" not in done.stderr
    assert any(word in said[0] for word in ("cannot be written", "cannot be locked")), said
    assert all(whole(path) for path in after.glob("out*"))
    assert [] == list(after.glob("**/.*.tmp"))
    if command not in KEEPING:
        assert contents(before) == contents(after)


@pytest.mark.endurance
@pytest.mark.parametrize("command", COMMANDS)
def test_limited_files(tmp_path, made, command):
    """A system that ends a file after some bytes is one line, and old outputs stay."""
    draw = random.Random(command)
    for turn in range(ATTACK):
        before, after = tmp_path / f"before{turn}", tmp_path / f"after{turn}"
        old = draw.random() < 0.5 and command not in KEEPING
        most = draw.randrange(max(copy(made(command), before, old=old)))
        shutil.copytree(before, after)
        limits = (most, resource.RLIM_INFINITY)
        done = subprocess.run(
            words_of(command), cwd=after, capture_output=True, text=True, check=False, timeout=60,
            preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, limits),
        )  # fmt: skip
        check(done, before, after, command)


@pytest.mark.endurance
@pytest.mark.parametrize("disk", ["full", "nearly full", "read-only"])
@pytest.mark.parametrize("command", COMMANDS)
def test_disks(tmp_path, alone, made, command, disk):
    """A full or read-only disk is one line and exit code 2, and everything on it stays."""
    draw = random.Random(f"{command} {disk}")
    nearly = disk == "nearly full"
    before = tmp_path / "before"
    size = sum(copy(made(command), before, old=not nearly and command not in KEEPING))
    script = READ_ONLY if disk == "read-only" else FULL
    for turn in range(ATTACK if nearly else 1):
        pages = draw.randrange(max(size // 4096, 1)) if nearly else 0
        place, after = tmp_path / f"disk{turn}", tmp_path / f"after{turn}"
        place.mkdir()
        after.mkdir()
        given = (str(place), str(before), str(pages), str(after))
        done = subprocess.run(
            [*alone, "bash", "-c", script, "bash", *given, *words_of(command)],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        check(done, before, after, command)
