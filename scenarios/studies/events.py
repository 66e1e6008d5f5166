"""The page about natural experiments: what happened in each log, and what models foresaw.

    python -m hpcrowd.scenarios.studies.refresh events --traces traces

writes its tables. This takes about an hour, most of it for futures with and without
feedback.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hpcrowd.agents.presets import Recipe
from hpcrowd.analysis.models.learned import with_waits
from hpcrowd.analysis.validation import feedback
from hpcrowd.analysis.validation.events import Event, find_events, header_notes
from hpcrowd.analysis.validation.feedback import Moment, Question, Seen
from hpcrowd.analysis.validation.foresight import (
    HORIZONS,
    NO_CHANGE,
    ORDINARY,
    Asked,
    Verdict,
    choose_events,
    foresee_events,
    interval,
    name_of,
    number,
    verdicts,
)
from hpcrowd.analysis.validation.models import LEARNED, UserModel
from hpcrowd.analysis.validation.validation import protocol
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.quantities import format_duration
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import jobs_from_trace
from hpcrowd.scenarios.engines import cores, each_in_processes
from hpcrowd.scenarios.studies.render import Picture, markdown_table
from hpcrowd.scenarios.studies.running import LOGS, find_logs
from hpcrowd.scenarios.terminal import progress_bar

#: Presets of the page; users who repeat the record or generate their work cannot be asked.
PRESETS_TRIED = ("think-time", "think-time-windows", "adjusted", "distribution", "fluid", "linear")

#: Most events of each kind, and days without an event, by the least number of jobs of a log: large
#: logs take long.
MOST = {0: 3, 100_000: 2, 200_000: 1}

#: Simulations of each model after each event.
SEEDS = 1

#: Rows of outages, holidays and so on that the page lists for each log: the largest.
LISTED = 6

#: Events of each kind in a log that are asked about feedback, at most, and futures.
FEEDBACK_MOST, FEEDBACK_FUTURES = 3, 12

#: Moments up to which one process does everything: others need some seconds to begin.
FEW = 4

#: Models shown event by event.
SHOWN = (LEARNED, "adjusted", "fluid")

#: Kinds of events that are alike in tables.
KINDS_ASKED = {
    "outages": ("outage",),
    "holidays": ("holiday",),
    "lasting changes": ("capacity", "load", "waits", "queue"),
    "ordinary days": (ORDINARY,),
}


@dataclass(frozen=True)
class Found:
    """What was found in a log."""

    events: list[Event]  #: All that happened.
    notes: list[str]  #: What the header says.
    waits: str  #: A note if waits had to be simulated.
    clock: Clock  #: Local time.
    days: float  #: Days from the first to the last submission.
    asked: list[Asked]  #: Events that models were asked about.
    seen: list[Seen] = field(default_factory=list)  #: What futures said of feedback.


def models() -> list[UserModel]:
    """Return the models of the page."""
    return [
        *(UserModel.of(name) for name in PRESETS_TRIED),
        UserModel(LEARNED, Recipe("batches", "learned")),
    ]


def look_at(path: Path, tried: Iterable[UserModel] = (), progress: Any = None) -> Found:
    """Find what happened in a log, and ask models what they foresaw."""
    trace = read_trace(path)
    jobs, waits = with_waits(jobs_from_trace(trace).jobs, trace["wait"], trace.processors)
    clock = Clock.of(trace.header)
    events = find_events(jobs, clock)
    asked: list[Asked] = []
    if chosen_models := list(tried):
        most = next(most for least, most in reversed(MOST.items()) if len(jobs) >= least)
        chosen = choose_events(events, jobs, most, ordinary=most)
        asked = foresee_events(jobs, chosen_models, clock, chosen, seeds=SEEDS, progress=progress)
    seen: list[Seen] = []
    if chosen_models and not waits:
        question = Question(jobs, clock, trace.processors, events, FEEDBACK_FUTURES)
        seen = see_all(question, FEEDBACK_MOST, progress or (lambda *_: None))
    span = float(jobs.recorded_submit.max() - jobs.recorded_submit.min()) / DAY
    return Found(events, header_notes(trace, clock), waits, clock, span, asked, seen)


def see_all(question: Question, most: int, progress: Any) -> list[Seen]:
    """Return what is foreseen after the largest events of a log, and at ordinary moments.

    At most ``most`` events of each kind; all cores share the work.
    """
    moments = feedback.moments_of(question, most)
    found: dict[int, Seen] = {}
    processes = cores() if len(moments) > FEW else 1
    work = partial(_see, question, moments)
    for place, seen in each_in_processes(work, range(len(moments)), processes):
        found[place] = seen
        progress("feedback", len(found), len(moments))
    return [found[place] for place in range(len(moments))]


def _see(question: Question, moments: Sequence[Moment], place: int) -> Seen:
    return feedback.see(question, moments[place])


def kinds_table(logs: Mapping[str, Found]) -> str:
    """Return the number of events of each kind by log."""
    kinds = ("outage", "holiday", "capacity", "load", "waits", "queue")
    rows = []
    for name, found in logs.items():
        count = Counter(event.kind for event in found.events)
        rows.append([name, f"{found.days:,.0f}", *(str(count[kind] or "") for kind in kinds)])
    return markdown_table(["log", "days", *kinds], rows, left=1)


def events_table(logs: Mapping[str, Found]) -> str:
    """Return the longest outages, and all other events, of each log."""
    rows = []
    for name, found in logs.items():
        longest = sorted(
            (one for one in found.events if one.kind == "outage"),
            key=lambda one: one.begin - one.end,
        )
        shown = {id(one) for one in longest[:LISTED]}
        for event in found.events:
            if event.kind == "outage" and id(event) not in shown:
                continue
            lasts = "" if event.lasting else format_duration(event.end - event.begin)
            begin = found.clock.local(event.begin)
            rows.append(
                [
                    name,
                    name_of(event),
                    f"{begin:%Y-%m-%d %H:%M}",
                    lasts,
                    *map(number, _shown(event)),
                ]
            )
    return markdown_table(["log", "event", "local time", "lasts", "before", "after"], rows,
                          left=3)  # fmt: skip


def _shown(event: Event) -> tuple[float, float]:
    per = HOUR if event.kind == "waits" else 1
    return event.before / per, event.after / per


def headers_table(logs: Mapping[str, Found]) -> str:
    """Return what the headers say about dates."""
    rows = [
        [name, " ".join(note.removeprefix("Note: ").split())]
        for name, found in logs.items()
        for note in found.notes
        if "removed" in note
    ]
    return markdown_table(["log", "filter in the header, with local dates"], rows, left=2)


def verdicts_of(
    logs: Mapping[str, Found], names: Sequence[str], *, ordinary: bool = False
) -> list[Verdict]:
    """Return the verdicts on the models over the events of some logs."""
    asked = {
        name: [one for one in logs[name].asked if (one.event.kind == ORDINARY) == ordinary]
        for name in names
        if name in logs
    }
    return verdicts({name: each for name, each in asked.items() if each})


def verdict_table(found: Sequence[Verdict]) -> str:
    """Return the errors of the models."""
    return markdown_table(
        ["model", *(f"{measure.replace('_', ' ')}, {days} d" for measure, days in COLUMNS),
         "direction of jobs right, 14 d"],
        [
            [model, *(interval(of(found, model, *column).error) for column in COLUMNS),
             interval(of(found, model, "jobs", HORIZONS[-1]).right)]
            for model in dict.fromkeys(each.model for each in found)
        ],
        left=1,
    )  # fmt: skip


def gains_table(groups: Mapping[str, Sequence[Verdict]]) -> str:
    """Return how often models are better than "no change", or worse, beyond the interval."""
    rows = []
    for title, found in groups.items():
        compared = [one for one in found if one.model != NO_CHANGE]
        ahead = [one for one in compared if one.gain.low > 0]
        behind = [one for one in compared if one.gain.high < 0]
        which = Counter(f"{one.measure.replace('_', ' ')}, {one.days} d" for one in ahead)
        listed = "; ".join(f"{what}: {count}" for what, count in which.items())
        rows.append([title, str(len(compared)), str(len(ahead)), str(len(behind)), listed])
    return markdown_table(
        ["events", "comparisons", "a model is better", "no change is better",
         "where models are better"],
        rows,
        left=1,
    )  # fmt: skip


#: Columns of the tables of errors: measure and days.
COLUMNS = (("jobs", 1), ("jobs", 3), ("jobs", 14), ("sessions", 14), ("users", 14),
           ("think_time", 14))  # fmt: skip


def of(found: Sequence[Verdict], model: str, measure: str, days: int) -> Verdict:
    """Return the verdict on a model in a measure."""
    return next(
        one for one in found if (one.model, one.measure, one.days) == (model, measure, days)
    )


def asked_table(logs: Mapping[str, Found]) -> str:
    """Return what was recorded and foreseen after each event: jobs, as multiples of the usual."""
    rows = []
    for name, found in logs.items():
        for one in found.asked:
            begin = found.clock.local(one.event.begin)
            row = [name, f"{name_of(one.event)}, {begin:%Y-%m-%d}"]
            for days in (HORIZONS[0], HORIZONS[-1]):
                for model in ("", *SHOWN):
                    known = not model or model in one.foreseen
                    change = one.change(days, "jobs", model) if known else float("nan")
                    row.append("" if np.isnan(change) else f"{np.exp(change):.2f}")
            rows.append(row)
    heads = ("recorded", *SHOWN)
    return markdown_table(
        ["log", "event", *(f"{head}, {days} d" for days in (1, 14) for head in heads)], rows, left=2
    )


def by_kind_table(logs: Mapping[str, Found]) -> str:
    """Return the geometric mean of after over before by kind of event: jobs, 1 and 14 days."""
    asked = [one for found in logs.values() for one in found.asked]
    names = ["", *asked[0].foreseen]
    rows = []
    for days in (HORIZONS[0], HORIZONS[-1]):
        for title, kinds in KINDS_ASKED.items():
            mine = [one for one in asked if one.event.kind in kinds]
            changes = np.array(
                [[one.change(days, "jobs", model) for model in names] for one in mine]
            ).reshape(-1, len(names))
            known = changes[np.isfinite(changes).all(axis=1)]
            if len(known):
                cells = [f"{factor:.2f}" for factor in np.exp(known.mean(axis=0))]
                rows.append([f"{title}, {days} d", str(len(known)), *cells])
    return markdown_table(["after", "events", "recorded", *names[1:]], rows, left=1)


def feedback_table(logs: Mapping[str, Found], names: Sequence[str]) -> str:
    """Return whether feedback helps after the events of some logs: jobs by days, all else over all.

    Kinds with too few events for intervals are left out.

    Rows are those of :func:`hpcrowd.analysis.validation.feedback.verdicts`.
    """
    seen = {name: logs[name].seen for name in names if name in logs and logs[name].seen}
    shown = [
        one
        for one in feedback.verdicts(seen)
        if np.isfinite(one.gain.low)
        and (one.days == "all" or (one.kind, one.measure) == ("all", "jobs"))
    ]
    rows = [
        [one.machine, one.kind, str(one.events), *row]
        for one in shown
        for row in feedback.rows([one], one.kind, one.machine)
    ]
    return markdown_table(["machine", "after", "events", *feedback.HEADINGS], rows, left=2)


def parts_of(logs: Mapping[str, Found]) -> dict[str, str]:
    """Return the generated parts of the page."""
    rules = protocol()
    groups = {
        "design logs": verdicts_of(logs, rules.design),
        "check logs": verdicts_of(logs, rules.check),
        "ordinary days of all logs": verdicts_of(logs, list(logs), ordinary=True),
    }
    design, check, ordinary = groups.values()
    return {
        "kinds": kinds_table(logs),
        "events": events_table(logs),
        "headers": headers_table(logs),
        "design": verdict_table(design),
        "check": verdict_table(check),
        "ordinary": verdict_table(ordinary),
        "gains": gains_table(groups),
        "by_kind": by_kind_table(logs),
        "asked": asked_table(logs),
        "feedback": feedback_table(logs, rules.design),
        "feedback_check": feedback_table(logs, rules.check),
    }


def page_contents(traces: Path) -> tuple[dict[str, str], list[Picture]]:
    """Return the generated parts of the page; it has no pictures."""
    tried = {name: LOGS[name] for name in (*protocol().design, *protocol().check)}
    with progress_bar() as progress:
        logs = {
            name: look_at(path, models(), lambda what, done, of, log=name: progress(
                f"{log}: {what}", done, of))
            for name, path in find_logs(traces, tried).items()
        }  # fmt: skip
    return parts_of(logs), []
