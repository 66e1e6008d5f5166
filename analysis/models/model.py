"""Workload models: the list of models, fitted or published, and their files.

A new model is a line in :data:`MODELS`; its parts are in their own files. A model file is JSON with
the keys ``format``, ``version``, ``model``, ``machine``, ``arrivals``, ``jobs``, ``cycle``,
``requests``, ``load`` and ``provenance``, and ``machine_requests`` if the trace says what jobs ask
of a machine of nodes; the version is raised when an older program could no longer read new files.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import ValidationError

if TYPE_CHECKING:
    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.traces.trace import Trace

from hpcrowd.analysis.features.jobs import offered_load
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.models.parts.base import ArrivalModel, Cycle, JobModel, Part
from hpcrowd.analysis.models.parts.requests import MachineRequests
from hpcrowd.analysis.models.parts.users import Requests
from hpcrowd.analysis.results import versions
from hpcrowd.environment.errors import (
    HpcrowdError,
    ModelFileError,
    QuantityError,
    UnavailableError,
    check_choice,
)
from hpcrowd.environment.files import ModelFormat
from hpcrowd.environment.limits.inputs import is_input
from hpcrowd.environment.limits.numbers import MOST_LOAD, MOST_PROCESSORS, check_within
from hpcrowd.environment.quantities import notebook_table, plural


@dataclass(frozen=True)
class Kind:
    """A model that can be fitted.

    Its jobs are defined at ``module:class``. Default arrivals are a name of :data:`ARRIVALS`, or
    ``auto``, which takes the closest to the trace.
    """

    jobs: str
    arrivals: str


#: Models of arrivals by name, and where each is defined; loaded when used.
ARRIVALS: dict[str, str] = {
    "poisson": "hpcrowd.analysis.models.parts.base:Poisson",
    "auto": "hpcrowd.analysis.models.parts.wavelet:Auto",
    "wavelet": "hpcrowd.analysis.models.parts.wavelet:Wavelet",
    "wavelet-zeros": "hpcrowd.analysis.models.parts.wavelet:WaveletZeros",
    "lublin": "hpcrowd.analysis.models.parts.lublin:Lublin",
    "lublin-types": "hpcrowd.analysis.models.parts.lublin:LublinTypes",
}

#: The models by name.
MODELS: dict[str, Kind] = {
    "feitelson96": Kind("hpcrowd.analysis.models.jobs.feitelson:Feitelson1996", "poisson"),
    "feitelson97": Kind("hpcrowd.analysis.models.jobs.feitelson:Feitelson1997", "poisson"),
    "lublin": Kind("hpcrowd.analysis.models.jobs.lublin:LublinJobs", "lublin-types"),
    "lublin-typeless": Kind("hpcrowd.analysis.models.jobs.lublin:LublinOneKind", "lublin"),
    "downey": Kind("hpcrowd.analysis.models.jobs.downey:Downey", "poisson"),
    "mugm": Kind("hpcrowd.analysis.models.jobs.mugm:Mugm", "auto"),
    "locality": Kind("hpcrowd.analysis.models.jobs.locality:Locality", "poisson"),
    "comprehensive": Kind("hpcrowd.analysis.models.jobs.comprehensive:Comprehensive", "auto"),
}


@dataclass(frozen=True)
class WorkloadModel:
    """A model to generate workloads from.

    Attributes
    ----------
    name
        A name of :data:`MODELS`.
    machine
        Processors of the machine that it was fitted to or is meant for.
    arrivals, jobs
        Its parts.
    cycle
        Weekly cycle imposed on the arrivals; None for none.
    requests
        Requested times; None leaves jobs without one, or with that of the model of jobs.
    machine_requests
        What jobs ask of a machine of nodes; None if the trace does not say it.
    load
        Offered load of the trace that it was fitted to; None if unknown.
    provenance
        Where it comes from, plain data.
    """

    name: str
    machine: int
    arrivals: ArrivalModel
    jobs: JobModel
    cycle: Cycle | None = None
    requests: Requests | None = None
    machine_requests: MachineRequests | None = None
    load: float | None = None
    provenance: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<WorkloadModel {self.name}, {plural(self.machine, 'processor')}>"

    def _repr_html_(self) -> str:
        """Return its parts, for notebooks."""
        parts = ("arrivals", "jobs", "cycle", "requests", "machine_requests")
        known = [(name, type(one).__name__) for name in parts if (one := getattr(self, name))]
        load = [] if self.load is None else [("load", f"{self.load:.3g}")]
        return notebook_table(repr(self), [*known, *load, *(("note", one) for one in self.notes)])

    @property
    def notes(self) -> list[str]:
        """The notes of the fits."""
        return [*self.arrivals.notes, *self.jobs.notes, *(self.cycle.notes if self.cycle else ())]

    def to_json(self) -> dict[str, Any]:
        """Return the model as plain data, fit for JSON."""
        asked = self.machine_requests
        return {
            "model": self.name,
            "machine": self.machine,
            "load": self.load,
            "arrivals": _wire(self.arrivals),
            "jobs": _wire(self.jobs),
            "cycle": None if self.cycle is None else _wire(self.cycle),
            "requests": None if self.requests is None else _wire(self.requests),
            **({} if asked is None else {"machine_requests": _wire(asked)}),
            "provenance": self.provenance,
        }


def arrival_model(name: str) -> type[ArrivalModel]:
    """Return a model of arrivals by name.

    Raises
    ------
    QuantityError
        When there is none of this name.
    """
    check_choice("arrivals", name, ARRIVALS)
    found: type = resolve_name(ARRIVALS[name])
    return found


def job_model(name: str) -> type[JobModel]:
    """Return a model of jobs by name.

    Raises
    ------
    QuantityError
        When there is none of this name.
    """
    check_choice("model", name, MODELS)
    found: type = resolve_name(MODELS[name].jobs)
    return found


def fit(
    name: str,
    workload: Workload | Run | Trace | str | os.PathLike[str],
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
        A name of :data:`MODELS`.
    workload
        Workload to fit to; or a run or trace, or the path of one, of which completed jobs count.
    arrivals
        A name of :data:`ARRIVALS`; None for the default of the model.
    cycle
        Impose the trace's weekly cycle, or its mean daily cycle, on the arrivals. They are then
        fitted to the trace without the cycle.
    options
        Keyword options for fitting the jobs.
    provenance
        Additional provenance.

    Raises
    ------
    QuantityError
        When a name is not known.
    ModelFitError
        When the model cannot be fitted; the message has the parameter and the reason.
    """
    if not isinstance(workload, Workload):
        from hpcrowd.analysis.features.stats import read_workload

        workload = read_workload(workload)
    jobs = job_model(name)
    times = arrival_model(arrivals or MODELS[name].arrivals)
    arrived = jobs.arriving(workload)
    rhythm = None if cycle is None else Cycle.fit(arrived, weekly=cycle == "weekly")
    if rhythm is not None:
        # In operational time, in which there is no cycle.
        submit = arrived.submit
        first = int(arrived.clock.second_of_week(np.array([submit[0]], np.int64))[0])
        flat = rhythm.unwarp(submit - submit[0], start=first)
        arrived = replace(arrived, submit=flat, _known={}, remarks=[])
    try:
        load = offered_load(workload)
    except UnavailableError:
        load = 0.0
    arriving, fitted = times.fit(arrived), jobs.fit(workload, **(options or {}))
    return WorkloadModel(
        name=name,
        machine=workload.machine or int(workload.processors.max(initial=1)),
        arrivals=arriving,
        jobs=fitted,
        cycle=rhythm,
        requests=Requests.fit(workload),
        machine_requests=MachineRequests.fit(workload, fitted.fitted_kinds),
        load=load or None,
        provenance={
            "trace": workload.name,
            "sha256": workload.sha256 or None,
            "jobs": len(workload),
            "span_s": float(np.ptp(workload.submit)) if len(workload) else 0.0,
            "left_out": dict(workload.left_out),
            "options": dict(options or {}),
            "versions": versions(),
            **(provenance or {}),
        },
    )


