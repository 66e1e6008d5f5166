"""Minh 2012, chapter 6: workloads with arrivals of a pattern, and run times and sizes at random.

Run times and processors are uniform and independent, so that workloads differ only in arrivals
(section 6.1). All patterns have the same run times and processors, and arrive in the same time.
The patterns are fitted to a log (:func:`fit_arrivals`), or those stored here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from hpcrowd.analysis.features.workload import Settings, Workload
from hpcrowd.analysis.models.arrivals.poisson import Poisson
from hpcrowd.analysis.models.arrivals.wavelet import Wavelet, WaveletZeros
from hpcrowd.analysis.models.parts.base import ArrivalModel
from hpcrowd.environment.errors import ModelFileError, QuantityError, check_choice
from hpcrowd.environment.files import ModelFormat
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.streams import Streams
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.scenarios.studies.minh2012_correlation.experiments import STUDIED
from hpcrowd.scenarios.studies.minh2012_correlation.workloads import RandomJobs
from hpcrowd.scenarios.studies.running import find_logs

#: s; longest run time; run times are uniform from 1 s on. It is not in the thesis, and matters only
#: for rounding to seconds: times between arrivals grow with it at a given load.
LONGEST_S = 7_200


@dataclass(frozen=True)
class PatternWorkload(RandomJobs):
    """Jobs that arrive in several patterns, one of which is chosen when they are submitted.

    Attributes
    ----------
    arrivals
        Arrival times by pattern, in mean times between arrivals, rising, shape (jobs,); the last
        one is the number of jobs.
    """

    arrivals: Mapping[str, NDArray[np.float64]]

    def submits(self, pattern: str, mean_gap: float) -> Int64s:
        """Return the submit times, s, shape (jobs,); the last one is jobs x ``mean_gap``."""
        found: Int64s = np.asarray(round_half_up(self.arrivals[pattern] * mean_gap), np.int64)
        return found


def drawn(
    models: Mapping[str, ArrivalModel],
    size: int,
    widest: int,
    streams: Streams,
    longest_s: int = LONGEST_S,
) -> PatternWorkload:
    """Return a workload.

    Parameters
    ----------
    models
        Models of arrivals, by pattern. All draw from the same stream, so that the wavelet models
        have the same coarse rates.
    size
        Jobs.
    widest
        Most processors of a job; they are uniform from 1 on.
    streams
        Where randomness comes from.
    longest_s
        s; the longest run time.
    """
    arrivals = {}
    for pattern, model in models.items():
        times = model.times(size, streams.generator("arrivals"))
        arrivals[pattern] = times * (size / times[-1])
    return PatternWorkload(
        streams.generator("run times").integers(1, longest_s, size, endpoint=True),
        streams.generator("processors").integers(1, widest, size, endpoint=True),
        arrivals,
    )


#: The log whose arrivals are stored, by its name in the studies. The thesis does not say to which
#: log it fitted them. On LLNL Thunder the two wavelet models differ as in its chapter 4: the
#: plain one lacks the long pauses, and so the bursts between them.
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

#: Identification of a file of such arrivals.
FILES = ModelFormat(
    "hpcrowd arrival patterns", 1, "arrivals of three patterns", "a fit", "fit them again"
)

#: File of the stored arrivals.
STORED = Path(__file__).with_name("Thunder-arrivals.json")


@dataclass(frozen=True)
class Arrivals:
    """Models of the arrivals of each pattern.

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
        Submit times, s, rising, shape (jobs,), of the jobs that completed, as in all the thesis.
    log
        Description of the log.

    Raises
    ------
    ModelFitError
        When one cannot be fitted.
    UnavailableError
        When PyWavelets is not installed.
    """
    workload = Workload.of(submit, 0, settings=Settings(time_scale_s=TIME_SCALE_S))
    models: dict[str, ArrivalModel] = {
        "N": Poisson.fit(workload),
        "L": Wavelet.fit(workload),
        "LB": WaveletZeros.fit(workload),
    }
    return Arrivals(models, log)


def stored_arrivals() -> Arrivals:
    """Return the stored arrivals of :data:`LOG`, which need no trace."""
    return Arrivals.from_json(FILES.read(STORED), STORED.name)


def arrivals_of(traces: str | os.PathLike[str] | None, log: str = LOG) -> Arrivals:
    """Return arrivals fitted to a log, or the stored ones without a folder of traces.

    Parameters
    ----------
    traces
        Folder with the traces, plain or gzipped.
    log
        A name of :data:`hpcrowd.scenarios.studies.minh2012_correlation.experiments.STUDIED`.

    Raises
    ------
    QuantityError
        When the log is not known, or is not stored and no folder is given.
    TraceError
        When its trace is missing or cannot be read.
    ModelFitError
        When its arrivals cannot be modelled.
    UnavailableError
        When PyWavelets is not installed.
    """
    check_choice("log", log, STUDIED)
    if traces is None:
        if log != LOG:
            raise QuantityError(f"log {log}: only the arrivals of {LOG} are stored; give --traces")
        return stored_arrivals()
    path = find_logs(traces, {log: STUDIED[log]}, [log])[log]
    trace = read_trace(path)
    facts = {"name": log, "source": path.name, "sha256": trace.sha256}
    return fit_arrivals(Workload.from_trace(trace, name=log).submit, facts)
