"""Users of a run: how much work each has, how long each waits, how late each is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.metrics import per_user
from hpcrowd.analysis.pictures.over_time import Columns, recorded_jobs
from hpcrowd.analysis.pictures.plots import (
    COLOURS,
    LEGEND,
    TITLE,
    WAIT_LABELS,
    draw_exceedance,
    draw_waits,
    lines_of,
    new_figure,
    say_nothing,
    tidy,
    waits_of,
)
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.jobs import Int64s

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Users with the most work that have their numbers in the picture.
NAMED = 8

#: Least distance of two such numbers, as a part of the height of the picture.
BETWEEN = 0.055

#: An axis with more powers of ten is labelled at them only.
FEW_TENS = 4

#: Waits below this stand at it on a logarithmic axis, s.
LEAST = 1


def users_data(run: Run) -> Columns:
    """Return a row for each user, most work first.

    Returns
    -------
    dict
        ``user``, ``jobs``, ``work_processor_h`` (of jobs that ran), ``share_of_work``,
        ``wait_mean_s``, ``bounded_slowdown_mean``, where there is a record ``recorded_wait_mean_s``
        and ``lateness_mean_s``; and ``behaviour`` where the configuration tells whose it is. NaN
        where a user has none.
    """
    jobs = run.jobs
    users, which = np.unique(jobs.user, return_inverse=True)
    held = np.where(jobs.over, jobs.end - jobs.start, 0).astype(float)
    work = np.bincount(which, jobs.processors * held, len(users)) / HOUR
    order = np.lexsort((users, -work))
    total = float(work.sum())
    found: Columns = {
        "user": users[order],
        "jobs": np.bincount(which, minlength=len(users))[order],
        "work_processor_h": work[order],
        "share_of_work": (work / total if total else work)[order],
    }
    of_users = per_user(jobs)
    for name in ("wait_mean_s", "bounded_slowdown_mean"):
        found[name] = _placed(users, *of_users[name])[order]
    before = recorded_jobs(run)
    if before is not None:
        wait = (before.start - before.submit).astype(float)
        owners, whose = np.unique(before.user, return_inverse=True)
        mean = np.bincount(whose, wait) / np.bincount(whose)
        found["recorded_wait_mean_s"] = _placed(users, owners, mean)[order]
        found["lateness_mean_s"] = _placed(users, *of_users["lateness_mean_s"])[order]
    behaviours = behaviours_of(run)
    if behaviours:
        found["behaviour"] = [behaviours.get(user, "") for user in users[order].tolist()]
    return found


def behaviours_of(run: Run) -> dict[int, str]:
    """Return the behaviour of the users whose behaviour the configuration tells, by user.

    Those who were dealt one by shares are not among them.
    """
    asked = run.configuration.get("users")
    entries: list[dict[str, Any]] = list(asked.get("users", ())) if isinstance(asked, dict) else []
    if len(entries) < 2:
        return {}  # one for all, which the label tells
    owners, first = np.unique(run.jobs.user, return_index=True)
    groups = run.jobs.group[first]
    found: dict[int, str] = {}
    for user, group in zip(owners.tolist(), groups.tolist(), strict=True):
        for key, number in (("users", user), ("groups", group)):
            named = [n for n, entry in enumerate(entries) if number in entry.get(key, ())]
            if named and user not in found:
                found[user] = entries[named[0]].get("behaviour") or f"entry {named[0] + 1}"
    return found


def users_waits(run: Run) -> Figure:
    """Return the mean wait of each user against the user's work, as recorded, too, where known."""
    figure = new_figure(12, 4.6, "Users: how long they wait, by their work", run.label)
    axes = figure.add_axes((0.065, 0.11, 0.85, 0.71))
    tidy(axes)
    found = users_data(run)
    work, wait = found["work_processor_h"], found["wait_mean_s"]
    known = (work > 0) & ~np.isnan(wait)
    axes.set_title("Mean wait of a user; size of a dot: jobs", **TITLE)
    if not known.any():
        say_nothing(axes, "no job ran")
        return figure
    before = "recorded_wait_mean_s" in found
    if before:
        _draw_recorded(axes, work, wait, found["recorded_wait_mean_s"], known)
    size = 8 + 60 * found["jobs"][known] / found["jobs"].max()
    axes.scatter(
        work[known], np.maximum(wait[known], LEAST), s=size, color=COLOURS["blue"], alpha=0.75,
        linewidth=0.4, edgecolor="white", label="recorded" if run.is_record else "simulated",
        zorder=3,
    )  # fmt: skip
    _axes_of_waits(axes, wait[known], (found["recorded_wait_mean_s"] if before else wait)[known])
    _axis_of_work(axes, work[known])
    axes.set_xlabel("work of the user, processor-hours", fontsize=8.5)
    named = np.flatnonzero(known)[:NAMED]
    _name_users(axes, found["user"][named], work[named], np.maximum(wait[named], LEAST))
    figure.legend(
        *axes.get_legend_handles_labels(), loc="upper right", bbox_to_anchor=(0.985, 0.99),
        ncols=2, **LEGEND,
    )  # fmt: skip
    return figure


