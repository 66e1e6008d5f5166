"""What the tests of accounting logs share: a trace after writing and reading, and what it lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hpcrowd.environment import FormatOptions, Losses, Trace
from hpcrowd.environment.traces.formats.common.accounting import submissions
from hpcrowd.environment.traces.formats.common.base import Format

from tests.environment.traces.formats.format_cases import by_field, differences

#: The text columns of accounting logs, for traces that have them.
COLUMNS = (
    "job_id", "final_state", "node_list", "nodes", "suspended", "restarts", "priority",
    "reservation", "dependency", "project", "exit_code", "orig_site",
)  # fmt: skip


def by_submission(trace: Trace) -> Trace:
    """The trace with its jobs in the order in which logs are read."""
    order = np.argsort(submissions(trace), kind="stable")
    columns = {name: values[order] for name, values in trace.columns.items()}
    extra = {name: values[order] for name, values in trace.extra.items()}
    return replace(trace, columns=columns, extra=extra)


def losses_are_exact(kind: Format, trace: Trace) -> Trace:
    """Check that what changed is what was counted, in fields and columns; return what is read."""
    trace = by_submission(trace)
    lost = Losses()
    again = kind.parse(kind.generate(trace, lost, FormatOptions()), "made")
    found = differences(replace(trace, extra={"job_id": again.extra["job_id"]}), again)
    nothing = np.array([""] * len(trace), np.object_)
    for name, texts in trace.extra.items():
        found[name] = int(np.sum((texts != "") & (texts != again.extra.get(name, nothing))))
    counted = by_field(lost)
    assert +found == {n: c for n, c in counted.items() if n not in ("header", "comments")}
    return again


def shown(trace: Trace, *names: str) -> list[tuple[object, ...]]:
    """The values of some fields and columns, job by job; names instead of numbers."""
    found = []
    for name in names:
        if name in trace.extra:
            found.append(trace.extra[name].tolist())
        else:
            words = trace.names.get(name, {})
            found.append([words.get(value, value) for value in trace[name].tolist()])
    return list(zip(*found, strict=True))
