"""Mutated files of every kind: a result or one line, in time, within memory, and nothing half.

``HPCROWD_ATTACK=10 pytest -m slow tests/attacks/test_mutated_files.py`` tries ten times as many.
The cases are numbered, so that each is the same again.
"""

import json
import os
import subprocess
import sys

import pytest

from tests.attacks.configuration_cases import KINDS, cases
from tests.attacks.mutation_bases import CORPORA
from tests.support.places import ROOT

#: Files in all, and the parts of the largest corpora, which run in parallel.
FILES = int(8_000 * float(os.environ.get("HPCROWD_ATTACK", "1")))

#: Shares of corpora; those whose commands draw pictures or simulate weeks get less.
SHARES = {"long-trace": 0.1, "run": 0.15, "swept": 0.2, "sweep": 0.3, "numbers": 0.3, "model": 1.5}


def number_of_files(corpus):
    """Return how many files of a corpus are tried."""
    shares = {name: SHARES.get(name, 1.3) for name in CORPORA}
    return -int(-FILES * shares[corpus] // sum(shares.values()))


def attacked(module, *arguments):
    """Return what a worker finds wrong, a text for each case."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", f"tests.attacks.{module}", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found, done.stderr
    assert "done" in found[-1], (found[-1], done.stderr)
    return [f"{one['case']}: {one['command']}: {one['wrong']}" for one in found[:-1]]


@pytest.mark.endurance
@pytest.mark.parametrize("corpus", CORPORA)
def test_mutated_files(corpus, tmp_path):
    """Each ends with a result or one line, in time, in bounded memory, and leaves nothing half."""
    count = number_of_files(corpus)
    assert [] == attacked("mutation_cases", tmp_path / "files", corpus, 0, count)


#: Files of each kind of configuration and state, and of those few that are always tried.
OF_A_KIND, FEW = int(80 * float(os.environ.get("HPCROWD_ATTACK", "1"))), 12


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_damaged_descriptions(kind, tmp_path, monkeypatch):
    """Of machines and states: a result or one line."""
    monkeypatch.chdir(tmp_path)
    assert [] == list(cases(kind, tmp_path, FEW))


@pytest.mark.endurance
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_descriptions(kind, tmp_path):
    """The same many times: within 5 s and a gigabyte, and no secret in anything that comes out."""
    assert [] == attacked("configuration_cases", kind, tmp_path, OF_A_KIND)
