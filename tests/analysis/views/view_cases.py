"""Runs for the tests of views: paused at a moment, and finished and played back to it."""

import numpy as np
import pandas as pd
from hpcrowd import Simulation, Work, add_users
from hpcrowd.agents.behaviours.decisions import Decisions
from hpcrowd.analysis.accounts.decisions import LoggedDecisions
from hpcrowd.analysis.parts import RunParts
from hpcrowd.analysis.run import Precedence, Run
from hpcrowd.environment.clock import HOUR
from hpcrowd.scenarios.kinds.replay import units_waited_for
from hpcrowd.views import Moment
from hypothesis import strategies as st

#: Rows of jobs of three users: submission, run time, processors, request, user.
SOME_JOBS = st.lists(
    st.tuples(
        st.integers(0, 6 * HOUR), st.integers(0, 3 * HOUR), st.integers(1, 5), st.integers(1, 3)
    ).map(lambda job: (*job[:3], job[1] + 1, job[3])),
    min_size=1,
    max_size=14,
).map(sorted)


def began(jobs, processors, users, log, scheduler="easy", clock=None):
    """Return work, model and users of a run that has not begun."""
    work = Work.of(jobs.copy())
    model = Simulation(work.jobs, processors, scheduler, clock=clock)
    return work, model, add_users(model, work, users, log=log)


def paused(jobs, processors, users="think-time", *, until, log=None, **how):
    """A run of some jobs, by default under EASY with users who think, as it is at ``until``."""
    work, model, agents = began(jobs, processors, users, log, **how)
    model.run(until=until)
    return Moment.of_model(model, label="run", work=work, users=agents, decisions=log)


def finished(jobs, processors, users="think-time", *, log=None, **how):
    """The same run when it has ended."""
    work, model, agents = began(jobs, processors, users, log, **how)
    model.run()
    return Run(
        jobs=work.jobs, processors=processors, label="run", configuration={}, clock=model.clock,
        work=work, precedence=Precedence(waits=units_waited_for(work, agents)),
        parts=RunParts(None if log is None else LoggedDecisions(rows=Decisions.of(log))),
    )  # fmt: skip


def assert_same(view, live, back, *more):
    """Check that a view of a live run is that of the finished one played back."""
    here, there = view(live, *more), view(back, *more)
    if isinstance(here, pd.DataFrame):
        pd.testing.assert_frame_equal(here, there)
    elif isinstance(here, np.ndarray):
        np.testing.assert_array_equal(here, there)
    else:
        assert here == there, view
