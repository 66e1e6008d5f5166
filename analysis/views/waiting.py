"""The queue: which jobs wait, in the order of the scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.views.frames import table_picture
from environment.quantities import format_duration, plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from analysis.views.moment import Moment

#: Most rows of a picture.
MOST = 25


def queue_table(moment: Moment, most: int | None = None) -> pd.DataFrame:
    """Return the jobs that wait, first in the queue first.

    Parameters
    ----------
    moment
        The moment; ``len(moment.queue)`` is the number of all jobs that wait.
    most
        Most rows; None for all.

    Returns
    -------
    frame
        ``row`` in the table of jobs, ``job`` number, ``user``, ``processors``,
        ``requested_time_s``, ``submitted_s`` since the origin, ``waited_s`` so far.
    """
    import pandas as pd

    jobs, rows = moment.jobs, moment.queue[:most]
    submit = jobs.submit[rows]
    return pd.DataFrame(
        {
            "row": rows,
            "job": jobs.number[rows],
            "user": jobs.user[rows],
            "processors": jobs.processors[rows],
            "requested_time_s": jobs.requested_time[rows],
            "submitted_s": submit,
            "waited_s": moment.now - submit,
        }
    )


def queue_picture(moment: Moment, most: int = MOST) -> Figure:
    """Return a picture of :func:`queue_table`, at most ``most`` jobs."""
    frame = queue_table(moment, most).drop(columns=["row", "submitted_s"])
    words = [
        [f"{value:,}" if name == "processors" else str(value) for value in frame[name].tolist()]
        for name in ("job", "user", "processors")
    ]
    words += [
        [format_duration(value) for value in frame[name].tolist()]
        for name in ("requested_time_s", "waited_s")
    ]
    total = len(moment.queue)
    shown = f"the first {len(frame):,} of " if len(frame) < total else ""
    return table_picture(
        moment, "Queue", frame, words, note=f"{shown}{plural(total, 'waiting job')}"
    )
