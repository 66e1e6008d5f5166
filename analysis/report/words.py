"""A run in words: what was run, what was repaired or dropped, what users did, the main numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hpcrowd.analysis.accounts.grid import component_lines
from hpcrowd.analysis.accounts.holds import hold_lines
from hpcrowd.analysis.accounts.nodes import machine_lines
from hpcrowd.analysis.accounts.platform import platform_lines
from hpcrowd.analysis.accounts.population import account_lines, pool_lines
from hpcrowd.analysis.accounts.reactions import reaction_lines
from hpcrowd.analysis.curves import span_of
from hpcrowd.analysis.energy.words import energy_lines
from hpcrowd.analysis.metrics import format_metric
from hpcrowd.analysis.parts import PARTS
from hpcrowd.analysis.pictures.plots import trace_name
from hpcrowd.analysis.run import Run, assumptions_of
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.engine.attempts import RECORDED, Attempt
from hpcrowd.environment.jobs import State
from hpcrowd.environment.quantities import format_duration, plural


def headline(run: Run) -> list[str]:
    """Return lines on what was run, what was repaired or dropped, and what users did."""
    size = f"{len(run.jobs):,} jobs on {run.processors:,} processors"
    read = run.reading.trace
    trace = run.configuration.get("trace") if read is None else Path(read.source).name
    if trace:
        lines = [f"{trace}: {size}, {run.label}"]
    else:
        users = plural(len(np.unique(run.jobs.user)), "user")
        lines = [f"{run.label}: {size.replace('jobs', f'jobs of {users}', 1)}"]
    of = {name: run.parts[name].account for name in PARTS}
    more = [*pool_lines(of["population"]), *run.reading.counted]
    if of["grid"]:
        more += component_lines(of["grid"], run.configuration.get("components"))
    more += [*reaction_lines(of["reactions"]), *hold_lines(of["holds"])]
    more += [*again_lines(run.attempts), *platform_lines(of["platform"])]
    more += [*machine_lines(of["nodes"]), *account_lines(of["population"])]
    more += energy_lines(of["power"])
    lines += [f"  {line}" for line in more]
    return lines + [f"  {line}" for line in (*assumptions_of(run), *run.remarks)]


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
    held = [
        f"{line}." for line in (*hold_lines(run.parts["holds"].account), *again_lines(run.attempts))
    ]
    held += [f"{line[0].upper()}{line[1:]}." for line in energy_lines(run.parts["power"].account)]
    return [
        first,
        *size,
        *_came_out(run),
        *held,
        *(f"{line[0].upper()}{line[1:]}." for line in run.remarks),
        *([f"When the trace was read: {lost}."] if lost else []),
    ]


def again_lines(attempts: Sequence[Attempt]) -> list[str]:
    """Return a printed line on runs after which jobs were run again, as in the record."""
    stopped = [one for one in attempts if one.cause == RECORDED]
    if not stopped:
        return []
    hours = sum(one.processor_seconds for one in stopped) / HOUR
    jobs = plural(len({one.row for one in stopped}), "job")
    return [
        f"{jobs} run again as recorded, after {plural(len(stopped), 'earlier run')} of "
        f"{hours:,.1f} processor-hours"
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
