"""The documentation is whole: reference pages are up to date, links lead somewhere, plain words."""

import os
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

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


@pytest.fixture(scope="module")
def generate():
    """Return what ``docs/generate.py`` defines."""
    return runpy.run_path(str(DOCS / "generate.py"))


def test_generated_parts_are_up_to_date(generate):
    """Reference pages and tables say what the code says; ``python docs/generate.py`` helps."""
    for path, expected in generate["pages"]().items():
        assert expected == path.read_text(), f"{named(path)} is behind: python docs/generate.py"


def test_tables_are_on_their_pages(generate):
    """Every generated table has a place in some page."""
    text = "".join(page.read_text() for page in PAGES)
    expected = set(generate["PLACES"])
    assert expected == set(re.findall(r"<!-- begin (\w+) -->", text))


def test_every_metric_has_a_formula(generate):
    """The page of results gives a formula for each metric and for no other."""
    from hpcrowd.analysis.metrics import METRICS

    assert [metric.name for metric in METRICS] == list(generate["FORMULAS"])


def test_every_setting_has_a_section():
    """The guide to replays explains each setting in its own place."""
    from hpcrowd.scenarios.kinds.replay import ReplayConfig

    headings = re.findall(
        r"^### .*`--([\w-]+)`", (DOCS / "guides/replay-a-trace.md").read_text(), re.M
    )
    assert sorted(ReplayConfig.settings()) == sorted(one.replace("-", "_") for one in headings)


def test_every_public_name_says_what_it_is(generate):
    """The reference has one line about each public name."""
    empty = [line for line in generate["api_page"]().splitlines() if line.endswith("|  |")]
    assert [] == empty


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_resolve(page):
    """Every relative link leads to a file."""
    text = FENCE.sub("", page.read_text())
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", text)
    relative = [link for link in links if not re.match(r"\w+:", link)]
    missing = [link for link in relative if not (page.parent / link).exists()]
    assert [] == missing


@pytest.mark.parametrize("folder", ["behaviours", "policies"])
def test_all_pages_are_in_the_navigation(folder):
    """The site lists each page of a behaviour and of a policy."""
    listed = set(re.findall(rf"{folder}/([\w-]+)\.md", (ROOT / "mkdocs.yml").read_text()))
    assert {path.stem for path in (DOCS / folder).glob("*.md")} == listed


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_named_files_are_there(page):
    """A page names only files of the project that exist."""
    names = re.findall(r"\b(?:\w+/)+\w+\.py\b", page.read_text())
    assert [] == [name for name in names if not (ROOT / name).is_file()]


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
PROGRAMS = (
    "hpcrowd ",
    "python ",
    "python3 ",
    "pip ",
    "squeue ",
    "sacct ",
    "sacctmgr ",
    "scontrol ",
)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_run_or_say_why_not(page):
    """Commands are in blocks that run, or whose title says why not."""
    wrong = []
    for block in blocks(page):
        lines = [line for line in block.body.splitlines() if line.startswith(PROGRAMS)]
        where = f"{named(page)}, line {block.line}: "
        if block.kind in ("sh", "shell") or (block.kind in ("text", "py") and lines):
            wrong.append(f"{where}write ```bash, which runs")
        elif block.kind in COMMANDS and block.title and block.title not in NOT_RUN:
            wrong.append(f"{where}title={block.title!r}: not one of {', '.join(NOT_RUN)}")
    assert [] == wrong


def test_no_page_names_a_machine_or_a_package_index():
    """Pages hold no absolute path of a machine and no setting of a package index."""
    pattern = re.compile(r"(?<![\w.:/])/(?:work|home|tmp|root)/|index.url", re.I)
    found = {named(page): pattern.findall(page.read_text()) for page in PAGES}
    assert {name: [] for name in found} == found


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
    assert ["pip", "hpcrowd", "pip", "pytest"] == [
        Path(part.split()[0]).name for part in commands if part.startswith(".venv")
    ]
    assert [] == [part for part in commands if part not in done]


