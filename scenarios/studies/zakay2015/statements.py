"""Zakay and Feitelson 2015: statements of the text on the user models, checked on every log.

The paper shows most of it in pictures and gives no numbers. Each statement becomes a measure and a
rule; the bounds of the rules are ours. All figures are means over seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from hpcrowd.analysis.curves import profile_distance, unevenness
from hpcrowd.analysis.features.distance import apart
from hpcrowd.environment.clock import DAY
from hpcrowd.scenarios.studies.study import Finding, Rule
from hpcrowd.scenarios.studies.zakay2015.measures import (
    LogOutcomes,
    Outcome,
    share_distance,
)

#: A quantity is much smaller than another when it is less than this share of it.
MUCH_SMALLER = 0.5

#: Two distributions are close up to this Kolmogorov-Smirnov distance.
CLOSE = 0.15

#: The slots in which windows open are peaks from this multiple of their recorded share on.
SHARP = 1.5

#: Users are hyperactive when they have this many times as many jobs as the median user.
HYPERACTIVE = 10

#: "A few" users are fewer than this share of them.
FEW = 0.1


#: The finding on ratios of waits if there are none.
NOBODY_WAITED: Finding = ({}, "-", False)


def _identity(log: LogOutcomes) -> Finding:
    jobs = int(log.user_jobs.sum())
    return {"jobs_moved": log.moved}, f"{log.moved:,} of {jobs:,}", log.moved == 0


def _flattened(log: LogOutcomes) -> Finding:
    trace = unevenness(log.recorded.profile)
    run = log.mean(lambda one: unevenness(one.profile), "adjusted")
    numbers = {"recorded": trace, "adjusted": run}
    return numbers, f"{trace:.2f} to {run:.2f}", run < MUCH_SMALLER * trace


def _waits(log: LogOutcomes, *, model: str, side: Callable[[float], bool]) -> Finding:
    """Return a check of the mean wait of a model over that of conventional users."""
    ratio = log.ratio(model, "conventional").mean
    if ratio is None:
        return NOBODY_WAITED
    return {f"{model}_over_conventional": ratio}, f"{ratio:.2f}", side(ratio)


def _peaks(log: LogOutcomes) -> Finding:
    trace = log.recorded.slot_share
    run = log.mean(lambda one: one.slot_share, "distribution")
    numbers = {"recorded": trace, "distribution": run}
    return numbers, f"{100 * trace:.0f} % to {100 * run:.0f} %", run >= SHARP * trace


def _throughput(log: LogOutcomes) -> Finding:
    trace = float(np.median(log.recorded.activity_s)) / DAY
    run = log.mean(lambda one: float(np.median(one.activity_s)), "distribution") / DAY
    numbers = {"recorded_days": trace, "distribution_days": run}
    return numbers, f"{trace:.0f} to {run:.0f} days", run < trace


def _hyperactive(log: LogOutcomes) -> Finding:
    longest = int(log.recorded.activity_s.max(initial=0))
    typical = float(np.median(log.user_jobs))
    longer = [one.activity_s > longest for one in log.of("distribution")]
    count = float(np.mean([which.sum() for which in longer]))
    jobs = np.concatenate([log.user_jobs[which] for which in longer])
    median = float(np.median(jobs)) if len(jobs) else 0.0
    numbers = {"users": count, "their_median_jobs": median, "median_jobs": typical}
    words = f"{count:.1f} users, {median:,.0f} jobs (all {typical:,.0f})"
    return numbers, words, median >= HYPERACTIVE * typical > 0


def _cycle(log: LogOutcomes) -> Finding:
    def distance(one: Outcome) -> float:
        return profile_distance(one.profile, log.recorded.profile)

    fluid, adjusted = log.mean(distance, "fluid"), log.mean(distance, "adjusted")
    numbers = {"fluid": fluid, "adjusted": adjusted}
    return numbers, f"{fluid:.2f}, adjusted {adjusted:.2f}", fluid < MUCH_SMALLER * adjusted


def _fluid_throughput(log: LogOutcomes) -> Finding:
    def distance(one: Outcome) -> float:
        return apart(one.activity_s, log.recorded.activity_s).ks

    fluid, other = log.mean(distance, "fluid"), log.mean(distance, "distribution")
    numbers = {"fluid": fluid, "distribution": other}
    return numbers, f"{fluid:.2f}, distribution {other:.2f}", fluid <= CLOSE


def _few_long(log: LogOutcomes) -> Finding:
    longest = int(log.recorded.activity_s.max(initial=0))
    share = log.mean(lambda one: float((one.activity_s > longest).mean()), "fluid")
    furthest = log.mean(lambda one: float(one.activity_s.max(initial=0)), "fluid")
    times = furthest / max(longest, 1)
    words = f"{100 * share:.0f} % of users, up to {times:.1f} times"
    return {"share": share, "longest_over_recorded": times}, words, 0 < share < FEW


def _order(log: LogOutcomes) -> Finding:
    models = ("fluid", "adjusted", "conventional")
    waits = {model: float(log.waits(model).mean()) for model in models}
    values = [*waits.values()]
    text = ", ".join(f"{wait:,.0f}" for wait in values)
    return waits, f"{text} s", values[0] < values[1] < values[2]


def _gap(log: LogOutcomes, model: str) -> tuple[float, float, float]:
    """Return the distance of the queues of FIFO and EASY, and the mean length under each."""
    pairs = zip(log.of(model, "fcfs"), log.of(model, "easy"), strict=True)
    distance = float(np.mean([share_distance(fifo.queue, easy.queue) for fifo, easy in pairs]))
    fifo, easy = (log.mean(lambda one: one.queue_mean, model, name) for name in ("fcfs", "easy"))
    return distance, fifo, easy


def _queues(log: LogOutcomes, *, model: str, close: bool) -> Finding:
    distance, fifo, easy = _gap(log, model)
    numbers = {"distance": distance, "fifo_mean_jobs": fifo, "easy_mean_jobs": easy}
    text = f"{distance:.2f}; mean {easy:,.1f} to {fifo:,.1f}"
    return numbers, text, (distance <= CLOSE) is close


def _narrower(log: LogOutcomes) -> Finding:
    (fluid, fifo, easy), (rigid, rigid_fifo, rigid_easy) = (
        _gap(log, model) for model in ("fluid", "conventional")
    )
    numbers = {"fluid": fluid, "conventional": rigid}
    holds = fluid < rigid and abs(fifo - easy) < abs(rigid_fifo - rigid_easy)
    return numbers, f"{fluid:.2f}, conventional {rigid:.2f}", holds


def _shorter(log: LogOutcomes) -> Finding:
    fluid, rigid = (
        log.mean(lambda one: one.queue_mean, model) for model in ("fluid", "conventional")
    )
    return {"fluid": fluid, "conventional": rigid}, f"{rigid:.1f} to {fluid:.1f}", fluid < rigid


#: Every statement that is checked, in the order of the text.
RULES = (
    Rule(
        "identity", "VII",
        "Under exactly the recorded schedule, adjusted users submit every job at its recorded "
        "second: jobs that moved; none", _identity,
    ),
    Rule(
        "adjusted flattens the week", "VII-A",
        "Adjusted users destroy the daily and weekly cycle: unevenness of the week, recorded to "
        "adjusted; less than half", _flattened,
    ),
    Rule(
        "adjusted waits less", "VII-A",
        "Since jobs spread over the day, performance is much better: mean wait, adjusted / "
        "conventional; below 1", partial(_waits, model="adjusted", side=lambda ratio: ratio < 1),
    ),
    Rule(
        "distribution has peaks", "VII-B",
        "Users arrive in two slots of two hours, where windows open: share of jobs there, recorded "
        "to distribution; at least 1.5 times", _peaks,
    ),
    Rule(
        "distribution waits long", "VII-B",
        "Long waits for most logs: mean wait, distribution / conventional; above 1",
        partial(_waits, model="distribution", side=lambda ratio: ratio > 1),
    ),
    Rule(
        "distribution has high throughput", "VII-B",
        "High throughput per user for most logs: median activity length, recorded to "
        "distribution; shorter", _throughput,
    ),
    Rule(
        "hyperactive users take long", "VII-B",
        "Those who are active excessively long are hyperactive: users active for longer than "
        "any recorded one, and their median number of jobs; at least 10 times that of all users",
        _hyperactive,
    ),
    Rule(
        "fluid keeps the week", "VII-C",
        "Fluid users preserve the daily and weekly cycle: distance from the recorded week; less "
        "than half of that of adjusted", _cycle,
    ),
    Rule(
        "fluid keeps the throughput", "VII-C",
        "Throughput per user is close to the recorded in most logs: KS distance of the activity "
        "lengths; at most 0.15", _fluid_throughput,
    ),
    Rule(
        "a few fluid users take long", "VII-C",
        "A few users have very long activity periods: users active for longer than any recorded "
        "one, and the longest over the longest recorded; some, but below 10 %", _few_long,
    ),
    Rule(
        "order of waits", "VII-C, Table I",
        "Waits are shorter under fluid: mean wait of fluid, adjusted, conventional; in this order",
        _order,
    ),
    Rule(
        "FIFO close to EASY with feedback", "VIII",
        "With fluid users the queue under FIFO is hardly longer than under EASY: KS distance, and "
        "mean length from EASY to FIFO; at most 0.15", partial(_queues, model="fluid", close=True),
    ),
    Rule(
        "FIFO far from EASY without", "VIII",
        "Conventionally, FIFO has hugely longer queues for much of the time: the same; more than "
        "0.15", partial(_queues, model="conventional", close=False),
    ),
    Rule(
        "feedback narrows the gap", "VIII",
        "FIFO and EASY are closer with feedback than without: KS distances; smaller, and so is the "
        "difference of the mean lengths", _narrower,
    ),
    Rule(
        "shorter queues with feedback", "VIII",
        "EASY has shorter queues with fluid users, on all logs: mean length, conventional to "
        "fluid; less", _shorter,
    ),
)  # fmt: skip
