"""The command ``hpcrowd what-if``: a change of the cluster, and who gains by it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcrowd.scenarios.commands.options import AsJson, ResultsFolder, TracePath, takes_settings
from hpcrowd.scenarios.kinds.replay import ReplayConfig
from hpcrowd.scenarios.outputs import check_folder
from hpcrowd.scenarios.terminal import print_json, progress_bar, say_where, standard_output, status

if TYPE_CHECKING:
    from hpcrowd.scenarios.whatif.change import WhatIf


@takes_settings(ReplayConfig)
def command(
    trace: TracePath,
    change: Annotated[
        list[str],
        typer.Argument(
            metavar="SETTING=VALUE",
            help="What changes: any setting of a replay, such as processors=+20%, scheduler=sjf, "
            "machine=FILE; users=NAME are those who react.",
        ),
    ],
    settings: dict[str, Any],
    out: ResultsFolder = None,
    as_json: AsJson = False,
) -> None:
    """Ask what a change of the cluster does to its users.

    The log is replayed without and with the change, by users who submit as recorded (rigid) and by
    users who react. Options are settings that both have in common.

    \b
    hpcrowd what-if log.swf.gz processors=+20%
    hpcrowd what-if log.swf.gz scheduler=fair-share users=learned
    hpcrowd what-if log.swf.gz speed=0.5x --requested at-least:2x --out answer
    """
    from hpcrowd.scenarios.whatif.change import what_if

    if out is not None:
        check_folder(out, [trace])
    status.doing("simulating")
    with progress_bar() as progress:
        found = what_if(trace, change, progress=progress, **settings)
        if out is not None:
            progress("writing", 1, 1)
            _write(found, out)
    if out is not None:
        say_where(out)
    if as_json:
        print_json(found.to_json())
        return
    found.show(standard_output())


def _write(found: WhatIf, out: Path) -> None:
    """Write the runs, each in a folder of its own, and the answer."""
    from hpcrowd.analysis.results import write_json, write_results
    from hpcrowd.environment.output.whole import whole_folder

    with whole_folder(out) as place:
        for when, runs in (("before", found.before), ("after", found.after)):
            for users, run in runs.items():
                name = "rigid" if users == "rigid" else "users"
                write_results(run, place / f"{name}-{when}")
        write_json(found.to_json(), place / "what-if.json")
