"""Modules that are compiled at installation: found, replaced by their source, and copied."""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hpcrowd import kernels
from hpcrowd.agents.learned.kernel import Memory

from tests.support.places import ROOT

ASK = """
from hpcrowd.analysis.models.jobs import placing
from hpcrowd.analysis.models.jobs.comprehensive import bag_places
import numpy as np
found = bag_places(
    np.arange(300.0), np.full(300, 7), 20, np.random.default_rng(1), leave=0.4, wait=True
)
print(placing.__file__.rpartition(".")[2], *found)
"""


def asked(**environment):
    """Return the form in which a module is imported, what it computes, and messages."""
    done = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")} | environment,
    )  # fmt: skip
    form, _, result = done.stdout.partition(" ")
    return form, result, done.stderr


def test_both_forms_give_the_same():
    """The modules are compiled here; as Python they give the same, and one line says so."""
    form, result, said = asked()
    assert (form, said) == ("so", ""), "run python src/build_kernels.py"
    plain, again, said = asked(HPCROWD_PURE="1")
    assert (plain, again) == ("py", result)
    assert said.count("\n") == 1
    assert "HPCROWD_PURE" in said


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: None, ""),
        (lambda folder: next(folder.glob("*.txt")).write_text("other"), "newer"),
        (lambda folder: next(folder.glob("*.txt")).unlink(), "not compiled"),
    ],
)
def test_older_ones_are_not_used(monkeypatch, tmp_path, change, words):
    """What was compiled from other sources is not imported; why is said, with the cure."""
    for path in kernels.COMPILED.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    change(tmp_path)
    monkeypatch.setattr(kernels, "COMPILED", tmp_path)
    why = kernels.missing.__wrapped__()
    assert words in why
    assert bool(why) == bool(words) == ("build_kernels.py" in why)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_their_objects_are_copied(copied):
    """A copy has the same state, and goes on apart from the first."""
    memory = Memory()
    memory.note(0, 5, 100, 200, 300)
    other = copied(memory)
    assert (other.first, other.sent, other.pauses) == (memory.first, memory.sent, 1)
    np.testing.assert_array_equal(other.rhythm, memory.rhythm)
    other.note(0, 700, 800, 900, 1000)
    assert memory.after_submissions.count == 1
    assert other.after_submissions.count == 2
