"""Without a part, the rest works: its files are taken out of a copy of the source."""

import json
import os
import runpy
import shutil
import subprocess
import sys

import pytest

from tests.support.places import ROOT

HOUSE = runpy.run_path(str(ROOT / "docs" / "house.py"))

#: What asks for a part, for those that the heart does without: a command, or an option of a replay.
ASKED = {
    "policies": "replay log.swf --scheduler conservative",
    "predictors": "replay log.swf --estimates last-two",
    "platform": "replay log.swf --platform changes.toml",
    "machines of nodes": "replay log.swf --machine slurm.conf",
    "formats": "convert log.swf log.csv",
    "holds": "replay log.swf --holds recorded",
    "jobs given up": "replay log.swf --given-up recorded",
    "power": "replay log.swf --power power.toml",
    "grids": "grid log.swf",
    "reactions": "resample log.swf --reactions reactions.toml",
    "other users": "replay log.swf --users generative",
    "populations": "resample log.swf",
    "features": "stats log.swf",
    "models": "generate --help",
    "pictures and reports": "report log.swf",
    "sweeps": "sweep study.toml",
    "forecasts": "forecast log.swf",
    "validation": "validate log.swf",
    "calibration": "calibrate study.toml log.swf",
    "what-ifs": "demo --days 1",
    "the page": "inspect log.swf",
    "studies": "reproduce zakay2015 --traces .",
}

LOG = "; MaxProcs: 4\n" + "".join(
    f"{number} {10 * number} 0 5 1 -1 -1 1 9 -1 1 {number % 3} -1 -1 -1 -1 -1 -1\n"
    for number in range(1, 13)
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the package, and a small log next to it."""
    folder = tmp_path_factory.mktemp("copy")
    bytecode = shutil.ignore_patterns("*.pyc", "*.tmp")
    shutil.copytree(ROOT / "src" / "hpcrowd", folder / "hpcrowd", ignore=bytecode)
    (folder / "log.swf").write_text(LOG)
    return folder


def run(folder, line):
    """Return what a command line prints, and its exit code."""
    return subprocess.run(
        [sys.executable, "-m", "hpcrowd", *line.split()],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(folder)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


@pytest.fixture
def without(copy, tmp_path):
    """A function that takes the files of a part out of the copy until the test is over."""
    moved = []

    def take_out(part):
        for floor in HOUSE["FLOORS"]:
            for path in sorted((copy / "hpcrowd" / floor).rglob("*.py")):
                if HOUSE["part_of"](str(path.relative_to(copy / "hpcrowd"))) == part:
                    moved.append(path)
                    path.rename(tmp_path / str(len(moved)))
        assert moved

    yield take_out
    for number, path in enumerate(moved, 1):
        (tmp_path / str(number)).rename(path)


def test_every_part_is_tried():
    """The heart imports none of them."""
    assert [] == [pair for pair in HOUSE["AGAINST_THE_ORDER"] if pair.startswith("heart -> ")]
    assert {*HOUSE["PARTS"]} - {"heart"} == {*ASKED}


@pytest.mark.endurance
@pytest.mark.parametrize("part", ASKED)
def test_the_heart_works_without(copy, without, part):
    """Help and replay work; asking for what is missing is one line that says so."""
    usual = run(copy, "replay log.swf --json")
    assert 0 == usual.returncode, usual.stderr
    without(part)
    command, *words = ASKED[part].split()
    expected = json.loads(usual.stdout)
    of_heart = "--users", "--scheduler", "--estimates"  # options for which it has values of its own
    setting = words[1] if command == "replay" and words[1] not in of_heart else ""
    if setting:
        del expected["configuration"][setting.removeprefix("--").replace("-", "_")]
    found = run(copy, f"replay log.swf --json --out without-{part.replace(' ', '-')}")
    assert (0, expected) == (found.returncode, json.loads(found.stdout)), found.stderr
    shown = run(copy, "--help")
    assert (0, True) == (shown.returncode, "│ replay " in shown.stdout), shown.stderr
    options = run(copy, "replay --help")
    assert (0, True) == (options.returncode, "--users " in options.stdout), options.stderr
    if setting:
        assert f" {setting} " not in options.stdout
    elif command != "replay" and part != "reactions":  # which resample needs and does not list
        assert f"│ {command} " not in shown.stdout
    lacking = run(copy, ASKED[part])
    assert (2, 1) == (lacking.returncode, len(lacking.stderr.splitlines())), lacking.stderr
    assert "this installation lacks that part of hpcrowd" in lacking.stderr
