"""The week of a user: submissions, recorded and so far, and working hours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.agents.behaviours.activity import ActivityWindow, SameWindow, WeeklyWindow, WorkPattern
from hpcrowd.agents.behaviours.composed import Composed
from hpcrowd.agents.behaviours.hooks import NotedWindow
from hpcrowd.agents.behaviours.profiles import ActiveTime, Profiles
from hpcrowd.agents.generative.archetypes import OfficeWorker
from hpcrowd.agents.generative.shmueli import ShmueliFeitelson
from hpcrowd.agents.populations.component_users import ClosedLoop, ComponentUser
from hpcrowd.agents.populations.satisfaction import Minding
from hpcrowd.analysis.curves import WEEK_HOURS
from hpcrowd.analysis.pictures import plots
from hpcrowd.analysis.views.frames import figure_at, fill_steps
from hpcrowd.environment.clock import DAYS, HOUR
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.quantities import plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from hpcrowd.agents.behaviours.user import User
    from hpcrowd.analysis.curves import Floats
    from hpcrowd.analysis.views.moment import Moment


@dataclass(frozen=True)
class Hours:
    """The working hours of a user.

    Attributes
    ----------
    pieces
        Windows in which it may submit: open and close, s after Monday 00:00 local time; None if it
        has none.
    weights
        Its activity in each hour of the week, 1 on average, shape (168,); None if it has none.
    """

    pieces: list[tuple[int, int]] | None = None
    weights: Floats | None = None


def hours_of(user: User | None) -> Hours:
    """Return the hours of a user; empty if its behaviour has none or there is no agent."""
    if user is None:
        return Hours()
    behaviour: Any = user.behaviour
    if isinstance(behaviour, Minding):
        behaviour = behaviour.inner
    if isinstance(behaviour, OfficeWorker):
        return Hours(_pieces(behaviour.window))
    if isinstance(behaviour, ClosedLoop) and isinstance(user, ComponentUser):
        profiles = behaviour.profiles
        weights = None if profiles is None else profiles.of(user.component.user).weights
        return Hours(weights=weights)
    if not isinstance(behaviour, Composed | ShmueliFeitelson):
        return Hours()
    window = behaviour.window
    if isinstance(window, NotedWindow):
        window = window.inner
    if isinstance(window, SameWindow):
        return Hours(_pieces(window.window))
    if isinstance(window, WorkPattern) and user.number in window.windows:
        return Hours(_pieces(window.windows[user.number]))
    if isinstance(window, ActiveTime) and isinstance(window.profiles, Profiles):
        return Hours(weights=window.profiles.of(user.number).weights)
    return Hours()


def _pieces(window: Any) -> list[tuple[int, int]] | None:
    if isinstance(window, ActivityWindow):
        window = window.week
    return window.pieces if isinstance(window, WeeklyWindow) else None


def week_table(moment: Moment, user: int) -> pd.DataFrame:
    """Return the jobs that a user has submitted so far, by local hour of the week.

    Returns
    -------
    frame
        A row for each hour from Monday 00:00: ``hour`` from 0 to 167, ``day``, ``hour_of_day``,
        jobs ``recorded`` and ``simulated``, ``open`` (part of the hour in which the user may
        submit) and ``activity`` (1 on average); the last two are missing if the behaviour does not
        have them, or without a simulation.
    """
    import pandas as pd

    jobs, clock = moment.jobs, moment.clock
    rows = moment.rows_of(user)
    recorded = jobs.recorded_submit[rows]
    counts = [
        np.bincount(clock.second_of_week(times) // HOUR, minlength=WEEK_HOURS)
        for times in (
            recorded[(recorded != UNKNOWN) & (recorded < moment.now)],
            jobs.submit[rows][moment.submitted[rows]],
        )
    ]
    hours = np.arange(WEEK_HOURS)
    at_work = hours_of(moment.users.get(user))
    share = np.full(WEEK_HOURS, np.nan)
    if at_work.pieces is not None:
        share[:] = 0.0
        for opens, closes in at_work.pieces:
            inside = np.minimum((hours + 1) * HOUR, closes) - np.maximum(hours * HOUR, opens)
            share += np.maximum(inside, 0) / HOUR
    weights = np.full(WEEK_HOURS, np.nan) if at_work.weights is None else at_work.weights
    return pd.DataFrame(
        {
            "hour": hours,
            "day": np.repeat(DAYS, 24),
            "hour_of_day": hours % 24,
            "recorded": counts[0],
            "simulated": counts[1],
            "open": share,
            "activity": weights,
        }
    )


def week_picture(moment: Moment, user: int, *, width: float = 9.0, height: float = 3.2) -> Figure:
    """Return a picture of :func:`week_table`; sizes in inches.

    Green: hours in which the user may submit; line: its activity; black line: now.
    """
    frame = week_table(moment, user)
    recorded, simulated = frame["recorded"].to_numpy(), frame["simulated"].to_numpy()
    words = f"{plural(int(simulated.sum()), 'job')} until now"
    if recorded.any():
        words += f", {int(recorded.sum()):,} as recorded"
    figure = figure_at(moment, f"Week of user {moment.jobs.who(user)}", width, height, words)
    axes = figure.add_axes((0.6 / width, 0.5 / height, 1 - 0.75 / width, 1 - 1.62 / height))
    plots.tidy(axes, "Jobs submitted in each hour of the week")
    edges = np.arange(WEEK_HOURS + 1)
    pieces = hours_of(moment.users.get(user)).pieces or []
    top = 1.15 * max(1, int(recorded.max()), int(simulated.max()))
    if pieces:
        axes.broken_barh(
            [(opens / HOUR, (closes - opens) / HOUR) for opens, closes in pieces],
            (0, top), color=plots.COLOURS["green"], alpha=0.18, linewidth=0, label="at work",
        )  # fmt: skip
    if not recorded.any() and not simulated.any():
        plots.say_nothing(axes, "nothing was submitted")
    if recorded.any():
        fill_steps(axes, edges, recorded, "grey", alpha=0.65, label="recorded")
    axes.step(
        edges, np.append(simulated, simulated[-1]), where="post", color=plots.COLOURS["blue"],
        linewidth=1.3, label="simulated",
    )  # fmt: skip
    activity = frame["activity"].to_numpy()
    if not np.isnan(activity).any():
        shown = 0.8 * top * activity / activity.max()
        axes.step(
            edges, np.append(shown, shown[-1]), where="post", color=plots.COLOURS["green"],
            linewidth=1.0, linestyle=(0, (3, 1.5)), label="activity (not to scale)",
        )  # fmt: skip
    now = int(moment.clock.second_of_week(np.array([moment.now]))[0]) / HOUR
    axes.axvline(now, color="black", linewidth=1.0, label="now")
    axes.set_ylim(0, top)
    plots.count_axis(axes)
    plots.label_week(axes, moment.clock, named=False)
    zone = "the origin counts as Monday" if moment.clock.nominal else str(moment.clock.zone)
    axes.set_xlabel(f"local time, {zone}", fontsize=8.5)
    axes.legend(
        **plots.LEGEND, loc="lower right", bbox_to_anchor=(1.0, 0.985), ncols=5, borderaxespad=0.2
    )
    return figure
