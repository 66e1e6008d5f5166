"""The command ``hpcrowd events``: what happened in a log, and whether models foresee its effect."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.limits.numbers import MOST_RUNS
from hpcrowd.environment.quantities import plural
from hpcrowd.scenarios.commands.options import AsJson, Reading, Seed, TracePath, reads_traces
from hpcrowd.scenarios.kinds.trace_settings import reading_options
from hpcrowd.scenarios.terminal import plain_table, print_json, progress_bar, standard_output

if TYPE_CHECKING:
    from hpcrowd.analysis.validation.events import Event
    from hpcrowd.analysis.validation.feedback import Verdict
    from hpcrowd.analysis.validation.foresight import Asked
    from hpcrowd.analysis.validation.models import UserModel
    from hpcrowd.environment.clock import Clock
    from hpcrowd.environment.jobs import JobTable
    from hpcrowd.environment.traces.trace import Trace

Users = Annotated[
    str | None,
    typer.Option(
        metavar="NAME[,NAME...]",
        help="Behaviours or TOML files that are asked what users do after the largest events; "
        "learned is the learned model. Without it, events are listed only.",
    ),
]

Most = Annotated[int, typer.Option(min=1, help="Most events of each kind that are asked about.")]

Ordinary = Annotated[
    int, typer.Option(min=0, help="Days on which nothing was found that are asked about, too.")
]

Seeds = Annotated[
    int, typer.Option(min=1, max=MOST_RUNS, help="Simulations of each model after each event.")
]

Feedback = Annotated[
    bool,
    typer.Option(
        "--feedback",
        help="Foresee the fortnight after each event with users who react to the machine and with "
        "users who do not, and say whether feedback helps. Takes about a minute an event.",
    ),
]

Futures = Annotated[
    int,
    typer.Option(
        min=4,
        max=MOST_RUNS,
        help="How many futures of each kind of users at each moment, with --feedback.",
    ),
]

AsCsv = Annotated[bool, typer.Option("--csv", help="Print everything as comma-separated values.")]


@reads_traces
def command(
    trace: TracePath,
    how: Reading,
    users: Users = None,
    most: Most = 3,
    ordinary: Ordinary = 0,
    seeds: Seeds = 2,
    feedback: Feedback = False,
    futures: Futures = 20,
    seed: Seed = 0,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
) -> None:
    """List outages, holidays and lasting changes in a log, and ask models what users did then.

    \b
    hpcrowd events KTH-SP2-1996-2.1-cln.swf.gz
    hpcrowd events KTH-SP2-1996-2.1-cln.swf.gz --users learned,adjusted,fluid --ordinary 3
    hpcrowd events KTH-SP2-1996-2.1-cln.swf.gz --feedback
    """
    from hpcrowd.analysis.models.learned import with_waits
    from hpcrowd.analysis.validation import foresight
    from hpcrowd.analysis.validation.events import find_events
    from hpcrowd.environment.clock import Clock
    from hpcrowd.environment.traces.formats.registry import read_trace
    from hpcrowd.environment.traces.trace import jobs_from_trace

    if as_csv and (as_json or feedback):
        other = "--json" if as_json else "--feedback"
        raise QuantityError(f"--csv, {other}: both given; choose one")
    models = [] if users is None else models_of(users)
    log = read_trace(trace, options=reading_options(**how))
    jobs, waits = with_waits(jobs_from_trace(log).jobs, log["wait"], log.processors)
    clock = Clock.of(log.header)
    found = find_events(jobs, clock)
    asked: list[Asked] = []
    if models:
        chosen = foresight.choose_events(found, jobs, most, ordinary)
        with progress_bar() as progress:
            asked = foresight.foresee_events(
                jobs, models, clock, chosen, seeds=seeds, seed=seed, progress=progress
            )
    judged: list[Verdict] = []
    if feedback:
        if waits:
            raise QuantityError(f"--feedback: {trace}: no recorded waits; take a log with waits")
        judged = _judge_feedback(jobs, clock, log.processors, found, most, futures, seed)
    if as_csv:
        rows = [foresight.COLUMNS, *foresight.csv_rows(found, asked, clock)]
        csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
        return
    if as_json:
        wire = _wire(log, waits, found, clock) | (_plain(asked) if models else {})
        print_json(wire | ({"feedback": [one.plain() for one in judged]} if feedback else {}))
        return
    show_events(log, waits, found, clock)
    if models:
        show_asked(asked, clock)
    if feedback:
        show_feedback(judged)


def _judge_feedback(
    jobs: JobTable, clock: Clock, processors: int, found: list[Event], most: int, futures: int,
    seed: int,
) -> list[Verdict]:  # fmt: skip
    """Return whether feedback helps to foresee what comes after the events of a log."""
    from hpcrowd.analysis.validation.feedback import Question, verdicts
    from hpcrowd.scenarios.studies.events import see_all

    question = Question(jobs, clock, processors, found, futures, seed)
    with progress_bar() as progress:
        return verdicts({"": see_all(question, most, progress)}, seed)


def models_of(users: str) -> list[UserModel]:
    """Return the models by their names, or files, with commas between."""
    from hpcrowd.agents.presets import Recipe
    from hpcrowd.analysis.validation.models import LEARNED, UserModel
    from hpcrowd.scenarios.commands.models import validate

    names = [name.strip() for name in users.split(",")]
    known = iter(validate.models_of([name for name in names if name != LEARNED]))
    learned = UserModel(LEARNED, Recipe("batches", "learned"))
    return [learned if name == LEARNED else next(known) for name in dict.fromkeys(names)]


def _wire(log: Trace, waits: str, found: list[Event], clock: Clock) -> dict[str, Any]:
    """Return a log and its events, fit for JSON."""
    from hpcrowd.analysis.validation.events import header_notes
    from hpcrowd.analysis.validation.foresight import plain

    return {
        "trace": {"source": Path(log.source).name, "sha256": log.sha256},
        "clock_note": clock.note,
        "waits_note": waits,
        "header": header_notes(log, clock),
        "events": plain(found, clock),
    }


def _plain(asked: list[Asked]) -> dict[str, Any]:
    """Return what models said, fit for JSON."""
    return {
        "asked": [one.plain() for one in asked],
        "verdicts": [one.plain() for one in _judged(asked, ordinary=False)],
        "ordinary": [one.plain() for one in _judged(asked, ordinary=True)],
    }


def _judged(asked: list[Asked], *, ordinary: bool) -> list[Any]:
    """Return the verdicts over events, or over ordinary days."""
    from hpcrowd.analysis.validation.foresight import ORDINARY, verdicts

    return verdicts({"": [one for one in asked if (one.event.kind == ORDINARY) == ordinary]})


def show_events(log: Trace, waits: str, found: list[Event], clock: Clock) -> None:
    """Print the name of a log, notes on it, and a table of events."""
    from hpcrowd.analysis.validation.events import header_notes
    from hpcrowd.analysis.validation.foresight import EVENTS, event_rows

    console = standard_output()
    notes = [line for line in (waits, clock.note, *header_notes(log, clock)) if line]
    for line in (Path(log.source).name, *(f"  {line}" for line in notes)):
        console.print(line, soft_wrap=True, highlight=False)
    console.print()
    if not found:
        console.print("No outage, holiday or lasting change was found.")
        return
    rows = event_rows(found, clock)
    console.print(plain_table(*EVENTS, rows=rows, words=3, whole=2, title="What happened"))


def show_asked(asked: list[Asked], clock: Clock) -> None:
    """Print what was recorded and foreseen after each event, and the errors of the models."""
    from hpcrowd.analysis.validation.foresight import HORIZONS, MEASURES, asked_rows, verdict_rows

    console = standard_output()
    console.print()
    if not asked:
        console.print("No event has four weeks before it and a fortnight after it.")
        return
    names = list(asked[0].foreseen)
    for days in HORIZONS:
        title = f"Jobs in {days} d after, as a multiple of those usual before"
        columns = ("event", "local time", "recorded", *names)
        rows = asked_rows(asked, clock, days, "jobs")
        console.print(plain_table(*columns, rows=rows, words=2, whole=2, title=title))
        console.print()
    titles = [measure.replace("_", " ") for measure in MEASURES]
    for ordinary, what in ((False, "events"), (True, "ordinary days")):
        judged = _judged(asked, ordinary=ordinary)
        for days in HORIZONS if judged else ():
            title = f"Error of the natural logarithm of these multiples, {days} d after {what}"
            rows = verdict_rows(judged, MEASURES, days)
            columns = ("model", *titles, "direction of jobs right")
            console.print(plain_table(*columns, rows=rows, title=title))
            console.print()
    console.print(
        "Models say when the recorded work is submitted, not how much there is. In brackets: 95% "
        "interval, by resampling events. no change: as in the four weeks before.",
        highlight=False,
    )


def show_feedback(judged: list[Verdict]) -> None:
    """Print whether feedback helps: on both machines, over all events."""
    from hpcrowd.analysis.validation.feedback import HEADINGS, conclusion, rows

    console = standard_output()
    for machine in dict.fromkeys(one.machine for one in judged):
        first = next(one for one in judged if one.machine == machine)  # of several kinds: all
        console.print()
        title = f"Does feedback help? {plural(first.events, 'event')}, machine: {machine}"
        table = rows(judged, first.kind, machine)
        console.print(plain_table(*HEADINGS, rows=table, words=2, title=title))
        for one in judged:
            if (one.kind, one.machine, one.days) == (first.kind, machine, "all"):
                console.print(conclusion(one), soft_wrap=True, highlight=False)
    console.print()
    console.print(
        "gain: CRPS (natural logarithm of multiples of the usual; of who submits: Brier score) "
        "without feedback less that with it, at events less at ordinary moments. knowing the "
        "event: the same of users on a machine that goes on as before less those on the real one. "
        "strength of the answer to the event: 0 none, 1 the model's; ordinary: to what the machine "
        "does at ordinary moments. In brackets: 95% interval. power: share of simulated worlds, "
        "with feedback / without, that are decided right; here: of the gain / strength, with the "
        "noise of the log; events needed: for a power of 80% here.",
        highlight=False,
    )
