"""What is run to reproduce Minh 2012, chapters 4 and 5: traces, and ways to make the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scenarios.minh2012_features import STUDIED as FEATURES
from scenarios.studies import ARCHIVE, Log

#: The traces of chapters 4 and 5 by their abbreviations. NorduGrid is in another format, and NIKHEF
#: is not public: files of these names are taken where somebody has converted them.
STUDIED = {
    **{name: FEATURES[name] for name in ("HPC", "LLN", "LAN", "FS2", "FS3")},
    "NOR": Log("NorduGrid*.swf", f"{ARCHIVE}/"),
    "NIK": Log("NIKHEF*.swf", f"{ARCHIVE}/"),
}

#: Seeds of every model.
SEEDS = 10

#: Processes that share the work.
PROCESSES = 2

#: The trace of Fig. 5.3, on which other ways are tried too.
SCHEDULED = "LLN"


@dataclass(frozen=True)
class Way:
    """A way to make the comprehensive model, or to simulate what it generates.

    Attributes
    ----------
    arrivals
        A name of :data:`analysis.models.registry.ARRIVALS`; chapter 5 takes those of chapter 4.
    options
        Of the fit of its jobs.
    time_scale_s
        s; T, of the arrivals.
    widest
        Processors beyond which jobs are left out of all simulations.
    times
        How many times the workloads of the others.
    jobs
        Whether its jobs are measured; the others are simulated only.
    """

    arrivals: str = "wavelet-zeros"
    options: Mapping[str, Any] = field(default_factory=dict)
    time_scale_s: float | None = None
    widest: int | None = None
    times: int = 1
    jobs: bool = False


#: The ways by the names of :data:`analysis.minh2012_models.WAYS`; the first one is that of the
#: requirements.
PLANNED = {
    "thesis": Way(jobs=True),
    "auto": Way(arrivals="auto", jobs=True),
    "heavy": Way(options={"bag_sizes": "heavy"}, jobs=True),
    "plain": Way(arrivals="wavelet"),
    "hour": Way(time_scale_s=3600),
    "narrow": Way(widest=1024),
    "twice": Way(times=2),
}
