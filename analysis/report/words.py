"""A run in words: what was run, what was repaired or dropped, what users did, the main numbers."""

from __future__ import annotations

import numpy as np

from hpcrowd.analysis.curves import span_of
from hpcrowd.analysis.metrics import format_metric
from hpcrowd.analysis.pictures.plots import trace_name
from hpcrowd.analysis.run import Run, again_lines
from hpcrowd.environment.jobs import State
from hpcrowd.environment.quantities import format_duration, plural


def told(run: Run) -> list[str]:
    """Return sentences for the top of a report: what was run, and the main results."""
    users = plural(len(np.unique(run.jobs.user)), "user")
    name = trace_name(run)
    of = f" of {name}" if name else ""
    how = "as recorded" if run.is_record else "simulated"
    first = (
        f"{run.label[0].upper() + run.label[1:]}: {plural(len(run.jobs), 'job')}{of} by {users}, "
        f"{how}, on {plural(run.processors, 'processor')}{_when(run)}."
    )
    lost = "; ".join(run.reading.counted)
    note = run.reading.size_note
    size = [f"{note[0].upper()}{note[1:]}."] if note else []
    held = [f"{line}." for line in again_lines(run.attempts)]
    for part in run.parts.values():
        if part.leads:
            lines = part.lines(run.configuration)
            held += [f"{line[0].upper()}{line[1:]}." for line in lines]
    return [
        first,
        *size,
        *_came_out(run),
        *held,
        *(f"{line[0].upper()}{line[1:]}." for line in run.remarks),
        *([f"When the trace was read: {lost}."] if lost else []),
    ]


def _when(run: Run) -> str:
    """Return the period of a run, in local time where that is known."""
    span = span_of(run.jobs)
    if span is None:
        return ""
    first, last = span
    if run.clock.nominal:
        return f", in {format_duration(last - first)}"
    begin, end = run.clock.local(first), run.clock.local(last)
    return f", from {begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} (local time, {run.clock.zone})"


def _came_out(run: Run) -> list[str]:
    found, users = run.metrics, run.metrics["per_user"]["wait_mean_s"]
    if found["wait_mean_s"] is None:
        ended = [(run.jobs.count(state), state.name.lower()) for state in State]
        told = ", ".join(f"{plural(count, 'job')} {name}" for count, name in ended if count)
        return [f"No job ran: {told}." if told else "No job ran, as nothing was submitted."]
    lines = [
        f"A job waited {_shown(run, 'wait_mean_s')} on average and {_shown(run, 'wait_max_s')} at "
        "most. Half of the users have a mean wait below "
        f"{format_metric('wait_mean_s', users['p50'])}, nine in ten below "
        f"{format_metric('wait_mean_s', users['p90'])}. "
        f"{_shown(run, 'utilization')} of the processor time was in use."
    ]
    late = found["lateness_mean_s"]
    if late is not None and not run.is_record:
        when = "as recorded" if abs(late) < 0.5 else (
            f"{format_duration(abs(late))} {'later' if late > 0 else 'earlier'} than recorded"
        )  # fmt: skip
        lines.append(f"On average a job was submitted {when}.")
    return lines


def _shown(run: Run, name: str) -> str:
    return format_metric(name, run.metrics[name])
