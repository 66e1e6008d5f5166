"""The command ``hpcrowd run``: one scenario from a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcrowd.scenarios.commands.options import (
    AsJson,
    LogDecisions,
)
from hpcrowd.scenarios.commands.summary import keep_run, tell_run
from hpcrowd.scenarios.kinds.files import read_scenario, scenario_toml
from hpcrowd.scenarios.terminal import say_if_compiling, simulation_progress

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.decisions import DecisionLog


def run_command(
    path: Path,
    *,
    out: Path | None,
    show: bool,
    as_json: bool,
    log: DecisionLog | None = None,
) -> None:
    """Run the scenario in a TOML file; print a summary, write results if asked for.

    Parameters
    ----------
    path
        The file.
    out
        Folder for results.
    show
        Only print the completed configuration, as TOML.
    as_json
        Print the summary as one JSON object.
    log
        Where users note what they decide.
    """
    scenario = read_scenario(path)
    if show:
        sys.stdout.write(scenario_toml(scenario))
        return
    from hpcrowd.analysis.results import check_replaceable

    if out is not None:
        check_replaceable(out)
    prepared = scenario.prepare()
    say_if_compiling()
    with simulation_progress(1) as progress:
        run = scenario.run(prepared, progress, log)
    keep_run(run, out)
    tell_run(run, as_json=as_json)


def command(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="TOML file with a [scenario].")],
    out: Annotated[Path | None, typer.Option(help="Folder for the results.")] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the completed configuration as TOML, and end.")
    ] = False,
    log_decisions: LogDecisions = False,
    as_json: AsJson = False,
) -> None:
    """Run the scenario in a TOML file once.

    \b
    hpcrowd run upgrade.toml --out runs/upgrade
    hpcrowd run upgrade.toml --show
    """
    from hpcrowd.scenarios.commands.options import log_for

    log = log_for(log_decisions, out)
    run_command(path, out=out, show=show, as_json=as_json, log=log)
