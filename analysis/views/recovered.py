"""The work behind a run that was read back: a folder of results holds the jobs, not what waited.

The sessions of a replay are found again in the recorded times of its jobs, as they were when it
ran; with them a run from a folder can be played back like one that has just ended.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hpcrowd.agents.presets import PRESETS, Recipe
from hpcrowd.agents.work.recorded import Work
from hpcrowd.agents.work.sessions import SessionDefinition
from hpcrowd.analysis.run import Run
from hpcrowd.environment.jobs import UNKNOWN


def recover_work(run: Run) -> Run:
    """Return a run with the recorded work of its users, if it is a replay that lacks it.

    Nothing is added where that cannot be known from the folder: where users make up their work,
    where several behaviours are mixed, and where single jobs follow each other (``preceding``).

    Parameters
    ----------
    run
        The run; the sessions and batches in its table are found anew, and stay the same.
    """
    told = run.configuration
    recipe = PRESETS.get(told["users"]) if isinstance(told.get("users"), str) else None
    if run.work is not None or told.get("kind") != "replay" or not isinstance(recipe, Recipe):
        return run
    definition = SessionDefinition.parse(str(told.get("sessions", SessionDefinition())))
    if definition.kind == "preceding" or (run.jobs.recorded_submit == UNKNOWN).any():
        return run
    work = Work.of(run.jobs, definition)
    if recipe.when == "recorded":
        return replace(run, work=work)
    units = work.by_batch if recipe.when == "batches" else work.by_session
    return replace(run, work=work, waits=[(units, np.ones(len(units), bool))])
