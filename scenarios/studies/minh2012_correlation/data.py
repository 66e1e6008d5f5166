"""Minh 2012, chapter 7: all runs of a study as plain data, and read back.

The page on the study keeps them, so that its tables and pictures can be made again without running
a thousand simulations, and a test can run some of them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.scenarios.studies.minh2012_correlation.foretold import ForetoldSigns
from hpcrowd.scenarios.studies.minh2012_correlation.study import (
    CorrelationRuns,
    Experiments,
    LocalityRuns,
)
from hpcrowd.scenarios.studies.report import plain_numbers


def runs_to_json(study: Experiments, digits: int | None = None) -> dict[str, Any]:
    """Return all runs as plain data.

    Parameters
    ----------
    study
        What was run.
    digits
        Significant digits of slowdowns and correlations; all unless given.
    """

    def numbers(values: NDArray[np.float64]) -> Any:
        return plain_numbers(values, digits)

    first = study.correlation
    return {
        "replications": study.replications,
        "jobs": study.jobs,
        "seed": study.seed,
        "traces": dict(study.logs),
        "absent": list(study.absent),
        "correlation": {
            "degrees": list(first.degrees),
            "loads": list(first.loads),
            "policies": list(first.policies),
            "correlation": numbers(first.correlation),
            "slowdown": numbers(first.slowdown),
        },
        "locality": [
            {
                "name": case.name,
                "log": case.log,
                "degree": case.degree,
                "machine": case.machine,
                "loads": list(case.loads),
                "policies": list(case.policies),
                "correlation": numbers(case.correlation),
                "slowdown": numbers(case.slowdown),
            }
            for case in study.locality
        ],
        "weeks": {
            log: {
                "correlation": numbers(signs.weeks),
                "expected": numbers(signs.expected),
                "compared": signs.compared,
                "right": signs.right,
            }
            for log, signs in study.weeks.items()
        },
    }


def runs_from_json(data: Mapping[str, Any]) -> Experiments:
    """Return what :func:`runs_to_json` wrote."""
    first = data["correlation"]
    return Experiments(
        correlation=CorrelationRuns(
            tuple(first["degrees"]),
            tuple(first["loads"]),
            tuple(first["policies"]),
            _array(first["correlation"]),
            _array(first["slowdown"]),
        ),
        locality=[
            LocalityRuns(
                name=case["name"],
                log=case["log"],
                degree=case["degree"],
                machine=case["machine"],
                loads=tuple(case["loads"]),
                policies=tuple(case["policies"]),
                correlation=_array(case["correlation"]),
                slowdown=_array(case["slowdown"]),
            )
            for case in data["locality"]
        ],
        weeks={
            log: ForetoldSigns(_array(signs["correlation"]), _array(signs["expected"]))
            for log, signs in data["weeks"].items()
        },
        jobs=data["jobs"],
        seed=data["seed"],
        logs=data["traces"],
        absent=data["absent"],
    )


def _array(values: Any) -> NDArray[np.float64]:
    """Return an array of numbers, nan where there is None."""
    return np.array(values, dtype=np.float64)
