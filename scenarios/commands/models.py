"""The commands ``hpcrowd models``, ``fit`` and ``generate``: workload models and what they make."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hpcrowd.analysis.models.fitting import model_of
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.scenarios.terminal import print_json, progress_bar, say, standard_output
from hpcrowd.scenarios.whole_file import check_writable

if TYPE_CHECKING:
    pass


def list_command(*, as_json: bool) -> None:
    """Print the models and the arrivals: what each is, and where it comes from."""
    from hpcrowd.analysis.models.registry import ARRIVALS, MODELS, arrival_model, job_model

    kinds: dict[str, dict[str, dict[str, Any]]] = {"models": {}, "arrivals": {}}
    for name, kind in MODELS.items():
        part = job_model(name)
        kinds["models"][name] = {
            "title": part.title,
            "source": part.source,
            "arrivals": kind.arrivals,
            "options": sorted(options_of(part.fit)),
        }
    for name in ARRIVALS:
        times = arrival_model(name)
        kinds["arrivals"][name] = {"title": times.title, "source": times.source}
    if as_json:
        print_json(kinds)
        return
    from rich.table import Table

    console = standard_output(highlight=False, markup=False)
    for title, ones in kinds.items():
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column(title, no_wrap=True)
        table.add_column("what", overflow="fold")
        table.add_column("source", overflow="fold")
        if title == "models":
            table.add_column("arrives by")
        for name, one in ones.items():
            more = (one["arrivals"],) if title == "models" else ()
            table.add_row(name, one["title"], one["source"], *more)
        console.print(table)
        console.print()
    console.print("fit a model: hpcrowd fit MODEL TRACE -o M.json; then hpcrowd generate M.json")


def fit_command(
    name: str,
    trace: Path,
    out: Path,
    *,
    arrivals: str | None,
    cycle: Literal["weekly", "daily"] | None,
    which: Literal["completed", "all"],
    as_json: bool,
) -> None:
    """Fit a model to a trace and write it to a file.

    Parameters
    ----------
    name
        The model, with options: ``mugm:groups=2``.
    trace
        Trace, or folder of results.
    out
        File to write.
    arrivals
        How jobs arrive; None takes what goes with the model.
    cycle
        Rhythm to impose on the arrivals.
    which
        Jobs that count.
    as_json
        Print the model instead of what was found.
    """
    check_writable(out, "--out")
    from hpcrowd.analysis.features.stats import read_workload
    from hpcrowd.analysis.models.fitting import fit
    from hpcrowd.analysis.models.model import write_model
    from hpcrowd.analysis.models.registry import MODELS, job_model

    name, options = parse_model(name)
    job_model(name)
    with progress_bar() as progress:
        if progress is not None:
            progress(f"reading {trace.name}", 0, 2)
        workload = read_workload(trace, which)
        if progress is not None:
            progress(f"fitting {name}, arrivals {arrivals or MODELS[name].arrivals}", 1, 2)
        model = fit(name, workload, arrivals=arrivals, cycle=cycle, options=options)
    write_model(model, out)
    if as_json:
        print_json(model.to_json())
        return
    console = standard_output(highlight=False, markup=False)
    console.print(
        f"{model.name}, arrivals {model.arrivals.name}, fitted to "
        f"{plural(len(workload), 'job')} of {workload.name}, on {model.machine:,} processors"
    )
    for reason, count in workload.left_out.items():
        console.print(f"  {plural(count, 'job')} left out: {reason}")
    for note in (*workload.notes, *model.notes):
        console.print(f"  {note}")
    if model.requests is None:
        console.print("  no requested times to fit to: generated jobs ask for what they need")
    console.print(f"The model is {out}; hpcrowd generate {out} -o X.swf.gz makes a workload")


def generate_command(
    source: str,
    out: Path,
    *,
    jobs: int | None,
    days: float | None,
    load: float | None,
    machine: int | None,
    correlation: float | None,
    seed: int,
    as_json: bool,
) -> None:
    """Generate a workload from a model and write it as a trace.

    Parameters
    ----------
    source
        File of a fitted model, or the name of a model with published parameters.
    out
        File to write, ``.swf`` or ``.swf.gz``.
    jobs, days, load, machine, correlation, seed
        As for :func:`generate`; with neither jobs nor days as many jobs as
        the trace has that the model was fitted to.
    as_json
        Print one JSON object.
    """
    check_writable(out, "--out")
    if not out.name.endswith((".swf", ".swf.gz")):
        raise QuantityError(f"--out {out}: a trace ends in .swf or .swf.gz")
    from hpcrowd.analysis.models.generation import generate

    model = model_of(source, machine)
    if jobs is None and days is None:
        jobs = model.provenance.get("jobs")
        if not isinstance(jobs, int):
            raise QuantityError(
                f"{source}: published parameters say not how much; give --jobs or --days"
            )
    with progress_bar() as progress:
        if progress is not None:
            progress(f"generating {model.name}", 0, 2)
        made = generate(
            model,
            jobs=jobs,
            days=days,
            load=load,
            machine=machine,
            correlation=correlation,
            seed=seed,
        )
        if progress is not None:
            progress(f"writing {out.name}", 1, 2)
        write_swf(made.trace(), out)
    span = float(made.drawn.submit[-1] - made.drawn.submit[0])
    if as_json:
        print_json(
            {
                "model": model.name,
                "arrivals": model.arrivals.name,
                "seed": seed,
                "jobs": len(made),
                "span_s": span,
                "processors": made.machine,
                "offered_load": made.load if span else None,
                "notes": list(made.notes),
                "trace": str(out),
            }
        )
        return
    for note in made.notes:
        say(note)
    console = standard_output(highlight=False, markup=False)
    console.print(
        f"{plural(len(made), 'job')} of {model.name}, arrivals {model.arrivals.name}, seed {seed}, "
        f"in {span / 86400:,.1f} days on {made.machine:,} processors"
        + (f", offered load {made.load:.3f}" if span else "")
    )
    console.print(f"The trace is {out}")


def parse_model(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name of a model and the options of its fit: ``mugm:groups=2``.

    Raises
    ------
    QuantityError
        When the model has no such option, or its value is no number or word.
    """
    from hpcrowd.analysis.models.registry import job_model

    name, _, rest = text.partition(":")
    known = options_of(job_model(name).fit)
    found: dict[str, Any] = {}
    for word in filter(None, rest.split(",")):
        key, equals, value = word.partition("=")
        if key not in known or not equals:
            told = ", ".join(f"{option}=" for option in known) or "none"
            raise QuantityError(f"model {text!r}: {word!r} is no option of {name}; it has {told}")
        found[key] = _value(value)
    return name, found


def options_of(fit: Any) -> list[str]:
    """Return the keyword options of a fit."""
    return [
        name
        for name, parameter in inspect.signature(fit).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]


def _value(text: str) -> Any:
    if text in ("yes", "no"):
        return text == "yes"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
