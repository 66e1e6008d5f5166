"""What a long study keeps task by task."""

import json
import socket

import pytest
from hpcrowd import HpcrowdError
from hpcrowd.scenarios.unfinished import ENDING, PLAN, Unfinished

#: What is being done.
DOING = {"seed": 0, "loads": [0.5, 0.9]}


@pytest.fixture
def begun(tmp_path):
    """A study that is beside ``out``."""
    return Unfinished.beside(tmp_path / "out", DOING)


def only(folder, name):
    """Return the file of a task."""
    (path,) = folder.glob(f"*-{name}-*.json")
    return path


def test_results_come_back_to_the_bit(begun, tmp_path):
    """What was kept is found by whoever does the same; what was not done, or half, is not."""
    value = [[0.1 + 0.2, 1 / 3], [1e300, 5.0]]
    begun.keep("a-1", value)
    half = f".{only(begun.folder, 'a-1').name}.{socket.gethostname()}.999999999.tmp"
    (begun.folder / half).write_text("[1, 2")
    again = Unfinished.beside(tmp_path / "out", dict(reversed(DOING.items())))
    assert {"a-1": value} == again.results(["a-1", "a-2"])
    assert {} == again.results(["a"])
    for other in ({**DOING, "seed": 1}, {}):
        with pytest.raises(HpcrowdError, match="results of another plan or version; remove it"):
            Unfinished.beside(tmp_path / "out", other)
    assert DOING == json.loads(only(begun.folder, PLAN).read_text())
    assert [f"out{ENDING}"] == [path.name for path in tmp_path.iterdir()]
    Unfinished.remove_beside(tmp_path / "out")
    assert [] == list(tmp_path.iterdir())


def test_what_is_not_a_study_is_left_alone(begun, tmp_path):
    """A folder with something else in it, or a file, is not taken; files of others stay."""
    (tmp_path / f"file{ENDING}").touch()
    (tmp_path / f"other{ENDING}").mkdir()
    (tmp_path / f"other{ENDING}" / "mine.txt").touch()
    for name in ("file", "other"):
        with pytest.raises(HpcrowdError, match="not the folder of an unfinished study"):
            Unfinished.beside(tmp_path / name, DOING)
    mine = ("notes.txt", "a.json", ".mine.tmp")
    for name in mine:
        (begun.folder / name).write_text("mine")
    begun.keep("a", 1)
    assert {"a": 1} == Unfinished.beside(tmp_path / "out", DOING).results("a")
    Unfinished.remove_beside(tmp_path / "out")
    assert sorted(mine) == sorted(path.name for path in begun.folder.iterdir())


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_a_damaged_file_is_done_again(begun, tmp_path, capsys, step):
    """The plan or a result, cut or changed at any byte: it is removed, a line says so, go on."""
    begun.keep("a", [1.5, "x"])
    for damaged, kept in ((only(begun.folder, PLAN), {"a": [1.5, "x"]}),
                          (only(begun.folder, "a"), {})):  # fmt: skip
        text = damaged.read_bytes()
        for at in range(0, len(text), step):
            changed = text[:at] + bytes([text[at] ^ 1 << at % 8]) + text[at + 1 :]
            for broken in (changed, text[:at]):
                damaged.write_bytes(broken)
                again = Unfinished.beside(tmp_path / "out", DOING)
                assert kept == again.results("a")
                says = "" if kept else f"{damaged}: damaged; it is done again\n"
                assert says == capsys.readouterr().err
                assert (text if kept else None) == (
                    damaged.read_bytes() if damaged.exists() else None
                )
        damaged.write_bytes(text)
