"""The documentation does what it says: blocks run, outputs hold, reference pages are up to date."""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.support.places import ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]

#: The trace that pages name when a real one is needed.
SAMPLE = "KTH-SP2-1996-2.1-cln.swf.gz"

#: How pages call a folder of real traces.
SAMPLE_FOLDER = "traces"

#: Commands for a fresh machine, or that continue for ever: other tests and the reader run them.
NOT_HERE = ("python3 -m venv", "pip install", "pytest", "mkdocs", "hpcrowd inspect")

#: Pages that take long, besides those of the studies.
SLOW = {
    f"docs/{name}.md"
    for name in (
        "background/predictors", "behaviours/reactions", "behaviours/shmueli-feitelson",
        "guides/calibrate", "guides/compare", "guides/demo", "guides/explain",
        "guides/machine-what-if",
        "guides/models", "guides/populations", "guides/replay-a-trace", "guides/report",
        "guides/statistics", "guides/studies",
        "guides/what-if", "tutorial/paper",
    )
}  # fmt: skip

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<kind>\w+)(?P<options>[^\n]*)\n(?P<body>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)


@dataclass
class Block:
    """A fenced block of a page; ``touches`` says that only blank lines part it from the last."""

    kind: str
    title: str
    body: str
    line: int
    touches: bool


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    text, found, end = page.read_text(), [], 0
    for match in FENCE.finditer(text):
        title = re.search(r'title="([^"]+)"', match["options"])
        found.append(
            Block(
                match["kind"],
                title[1] if title else "",
                re.sub(rf"^{match['indent']}", "", match["body"], flags=re.MULTILINE),
                text.count("\n", 0, match.start()) + 2,
                not text[end : match.start()].strip(),
            )
        )
        end = match.end()
    return found


#: A line that says how far many runs are: pages do not show it, and a fast machine prints none.
PROGRESS = re.compile(r"^[\d,]+ of [\d,]+ runs.* left\n", re.MULTILINE)


def compare(expected: str, actual: str, where: str) -> None:
    """Fail unless both are equal, blanks at line ends apart; ``...`` stands for anything."""
    expected, actual = (
        "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
        for text in (expected, actual)
    )
    pattern = re.escape(expected).replace(r"\.\.\.", ".*?")
    if not re.fullmatch(pattern, actual, re.DOTALL):
        assert expected == actual, where


class Reader:
    """A user who reads a page in an empty folder and does everything that is there."""

    def __init__(self, page: Path, folder: Path) -> None:
        self.page = page
        self.folder = folder
        self.namespace: dict[str, Any] = {"__name__": f"docs_{page.stem.replace('-', '_')}"}
        self.missing: list[str] = []
        self.unwritten: set[str] = set()  # folders of commands that lacked traces
        self.exit_code = 0
        traces = Path(os.environ.get("HPCROWD_TRACES", ROOT.parent / "shared" / "traces"))
        if (traces / SAMPLE).exists():
            (folder / SAMPLE).symlink_to(traces / SAMPLE)
            (folder / SAMPLE_FOLDER).symlink_to(traces, target_is_directory=True)

    def read(self) -> None:
        """Go through the page."""
        printed: str | None = None
        for block in blocks(self.page):
            where = f"{self.page.relative_to(ROOT)}, line {block.line}"
            if block.kind == "python":
                printed = self.run_python(block, where)
            elif block.kind in ("console", "bash"):
                self.run_commands(block, where)
                printed = None
            elif block.kind in ("text", "toml"):
                if block.title:
                    (self.folder / block.title).write_text(block.body)
                elif printed is not None and block.touches:
                    compare(block.body, printed, where)
                printed = None

    def lacks(self, text: str, where: str) -> bool:
        """Note and return whether ``text`` needs real traces that are not here."""
        needs = re.search(rf"{re.escape(SAMPLE)}|\b{SAMPLE_FOLDER}/|[ =]{SAMPLE_FOLDER}\b", text)
        if not needs and not self.unwritten & set(text.split()):
            return False
        lacking = not (self.folder / SAMPLE).exists()
        if lacking:
            self.missing.append(where)
            self.unwritten |= set(re.findall(r"--out[ =](\S+)", text))
        return lacking

    def run_python(self, block: Block, where: str) -> str | None:
        """Run a block of Python and return what it printed, None if it could not run."""
        if self.lacks(block.body, where):
            return None
        code = compile("\n" * (block.line - 1) + block.body, str(self.page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(code, self.namespace)
        return output.getvalue()

    def run_commands(self, block: Block, where: str) -> None:
        """Run the commands of a block; after ``$`` with their output, else one a line."""
        prompt = "$ " if block.kind == "console" else ""
        steps: list[tuple[str, list[str]]] = []
        for line in block.body.splitlines():
            if not prompt and (not line or line.startswith("#")):
                continue
            if line.startswith(prompt):
                steps.append((line.removeprefix(prompt), []))
            else:
                steps[-1][1].append(line)
        printed: str | None = None
        for index, (command, output) in enumerate(steps):
            if command == "echo $?":
                if printed is not None:
                    assert "\n".join(output) == str(self.exit_code), where
                continue
            told = index + 1 < len(steps) and steps[index + 1][0] == "echo $?"
            printed = self.run_command(command, where, bool(output))
            if printed is None:
                continue
            if not told:
                assert self.exit_code == 0, f"{where}: {command}\n{printed}"
            if output:
                compare("\n".join(output), printed, f"{where}: {command}")

    def run_command(self, line: str, where: str, shown: bool) -> str | None:
        """Run a command line and return what it printed, None if it is for a fresh machine.

        ``shown`` says whether the page shows what it prints.
        """
        printed = None
        for part in line.split(" && "):
            command = part.strip().replace(".venv/bin/", "")
            if command.startswith(NOT_HERE) or self.lacks(command, where):
                continue
            words = shlex.split(command)
            if words[0] == "hpcrowd":
                if words[1:] == ["demo"] and not shown:
                    words += ["--days", "3"]  # nobody looks at it
                self.exit_code, text = run_hpcrowd(words[1:])
            else:
                self.exit_code, text = self.run_program(words, where)
            printed = (printed or "") + text
        return printed

    def run_program(self, words: list[str], where: str) -> tuple[int, str]:
        """Run a scenario, or a small program of every system."""
        if words[0] == "python":
            words = [sys.executable, *words[1:]]
            words = [str(ROOT / word) if (ROOT / word).is_file() else word for word in words]
        else:
            assert words[0] in ("ls", "cat", "zcat", "head"), f"{where}: {words[0]} is not known"
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100"},
        )
        # What it says beside its result (it compiles, it is at 40 %) is not on the page.
        return done.returncode, done.stdout + (done.stderr if done.returncode else "")


def run_hpcrowd(arguments: list[str]) -> tuple[int, str]:
    """Run the command line in this process; return its exit code and what it printed."""
    from hpcrowd.scenarios.cli import main

    code, argv = 0, sys.argv
    output = io.StringIO()
    sys.argv = ["hpcrowd", *arguments]
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        sys.argv = argv
    return code, PROGRESS.sub("", output.getvalue())


@pytest.fixture(scope="module")
def generate() -> dict[str, Any]:
    """Return what ``docs/generate.py`` defines."""
    return runpy.run_path(str(DOCS / "generate.py"))


def named(page: Path) -> str:
    """Return the name of a page in the list of tests."""
    return str(page.relative_to(ROOT))


def slow(page: Path) -> bool:
    """Return whether doing what a page says takes more than a few seconds."""
    return page.parent.name == "studies" or named(page) in SLOW


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if slow(page) else ()) for page in PAGES],
    ids=named,
)
def test_page_does_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every block of Python and every command of a page runs, and prints what the page shows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as for a script in that folder
    monkeypatch.setenv("COLUMNS", "100")
    reader = Reader(page, tmp_path)
    reader.read()
    if reader.missing:
        pytest.skip(
            f"{named(page)}: {len(reader.missing)} blocks or commands need {SAMPLE}, which is not "
            "in HPCROWD_TRACES; all else ran"
        )


