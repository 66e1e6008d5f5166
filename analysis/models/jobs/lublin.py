"""The jobs of Lublin and Feitelson 2003: batch and interactive, or one kind.

ln of the run time is hyper-gamma, log2 of the processors two-stage uniform. The mixtures of run
times, whose shares depend on the size of the job, are fitted by expectation-maximization; the
models of Feitelson (:mod:`.feitelson`) use them, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self, override

import numpy as np
from pydantic import Field, model_validator

from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.models.parts.base import ArrivalModel, Drawn, Floats, JobModel, Numbers
from hpcrowd.analysis.models.parts.lublin import (
    BATCH,
    INTERACTIVE,
    Lublin,
    LublinTypes,
    kinds_of,
)
from hpcrowd.analysis.models.parts.users import UserShares, chosen_users
from hpcrowd.environment.errors import ModelFitError, check_choice
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.streams import Streams

#: A fit has converged when the mean log-likelihood rises by less than this in a step; and the most
#: steps of a fit.
TOLERANCE, MOST_STEPS = 1e-8, 500

#: Steps of Newton's method for the shape of a gamma; each doubles the number of digits.
NEWTON_STEPS = 6

#: Largest shape of a gamma: equal values would give an infinite one.
MOST_SHAPE = 1e6


@dataclass(frozen=True)
class Exponentials:
    """Exponential distributions by mean, shape (components,), none below ``least``."""

    least: float

    #: Parameters per component.
    blank: ClassVar[Floats] = np.ones(1)

    def log_density(self, values: Floats, parameters: Floats) -> Floats:
        """Return the log of the density, shape (components, values)."""
        return -np.log(parameters)[:, None] - values / parameters[:, None]

    def likeliest(self, values: Floats, weights: Floats, before: Floats) -> Floats:
        """Return the weighted means; a component without weight stays the same.

        ``weights`` has shape (components, values).
        """
        total = weights.sum(axis=1)
        mean = np.divide(weights @ values, total, out=before.copy(), where=total > 0)
        return np.maximum(mean, self.least)


class Gammas:
    """Gamma distributions of positive values, by shape and scale, shape (components, 2)."""

    #: Parameters per component.
    blank: ClassVar[Floats] = np.ones((1, 2))

    def log_density(self, values: Floats, parameters: Floats) -> Floats:
        """Return the log of the density, shape (components, values)."""
        from scipy.special import gammaln

        shape, scale = parameters[:, :1], parameters[:, 1:]
        found: Floats = (
            (shape - 1) * np.log(values) - values / scale - gammaln(shape) - shape * np.log(scale)
        )
        return found

    def likeliest(self, values: Floats, weights: Floats, before: Floats) -> Floats:
        """Return the maximum-likelihood shapes and scales, by Newton's method (Minka 2002)."""
        from scipy.special import digamma, polygamma

        total = weights.sum(axis=1)
        some = total > 0
        mean = np.divide(weights @ values, total, out=np.ones_like(total), where=some)
        logs = np.divide(weights @ np.log(values), total, out=np.zeros_like(total), where=some)
        # The difference of the two means is positive unless all values are equal.
        apart = np.maximum(np.log(mean) - logs, 0.5 / MOST_SHAPE)
        shape = (3 - apart + np.sqrt((apart - 3) ** 2 + 24 * apart)) / (12 * apart)
        for _ in range(NEWTON_STEPS):
            slope = 1 / shape - polygamma(1, shape)
            step = (np.log(shape) - digamma(shape) - apart) / (shape**2 * slope)
            shape = 1 / (1 / shape + step)
        return np.where(some[:, None], np.stack([shape, mean / shape], axis=1), before)


@dataclass(frozen=True)
class LinearMixture:
    """A fitted mixture whose shares are linear in the size of the job.

    Component k has the share ``(1 - x) small[k] + x large[k]`` at relative size x from 0 to 1. This
    is again a mixture: with probability x the shares are ``large``, else ``small``. Therefore every
    step of expectation-maximization has a closed form, the likelihood never falls, and shares stay
    within 0 to 1. ``parameters`` of the components are as defined by the family; ``converged`` is
    whether the fit converged within its steps.
    """

    small: Floats
    large: Floats
    parameters: Floats
    steps: int
    converged: bool


