"""The command ``hpcrowd grid``: several clusters and a broker."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hpcrowd.scenarios.commands.options import (
    AsJson,
    LogDecisions,
    ResultsFolder,
    carry_out,
    takes_settings,
)
from hpcrowd.scenarios.kinds.grids.grid import GridConfig, read_grid


@takes_settings(
    GridConfig, only=("broker", "grid_share", "components", "users", "platform", "seed")
)
def command(
    source: Annotated[
        str, typer.Argument(metavar="FILE.toml|NAME", help="Your own grid, or das3.")
    ],
    settings: dict[str, Any],
    out: ResultsFolder = None,
    log_decisions: LogDecisions = False,
    as_json: AsJson = False,
) -> None:
    """Simulate several clusters as a grid, with local users and users of the grid.

    \b
    hpcrowd grid das3
    hpcrowd grid das3 --broker fastest-completion --grid-share 0.2
    hpcrowd grid das3 --components 114
    hpcrowd grid mine.toml --platform bad-week.toml --out results
    """
    config = read_grid(source, **settings)
    carry_out(config, config.prepare, out=out, log_decisions=log_decisions, as_json=as_json)