def test_generated_parts_are_up_to_date(generate: dict[str, Any]) -> None:
    """Reference pages and tables say what the code says; ``python docs/generate.py`` helps."""
    for path, expected in generate["pages"]().items():
        assert expected == path.read_text(), f"{named(path)} is behind: python docs/generate.py"


def test_tables_are_on_their_pages(generate: dict[str, Any]) -> None:
    """Every generated table has a place in some page."""
    text = "".join(page.read_text() for page in PAGES)
    expected = set(generate["PLACES"])
    assert expected == set(re.findall(r"<!-- begin (\w+) -->", text))


def test_every_metric_has_a_formula(generate: dict[str, Any]) -> None:
    """The page of results gives a formula for each metric and for no other."""
    from hpcrowd.analysis.metrics import METRICS

    assert [metric.name for metric in METRICS] == list(generate["FORMULAS"])


def test_every_setting_has_a_section() -> None:
    """The guide to replays explains each setting in its own place."""
    from hpcrowd.scenarios.kinds.replay import ReplayConfig

    headings = re.findall(
        r"^### .*`--([\w-]+)`", (DOCS / "guides/replay-a-trace.md").read_text(), re.M
    )
    assert sorted(ReplayConfig.settings()) == sorted(one.replace("-", "_") for one in headings)


def test_every_public_name_says_what_it_is(generate: dict[str, Any]) -> None:
    """The reference has one line about each public name."""
    empty = [line for line in generate["api_page"]().splitlines() if line.endswith("|  |")]
    assert [] == empty


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_resolve(page: Path) -> None:
    """Every relative link leads to a file."""
    text = FENCE.sub("", page.read_text())
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", text)
    relative = [link for link in links if not re.match(r"\w+:", link)]
    missing = [link for link in relative if not (page.parent / link).exists()]
    assert [] == missing


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_named_files_are_there(page: Path) -> None:
    """A page names only files of the project that exist."""
    names = re.findall(r"\b(?:\w+/)+\w+\.py\b", page.read_text())
    assert [] == [name for name in names if not (ROOT / name).is_file()]


def test_no_page_names_a_machine_or_a_package_index() -> None:
    """Pages hold no absolute path of a machine and no setting of a package index."""
    pattern = re.compile(r"(?<![\w.:/])/(?:work|home|tmp|root)/|index-url", re.I)
    found = {named(page): pattern.findall(page.read_text()) for page in PAGES}
    assert {name: [] for name in found} == found


def test_commands_for_a_fresh_machine_are_checked() -> None:
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


def test_readme_is_short() -> None:
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
def texts() -> dict[str, str]:
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
def test_plain_english(phrase: str, texts: dict[str, str]) -> None:
    """Pages, help and sources say it as people do."""
    found = [
        f"{name}: {text[max(0, hit.start() - 30) : hit.end() + 30]}"
        for name, text in texts.items()
        for hit in re.finditer(phrase, text)
    ]
    assert [] == found, f"write: {DIALECT[phrase]}"


def test_versions_agree() -> None:
    """Package, citation and list of changes name the same version."""
    from hpcrowd import __version__

    citation = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    changes = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert citation is not None
    assert changes is not None
    assert (__version__, __version__) == (citation[1], changes[1])


@pytest.mark.slow
@pytest.mark.skipif(find_spec("material") is None, reason="mkdocs-material is not installed")
def test_site_builds(tmp_path: Path) -> None:
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
