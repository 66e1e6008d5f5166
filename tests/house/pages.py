"""The pages of the documentation, and the blocks of code in them."""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.places import ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]

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


def named(page: Path) -> str:
    """Return the name of a page in the list of tests."""
    return str(page.relative_to(ROOT))
