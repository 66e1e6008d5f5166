"""Predictors inside a simulation: tables of their page, on KTH-SP2.

    python docs/online_predictors.py FOLDER

reads the trace from FOLDER and writes ``docs/background/predictors.csv``; then run
``docs/generate.py``. It takes seconds. ``tests/scenarios/commands/lists/test_online_page.py``
measures again and fails when the tables are behind.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "background" / "predictors.csv"
TRACE = "KTH-SP2-1996-2.1-cln.swf.gz"

#: Estimates of the scheduler, in the order of the tables.
ESTIMATES = (
    "requested",
    "exact",
    "last-two",
    "last-two:cap=yes",
    "nearest",
    "nearest:cap=yes",
    "history:SDSC04",
    "history:SDSC04,history=completion",
)
POLICIES = ("easy", "easy:backfill=sjbf", "conservative")


def rows(trace: Any) -> Iterator[dict[str, str]]:
    """Yield the figures of each replay with rigid users."""
    from hpcrowd.analysis.prediction import estimate_accuracy
    from hpcrowd.scenarios.kinds.replay import replay

    for scheduler in POLICIES:
        for estimates in ESTIMATES:
            run = replay(trace, users="rigid", scheduler=scheduler, estimates=estimates)
            good = estimate_accuracy(run.jobs)
            figures = {
                "wait_mean_s": run.metrics["wait_mean_s"],
                "bounded_slowdown_mean": run.metrics["bounded_slowdown_mean"],
                "underestimated_share": good.underestimated_share,
                "mae_min": good.mae_min,
                "wae_min": good.wae_min,
            }
            told = {name: f"{value:.6g}" for name, value in figures.items()}
            yield {"scheduler": scheduler, "estimates": estimates} | told


def _read() -> list[dict[str, str]]:
    with TABLE.open(newline="") as file:
        return list(csv.DictReader(file))


def waits_table() -> str:
    """Return waits and slowdowns by estimates and policy, for the page."""
    from markdown_tables import table

    found = {(row["scheduler"], row["estimates"]): row for row in _read()}
    cells = []
    for estimates in ESTIMATES:
        pairs = [found[scheduler, estimates] for scheduler in POLICIES]
        waits = (f"{float(row['wait_mean_s']):,.0f}" for row in pairs)
        slowdowns = (f"{float(row['bounded_slowdown_mean']):.1f}" for row in pairs)
        each = (f"{wait} s / {slow}" for wait, slow in zip(waits, slowdowns, strict=True))
        cells.append((f"`{estimates}`", *each))
    return table(("estimates", *(f"`{name}`" for name in POLICIES)), cells)


def accuracy_table() -> str:
    """Return how good the estimates were under EASY, for the page."""
    from markdown_tables import table

    cells = [
        (
            f"`{row['estimates']}`",
            f"{100 * float(row['underestimated_share']):.1f} %",
            f"{float(row['mae_min']):.1f}",
            f"{float(row['wae_min']):.0f}",
        )
        for row in _read()
        if row["scheduler"] == POLICIES[0] and row["estimates"] != "exact"
    ]
    return table(("estimates", "underestimated", "MAE, min", "WAE, min"), cells)


def main(folder: Path) -> None:
    """Measure and write the table."""
    from hpcrowd import read_swf

    found = list(rows(read_swf(folder / TRACE)))
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "docs")]
    main(Path(sys.argv[1]))
