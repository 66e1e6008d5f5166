"""Predictors along recorded traces, compiled: seconds for a whole trace."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

import pytest

from hpcrowd import replay
from hpcrowd.analysis.prediction import PastJobs, evaluate, past_jobs
from hpcrowd.predictors import parse_predictor
from hpcrowd.scenarios.studies.minh2012.predictor import CUTS

FILES = {"SDSC-DS": "SDSC-DS-2004-2.1-cln", "HPC2N": "HPC2N-2002-2.2-cln"}

#: Cut traces, each only once.
_CUT: dict[str, PastJobs] = {}


@pytest.mark.parametrize("model", ["last-two", "nearest", "history:{trace}"])
@pytest.mark.parametrize("trace", CUTS)
def bench_evaluation(
    benchmark: Any, load: Any, figure: Callable[..., None], trace: str, model: str
) -> None:
    """Predict every job of a trace and compute the figures."""
    cut = CUTS[trace]
    if trace not in _CUT:
        _CUT[trace] = past_jobs(load(FILES[cut.log])[0], cut.years)
    past, predictor = _CUT[trace], parse_predictor(model.format(trace=trace))
    benchmark.pedantic(lambda: evaluate(past, predictor, cut.training), rounds=5, warmup_rounds=1)
    name = model.partition(":")[0]
    middle = float(benchmark.stats.stats.median)
    figure(f"{trace} ({len(past):,} jobs), {name}", middle, "s", "<= 0.5")


@pytest.mark.parametrize("model", ["requested", "last-two", "nearest", "history:SDSC04"])
@pytest.mark.parametrize("scheduler", ["easy", "conservative"])
def bench_online(
    benchmark: Any, load: Any, figure: Callable[..., None], scheduler: str, model: str
) -> None:
    """Replay KTH with estimates that are made during the run."""
    trace, jobs = load("KTH-SP2-1996-2.1-cln")
    took: list[float] = []

    def simulate() -> None:
        run = replay(trace, users="rigid", scheduler=scheduler, estimates=model)
        took.append(run.wall_s["simulate"])

    benchmark.pedantic(simulate, rounds=7, warmup_rounds=1)
    name = f"KTH, {scheduler}, rigid, estimates {model.partition(':')[0]}"
    figure(name, median(took[1:]) / len(jobs) * 1e6, "us a job", "<= 50")


def bench_training(benchmark: Any, load: Any, figure: Callable[..., None]) -> None:
    """Predict the training part of a trace once: what a search costs for each individual."""
    cut = CUTS["HPC2N04"]
    past = past_jobs(load(FILES[cut.log])[0], cut.years).first(cut.training)
    predictor = parse_predictor("history:HPC2N04")
    benchmark.pedantic(lambda: evaluate(past, predictor), rounds=10, warmup_rounds=1)
    middle = float(benchmark.stats.stats.median)
    figure("HPC2N04, training part, one evaluation", middle, "s", "<= 0.15")
