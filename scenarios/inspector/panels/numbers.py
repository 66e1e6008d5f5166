"""The strip of numbers: what a run has come to until now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.metrics import bounded_slowdown
from hpcrowd.analysis.numbers import mean_of, time_text
from hpcrowd.analysis.views.load import lateness_now
from hpcrowd.analysis.views.moment import averages

if TYPE_CHECKING:
    from hpcrowd.analysis.views.moment import Moment


def numbers(
    moment: Moment, *, until: int | None = None, more: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """Return the numbers of a run until now, and ``more`` numbers after them.

    Waits and slowdowns are of the jobs that have started, or ended; the utilization is the part of
    the processor-seconds since the first submission, and until ``until``, that were in use.
    """
    jobs, now = moment.jobs, moment.now if until is None else until
    started, ended = moment.started, moment.ended
    wait = mean_of(jobs.start[started] - jobs.submit[started])
    response = jobs.end[ended] - jobs.submit[ended]
    slowdown = mean_of(bounded_slowdown(response, jobs.lasted[ended]))
    late = lateness_now(moment).mean
    waiting = moment.waiting
    values = [
        number("wait_mean_s", "Mean wait", "s", wait, "lower"),
        number("bounded_slowdown_mean", "Mean bounded slowdown", "", slowdown, "lower"),
        number("utilization", "Utilization", "%", utilization_until(moment, now), ""),
        number("jobs_running", "Jobs running", "jobs", int(moment.running.sum()), ""),
        number("jobs_waiting", "Jobs in the queue", "jobs", int(waiting.sum()), "lower"),
        number(
            "processors_asked", "Processors requested by the queue", "processors",
            int(jobs.processors[waiting].sum()), "lower",
        ),
        number("lateness_mean_s", "Mean lateness", "s", late, "lower"),
        number("jobs_completed", "Jobs finished", "jobs", int(ended.sum()), "higher"),
    ]  # fmt: skip
    return {"until": now, "values": [*values, *more]}


def utilization_until(moment: Moment, now: int) -> float | None:
    """Return the part of the processor-seconds until a second that were in use, in percent."""
    first = moment.first
    if now <= first:
        return None
    moment = moment.by_run
    jobs, started = moment.jobs, moment.started
    end = np.where(moment.ended, jobs.end, now)[started]
    lasted = end - jobs.start[started] - np.maximum(jobs.paused[started], 0)
    used = float((lasted * jobs.processors[started]).sum())
    size, _ = averages(moment.steps, np.array([first, now]))
    return 100 * used / (float(size[0]) * (now - first)) if size[0] else None


def number(
    key: str, words: str, unit: str, value: float | None, better: str, text: str = ""
) -> dict[str, Any]:
    """Return a number with its words and its text, which is made from it unless given."""
    return {
        "key": key, "words": words, "unit": unit, "value": value,
        "text": text or _text(value, unit), "better": better,
    }  # fmt: skip


def _text(value: float | None, unit: str) -> str:
    if value is None or unit == "s":
        return time_text(value)
    if unit == "%":
        return f"{value:.1f} %"
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"
