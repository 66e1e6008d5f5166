"""What is run to reproduce Minh 2012, chapter 7: logs, degrees, loads, policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.studies.minh2012_correlation.study import (
    DEGREES,
    LOCALITY_POLICIES,
    POLICIES,
    REPLICATIONS,
    WORKLOAD_JOBS,
)
from hpcrowd.scenarios.studies.running import ARCHIVE, LOGS, Log

#: The log of the first experiment, HPC of the thesis, and its machine (section 7.3.1).
HPC, HPC_PROCESSORS = "HPC2N", 240

#: The logs of the study: HPC2N is required, the others take part where they are there.
STUDIED = {
    HPC: LOGS["HPC2N"],
    "DAS2-fs1": Log("DAS2-fs1-2003-1.swf", f"{ARCHIVE}/l_das2/"),
    "SDSC-DS": LOGS["SDSC-DS"],
    "Thunder": Log("LLNL-Thunder-2007-1*-cln.swf", f"{ARCHIVE}/l_llnl_thunder/"),
    "KTH": LOGS["KTH"],
    "LANL-CM5": LOGS["LANL-CM5"],
    "CEA": LOGS["CEA"],
}

#: Jobs of a log that count: those that completed, status 1, as in all the thesis.
COMPLETED = 1

#: System loads of the first experiment; the thesis does not tell its own.
LOADS = (0.7, 0.8, 0.9)

#: System loads of the second one: under and over 1, as the axes of Figure 7.5.
LOCALITY_LOADS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4)


class Case(NamedTuple):
    """Workloads of the second experiment."""

    log: str
    degree: float | None  #: correlation to set; None leaves it as modelled


#: The thesis has FS3, FS0 and FS2 of DAS-2 with correlations of -0.2, 0 and +0.4, which are not in
#: the archive. Here models of three logs with about these correlations, and the one of DAS-2 that
#: is in the archive with its correlation set.
CASES = (
    Case("HPC2N", None),
    Case("SDSC-DS", None),
    Case("Thunder", None),
    Case("DAS2-fs1", -0.2),
    Case("DAS2-fs1", 0.0),
    Case("DAS2-fs1", 0.4),
)

#: Processes that share the work.
PROCESSES = 2


@dataclass(frozen=True)
class Plan:
    """What is to be run; see :class:`~scenarios.studies.minh2012_correlation.study.Experiments`.

    Attributes
    ----------
    replications, jobs
        Workloads of each kind, and jobs of each.
    seed
        Of everything random.
    degrees, loads, policies
        Of the first experiment.
    locality_loads, locality_policies, cases
        Of the second one.
    """

    replications: int = REPLICATIONS
    jobs: int = WORKLOAD_JOBS
    seed: int = 0
    degrees: tuple[float, ...] = DEGREES
    loads: tuple[float, ...] = LOADS
    policies: tuple[str, ...] = tuple(POLICIES)
    locality_loads: tuple[float, ...] = LOCALITY_LOADS
    locality_policies: tuple[str, ...] = LOCALITY_POLICIES
    cases: tuple[Case, ...] = CASES

    def __post_init__(self) -> None:
        for name, least in (("replications", 2), ("jobs", 100)):
            if getattr(self, name) < least:
                raise QuantityError(f"{name} {getattr(self, name)}: at least {least}")
        for load in (*self.loads, *self.locality_loads):
            if not 0 < load < float("inf"):
                raise QuantityError(f"load {load}: must be positive, for example 0.8")
        if not self.loads or len(set(self.loads)) < len(self.loads):
            raise QuantityError(f"loads {self.loads}: give at least one, each once")


def parse_loads(text: str) -> tuple[float, ...]:
    """Return the loads of a list such as ``0.7,0.9``.

    Raises
    ------
    QuantityError
        When one of them is no number.
    """
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise QuantityError(f"loads {text!r}: not numbers; write for example 0.7,0.9") from None
