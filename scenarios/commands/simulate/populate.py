"""The command ``hpcrowd populate``: users made from a workload model."""

from __future__ import annotations

from typing import Any

from hpcrowd.scenarios.commands.options import (
    AsJson,
    LogDecisions,
    ModelSource,
    ResultsFolder,
    carry_out,
    takes_settings,
)
from hpcrowd.scenarios.kinds.populations.populate import PopulateConfig


@takes_settings(PopulateConfig)
def command(
    source: ModelSource,
    settings: dict[str, Any],
    out: ResultsFolder = None,
    log_decisions: LogDecisions = False,
    as_json: AsJson = False,
) -> None:
    """Simulate users generated from a workload model.

    \b
    hpcrowd populate M.json --days 28 --processors 2x
    """
    config = PopulateConfig.configure(model=source, **settings)
    carry_out(config, config.prepare, out=out, log_decisions=log_decisions, as_json=as_json)
