"""What changes of the platform did in a run: sums, and each run of a job that was stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environment.attempts import MEANING, Attempt, attempt_columns
from environment.clock import HOUR
from environment.quantities import format_duration, plural

if TYPE_CHECKING:
    from environment.simulation import Simulation

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
}


def accounts_of(model: Simulation) -> dict[str, dict[str, Any]]:
    """Return the sums of each cluster that changed, by its name."""
    return {
        name: cluster.account(model.time)
        for name, cluster in model.clusters.items()
        if cluster.engine.timeline is not None
    }


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
        lines.append(f"cluster {name}: {', '.join(words) or 'nothing went down'}")
    return lines


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
