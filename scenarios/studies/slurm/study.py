"""The study: tables, required figures and pictures of plans and their recorded runs."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from hpcrowd.environment.errors import TraceError
from hpcrowd.scenarios.studies.options import Option
from hpcrowd.scenarios.studies.render import Picture, Rows, Table, required_table
from hpcrowd.scenarios.studies.running import Steps
from hpcrowd.scenarios.studies.slurm.differences import CAUSES, Difference, by_cause, parting
from hpcrowd.scenarios.studies.slurm.figures import starts_figure, waits_figure
from hpcrowd.scenarios.studies.slurm.measures import Comparison, mean
from hpcrowd.scenarios.studies.slurm.outcomes import (
    Outcome,
    Simulate,
    Simulated,
    outcome,
    pairs_of,
    plans_of,
)
from hpcrowd.scenarios.studies.slurm.recorded_logs import FILES, load_any
from hpcrowd.scenarios.studies.slurm.records import Record, file_of
from hpcrowd.scenarios.studies.slurm.schedules import schedule_of
from hpcrowd.scenarios.studies.study import PublishedStudy, plain
from hpcrowd.scenarios.terminal import Progress

#: Jobs in the tables of differences.
LISTED = 10

#: Headings.
START_TABLE = ("plan", "schedules", "jobs", "mean apart (s)", "median", "p90", "in 5 s (%)",
               "in 60 s (%)", "Pearson", "Spearman", "same nodes (%)")  # fmt: skip
PARTITION_TABLE = ("plan", "partition", "jobs", "apart (s)", "recorded runs", "wait (s)",
                   "recorded", "Pearson", "recorded runs")  # fmt: skip
USER_TABLE = ("plan", "user", "wait (s)", "recorded")
REASON_TABLE = ("plan", "simulated", "recorded", "jobs", "share (%)")
PART_TABLE = ("plan", "part", "compared", "reproduced (%)", "mean apart", "most")
CAUSE_TABLE = ("plan", "cause", "jobs", "share of all differences (%)")
DIFFERENCE_TABLE = ("plan", "job", "partition", "user", "later (s)", "simulated", "recorded",
                    "cause")  # fmt: skip


@dataclass
class Slurm(PublishedStudy):
    """Plans that a real Slurm ran, replayed.

    Attributes
    ----------
    traces
        What the simulation of each plan reached, by the names of its runs.
    """

    name = "slurm"
    about = "A real Slurm's recorded runs, replayed: starts, waits, reasons, priorities."
    title = "Recorded runs of a real Slurm, replayed"
    source = "Recorded runs of Slurm: plan, accounting, and samples of squeue, sprio and sshare"
    setting = "plan"

    traces: dict[str, Outcome]

    def tables(self) -> Sequence[Table]:
        """Return starts, partitions, users, reasons, priorities, causes and single jobs."""
        ones = self.traces.values()
        return (
            Table(
                "Starts, simulated and between recorded runs", START_TABLE,
                [row for one in ones for row in start_rows(one)], 2, "starts", once=True, wrap=True,
            ),
            Table(
                "Partitions", PARTITION_TABLE, [row for one in ones for row in partition_rows(one)],
                2, "partitions", once=True, wrap=True,
            ),
            Table(
                "Users", USER_TABLE,
                [[one.name, name, f"{waits.ours:.0f}", _range(waits.runs)]
                 for one in ones for name, waits in one.users.items()],
                2, "users", once=True, wrap=True,
            ),
            Table(
                "Pending reasons of jobs that wait in both", REASON_TABLE,
                [row for one in ones for row in reason_rows(one)], 3, "reasons", once=True,
                wrap=True,
            ),
            Table(
                "Priorities at the samples", PART_TABLE,
                [[one.name, part.name, f"{part.compared:,}", f"{100 * part.near:.1f}",
                  f"{part.mean:.4g}", f"{part.most:.4g}"]
                 for one in ones for part in one.parts.values()],
                2, "priorities", once=True, wrap=True,
            ),
            Table(
                "Why starts differ from those of the nearest run", CAUSE_TABLE,
                [row for one in ones for row in cause_rows(one)], 2, "causes", once=True, wrap=True,
            ),
            *(
                Table(
                    title, DIFFERENCE_TABLE,
                    [difference_row(one, found) for one in ones for found in order(one)[:LISTED]],
                    4, part, once=True, wrap=True, terminal=part == "largest",
                )
                for title, part, order in (
                    ("Largest differences", "largest", lambda one: list(one.differences)),
                    ("Earliest differences", "earliest", lambda one: parting(one.differences)),
                )
            ),
            required_table(self.requirements, "plan", part="required", left=2, bold=True),
        )  # fmt: skip

    def summary(self) -> list[str]:
        """Return what was reached, and what recorded runs themselves differ by."""
        lines = [f"{self.score} required figures reached"]
        for one in self.traces.values():
            said = (
                f"{one.name}: starts {_mean(one.ours, 'mean'):.0f} s apart in the mean, "
                f"{_mean(one.ours, 'median'):.0f} s in the median"
            )
            if one.own:
                whose = "recorded runs of other plans" if one.borrowed else "its recorded runs"
                said += (
                    f"; {whose} {_mean(one.own, 'mean'):.0f} s and "
                    f"{_mean(one.own, 'median'):.0f} s from each other"
                )
            lines.append(said)
        return lines

    def pictures(self) -> Sequence[Picture]:
        """Return the pictures of each plan."""
        return [
            Picture.of(f"{one.name.replace(', ', '-').lower()}-{kind}", draw, one)
            for one in self.traces.values()
            for kind, draw in (("starts", starts_figure), ("waits", waits_figure))
        ]

    def data(self) -> dict[str, Any]:
        """Return the figures of each plan, and every job whose starts differ."""
        return {"plans": {name: plan_data(one) for name, one in self.traces.items()}}

    def rows(self) -> Rows:
        """Return every job whose starts differ from those of the nearest run."""
        heading = ("plan", "job", "user", "partition", "start", "recorded_start", "cause", "detail",
                   "simulated", "recorded")  # fmt: skip
        return heading, [
            [one.name, str(found.key), found.line.user, found.line.partition, found.mine.start,
             found.theirs.start, found.cause, found.detail, str(found.mine), str(found.theirs)]
            for one in self.traces.values()
            for found in one.differences
        ]  # fmt: skip


def reproduce_slurm(
    records: Annotated[
        str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        Option("Folder of recorded runs, or of one.", kind=Path),
    ],
    progress: Progress | None = None,
) -> Slurm:
    """Simulate the plans of recorded runs of a real Slurm, and set the starts beside Slurm's.

    Parameters
    ----------
    records
        Folders of runs, or folders with such folders in them. Runs with the same plan are compared
        with each other too.
    progress
        Called before each plan.

    Raises
    ------
    TraceError
        If a folder holds no recorded run, or something is missing or malformed.
    """
    from hpcrowd.scenarios.studies.slurm.simulated import replay

    folders = [records] if isinstance(records, str | os.PathLike) else list(records)
    return compare_records([Path(one) for one in folders], replay, progress)


def compare_records(
    records: Iterable[Path], simulate: Simulate, progress: Progress | None = None
) -> Slurm:
    """Simulate the plans of recorded runs, and compare.

    Parameters
    ----------
    records
        Folders of runs, or folders with such folders in them.
    simulate
        Simulates the plan of a recorded run.
    progress
        Called before each plan.

    Raises
    ------
    TraceError
        If a folder holds no recorded run, or something is missing or malformed.
    """
    plans = plans_of(load_all(records))
    pairs = [pair for runs in plans for pair in pairs_of(runs)]
    steps, found = Steps(len(plans), progress), {}
    for runs in plans:
        steps.begin(f"simulating {runs[0].name}")
        one = outcome(runs, simulate(runs[0]), () if runs[0].is_log else pairs)
        found[one.name] = one
    steps.end()
    return Slurm(found)


def load_all(folders: Iterable[Path]) -> list[Record]:
    """Return the recorded runs in folders: each is one, has some in it, or both.

    Raises
    ------
    TraceError
        If one holds none, or something is missing or malformed.
    """
    found: dict[Path, Record] = {}
    for folder in folders:
        inside = sorted(
            {
                path.parent
                for depth in ("", "*/", "*/*/")
                for path in folder.glob(f"{depth}plan.csv*")
            }
        )
        if folder not in inside and any(file_of(folder, name) for name in FILES):
            inside.append(folder)
        if not inside and folder.is_dir():
            raise TraceError(f"{folder}: no recorded run in it; a run is a folder with a plan.csv")
        for place in inside or [folder]:
            found.setdefault(place.resolve(), load_any(place))
    return list(found.values())


def simulate_as_recorded(other: Record) -> Simulate:
    """Return a simulation that says what another recorded run of the plan did.

    With it, the study shows how well Slurm predicts itself.
    """

    def simulate(record: Record) -> Simulated:
        if not record.same_plan(other):
            raise TraceError(f"{other.folder}: not a run of the plan of {record.folder}")
        return Simulated(schedule_of(other))

    return simulate


# ---- rows of tables ----------------------------------------------------------------------------


def start_rows(one: Outcome) -> list[list[str]]:
    """Return how far starts are apart, as the texts of :data:`START_TABLE`."""
    rows = []
    for pairs, other in ((one.ours, ""), (one.own, " (another plan)" if one.borrowed else "")):
        for pair in pairs:
            starts = pair.starts
            name = f"{pair.first} - {pair.second}{other}"
            rows.append([
                one.name, name, f"{starts.jobs:,}", f"{starts.mean:.0f}", f"{starts.median:.0f}",
                f"{starts.p90:.0f}", f"{100 * starts.within[0]:.1f}",
                f"{100 * starts.within[1]:.1f}", f"{starts.pearson:.3f}", f"{starts.spearman:.3f}",
                f"{100 * starts.nodes:.1f}",
            ])  # fmt: skip
    return rows


def partition_rows(one: Outcome) -> list[list[str]]:
    """Return differences and waits by partition, as the texts of :data:`PARTITION_TABLE`."""
    own = () if one.borrowed else one.own
    rows = []
    for name, waits in one.partitions.items():
        ours, theirs = (
            [pair.partitions[name] for pair in pairs if name in pair.partitions]
            for pairs in (one.ours, own)
        )
        rows.append([
            one.name, name, f"{ours[0].jobs:,}", _range([found.mean for found in ours]),
            _range([found.mean for found in theirs]), f"{waits.ours:.0f}", _range(waits.runs),
            _range([found.pearson for found in ours], 2),
            _range([found.pearson for found in theirs], 2),
        ])  # fmt: skip
    return rows


def reason_rows(one: Outcome) -> list[list[str]]:
    """Return what was said of waiting jobs, as the texts of :data:`REASON_TABLE`."""
    pairs: dict[tuple[str, str], int] = {}
    for found in one.ours:
        for words, count in found.reasons.pairs.items():
            pairs[words] = pairs.get(words, 0) + count
    compared = sum(pairs.values())
    same = sum(count for (mine, theirs), count in pairs.items() if mine == theirs)
    rows = [(("all", "the same"), same)] if compared else []
    different = sorted((-count, words) for words, count in pairs.items() if words[0] != words[1])
    rows += [(words, -count) for count, words in different[:LISTED]]
    return [
        [one.name, *words, f"{count:,}", f"{100 * count / compared:.1f}"] for words, count in rows
    ]


def cause_rows(one: Outcome) -> list[list[str]]:
    """Return the causes of differences, as the texts of :data:`CAUSE_TABLE`."""
    found = by_cause(one.differences)
    whole = sum(seconds for _, _, seconds in found)
    return [
        [one.name, CAUSES[cause], f"{jobs:,}", f"{100 * seconds / whole:.1f}"]
        for cause, jobs, seconds in found
    ]


def difference_row(one: Outcome, found: Difference) -> list[str]:
    """Return what both schedules did with a job, as the texts of :data:`DIFFERENCE_TABLE`."""
    cause = found.cause + (f": {found.detail}" if found.detail else "")
    return [
        one.name, str(found.key), found.line.partition, found.line.user, f"{found.later:+,}",
        str(found.mine), str(found.theirs), cause,
    ]  # fmt: skip


def plan_data(one: Outcome) -> dict[str, Any]:
    """Return the figures of a plan, fit for JSON; the starts of all jobs are left out."""
    compared = {
        name: [
            {
                **{what: plain(getattr(pair, what))
                   for what in ("first", "second", "starts", "tries", "partitions")},
                "reasons": {"compared": pair.reasons.compared, "same": pair.reasons.same,
                            "only_recorded": pair.reasons.others},
            }
            for pair in pairs
        ]
        for name, pairs in (("simulated", one.ours), ("recorded", one.own))
    }  # fmt: skip
    return {
        **one.facts,
        **compared,
        "recorded_of_other_plans": one.borrowed,
        "partitions": plain(_waits(one.partitions)),
        "users": plain(_waits(one.users)),
        "users_in_another_order": [list(pair) for pair in one.order[2]],
        "priorities": plain(one.parts),
        "priorities_on_record": one.on_record,
        "causes": {cause: {"jobs": jobs, "seconds": seconds}
                   for cause, jobs, seconds in by_cause(one.differences)},
        "nearest": one.nearest,
        "jobs_that_differ": len(one.differences),
    }  # fmt: skip


def _waits(found: Any) -> dict[str, Any]:
    return {name: {"ours": one.ours, "runs": list(one.runs)} for name, one in found.items()}


def _mean(pairs: Sequence[Comparison], what: str) -> float:
    return mean([getattr(pair.starts, what) for pair in pairs])


def _range(values: Sequence[float], digits: int = 0) -> str:
    known = [one for one in values if not math.isnan(one)]
    if not known:
        return "-"
    low, high = (f"{one:.{digits}f}" for one in (min(known), max(known)))
    return low if low == high else f"{low} to {high}"
