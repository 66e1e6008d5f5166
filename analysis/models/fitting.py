"""Fit a model to a workload, or take one from a paper or a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hpcrowd.analysis.features.arrivals import offered_load
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.models.arrivals.cycle import Cycle
from hpcrowd.analysis.models.model import WorkloadModel, read_model
from hpcrowd.analysis.models.registry import MODELS, arrival_model, job_model
from hpcrowd.analysis.models.requests import Requests
from hpcrowd.analysis.results import versions
from hpcrowd.environment.errors import QuantityError, UnavailableError


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
    if source in MODELS:
        if machine is None:
            raise QuantityError(f"{source}: published parameters need a machine; give --machine P")
        return published(source, machine)
    if not Path(source).exists() and not source.endswith(".json"):
        raise QuantityError(
            f"model {source!r}: no such file, and no such model; models are {', '.join(MODELS)}"
        )
    return read_model(source)
