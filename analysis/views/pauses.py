"""Think times of a user against the response times before them, so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.pictures.plots import COLOURS, LEGEND, say_nothing, tidy
from hpcrowd.analysis.views.frames import figure_at
from hpcrowd.analysis.views.own_units import own_units
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.quantities import plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcrowd.analysis.views.moment import Moment


#: Labels of axes of times, s.
LABELS = {1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", HOUR: "1 h", 6 * HOUR: "6 h",
          DAY: "1 day", WEEK: "1 week", 30 * DAY: "30 days", 365 * DAY: "1 year"}  # fmt: skip

#: s; shorter times are drawn as this long, since 0 has no place on a logarithmic axis.
LEAST = 1


def pauses_table(moment: Moment, user: int) -> pd.DataFrame:
    """Return the pauses of a user after what it waited for, of the units submitted until now.

    Returns
    -------
    frame
        A row for each unit that waited for another: ``unit``, ``after`` (of what it waited for,
        the one that ended last), ``response_s`` of the job of it that ended last (0 where none
        ran), ``pause_s`` from its end to the submission; and ``recorded_response_s`` and
        ``recorded_pause_s`` of the same unit, missing where it is not on record. Of users who do
        not wait pauses may be negative.
    """
    import pandas as pd

    own = own_units(moment, user)
    places = np.flatnonzero(own.submitted & (own.awaited >= 0))
    awaited = own.awaited[places]
    good = own.over[awaited]  # of a rigid user it may still run
    places, awaited = places[good], awaited[good]
    missing = np.full(len(places), np.nan)
    recorded = {"recorded_response_s": missing, "recorded_pause_s": missing}
    if own.units is not None:
        units, numbers = own.units, own.numbers[places]
        recorded = {
            "recorded_response_s": units.response[units.awaited[numbers]].astype(float),
            "recorded_pause_s": units.think_time[numbers].astype(float),
        }
    return pd.DataFrame(
        {
            "unit": own.numbers[places],
            "after": own.numbers[awaited],
            "response_s": own.response[awaited],
            "pause_s": own.begin[places] - own.end[awaited],
            **recorded,
        }
    )


def pauses_picture(moment: Moment, user: int, *, width: float = 5.2, height: float = 4.4) -> Figure:
    """Return a picture of :func:`pauses_table`, on logarithmic axes; sizes in inches."""
    frame = pauses_table(moment, user)
    words = f"{plural(len(frame), 'pause')} until now"
    early = int((frame["pause_s"] < 0).sum())
    if early:
        words += f"; not drawn: {early:,} that began before the end"
    figure = figure_at(moment, f"Pauses of user {user}", width, height, words)
    axes = figure.add_axes((0.85 / width, 0.72 / height, 1 - 1.05 / width, 1 - 1.72 / height))
    tidy(axes)
    if not len(frame):
        say_nothing(axes, "it has not waited for anything yet")
        return figure
    pairs: list[Any] = [("response_s", "pause_s", "simulated", "blue", "x", 14, 0.8)]
    if frame["recorded_pause_s"].notna().any():
        pairs.insert(
            0, ("recorded_response_s", "recorded_pause_s", "recorded", "grey", "o", 18, 0.7)
        )
    highest = 1.0
    for x, y, label, colour, marker, size, alpha in pairs:
        good = (frame[y] >= 0).to_numpy()
        values = [np.maximum(frame[name].to_numpy(float)[good], LEAST) for name in (x, y)]
        highest = max(highest, *(float(some.max(initial=1)) for some in values))
        axes.scatter(
            values[0], values[1], marker=marker, color=COLOURS[colour],
            alpha=alpha, label=label, linewidths=0 if marker == "o" else 1.0, s=size,
        )  # fmt: skip
    axes.legend(**LEGEND, loc="lower left", bbox_to_anchor=(0.0, 0.985), ncols=2)
    label_times(axes, highest)
    axes.set_xlabel("response time of what it waited for (below 1 s: as 1 s)", fontsize=8.5)
    axes.set_ylabel("think time", fontsize=8.5)
    return figure


def label_times(axes: Axes, highest: float) -> None:
    """Give both axes the same logarithmic scale up to ``highest`` s, with words for times."""
    from matplotlib.ticker import FixedLocator, NullLocator

    top = max(2.0 * highest, HOUR)
    axes.set(xscale="log", yscale="log", xlim=(0.7 * LEAST, top), ylim=(0.7 * LEAST, top))
    shown = {second: text for second, text in LABELS.items() if second <= top}
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(FixedLocator(list(shown)))
        axis.set_minor_locator(NullLocator())
    axes.set_yticklabels(list(shown.values()))
    axes.set_xticklabels(list(shown.values()), rotation=30, ha="right", rotation_mode="anchor")