def fit_linear_mixture(
    values: Floats, size: Floats, family: Exponentials | Gammas, components: int
) -> LinearMixture:
    """Return the mixture of highest likelihood reached from equal parts of the values by rank.

    There is at least one value; relative sizes of jobs are from 0 to 1, shape (values,).
    """
    pairs, counts = np.unique(np.stack([values, size]), axis=1, return_counts=True)
    values, size = pairs
    weight = counts / counts.sum()
    rank = np.cumsum(weight) - weight / 2
    group = np.minimum((rank * components).astype(np.int64), components - 1)
    whole = family.likeliest(values, weight[None, :], family.blank)
    parameters = family.likeliest(
        values,
        (group == np.arange(components)[:, None]) * weight,
        np.repeat(whole, components, axis=0),
    )
    small = large = np.full(components, 1 / components)
    last, steps, converged = -np.inf, 0, False
    while steps < MOST_STEPS and not converged:
        steps += 1
        share = np.outer(small, 1 - size) + np.outer(large, size)
        logs = family.log_density(values, parameters)
        top = logs.max(axis=0)
        joint = share * np.exp(logs - top)
        total = joint.sum(axis=0)
        likelihood = float(weight @ (np.log(total) + top))
        converged = likelihood - last < TOLERANCE
        last = likelihood
        belongs = joint / total * weight
        part = np.divide(belongs, share, out=np.zeros_like(share), where=share > 0)
        small, large = (
            _shares(small * (part @ (1 - size)), small),
            _shares(large * (part @ size), large),
        )
        parameters = family.likeliest(values, belongs, parameters)
    return LinearMixture(small, large, parameters, steps, converged)


def _shares(weights: Floats, before: Floats) -> Floats:
    total = weights.sum()
    return weights / total if total > 0 else before


#: How often a run time that is too long is drawn again before it is cut.
MOST_ROUNDS = 100


