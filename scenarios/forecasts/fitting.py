"""``--scheduler fitted`` of a replay: the fit, with its progress, and what it found."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hpcrowd.environment.clock import Clock
from hpcrowd.environment.schedulers.names import parse_scheduler
from hpcrowd.environment.state.fitted import FITTING, Fitted
from hpcrowd.scenarios.kinds.replay import ReplayConfig, prepare
from hpcrowd.scenarios.terminal import progress_bar, say

if TYPE_CHECKING:
    from hpcrowd.environment.traces.trace import Trace


def with_found(config: ReplayConfig, trace: Trace) -> ReplayConfig:
    """Return the configuration of a replay with the scheduler that its trace shows.

    What was found is printed; the run can be repeated with it, without the fit.

    Raises
    ------
    QuantityError
        If the trace has no waits, or is too short.
    """
    fitted = parse_scheduler(str(config.scheduler))
    if not isinstance(fitted, Fitted):
        return config
    jobs = prepare(trace, config).record.jobs
    with progress_bar() as progress:
        found = fitted.fit_to(
            jobs, Clock.of(trace.header), config.size(trace), partial(progress, FITTING)
        )
    for line in found.lines():
        say(line)
    return config.model_copy(update={"scheduler": found.text})