def waits_apart(run: Run) -> Figure:
    """Return which share of the jobs, and of the users, waited longer than so long."""
    figure = new_figure(12, 3.5, "How long jobs and users wait", run.label)
    grid = figure.add_gridspec(1, 2, left=0.06, right=0.985, bottom=0.14, top=0.76, wspace=0.14)
    left, right = (figure.add_subplot(grid[place]) for place in (0, 1))
    draw_waits(left, run)
    draw_exceedance(
        right,
        lines_of(run, *_means(run)),
        "Share of users whose mean wait is longer than ...; each counts once",
    )
    return figure


def waits_data(run: Run) -> Columns:
    """Return the shares that :func:`waits_apart` shows."""
    at = np.concatenate([[0], np.unique(np.round(np.geomspace(1, 1e7, 141)).astype(np.int64))])
    found: Columns = {"wait_s": at}
    both = zip(("jobs", "users"), (waits_of(run), _means(run)), strict=True)
    for what, (recorded, simulated) in both:
        for name, values in (("recorded", recorded), ("simulated", simulated)):
            if len(values) and not (run.is_record and name == "simulated"):
                longer = 1 - np.searchsorted(np.sort(values), at, side="right") / len(values)
                found[f"share_of_{what}_{name}"] = longer
    return found


def _means(run: Run) -> tuple[Int64s, Int64s]:
    """Return users' mean waits, recorded and simulated, whole s."""
    found = users_data(run)
    none = np.full(len(found["user"]), np.nan)
    wait = found["wait_mean_s"]
    recorded = wait if run.is_record else found.get("recorded_wait_mean_s", none)
    first, other = (np.rint(one[~np.isnan(one)]).astype(np.int64) for one in (recorded, wait))
    return first, other


def _draw_recorded(axes: Axes, work: Floats, wait: Floats, recorded: Floats, known: Any) -> None:
    """Draw recorded waits as rings, joined to the simulated ones."""
    both = known & ~np.isnan(recorded)
    axes.vlines(
        work[both], np.maximum(wait[both], LEAST), np.maximum(recorded[both], LEAST),
        color="#bbbbbb", linewidth=0.6, zorder=1,
    )  # fmt: skip
    axes.scatter(
        work[both], np.maximum(recorded[both], LEAST), s=14, facecolor="none", linewidth=0.8,
        edgecolor="#666666", label="recorded", zorder=2,
    )  # fmt: skip


def _name_users(axes: Axes, users: Int64s, work: Floats, wait: Floats) -> None:
    """Write the numbers of users at the right edge, below each other, with lines to their dots."""
    low, high = np.log(axes.get_ylim())
    order = np.argsort(wait, kind="stable")
    heights = (np.log(wait[order]) - low) / (high - low)
    for place in range(1, len(heights)):
        heights[place] = max(heights[place], heights[place - 1] + BETWEEN)
    heights -= max(0.0, heights[-1] - 1)  # those at the top push the others down
    for place in range(len(heights) - 1, 0, -1):
        heights[place - 1] = min(heights[place - 1], heights[place] - BETWEEN)
    for place, height in zip(order.tolist(), heights.tolist(), strict=True):
        axes.annotate(
            f"user {users[place]}", (work[place], wait[place]), (1.012, height),
            textcoords="axes fraction", fontsize=8, va="center", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": "#999999", "linewidth": 0.5,
                        "shrinkA": 1, "shrinkB": 3},
        )  # fmt: skip


def _axes_of_waits(axes: Axes, *waits: Floats) -> None:
    """Make the vertical axis logarithmic, with labels that people read."""
    from matplotlib.ticker import FixedLocator, NullLocator

    longest = max(float(np.nanmax(one)) if len(one) else 0.0 for one in waits)
    axes.set_yscale("log")
    axes.set_ylim(0.6 * LEAST, max(1.8 * longest, 60))
    shown = {second: text for second, text in WAIT_LABELS.items() if second <= 1.8 * longest}
    shown[LEAST] = "1 s or less"
    axes.yaxis.set_major_locator(FixedLocator(list(shown)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_yticks(list(shown), list(shown.values()))


def _axis_of_work(axes: Axes, work: Floats) -> None:
    """Make the horizontal axis logarithmic, with labels also where all have about the same."""
    from matplotlib.ticker import NullLocator

    low, high = 0.6 * float(work.min()), 1.7 * float(work.max())
    tens = np.arange(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if len(tens) > FEW_TENS else (1, 2, 5)
    marks = [step * 10.0**ten for ten in tens.tolist() for step in steps]
    shown = [mark for mark in marks if low <= mark <= high]
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(shown, [f"{mark:,.10g}" for mark in shown])


def _placed(users: Int64s, owners: Int64s, values: Floats) -> Floats:
    """Return values of some users in the places of all; NaN for the others."""
    found = np.full(len(users), np.nan)
    found[np.searchsorted(users, owners)] = values
    return found
