"""Write the generated parts of the page on Minh 2012, chapters 4 and 5, and its pictures.

python -m hpcrowd.scenarios.studies.minh2012_models.page TRACES PAGE [FOLDER]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from hpcrowd.scenarios.studies.minh2012_models.report import page_parts
from hpcrowd.scenarios.studies.minh2012_models.run import reproduce_minh2012_models
from hpcrowd.scenarios.studies.pages import refresh_command, refresh_file


def refresh(traces: Path, page: Path, folder: Path | None = None) -> None:
    """Run the study and write what the page shows of it."""
    study = reproduce_minh2012_models(traces)
    refresh_file(page, page_parts(study))
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        study.write_pictures(folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Refresh the page and return the exit code."""
    return refresh_command("minh2012_models_page", refresh, arguments, pictures=True)


if __name__ == "__main__":
    sys.exit(main())
