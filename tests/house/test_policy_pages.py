"""The pages of policies: one for each name, with what belongs there, and pictures from runs."""

import importlib
import json
import re

import pytest
from hpcrowd.analysis.pictures.plots import figure_png
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.schedulers.base import options_of
from hpcrowd.environment.schedulers.names import SCHEDULERS
from hpcrowd.pictures import small_gantt
from hpcrowd.scenarios.commands.lists.policies import command as policies

from tests.support.places import ROOT

PAGES = ROOT / "docs" / "policies"
PICTURES = ROOT / "docs" / "pictures" / "policies"

#: Most bytes of a picture.
LARGEST = 40_000

#: Sections that the page of a policy has.
SECTIONS = ["Rule", "Example", "Complexity", "Options", "Source"]


@pytest.fixture(scope="module")
def script():
    """The script that draws the pictures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        return importlib.import_module("policy_pictures")


@pytest.mark.parametrize("name", list(SCHEDULERS))
def test_every_policy_has_a_page(script, name):
    """It has rule, picture, complexity, each option and source, and the index lists it."""
    path = PAGES / script.page_of(name)
    assert path.exists(), f"{name} has no page; docs/policy_pictures.py says what belongs there"
    text = path.read_text()
    assert SECTIONS == re.findall(r"^## (.*)$", text, re.M)
    assert re.search(r"!\[[^]]+\]\(\.\./pictures/policies/[\w-]+\.png\)", text)
    for option in options_of(SCHEDULERS[name]):
        row = re.search(rf"^\| `{option.replace('_', '-')}` \| [^|]+ \| ([^|]+) \|$", text, re.M)
        assert row is not None, option
        assert row[1].strip()
    compared = (PAGES / "index.md").read_text().split("## How they differ")[1].split("\n## ")[0]
    assert f"`{name}`" in compared


def test_every_picture_is_small_and_used(script):
    """All pictures of the list, and no others, are there, small and on a page; all policies."""
    text = "".join(path.read_text() for path in PAGES.glob("*.md"))
    drawn = {path.stem: path.stat().st_size for path in PICTURES.glob("*.png")}
    assert set(script.PICTURES) == set(drawn)
    assert {} == {name: size for name, size in drawn.items() if size > LARGEST}
    assert [] == [name for name in drawn if f"policies/{name}.png" not in text]
    shown = {scheduler.partition(":")[0] for scheduler, _ in script.PICTURES.values()}
    # An order has to be named, and a fit needs a record.
    assert set(SCHEDULERS) - {"order", "fitted"} == shown


def test_policies_differ(script):
    """No two pictures of the example, which is on the index, show the same schedule."""
    starts = {
        name: tuple(script.example(scheduler).jobs.start.tolist())
        for name, (scheduler, _) in script.PICTURES.items()
    }
    assert len(starts) == len(set(starts.values()))
    assert script.WORKLOAD.read_text() in (PAGES / "index.md").read_text()


@pytest.mark.slow
def test_pictures_can_be_drawn(script):
    """Each picture is drawn from a run, with its title and without a warning."""
    for scheduler, title in script.PICTURES.values():
        figure = small_gantt(script.example(scheduler), names=script.names(), title=title)
        assert title in [text.get_text() for text in figure.texts]
        assert figure_png(figure).startswith(b"\x89PNG")


def test_policies_are_listed(capsys):
    """``hpcrowd policies`` names every policy; with a name it lists the options."""
    policies(None, as_json=False)
    shown = capsys.readouterr().out
    assert all(f"\n{name} " in shown for name in SCHEDULERS)
    policies("easy", as_json=False)
    shown = capsys.readouterr().out
    assert re.search(r"^backfill +queue +The order in which", shown, re.M)
    policies("sjf", as_json=False)
    assert "It has no options." in capsys.readouterr().out
    policies(None, as_json=True)
    wire = json.loads(capsys.readouterr().out)["policies"]
    assert list(SCHEDULERS) == [policy["name"] for policy in wire]
    assert ["backfill", "order", "reservations", "depth"] == [
        option["name"] for option in wire[1]["options"]
    ]
    with pytest.raises(QuantityError, match=r"not known; did you mean easy\? choose fcfs, easy"):
        policies("easyy", as_json=False)
