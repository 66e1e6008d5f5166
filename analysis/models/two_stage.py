"""Sizes of jobs by Lublin and Feitelson: serial, powers of two, and two-stage uniform in log2."""

from __future__ import annotations

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from analysis.models.part import Floats
from environment.jobs import Int64s

#: What the authors' program recommends: ``med_below_high`` and ``lower_probability`` within these,
#: and ``low`` at most so far from log2 of the smallest size that is not serial.
MED_BELOW_HIGH, LOWER_PROBABILITY, LOW_SHIFT = (1.5, 3.5), (0.7, 0.95), 0.2

#: Probability that a size is given which the model cannot make, so that a log exists.
LEAST = 1e-12

#: Steps that the shares of the three ways to a size are improved by.
SHARE_STEPS = 60


class TwoStage(BaseModel):
    """How many processors jobs ask for.

    A job is serial; or log2 of its size is uniform between ``low`` and a middle value, or between
    that and the highest; with a certain probability it is then rounded to a whole number.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    serial: float = Field(ge=0, le=1, description="probability of a serial job")
    power: float = Field(ge=0, le=1, description="probability that log2 of the size is rounded")
    low: float = Field(description="log2 of processors; the least (ULow)")
    med_below_high: float = Field(ge=0, description="log2; how far UMed lies below UHi")
    high_below_machine: float = Field(
        0.0, ge=0, description="log2; how far UHi lies below the machine"
    )
    lower_probability: float = Field(
        ge=0, le=1, description="probability of the lower part, below UMed (UProb)"
    )

    @model_validator(mode="after")
    def _adds_up(self) -> TwoStage:
        if self.serial + self.power > 1 + 1e-9:
            raise ValueError(f"serial {self.serial} and power {self.power}: more than 1 together")
        return self

    def bounds(self, machine: int) -> tuple[float, float, float]:
        """Return ULow, UMed and UHi on a machine, where they are in order."""
        high = max(float(np.log2(machine)) - self.high_below_machine, 0.0)
        low = min(self.low, high)
        return low, max(high - self.med_below_high, low), high

    def draw(self, count: int, machine: int, random: np.random.Generator) -> Int64s:
        """Return sizes, processors, shape (count,)."""
        low, med, high = self.bounds(machine)
        way, part, place = random.random((3, count))
        lower = part <= self.lower_probability
        log = np.where(lower, low + (med - low) * place, med + (high - med) * place)
        log = np.where(way <= self.serial + self.power, np.floor(log + 0.5), log)
        size = np.where(way <= self.serial, 1, np.floor(2**log + 0.5))
        return np.clip(size, 1, machine).astype(np.int64)

    def ways(self, sizes: Int64s, machine: int) -> Floats:
        """Return the probability of sizes if serial, if rounded and if neither, (3, sizes)."""
        low, med, high = self.bounds(machine)

        def below(log: Floats) -> Floats:
            found: Floats = self.lower_probability * _uniform(log, low, med) + (
                1 - self.lower_probability
            ) * _uniform(log, med, high)
            return found

        # What is rounded to more than the machine gets the machine, what to less than 1 gets 1.
        last = sizes >= machine
        upper = np.where(last, np.inf, np.log2(sizes + 0.5))
        lower = np.where(sizes <= 1, -np.inf, np.log2(np.maximum(sizes - 0.5, 0.5)))
        whole = np.floor(np.log2(sizes))
        exact = 2**whole == sizes
        # On a machine that is no power of two, the next power up is cut to it.
        edge = np.where(exact, whole, whole + 1) - 0.5
        edge = np.where(sizes <= 1, -np.inf, edge)
        end = np.where(last, np.inf, np.where(exact, whole + 0.5, edge))
        found: Floats = np.stack(
            [
                (sizes == 1).astype(np.float64),
                below(end) - below(np.minimum(edge, end)),
                below(upper) - below(lower),
            ]
        )
        return found

    def probability(self, machine: int) -> Floats:
        """Return the probability of 1, 2, ..., ``machine`` processors, shape (machine,)."""
        shares = np.array([self.serial, self.power, 1 - self.serial - self.power])
        found: Floats = shares @ self.ways(np.arange(1, machine + 1), machine)
        return found


def fit_two_stage(processors: Int64s, machine: int) -> tuple[TwoStage, list[str]]:
    """Return the likeliest distribution of sizes within what the authors recommend.

    Parameters
    ----------
    processors
        Of the jobs, shape (jobs,), at most ``machine``.
    machine
        Processors of the machine.

    Notes
    -----
    UHi is log2 of the largest job, which is the machine where a job fills it. ULow, UMed and UProb
    are sought within the bounds of this module, the probabilities of serial and rounded sizes
    with them.
    """
    from scipy.optimize import minimize

    sizes, counts = np.unique(processors, return_counts=True)
    weight = counts / counts.sum()
    parallel = sizes[sizes > 1]
    if not len(parallel):
        only = TwoStage(serial=1, power=0, low=1, med_below_high=2, lower_probability=0.8)
        return only, ["sizes: all jobs are serial; what others would be like is chosen here"]
    least = float(np.log2(parallel[0]))
    below = max(float(np.log2(machine / parallel[-1])), 0.0)

    def made(parameters: Floats, serial: float = 0, power: float = 0) -> TwoStage:
        return TwoStage(
            serial=serial,
            power=power,
            low=float(parameters[0]),
            med_below_high=float(parameters[1]),
            high_below_machine=below,
            lower_probability=float(parameters[2]),
        )

    def shares(parameters: Floats) -> tuple[Floats, float]:
        ways = np.maximum(made(parameters).ways(sizes, machine), LEAST)
        share = np.full(3, 1 / 3)
        for _ in range(SHARE_STEPS):
            joint = share[:, None] * ways
            share = (joint / joint.sum(axis=0)) @ weight
        return share, float(weight @ np.log(share @ ways))

    bounds = [(least - LOW_SHIFT, least + LOW_SHIFT), MED_BELOW_HIGH, LOWER_PROBABILITY]
    start = np.array([(low + high) / 2 for low, high in bounds])
    found = minimize(
        lambda parameters: -shares(parameters)[1], start, method="Nelder-Mead", bounds=bounds,
        options={"xatol": 1e-3, "fatol": 1e-7, "maxiter": 300},
    ).x  # fmt: skip
    share, _ = shares(found)
    serial, power = float(share[0]), float(min(share[1], 1 - share[0]))
    names = ("ULow", "UHi - UMed", "UProb")
    notes = [
        f"sizes: {name} {value:.2f} is at the bound of what the authors recommend"
        for name, value, (low, high) in zip(names, found, bounds, strict=True)
        if not low + 1e-3 < value < high - 1e-3
    ]
    return made(found, serial, power), notes


def _uniform(log: Floats, low: float, high: float) -> Floats:
    if high > low:
        return ((log - low) / (high - low)).clip(0, 1)
    found: Floats = (log >= low).astype(np.float64)
    return found
