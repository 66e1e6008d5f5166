"""Draw the pictures of the guide to workload statistics.

    python docs/statistics_pictures.py FOLDER

reads the traces from FOLDER and writes ``docs/pictures/stats-*.png``.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: The pictures: which one of ``hpcrowd.analysis.features.report.PICTURES``, and of which traces.
PICTURES = {
    "stats-arrivals": ("arrivals", ("KTH-SP2-1996-2.1-cln", "CEA-Curie-2011-2.1-cln")),
    "stats-map": ("run_time_processors", ("HPC2N-2002-2.2-cln", "CEA-Curie-2011-2.1-cln")),
}


def write_pictures(folder: Path) -> None:
    """Draw all pictures; the jobs are those that completed."""
    from hpcrowd.analysis.features import report as pictures
    from hpcrowd.analysis.pictures.plots import figure_png
    from hpcrowd.features import read_workload

    for name, (picture, traces) in PICTURES.items():
        workloads = [read_workload(folder / f"{trace}.swf.gz") for trace in traces]
        figure = pictures.PICTURES[picture].draw(workloads)
        (ROOT / "docs" / "pictures" / f"{name}.png").write_bytes(figure_png(figure))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    if len(sys.argv) != 2:
        sys.exit("usage: python docs/statistics_pictures.py FOLDER")
    write_pictures(Path(sys.argv[1]))
