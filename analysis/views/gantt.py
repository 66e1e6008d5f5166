"""Gantt chart around a moment: running and recent jobs, coloured by user."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.analysis.pictures import plots
from hpcrowd.analysis.pictures.gantt import draw_pieces, legend_handles, looks_of
from hpcrowd.analysis.views.frames import figure_at, where_known
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.platform.placement import Placement, place
from hpcrowd.environment.quantities import plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from hpcrowd.analysis.views.moment import Moment


#: s; how far a picture shows the past, and the future.
BACK, AHEAD = 36 * HOUR, 12 * HOUR

#: Most jobs of a picture; the largest are drawn.
MOST = 1200

#: Share of white in the expected part.
PALE = 0.62


@dataclass(frozen=True)
class Recent:
    """The jobs that are drawn."""

    rows: Int64s  #: rows in the table of runs, :attr:`Moment.by_run`, by start, shape (jobs,)
    begin: Int64s  #: s; for running jobs the end that the scheduler expects, later than now
    end: Int64s
    total: int  #: number of jobs, including those not drawn
    share: float  #: share of the processor-seconds in the window until now that is drawn


def recent_jobs(moment: Moment, back: int = BACK, most: int | None = MOST) -> Recent:
    """Return the jobs that are running or ran at some time in the last ``back`` s.

    If there are more than ``most``, they are those with the most processor-seconds in that time.
    """
    moment = moment.by_run
    jobs, now = moment.jobs, moment.now
    rows = np.flatnonzero(moment.started & (moment.running | (jobs.end > now - back)))
    running = moment.running[rows]
    begin, processors = jobs.start[rows], jobs.processors[rows]
    held = np.where(running, now, jobs.end[rows]) - np.maximum(begin, now - back)
    work = processors * held.astype(float)
    total, kept = len(rows), np.arange(len(rows))
    if most is not None and total > most:
        kept = np.sort(np.argsort(-work, kind="stable")[:most])
    share = float(work[kept].sum() / work.sum()) if work.sum() else 1.0
    rows = rows[kept]
    rows = rows[np.lexsort((rows, jobs.start[rows]))]
    return Recent(rows, jobs.start[rows], moment.ends[rows], total, share)


def gantt_table(moment: Moment, back: int = BACK, most: int | None = None) -> pd.DataFrame:
    """Return the jobs that are running or ran at some time in the last ``back`` s, by start.

    Parameters
    ----------
    moment, back, most
        See :func:`recent_jobs`.

    Returns
    -------
    frame
        ``row`` in :attr:`Moment.by_run`, ``job`` number, ``user``, ``user_name`` if the trace has
        names, ``processors``, ``submitted_s``, ``start_s``, ``end_s`` (missing while it runs) and
        ``expected_end_s`` (the scheduler's), s since the origin. A job that was stopped has a row
        for each of its runs, ``submitted_s`` being when it began to wait for it.
    """
    import pandas as pd

    moment = moment.by_run
    jobs = moment.jobs
    rows = recent_jobs(moment, back, most).rows
    running = moment.running[rows]
    estimate = jobs.estimate[rows]
    return pd.DataFrame(
        {
            "row": rows,
            "job": jobs.number[rows],
            **jobs.with_names(jobs.user[rows]),
            "processors": jobs.processors[rows],
            "submitted_s": jobs.submit[rows],
            "start_s": jobs.start[rows],
            "end_s": where_known(jobs.end[rows], ~running),
            "expected_end_s": where_known(jobs.start[rows] + estimate, estimate != UNKNOWN),
        }
    )


def gantt_picture(
    moment: Moment,
    *,
    most: int = MOST,
    width: float = 9.0,
    height: float = 4.6,
) -> Figure:
    """Return a Gantt chart around the moment.

    The rest of a running job, as the scheduler expects it, is pale. The rows of processors are
    those of :func:`place`. If there are many jobs, only the largest are drawn; the title says how
    many.

    Parameters
    ----------
    moment
        The moment.
    most
        Most jobs, see :func:`recent_jobs`.
    width, height
        Inches.
    """
    from matplotlib.colors import to_hex

    count, moment = len(moment.jobs), moment.by_run
    jobs, now = moment.jobs, moment.now
    recent = recent_jobs(moment, most=most)
    rows, begin, end = recent.rows, recent.begin, recent.end
    size = max(one.size for one in moment.steps if one.at <= now)
    where = place(begin, end, jobs.processors[rows], size)
    words = f"{plural(int(moment.running.sum()), 'job')} running"
    words += f", {plural(recent.total, 'job')} in the window"
    if len(rows) < recent.total:
        words += f"; the largest {len(rows):,} shown, {100 * recent.share:.1f} % of the work"
    figure = figure_at(moment, "Running jobs", width, height, words)
    axes = figure.add_axes((0.7 / width, 0.62 / height, 1 - 0.85 / width, 1 - 1.9 / height))
    dashed = "; dashed: size of the machine" if where.rows > size else ""
    plots.tidy(axes, f"Processors, placed by first fit; pale: expected{dashed}")
    axes.grid(visible=False)
    plots.label_hours(
        axes, moment.clock, now - BACK, now + AHEAD, named=True, most=int(1.3 * width)
    )
    axes.set_ylim(0, max(where.rows, size))
    plots.count_axis(axes)
    if not len(rows):
        plots.say_nothing(axes, "no job ran in this window")
        return figure
    looks = looks_of(jobs, "user", count)
    past = np.minimum(end, now)
    draw_pieces(axes, looks, rows, (begin, past), where)
    runs = end > now
    ahead_of = runs[where.job]
    later = Placement(where.job[ahead_of], where.row[ahead_of], where.height[ahead_of], where.rows)
    pale = [replace(one, colour=to_hex(plots.paler(one.colour, PALE))) for one in looks.looks]
    paler = replace(looks, looks=pale)
    draw_pieces(axes, paler, rows, (np.maximum(begin, now), end), later)
    if where.rows > size:
        axes.axhline(size, color="black", linewidth=0.8, linestyle=(0, (4, 3)))
    axes.axvline(now, color="black", linewidth=1.0)
    work = jobs.processors[rows] * (past - np.maximum(begin, now - BACK)).astype(float)
    figure.legend(
        handles=legend_handles(looks.legend(work, rows)),
        loc="upper left",
        bbox_to_anchor=(0.0, 1 - 0.74 / height),
        ncols=11,
        columnspacing=0.7,
        handletextpad=0.3,
        **plots.LEGEND,
    )
    return figure
