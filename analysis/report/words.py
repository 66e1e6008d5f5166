"""A run in words: what was run, what was repaired or dropped, what users did, the main numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hpcrowd.analysis.accounts.nodes import machine_lines
from hpcrowd.analysis.accounts.platform import component_lines, platform_lines
from hpcrowd.analysis.accounts.population import account_lines, pool_lines
from hpcrowd.analysis.accounts.reactions import reaction_lines
from hpcrowd.analysis.curves import span_of
from hpcrowd.analysis.energy.words import energy_lines
from hpcrowd.analysis.metrics import format_metric
from hpcrowd.analysis.pictures.plots import trace_name
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.engine.attempts import RECORDED, Attempt
from hpcrowd.environment.jobs import State
from hpcrowd.environment.quantities import format_duration, plural
from hpcrowd.environment.traces.trace import counted

#: Most kinds of decisions that are listed.
MOST_DECISIONS = 20


def headline(run: Run) -> list[str]:
    """Return lines on what was run, what was repaired or dropped, and what users did."""
    size = f"{len(run.jobs):,} jobs on {run.processors:,} processors"
    trace = run.configuration.get("trace") if run.trace is None else Path(run.trace.source).name
    if trace:
        lines = [f"{trace}: {size}, {run.label}"]
    else:
        users = plural(len(np.unique(run.jobs.user)), "user")
        lines = [f"{run.label}: {size.replace('jobs', f'jobs of {users}', 1)}"]
    more = [*pool_lines(run.population), *left_out(run)]
    if run.sites:
        more += component_lines(run.sites, run.configuration.get("components"))
    more += [*reaction_lines(run.accounts), *hold_lines(run.holds), *again_lines(run.attempts)]
    more += [*platform_lines(run.platform), *machine_lines(run.machines)]
    more += [*account_lines(run.population), *energy_lines(run.energy)]
    lines += [f"  {line}" for line in more]
    return lines + [f"  {line}" for line in (*run.assumptions, *run.remarks)]


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
    lost = "; ".join(left_out(run))
    size = [run.size_note[0].upper() + run.size_note[1:] + "."] if run.size_note else []
    held = [f"{line}." for line in (*hold_lines(run.holds), *again_lines(run.attempts))]
    held += [f"{line[0].upper()}{line[1:]}." for line in energy_lines(run.energy)]
    return [
        first,
        *size,
        *_came_out(run),
        *held,
        *(f"{line[0].upper()}{line[1:]}." for line in run.remarks),
        *([f"When the trace was read: {lost}."] if lost else []),
    ]


def left_out(run: Run) -> list[str]:
    """Return what was dropped and repaired when the trace was read."""
    return counted(run.repaired, run.dropped)


def hold_lines(account: Mapping[str, Any]) -> list[str]:
    """Return printed lines on what held jobs back."""
    if not account:
        return []
    causes = ", ".join(f"{count:,} by {cause}" for cause, count in account["causes"].items())
    mean = account["held_mean_s"]
    told = f"{plural(account['jobs_held'], 'job')} held after submission"
    told += "" if mean is None else f", {format_duration(mean)} on average"
    lines = [f"{told} ({causes})" if causes else told]
    if account["jobs_never_eligible"]:
        lines.append(
            f"{plural(account['jobs_never_eligible'], 'job')} cancelled: a job that they depend on "
            "did not end as they asked"
        )
    return lines + [f"{plural(count, 'job')}: {note}" for note, count in account["notes"].items()]


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


def decision_rows(run: Run) -> list[tuple[str, str, str]]:
    """Return (what, why, how often) of users' decisions, the most frequent first."""
    from hpcrowd.agents.behaviours.decisions import WORDS
    from hpcrowd.analysis.tables import word

    if run.decisions is None:
        return []
    columns = run.decisions.columns
    pairs = Counter(zip(columns["what"].tolist(), columns["why"].tolist(), strict=True))
    rows = [
        (word(WORDS["what"](what).name), word(WORDS["why"](why).name), f"{count:,}")
        for (what, why), count in sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
    ]
    return rows[:MOST_DECISIONS]
