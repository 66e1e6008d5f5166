"""The pages of behaviours: one for each preset, with what belongs there, and measured afresh."""

import json
import re
import runpy
from typing import Any

import numpy as np
import pytest
from hpcrowd.agents.behaviours.parts import RESPONSES, TRIGGERS, UNCONFIRMED
from hpcrowd.agents.presets import PRESETS, Recipe
from hpcrowd.analysis.comparison.numbers import measure
from hpcrowd.analysis.curves import activity_lengths
from hpcrowd.analysis.pictures.plots import figure_png
from hpcrowd.environment.traces.formats.swf import parse_swf
from hpcrowd.scenarios.commands.lists.behaviours import command as behaviours
from hpcrowd.scenarios.kinds.replay import replay

from tests.support.places import ROOT

PAGES = ROOT / "docs" / "behaviours"
PICTURES = ROOT / "docs" / "pictures"

#: Most bytes of a picture.
LARGEST = 80_000

#: Behaviours that replay recorded work; users who make up theirs have a page together.
REPLAYS = [name for name, maker in PRESETS.items() if isinstance(maker, Recipe)]

#: Sections that the page of a behaviour has, a parameter or not.
SECTIONS = ("Algorithm", "Keeps and loses", "Example")

behaviour_pictures: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "behaviour_pictures.py"))
measured: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "measured.py"))


@pytest.mark.parametrize("name", REPLAYS)
def test_every_behaviour_has_a_page(name):
    """It has a formula, an algorithm, what it keeps, a picture, an example and its parameters."""
    text = (PAGES / f"{name}.md").read_text()
    headings = re.findall(r"^## (.*)$", text, re.M)
    assert [] == [section for section in SECTIONS if section not in headings]
    before_sections = text.split("\n## ")[0]
    assert re.search(r"^    \S", before_sections, re.M), "no formula before the first section"
    assert re.search(r"!\[[^]]+\]\(\.\./pictures/[\w-]+\.png\)", text)
    assert "*Keeps*" in text
    assert "*Loses*" in text
    parameters = PRESETS[name].parameters()
    for each in parameters:
        row = f"| `{each.name}` | {each.meaning} | {each.unit} | {each.default_words} |"
        assert row in text
        assert each.source
    if any(UNCONFIRMED in each.source for each in parameters):
        assert UNCONFIRMED in text


def test_table_is_as_measured(kth):
    """On KTH-SP2 each behaviour measures as the table says; ``python docs/measured.py`` helps."""
    table = {
        row["users"]: row
        for row in measured["read_table"]()
        if (row["trace"], row["seed"]) == ("KTH-SP2", "0")
    }
    again = {row["users"]: row for row in measured["rows"](kth, "KTH-SP2", range(1))}
    assert again == table


@pytest.fixture(scope="module")
def runs():
    """Return a function that replays a small log of some weeks with given settings."""
    lines = ["; UnixStartTime: 1704697200", "; TimeZoneString: Europe/Stockholm", "; MaxProcs: 4"]
    stream = np.random.default_rng(0)
    recorded = []
    for user in (1, 2, 3):
        submit = 3600 * user
        for run in stream.integers(60, 30_000, 60).tolist():
            recorded.append((submit, run, user))
            submit += run + 600 + run // 3
    for number, (submit, run, user) in enumerate(sorted(recorded), start=1):
        lines.append(f"{number} {submit} 0 {run} 1 -1 -1 1 {run} -1 1 {user} 1 -1 1 -1 -1 -1")
    trace = parse_swf("\n".join(lines))
    return lambda settings: {name: replay(trace, **each) for name, each in settings.items()}


@pytest.mark.parametrize("name", measured["PICTURES"])
def test_pictures_can_be_drawn(name, runs):
    """Each was drawn, is below 80 kB and on a page, and can be drawn from other runs, too."""
    assert (PICTURES / f"{name}.png").stat().st_size <= LARGEST
    assert any(f"pictures/{name}.png" in path.read_text() for path in PAGES.glob("*.md"))
    picture = measured["PICTURES"][name]
    figure = behaviour_pictures[picture.draw](runs(picture.runs), picture.title)
    assert picture.title in [text.get_text() for text in figure.texts]
    assert figure_png(figure).startswith(b"\x89PNG")


def test_measures_of_rigid_users_are_those_of_the_record(runs):
    """Users who submit as recorded have no lateness, no distance, and their recorded lengths."""
    found = measure(runs({"rigid": {"users": "rigid"}})["rigid"])
    assert (0, 0, 1, 1) == (
        found.lateness_mean_s,
        found.profile_distance,
        found.activity_p50,
        found.activity_p90,
    )


def test_activity_length_is_from_first_to_last_submission():
    """Users come by number; unknown submissions do not count; who submitted nothing has 0."""
    user = np.array([9, 4, 9, 4, 9, 7])
    submit = np.array([50, 10, 20, -1, 90, -1])
    assert [0, 0, 70] == activity_lengths(user, submit).tolist()


def test_behaviours_are_listed(capsys):
    """``hpcrowd behaviours`` names every preset with its parts; JSON has their parameters."""
    behaviours(as_json=False)
    shown = capsys.readouterr().out
    assert [] == [name for name in PRESETS if name not in shown]
    behaviours(as_json=True)
    printed = json.loads(capsys.readouterr().out)
    wire = printed["behaviours"]
    for known, key in ((RESPONSES, "reactions"), (TRIGGERS, "triggers")):
        assert [] == [name for name in known if name not in shown]
        assert list(known) == [name for name, does in printed[key].items() if does]
    assert list(PRESETS) == [entry["name"] for entry in wire]
    found = {entry["name"]: entry for entry in wire}
    assert ("batches", "own", "sessions", True) == tuple(
        found["fluid"][part] for part in ("when", "think", "window", "waits")
    )
    assert "0.8" in [each["default"] for each in found["distribution"]["parameters"]]
