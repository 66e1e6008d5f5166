"""The command ``hpcrowd predict``: how well run times of a trace are predicted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcrowd.analysis.numbers import share_text
from hpcrowd.environment.errors import ModelFileError, PredictorError, QuantityError
from hpcrowd.environment.limits.numbers import LARGEST_SEED, MOST_SEARCHES
from hpcrowd.environment.quantities import parse_duration, plural
from hpcrowd.scenarios.commands.options import AsJson, Reading, TracePath, reads_traces
from hpcrowd.scenarios.kinds.trace_settings import reading_options
from hpcrowd.scenarios.terminal import plain_table, print_json, progress_bar, standard_output

if TYPE_CHECKING:
    from hpcrowd.analysis.prediction import Accuracy, PastJobs, Trained
    from hpcrowd.environment.schedulers.predictors.models import Shipped

#: Models that are compared unless others are given.
DEFAULT_MODELS = ("last-two", "nearest")

#: The baseline of every table: the requests of users.
REQUESTED = "requested time"


@dataclass(frozen=True)
class Line:
    """A model and its accuracy."""

    model: str  #: as it was given
    settings: dict[str, Any] | None  #: its settings as plain data, None for the baseline
    #: Accuracy on the test part, and on the training part alone; None if nothing was trained.
    test: Accuracy
    training: Accuracy | None


Model = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="last-two, nearest, history:SDSC04 (published parameters), history (with --train) "
        "or a FILE.json; give it several times to compare. last-two and nearest unless given.",
    ),
]

History = Annotated[
    str | None,
    typer.Option(help="How the last N jobs are chosen: submission, completion, category."),
]

Split = Annotated[
    str, typer.Option(help="Jobs to train on: a number, a share such as 0.5, or auto.")
]

Years = Annotated[str | None, typer.Option(help="Only these calendar years: 2004, or 2005-2006.")]

Train = Annotated[bool, typer.Option("--train", help="Train the model history on the first part.")]

Evaluations = Annotated[
    int | None,
    typer.Option(
        min=1, help="Train with this many evaluations per seed instead, which is repeatable."
    ),
]

Seeds = Annotated[
    int, typer.Option(min=1, max=MOST_SEARCHES, help="Searches, of which the best counts.")
]

Seed = Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of the first search.")]

Out = Annotated[Path | None, typer.Option(metavar="FILE.json", help="File for the trained model.")]


@reads_traces
def command(
    trace: TracePath,
    how: Reading,
    model: Model = None,
    history: History = None,
    split: Split = "auto",
    years: Years = None,
    train: Train = False,
    budget: Annotated[str, typer.Option(help="How long to train.")] = "2m",
    evaluations: Evaluations = None,
    seeds: Seeds = 4,
    seed: Seed = 0,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Predict the run times of jobs from earlier jobs, and measure how well.

    Only completed jobs (status 1) are predicted, each at its submission, from jobs that had ended
    by then.

    \b
    hpcrowd predict log.swf.gz
    hpcrowd predict log.swf.gz --model history --train --out model.json
    hpcrowd predict log.swf.gz --model last-two --model model.json --json
    """
    from hpcrowd.analysis.prediction import parse_years, past_jobs, training_jobs
    from hpcrowd.analysis.prediction import train as train_history
    from hpcrowd.environment.schedulers.predictors.models import write_predictor
    from hpcrowd.environment.traces.formats.registry import read_trace

    if out is not None:
        _check_out(out, train)
    budget_s = float(parse_duration(budget, "--budget"))
    asked = list(model or ()) or [*DEFAULT_MODELS, *(["history"] if train else [])]
    if train and "history" not in asked:
        raise QuantityError('--train trains the model "history"; add --model history')
    chosen = {text: _with_history(text, history, untrained=train) for text in asked}
    cut = None if years is None else parse_years(years)

    past = past_jobs(read_trace(trace, options=reading_options(**how)), cut)
    training = training_jobs(split, len(past))
    found: Trained | None = None
    if train:
        with progress_bar() as progress:
            found = train_history(
                past.first(training), history=chosen["history"].history, budget_s=budget_s,
                evaluations=evaluations, seeds=seeds, seed=seed, progress=progress,
            )  # fmt: skip
        chosen["history"].use(found.parameters)  # type: ignore[union-attr]
        if out is not None:
            write_predictor(chosen["history"], out, _provenance(past, training, found, evaluations))
    lines = [_baseline(past, training)]
    for text, predictor in chosen.items():
        label = "history, trained here" if found and text == "history" else text
        lines.append(_line(past, training, label, predictor))
    if as_json:
        print_json(_wire(past, training, lines, found))
    else:
        _show(past, training, lines, found, out)


