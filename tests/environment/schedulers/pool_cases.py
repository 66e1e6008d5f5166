"""Runs of jobs that are submitted as recorded, on a pool of processors."""

from typing import Any

import numpy as np
from hpcrowd import JobTable, Simulation

from tests.support.simulations import simulation_of


def begun(jobs: JobTable, processors: int, scheduler: Any, **options: Any) -> Simulation:
    """Return a simulation to which all jobs were submitted as recorded."""
    model = simulation_of(jobs, processors, scheduler, **options)
    model.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit)
    return model


def ran(jobs: JobTable, processors: int, scheduler: Any, **options: Any) -> Simulation:
    """Return the same after the run."""
    return begun(jobs, processors, scheduler, **options).run()
