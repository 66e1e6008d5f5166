"""The documentation is whole: references are up to date, links lead somewhere, commands run."""

import os
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.house.pages import (
    COMMANDS,
    DOCS,
    FENCE,
    NOT_RUN,
    PAGES,
    blocks,
    commands,
    named,
    refusal,
)
from tests.support.places import ROOT


def test_generated_parts_are_up_to_date():
    """Reference pages and tables say what the code says; ``python docs/generate.py`` helps."""
    generate = runpy.run_path(str(DOCS / "generate.py"))
    for path, expected in generate["pages"]().items():
        assert expected == path.read_text(), f"{named(path)} is behind: python docs/generate.py"
    text = "".join(page.read_text() for page in PAGES)
    assert set(generate["PLACES"]) == set(re.findall(r"<!-- begin (\w+) -->", text))
    empty = [line for line in generate["api_page"]().splitlines() if line.endswith("|  |")]
    assert [] == empty, "each public name says in a line what it is"


def test_every_setting_has_a_section():
    """The guide to replays explains each setting in its own place."""
    from hpcrowd.scenarios.kinds.replay import ReplayConfig

    headings = re.findall(
        r"^### .*`--([\w-]+)`", (DOCS / "guides/replay-a-trace.md").read_text(), re.M
    )
    assert sorted(ReplayConfig.settings()) == sorted(one.replace("-", "_") for one in headings)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_what_a_page_names_is_there(page):
    """Links and names of files lead somewhere; no page has a place of one machine or an index."""
    text = page.read_text()
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", FENCE.sub("", text))
    relative = [link for link in links if not re.match(r"\w+:", link)]
    assert [] == [link for link in relative if not (page.parent / link).exists()]
    names = re.findall(r"\b(?:\w+/)+\w+\.py\b", text)
    assert [] == [name for name in names if not (ROOT / name).is_file()]
    assert [] == re.findall(r"(?<![\w.:/])/(?:work|home|tmp|root)/|(?i:index.url)", text)


@pytest.mark.parametrize("folder", ["behaviours", "policies"])
def test_all_pages_are_in_the_navigation(folder):
    """The site lists each page of a behaviour and of a policy."""
    listed = set(re.findall(rf"{folder}/([\w-]+)\.md", (ROOT / "mkdocs.yml").read_text()))
    assert {path.stem for path in (DOCS / folder).glob("*.md")} == listed


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_are_ones_that_hpcrowd_takes(page):
    """Every command in a block or in a text has options and arguments that are there."""
    wrong = {
        f"{named(page)}, line {block.line}: {command}": said
        for block in blocks(page)
        for command in commands(block)
        if (said := refusal(command, complete=block.kind != "text command"))
    }
    assert {} == wrong


#: What a line begins with that is a command.
PROGRAMS = re.compile(r"(hpcrowd|python3?|pip|squeue|sacct|sacctmgr|scontrol) ")


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_run_or_say_why_not(page):
    """Commands are in blocks that run, or whose title says why not."""
    wrong = []
    for block in blocks(page):
        lines = [line for line in block.body.splitlines() if PROGRAMS.match(line)]
        where = f"{named(page)}, line {block.line}: "
        if block.kind in ("sh", "shell") or (block.kind in ("text", "py") and lines):
            wrong.append(f"{where}write ```bash, which runs")
        elif block.kind in COMMANDS and block.title and block.title not in NOT_RUN:
            wrong.append(f"{where}title={block.title!r}: not one of {', '.join(NOT_RUN)}")
    assert [] == wrong


def test_commands_for_a_fresh_machine_are_checked():
    """The check of the whole project runs the two commands of the first page as they stand."""
    script = ROOT / ".ci" / "run"
    if not script.exists():
        pytest.skip("no .ci/run here: it is not part of what is distributed")
    done = " ".join(script.read_text().split())
    commands = [
        part
        for block in blocks(ROOT / "README.md")
        if block.kind == "bash"
        for line in block.body.splitlines()
        if line.startswith("python3 -m venv")
        for part in line.split(" && ")
    ]
    assert len(commands) > 4
    assert [] == [part for part in commands if part not in done]


def test_versions_agree():
    """Package, citation and list of changes name the same version."""
    from hpcrowd import __version__

    citation = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    changes = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert citation is not None
    assert changes is not None
    assert (__version__, __version__) == (citation[1], changes[1])


@pytest.mark.slow
@pytest.mark.skipif(find_spec("material") is None, reason="mkdocs-material is not installed")
def test_site_builds(tmp_path):
    """The site builds without a warning, and its pages load nothing from elsewhere."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    loaded = re.compile(
        r"<(?:script|img|iframe)[^>]+src=\"?https?:|<link[^>]+stylesheet[^>]+https?:"
    )
    pages = list((tmp_path / "site").rglob("*.html"))
    assert {page: [] for page in pages} == {
        page: loaded.findall(page.read_text()) for page in pages
    }


def test_the_way_of_a_job_is_true(workshop, call):
    """The stations that the design lists are called one after the other in a replay."""
    listed = re.findall(
        r"^\| \d+ \| `([\w.]+)` \| `([\w/.]+)`:", (DOCS / "background/design.md").read_text(), re.M
    )
    assert 8 < len(listed) <= 12
    jobs = [
        f"{k} {100 * k} 0 60 4 -1 -1 4 120 -1 1 {k % 3 + 1} 1 1 1 1 -1 -1" for k in range(1, 13)
    ]
    (workshop / "log.swf").write_text("\n".join(jobs))
    called: dict[tuple[str, str], None] = {}

    def follow(frame, event, argument):
        if event == "call":
            called.setdefault(
                (frame.f_code.co_qualname, os.path.realpath(frame.f_code.co_filename))
            )

    sys.setprofile(follow)
    try:
        assert 0 == call("replay", "log.swf", "--out", "results")[0]
    finally:
        sys.setprofile(None)
    stations = [(name, str(ROOT / file)) for name, file in listed]
    assert stations == [one for one in called if one in stations]