def _check_out(out: Path, train: bool) -> None:
    """Check that there will be a model to write, and that it can be written."""
    if not train:
        raise QuantityError(f"--out {out}: only a trained model is written; add --train")
    if out.suffix != ".json":
        raise QuantityError(f"--out {out}: the name of a model has to end in .json")
    if not os.access(out.parent, os.W_OK):
        raise ModelFileError(f"{out}: cannot be written: {out.parent} is not a writable folder")


def _with_history(text: str, history: str | None, *, untrained: bool) -> Shipped:
    """Return the predictor that ``text`` means, with another kind of history if one is given."""
    from hpcrowd.environment.schedulers.predictors.history import HistoryPredictor, published_names
    from hpcrowd.environment.schedulers.predictors.models import parse_predictor

    predictor = parse_predictor(text)
    if isinstance(predictor, HistoryPredictor) and predictor.parameters is None:
        if not (untrained and text == "history"):
            raise PredictorError(
                f"model {text!r}: has not been trained; add --train, name published "
                f"parameters ({', '.join(f'history:{name}' for name in published_names())}), or "
                "give the file of a trained model"
            )
        return HistoryPredictor(history=history or predictor.history)
    if history is None:
        return predictor
    if isinstance(predictor, HistoryPredictor):
        return HistoryPredictor(predictor.parameters, history=history, bounds=predictor.bounds)
    return type(predictor)(**(predictor.to_json() | {"history": history}))


def _baseline(past: PastJobs, training: int) -> Line:
    from hpcrowd.analysis.prediction import accuracy

    figures = accuracy(past, past.jobs.requested_time, training)
    part = past.first(training)
    return Line(
        REQUESTED, None, figures, accuracy(part, part.jobs.requested_time) if training else None
    )


def _line(past: PastJobs, training: int, label: str, predictor: Shipped) -> Line:
    from hpcrowd.analysis.prediction import evaluate

    test = evaluate(past, predictor, training)
    part = evaluate(past.first(training), predictor) if training else None
    return Line(label, predictor.to_json(), test, part)


def _provenance(
    past: PastJobs, training: int, found: Trained, evaluations: int | None
) -> dict[str, Any]:
    """Return where trained parameters come from: enough to find them again."""
    from hpcrowd.analysis.results import versions

    return {
        "trace": past.facts,
        "training_jobs": training,
        "training": _search(found),
        "repeatable": evaluations is not None,
        "versions": versions() | {"scipy": version("scipy")},
    }


def _search(found: Trained) -> dict[str, Any]:
    return {
        "fitness": found.fitness,
        "seed": found.seed,
        "fitness_by_seed": {str(seed): fitness for seed, fitness in found.each.items()},
        "evaluations": found.evaluations,
        "wall_s": round(found.wall_s, 1),
    }


def _figures(accuracy: Accuracy | None) -> dict[str, Any] | None:
    return None if accuracy is None else {**asdict(accuracy), "fitness": accuracy.fitness}


def _wire(
    past: PastJobs, training: int, lines: Sequence[Line], found: Trained | None
) -> dict[str, Any]:
    return {
        "trace": past.facts,
        "training_jobs": training,
        "test_jobs": len(past) - training,
        "training": None if found is None else _search(found),
        "models": [
            {
                "model": line.model,
                "settings": line.settings,
                "test": _figures(line.test),
                "training": _figures(line.training),
            }
            for line in lines
        ],
    }


def _show(
    past: PastJobs,
    training: int,
    lines: Sequence[Line],
    found: Trained | None,
    out: Path | None,
) -> None:
    console = standard_output()
    console.print(
        f"{past.facts['source']}: {plural(len(past), 'job')}, the first {training:,} for training, "
        f"{len(past) - training:,} for testing",
    )
    for reason, count in past.left_out.items():
        console.print(f"  {plural(count, 'job')} left out: {reason}")
    columns = ("underestimated", "MAE (min)", "WAE (min)", "fitness", "in training")
    table = plain_table("model", *columns)
    for line in lines:
        test = line.test
        table.add_row(
            line.model,
            share_text(test.underestimated_share),
            f"{test.mae_min:,.1f}",
            f"{test.wae_min:,.0f}",
            f"{test.fitness:.3f}",
            "-" if line.training is None else f"{line.training.fitness:.3f}",
        )
    console.print(table)
    if found is not None:
        console.print(
            f"Trained in {found.wall_s:.0f} s, {found.evaluations:,} sets of parameters: "
            f"{_in_words(found)}",
        )
    if out is not None:
        console.print(f"Written to {out}", soft_wrap=True)


def _in_words(found: Trained) -> str:
    parameters = found.parameters
    groups = (
        f"{name} N {group.n:,}, K {group.k}, alpha {group.alpha:g}, beta {group.beta:g}"
        for name, group in (("small", parameters.small), ("big", parameters.big))
    )
    return f"template {parameters.template}, pivot {parameters.pivot_s:,.0f} s, {'; '.join(groups)}"
