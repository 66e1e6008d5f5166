"""Recorded against simulated submissions until now, and how late users are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hpcrowd.analysis import curves
from hpcrowd.analysis.pictures.overview import TIME_BINS
from hpcrowd.analysis.pictures.plots import (
    COLOURS,
    LEGEND,
    TITLE,
    count_axis,
    label_hours,
    say_nothing,
    tidy,
)
from hpcrowd.analysis.views.frames import figure_at, mark_now
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.quantities import format_duration

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from hpcrowd.analysis.views.moment import Moment


#: How far the record is shown ahead of now, as a part of what lies behind.
AHEAD = 0.25


class Lateness(NamedTuple):
    """Simulated minus recorded submission, s; None where no such job was submitted."""

    mean: float | None  #: of all jobs submitted so far
    recent: float | None  #: of those submitted in the last day


def lateness_now(moment: Moment, recent: int = DAY) -> Lateness:
    """Return how late users are, as far as there is a record.

    Parameters
    ----------
    moment
        The moment.
    recent
        s; what counts as recent.
    """
    jobs = moment.jobs
    rows = np.flatnonzero(moment.submitted & (jobs.recorded_submit != UNKNOWN))
    submit = jobs.submit[rows]
    late = submit - jobs.recorded_submit[rows]
    last = late[submit >= moment.now - recent]
    return Lateness(*(float(some.mean()) if len(some) else None for some in (late, last)))


def submissions_table(
    moment: Moment, window: int | None = None, *, ahead: float = AHEAD
) -> pd.DataFrame:
    """Return how many jobs were submitted until when.

    Parameters
    ----------
    moment
        The moment.
    window
        s before the moment; None for the whole run so far.
    ahead
        How far the record is followed beyond now, as a part of that length.

    Returns
    -------
    frame
        A row for each second that is shown: ``time_s`` since the origin, jobs ``recorded`` and
        ``simulated`` as submitted until then, also in that second; ``simulated`` is missing at and
        after now, but for the number so far.
    """
    import pandas as pd

    jobs, now = moment.jobs, moment.now
    recorded = jobs.recorded_submit
    begin = moment.first
    known = recorded != UNKNOWN
    if known.any():
        begin = min(begin, int(np.min(recorded, where=known, initial=begin)))
    if window is not None:
        begin = max(begin, now - window)
    begin = min(begin, now - HOUR)
    last = now + int(ahead * (now - begin)) if known.any() else now
    last = max(now, min(last, int(recorded.max(initial=now))))
    times = np.union1d(curves.time_edges(begin, last, TIME_BINS // 2), [begin, now, last])
    times = times[(times >= begin) & (times <= last)]
    simulated = curves.cumulative(jobs.submit[moment.submitted], times)
    return pd.DataFrame(
        {
            "time_s": times,
            "recorded": curves.cumulative(recorded, times),
            "simulated": pd.arrays.IntegerArray(simulated, times > now),
        }
    )


def submissions_picture(
    moment: Moment,
    window: int | None = None,
    *,
    ahead: float = AHEAD,
    width: float = 6.5,
    height: float = 3.4,
) -> Figure:
    """Return a picture of :func:`submissions_table`; sizes in inches."""
    frame = submissions_table(moment, window, ahead=ahead)
    late = lateness_now(moment)
    words = "nothing of it is on record"
    if late.mean is not None:
        words = f"mean lateness so far {format_duration(late.mean)}"
        if late.recent is not None:
            words += f", of the last day {format_duration(late.recent)}"
    figure = figure_at(moment, "Submissions", width, height, words)
    axes = figure.add_axes((0.7 / width, 0.5 / height, 1 - 0.85 / width, 1 - 1.6 / height))
    tidy(axes)
    axes.set_title("Jobs submitted until then", **TITLE)
    times, past = frame["time_s"].to_numpy(), frame["time_s"].to_numpy() <= moment.now
    if not frame["recorded"].any() and not frame["simulated"].any():
        say_nothing(axes, "nothing was submitted")
        return figure
    if frame["recorded"].any():
        recorded = frame["recorded"].to_numpy()
        axes.plot(times[past], recorded[past], color=COLOURS["grey"], lw=2.8, label="recorded")
        axes.plot(times[~past], recorded[~past], color=COLOURS["grey"], lw=1.0)
    simulated = frame["simulated"].to_numpy(dtype=float, na_value=np.nan)
    axes.plot(times, simulated, color=COLOURS["blue"], lw=1.3, label="simulated")
    axes.set_ylim(bottom=0 if window is None else None)
    count_axis(axes)
    label_hours(
        axes, moment.clock, int(times[0]), int(times[-1]), named=True, most=int(1.3 * width)
    )
    mark_now(axes, moment)
    axes.legend(**LEGEND, loc="upper left")
    return figure
