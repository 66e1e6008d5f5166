"""What a user decided until now, newest first, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpcrowd.agents.behaviours.decisions import DecisionLog, Decisions
from hpcrowd.analysis.views.frames import table_picture
from hpcrowd.environment.clock import moment as local_moment

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from hpcrowd.analysis.views.moment import Moment


#: Most decisions of a table and of a picture.
MOST, DRAWN = 100, 12


def decisions_table(moment: Moment, user: int, most: int | None = MOST) -> pd.DataFrame:
    """Return the decisions of a user before the moment, newest first.

    Parameters
    ----------
    moment
        The moment; without a log of decisions the table is empty.
    user
        Number of the user.
    most
        Most rows; None for all.

    Returns
    -------
    frame
        ``time_s`` since the origin, ``local_time``, and ``decision`` in words.
    """
    import pandas as pd

    found = moment.decisions
    if isinstance(found, DecisionLog):
        found = Decisions.of(found, user)
    rows = [] if found is None else found.last_of_user(user, moment.now, most)
    return pd.DataFrame(
        {
            "time_s": pd.Series([row.time for row in rows], dtype="int64"),
            "local_time": pd.Series(
                [local_moment(moment.clock, row.time) for row in rows], dtype="str"
            ),
            "decision": pd.Series([row.words() for row in rows], dtype="str"),
        }
    )


def decisions_picture(moment: Moment, user: int, most: int = DRAWN) -> Figure:
    """Return a picture of :func:`decisions_table`."""
    frame = decisions_table(moment, user, most).drop(columns="time_s")
    note = f"the last {len(frame):,} decisions" if len(frame) else "nothing is in its log"
    words = [frame[name].tolist() for name in frame.columns]
    return table_picture(moment, f"User {user}", frame, words, note=note)
