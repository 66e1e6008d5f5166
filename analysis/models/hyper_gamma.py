"""Run times by Lublin and Feitelson: logs from one of two gammas, by the size of the job."""

from __future__ import annotations

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from analysis.models.linear_mixture import Gammas, fit_linear_mixture
from analysis.models.part import Floats
from environment.jobs import Int64s

#: Times that what is too long is drawn again before it is cut.
MOST_ROUNDS = 100


class HyperGamma(BaseModel):
    """ln of the run time is gamma(a1, b1) with probability p = pa n + pb, else gamma(a2, b2)."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    a1: float = Field(gt=0, description="shape of the first gamma of ln(run time in s)")
    b1: float = Field(gt=0, description="its scale")
    a2: float = Field(gt=0, description="shape of the second")
    b2: float = Field(gt=0, description="its scale")
    pa: float = Field(description="1/processor; how the probability of the first goes with size")
    pb: float = Field(description="that of the smallest jobs; cut to 0 to 1 with pa")
    longest_log_s: float = Field(
        12.0, gt=0, description="ln(s); run times whose log is larger are drawn again (1.9 days)"
    )

    def share(self, processors: Int64s) -> Floats:
        """Return the probability of the first gamma."""
        return np.clip(self.pa * processors + self.pb, 0, 1)

    def mean_log(self, processors: Int64s) -> Floats:
        """Return the mean of ln(run time in s), before anything is drawn again."""
        first = self.share(processors)
        return first * self.a1 * self.b1 + (1 - first) * self.a2 * self.b2

    def draw(self, processors: Int64s, random: np.random.Generator) -> Floats:
        """Return run times in whole s, at least 1, shape (jobs,)."""
        logs = np.full(len(processors), np.inf)
        left = np.arange(len(processors))
        first = self.share(processors)
        for _ in range(MOST_ROUNDS):
            which = random.random(len(left)) < first[left]
            shape, scale = np.where(which, self.a1, self.a2), np.where(which, self.b1, self.b2)
            logs[left] = random.gamma(shape, scale)
            left = left[logs[left] > self.longest_log_s]
            if not len(left):
                break
        found: Floats = np.floor(np.exp(np.minimum(logs, self.longest_log_s)))
        return found


def fit_hyper_gamma(
    run_time: Floats, processors: Int64s, machine: int
) -> tuple[HyperGamma, list[str]]:
    """Return the likeliest distribution, and what is to be said of it.

    Parameters
    ----------
    run_time
        s, shape (jobs,).
    processors
        Of the jobs, at most ``machine``.
    machine
        Processors of the machine; p stays within 0 to 1 up to this size.

    Notes
    -----
    Run times are whole seconds, cut off: that of t s stands for t + 1/2, what took less than 1 s
    for 1 s. Expectation-maximization, without regard to what is drawn again; the longest run time
    is that of the jobs.
    """
    whole = np.maximum(run_time, 1)
    found = fit_linear_mixture(np.log(whole + 0.5), processors / machine, Gammas(), 2)
    order = np.argsort(found.parameters[:, 0] * found.parameters[:, 1], kind="stable")
    (a1, b1), (a2, b2) = found.parameters[order].tolist()
    small, large = float(found.small[order[0]]), float(found.large[order[0]])
    notes = [] if found.converged else [f"run times: not converged after {found.steps} steps"]
    return (
        HyperGamma(
            a1=a1,
            b1=b1,
            a2=a2,
            b2=b2,
            pa=(large - small) / machine,
            pb=small,
            longest_log_s=float(np.log(whole.max() + 1)),
        ),
        notes,
    )
