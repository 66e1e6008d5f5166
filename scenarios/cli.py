"""The command line. Each command loads what it needs when it runs, so that help comes at once.

Exit codes: 0 all went well; 1 a published figure was not reached, or runs of a sweep failed; 2 the
request or its input is wrong, told in one line; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.scenarios.commands.cli_clean import clean_app
from hpcrowd.scenarios.commands.cli_convert import convert_app
from hpcrowd.scenarios.commands.cli_explain import explain_app
from hpcrowd.scenarios.commands.cli_fetch import fetch_app
from hpcrowd.scenarios.commands.cli_grid import grid_app
from hpcrowd.scenarios.commands.cli_inspect import inspect_app
from hpcrowd.scenarios.commands.cli_models import models_app
from hpcrowd.scenarios.commands.cli_populations import populations_app
from hpcrowd.scenarios.commands.cli_report import report_app
from hpcrowd.scenarios.commands.cli_sweep import sweep_app
from hpcrowd.scenarios.commands.options import AsJson, LogDecisions, TracePath, all_at_hand
from hpcrowd.scenarios.commands.reproduce import command as reproduce
from hpcrowd.scenarios.kinds.replay import ReplayConfig

app = typer.Typer(
    name="hpcrowd",
    help="Simulate the people who use a batch-scheduled cluster.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(reproduce, name="reproduce")
app.add_typer(convert_app)
app.add_typer(clean_app)
app.add_typer(explain_app)
app.add_typer(fetch_app)
app.add_typer(models_app)
app.add_typer(grid_app)
app.add_typer(inspect_app)
app.add_typer(populations_app)
app.add_typer(report_app)
app.add_typer(sweep_app)

#: Exit code of a command that Ctrl-C ended, as shells have it.
INTERRUPTED = 130


def _field(name: str) -> Any:
    """Return the command-line option of a field of the configuration."""
    return typer.Option(f"--{name}", help=f"{ReplayConfig.model_fields[name].description}.")


def _default(name: str) -> Any:
    return ReplayConfig.model_fields[name].default


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("hpcrowd-demo"),
    days: Annotated[int, typer.Option(min=1, help="Days that the users work.")] = 28,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Let a small built-in population work for a month, with and without feedback."""
    from hpcrowd.scenarios.demo import demo_command

    demo_command(out, days=days, seed=seed, as_json=as_json)


@app.command()
def replay(
    trace: TracePath,
    users: Annotated[str, _field("users")] = _default("users"),
    sessions: Annotated[str, _field("sessions")] = _default("sessions"),
    scheduler: Annotated[str, _field("scheduler")] = _default("scheduler"),
    estimates: Annotated[str, _field("estimates")] = _default("estimates"),
    nodes: Annotated[str, _field("nodes")] = _default("nodes"),
    speed: Annotated[str, _field("speed")] = _default("speed"),
    requested: Annotated[str, _field("requested")] = _default("requested"),
    processors: Annotated[str, _field("processors")] = _default("processors"),
    overrun: Annotated[str, _field("overrun")] = _default("overrun"),
    platform: Annotated[str | None, _field("platform")] = None,
    seed: Annotated[int, _field("seed")] = _default("seed"),
    strict: Annotated[bool, _field("strict")] = _default("strict"),
    out: Annotated[
        Path | None, typer.Option(help="Folder for tables, trace, pictures and provenance.")
    ] = None,
    gantt: Annotated[
        Path | None, typer.Option(help="File for a Gantt picture: .png, .svg or .pdf.")
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(
            metavar="FROM..TO", help="What the Gantt picture shows; the busiest day unless given."
        ),
    ] = None,
    log_decisions: LogDecisions = False,
    as_json: AsJson = False,
) -> None:
    """Replay a trace once, with users who react to what the cluster does to them."""
    from hpcrowd.scenarios.commands.explain import log_for
    from hpcrowd.scenarios.commands.gantt_option import GanttOption
    from hpcrowd.scenarios.commands.replay import replay_command
    from hpcrowd.scenarios.kinds.replay import configure

    config = configure(
        users=users,
        sessions=sessions,
        scheduler=scheduler,
        estimates=estimates,
        nodes=nodes,
        speed=speed,
        requested=requested,
        processors=processors,
        overrun=overrun,
        platform=platform,
        seed=seed,
        strict=strict,
    )
    picture = GanttOption.of(gantt, window)
    log = log_for(log_decisions, out)
    replay_command(trace, config, out=out, as_json=as_json, picture=picture, log=log)


