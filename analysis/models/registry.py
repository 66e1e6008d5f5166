"""The models by name: which jobs and arrivals each is made of.

A new model is a line here; its parts stand in files of their own.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hpcrowd.analysis.features.arrivals import offered_load
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.models.arrivals.cycle import Cycle
from hpcrowd.analysis.models.model import WorkloadModel
from hpcrowd.analysis.models.requests import Requests
from hpcrowd.analysis.results import versions
from hpcrowd.environment.errors import QuantityError, UnavailableError

if TYPE_CHECKING:
    from hpcrowd.analysis.models.part import ArrivalModel, JobModel


@dataclass(frozen=True)
class Kind:
    """A model that can be fitted.

    Attributes
    ----------
    jobs
        Where its jobs are defined, ``module:class``.
    arrivals
        How jobs arrive unless something else is asked for: a name of :data:`ARRIVALS`, or
        ``auto``, which takes what is nearest to the trace.
    """

    jobs: str
    arrivals: str


#: How jobs may arrive, by name; where each is defined. They load when they are asked for.
ARRIVALS: dict[str, str] = {
    "poisson": "hpcrowd.analysis.models.arrivals.poisson:Poisson",
    "auto": "hpcrowd.analysis.models.arrivals.auto:Auto",
    "wavelet": "hpcrowd.analysis.models.arrivals.wavelet:Wavelet",
    "wavelet-zeros": "hpcrowd.analysis.models.arrivals.wavelet:WaveletZeros",
    "lublin": "hpcrowd.analysis.models.arrivals.lublin:Lublin",
    "lublin-types": "hpcrowd.analysis.models.arrivals.lublin:LublinTypes",
}

#: The models by name.
MODELS: dict[str, Kind] = {
    "feitelson96": Kind("hpcrowd.analysis.models.feitelson:Feitelson1996", "poisson"),
    "feitelson97": Kind("hpcrowd.analysis.models.feitelson:Feitelson1997", "poisson"),
    "lublin": Kind("hpcrowd.analysis.models.lublin:LublinJobs", "lublin-types"),
    "lublin-typeless": Kind("hpcrowd.analysis.models.lublin:LublinOneKind", "lublin"),
    "downey": Kind("hpcrowd.analysis.models.downey:Downey", "poisson"),
    "mugm": Kind("hpcrowd.analysis.models.mugm:Mugm", "auto"),
    "locality": Kind("hpcrowd.analysis.models.locality:Locality", "poisson"),
    "comprehensive": Kind("hpcrowd.analysis.models.comprehensive:Comprehensive", "auto"),
}


def arrival_model(name: str) -> type[ArrivalModel]:
    """Return a kind of arrivals by its name.

    Raises
    ------
    QuantityError
        When there is none of this name.
    """
    if name not in ARRIVALS:
        raise QuantityError(f"arrivals {name!r}: not known; choose {', '.join(ARRIVALS)}")
    return _load(ARRIVALS[name])


def job_model(name: str) -> type[JobModel]:
    """Return the jobs of a model by its name.

    Raises
    ------
    QuantityError
        When there is none of this name.
    """
    if name not in MODELS:
        raise QuantityError(f"model {name!r}: not known; choose {', '.join(MODELS)}")
    return _load(MODELS[name].jobs)


def _load(place: str) -> type:
    module, _, name = place.partition(":")
    found: type = getattr(import_module(module), name)
    return found


def fit(
    name: str,
    workload: Workload,
    *,
    arrivals: str | None = None,
    cycle: Literal["weekly", "daily"] | None = None,
    options: Mapping[str, Any] | None = None,
    provenance: dict[str, Any] | None = None,
) -> WorkloadModel:
    """Return a model fitted to a workload.

    Parameters
    ----------
    name
        A name of :data:`hpcrowd.analysis.models.registry.MODELS`.
    workload
        What to fit to.
    arrivals
        How jobs arrive, a name of :data:`analysis.models.registry.ARRIVALS`; None takes what goes
        with the model.
    cycle
        Impose the trace's rhythm of the week, or of the mean day, on the arrivals. They are fitted
        to the trace without it then.
    options
        Keyword options of the fit of the jobs.
    provenance
        What else to note of where it comes from.

    Raises
    ------
    QuantityError
        When a name is not known.
    ModelFitError
        When the model cannot be fitted, with the parameter and the reason.
    """
    jobs = job_model(name)
    times = arrival_model(arrivals or MODELS[name].arrivals)
    arrived = jobs.arriving(workload)
    rhythm = None if cycle is None else Cycle.fit(arrived, weekly=cycle == "weekly")
    if rhythm is not None:
        arrived = _without(rhythm, arrived)
    try:
        load = offered_load(workload)
    except UnavailableError:
        load = 0.0
    return WorkloadModel(
        name=name,
        machine=workload.machine or int(workload.processors.max(initial=1)),
        arrivals=times.fit_workload(arrived),
        jobs=jobs.fit(workload, **(options or {})),
        cycle=rhythm,
        requests=Requests.fit(workload),
        load=load or None,
        provenance={
            "trace": workload.name,
            "sha256": workload.sha256 or None,
            "jobs": len(workload),
            "left_out": dict(workload.left_out),
            "options": dict(options or {}),
            "versions": versions(),
            **(provenance or {}),
        },
    )


def _without(cycle: Cycle, workload: Workload) -> Workload:
    """Return a workload whose arrivals are in operational time, in which there is no rhythm."""
    submit = workload.submit
    first = int(workload.clock.second_of_week(np.array([submit[0]], np.int64))[0])
    flat = cycle.unwarp(submit - submit[0], start=first)
    return replace(workload, submit=flat, _known={}, remarks=[])


def published(name: str, machine: int) -> WorkloadModel:
    """Return a model with the parameters that its paper gives, for a machine of a size.

    Raises
    ------
    QuantityError
        When the model is not known, or its paper gives no parameters.
    """
    jobs = job_model(name).published(machine)
    return WorkloadModel(
        name=name,
        machine=machine,
        arrivals=jobs.published_arrivals(),
        jobs=jobs,
        provenance={"parameters": jobs.source},
    )


def model_of(source: str, machine: int | None) -> WorkloadModel:
    """Return the model of a file, or one with published parameters.

    Raises
    ------
    QuantityError
        When it is neither, or the machine is missing.
    """
    from hpcrowd.analysis.models.model import read_model

    if source in MODELS:
        if machine is None:
            raise QuantityError(f"{source}: published parameters need a machine; give --machine P")
        return published(source, machine)
    if not Path(source).exists() and not source.endswith(".json"):
        raise QuantityError(
            f"model {source!r}: no such file, and no such model; models are {', '.join(MODELS)}"
        )
    return read_model(source)


def parse_model(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name of a model and the options of its fit: ``mugm:groups=2``.

    Raises
    ------
    QuantityError
        When the model has no such option, or its value is no number or word.
    """
    name, _, rest = text.partition(":")
    known = keyword_options(job_model(name).fit)
    found: dict[str, Any] = {}
    for word in filter(None, rest.split(",")):
        key, equals, value = word.partition("=")
        if key not in known or not equals:
            told = ", ".join(f"{option}=" for option in known) or "none"
            raise QuantityError(f"model {text!r}: {word!r} is no option of {name}; it has {told}")
        found[key] = _value(value)
    return name, found


def keyword_options(fit: Any) -> list[str]:
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
