"""A workload model: arrivals, jobs and requested times for a machine, in a small file.

A file is JSON with the keys ``format``, ``version``, ``model``, ``machine``, ``arrivals``,
``jobs``, ``cycle``, ``requests``, ``load`` and ``provenance``; the version counts up when an
older program could no longer read what a newer one writes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from hpcrowd.analysis.models.arrivals.cycle import Cycle
from hpcrowd.analysis.models.part import ArrivalModel, JobModel, Part
from hpcrowd.analysis.models.requests import Requests
from hpcrowd.environment.errors import HpcrowdError, ModelFileError
from hpcrowd.environment.model_files import ModelFormat

#: What a file says it is, and the version that is written.
FILES = ModelFormat(
    "hpcrowd workload model", 1, "a workload model", "hpcrowd fit", "fit the model again"
)

#: Places of an array that an error names before it cuts.
DEPTH = 3


@dataclass(frozen=True)
class WorkloadModel:
    """A model to generate workloads from.

    Attributes
    ----------
    name
        A name of :data:`hpcrowd.analysis.models.registry.MODELS`.
    machine
        Processors of the machine that it was fitted on or is meant for.
    arrivals, jobs
        Its parts.
    cycle
        Rhythm of the week imposed on the arrivals; None for none.
    requests
        How long jobs ask for; None leaves them without a requested time, or with that of the jobs.
    load
        Offered load of the trace that it was fitted to; None unknown.
    provenance
        Where it comes from, plain data.
    """

    name: str
    machine: int
    arrivals: ArrivalModel
    jobs: JobModel
    cycle: Cycle | None = None
    requests: Requests | None = None
    load: float | None = None
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def notes(self) -> list[str]:
        """What the fits have to tell."""
        return [*self.arrivals.notes, *self.jobs.notes, *(self.cycle.notes if self.cycle else ())]

    def to_json(self) -> dict[str, Any]:
        """Return the model as plain data, fit for JSON."""
        return {
            "model": self.name,
            "machine": self.machine,
            "load": self.load,
            "arrivals": _wire(self.arrivals),
            "jobs": _wire(self.jobs),
            "cycle": None if self.cycle is None else _wire(self.cycle),
            "requests": None if self.requests is None else _wire(self.requests),
            "provenance": self.provenance,
        }


def write_model(model: WorkloadModel, path: str | os.PathLike[str]) -> None:
    """Write a model to a file, which is whole or absent.

    Raises
    ------
    ModelFileError
        When it cannot be written.
    """
    FILES.write(model.to_json(), path)


def read_model(path: str | os.PathLike[str]) -> WorkloadModel:
    """Return the model of a file.

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
    # The registry makes models, and so imports this file.
    from hpcrowd.analysis.models.registry import arrival_model, job_model

    arrivals, jobs = dict(wire["arrivals"]), dict(wire["jobs"])
    load, machine = wire["load"], wire["machine"]
    if not isinstance(machine, int) or machine < 1:
        raise ValueError(f"machine {machine!r}: must be 1 or more")
    if load is not None and not (isinstance(load, int | float) and load > 0):
        raise ValueError(f"load {load!r}: must be positive or null")
    return WorkloadModel(
        name=wire["model"],
        machine=machine,
        arrivals=arrival_model(arrivals.pop("name")).model_validate(arrivals),
        jobs=job_model(jobs.pop("name")).model_validate(jobs),
        cycle=_only(Cycle, wire["cycle"]),
        requests=_only(Requests, wire["requests"]),
        load=load,
        provenance=dict(wire["provenance"]),
    )


def _only[Kind: Part](kind: type[Kind], wire: dict[str, Any] | None) -> Kind | None:
    """Return a part that may be missing, and is of one kind."""
    if wire is None:
        return None
    fields = dict(wire)
    if (name := fields.pop("name")) != kind.name:
        raise ValueError(f"part {name!r} instead of {kind.name!r}")
    return kind.model_validate(fields)


def _wire(part: Part) -> dict[str, Any]:
    return {"name": part.name, **part.model_dump(mode="json")}
