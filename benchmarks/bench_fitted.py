"""Schedulers fitted to logs: how near starts come at later moments, and what a fit takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcrowd import Clock, read_swf
from hpcrowd.analysis.forecast.judge import Subject
from hpcrowd.environment.state.moments import Score, moments_of
from hpcrowd.environment.state.site_fit import fit_site
from hpcrowd.environment.state.state import ClusterState
from hpcrowd.scenarios.forecasts.inputs import known_jobs

#: Logs with recorded waits.
LOGS = (
    "KTH-SP2-1996-2.1-cln", "LANL-CM5-1994-4.1-cln", "HPC2N-2002-2.2-cln", "SDSC-DS-2004-2.1-cln",
    "DAS2-fs1-2003-1", "CEA-Curie-2011-2.1-cln",
)  # fmt: skip

#: Moments after those of the fit.
LATER = 60


@pytest.mark.parametrize("log", LOGS)
def bench_fitted(trace_path: Callable[[str], Path], figure: Callable[..., None], log: str) -> None:
    """Fit to the first half of a log, and try what was found in the second."""
    trace = read_swf(trace_path(log))
    jobs, clock = known_jobs(trace), Clock.of(trace.header)
    middle = int(np.median(jobs.recorded_submit))
    before = ClusterState.of(jobs, middle, clock, trace.processors).jobs
    began: Any = time.process_time()
    fit = fit_site(before, clock, trace.processors)
    figure(f"{log}: fit to {len(before):,} jobs", time.process_time() - began, "s", "<= 120")
    rows = np.unique(Subject(jobs, clock, trace.processors).moments(LATER, 0))
    moments = moments_of(jobs, clock, trace.processors, rows)
    print("\n".join([log, *fit.lines()]))
    for one in (fit.single, fit.best):
        score = Score.of(moments, one.text)
        for kind, shares in (("waiting", score.shares), ("new", score.new_shares)):
            for within, share in zip(("1 min", "10 min", "1 h"), shares, strict=True):
                figure(f"{log}: {one.text[:30]}, {kind}, {within}", 100 * share, "%", "")
