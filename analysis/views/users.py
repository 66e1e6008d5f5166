"""The users at a moment: their states, service, decisions and weeks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.agents.behaviours.activity import ActivityWindow, SameWindow, WeeklyWindow, WorkPattern
from hpcrowd.agents.behaviours.composed import Composed, Rigid
from hpcrowd.agents.behaviours.decisions import DecisionLog, Decisions
from hpcrowd.agents.behaviours.hooks import NotedWindow
from hpcrowd.agents.behaviours.profiles import ActiveTime, Profiles
from hpcrowd.agents.behaviours.user import User
from hpcrowd.agents.generative.archetypes import OfficeWorker
from hpcrowd.agents.generative.generated import GeneratedUser
from hpcrowd.agents.generative.shmueli import Doing, ShmueliFeitelson, SiteUser
from hpcrowd.agents.populations.component_users import ClosedLoop, ComponentUser
from hpcrowd.agents.populations.satisfaction import Minding
from hpcrowd.agents.presets import preset_of
from hpcrowd.analysis.curves import WEEK_HOURS
from hpcrowd.analysis.pictures import plots
from hpcrowd.analysis.views.frames import by_name, figure_at, fill_steps, table_picture, where_known
from hpcrowd.environment.clock import DAYS, HOUR
from hpcrowd.environment.clock import moment as local_moment
from hpcrowd.environment.jobs import UNKNOWN, Int64s, State
from hpcrowd.environment.quantities import format_duration, plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from hpcrowd.agents.behaviours.user import User
    from hpcrowd.analysis.curves import Floats
    from hpcrowd.analysis.views.moment import Moment


def behaviours_of(users: Mapping[int, User]) -> dict[int, str]:
    """Return the behaviour of each user by number; empty if all have the same."""
    words: dict[int, str] = {}
    found = {}
    for number, user in users.items():
        behaviour = user.behaviour
        key = id(behaviour)
        if key not in words:
            words[key] = behaviour_words(behaviour)
        found[number] = words[key]
    return found if len(set(found.values())) > 1 else {}


def places_of(users: Mapping[int, User]) -> dict[int, str]:
    """Return where each user submits to, by number; empty if it is the same for all."""
    found = {
        number: str(site.name)
        for number, user in users.items()
        if (site := getattr(user, "site", None)) is not None
    }
    return found if len(set(found.values())) > 1 else {}


def behaviour_words(behaviour: Any) -> str:
    """Return the name of a behaviour's preset, or else of its parts.

    Reactions are added: ``think-time; switch, delay``.
    """
    if isinstance(behaviour, Minding):
        return behaviour_words(behaviour.inner)
    if isinstance(behaviour, Rigid):
        return "rigid"
    if isinstance(behaviour, ShmueliFeitelson):
        return "generative" if behaviour.model.presence == "recorded" else "shmueli-feitelson"
    if not isinstance(behaviour, Composed):
        return type(behaviour).__name__
    name = preset_of(behaviour)
    if name is None:
        parts = (behaviour.when, behaviour.think, behaviour.window)
        kinds = [type(getattr(part, "inner", part)) for part in parts if part is not None]
        name = ", ".join(kind.__name__ for kind in kinds)
    reactions = [type(one).__name__.lower() for one in behaviour.reactions]
    return f"{name}; {', '.join(reactions)}" if reactions else name


#: States of a user, and their meaning.
STATES = {
    "running": "has running jobs",
    "waiting": "has jobs in the queue, none running",
    "thinking": "has no jobs on the machine, more will come",
    "away": "the same, outside working hours",
    "done": "will submit nothing more",
    "not yet": "has submitted nothing yet",
}

#: The states by index.
NAMES = np.array(list(STATES))
RUNNING, WAITING, THINKING, AWAY, DONE, NOT_YET = range(len(NAMES))

#: Most users of a picture.
MOST = 15


def users_table(moment: Moment) -> pd.DataFrame:
    """Return the state and the service of each user, by number.

    Returns
    -------
    frame
        ``user`` number, ``user_name`` if the trace has names, ``state`` (one of :data:`STATES`),
        ``jobs_done`` (ran to their end), ``jobs_waiting``, ``jobs_running``, ``jobs_given_up``
        (taken back before they started; missing if none was), ``wait_mean_s`` of the jobs that
        started, ``lateness_mean_s`` of the submitted jobs with a record, ``mood`` in
        doublings for users with a satisfaction (0: as usual, 1: twice as bad),
        ``next_submission_s`` since the origin if known, ``behaviour`` if users differ in it, and
        with several clusters ``submits_to``: the name of one, or ``grid`` for its broker. Unknown
        values are missing, such as both of the last in a run that was read from a folder.
    """
    import pandas as pd

    jobs = moment.jobs
    # Hashing is faster than sorting here.
    everybody = np.append(jobs.user, np.fromiter(moment.users, np.int64))
    codes, numbers = pd.factorize(everybody, sort=True)
    place_of, count = codes[: len(jobs)], len(numbers)

    def sums(which: Any, weights: Any = None) -> Any:
        return np.bincount(place_of[which], weights=weights, minlength=count)

    started = np.flatnonzero(moment.started)
    running, waiting = np.flatnonzero(moment.running), np.flatnonzero(moment.waiting)
    starts, ran = sums(started), sums(running)
    submitted = np.flatnonzero(moment.submitted)
    recorded = submitted[jobs.recorded_submit[submitted] != UNKNOWN]
    late = (jobs.submit[recorded] - jobs.recorded_submit[recorded]).astype(float)
    wait = (jobs.start[started] - jobs.submit[started]).astype(float)
    waits = sums(waiting)
    coming = np.flatnonzero(moment.foreseen)
    following = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(following, place_of[coming], jobs.submit[coming])
    # A user whose job was stopped by the platform has submitted it, even if it comes again later.
    submissions = sums(submitted) + sums(moment.stopped)
    left = sums(~moment.submitted & (jobs.state != State.RENOUNCED)) > 0
    states = np.select(
        [ran > 0, waits > 0, submissions == 0, left],
        [RUNNING, WAITING, NOT_YET, THINKING],
        DONE,
    )
    mood = np.full(count, np.nan)
    ended = moment.model is not None and moment.model.over
    for number, user in moment.users.items():
        place = int(np.searchsorted(numbers, number))
        states[place] = state_of(user, moment.now, int(states[place]))
        if ended and states[place] in (THINKING, AWAY):
            states[place] = DONE  # its time ended before its work
        minds = isinstance(user, GeneratedUser) and isinstance(user.behaviour, Minding)
        if minds and states[place] != NOT_YET:  # users who have not come yet have no experience
            mood[place] = user.mood
        alarm = moment.alarms.get(number)
        if alarm is not None and alarm >= getattr(user, "absent_until", 0):
            following[place] = min(following[place], alarm)
    # Includes users who have only a stopped job to submit again.
    states[(states == DONE) & (sums(coming) > 0)] = THINKING
    known = following < np.iinfo(np.int64).max
    given_up = np.flatnonzero(moment.given_up)
    return pd.DataFrame(
        {
            **jobs.with_names(numbers),
            "state": NAMES[states],
            "jobs_done": starts - ran,
            "jobs_waiting": waits,
            "jobs_running": ran,
            "jobs_given_up": sums(given_up) if len(given_up) else np.nan,
            "wait_mean_s": means_of(sums(started, wait), starts),
            "lateness_mean_s": means_of(sums(recorded, late), sums(recorded)),
            "mood": mood,
            "next_submission_s": where_known(following, known),
            "behaviour": _named(numbers, behaviours_of(moment.users)),
            "submits_to": _named(numbers, places_of(moment.users)),
        }
    )


def _named(numbers: Int64s, words: dict[int, str]) -> pd.Series[Any]:
    """Return a word for each user; missing if there is none."""
    import pandas as pd

    return pd.Series([words.get(number) for number in numbers.tolist()], dtype="str")


def state_of(user: User, now: int, state: int) -> int:
    """Return the index of a user's state in :data:`STATES`, using the user's own knowledge.

    ``state`` is the one that follows from its jobs alone.
    """
    if state in (RUNNING, WAITING):
        return state
    if isinstance(user, GeneratedUser):
        asleep = isinstance(user, SiteUser) and user.state == Doing.ASLEEP
        gone = asleep and state != NOT_YET and user.until == UNKNOWN
        if user.done or gone or user.absent_until >= user.horizon:
            return DONE
        if user.absent_until > now or (asleep and state != NOT_YET):
            return AWAY
        # The table does not hold future jobs, as they have not been generated yet.
        return NOT_YET if state == NOT_YET else DONE if now >= user.horizon else THINKING
    behaviour = user.behaviour
    window = behaviour.window if isinstance(behaviour, Composed) else None
    if state == THINKING and window is not None and not window.is_open(user, now):
        return AWAY
    return state


def users_picture(moment: Moment, most: int = MOST) -> Figure:
    """Return a picture of :func:`users_table`, users with the most jobs on the machine first.

    Parameters
    ----------
    moment
        The moment.
    most
        Most users.
    """
    frame = users_table(moment)
    total = len(frame)
    keys = (frame["user"], -frame["jobs_done"], -frame["jobs_waiting"], -frame["jobs_running"])
    frame = frame.iloc[np.lexsort(keys)[:most]]
    frame = by_name(frame.dropna(axis="columns", how="all"))
    words = [_words(frame[name], moment) for name in frame.columns]
    shown = f"the busiest {len(frame):,} of " if len(frame) < total else ""
    return table_picture(moment, "Users", frame, words, note=f"{shown}{plural(total, 'user')}")


def _words(column: pd.Series[Any], moment: Moment) -> list[str]:
    """Return the text of the cells of a column."""

    def written(value: Any) -> str:
        if column.name == "next_submission_s":
            return local_moment(moment.clock, int(value))
        if str(column.name).endswith("mean_s"):
            return format_duration(value)
        if column.name == "mood":
            return mood_words(value)
        return str(value) if isinstance(value, str) or column.name == "user" else f"{value:,}"

    missing = column.isna().tolist()
    return [
        "" if none else written(value) for value, none in zip(column.tolist(), missing, strict=True)
    ]


def mood_words(mood: float) -> str:
    """Return a mood with its sign, rounded; 0 is ``+0.00``."""
    return f"{round(mood, 2) + 0.0:+.2f}"


def means_of(sums: Any, counts: Any) -> Any:
    """Return sums over counts; NaN where the count is 0."""
    return np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)


#: Most decisions of a table and of a picture.
MOST_DECISIONS, DRAWN = 100, 12


def decisions_table(moment: Moment, user: int, most: int | None = MOST_DECISIONS) -> pd.DataFrame:
    """Return the decisions of a user before the moment, newest first.

    Parameters
    ----------
    moment
        The moment; the table is empty without a log of decisions.
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
    note = f"the last {len(frame):,} decisions" if len(frame) else "no decisions in the log"
    words = [frame[name].tolist() for name in frame.columns]
    return table_picture(moment, f"User {moment.jobs.who(user)}", frame, words, note=note)


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