@app.command()
def sessions(
    trace: TracePath,
    definition: Annotated[str, _field("sessions")] = _default("sessions"),
    user: Annotated[int | None, typer.Option(help="Only this user.")] = None,
    dot: Annotated[
        Path | None, typer.Option(help="Write the graph of --user for Graphviz; - is stdout.")
    ] = None,
    png: Annotated[Path | None, typer.Option(help="Draw the graph of --user.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the sessions, batches and dependency graphs of a trace."""
    from hpcrowd.scenarios.commands.sessions import sessions_command

    sessions_command(trace, definition, user=user, dot=dot, png=png, as_json=as_json)


@app.command()
def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN", help="Folders of results, or recorded traces.", callback=all_at_hand
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Folder for the tables and pictures.")] = None,
    as_json: AsJson = False,
) -> None:
    """Set two or more runs side by side: metrics, users one by one.

    The others are set against the first. Runs that differ only in their seed become one line with a
    confidence interval. hpcrowd report writes the same as a page.

    \b
    hpcrowd compare runs/rigid runs/fluid
    hpcrowd compare runs/adjusted-* runs/fluid-* --out comparison
    hpcrowd compare log.swf.gz runs/fluid --json
    """
    from hpcrowd.scenarios.commands.compare import compare_command

    compare_command(runs, out=out, as_json=as_json)


@app.command()
def stats(
    traces: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="TRACE",
            help="Traces, or folders of results.",
            show_default=False,
            callback=all_at_hand,
        ),
    ] = None,
    jobs: Annotated[
        Literal["completed", "all"],
        typer.Option(help="Jobs that count: those that completed (status 1), or all that ran."),
    ] = "completed",
    time_scale: Annotated[
        str, typer.Option(help="Interval that arrivals are counted in, for long range dependence.")
    ] = "15m",
    bag_gap: Annotated[
        str, typer.Option(help="Longest time between two jobs of a bag of tasks.")
    ] = "100s",
    session_gap: Annotated[
        str, typer.Option(help="Longest time between two submissions of a session.")
    ] = "60m",
    distance: Annotated[
        bool, typer.Option("--distance", help="How alike two traces are, against the first.")
    ] = False,
    html: Annotated[Path | None, typer.Option(help="File for a report with pictures.")] = None,
    list_all: Annotated[
        bool, typer.Option("--list", help="List all features with definition and source, and end.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Tell what workloads are like: arrivals, jobs, bags of tasks, users; side by side.

    \b
    hpcrowd stats log.swf.gz
    hpcrowd stats log.swf.gz runs/fluid --html report.html
    hpcrowd stats log.swf.gz synthetic.swf.gz --distance
    """
    from hpcrowd.scenarios.commands.stats import list_command, stats_command

    if list_all:
        list_command(as_json=as_json)
        return
    from hpcrowd.environment.quantities import parse_duration

    stats_command(
        traces or [],
        which=jobs,
        time_scale_s=parse_duration(time_scale),
        bag_gap_s=parse_duration(bag_gap),
        session_gap_s=parse_duration(session_gap),
        distance=distance,
        html=html,
        as_json=as_json,
    )


@app.command()
def behaviours(as_json: AsJson = False) -> None:
    """List the behaviours that users may have, and the parts that each is made of."""
    from hpcrowd.scenarios.commands.behaviours import behaviours_command

    behaviours_command(as_json=as_json)


@app.command()
def policies(
    name: Annotated[str | None, typer.Argument(help="A policy whose options to tell.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the policies of schedulers, or the options of one."""
    from hpcrowd.scenarios.commands.policies import policies_command

    policies_command(name, as_json=as_json)


@app.command()
def validate(
    trace: TracePath,
    users: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,NAME...]", help="Behaviours, or TOML files; all presets unless given."
        ),
    ] = None,
    split: Annotated[float, typer.Option(help="Share of submissions in the first part.")] = 0.5,
    scheduler: Annotated[
        str, typer.Option(help="Who decides about waits in the second part: recorded, easy, fcfs.")
    ] = "recorded",
    pauses: Annotated[
        str,
        typer.Option(
            help="Pauses in the simulated second part: drawn from the first part; or recorded, "
            "which is circular for most models."
        ),
    ] = "drawn",
    seeds: Annotated[int, typer.Option(help="Simulations of each model.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for data, table, picture and a page.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit user models to the first part of a trace, and test them on the second."""
    from hpcrowd.scenarios.commands.validate import configure_validation, validate_command

    config = configure_validation(
        users, split=split, scheduler=scheduler, pauses=pauses, seeds=seeds, seed=seed
    )
    validate_command(trace, config, out=out, as_json=as_json)


@app.command()
def predict(
    trace: TracePath,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="last-two, nearest, history:SDSC04 (published parameters), history (with --train) "
            "or a FILE.json; give it several times to compare. last-two and nearest unless given.",
        ),
    ] = None,
    history: Annotated[
        str | None,
        typer.Option(help="Which jobs are the last N: submission, completion, category."),
    ] = None,
    split: Annotated[
        str, typer.Option(help="Jobs that train: a number, a share such as 0.5, or auto.")
    ] = "auto",
    years: Annotated[
        str | None, typer.Option(help="Only these calendar years: 2004, or 2005-2006.")
    ] = None,
    train: Annotated[
        bool, typer.Option("--train", help="Train the model history on the first part.")
    ] = False,
    budget: Annotated[str, typer.Option(help="How long to train.")] = "2m",
    evaluations: Annotated[
        int | None,
        typer.Option(
            min=1, help="Train with so many evaluations of each seed instead; repeatable."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Searches; the best counts.")] = 4,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first search.")] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="File for the trained model.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Predict the run times of a trace from its past, and say how well.

    Only jobs of status 1 are predicted, each at its submission, from those that had ended by then.

    \b
    hpcrowd predict log.swf.gz
    hpcrowd predict log.swf.gz --model history --train --out model.json
    hpcrowd predict log.swf.gz --model last-two --model model.json --json
    """
    from hpcrowd.scenarios.commands.predict import predict_command

    predict_command(
        trace,
        model or (),
        history=history,
        split=split,
        years=years,
        train=train,
        budget=budget,
        evaluations=evaluations,
        seeds=seeds,
        seed=seed,
        out=out,
        as_json=as_json,
    )


@app.command()
def version() -> None:
    """Print the version."""
    from hpcrowd import __version__

    typer.echo(f"hpcrowd {__version__}")


def main() -> None:
    """Run the command line; what goes wrong is told in one line."""
    try:
        app(standalone_mode=True)
    except HpcrowdError as error:
        _fail(f"hpcrowd: {error}", getattr(error, "exit_code", 2))
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            _fail("hpcrowd: interrupted; nothing was written", INTERRUPTED)
        raise
    except KeyboardInterrupt:
        _fail("hpcrowd: interrupted; nothing was written", INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone, as in "| head": not our problem.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def _fail(line: str, code: int) -> None:
    print(" ".join(line.split()), file=sys.stderr)
    sys.exit(code)
