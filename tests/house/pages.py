"""The pages of the documentation: the blocks of code, and the commands, in them."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.places import ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<kind>\w+)(?P<options>[^\n]*)\n(?P<body>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)

#: Kinds of blocks whose commands run.
COMMANDS = ("bash", "console")

#: Titles of blocks of commands that do not run here: what needs a cluster, another simulator or a
#: day, and what continues for ever.
NOT_RUN = ("on a cluster", "with Batsim", "takes minutes", "takes hours", "until you stop it")

#: A word of a command that stands for another: TRACE, but not the name of a log.
PLACEHOLDER = re.compile(r"(?<![\w-])(?!KTH|NASA)[A-Z]{3,}(?![\w-])")

#: What follows a command in a shell.
SHELL = re.compile(r"\s(?:&&|[|>]).*")


@dataclass
class Block:
    """A fenced block of a page, or a command in its text, of the kind ``text command``.

    ``touches`` says that only blank lines part it from the last block.
    """

    kind: str
    title: str
    body: str
    line: int
    touches: bool


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, and the commands in its text, in order."""
    text, found, end = page.read_text(), [], 0
    for match in FENCE.finditer(text):
        title = re.search(r'title="([^"]+)"', match["options"])
        body = re.sub(rf"^{match['indent']}", "", match["body"], flags=re.MULTILINE)
        line = text.count("\n", 0, match.start()) + 2
        touches = not text[end : match.start()].strip()
        found.append(Block(match["kind"], title[1] if title else "", body, line, touches))
        end = match.end()
    text = FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), text)
    for one in re.finditer(r"`((?:hpcrowd|python) [^`]+)`", text):
        line = text.count("\n", 0, one.start()) + 1
        found.append(Block("text command", "", " ".join(one[1].split()), line, touches=False))
    return sorted(found, key=lambda one: one.line)


def commands(block: Block) -> list[str]:
    """Return the commands of hpcrowd in a block, or in a text."""
    if block.kind == "text command":
        lines = [block.body]
    elif block.kind == "console":
        lines = [line[2:] for line in block.body.splitlines() if line.startswith("$ ")]
    else:
        lines = block.body.splitlines() if block.kind == "bash" else []
    parts = [part for line in lines for part in line.split(" && ")]
    return [SHELL.sub("", part) for part in parts if part.startswith("hpcrowd ")]


def refusal(command: str, *, complete: bool = True) -> str:
    """Return what the command line says against a command; empty if it takes it.

    Nothing runs, and no file has to be there. Of a command that is only mentioned, as in ``hpcrowd
    replay --zone``, arguments and the last value may be missing.
    """
    from hpcrowd.scenarios.cli import CommandFiles
    from typer._click.exceptions import BadOptionUsage, ClickException, MissingParameter

    words = [word for word in shlex.split(command)[1:] if word != "..."]
    words = [word.removeprefix("archive:") for word in words]  # else they are fetched
    found: Any = CommandFiles().get(words[0])
    if found is None:
        return f"no command {words[0]}"
    name = words.pop(0)
    while hasattr(found, "get_command") and words:
        context = found.make_context(name, [], resilient_parsing=True)
        name = words.pop(0)
        found = found.get_command(context, name)
        if found is None:
            return f"no command {name}"
    if {"--help", "-h"} & set(words) or (not words and not complete):
        return ""
    try:
        found.make_context(name, words)
    except (MissingParameter, BadOptionUsage) as error:
        return error.format_message() if complete else ""
    except ClickException as error:
        return error.format_message()
    return ""


def named(page: Path) -> str:
    """Return the name of a page in the list of tests."""
    return str(page.relative_to(ROOT))
