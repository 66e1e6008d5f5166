"""The documentation does what it says: blocks run, and print what the page shows."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.house.pages import COMMANDS, NOT_RUN, PAGES, PLACEHOLDER, blocks, named, refusal
from tests.support.places import ROOT

#: The trace that pages name when a real one is needed.
SAMPLE = "KTH-SP2-1996-2.1-cln.swf.gz"

#: How pages call a folder of real traces.
SAMPLE_FOLDER = "traces"

#: The tutorial, and the log that it begins with, which other pages take from there.
TUTORIAL, SMALL = ROOT / "docs" / "tutorial" / "first-replay.md", "small.swf"

#: Commands for a fresh machine, that continue for ever, or with own code (``test_own_code.py``):
#: other tests and the reader run them.
NOT_HERE = (
    "python3 -m venv", "pip install", "pytest", "mkdocs", "hpcrowd inspect",
    "hpcrowd replay log.swf --users mine.py", "hpcrowd resample log.swf --users mine.py",
)  # fmt: skip

#: What makes commands smaller whose output the page does not show.
SMALLER = {
    "hpcrowd demo": ["--days", "3"],
    "--judge": ["--moments", "1"],
    "hpcrowd forecast": ["--futures", "5", "--hindcasts", "0"],
    "hpcrowd reproduce zakay2015": ["--seeds", "1"],
    "hpcrowd reproduce song2005": ["--seeds", "1"],
}

#: A line that says how far many runs are: pages do not show it, and a fast machine prints none.
PROGRESS = re.compile(r"^[\d,]+ of [\d,]+ runs.* left\n", re.MULTILINE)


def compare(expected, actual, where):
    """Fail unless both are equal, blanks at line ends apart; ``...`` stands for anything."""
    expected, actual = (
        "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
        for text in (expected, actual)
    )
    pattern = re.escape(expected).replace(r"\.\.\.", ".*?")
    if not re.fullmatch(pattern, actual, re.DOTALL):
        assert expected == actual, where


def is_complete(command):
    """Return whether a command in a text can run: it has all that it needs, and no placeholder.

    Scripts in texts are those that made the tables around them, and take as long.
    """
    if PLACEHOLDER.search(command) or len(command.split()) < 3:
        return False
    return command.startswith("hpcrowd ") and not refusal(command)


class Reader:
    """A user who reads a page in an empty folder and does everything that is there."""

    def __init__(self, page, folder):
        self.page = page
        self.folder = folder
        self.namespace: dict[str, Any] = {"__name__": f"docs_{page.stem.replace('-', '_')}"}
        self.missing: list[str] = []
        self.unwritten: set[str] = set()  # folders of commands that lacked traces
        self.exit_code = 0
        # Reference pages are made from the help, whose words the tests of commands try.
        self.runs_text = page.parent.name != "reference"
        traces = Path(os.environ.get("HPCROWD_TRACES", ROOT.parent / "shared" / "traces"))
        if (traces / SAMPLE).exists():
            (folder / SAMPLE).symlink_to(traces / SAMPLE)
            (folder / SAMPLE_FOLDER).symlink_to(traces, target_is_directory=True)

    def read(self):
        """Go through the page, with the log of the tutorial if it is named."""
        if "first-replay.md" in self.page.read_text():
            log = next(one for one in blocks(TUTORIAL) if one.title == SMALL)
            (self.folder / SMALL).write_text(log.body)
        printed: str | None = None
        for block in blocks(self.page):
            where = f"{self.page.relative_to(ROOT)}, line {block.line}"
            if block.title in NOT_RUN:
                continue
            if block.kind == "python":
                printed = self.run_python(block, where)
            elif block.kind in COMMANDS:
                self.run_commands(block, where)
                printed = None
            elif block.kind == "text command" and self.runs_text and is_complete(block.body):
                self.run_commands(block, where)
            elif block.kind in ("text", "toml"):
                if block.title:
                    path = self.folder / block.title
                    path.parent.mkdir(exist_ok=True)
                    path.write_text(block.body)
                elif printed is not None and block.touches:
                    compare(block.body, printed, where)
                printed = None

    def lacks(self, text, where):
        """Note and return whether ``text`` needs real traces that are not here."""
        if (self.folder / SAMPLE).exists():
            return False
        needs = rf"{re.escape(SAMPLE)}|\b{SAMPLE_FOLDER}/|[ =]{SAMPLE_FOLDER}\b|archive:|fetch KTH"
        lacking = bool(re.search(needs, text) or self.unwritten & set(text.split()))
        if lacking:
            self.missing.append(where)
            self.unwritten |= set(re.findall(r"--out[ =](\S+)", text))
        return lacking

    def run_python(self, block, where):
        """Run a block of Python and return what it printed, None if it could not run."""
        if self.lacks(block.body, where):
            return None
        code = compile("\n" * (block.line - 1) + block.body, str(self.page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(code, self.namespace)
        return output.getvalue()

    def run_commands(self, block, where):
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
        for (command, output), (after, _) in zip(steps, [*steps[1:], ("", [])], strict=True):
            if command == "echo $?":
                assert printed is None or output == [str(self.exit_code)], where
                continue
            printed = self.run_command(command, where, bool(output))
            if printed is None:
                continue
            assert self.exit_code == 0 or after == "echo $?", f"{where}: {command}\n{printed}"
            if output:
                compare("\n".join(output), printed, f"{where}: {command}")

    def run_command(self, line, where, shown):
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
                smaller = next((more for call, more in SMALLER.items() if call in command), [])
                if not shown and not set(smaller) & set(words):
                    words += smaller
                self.exit_code, text = run_hpcrowd(words[1:])
            else:
                self.exit_code, text = self.run_program(words, where)
            printed = (printed or "") + text
        return printed

    def run_program(self, words, where):
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
        # What it says beside its result (it is at 40 %) is not on the page.
        return done.returncode, done.stdout + (done.stderr if done.returncode else "")


def run_hpcrowd(arguments):
    """Run the command line in this process; return its exit code and what it printed."""
    from hpcrowd.scenarios.cli import main

    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["hpcrowd", *arguments])
        patch.setattr(sys, "stdout", output)
        patch.setattr(sys, "stderr", output)
        with pytest.raises(SystemExit) as stop:
            main()
    return int(stop.value.code or 0), PROGRESS.sub("", output.getvalue())


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=named)
def test_page_does_what_it_says(page, workshop, monkeypatch):
    """Every block of Python and every command of a page runs, and prints what the page shows."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("HPCROWD_CACHE", str(workshop / SAMPLE_FOLDER))  # for archive:NAME
    reader = Reader(page, workshop)
    reader.read()
    if reader.missing:
        pytest.skip(
            f"{named(page)}: {len(reader.missing)} blocks or commands need {SAMPLE}, which is not "
            "in HPCROWD_TRACES; all else ran"
        )
