"""Gantt charts of tiny runs for the documentation, with each job's name, submission and wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.analysis import curves
from hpcrowd.analysis.pictures.gantt import Looks, draw_pieces, legend_handles, looks_of, text_look
from hpcrowd.analysis.pictures.plots import DPI, LEGEND, TITLE, label_hours, new_figure, tidy
from hpcrowd.analysis.run import Run
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.platform.placement import Placement, place

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Most jobs of a tiny run.
MOST_JOBS = 20

#: Width of a picture; heights of title and axes, of a processor, and of a job, inches.
WIDTH, HEAD, FOOT, GAP = 7.4, 0.74, 0.66, 0.42
PROCESSOR, JOB = 0.27, 0.17

#: Pixels per letter of a name; names that do not fit are written after their jobs.
LETTER = 7.0

#: Style of those names.
BEHIND = {
    "color": "black",
    "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.5},
}

#: Greatest height of the machine, inches.
HIGHEST = 3.2


def small_gantt(
    run: Run,
    *,
    names: Mapping[int, str] | None = None,
    title: str = "",
    last: int | None = None,
) -> Figure:
    """Return a picture of a run of at most 20 jobs.

    Above: the processors, with the name of each job; a dashed line leads from its end to its
    requested end, or to the next job there. Below: one line per job, with a dot at its submission,
    a bar while it waits, and a triangle at the start that the scheduler first promised, if any.

    Parameters
    ----------
    run
        The run.
    names
        Names by job number; other jobs get their number.
    title
        Title; by default the run's label.
    last
        End of the picture, s; by default the last event. Give it to draw several runs on the same
        scale.

    Raises
    ------
    QuantityError
        When the run has no job, or more than 20.
    """
    jobs, runs = run.jobs, run.runs
    span = curves.span_of(runs)
    if not 0 < len(jobs) <= MOST_JOBS or span is None:
        raise QuantityError(
            f"small picture of {len(jobs):,} jobs: must have 1 to {MOST_JOBS} submitted jobs; "
            "for larger runs use hpcrowd.analysis.pictures.gantt"
        )
    first, last = span[0], max(span[1], span[0] + 1) if last is None else last
    called = {int(n): (names or {}).get(int(n), str(n)) for n in jobs.number}
    looks = looks_of(runs, "user", len(jobs))
    rows = np.flatnonzero(runs.start != UNKNOWN)
    ends = np.where(runs.end == UNKNOWN, last, runs.end)
    where = place(runs.start[rows], ends[rows], runs.processors[rows], run.processors)
    machine, queue = min(HIGHEST, PROCESSOR * where.rows), JOB * len(jobs) + 0.1
    height = HEAD + machine + GAP + queue + FOOT
    figure = new_figure(WIDTH, height, title or run.label)
    above = figure.add_axes((0.075, (FOOT + queue + GAP) / height, 0.905, machine / height))
    below = figure.add_axes((0.075, FOOT / height, 0.905, queue / height))
    for axes, head in ((above, "Processors"), (below, "")):
        tidy(axes, head)
        label_hours(axes, run.clock, first, last, named=axes is below)
    above.set_ylim(0, where.rows)
    above.set_yticks(range(0, where.rows + 1, max(1, -(-where.rows // 8))))
    draw_pieces(above, looks, rows, (runs.start[rows], ends[rows]), where)
    for job, row in enumerate(rows.tolist()):
        look = looks.looks[looks.which[row]]
        text = called[int(runs.number[row])]
        asked = int(runs.start[row] + runs.requested_time[row])
        wide = (ends[row] - runs.start[row]) / (last - first) * 0.905 * WIDTH * DPI
        for piece in np.flatnonzero(where.job == job):
            centre = where.row[piece] + where.height[piece] / 2
            until = min(asked, _next_start(runs.start[rows], where, centre, int(ends[row]), last))
            if until > ends[row]:
                above.hlines(centre, ends[row], until, color="#666666", lw=1, ls=(0, (3, 2)))
            if until == asked > ends[row]:
                above.plot(asked, centre, marker="|", color="#666666", markersize=6)
            if wide > LETTER * (len(text) + 1):
                middle, style = (runs.start[row] + ends[row]) / 2, text_look(look)
            else:
                middle, style = ends[row] + 0.012 * (last - first), BEHIND
            above.text(middle, centre, text, fontsize=9, ha="center", va="center", **style)
    shown = looks.legend(jobs.processors.astype(float), np.arange(len(jobs)))
    shown.sort(key=lambda look: looks.looks.index(look) if look in looks.looks else MOST_JOBS)
    if len(shown) > 1:
        figure.legend(
            handles=legend_handles(shown),
            loc="upper right",
            bbox_to_anchor=(0.99, 1 - 0.02 / height),
            ncols=len(shown),
            **LEGEND,
        )
    _draw_waits(below, jobs, called, looks, last)
    return figure


def _next_start(start: Int64s, where: Placement, row: float, after: int, last: int) -> int:
    """Return the start of the next job on a row of processors, ``last`` if there is none."""
    there = (where.row <= row) & (row <= where.row + where.height)
    found = start[where.job[there]]
    return int(found[found >= after].min(initial=last))


def _draw_waits(
    axes: Axes, jobs: JobTable, called: Mapping[int, str], looks: Looks, last: int
) -> None:
    """Draw a line for each job from its submission to its start."""
    promised = jobs.promised
    order: Int64s = np.lexsort((jobs.number, jobs.submit))
    axes.set_ylim(len(order) - 0.5, -0.5)
    axes.set_yticks(range(len(order)), [called[int(number)] for number in jobs.number[order]])
    axes.grid(visible=False, axis="y")
    shown = "Submitted (dot) and waiting (bar)"
    if (promised != UNKNOWN).any():
        shown = "Submitted (dot), waiting (bar), first promised start (triangle)"
    axes.set_title(shown, **TITLE)
    for line, row in enumerate(order.tolist()):
        if jobs.submit[row] == UNKNOWN:
            continue
        colour = looks.looks[looks.which[row]].colour
        until = last if jobs.start[row] == UNKNOWN else int(jobs.start[row])
        axes.hlines(line, jobs.submit[row], until, color=colour, linewidth=5)
        if promised[row] != UNKNOWN:
            axes.plot(promised[row], line, marker="<", color="black", markersize=4)
        axes.plot(
            jobs.submit[row], line, marker="o", color=colour, markeredgecolor="black",
            markeredgewidth=0.7, markersize=5, clip_on=False,
        )  # fmt: skip
