"""What the tests of calibrations share: a log of users whose parameters are known."""

from pathlib import Path

import numpy as np
from hpcrowd.analysis.calibration.priors import Prior
from hpcrowd.analysis.calibration.regression import Table
from hpcrowd.analysis.calibration.statistics import STATISTICS
from hpcrowd.environment.header import Header
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.environment.traces.trace import FIELDS, Trace
from hpcrowd.scenarios.kinds.replay import replay

from tests.scenarios.sweeps.sweep_cases import write_busy

#: What users of the log do: think 0.3 s per s of response, and 20 minutes.
TRUTH = {"slope": 0.3, "intercept": 1200}

#: A population with both free.
POPULATION = """
[[users]]
behaviour = "linear"
line = { slope = 1.0, intercept = "10m" }

[free]
users.0.line.slope = "0..1"
users.0.line.intercept = "log:5m..2h"
"""

#: Names of the parameters in a scenario.
NAMES = ("users.users.0.line.slope", "users.users.0.line.intercept")


def write_known(folder: Path) -> Path:
    """Write a log of users with :data:`TRUTH` on a busy machine; return its path."""
    users = {"users": [{"behaviour": "linear", "line": TRUTH}]}
    jobs = replay(write_busy(folder, 150), users=users, scheduler="easy").jobs
    columns = {name: np.full(len(jobs), -1) for name in FIELDS} | {
        "number": jobs.number,
        "submit": jobs.submit,
        "wait": jobs.start - jobs.submit,
        "run": jobs.end - jobs.start,
        "allocated_processors": jobs.processors,
        "requested_time": jobs.requested_time,
        "status": np.ones(len(jobs), np.int64),
        "user": jobs.user,
    }
    path = folder / "known.swf"
    write_swf(Trace(Header([b"; MaxProcs: 8"]), columns), path)
    return path


def write_population(folder: Path, text: str = POPULATION, name: str = "linear.toml") -> Path:
    """Write a population; return its path."""
    path = folder / name
    path.write_text(text)
    return path


def made_table(draws: int, seed: int = 0) -> Table:
    """Return a table in which some statistics depend on two of three parameters."""
    random = np.random.default_rng(seed)
    priors = (Prior("a", 0, 2), Prior("b", 1, 100, log=True), Prior("nothing", 0, 1))
    shares = random.random((draws, 3))
    values = np.column_stack([prior.values(shares[:, k]) for k, prior in enumerate(priors)])
    noise = random.standard_normal((draws, len(STATISTICS)))
    effect = np.zeros((3, len(STATISTICS)))
    effect[0, :6], effect[1, 4:9] = 0.5, -0.4
    return Table(priors, values, np.exp(5 + shares @ effect + 0.1 * noise))
