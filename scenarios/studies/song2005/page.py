"""Write the generated parts of the page on Song et al. 2005, and its pictures.

python -m hpcrowd.scenarios.studies.song2005.page TRACES PAGE [FOLDER]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from hpcrowd.scenarios.studies.pages import refresh_command, refresh_file
from hpcrowd.scenarios.studies.song2005.figures import write_figures
from hpcrowd.scenarios.studies.song2005.report import page_parts
from hpcrowd.scenarios.studies.song2005.run import reproduce_song2005


def refresh(traces: Path, page: Path, folder: Path | None = None) -> None:
    """Run the study and write what the page shows of it."""
    study = reproduce_song2005(traces)
    refresh_file(page, page_parts(study))
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write_figures(study.traces.values(), folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Refresh the page and return the exit code."""
    return refresh_command("song2005_page", refresh, arguments, pictures=True)


if __name__ == "__main__":
    sys.exit(main())
