"""The command ``hpcrowd grid``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.decisions import DecisionLog


def grid_command(
    source: str,
    *,
    broker: str | None,
    share: float | None,
    components: int | None,
    users: str | None,
    seed: int | None,
    out: Path | None,
    as_json: bool,
    log: DecisionLog | None = None,
) -> None:
    """Run a grid, print a summary, and write results if asked for.

    Parameters
    ----------
    source
        TOML file of the grid, or the name of one that is there.
    broker, components, users, seed
        Take the place of what the file says, unless None.
    share
        Takes the place of ``grid_share`` of every cluster.
    out
        Folder for results.
    as_json
        Print the summary as one JSON object.
    log
        Where users note what they decide.
    """
    from hpcrowd.analysis.results import check_replaceable
    from hpcrowd.scenarios.commands.summary import keep_run, tell_run
    from hpcrowd.scenarios.kinds.grid import read_grid, with_share
    from hpcrowd.scenarios.terminal import say_if_compiling, simulation_progress

    if out is not None:
        check_replaceable(out)
    given = {"broker": broker, "components": components, "users": users, "seed": seed}
    config = read_grid(
        source, **{name: value for name, value in given.items() if value is not None}
    )
    if share is not None:
        config = with_share(config, share)
    say_if_compiling(len(config.clusters) + 1)
    from hpcrowd.scenarios.kinds.grid import run_grid

    with simulation_progress(1) as progress:
        run = run_grid(config, progress=progress, log=log)
    keep_run(run, out)
    tell_run(run, as_json=as_json)
