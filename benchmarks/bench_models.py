"""Workload models: seconds to fit one to HPC2N, to generate a million jobs, and peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpcrowd.models import MODELS

ROOT = Path(__file__).resolve().parent.parent

TRACE = "HPC2N-2002-2.1-cln"

#: Jobs that are generated.
MANY = 1_000_000

#: Fits a model and generates, in a process of its own; prints seconds, seconds, peak memory in MB.
SCRIPT = """
import resource, sys, time
sys.path.insert(0, {root!r})
from hpcrowd.features import Workload
from hpcrowd import fit, generate
from hpcrowd import read_swf
workload = Workload.from_trace(read_swf({trace!r}))
began = time.perf_counter()
model = fit({name!r}, workload)
fitted = time.perf_counter()
trace = generate(model, jobs={many}).trace()
ended = time.perf_counter()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(fitted - began, ended - fitted, peak, model.arrivals.name)
"""


@pytest.mark.parametrize("name", MODELS)
def bench_model(trace_path: Any, figure: Callable[..., None], name: str) -> None:
    """Fit to 201,998 jobs, then generate a million."""
    script = SCRIPT.format(root=str(ROOT), trace=str(trace_path(TRACE)), name=name, many=MANY)
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    fitted, generated, peak, arrivals = done.stdout.split()
    figure(f"{name}, arrivals {arrivals}, fitted to HPC2N", float(fitted), "s", "<= 60")
    figure(f"{name}, a million jobs generated", float(generated), "s", "<= 20")
    figure(f"{name}, peak memory", float(peak), "MB", "<= 2000")


#: Fits learned users in a process of its own; prints seconds and peak memory in MB.
LEARNED = """
import resource, sys, time
sys.path.insert(0, {root!r})
from hpcrowd.analysis.models.learned import fit_traces
from hpcrowd import read_swf
trace = read_swf({trace!r})
began = time.perf_counter()
fit_traces([trace])
print(time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def bench_learned(trace_path: Any, figure: Callable[..., None]) -> None:
    """Fit learned users to HPC2N."""
    script = LEARNED.format(root=str(ROOT), trace=str(trace_path(TRACE)))
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    seconds, peak = map(float, done.stdout.split())
    figure("learned users, HPC2N, fit", seconds, "s", "<= 60")
    figure("learned users, HPC2N, fit, peak memory", peak, "MB", "<= 1000")
