"""Keep the page on Minh 2012, chapter 6, up to date from the runs of a study.

    hpcrowd reproduce minh2012-arrivals --out study
    python -m hpcrowd.scenarios.studies.minh2012_arrivals.page study/minh2012-arrivals.json

stores all runs beside the page, rounded, and makes tables and pictures from what is stored. Without
an argument, only the latter.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from hpcrowd.scenarios.studies.minh2012_arrivals.data import runs_from_json, runs_to_json
from hpcrowd.scenarios.studies.minh2012_arrivals.figures import write_figures
from hpcrowd.scenarios.studies.minh2012_arrivals.report import page_parts
from hpcrowd.scenarios.studies.minh2012_arrivals.study import Experiments
from hpcrowd.scenarios.studies.pages import refresh_file, stored_runs_command

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = DOCS / "studies" / "minh2012-arrivals.md"
RUNS = DOCS / "studies" / "minh2012-arrivals.json"
PICTURES = DOCS / "pictures" / "minh2012-arrivals"

#: Significant digits of what is stored.
DIGITS = 5


def stored() -> Experiments:
    """Return the study whose runs are stored beside the page."""
    return runs_from_json(json.loads(RUNS.read_text(encoding="utf-8")))


def store(results: Path) -> None:
    """Store the runs of ``minh2012-arrivals.json``, rounded."""
    study = runs_from_json(json.loads(results.read_text(encoding="utf-8")))
    text = json.dumps(runs_to_json(study, DIGITS), separators=(",", ":"))
    RUNS.write_text(f"{text}\n", encoding="utf-8")


def refresh() -> None:
    """Make the tables of the page, and its pictures."""
    study = stored()
    refresh_file(PAGE, page_parts(study))
    PICTURES.mkdir(parents=True, exist_ok=True)
    write_figures(study, PICTURES)


def main(arguments: Sequence[str] | None = None) -> int:
    """Refresh the page and return the exit code."""
    return stored_runs_command("minh2012_arrivals_page", store, refresh, arguments)


if __name__ == "__main__":
    sys.exit(main())