class HyperGamma(Numbers):
    """ln of the run time is gamma(a1, b1) with probability p = pa n + pb, else gamma(a2, b2)."""

    a1: float = Field(gt=0, description="shape of the first gamma of ln(run time in s)")
    b1: float = Field(gt=0, description="its scale")
    a2: float = Field(gt=0, description="shape of the second")
    b2: float = Field(gt=0, description="its scale")
    pa: float = Field(description="1/processor; slope of the first one's probability over the size")
    pb: float = Field(description="its intercept; the probability is limited to 0 to 1")
    longest_log_s: float = Field(
        12.0, gt=0, description="ln(s); run times with a larger log are drawn again (1.9 days)"
    )

    def share(self, processors: Int64s) -> Floats:
        """Return the probability of the first gamma."""
        return np.clip(self.pa * processors + self.pb, 0, 1)

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
    """Return the maximum-likelihood distribution, with notes.

    The probability p stays within 0 to 1 up to the size of the machine, and no job is larger. Run
    times are truncated to whole seconds: t s is taken as t + 1/2, and 0 s as 1 s. The fit, by
    expectation-maximization, ignores that long run times are drawn again; the longest run time is
    that of the jobs.
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


#: Recommendations of the authors' program: bounds of ``med_below_high`` and ``lower_probability``,
#: and the largest distance of ``low`` from log2 of the smallest parallel size.
MED_BELOW_HIGH, LOWER_PROBABILITY, LOW_SHIFT = (1.5, 3.5), (0.7, 0.95), 0.2

#: Probability of a size that the model cannot make, so that its log exists.
LEAST = 1e-12

#: Steps of improving the shares of the three ways to a size.
SHARE_STEPS = 60


class TwoStage(Numbers):
    """The distribution of the processors of jobs.

    A job is either serial, or log2 of its size is uniform between ``low`` and a middle value or
    between that and the highest; with a given probability it is then rounded to a whole number.
    """

    serial: float = Field(ge=0, le=1, description="probability of a serial job")
    power: float = Field(ge=0, le=1, description="probability that log2 of the size is rounded")
    low: float = Field(description="log2 of processors; the least (ULow)")
    med_below_high: float = Field(ge=0, description="log2; UHi - UMed")
    high_below_machine: float = Field(0.0, ge=0, description="log2; log2 of the machine - UHi")
    lower_probability: float = Field(
        ge=0, le=1, description="probability of the lower part, below UMed (UProb)"
    )

    @model_validator(mode="after")
    def _adds_up(self) -> TwoStage:
        if self.serial + self.power > 1 + 1e-9:
            raise ValueError(f"serial {self.serial} and power {self.power}: more than 1 together")
        return self

    def bounds(self, machine: int) -> tuple[float, float, float]:
        """Return ULow, UMed and UHi on a machine, in order."""
        high = max(float(np.log2(machine)) - self.high_below_machine, 0.0)
        low = min(self.low, high)
        return low, max(high - self.med_below_high, low), high

    def draw(self, count: int, machine: int, random: np.random.Generator) -> Int64s:
        """Return sizes in processors, shape (count,)."""
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
            return self.lower_probability * _uniform(log, low, med) + (
                1 - self.lower_probability
            ) * _uniform(log, med, high)

        # Sizes rounded to more than the machine become the machine, those below 1 become 1.
        last = sizes >= machine
        upper = np.where(last, np.inf, np.log2(sizes + 0.5))
        lower = np.where(sizes <= 1, -np.inf, np.log2(np.maximum(sizes - 0.5, 0.5)))
        whole = np.floor(np.log2(sizes))
        exact = 2**whole == sizes
        # If the machine is not a power of two, the next larger power is cut to it.
        edge = np.where(exact, whole, whole + 1) - 0.5
        edge = np.where(sizes <= 1, -np.inf, edge)
        end = np.where(last, np.inf, np.where(exact, whole + 0.5, edge))
        return np.stack(
            [
                (sizes == 1).astype(np.float64),
                below(end) - below(np.minimum(edge, end)),
                below(upper) - below(lower),
            ]
        )


def fit_two_stage(processors: Int64s, machine: int) -> tuple[TwoStage, list[str]]:
    """Return the maximum-likelihood distribution of sizes within the authors' recommendations.

    UHi is log2 of the largest job, which may be the machine. ULow, UMed and UProb are fitted within
    the bounds of this module, together with the probabilities of serial and of rounded sizes.
    """
    from scipy.optimize import minimize

    sizes, counts = np.unique(processors, return_counts=True)
    weight = counts / counts.sum()
    parallel = sizes[sizes > 1]
    if not len(parallel):
        only = TwoStage(serial=1, power=0, low=1, med_below_high=2, lower_probability=0.8)
        return only, ["sizes: all jobs are serial; the sizes of parallel jobs are chosen here"]
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
        f"sizes: {name} {value:.2f} is at the bound that the authors recommend"
        for name, value, (low, high) in zip(names, found, bounds, strict=True)
        if not low + 1e-3 < value < high - 1e-3
    ]
    return made(found, serial, power), notes


def _uniform(log: Floats, low: float, high: float) -> Floats:
    if high > low:
        return ((log - low) / (high - low)).clip(0, 1)
    return (log >= low).astype(np.float64)


class JobKind(Numbers):
    """Sizes and run times of one kind of jobs."""

    sizes: TwoStage = Field(description="processors")
    run_times: HyperGamma = Field(description="run times by size")


def _kind(
    sizes: tuple[float, float, float, float, float, float], times: tuple[float, ...]
) -> JobKind:
    serial, power, low, med, high, lower = sizes
    a1, b1, a2, b2, pa, pb = times
    return JobKind(
        sizes=TwoStage(
            serial=serial,
            power=power,
            low=low,
            med_below_high=high - med,
            high_below_machine=PROGRAM_MACHINE - high,
            lower_probability=lower,
        ),
        run_times=HyperGamma(a1=a1, b1=b1, a2=a2, b2=b2, pa=pa, pb=pb),
    )


#: log2 of the machine for which UMed and UHi are given in the authors' program.
PROGRAM_MACHINE = 7.0

#: The authors' parameters (m_lublin99.c): serial, pow2, ULow, UMed, UHi, UProb; a1, b1, a2, b2,
#: pa, pb.
PUBLISHED: dict[str, JobKind] = {
    "batch": _kind(
        (0.2927, 0.6686, 1.2, 5, 7, 0.875), (6.57, 0.823, 639.1, 0.0156, -0.003, 0.6986)
    ),
    "interactive": _kind(
        (0.1541, 0.625, 1, 3, 5.5, 0.705), (3.8351, 0.6605, 7.073, 0.6856, -0.0118, 0.9156)
    ),
    "typeless": _kind((0.244, 0.576, 0.8, 4.5, 7, 0.86), (4.2, 0.94, 312, 0.03, -0.0054, 0.78)),
}


class LublinJobs(JobModel):
    """Two kinds of jobs, each with its sizes, run times and arrivals.

    The queue gives the kind, as in the authors' program: 0 interactive, 1 batch; with one kind it
    is unknown.
    """

    name: ClassVar[str] = "lublin"
    title: ClassVar[str] = "batch and interactive jobs: two-stage uniform sizes, hyper-gamma times"
    source: ClassVar[str] = "Lublin and Feitelson 2003; their program m_lublin99.c"
    kind: ClassVar[str] = "queue"

    batch: JobKind = Field(description="batch jobs, or all")
    interactive: JobKind | None = Field(None, description="interactive jobs; null for one kind")
    interactive_share: float = Field(
        0.0, ge=0, le=1, description="share of interactive jobs, if arrivals do not have kinds"
    )
    users: UserShares = Field(description="users who submit")

    @classmethod
    @override
    def fit(cls, workload: Workload, *, kinds: Literal["by-queue", "one"] = "by-queue") -> Self:
        """Return the model of a workload.

        Probabilities of serial jobs and powers of two, ULow, UMed and UProb are maximum-likelihood
        estimates within the authors' recommendations; UHi is that of the largest job; the gammas
        and p come from expectation-maximization; the longest run time is that of the workload.

        With ``kinds="by-queue"`` jobs of queue 0 are interactive, if there are 100 of each kind;
        ``one`` is one kind for all.
        """
        if not len(workload):
            raise ModelFitError(f"model {cls.name}: 0 jobs", "one or more are needed")
        check_choice("kinds", kinds, ("by-queue", "one"))
        machine = workload.machine or int(workload.processors.max())
        kind = None if kinds == "one" else kinds_of(workload)
        if kind is None:
            batch, notes = _fit_kind(workload, machine)
            interactive, share = None, 0.0
        else:
            batch, notes = _fit_kind(workload.take(np.flatnonzero(kind == BATCH)), machine)
            quick = workload.take(np.flatnonzero(kind == INTERACTIVE))
            interactive, more = _fit_kind(quick, machine)
            notes = [*(f"batch: {note}" for note in notes), *(f"interactive: {n}" for n in more)]
            share = float(np.mean(kind == INTERACTIVE))
        found = cls(
            batch=batch,
            interactive=interactive,
            interactive_share=share,
            users=UserShares.fit(workload),
            notes=tuple(f"{cls.name}: {note}" for note in notes),
        )
        found._kinds = kind
        return found

    @classmethod
    @override
    def published(cls, machine: int) -> Self:
        return cls(
            batch=PUBLISHED["batch"],
            interactive=PUBLISHED["interactive"],
            interactive_share=LublinTypes.published().interactive_share,
            users=chosen_users(),
        )

    @override
    def published_arrivals(self) -> ArrivalModel:
        return LublinTypes.published() if self.interactive is not None else Lublin.published()

    @override
    def draw(self, count: int, arrivals: ArrivalModel, machine: int, streams: Streams) -> Drawn:
        times, kinds = arrivals.times_and_kinds(count, streams.generator("arrivals"))
        return self.jobs(times, machine, streams, kinds)

    @override
    def jobs(
        self, arrivals: Floats, machine: int, streams: Streams, kinds: Int64s | None = None
    ) -> Drawn:
        """Return a job for each arrival; ``kinds`` are those of the arrivals, if known."""
        count = len(arrivals)
        random = streams.generator("jobs")
        quick = np.zeros(count, bool)
        if self.interactive is not None:
            drawn = streams.generator("kinds").random(count) < self.interactive_share
            quick = drawn if kinds is None else kinds == INTERACTIVE
        size = np.zeros(count, np.int64)
        run_time = np.zeros(count)
        for kind, which in ((self.batch, ~quick), (self.interactive, quick)):
            if kind is not None:
                size[which] = kind.sizes.draw(int(which.sum()), machine, random)
                run_time[which] = kind.run_times.draw(size[which], random)
        user, group = self.users.assign(count, streams.generator("users"))
        queue = np.where(quick, INTERACTIVE, BATCH)
        if self.interactive is None:
            queue[:] = UNKNOWN
        return Drawn.of(arrivals, run_time, size, user=user, group=group, queue=queue)


class LublinOneKind(LublinJobs):
    """The same model with one kind of jobs."""

    name: ClassVar[str] = "lublin-typeless"
    title: ClassVar[str] = "the same for one kind of jobs"

    @classmethod
    @override
    def fit(cls, workload: Workload) -> Self:  # type: ignore[override]
        """Return the model of a workload, as :meth:`LublinJobs.fit` for one kind of jobs."""
        return super().fit(workload, kinds="one")

    @classmethod
    @override
    def published(cls, machine: int) -> Self:
        return cls(batch=PUBLISHED["typeless"], users=chosen_users())


def _fit_kind(workload: Workload, machine: int) -> tuple[JobKind, list[str]]:
    processors = np.minimum(workload.processors, machine)
    sizes, told = fit_two_stage(processors, machine)
    times, more = fit_hyper_gamma(workload.run_time, processors, machine)
    return JobKind(sizes=sizes, run_times=times), [*told, *more]
