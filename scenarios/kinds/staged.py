"""A simulation with its users on it before it begins, and the run that becomes of it.

Each kind of run has a function that stages it: :func:`hpcrowd.scenarios.kinds.replay.stage_replay`,
:func:`scenarios.kinds.resample.stage_resample`, :func:`scenarios.kinds.populate.stage_populate` and
:func:`stage_grid`. :meth:`run` runs it to its end; whoever wants to look on
runs ``staged.model`` piece by piece and asks for :meth:`Staged.result` when it is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.decisions import DecisionLog
    from hpcrowd.agents.behaviours.user import User
    from hpcrowd.agents.work.recorded import Work
    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.simulation import Simulation


@dataclass
class Staged:
    """A simulation that is ready to begin.

    Attributes
    ----------
    model
        The simulation.
    users
        Its users, agents of ``model``; more may come while it runs.
    finish
        Makes a run of what has happened so far.
    work
        The recorded sessions of those who replay; None where nobody does.
    log
        Where users note what they decide; None for nowhere.
    prepare_s
        Seconds that staging took.
    """

    model: Simulation
    users: Sequence[User]
    finish: Callable[[], Run]
    work: Work | None = None
    log: DecisionLog | None = None
    prepare_s: float = 0.0

    def run(self, progress: Callable[[Simulation], Any] | None = None) -> Run:
        """Run to the end and return what came out.

        Parameters
        ----------
        progress
            Called now and then with the simulation.
        """
        began = time.perf_counter()
        self.model.run(progress=progress)
        simulate_s = time.perf_counter() - began
        run = self.result()
        run.wall_s["simulate"] = round(simulate_s, 3)
        return run

    def result(self) -> Run:
        """Return a run of what has happened so far."""
        from hpcrowd.agents.behaviours.decisions import Decisions

        run = self.finish()
        run.decisions = None if self.log is None else Decisions.of(self.log)
        run.wall_s["prepare"] = round(self.prepare_s, 3)
        return run