def test_readme_is_short():
    """The first page stays one that people read to its end."""
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) < 100
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    long = [part for part in prose.split("\n\n") if len(part.strip().splitlines()) > 5]
    assert [] == [part for part in long if not part.lstrip().startswith(("-", "|"))]


#: Turns of phrase that a reader stumbles over, and what to write.
DIALECT = {
    r"\b(is|are|be|was|were|being) told\b": "hpcrowd lists, a message says, is notified",
    r"\btells? (what|which|how|why|when|where|who)\b": "shows, lists, explains",
    r"\b(came|comes?) of (it|them|this|that)\b": "outcome, result",
    r"\b(becomes?|became) of\b": "outcome, what happens to",
    r"\bstands? (in|beside)\b": "is in, is next to",
    r"\bof (your|one's) own\b(?! \w)": "your own",
    r"\bof yours\b": "your",
    r"\beyes open\b": "with caution",
    r"\bthe lot of\b": "what users happen to draw",
    r"\bworth to\b": "worth doing",
    r"\borigin can be\b": "documented provenance",
    r"\bside by side with\b": "next to",
    r"\bheld against\b": "compared with",
}


@pytest.fixture(scope="module")
def texts():
    """Return everything that people read: pages, help, and messages and docstrings in sources."""
    from hpcrowd.scenarios.cli import CommandFiles

    pages = (*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md")
    found = {named(page): FENCE.sub("", page.read_text()) for page in pages}
    for name, command in CommandFiles().items():
        shown = [command.help, *(getattr(one, "help", "") for one in command.params)]
        found[f"hpcrowd {name}"] = "\n".join(filter(None, shown))
    for folder in ("agents", "analysis", "benchmarks", "docs", "environment", "scenarios", "tests"):
        found |= {named(path): path.read_text() for path in (ROOT / folder).rglob("*.py")}
    del found[named(Path(__file__))]  # it has the list
    return {name: " ".join(text.split()) for name, text in found.items()}


@pytest.mark.parametrize("phrase", DIALECT)
def test_plain_english(phrase, texts):
    """Pages, help and sources say it as people do."""
    found = [
        f"{name}: {text[max(0, hit.start() - 30) : hit.end() + 30]}"
        for name, text in texts.items()
        for hit in re.finditer(phrase, text)
    ]
    assert [] == found, f"write: {DIALECT[phrase]}"


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


#: Runs a command, and prints the place and name of each function when it is called first.
FOLLOW = """
import sys
from pathlib import Path
from hpcrowd.__main__ import main

root, seen = Path(sys.argv.pop(1)), {}
def follow(frame, event, argument):
    if event == "call":
        seen.setdefault((frame.f_code.co_filename, frame.f_code.co_qualname))
sys.setprofile(follow)
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
finally:
    sys.setprofile(None)
for file, name in seen:
    path = Path(file).resolve()
    if path.is_relative_to(root):
        print(path.relative_to(root), name, file=sys.stderr)
"""


def test_the_way_of_a_job_is_true(tmp_path):
    """The stations that the design lists are called one after the other in a replay."""
    listed = re.findall(
        r"^\| \d+ \| `([\w.]+)` \| `([\w/.]+)`:", (DOCS / "background/design.md").read_text(), re.M
    )
    assert 8 < len(listed) <= 12
    jobs = [
        f"{k} {100 * k} 0 60 4 -1 -1 4 120 -1 1 {k % 3 + 1} 1 1 1 1 -1 -1" for k in range(1, 13)
    ]
    (tmp_path / "log.swf").write_text("\n".join(jobs))
    done = subprocess.run(
        [sys.executable, "-c", FOLLOW, str(ROOT), "replay", "log.swf", "--out", "results"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    called = [tuple(line.split(" ")) for line in done.stderr.splitlines()]
    stations = [(file, name) for name, file in listed]
    assert stations == [one for one in called if one in stations]