def published(name: str, machine: int) -> WorkloadModel:
    """Return a model with the parameters of its paper, for a machine of the given size.

    Raises
    ------
    QuantityError
        When the model is unknown, or its paper gives no parameters.
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
    """Return the model in a file, or a model with published parameters.

    Raises
    ------
    QuantityError
        When the source is neither, or the size of the machine is missing.
    """
    if machine is not None:
        check_within("processors", machine, 1, MOST_PROCESSORS)
    if source in MODELS:
        if machine is None:
            raise QuantityError(
                f"{source}: published parameters need the size of the machine, in processors"
            )
        return published(source, machine)
    if not is_input(source) and not source.endswith(".json"):
        raise QuantityError(
            f"model {source!r}: no such file or model; models are {', '.join(MODELS)}"
        )
    return read_model(source)


#: What a file says it is, and the version that is written.
FILES = ModelFormat(
    "hpcrowd workload model", 1, "a workload model", "hpcrowd fit", "fit the model again"
)

#: Most parts of a location in an error message.
DEPTH = 3


def write_model(model: WorkloadModel, path: str | os.PathLike[str]) -> None:
    """Write a model to a file that appears only when it is complete.

    Raises
    ------
    ModelFileError
        When it cannot be written.
    """
    FILES.write(model.to_json(), path)


def read_model(path: str | os.PathLike[str]) -> WorkloadModel:
    """Return the model in a file.

    Raises
    ------
    ModelFileError
        When the file is missing, damaged, or of a newer version.
    """
    name, wire = os.fspath(path), FILES.read(path)
    try:
        return _model(wire)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"][:DEPTH]))
        raise ModelFileError(
            f"{name}, {where}: {first['input']!r:.40}: {first['msg'].lower()}; fit the model again"
        ) from None
    except (KeyError, TypeError, ValueError, HpcrowdError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ModelFileError(f"{name}: damaged: {what}; fit the model again") from None


def _model(wire: dict[str, Any]) -> WorkloadModel:
    arrivals, jobs = dict(wire["arrivals"]), dict(wire["jobs"])
    load, machine = wire["load"], wire["machine"]
    if not isinstance(machine, int) or not 1 <= machine <= MOST_PROCESSORS:
        raise ValueError(f"machine {machine!r}: must be from 1 to {MOST_PROCESSORS:,}")
    if load is not None and not (isinstance(load, int | float) and 0 < load <= MOST_LOAD):
        raise ValueError(f"load {load!r}: must be positive or null")
    return WorkloadModel(
        name=wire["model"],
        machine=machine,
        arrivals=arrival_model(arrivals.pop("name")).model_validate(arrivals),
        jobs=job_model(jobs.pop("name")).model_validate(jobs),
        cycle=_only(Cycle, wire["cycle"]),
        requests=_only(Requests, wire["requests"]),
        machine_requests=_only(MachineRequests, wire.get("machine_requests")),
        load=load,
        provenance=dict(wire["provenance"]),
    )


def _only[Kind: Part](kind: type[Kind], wire: dict[str, Any] | None) -> Kind | None:
    """Return a part of a given kind; None if it is missing."""
    if wire is None:
        return None
    fields = dict(wire)
    if (name := fields.pop("name")) != kind.name:
        raise ValueError(f"part {name!r} instead of {kind.name!r}")
    return kind.model_validate(fields)


def _wire(part: Part) -> dict[str, Any]:
    return {"name": part.name, **part.model_dump(mode="json")}


def parse_model(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name of a model and the options of its fit, such as ``mugm:groups=2``.

    Raises
    ------
    QuantityError
        When the model has no such option, or its value is not a number or a word.
    """
    name, _, rest = text.partition(":")
    known = keyword_options(job_model(name).fit)
    found: dict[str, Any] = {}
    for word in filter(None, rest.split(",")):
        key, equals, value = word.partition("=")
        if key not in known or not equals:
            told = ", ".join(f"{option}=" for option in known) or "none"
            raise QuantityError(
                f"model {text!r}: {word!r} is not an option of {name}; it has {told}"
            )
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
