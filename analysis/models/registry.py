"""The models by name: which jobs and arrivals each is made of.

A new model is a line here; its parts stand in files of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from hpcrowd.environment.errors import QuantityError

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
