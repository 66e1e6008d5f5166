"""The command ``hpcrowd validate``: models fitted on one part of a trace, tested on the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcrowd.environment.errors import QuantityError, check_choice, not_one_of
from hpcrowd.environment.limits.numbers import MOST_RUNS
from hpcrowd.environment.quantities import plural
from hpcrowd.scenarios.commands.options import (
    TRACE_HELP,
    AsJson,
    Reading,
    Seed,
    all_at_hand,
    reads_traces,
)
from hpcrowd.scenarios.kinds.trace_settings import reading_options
from hpcrowd.scenarios.terminal import (
    plain_table,
    print_json,
    progress_bar,
    say_where,
    standard_output,
)

if TYPE_CHECKING:
    from rich.console import Console

    from hpcrowd.analysis.patience.judge import PatienceJudgement
    from hpcrowd.analysis.validation.across import Across
    from hpcrowd.analysis.validation.models import UserModel
    from hpcrowd.analysis.validation.month import Judgement
    from hpcrowd.analysis.validation.validation import Protocol, Validation
    from hpcrowd.environment.jobs import JobTable
    from hpcrowd.environment.traces.trace import Trace


#: The setting of the protocol that is the number of draws of a month.
DRAWS = "month_draws"

#: In the place of origins: as many days between them as models foresee.
MONTHS = "months"

#: Where pauses in the simulated second part come from.
PAUSES = ("drawn", "recorded")


Traces = Annotated[
    list[Path],
    typer.Argument(
        metavar="TRACE...",
        help=f"{TRACE_HELP.removesuffix('.')}; several are also compared in one table.",
        callback=all_at_hand,
    ),
]

Users = Annotated[
    str | None,
    typer.Option(
        metavar="NAME[,NAME...]",
        help="Behaviours or TOML files; all presets unless given. With --month: users of a "
        "forecast and models of workloads; all unless given.",
    ),
]

Elsewhere = Annotated[
    bool,
    typer.Option(
        "--elsewhere",
        help="Also test the learned model fitted to the other traces: leave one log out.",
    ),
]

Origins = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE[,SHARE...]",
        help="Shares of the submissions that models are fitted to; 0.4 to 0.8 unless given. With "
        f"--month also {MONTHS}: one each --days, from a quarter of the time on.",
    ),
]

Days = Annotated[int | None, typer.Option(help="Days that models foresee; 28 unless given.")]

Scheduler = Annotated[
    str | None, typer.Option(help="Scheduling policy behind queues and waits; easy unless given.")
]

Pauses = Annotated[
    str,
    typer.Option(
        help="Pauses in the simulated days: drawn from before the origin; or recorded, which "
        "is circular for most models."
    ),
]

Seeds = Annotated[
    int | None,
    typer.Option(
        help=f"Simulations of each model from each origin, at most {MOST_RUNS:,}; 1 unless given, "
        "50 with --month."
    ),
]

Month = Annotated[
    bool,
    typer.Option(
        "--month",
        help="Judge by the days after each origin as a whole, foreseen from the record before it "
        "alone: jobs, load, users, rhythm and waits of many draws.",
    ),
]

Patience = Annotated[
    bool,
    typer.Option(
        "--patience",
        help="Judge fitted patience instead: how many jobs are given up in the queue in each week "
        "of the second half, and which, foreseen from the first.",
    ),
]


@reads_traces
def command(
    traces: Traces,
    how: Reading,
    users: Users = None,
    elsewhere: Elsewhere = False,
    origins: Origins = None,
    days: Days = None,
    scheduler: Scheduler = None,
    pauses: Pauses = "drawn",
    seeds: Seeds = None,
    month: Month = False,
    patience: Patience = False,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the results and a page.")] = None,
    as_json: AsJson = False,
) -> None:
    """Fit user models to what came before several origins, and test them on the days after.

    \b
    hpcrowd validate KTH-SP2-1996-2.1-cln.swf.gz --users learned,adjusted --out validation
    hpcrowd validate one.swf.gz other.swf.gz --users learned,linear --elsewhere
    hpcrowd validate KTH-SP2-1996-2.1-cln.swf.gz --month --users learned,lublin
    hpcrowd validate SDSC-DS-2004-2.1-cln.swf.gz --patience
    """
    from hpcrowd.agents.presets import PRESETS
    from hpcrowd.analysis.validation.validation import validate
    from hpcrowd.environment.clock import Clock
    from hpcrowd.environment.output.guard import check_replaceable

    if patience:
        _only_patience(users, elsewhere, origins, days, scheduler, seeds, month, out)
        return _judge_patience(traces, how, seed, as_json=as_json)
    check_choice("pauses", pauses, PAUSES)
    rules = _rules(origins, month, days=days, scheduler=scheduler,
                   **{DRAWS if month else "seeds": seeds})  # fmt: skip
    if month:
        if elsewhere or pauses != "drawn":
            raise QuantityError("elsewhere, pauses recorded: not with --month; leave them out")
        return judge_month(traces, how, users, rules, seed, out, as_json=as_json)
    models = models_of(PRESETS if users is None else users.split(","))
    if elsewhere and len(traces) == 1:
        raise QuantityError("elsewhere: there is one trace only; give others to fit the model to")
    if out is not None:
        check_replaceable(out)
    logs = _logs(traces, how)
    found: dict[str, Validation] = {}
    notes: dict[str, str] = {}
    with progress_bar() as progress:
        for name, log in logs.items():
            jobs, notes[name] = _jobs(log, rules.scheduler)
            others = [other for other in logs.values() if other is not log]
            tested = [*models, fitted_elsewhere(others, seed)] if elsewhere else models
            found[name] = validate(
                jobs, tested, Clock.of(log.header), rules,
                processors=log.processors, drawn=pauses == "drawn", seed=seed,
                progress=progress if len(traces) == 1 else partial(_labelled, progress, name),
            )  # fmt: skip
    return _finish(found, logs, notes, out, as_json=as_json)


def _finish(
    found: dict[str, Validation],
    logs: dict[str, Trace],
    notes: dict[str, str],
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    """Write the results of a validation, and print them."""
    from hpcrowd.analysis.validation.across import Across

    sources = {name: {"source": name, "sha256": log.sha256} for name, log in logs.items()}
    across = Across(found) if len(found) > 1 else None
    if out is not None:
        _write(found, sources, across, out)
    if as_json:
        print_json(_wire(found, sources, notes, across))
    else:
        show_all(found, notes, across)


def _jobs(log: Trace, scheduler: str) -> tuple[JobTable, str]:
    """Return the jobs of a log with waits, and a note on where these come from."""
    from hpcrowd.analysis.models.learned import with_waits
    from hpcrowd.environment.traces.trace import jobs_from_trace

    return with_waits(jobs_from_trace(log).jobs, log["wait"], log.processors, scheduler)


def judge_month(
    traces: Sequence[Path],
    how: dict[str, Any],
    users: str | None,
    rules: Protocol,
    seed: int,
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    """Judge models by the days after each origin as a whole."""
    from hpcrowd.analysis.validation import month_report as report
    from hpcrowd.analysis.validation.month import SOURCES, judge
    from hpcrowd.environment.clock import Clock
    from hpcrowd.environment.output.guard import check_replaceable

    names = SOURCES if users is None else tuple(map(str.strip, users.split(",")))
    if out is not None:
        check_replaceable(out)
    logs = _logs(traces, how)
    found: dict[str, Judgement] = {}
    notes: dict[str, str] = {}
    with progress_bar() as progress:
        for name, log in logs.items():
            jobs, notes[name] = _jobs(log, rules.scheduler)
            found[name] = judge(
                jobs, Clock.of(log.header), log.processors, rules, names, seed=seed,
                progress=partial(_labelled, progress, name),
            )  # fmt: skip
    sources = {name: {"source": name, "sha256": log.sha256} for name, log in logs.items()}
    if out is not None:
        report.write(found, out, sources)
        say_where(out)
    if as_json:
        wire = [
            {"trace": sources[name], "waits_note": notes[name], **report.plain(each)}
            for name, each in found.items()
        ]
        print_json(wire[0] if len(wire) == 1 else {"logs": wire})
        return
    for name, each in found.items():
        show_month(each, " ".join((name, notes[name])).strip())


def show_month(found: Judgement, title: str) -> None:
    """Print the tables of a judgement by the month."""
    from hpcrowd.analysis.validation import month_report as report

    console = standard_output()
    console.print(title, soft_wrap=True)
    for why in found.settings["left_out"]:
        console.print(f"  left out: {why}", soft_wrap=True, highlight=False)
    heads, ratios = report.headings(found), report.ratio_headings(found)
    for heading, columns, rows, words in (
        ("CRPS", heads, report.score_rows(found), 1),
        ("Covered by the 90 % interval", heads, report.coverage_rows(found), 1),
        ("Mean of the draws by the record", ratios, report.ratio_rows(found), 2),
        ("Account, means a day", report.ACCOUNT, report.account_rows(found), 1),
    ):
        console.print(plain_table(*columns, rows=rows, words=words, whole=words, title=heading))
        console.print()
    for line in (*report.chance_lines(found), report.NOTE):
        console.print(line, highlight=False)


def _only_patience(*given: object) -> None:
    """Check that no option is given that does not go with ``--patience``."""
    names = ("users", "elsewhere", "origins", "days", "scheduler", "seeds", "month", "out")
    wrong = [f"--{name}" for name, value in zip(names, given, strict=True) if value]
    if wrong:
        raise QuantityError(f"{', '.join(wrong)}: not with --patience; leave out")


def _judge_patience(
    traces: Sequence[Path], how: dict[str, Any], seed: int, *, as_json: bool
) -> None:
    """Judge fitted patience on the second half of each log."""
    from hpcrowd.analysis.patience.fit import Waits
    from hpcrowd.analysis.patience.judge import judge_patience

    found: dict[str, PatienceJudgement] = {}
    with progress_bar() as progress:
        for name, log in _logs(traces, how).items():
            found[name] = judge_patience(
                Waits.of(log), seed, partial(_patience_step, progress, name)
            )
    if as_json:
        print_json({name: each.to_json() for name, each in found.items()})
        return
    for name, each in found.items():
        show_patience(each, name)


def _patience_step(progress: Callable[..., Any], name: str, label: str, done: int) -> None:
    progress(f"{name}: {label}", done, 3)


def show_patience(found: PatienceJudgement, title: str) -> None:
    """Print how well models foresee who gives up."""
    from hpcrowd.environment.quantities import format_duration

    console = standard_output()
    foreseen, recorded = found.changed
    console.print(
        f"{title}: {found.given_up:,} of {plural(found.jobs, 'job')} given up in the second half, "
        f"{100 * recorded:.0f} % of them replaced (foreseen {100 * foreseen:.0f} %)",
        soft_wrap=True,
    )
    rows, gains = [], []
    for name, one in found.models.items():
        numbers = (
            f"{100 * found.error(name):.0f} %",
            f"{found.ratio(name):.2f}",
            f"{100 * found.held(name):.0f} %",
        )
        rows.append((name, *numbers, f"{one.concordance:.3f}", f"{one.likelihood:.2f}"))
        if one.gain:
            each = one.gain.values()
            shown = (f"{mean:.3f}, {low:.3f} to {high:.3f}" for mean, low, high in each)
            gains.append((name, *shown))
    scores = "concordance", "likelihood"
    console.print(plain_table("model", "error", "ratio", "held", *scores, rows=rows, whole=1))
    heading = "By how much fitted patience is better, with 95 % intervals"
    console.print(plain_table("than", *scores, rows=gains, whole=3, title=heading))
    fitted = found.models["fitted"]
    tenths = [
        (format_duration(int(wait)), f"{happened:,.0f}", f"{expected:,.0f}")
        for wait, happened, expected in zip(
            found.waits[1:], found.by_wait, fitted.by_wait, strict=True
        )
    ]
    console.print("Given up in tenths of the waits", style="bold")
    console.print(plain_table("wait up to", "recorded", "fitted", rows=tenths))
    console.print(
        f"error: of jobs given up in a week, median over {len(found.weeks)} weeks; ratio: expected "
        "by recorded; held: weeks in their 90 % interval; concordance: of risks, at the wait of "
        "each job given up; likelihood: log, for each job given up.",
        soft_wrap=True,
        highlight=False,
    )


def _rules(origins: str | None, month: bool, **given: Any) -> Protocol:
    """Return the usual protocol with what is given; origins may be a month apart."""
    from hpcrowd.analysis.validation.validation import protocol
    from hpcrowd.environment.schedulers.names import parse_scheduler

    apart = month and origins == MONTHS
    if origins is not None and not apart:
        given["origins"] = parse_shares(origins)
    rules = replace(
        protocol(), **{name: value for name, value in given.items() if value is not None}
    )
    if apart:
        rules = replace(rules, apart=rules.days)
    parse_scheduler(rules.scheduler)
    return rules


def _logs(traces: Sequence[Path], how: dict[str, Any]) -> dict[str, Trace]:
    """Return the traces by name."""
    from hpcrowd.environment.traces.formats.registry import read_trace

    logs = [read_trace(path, options=reading_options(**how)) for path in traces]
    titles = [Path(log.source).name for log in logs]
    if len(set(titles)) < len(traces):
        raise QuantityError(f"traces {', '.join(titles)}: give each once")
    return dict(zip(titles, logs, strict=True))


def _write(
    found: dict[str, Validation],
    sources: dict[str, dict[str, Any]],
    across: Across | None,
    out: Path,
) -> None:
    """Write the results to a folder."""
    from hpcrowd.analysis.validation.report import write, write_across

    if across is None:
        (name,) = found
        write(found[name], out, name, sources[name])
    else:
        write_across(across, out, sources)
    say_where(out)


def _wire(
    found: dict[str, Validation],
    sources: dict[str, dict[str, Any]],
    notes: dict[str, str],
    across: Across | None,
) -> dict[str, Any]:
    """Return the results of all logs, fit for JSON."""
    from hpcrowd.analysis.validation.across import plain_across
    from hpcrowd.analysis.validation.report import plain

    logs = [
        {"trace": sources[name], "waits_note": notes[name], **plain(each)}
        for name, each in found.items()
    ]
    return logs[0] if across is None else {"logs": logs, **plain_across(across)}


def _labelled(progress: Callable[..., Any], name: str, label: str, done: int, total: int) -> None:
    progress(f"{name}: {label}", done, total)


def fitted_elsewhere(others: Sequence[Trace], seed: int) -> UserModel:
    """Return the learned model, fitted to other traces."""
    from hpcrowd.agents.presets import PRESETS, Recipe
    from hpcrowd.analysis.models.learned import SEVERAL, fit_traces
    from hpcrowd.analysis.validation.models import ELSEWHERE, UserModel

    recipe = PRESETS["learned"]
    assert isinstance(recipe, Recipe)
    return UserModel(ELSEWHERE, recipe, elsewhere=fit_traces(others, SEVERAL, seed=seed))


def parse_shares(text: str) -> tuple[float, ...]:
    """Return shares of a trace, ascending, from text such as ``0.4,0.6``."""
    try:
        return tuple(sorted(float(part) for part in text.split(",")))
    except ValueError:
        raise QuantityError(
            f"origins {text!r}: shares of the submissions, between 0 and 1, such as 0.4,0.6; "
            f"with --month also {MONTHS}"
        ) from None


def show_all(found: dict[str, Validation], notes: dict[str, str], across: Across | None) -> None:
    """Print the tables of all logs, with a note for each that needs one."""
    from hpcrowd.analysis.validation.report import headline

    console = standard_output()
    for name, each in found.items():
        for line in [name, *([notes[name]] if notes[name] else []), *headline(each)]:
            console.print(line, soft_wrap=True)
        show(each, console)
    if across is not None:
        show_across(across, console)


def show(found: Validation, console: Console) -> None:
    """Print the tables."""
    from hpcrowd.analysis.validation.report import TABLES, TITLES, notes, score_rows

    for place, (title, measures) in enumerate(TABLES.items()):
        digits, more = 3, ("simulated jobs", "mean rank") if place == 0 else ()
        headings = ("model", *(TITLES[measure] for measure in measures), *more)
        table = plain_table(*headings, whole=len(headings), title=title)
        for name, *cells in score_rows(found, measures, digits, intervals=False):
            shown = cells[: len(headings) - 1]
            if any(shown):
                table.add_row(name, *shown, style="" if name in found.scores else "dim")
        console.print(table)
        console.print()
    for line in notes(found):
        console.print(line, highlight=False)


def show_across(found: Across, console: Console) -> None:
    """Print the table over all logs."""
    from hpcrowd.analysis.validation.across import RANK_HEADING, rank_rows
    from hpcrowd.analysis.validation.report import ACROSS_NOTE, TITLES

    headings = (*RANK_HEADING, *TITLES.values())
    title = f"All {len(found.logs)} logs: mean ranks, and claims against all other models"
    rows = rank_rows(found)
    console.print(plain_table(*headings, rows=rows, whole=len(RANK_HEADING), title=title))
    console.print(ACROSS_NOTE, highlight=False)


def models_of(users: Iterable[str]) -> list[UserModel]:
    """Return the models by names of presets and TOML files, each named once."""
    from hpcrowd.agents.presets import PRESETS
    from hpcrowd.analysis.validation.models import BASELINES, UserModel
    from hpcrowd.scenarios.kinds.population_files import PopulationConfig

    models: list[UserModel] = []
    for name in map(str.strip, users):
        if name.endswith(".toml"):
            population = PopulationConfig.read(name)
            models.append(UserModel(population.name, population.mixture()))
        elif name in PRESETS or name in BASELINES:
            models.append(UserModel.of(name))
        else:
            raise QuantityError(f"users {name!r}: {not_one_of(name, PRESETS)}, or a TOML file")
        if models[-1].name in [model.name for model in models[:-1]]:
            raise QuantityError(f"users {models[-1].name!r}: named twice; remove one")
    return models
