"""The queue: which jobs wait, in the order of the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hpcrowd.analysis.views.frames import table_picture
from hpcrowd.environment.quantities import format_duration, plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from hpcrowd.analysis.views.moment import Moment
    from hpcrowd.environment.jobs import Int64s


#: Most rows of a picture.
MOST = 25

#: Where jobs of a grid are that are in no queue.
BROKER = "broker"


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
        ``requested_time_s``, ``submitted_s`` since the origin, ``waited_s`` so far; where there
        are several clusters, ``cluster`` by name, or ``broker`` for jobs of a grid that are in no
        queue.
    """
    import pandas as pd

    jobs, rows = moment.jobs, moment.queue[:most]
    submit = jobs.submit[rows]
    frame = pd.DataFrame(
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
    if len(moment.clusters) > 1:
        frame.insert(4, "cluster", pd.Series(_places(moment, rows), dtype="str"))
    return frame


def _places(moment: Moment, rows: Int64s) -> list[str]:
    """Return where jobs wait, in words."""
    names = list(moment.clusters)
    clusters, held = moment.jobs.cluster[rows].tolist(), moment.held[rows].tolist()
    return [
        BROKER if with_broker else names[cluster]
        for cluster, with_broker in zip(clusters, held, strict=True)
    ]


def _word(name: str, value: Any) -> str:
    """Return a cell as people read it."""
    if name.endswith("_s"):
        return format_duration(value) if value >= 0 else "none"
    return f"{value:,}" if name == "processors" else str(value)


def queue_picture(
    moment: Moment, most: int = MOST, *, reasons: Mapping[int, str] | None = None
) -> Figure:
    """Return a picture of :func:`queue_table`, at most ``most`` jobs.

    Parameters
    ----------
    moment, most
        See :func:`queue_table`.
    reasons
        Why jobs wait, in words by row; None leaves them out.
    """
    frame = queue_table(moment, most)
    if reasons is not None:
        told = [reasons.get(row, "") for row in frame["row"].tolist()]
        frame = frame.assign(why_it_waits=told)
    frame = frame.drop(columns=["row", "submitted_s"])
    words = [[_word(str(name), value) for value in frame[name].tolist()] for name in frame.columns]
    total = len(moment.queue)
    shown = f"the first {len(frame):,} of " if len(frame) < total else ""
    return table_picture(
        moment, "Queue", frame, words, note=f"{shown}{plural(total, 'waiting job')}"
    )
