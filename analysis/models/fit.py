"""Fit a model to a workload: its jobs, and the arrivals that go with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from analysis.features.arrivals import offered_load
from analysis.features.workload import Workload
from analysis.models.cycle import Cycle
from analysis.models.model import WorkloadModel
from analysis.models.registry import MODELS, arrival_model, job_model
from analysis.models.requests import Requests
from analysis.results import versions
from environment.errors import UnavailableError


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
        A name of :data:`analysis.models.registry.MODELS`.
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
