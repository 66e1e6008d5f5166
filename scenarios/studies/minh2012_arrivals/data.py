"""Minh 2012, chapter 6: all runs of a study as plain data, and read back.

The page on the study keeps them, so that its tables and pictures can be made again without running
thousands of simulations, and a test can run some of them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hpcrowd.scenarios.studies.minh2012_arrivals.study import (
    MEASURES,
    ClusterRuns,
    Experiments,
    Floats,
    GridRuns,
)
from hpcrowd.scenarios.studies.report import plain_numbers


def runs_to_json(study: Experiments, digits: int | None = None) -> dict[str, Any]:
    """Return all runs as plain data.

    Parameters
    ----------
    study
        What was run.
    digits
        Significant digits of slowdowns; all unless given.
    """

    def numbers(values: Floats) -> Any:
        return plain_numbers(values, digits)

    cluster, grid = study.cluster, study.grid
    return {
        "jobs": study.jobs,
        "seed": study.seed,
        "settings": dict(study.settings),
        "log": dict(study.log),
        "cluster": {
            "machine": cluster.machine,
            "policies": list(cluster.policies),
            "loads": list(cluster.loads),
            "patterns": list(cluster.patterns),
            "slowdown": numbers(cluster.slowdown),
        },
        "grid": {
            "measures": list(MEASURES),
            "loads": list(grid.loads),
            "patterns": list(grid.patterns),
            "slowdown": numbers(grid.slowdown),
        },
    }


def runs_from_json(data: Mapping[str, Any]) -> Experiments:
    """Return what :func:`runs_to_json` wrote."""
    cluster, grid = data["cluster"], data["grid"]
    return Experiments(
        cluster=ClusterRuns(
            cluster["machine"],
            tuple(cluster["loads"]),
            tuple(cluster["policies"]),
            tuple(cluster["patterns"]),
            np.array(cluster["slowdown"], np.float64),
        ),
        grid=GridRuns(
            tuple(grid["loads"]),
            tuple(grid["patterns"]),
            np.array(grid["slowdown"], np.float64),
        ),
        jobs=data["jobs"],
        seed=data["seed"],
        settings=data["settings"],
        log=data["log"],
    )
