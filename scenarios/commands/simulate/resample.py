"""The command ``hpcrowd resample``: a population drawn from the users of a trace."""

from __future__ import annotations

from typing import Any

from hpcrowd.scenarios.commands.options import (
    AsJson,
    LogDecisions,
    RunFolder,
    TracePath,
    carry_out,
    takes_settings,
)
from hpcrowd.scenarios.kinds.populations.resample import ResampleConfig


@takes_settings(ResampleConfig)
def command(
    trace: TracePath,
    settings: dict[str, Any],
    out: RunFolder = None,
    log_decisions: LogDecisions = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a population drawn from the users of a trace, larger or smaller.

    Long-term users start at a random week of their record; temporary users arrive over time.
    Weekday and hour of their submissions stay. The number of users sets the load.

    \b
    hpcrowd resample log.swf.gz --population 1.5x
    hpcrowd resample log.swf.gz --speed 2x --satisfaction habit --seed 1 --out runs/faster-1
    hpcrowd resample log.swf.gz --users rigid --scheduler recorded --out draw
    """
    config = ResampleConfig.configure(**settings)
    carry_out(
        config, lambda: config.read(trace), out=out, log_decisions=log_decisions, as_json=as_json
    )
