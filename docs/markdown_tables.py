"""Tables in Markdown."""

from __future__ import annotations

import inspect
import re


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
                     for row in lines) + "\n"  # fmt: skip


def first_line(text: str | None) -> str:
    """Return the first line of a docstring, its roles of Sphinx and double backticks made plain."""
    line = (inspect.cleandoc(text or "") + "\n").split("\n\n")[0].replace("\n", " ").strip()
    line = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", line)
    return line.replace("``", "`")
