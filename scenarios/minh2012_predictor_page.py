"""Write the generated parts of the page on Minh 2012, chapter 8, and its pictures.

python -m scenarios.minh2012_predictor_page TRACES PAGE [FOLDER]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from analysis.minh2012_predictor_figures import write_figures
from analysis.minh2012_predictor_report import page_parts
from analysis.pages import refresh_page
from environment.errors import HpcrowdError
from scenarios.minh2012_predictor import reproduce_minh2012_predictor


def refresh(traces: Path, page: Path, folder: Path | None) -> None:
    """Run the study and write what the page shows of it."""
    study = reproduce_minh2012_predictor(traces)
    text = refresh_page(page.read_text(encoding="utf-8"), page_parts(study))
    page.write_text(text, encoding="utf-8")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write_figures(list(study.traces.values()), folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Refresh the page and return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) not in (2, 3):
        print(
            "usage: python -m scenarios.minh2012_predictor_page TRACES PAGE [FOLDER]",
            file=sys.stderr,
        )
        return 2
    traces, page, *folder = (Path(argument) for argument in arguments)
    try:
        refresh(traces, page, folder[0] if folder else None)
    except HpcrowdError as error:
        print(f"minh2012_predictor_page: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
