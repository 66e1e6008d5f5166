"""The command ``hpcrowd run``: one scenario from a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from hpcrowd.scenarios.commands.options import AsJson, LogDecisions, ResultsFolder, carry_out
from hpcrowd.scenarios.kinds.files import read_scenario, scenario_toml


def command(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="TOML file of a scenario.")],
    out: ResultsFolder = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the completed configuration as TOML, and exit.")
    ] = False,
    log_decisions: LogDecisions = False,
    as_json: AsJson = False,
) -> None:
    """Run one scenario from a TOML file.

    \b
    hpcrowd run upgrade.toml --out runs/upgrade
    hpcrowd run upgrade.toml --show
    """
    scenario = read_scenario(path)
    if show:
        sys.stdout.write(scenario_toml(scenario))
        return
    carry_out(scenario, scenario.prepare, out=out, log_decisions=log_decisions, as_json=as_json)
