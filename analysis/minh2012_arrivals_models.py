"""Minh 2012, chapter 6: arrivals of the three patterns, fitted to a log or as stored here.

The thesis does not tell to which log it fitted them. Stored are those of LLNL Thunder, on which the
two wavelet models differ as in its chapter 4: the plain one lacks the long pauses, and so the
bursts between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from analysis.models.arrivals_poisson import Poisson
from analysis.models.arrivals_wavelet import Wavelet
from analysis.models.arrivals_zeros import WaveletZeros
from analysis.models.part import ArrivalModel
from environment.errors import ModelFileError
from environment.model_files import ModelFormat

#: The log whose arrivals are stored, by the name that studies give it.
LOG = "Thunder"

#: s; T, over which arrivals are counted (chapters 4 and 5).
TIME_SCALE_S = 900.0


class Pattern(NamedTuple):
    """A pattern of arrivals (section 6.1)."""

    label: str  #: in words
    model: type[ArrivalModel]


#: Patterns by the index that the thesis gives its workloads, b_N or g_LB, from calm to bursty.
PATTERNS = {
    "N": Pattern("Poisson", Poisson),
    "L": Pattern("long range dependent", Wavelet),
    "LB": Pattern("dependent and bursty", WaveletZeros),
}

#: What a file of such arrivals says it is.
FILES = ModelFormat(
    "hpcrowd arrival patterns", 1, "arrivals of three patterns", "a fit", "fit them again"
)

#: Where the stored ones are.
STORED = Path(__file__).parent / "trained" / "Thunder-arrivals.json"


@dataclass(frozen=True)
class Arrivals:
    """How jobs of each pattern arrive.

    Attributes
    ----------
    models
        By name of :data:`PATTERNS`.
    log
        The log that they were fitted to: its name, file and checksum.
    """

    models: Mapping[str, ArrivalModel]
    log: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return them as plain data."""
        models = {name: model.model_dump(mode="json") for name, model in self.models.items()}
        return {"log": dict(self.log), "models": models}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], source: str) -> Arrivals:
        """Return what :meth:`to_json` wrote.

        Raises
        ------
        ModelFileError
            When it is damaged; ``source`` names it.
        """
        try:
            models = {
                name: pattern.model.model_validate(data["models"][name])
                for name, pattern in PATTERNS.items()
            }
            return cls(models, data["log"])
        except (KeyError, TypeError, ValidationError) as error:
            told = str(error).splitlines()[0]
            raise ModelFileError(f"{source}: damaged, {told}; {FILES.again}") from None


def fit_arrivals(submit: NDArray[np.float64], log: Mapping[str, Any]) -> Arrivals:
    """Return the arrivals of a log in all patterns.

    Parameters
    ----------
    submit
        s, rising, shape (jobs,): those of the jobs that completed, as in all the thesis.
    log
        Which log.

    Raises
    ------
    ModelFitError
        When one cannot be fitted.
    UnavailableError
        When PyWavelets is not installed.
    """
    models: dict[str, ArrivalModel] = {
        "N": Poisson.fit(submit),
        "L": Wavelet.fit(submit, time_scale_s=TIME_SCALE_S),
        "LB": WaveletZeros.fit(submit, time_scale_s=TIME_SCALE_S),
    }
    return Arrivals(models, log)


def stored_arrivals() -> Arrivals:
    """Return those of :data:`LOG`, for which no trace is needed."""
    return Arrivals.from_json(FILES.read(STORED), STORED.name)
