"""The record is a fixed point of every behaviour that promises it, on every real log."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hpcrowd.environment import State, Trace
from hpcrowd.scenarios import replay

pytestmark = [pytest.mark.traces, pytest.mark.slow]

LOGS = [
    "CEA-Curie-2011-2.1-cln",
    "DAS2-fs1-2003-1",
    "HPC2N-2002-2.1-cln",
    "HPC2N-2002-2.2-cln",
    "KTH-SP2-1996-2.1-cln",
    "LANL-CM5-1994-4.1-cln",
    "LCG-2005-1",
    "LLNL-Thunder-2007-1.1-cln",
    "NASA-iPSC-1993-3.1-cln",
    "SDSC-DS-2004-2.1-cln",
]


@pytest.mark.parametrize("log", LOGS)
def test_record_is_a_fixed_point(read_trace: Callable[[str], Trace], log: str) -> None:
    """With recorded waits and run times, users submit every job at its recorded second.

    Users with recorded pauses, with fitted windows or without; nobody is late by a second. Where a
    log has no waits, jobs were recorded as if there had been none.
    """
    trace = read_trace(log)
    for users in ("adjusted", "think-time", "think-time-windows"):
        jobs = replay(trace, users=users, scheduler="recorded").jobs
        assert 0 == np.count_nonzero(jobs.submit != jobs.recorded_submit), users
        assert 0 == np.count_nonzero(jobs.start != jobs.recorded_start), users
        assert len(jobs) == jobs.count(State.COMPLETED), users


@pytest.mark.parametrize("sessions", ["arrival:job", "last:20m", "max:20m", "last:20m+cut:1h"])
def test_record_is_a_fixed_point_however_sessions_are_cut(kth: Trace, sessions: str) -> None:
    """The same on KTH-SP2 with other sessions."""
    for users in ("adjusted", "think-time-windows"):
        jobs = replay(kth, users=users, scheduler="recorded", sessions=sessions).jobs
        assert 0 == np.count_nonzero(jobs.submit != jobs.recorded_submit), users
