"""Reproduce Minh 2012, chapter 8, from the traces it used: predictors of run times.

Each trace is predicted with the published parameters of Table 8.3 and with the other models.
Training takes minutes a trace: it is run when asked for. Otherwise parameters of an earlier
training stand in, kept in ``analysis/trained`` as ``hpcrowd predict --train --out`` wrote them;
their figures are computed anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Any

from hpcrowd.analysis.prediction.scores import PastJobs, accuracy, evaluate, past_jobs
from hpcrowd.analysis.prediction.training import BUDGET_S, SEEDS, Trained, train
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.quantities import parse_duration
from hpcrowd.environment.schedulers.predictors.history import HistoryParameters, HistoryPredictor
from hpcrowd.environment.schedulers.predictors.models import FILES, parse_predictor, predictor_from
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.studies.minh2012_predictor.report import Reproduction
from hpcrowd.scenarios.studies.minh2012_predictor.study import (
    CUTS,
    MODELS,
    READINGS,
    OwnTraining,
    TraceOutcomes,
)
from hpcrowd.scenarios.studies.options import TRACES, Option
from hpcrowd.scenarios.studies.running import LOGS, Steps, find_logs, run_study
from hpcrowd.scenarios.terminal import Progress

#: The logs that the traces of the thesis are cut from.
STUDIED = {name: LOGS[name] for name in dict.fromkeys(cut.log for cut in CUTS.values())}

#: What is said of parameters that were trained in this run.
TRAINED_HERE = "trained in this run"

#: Steps of a trace: cutting, models, readings and training.
STEPS = 2


def reproduce_minh2012_predictor(
    traces: Annotated[str | os.PathLike[str], TRACES],
    progress: Progress | None = None,
    *,
    training: Annotated[
        bool,
        Option("Train anew; otherwise parameters of an earlier training are taken.", name="train"),
    ] = False,
    budget_s: Annotated[
        float,
        Option(
            "How long to train, each trace.",
            name="budget",
            parse=parse_duration,
            shown=lambda seconds: f"{seconds / 60:g}m",
        ),
    ] = BUDGET_S,
    seeds: Annotated[int, Option("Searches that share it; the best counts.", least=1)] = SEEDS,
    only: Iterable[str] = CUTS,
) -> Reproduction:
    """Run the study on every trace of it that is there.

    Parameters
    ----------
    traces
        Folder with the logs, plain or gzipped.
    progress
        Called before each step.
    training
        Train anew, instead of taking the parameters of an earlier training.
    budget_s, seeds
        s for the training of each trace, and how many searches share them.
    only
        Names of the traces to look for.

    Raises
    ------
    TraceError
        When there is no log at all, or one that cannot be read.
    QuantityError
        When the budget or the number of seeds is not positive.
    """
    if budget_s <= 0 or seeds < 1:
        raise QuantityError(f"budget {budget_s:g} s, seeds {seeds}: both must be more than 0")
    wanted = [name for name in CUTS if name in set(only)]
    logs = {CUTS[name].log for name in wanted}
    paths = find_logs(traces, {name: log for name, log in STUDIED.items() if name in logs})
    wanted = [name for name in wanted if CUTS[name].log in paths]
    steps = Steps(len(wanted) * (STEPS + training), progress)
    read: dict[str, Trace] = {}
    found = {}
    for name in wanted:
        log = CUTS[name].log
        steps.begin(f"{name}: {paths[log].name}")
        if log not in read:
            read = {log: read_trace(paths[log])}
        own = None
        past = past_jobs(read[log], CUTS[name].years)
        if training:
            steps.begin(f"{name}: training, {budget_s:g} s")
            own = train(past.first(CUTS[name].training), budget_s=budget_s, seeds=seeds)
        steps.begin(f"{name}: models")
        found[name] = study_trace(name, past, own)
    steps.end()
    return Reproduction(found)


def study_trace(name: str, past: PastJobs, own: Trained | None = None) -> TraceOutcomes:
    """Predict the run times of one trace with all models and readings.

    Parameters
    ----------
    name
        A name of :data:`hpcrowd.scenarios.studies.minh2012_predictor.study.CUTS`.
    past
        Its jobs.
    own
        What training found; the parameters of an earlier training unless given.
    """
    training = CUTS[name].training
    if training >= len(past):
        training = len(past) // 2  # a small log in its place

    def figures(text: str, first: int = training) -> Any:
        return evaluate(past, parse_predictor(text.format(trace=name)), first)

    part = past.first(training)
    return TraceOutcomes(
        trace=name,
        jobs=len(past),
        training=training,
        mean_run_min=float(past.run[training:].mean()) / 60,
        requested=accuracy(past, past.jobs.requested_time, training),
        test={model: figures(text) for model, text in MODELS.items()},
        published_training=evaluate(part, HistoryPredictor(HistoryParameters.published(name))),
        own=own_training(name, past, part, training, own),
        readings={
            reading: figures(text, _first(split, training, len(past)))
            for reading, (text, split) in READINGS.items()
        },
        run_s=past.run,
        facts=past.facts,
    )


def _first(split: float | None, chosen: int, jobs: int) -> int:
    """Return how many jobs train in a reading."""
    if split is None:
        return chosen
    return min(int(split * jobs) if split < 1 else int(split), jobs - 1)


def own_training(
    name: str, past: PastJobs, part: PastJobs, training: int, own: Trained | None
) -> OwnTraining:
    """Return the figures of parameters that we trained, now or before."""
    if own is not None:
        parameters, origin = own.parameters, TRAINED_HERE
        details: dict[str, Any] = {
            "seed": own.seed,
            "fitness_by_seed": {str(seed): fitness for seed, fitness in own.each.items()},
            "evaluations": own.evaluations,
            "wall_s": round(own.wall_s, 1),
        }
    else:
        wire = stored_training(name)
        stored = predictor_from(wire["model"], wire["settings"])
        assert isinstance(stored, HistoryPredictor)
        assert stored.parameters is not None
        parameters, details = stored.parameters, wire["provenance"]["training"]
        origin = f"trained before, by hpcrowd predict --train --split {training}"
    predictor = HistoryPredictor(parameters)
    return OwnTraining(
        parameters=parameters,
        origin=origin,
        training=evaluate(part, predictor),
        test=evaluate(past, predictor, training),
        details=details,
    )


def stored_training(name: str) -> dict[str, Any]:
    """Return the model file of an earlier training on a trace."""
    with as_file(
        files("hpcrowd.scenarios.studies.minh2012_predictor").joinpath("trained", f"{name}.json")
    ) as path:
        return FILES.read(path)


def run_minh2012_predictor(
    traces: Path, *, training: bool, budget_s: float, seeds: int, out: Path | None, as_json: bool
) -> bool:
    """Reproduce the study for the command line; return whether all required figures are reached.

    Parameters
    ----------
    traces
        Folder with the logs.
    training, budget_s, seeds
        See :func:`reproduce_minh2012_predictor`.
    out
        Folder to write; None writes nothing.
    as_json
        Print exactly one JSON object instead of tables.
    """
    return run_study(
        lambda progress: reproduce_minh2012_predictor(
            traces, progress, training=training, budget_s=budget_s, seeds=seeds
        ),
        out=out,
        as_json=as_json,
    )
