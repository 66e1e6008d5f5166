"""What changes of the platform did in a run: sums, and each run of a job that was stopped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.platform.timeline import MEANING, Attempt, attempt_columns
from hpcrowd.environment.quantities import format_duration, plural

if TYPE_CHECKING:
    from hpcrowd.environment.simulation import Simulation


#: What ``summary.json`` says of each cluster that changed, and what it means.
ACCOUNTS = {
    "node_failures": "random failures that took processors down",
    "down_processor_s": "processor-seconds that were down, of the size at that time",
    "maintenance_s": "time in maintenance",
    "runs_stopped": "runs of jobs that were stopped before their end",
    "runs_requeued": "of these, put back by the scheduler",
    "runs_resubmitted": "of these, submitted again by their users",
    "runs_failed": "of these, over for good",
    "lost_processor_s": "processor-seconds of the runs that were stopped",
    "sizes": "changes of the size: s since the origin, processors before and after",
    "speeds": "changes of speed: s since the origin, factor",
    "schedulers": "switches of the scheduler: s since the origin, the new one",
    "policy_switches": "how often another policy took over",
    "policies_s": "for how long each policy was in charge",
}

#: Sizes, speeds or schedulers that the line for people names one by one.
MOST_TURNS = 3


def accounts_of(model: Simulation) -> dict[str, dict[str, Any]]:
    """Return the sums of each cluster that changed, by its name."""
    return {
        name: cluster.account(model.time)
        for name, cluster in model.clusters.items()
        if cluster.timeline is not None
    }


def sizes_of(accounts: Mapping[str, Mapping[str, Any]]) -> list[tuple[int, int, int]]:
    """Return s, processors before and processors after, for each time a cluster was resized."""
    return [
        (at, before, after)
        for account in accounts.values()
        for at, before, after in account.get("sizes", ())
    ]


def size_steps(
    processors: int, sizes: Iterable[tuple[int, int, int]], first: int, last: int
) -> list[tuple[int, int]]:
    """Return from which second on there were how many processors, from ``first`` to ``last``.

    Parameters
    ----------
    processors
        At first, of all clusters.
    sizes
        What :func:`sizes_of` returns.
    first, last
        s since the origin.
    """
    steps = [(first, processors)]
    for at, before, after in sorted(sizes):
        if at < last:
            steps.append((max(at, first), steps[-1][1] + after - before))
    return steps


def processor_seconds(
    processors: int, sizes: Iterable[tuple[int, int, int]], first: int, last: int
) -> int:
    """Return the processor-seconds of the machine from ``first`` to ``last``."""
    steps = [*size_steps(processors, sizes, first, last), (last, 0)]
    return sum(size * (end - begin) for (begin, size), (end, _) in pairwise(steps))


def attempts_of(model: Simulation) -> list[Attempt]:
    """Return the runs that were stopped on all clusters, by time, then by job."""
    found = [one for cluster in model.clusters.values() for one in cluster.attempts]
    return sorted(found, key=lambda one: (one.end, one.row, one.start))


def platform_lines(accounts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return lines that say what happened, for people."""
    lines = []
    for name, account in accounts.items():
        words = []
        if account["node_failures"]:
            words.append(plural(account["node_failures"], "node failure"))
        if account["down_processor_s"]:
            words.append(f"{account['down_processor_s'] / HOUR:,.1f} processor-hours down")
        if account["maintenance_s"]:
            words.append(f"{format_duration(account['maintenance_s'])} of maintenance")
        if account["runs_stopped"]:
            fates = [
                f"{account[f'runs_{fate}']:,} {fate}"
                for fate in ("requeued", "resubmitted", "failed")
                if account[f"runs_{fate}"]
            ]
            words.append(f"{plural(account['runs_stopped'], 'run')} stopped ({', '.join(fates)})")
            words.append(f"{account['lost_processor_s'] / HOUR:,.1f} processor-hours lost")
        words += _turns("resizes", [f"{after:,} processors" for *_, after in account["sizes"]])
        words += _turns("changes of speed", [f"speed {by:g}x" for _, by in account["speeds"]])
        words += _turns("switches", [f"scheduler {one}" for _, one in account["schedulers"]])
        if account["policy_switches"] > len(account["schedulers"]):
            words += _policies(account)
        lines.append(f"cluster {name}: {', '.join(words) or 'nothing changed in the run'}")
    return lines


def _turns(what: str, turns: list[str]) -> list[str]:
    """Return what a cluster got in turn, or how often where that is too long to read."""
    if len(turns) > MOST_TURNS:
        return [f"{len(turns):,} {what}"]
    return turns


def _policies(account: Mapping[str, Any]) -> list[str]:
    """Say how often policies changed, and which share of the time each was in charge."""
    total = max(sum(account["policies_s"].values()), 1)
    by_time = sorted(account["policies_s"].items(), key=lambda item: -item[1])
    shares = ", ".join(f"{policy} {seconds / total:.0%}" for policy, seconds in by_time)
    switches = plural(account["policy_switches"], "switch")
    return [f"{switches} of policy ({shares})"]


def read_attempts(path: Path) -> list[Attempt]:
    """Return what :func:`write_attempts` wrote."""
    import pyarrow.parquet as pq

    return [Attempt(**row) for row in pq.read_table(path).to_pylist()]


def write_attempts(attempts: Sequence[Attempt], path: Path) -> None:
    """Write the runs that were stopped; column meanings stand in the metadata of each field."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: pa.array(values) for name, values in attempt_columns(attempts).items()}
    schema = pa.schema(
        [
            pa.field(name, array.type, metadata={"meaning": MEANING[name]})
            for name, array in columns.items()
        ]
    )
    pq.write_table(pa.table(list(columns.values()), schema=schema), path, compression="zstd")
