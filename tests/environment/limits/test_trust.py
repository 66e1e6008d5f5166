"""Whose code is loaded: folders, links, modules, and what is only looked at."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.limits.trust import NotLoaded, Trust, file_of, trust, trusting
from hpcrowd.environment.registry import own, source_of
from hpcrowd.environment.schedulers.names import parse_scheduler


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with code, a link out of it, a package whose import leaves a file, and cwd."""
    text = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\nclass X: pass\n"
    for name in ("in/own.py", "out/own.py", "out/hpcrowd_test_stranger/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "out/hpcrowd_test_stranger/part.py").write_text(text)
    (tmp_path / "in/link.py").symlink_to(tmp_path / "out/own.py")
    monkeypatch.chdir(tmp_path / "out")
    return tmp_path


def ran(folder):
    """Return where code has run."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("ran"))


@pytest.mark.parametrize(
    ("module", "inside"),
    [
        ("{}/in/own.py", True),
        ("{}/in/../out/own.py", False),
        ("{}/in/link.py", False),
        ("own.py", False),
        ("hpcrowd_test_stranger.part", False),
        ("json", False),
        ("no_such_module.part", False),
    ],
)
def test_what_a_folder_brings_along(folder, module, inside):
    """Files in it, wherever links lead; finding that out loads nothing."""
    module = module.format(folder)
    assert inside == Trust(folders=(folder.resolve() / "in",)).allows(module)
    assert not Trust().allows(module)
    assert Trust(everything=True).allows(module)
    assert Trust(modules=(module.partition(".")[0],)).allows(module) or module.endswith(".py")
    assert [] == ran(folder)
    assert "hpcrowd_test_stranger" not in sys.modules


def test_modules_are_found_but_not_loaded(folder):
    """Packages neither; the source of what is not trusted is its file."""
    package = folder / "out" / "hpcrowd_test_stranger"
    assert package / "part.py" == file_of("hpcrowd_test_stranger.part")
    assert file_of("hpcrowd_test_stranger.part.more") is None
    with trusting(Trust()):
        assert package / "part.py" == source_of("hpcrowd_test_stranger.part:X")
        assert package / "__init__.py" == source_of("hpcrowd_test_stranger:X")
    assert [] == ran(folder)


def test_refused_left_alone_and_loaded(folder):
    """One line has the place, the rule, the file to read and the cure."""
    place = f"{folder}/in/own.py:X"
    assert trust() == Trust(everything=True)
    with trusting(Trust()):
        rule = "scheduler '.*own.py:X': .* from its folder; read .*own.py, and give --trust"
        with pytest.raises(QuantityError, match=rule):
            own("scheduler", place)
        with pytest.raises(QuantityError, match="--trust"):
            parse_scheduler(f"adaptive:overload-positive={place}")
        with ThreadPoolExecutor() as pool, pytest.raises(QuantityError, match="--trust"):
            pool.submit(own, "scheduler", place).result()
        with trusting(Trust(looking=True)), pytest.raises(NotLoaded):
            own("scheduler", place)
    assert [] == ran(folder)
    with trusting(Trust(folders=((folder / "in").resolve(),))):
        assert "X" == own("scheduler", place).__name__
    assert ["in/ran"] == ran(folder)
    assert trust() == Trust(everything=True)
