"""Refresh the page of a published study: its generated parts in Markdown, and pictures on it.

    python -m hpcrowd.scenarios.studies.refresh zakay2015 --traces traces

runs the study with its defaults. If a study takes hours, its runs are stored next to its page:

    hpcrowd reproduce minh2012-correlation --traces traces --out study
    python -m hpcrowd.scenarios.studies.refresh minh2012-correlation --runs study

stores them, rounded, and makes tables and pictures from them; without ``--runs``, it only makes
tables and pictures. The pages of :data:`MEASURED` are refreshed with ``--traces``, too.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from hpcrowd.environment.errors import HpcrowdError, QuantityError
from hpcrowd.scenarios.outputs import write_whole
from hpcrowd.scenarios.studies.options import study_entry
from hpcrowd.scenarios.studies.render import BEGIN, Picture, refresh_page, write_pictures
from hpcrowd.scenarios.terminal import progress_bar

#: The documentation in a checkout; pages, stored runs and pictures are in it.
DOCS = Path(__file__).resolve().parents[2] / "docs"

#: Pages without a paper: the module whose ``page_contents`` takes the folder of traces
#: and returns the generated parts and the pictures.
MEASURED = {
    "energy": "energy.run",
    "events": "events",
    "rebound": "rebound.run",
    "validation": "validation",
}


def page_of(name: str, docs: Path = DOCS) -> Path:
    """Return the file of a study's page."""
    return docs / "studies" / f"{name}.md"


def runs_of(name: str, docs: Path = DOCS) -> Path:
    """Return the file of a study's stored runs."""
    return docs / "studies" / f"{name}.json"


def pictures_of_page(name: str, docs: Path = DOCS) -> Path:
    """Return the folder of the pictures on a study's page."""
    return docs / "pictures" / name


def stored_study(name: str, docs: Path = DOCS) -> Any:
    """Return the study whose runs are stored next to its page."""
    return study_entry(name).study.of_stored(json.loads(runs_of(name, docs).read_text("utf-8")))


def refresh(
    name: str, *, traces: Path | None = None, runs: Path | None = None, docs: Path = DOCS
) -> None:
    """Refresh the page of a study in the folder of the documentation.

    A study is run again with the traces of a folder, or makes its page from stored runs; ``runs``
    is a folder of results to store then, or for the page of validation, where finished logs are
    kept. Raises QuantityError when it needs traces and none are given, or does not make a part of
    the page.
    """
    colours = None
    if name in MEASURED:
        module = import_module(f"{__package__}.{MEASURED[name]}")
        kept = {} if runs is None else {"runs": runs}
        parts, pictures = module.page_contents(_needed(name, traces), **kept)
    else:
        colours = study_entry(name).study.picture_colours
        parts, pictures = study_contents(name, traces, runs, docs)
    page = page_of(name, docs)
    text = page.read_text(encoding="utf-8")
    marks = re.findall(BEGIN.format("(.*)"), text)
    if unknown := [mark for mark in marks if mark not in parts]:
        raise QuantityError(f"{page}: generated part {unknown[0]!r}: the study does not make it")
    write_whole(page, refresh_page(text, parts))
    folder = pictures_of_page(name, docs)
    shown = [one for one in pictures if f"{name}/{one.name}.png" in text]
    if shown:
        folder.mkdir(parents=True, exist_ok=True)
        write_pictures(shown, folder, colours)


def study_contents(
    name: str, traces: Path | None, runs: Path | None = None, docs: Path = DOCS
) -> tuple[dict[str, str], Sequence[Picture]]:
    """Return the generated parts of a study's page, and the pictures; see :func:`refresh`."""
    run, kind = study_entry(name)
    if kind.stored_digits is not None:
        if runs is not None:
            found = kind.of_stored(json.loads((runs / f"{name}.json").read_text("utf-8")))
            text = json.dumps(found.stored(kind.stored_digits), separators=(",", ":"))
            write_whole(runs_of(name, docs), f"{text}\n")
        study = stored_study(name, docs)
        return study.page_parts(), study.pictures()
    traces = _needed(name, traces)
    with progress_bar() as progress:
        study = run(traces, progress)
    return {**study.page_parts(), **study.more_parts(traces)}, study.pictures()


def _needed(name: str, traces: Path | None) -> Path:
    """Return the folder of traces that a page is made from."""
    if traces is None:
        raise QuantityError(f"study {name}: its page is made from traces; give --traces FOLDER")
    return traces


def command(
    name: Annotated[str, typer.Argument(metavar="STUDY", help="Name of the study.")],
    traces: Annotated[Path | None, typer.Option(help="Folder with the traces.")] = None,
    runs: Annotated[Path | None, typer.Option(help="Folder of results to store.")] = None,
    docs: Annotated[Path, typer.Option(help="Folder of the documentation.")] = DOCS,
) -> None:
    """Refresh the page of a published study."""
    try:
        refresh(name, traces=traces, runs=runs, docs=docs)
    except HpcrowdError as error:
        print(f"refresh: {error}", file=sys.stderr)
        raise typer.Exit(2) from None


if __name__ == "__main__":
    typer.run(command)
