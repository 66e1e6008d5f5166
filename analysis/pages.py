"""Pages about studies: tables in Markdown, and generated parts of a page kept up to date."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from analysis.run import Run

#: What stands around the generated parts of a page.
BEGIN, END = "<!-- generated: {} -->", "<!-- end of {} -->"


def markdown_table(heading: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> str:
    """Return a table in Markdown, the first ``left`` columns left-aligned."""
    ruler = [":---"] * left + ["---:"] * (len(heading) - left)
    lines = [heading, ruler, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def refresh_page(page: str, parts: Mapping[str, str]) -> str:
    """Return a page with its generated parts, by name, replaced."""
    for name, text in parts.items():
        begin, end = BEGIN.format(name), END.format(name)
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}\n\n{text}\n\n{end}{after}"
    return page


def refresh_file(page: Path, parts: Mapping[str, str]) -> None:
    """Replace the generated parts of a page in its file; see :func:`refresh_page`."""
    page.write_text(refresh_page(page.read_text(encoding="utf-8"), parts), encoding="utf-8")


def trace_facts(run: Run) -> dict[str, Any]:
    """Return which trace a run replays, and what was dropped or repaired when it was read."""
    return {
        "source": None if run.trace is None else Path(run.trace.source).name,
        "sha256": None if run.trace is None else run.trace.sha256,
        "jobs": len(run.jobs),
        "users": len(np.unique(run.jobs.user)),
        "jobs_dropped": dict(run.dropped),
        "jobs_repaired": dict(run.repaired),
    }
