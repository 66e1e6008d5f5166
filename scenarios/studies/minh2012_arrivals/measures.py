"""Minh 2012, chapter 6: results of the simulations.

Slowdown is the mean response time over the mean run time (section 5.2.5), not a mean of slowdowns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcrowd.analysis.paired import Estimate
from hpcrowd.environment.grid.das3 import DAS3
from hpcrowd.scenarios.studies.minh2012_correlation.measures import POLICIES as ALL_POLICIES
from hpcrowd.scenarios.studies.minh2012_correlation.measures import Runs, interval

Floats = NDArray[np.float64]

#: Workloads of each pattern on a cluster and on the grid, and jobs of each (section 6.2).
CLUSTER_REPLICATIONS, GRID_REPLICATIONS, WORKLOAD_JOBS = 50, 25, 63_000

#: Schedulers of the single cluster (section 6.3) by our short names, with their labels and colours.
POLICIES = {name: ALL_POLICIES[name] for name in ("fcfs", "easy", "conservative")}

#: The cluster of Fig. 6.3a.
LEIDEN = "LU"

#: Slowdowns of a run of the grid: of a cluster's local jobs, or for ``grid``, of the grid's jobs
#: since their submission to the broker; of jobs submitted while all six workloads arrive, because
#: only then the load is as stated. ``... all`` includes later jobs. ``LU shared`` is of all jobs
#: that the LU ran, since they joined its queue, including those of the grid.
MEASURES = (*(row.name for row in DAS3), "LU all", "LU shared", "grid", "grid all")

#: Largest system load at which a scheduler keeps up with jobs of all widths that arrive at random
#: (found here): beyond it every pattern is overloaded, and their order means little.
SERVED = {"fcfs": 0.7, "easy": 0.8}

#: Two slowdowns are alike up to this factor, which is hardly visible on bars (chosen here).
ALIKE = 1.1


@dataclass(frozen=True)
class ClusterRuns(Runs):
    """The runs on a single cluster (section 6.4.1).

    Attributes
    ----------
    machine
        Processors.
    policies, loads, patterns
        The varied settings; names of :data:`POLICIES` and of ``workloads.PATTERNS``.
    slowdown
        Shape (policies, loads, patterns, replications). Replication r has the same run times and
        processors everywhere.
    """

    axes = ("policies", "loads", "patterns")

    machine: int
    policies: tuple[str, ...]
    loads: tuple[float, ...]
    patterns: tuple[str, ...]
    slowdown: Floats


@dataclass(frozen=True)
class GridRuns(Runs):
    """The runs on DAS-3 (section 6.4.2).

    Attributes
    ----------
    measures
        See :data:`MEASURES`.
    loads
        Grid loads.
    patterns
        Patterns of the grid's jobs, and of the background.
    slowdown
        Shape (measures, loads, grid patterns, background patterns, replications). Replication r has
        the same run times and processors everywhere.
    """

    axes = ("measures", "loads", "patterns", "patterns")

    measures: tuple[str, ...]
    loads: tuple[float, ...]
    patterns: tuple[str, ...]
    slowdown: Floats


def log_ratio(over: Floats, under: Floats) -> Estimate:
    """Return the mean logarithm of slowdowns over others of the same replications.

    Slowdowns of bursty workloads are skewed over replications; ratios are much less so.
    """
    return interval(np.log(over) - np.log(under))
