"""What a long study keeps task by task."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.scenarios.unfinished import ENDING, PLAN, Unfinished

#: What is being done.
DOING = {"seed": 0, "loads": [0.5, 0.9]}


def test_results_come_back_to_the_bit(tmp_path: Path) -> None:
    """What was kept is found by whoever does the same; what was not done is not."""
    value = [[0.1 + 0.2, 1 / 3], [1e300, 5.0]]
    Unfinished.beside(tmp_path / "out", DOING).keep("a-1", value)
    again = Unfinished.beside(tmp_path / "out", dict(reversed(DOING.items())))
    assert {"a-1": value} == again.results(["a-1", "a-2"])


def test_everything_goes_in_the_end(tmp_path: Path) -> None:
    """Once the results are written nothing is left next to them."""
    Unfinished.beside(tmp_path / "out", DOING).keep("a", 1)
    assert [f"out{ENDING}"] == [path.name for path in tmp_path.iterdir()]
    Unfinished.remove_beside(tmp_path / "out")
    assert [] == list(tmp_path.iterdir())


def test_half_a_file_does_not_count(tmp_path: Path) -> None:
    """A file that was being written when the program was killed is not a result."""
    kept = Unfinished.beside(tmp_path / "out", DOING)
    (kept.folder / ".a.json.tmp").write_text("[1, 2")
    assert {} == Unfinished.beside(tmp_path / "out", DOING).results(["a"])


@pytest.mark.parametrize("other", [{**DOING, "seed": 1}, {}])
def test_results_of_something_else_are_refused(tmp_path: Path, other: dict[str, object]) -> None:
    """Another plan is reported in one line, and what was kept stays."""
    Unfinished.beside(tmp_path / "out", DOING).keep("a", 1)
    words = "results of another plan or version; remove it, or choose another --out"
    with pytest.raises(HpcrowdError, match=re.escape(words)):
        Unfinished.beside(tmp_path / "out", other)
    assert {"a": 1} == Unfinished.beside(tmp_path / "out", DOING).results("a")


def test_folders_of_others_are_left_alone(tmp_path: Path) -> None:
    """A folder with something else in it, or a file, is not taken."""
    folder = tmp_path / f"out{ENDING}"
    folder.mkdir()
    (folder / "mine.txt").touch()
    with pytest.raises(HpcrowdError, match="not the folder of an unfinished study"):
        Unfinished.beside(tmp_path / "out", DOING)
    (tmp_path / f"file{ENDING}").touch()
    with pytest.raises(HpcrowdError, match="not the folder of an unfinished study"):
        Unfinished.beside(tmp_path / "file", DOING)


def test_damaged_results_are_reported(tmp_path: Path) -> None:
    """A file that is not JSON is named with the cure."""
    kept = Unfinished.beside(tmp_path / "out", DOING)
    (kept.folder / "a.json").write_text("[1, ")
    with pytest.raises(HpcrowdError, match=r"a\.json: damaged, not JSON; remove it"):
        kept.results(["a"])
    assert DOING == json.loads((kept.folder / PLAN).read_text())
