"""Write the generated parts of the page on Minh 2012, chapter 8, and its pictures.

python -m hpcrowd.scenarios.studies.minh2012_predictor.page TRACES PAGE [FOLDER]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from hpcrowd.scenarios.studies.minh2012_predictor.figures import write_figures
from hpcrowd.scenarios.studies.minh2012_predictor.report import page_parts
from hpcrowd.scenarios.studies.minh2012_predictor.run import reproduce_minh2012_predictor
from hpcrowd.scenarios.studies.pages import refresh_command, refresh_file


def refresh(traces: Path, page: Path, folder: Path | None = None) -> None:
    """Run the study and write what the page shows of it."""
    study = reproduce_minh2012_predictor(traces)
    refresh_file(page, page_parts(study))
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write_figures(list(study.traces.values()), folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Refresh the page and return the exit code."""
    return refresh_command("minh2012_predictor_page", refresh, arguments, pictures=True)


if __name__ == "__main__":
    sys.exit(main())
