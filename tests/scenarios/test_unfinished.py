"""What a long study keeps task by task."""

import json
import re

import pytest
from hpcrowd.environment import HpcrowdError
from hpcrowd.scenarios.unfinished import ENDING, PLAN, Unfinished

#: What is being done.
DOING = {"seed": 0, "loads": [0.5, 0.9]}


@pytest.fixture
def begun(tmp_path):
    """A study that is beside ``out``."""
    return Unfinished.beside(tmp_path / "out", DOING)


def test_results_come_back_to_the_bit(begun, tmp_path):
    """What was kept is found by whoever does the same; what was not done, or half, is not."""
    value = [[0.1 + 0.2, 1 / 3], [1e300, 5.0]]
    begun.keep("a-1", value)
    (begun.folder / ".a-2.json.tmp").write_text("[1, 2")
    again = Unfinished.beside(tmp_path / "out", dict(reversed(DOING.items())))
    assert {"a-1": value} == again.results(["a-1", "a-2"])
    assert DOING == json.loads((begun.folder / PLAN).read_text())
    assert [f"out{ENDING}"] == [path.name for path in tmp_path.iterdir()]
    Unfinished.remove_beside(tmp_path / "out")
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("other", [{**DOING, "seed": 1}, {}])
def test_results_of_something_else_are_refused(begun, tmp_path, other):
    """Another plan is reported in one line, and what was kept stays."""
    begun.keep("a", 1)
    words = "results of another plan or version; remove it, or choose another --out"
    with pytest.raises(HpcrowdError, match=re.escape(words)):
        Unfinished.beside(tmp_path / "out", other)
    assert {"a": 1} == Unfinished.beside(tmp_path / "out", DOING).results("a")


def test_what_is_not_a_study_is_left_alone(begun, tmp_path):
    """A folder with something else in it, or a file, is not taken; what is not JSON is named."""
    (tmp_path / f"file{ENDING}").touch()
    (tmp_path / f"other{ENDING}").mkdir()
    (tmp_path / f"other{ENDING}" / "mine.txt").touch()
    for name in ("file", "other"):
        with pytest.raises(HpcrowdError, match="not the folder of an unfinished study"):
            Unfinished.beside(tmp_path / name, DOING)
    (begun.folder / "a.json").write_text("[1, ")
    with pytest.raises(HpcrowdError, match=r"a\.json: damaged, not JSON; remove it"):
        begun.results(["a"])
