"""The choice of slow tests: whose room changed, or imports what changed."""

import re
import subprocess

import pytest

from tests.support.choice import MOST_BEHIND, VERIFIED, House, changed_since, main
from tests.support.places import ROOT

SLOW = "import pytest\npytestmark = pytest.mark.slow\n"

#: A small house: formats by a registry, an engine that imports another, a command and a page.
FILES = {
    "environment/jobs.py": "",
    "src/hpcrowd/__init__.py": "if TYPE_CHECKING:\n    from .environment.jobs import JobTable\n",
    "src/hpcrowd/things.py": "if TYPE_CHECKING:\n    from .agents.things import Thing\n",
    "agents/things.py": "",
    "environment/formats/registry.py": 'R = {"pbs": "hpcrowd.environment.formats.pbs:PBS"}\n',
    "environment/formats/pbs.py": "from hpcrowd.environment.formats.records import read\n",
    "environment/formats/records.py": "",
    "environment/engine/loop.py": "def f():\n    from hpcrowd.environment.jobs import JobTable\n",
    "environment/engine/fast.py": "from hpcrowd.environment.engine.loop import f\n",
    "environment/engine/passes/plan.py": "",
    "agents/user.py": (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from hpcrowd.environment.jobs import JobTable\n"
    ),
    "analysis/views/plot.py": "from hpcrowd.environment.engine.fast import f\n",
    "analysis/views/data/colours.csv": "",
    "scenarios/commands/traces/convert.py": "",
    "scenarios/other.py": "",
    "tests/environment/formats/test_formats.py": SLOW,
    "tests/environment/engine/test_engine.py": SLOW,
    "tests/environment/engine/test_quick.py": "",
    "tests/agents/test_user.py": f"{SLOW}from tests.support.helper import x\n",
    "tests/analysis/views/test_plot.py": f'{SLOW}"""Plots that convert nothing."""\n',
    "tests/scenarios/commands/traces/test_convert.py": f'{SLOW}call("convert", "a.pbs")\n',
    "tests/scenarios/test_lines.py": f'{SLOW}run("convert a b")\n',
    "tests/scenarios/test_names.py": f"{SLOW}import hpcrowd as hc\nhc.JobTable('x.csv')\n",
    "tests/scenarios/test_things.py": f"{SLOW}import hpcrowd as hc\nhc.things.Thing()\n",
    "tests/support/helper.py": "",
    "docs/use.md": "Do `hpcrowd convert`.\n",
    "docs/data/x.csv": "",
    "README.md": "```python\nhc.JobTable(3)\n```\n",
    "pyproject.toml": "",
    "CHANGELOG.md": "",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The small house."""
    root = tmp_path_factory.mktemp("house")
    for name, content in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


@pytest.fixture(scope="module")
def house(place):
    """What its files say of each other."""
    return House(place)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("environment/formats/records.py", "formats convert"),  # by its room, and by the name pbs
        ("environment/jobs.py", "engine README names"),  # imported in a function; a public name
        ("agents/things.py", "user things"),  # a public name in a module
        ("src/hpcrowd/things.py", "things"),
        ("environment/engine/loop.py", "engine plot"),  # which imports what imports it
        ("environment/engine/passes/plan.py", "engine"),  # in a folder of its room
        ("analysis/views/plot.py", "plot"),
        ("analysis/views/data/colours.csv", "plot"),
        ("scenarios/commands/traces/convert.py", "convert lines use"),
        ("tests/support/helper.py", "user"),
        ("tests/agents/test_user.py", "user"),
        ("tests/environment/engine/test_quick.py", ""),
        ("docs/use.md", "use"),
        ("docs/data/x.csv", "names"),
        ("CHANGELOG.md", ""),
        ("pyproject.toml", "formats engine user plot convert lines names things README use"),
    ],
)
def test_what_a_change_concerns(house, changed, expected):
    """Rooms, imports, registries, commands, texts and pages each make a test concern a file."""
    found = [re.search(r"(?:test_)?(\w+)\.\w+\]?$", test)[1] for test in house.chosen([changed])]
    assert sorted(expected.split()) == sorted(found)


def test_the_choice_is_made_since_a_commit(place, capsys, monkeypatch):
    """What is committed since or not at all counts; too many commits are refused in one line."""

    def git(*words):
        name = ("-c", "user.name=a", "-c", "user.email=a@b")
        return subprocess.check_output(["git", *name, *words], cwd=place, text=True).strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    (place / ".ci").mkdir()
    (place / VERIFIED).write_text(f'commit = "{git("rev-parse", "HEAD")}"\n')
    (place / "agents/user.py").write_text("changed = 1\n")
    git("commit", "-qam", "two")
    (place / "analysis/views/more.py").write_text("")
    assert ["agents/user.py", VERIFIED, "analysis/views/more.py"] == changed_since("HEAD~1", place)
    assert "2 files" in main(place, everything=False)
    chosen = ["tests/agents/test_user.py", "tests/analysis/views/test_plot.py"]
    assert chosen == capsys.readouterr().out.split()
    assert "All" in main(place, everything=True)
    assert "tests\n" == capsys.readouterr().out
    assert 250 == MOST_BEHIND
    monkeypatch.setattr("tests.support.choice.MOST_BEHIND", 3)
    for _ in range(3):
        git("commit", "-q", "--allow-empty", "-m", "more")
    with pytest.raises(SystemExit, match=rf"{VERIFIED}: .*4 commits ago.*HPCROWD_CI=all"):
        main(place, everything=False)


@pytest.mark.slow
def test_this_house_is_read():
    """Public names, registries, commands and studies are found, and what imports them."""
    house = House(ROOT)
    assert "environment/jobs.py" == house.public["hpcrowd.JobTable"]
    assert "scenarios/kinds/replay.py" == house.public["hpcrowd.replay"]
    assert "environment/schedulers/easy.py" == house.public["hpcrowd.policies.EASY"]
    for name in ("easy", "pbs", "mugm", "song2005"):
        assert house.named[name], name
    assert house.commands["convert"].endswith("convert.py")
    found = house.chosen(["scenarios/inspector/panels/gantt.py"])
    assert any("inspector" in test for test in found)
    assert not any("formats" in test for test in found)
