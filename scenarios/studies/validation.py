"""The page about validation: the presets, validated on every log of :data:`LOGS_TRIED`.

    python -m hpcrowd.scenarios.studies.refresh validation --traces traces

writes its tables and its picture. This takes some minutes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hpcrowd.agents.presets import PRESETS, Recipe
from hpcrowd.analysis.validation.parts import BASELINES, UserModel
from hpcrowd.analysis.validation.report import HEADING, TITLES, draw, score_rows
from hpcrowd.analysis.validation.scores import Estimate
from hpcrowd.analysis.validation.validation import Validation, fitted_lines, validate
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import Trace, jobs_from_trace
from hpcrowd.scenarios.studies.render import Picture, markdown_table
from hpcrowd.scenarios.studies.running import LOGS, Steps, find_logs
from hpcrowd.scenarios.terminal import progress_bar

#: Logs with waits, by their names on the page.
LOGS_TRIED = ("KTH", "HPC2N", "LANL-CM5", "SDSC-DS")

#: A combination that is not a preset: adjusted, in fitted activity windows.
ADJUSTED_WINDOWS = UserModel("adjusted + windows", Recipe("batches", window="fitted"))

#: Simulations of each model.
SEEDS = 1

#: The benefit of parts of models: the question, a model with the part and one without it, and the
#: measures in which they are compared.
PAIRS = (
    ("response, in any form", "similar", "pooled", ("next_batch", "next_session")),
    ("response, as a line (error of the median)", "linear", "adjusted", ("next_batch",)),
    ("the user's own pauses", "adjusted", "pooled", ("next_batch", "next_session")),
    ("waiting for responses at all", "adjusted", "rigid", ("next_batch", "next_session")),
    (
        "fitted windows",
        ADJUSTED_WINDOWS.name,
        "adjusted",
        ("next_batch", "next_session", "think_time", "weekly_profile"),
    ),
    (
        "fitted windows, whole sessions",
        "think-time-windows",
        "think-time",
        ("next_session", "think_time", "weekly_profile"),
    ),
    ("recorded session windows", "fluid", "adjusted", ("next_batch", "weekly_profile")),
)


def models() -> list[UserModel]:
    """Return the models of the page."""
    return [*(UserModel.of(name) for name in PRESETS), ADJUSTED_WINDOWS]


def validate_log(trace: Trace, tried: Iterable[UserModel] | None = None) -> Validation:
    """Validate models on a log, with the settings of the page."""
    chosen = models() if tried is None else list(tried)
    jobs = jobs_from_trace(trace).jobs
    return validate(jobs, chosen, Clock.of(trace.header), seeds=SEEDS)


def facts_row(name: str, found: Validation) -> list[str]:
    """Return a row about a log: the contents of its parts, and the lines fitted to both."""
    counts, lines = found.counts(), fitted_lines(found.parts)
    row = [name]
    for part in ("first", "second"):
        row += [f"{counts[f'{what}_{part}']:,}" for what in ("jobs", "sessions", "users")]
    row.append(f"{counts['users_second_not_seen_in_first']:,}")
    for line in lines.values():
        row.append("none" if line is None else f"{line['slope']:.3f} / {line['intercept_s']:,.0f}")
    return row


def winners(found: dict[str, Validation]) -> str:
    """Return a table with the best model of each measure and log, and those that may be as good."""
    rows = []
    for measure, title in TITLES.items():
        row = [title]
        for each in found.values():
            there = [(n, s[measure]) for n, s in each.scores.items() if measure in s]
            there.sort(key=lambda pair: pair[1].rank or 0)
            row.append(", ".join(name for name, score in there if score.tied))
        rows.append(row)
    return markdown_table(["measure", *found], rows, 1 + len(found))


def worths(found: dict[str, Validation]) -> str:
    """Return a table of the benefit of parts of models on each log."""
    rows = []
    for what, a, b, measures in PAIRS:
        statistic = "error" if "error" in what else None
        for measure in measures:
            row = [what, f"{a} - {b}", TITLES[measure]]
            for each in found.values():
                gain = each.difference(a, b, measure, statistic)
                row.append("" if gain is None else signed(gain))
            rows.append(row)
    return markdown_table(["what", "difference of", "in", *found], rows, 3)


def signed(gain: Estimate) -> str:
    """Return a difference with its interval, in bold if the interval does not include 0."""
    number = f"{gain.value + 0.0:+.3f}"
    sure = gain.low > 0 or gain.high < 0
    return f"{f'**{number}**' if sure else number} ({gain.low:+.3f} to {gain.high:+.3f})"


def page_parts(found: dict[str, Validation]) -> dict[str, str]:
    """Return the generated parts of the page by name."""
    heading = [
        "log",
        *(f"{w}, {p}" for p in ("first", "second") for w in ("jobs", "sessions", "users")),
    ]
    heading += ["new users", "line, first", "line, second"]
    facts = markdown_table(heading, [facts_row(name, each) for name, each in found.items()], 1)
    tables = {name: markdown_table(HEADING, score_rows(each), 1) for name, each in found.items()}
    scores = "\n\n".join(f"**{name}**\n\n{table}" for name, table in tables.items())
    errors = []
    for name in [*(model.name for model in models()), *BASELINES]:
        answers = [each.scores[name].get("next_batch") for each in found.values()]
        if None not in answers:
            values = [f"{score.statistics['error'].value:.2f}" for score in answers if score]
            errors.append([name, *values])
    return {
        "parts": facts,
        "winners": winners(found),
        "worths": worths(found),
        "scores": scores,
        "errors": markdown_table(["model", *found], errors, 1),
    }


def page_contents(traces: Path) -> tuple[dict[str, str], list[Picture]]:
    """Validate on each log and return the generated parts of the page by name, and its picture.

    Parameters
    ----------
    traces
        Folder with the traces.
    """
    paths = find_logs(traces, {name: LOGS[name] for name in LOGS_TRIED}, LOGS_TRIED)
    found = {}
    with progress_bar() as progress:
        steps = Steps(len(paths), progress)
        for name, path in paths.items():
            steps.begin(f"{name}: {path.name}")
            found[name] = validate_log(read_trace(path))
        steps.end()
    picture = Picture.of("validation", draw, found["KTH"], "KTH-SP2-1996-2.1-cln")
    return page_parts(found), [picture]
