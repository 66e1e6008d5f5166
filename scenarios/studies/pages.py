"""Pages about studies: tables in Markdown, and generated parts of a page kept up to date."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

#: What stands around the generated parts of a page.
BEGIN, END = "<!-- generated: {} -->", "<!-- end of {} -->"


def markdown_table(heading: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> str:
    """Return a table in Markdown, the first ``left`` columns left-aligned."""
    ruler = [":---"] * left + ["---:"] * (len(heading) - left)
    lines = [heading, ruler, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def refresh_page(page: str, parts: Mapping[str, str]) -> str:
    """Return a page with its generated parts, by name, replaced; others are left out."""
    for name, text in parts.items():
        begin, end = BEGIN.format(name), END.format(name)
        if begin not in page:
            continue
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}\n\n{text}\n\n{end}{after}"
    return page
