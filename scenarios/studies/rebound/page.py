"""Write the generated parts of the pages on populations and on rebound, and the picture.

python -m hpcrowd.scenarios.studies.rebound.page TRACES PAGE

The picture stands beside the page, under the same name.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hpcrowd.agents.work.recorded import Work
from hpcrowd.analysis.pictures.plots import figure_png
from hpcrowd.analysis.sessions import pause_slope
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import jobs_from_trace
from hpcrowd.scenarios.studies.pages import markdown_table, refresh_command, refresh_file
from hpcrowd.scenarios.studies.rebound.draws import KINDS, draws_of, draws_rows, logs_rows
from hpcrowd.scenarios.studies.rebound.report import draw_rebound, page_parts
from hpcrowd.scenarios.studies.rebound.run import VARIANTS, VARIED_AT, run_rebound
from hpcrowd.scenarios.studies.running import LOGS, find_logs
from hpcrowd.scenarios.terminal import progress_bar

#: The log of the study, and others that populations are drawn from where they are there.
STUDIED, OTHERS = "KTH", ("SDSC-DS", "LANL-CM5", "HPC2N")


def refresh(traces: Path, page: Path) -> None:
    """Run the study and write what the page shows of it."""
    paths = find_logs(traces, {name: LOGS[name] for name in (STUDIED, *OTHERS)}, [STUDIED])
    trace = read_trace(paths[STUDIED])
    with progress_bar() as progress:
        found = run_rebound(trace, progress=progress)
        shapes = {
            name: {"doing": "think-time-windows", **choices} for name, choices in VARIANTS.items()
        }
        variants = run_rebound(trace, shapes, VARIED_AT, replayed=False, progress=progress)
        draws = {STUDIED: draws_of(trace, progress=progress)}
        parts = page_parts(found, variants) | {"draws": draws_rows(draws[STUDIED])}
        for name in OTHERS:
            if name in paths:
                only = {"draw": KINDS["draw"]}
                draws[name] = draws_of(read_trace(paths[name]), only, progress=progress)
    parts["logs"] = logs_rows(draws)
    parts["slopes"] = slopes_rows(paths)
    refresh_file(page, parts)
    page.with_suffix(".png").write_bytes(figure_png(draw_rebound(found)))


def slopes_rows(paths: Mapping[str, Path]) -> str:
    """Return what logs say of pauses after longer responses, as a table in Markdown."""
    rows = []
    for name, path in paths.items():
        work = Work.of(jobs_from_trace(read_trace(path)).jobs)
        rows.append([name, *(f"{pause_slope(u):.2f}" for u in (work.by_session, work.by_batch))])
    return markdown_table(["log", "between sessions", "between batches"], rows, 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Refresh the page and return the exit code."""
    return refresh_command("rebound_page", refresh, arguments)


if __name__ == "__main__":
    sys.exit(main())
