"""The page about validation: models of users on the logs of the protocol.

    python -m hpcrowd.scenarios.studies.refresh validation --traces traces --runs kept

writes its tables and its pictures. This takes hours; finished logs are kept in the folder ``kept``.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

from hpcrowd.agents.presets import PRESETS, Recipe
from hpcrowd.agents.work.recorded import Work
from hpcrowd.analysis.models.learned import SEVERAL, fit_learned, with_waits
from hpcrowd.analysis.validation.across import RANK_HEADING, Across, claim_rows, rank_rows
from hpcrowd.analysis.validation.models import ELSEWHERE, LEARNED, UserModel
from hpcrowd.analysis.validation.report import HEADING, TITLES, draw, score_rows
from hpcrowd.analysis.validation.scores import Estimate
from hpcrowd.analysis.validation.validation import Validation, protocol, validate
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.output.whole import whole_file
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import jobs_from_trace
from hpcrowd.scenarios.studies.render import Picture, markdown_table
from hpcrowd.scenarios.studies.running import LOGS, Log, Steps, find_logs
from hpcrowd.scenarios.terminal import progress_bar

#: A combination that is not a preset: adjusted, in fitted activity windows.
ADJUSTED_WINDOWS = UserModel("adjusted + windows", Recipe("batches", window="fitted"))

#: Models that the learned one is compared with: all presets but itself.
RIVALS = tuple(name for name in PRESETS if name != LEARNED)

#: Models that the learned one must be ahead of when it was fitted to other logs, in forecasts.
AHEAD_OF = ("adjusted", "think-time", "fluid")


def studied() -> dict[str, Log]:
    """Return the logs of the protocol, of HPC2N the first version."""
    first = {"HPC2N": Log("HPC2N-2002-2.1-cln.swf", LOGS["HPC2N"].page)}
    return {name: first.get(name, LOGS[name]) for name in (*protocol().design, *protocol().check)}


def models(elsewhere: UserModel | None = None) -> list[UserModel]:
    """Return the models of the page."""
    found = [*(UserModel.of(name) for name in PRESETS), ADJUSTED_WINDOWS]
    return found if elsewhere is None else [*found, elsewhere]


def records(paths: Mapping[str, Path]) -> dict[str, tuple[Work, Clock, int]]:
    """Return work, local time and processors of each log; waits are simulated if it has none."""
    found = {}
    for name, path in paths.items():
        trace = read_trace(path)
        jobs, _ = with_waits(jobs_from_trace(trace).jobs, trace["wait"], trace.processors)
        found[name] = Work.of(jobs), Clock.of(trace.header), trace.processors
    return found


def elsewhere(name: str, of: Mapping[str, tuple[Work, Clock, int]]) -> UserModel:
    """Return the learned model fitted to all logs but one."""
    others = [(work, clock) for log, (work, clock, _) in of.items() if log != name]
    return UserModel(
        ELSEWHERE, Recipe("batches", "learned"), elsewhere=fit_learned(others, SEVERAL)
    )


def validations(traces: Path, kept: Path | None = None) -> dict[str, Validation]:
    """Return the validation of each log; those finished are kept in a folder, if given."""
    paths = find_logs(traces, studied(), studied())
    found: dict[str, Validation] = {}
    of: dict[str, tuple[Work, Clock, int]] = {}
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
    with progress_bar() as progress:
        steps = Steps(len(paths), progress)
        for name in paths:
            steps.begin(name)
            place = None if kept is None else kept / f"{name}.pkl"
            if place is not None and place.is_file():
                found[name] = pickle.loads(place.read_bytes())
                continue
            of = of or records(paths)
            work, clock, processors = of[name]
            found[name] = validate(
                work.jobs, models(elsewhere(name, of)), clock, processors=processors
            )
            if place is not None:
                with whole_file(place) as temporary:
                    temporary.write_bytes(pickle.dumps(found[name]))
        steps.end()
    return found


def facts_row(name: str, found: Validation) -> list[str]:
    """Return a row about a log: what lies before and after its origins."""
    first, last = (found.origins[k].counts for k in (0, -1))
    row = [name]
    for what in ("jobs", "sessions", "users"):
        row.append(f"{first[f'{what}_first']:,} to {last[f'{what}_first']:,}")
        row.append(f"{sum(one.counts[f'{what}_second'] for one in found.origins):,}")
    return row


def signed(gain: Estimate) -> str:
    """Return a difference with its interval, in bold if the interval does not include 0."""
    number = f"{gain.value + 0.0:+.3f}"
    sure = gain.low > 0 or gain.high < 0
    return f"{f'**{number}**' if sure else number} ({gain.low:+.3f} to {gain.high:+.3f})"


def ahead_rows(found: Mapping[str, Validation]) -> list[list[str]]:
    """Return how far the model fitted to other logs is ahead of models fitted to the log itself."""
    rows = []
    for measure in ("next_batch", "next_session"):
        for rival in AHEAD_OF:
            row = [TITLES[measure], rival]
            for each in found.values():
                gain = each.difference(ELSEWHERE, rival, measure)
                row.append("" if gain is None else signed(gain))
            if any(row[2:]):
                rows.append(row)
    return rows


def page_parts(found: Mapping[str, Validation]) -> dict[str, str]:
    """Return the generated parts of the page by name."""
    across, logs = Across(found), list(found)
    groups = {"design": protocol().design, "check": protocol().check}
    parts = {
        "facts": markdown_table(
            ["log", "jobs before", "jobs after", "sessions before", "sessions after",
             "users before", "users after"],
            [facts_row(name, each) for name, each in found.items()], 1,
        ),
        "ranks": markdown_table([*RANK_HEADING, *TITLES.values()], rank_rows(across), 1),
        "elsewhere": markdown_table(["in", "less", *logs], ahead_rows(found), 2),
        "logs": markdown_table(
            ["model", *logs],
            [
                [name, *(f"{each.mean_rank(name):.1f}" for each in found.values())]
                for name in across.models
            ],
            1,
        ),
    }  # fmt: skip
    for model, part in ((LEARNED, "learned"), (ELSEWHERE, "learned elsewhere")):
        rows = claim_rows(across, model, RIVALS)
        for row in rows:
            row[0] = TITLES[row[0]]
        parts[part] = markdown_table(["measure", *logs], rows, 1)
    for group, names in groups.items():
        tables = [
            f"**{name}**\n\n{markdown_table(HEADING, score_rows(found[name]), 1)}"
            for name in names
            if name in found
        ]
        parts[group] = "\n\n".join(tables)
    return parts


def page_contents(traces: Path, runs: Path | None = None) -> tuple[dict[str, str], list[Picture]]:
    """Validate on each log; return the generated parts of the page by name, and its picture."""
    found = validations(traces, runs)
    picture = Picture.of("validation", draw, found["KTH"], "KTH-SP2-1996-2.1-cln")
    return page_parts(found), [picture]
