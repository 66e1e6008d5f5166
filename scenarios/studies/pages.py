"""Pages about studies: tables in Markdown, and generated parts of a page kept up to date."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from hpcrowd.environment.errors import HpcrowdError

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


def refresh_file(page: Path, parts: Mapping[str, str]) -> None:
    """Replace the generated parts of a page in its file; see :func:`refresh_page`."""
    page.write_text(refresh_page(page.read_text(encoding="utf-8"), parts), encoding="utf-8")


def stored_runs_command(
    name: str,
    store: Callable[[Path], None],
    refresh: Callable[[], None],
    arguments: Sequence[str] | None,
) -> int:
    """Store the runs of a study if they are given, refresh its page, and return the exit code.

    Parameters
    ----------
    name
        Name of the module that is run.
    store
        Called with the file of the runs.
    refresh
        Makes what is generated of the page, from what is stored.
    arguments
        Those after the name; None takes those of the command line.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) > 1:
        module = name.replace("_page", ".page")
        print(
            f"usage: python -m hpcrowd.scenarios.studies.{module} [RUNS]",
            file=sys.stderr,
        )
        return 2
    for results in arguments:
        store(Path(results))
    refresh()
    return 0


def refresh_command(
    name: str,
    refresh: Callable[..., None],
    arguments: Sequence[str] | None,
    *,
    pictures: bool = False,
) -> int:
    """Read the arguments, refresh a page, and return the exit code.

    Parameters
    ----------
    name
        Name of the module that is run.
    refresh
        Called with the folder of traces, the page and, where one is given, the folder of pictures.
    arguments
        Those after the name; None takes those of the command line.
    pictures
        Whether a folder of pictures may be given.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if not 2 <= len(arguments) <= 2 + pictures:
        folder, module = " [FOLDER]" if pictures else "", name.replace("_page", ".page")
        print(
            f"usage: python -m hpcrowd.scenarios.studies.{module} TRACES PAGE{folder}",
            file=sys.stderr,
        )
        return 2
    try:
        refresh(*map(Path, arguments))
    except HpcrowdError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    return 0
