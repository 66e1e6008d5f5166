"""The models by name: which jobs and arrivals each is made of.

A new model is a line here; its parts stand in files of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from environment.errors import QuantityError

if TYPE_CHECKING:
    from analysis.models.part import ArrivalModel, JobModel


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
    "poisson": "analysis.models.arrivals_poisson:Poisson",
    "auto": "analysis.models.arrivals_auto:Auto",
    "wavelet": "analysis.models.arrivals_wavelet:Wavelet",
    "wavelet-zeros": "analysis.models.arrivals_zeros:WaveletZeros",
    "lublin": "analysis.models.arrivals_lublin:Lublin",
    "lublin-types": "analysis.models.arrivals_types:LublinTypes",
}

#: The models by name.
MODELS: dict[str, Kind] = {
    "feitelson96": Kind("analysis.models.feitelson_versions:Feitelson1996", "poisson"),
    "feitelson97": Kind("analysis.models.feitelson_versions:Feitelson1997", "poisson"),
    "lublin": Kind("analysis.models.lublin:LublinJobs", "lublin-types"),
    "lublin-typeless": Kind("analysis.models.lublin:LublinOneKind", "lublin"),
    "downey": Kind("analysis.models.downey:Downey", "poisson"),
    "mugm": Kind("analysis.models.mugm:Mugm", "auto"),
    "locality": Kind("analysis.models.locality:Locality", "poisson"),
    "comprehensive": Kind("analysis.models.comprehensive:Comprehensive", "auto"),
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
