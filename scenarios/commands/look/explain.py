"""The command ``hpcrowd explain``: what a user of a run did and why, in words."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from hpcrowd.agents.behaviours.decisions import Kind, What
from hpcrowd.analysis.accounts.decisions import decisions_of, word
from hpcrowd.analysis.results import read_results
from hpcrowd.environment.clock import moment, parse_moment, second_of
from hpcrowd.environment.errors import QuantityError, ResultsError
from hpcrowd.environment.jobs import UNKNOWN, State, number_of
from hpcrowd.environment.quantities import format_duration, plural
from hpcrowd.scenarios.commands.options import AsJson
from hpcrowd.scenarios.terminal import print_json

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.decisions import Decision, Decisions
    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.clock import Clock


#: How many known users an error message lists.
NEAREST = 5

#: Largest number of jobs of a unit that are printed with a line each.
MOST = 10


Begin = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="MOMENT", help="Beginning of the time span: 2d, 36h, or 1996-10-14 16:00."
    ),
]

WithJobs = Annotated[
    bool, typer.Option("--with-jobs", help="Show the jobs of each submission, and their outcome.")
]


def command(
    folder: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder of results, written with --log-decisions.")
    ],
    user: Annotated[str, typer.Option(help="Name or number of the user.")],
    begin: Begin = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="MOMENT", help="End of the time span, exclusive.")
    ] = None,
    with_jobs: WithJobs = False,
    as_json: AsJson = False,
) -> None:
    """Show what a user of a run did, when and why.

    \b
    hpcrowd replay log.swf.gz --users fluid --log-decisions --out runs/fluid
    hpcrowd explain runs/fluid --user 17 --from "1996-10-14 08:00" --to 1996-10-15
    """
    moments = [None if text is None else parse_moment(text) for text in (begin, end)]
    run = read_results(folder)
    decisions = decisions_of(run.parts)
    if decisions is None:
        raise ResultsError(
            f"{folder}: no decisions.parquet in it; run it again with --log-decisions --out FOLDER"
        )
    first, last = span = [_second(moment, run.clock) for moment in moments]
    if first is not None and last is not None and first >= last:
        raise QuantityError(f"from {begin} to {end}: is empty; --to has to come after --from")
    number = number_of(run.jobs.names, "user", user)
    check_known(decisions, number)
    found = list(decisions.of_user(number, *span))
    own = OwnJobs(run, number) if with_jobs else None
    name = run.jobs.who(number)
    if as_json:
        print_json(
            {
                "run": run.label,
                "user": number,
                **({"user_name": name} if name != str(number) else {}),
                "from_s": first,
                "to_s": last,
                "decisions": [wire(decision, run.clock, own) for decision in found],
                "dropped": decisions.dropped,
            }
        )
        return
    for line in lines(found, run.clock, own):
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"{plural(len(found), 'decision')} of user {name}, {run.label}\n")
    if not found:
        sys.stdout.write(f"{_when(decisions, number, run.clock)}\n")
    if decisions.dropped:
        sys.stdout.write(
            f"the log was full: {plural(decisions.dropped, 'later decision')} of all users "
            "not kept\n"
        )
    if run.clock.note:
        sys.stdout.write(f"{run.clock.note}\n")


def check_known(decisions: Decisions, user: int) -> None:
    """Check that a user decided anything; the message lists users with the nearest numbers."""
    known = np.unique(decisions.columns["user"])
    if user in known:
        return
    if not len(known):
        raise QuantityError(f"user {user}: no user decided anything in this run")
    near = np.sort(known[np.argsort(np.abs(known - user), kind="stable")[:NEAREST]])
    raise QuantityError(
        f"user {user}: not in this run, or without decisions in the log; nearest of "
        f"{plural(len(known), 'user')}: {', '.join(map(str, near.tolist()))}"
    )


def lines(decisions: list[Decision], clock: Clock, own: OwnJobs | None = None) -> list[str]:
    """Return a line for each decision: local time, what and why; and, indented, for its jobs."""
    found = []
    for one in decisions:
        when = moment(clock, one.time)
        found.append(f"{when}  {one.words()}")
        if own is not None:
            found += [f"{'':{len(when)}}    {line}" for line in own.lines(one)]
    return found


def wire(decision: Decision, clock: Clock, own: OwnJobs | None = None) -> dict[str, Any]:
    """Return a decision fit for JSON, with its local time, its words and, if asked, its jobs."""
    return {
        **decision._asdict(),
        **{name: word(getattr(decision, name).name) for name in ("what", "why", "kind")},
        "local_time": moment(clock, decision.time),
        "words": decision.words(),
        **({} if own is None else {"jobs": own.of(decision)}),
    }


def _when(decisions: Decisions, user: int, clock: Clock) -> str:
    """Return when a user first and last decided, for a time span without decisions."""
    times = decisions.columns["time"][decisions.columns["user"] == user]
    first, last = moment(clock, int(times[0])), moment(clock, int(times[-1]))
    return f"its first one was on {first}, its last one on {last}"


def _second(moment: Any, clock: Clock) -> int | None:
    return None if moment is None else second_of(moment, clock)


class OwnJobs:
    """The jobs of a user, given by its number, by the units in its decisions."""

    def __init__(self, run: Run, user: int) -> None:
        self.run = run
        self._rows: dict[tuple[Kind, int], list[int]] = defaultdict(list)
        jobs = run.jobs
        mine = np.flatnonzero(jobs.user == user)
        mine = mine[np.argsort(jobs.submit[mine], kind="stable")]
        for kind, column in ((Kind.SESSION, jobs.session), (Kind.BATCH, jobs.batch)):
            for row, unit in zip(mine.tolist(), column[mine].tolist(), strict=True):
                self._rows[kind, unit].append(row)
        decisions = decisions_of(run.parts)
        lost = () if decisions is None else decisions.of_user(user)
        self._stopped = {one.cause for one in lost if one.what == What.LOST}
        # The last account of a grid is that of all its jobs.
        self._clusters = [*run.parts["grid"].account][:-1]

    def of(self, decision: Decision) -> list[dict[str, Any]]:
        """Return the jobs of a submission, a dictionary each, times in s; else none."""
        if decision.what != What.SUBMITTED:
            return []
        jobs = self.run.jobs
        return [
            {
                "number": int(jobs.number[row]),
                "processors": int(jobs.processors[row]),
                "submit": int(jobs.submit[row]),
                "start": int(jobs.start[row]),
                "end": int(jobs.end[row]),
                "state": State(jobs.state[row]).name.lower(),
                "cluster": self._cluster(int(jobs.cluster[row])),
            }
            for row in self._rows[decision.kind, decision.unit]
        ]

    def lines(self, decision: Decision) -> list[str]:
        """Return a line for each job of a submission; beyond :data:`MOST`, one for all others."""
        found = self.of(decision)
        lines = [self._line(one) for one in found[:MOST]]
        if rest := found[MOST:]:
            last = max(one["end"] for one in rest)
            over = "" if last == UNKNOWN else f", the last one until {moment(self.run.clock, last)}"
            lines.append(f"and {plural(len(rest), 'job')} more{over}")
        return lines

    def _cluster(self, number: int) -> str:
        return self._clusters[number] if 0 <= number < len(self._clusters) else ""

    def _line(self, job: dict[str, Any]) -> str:
        where = f" on {job['cluster']}" if job["cluster"] else ""
        name = f"job {job['number']}"
        if job["start"] == UNKNOWN:
            return f"{name}: {job['state']}"
        waited = f"waited {format_duration(job['start'] - job['submit'])}"
        if job["number"] in self._stopped:
            again = moment(self.run.clock, job["submit"])
            waited = f"was stopped, submitted again {again}, {waited}"
        if job["end"] == UNKNOWN:
            return f"{name}: {waited}, then ran{where}, {job['state']}"
        ran = f"ran {format_duration(job['end'] - job['start'])}{where}"
        state = "" if job["state"] == "completed" else f", {job['state']}"
        return f"{name}: {waited}, {ran} until {moment(self.run.clock, job['end'])}{state}"
