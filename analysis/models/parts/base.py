"""Parts of workload models: how jobs arrive, and what they are like.

A part is a set of named numbers: fitted from a workload, or published. It is plain data in a file,
checked when it is read.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, override

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from hpcrowd.analysis.features.workload import Workload
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.streams import Streams

Floats = NDArray[np.float64]


@dataclass
class Drawn:
    """Jobs that a model made up, in the order of their submission.

    Attributes
    ----------
    submit
        s from the beginning on, rising, shape (jobs,).
    run_time
        s, at least 0.
    processors
        At least 1, at most those of the machine.
    user, group, executable, queue
        Numbers from 1 on; -1 none.
    requested_time
        s; -1 none.
    bag
        Jobs with the same number belong together: they have the same user and ask for the same
        time; by default each job is alone.
    follows
        Place of the job whose end makes the user submit this one at once; -1 none.
    notes
        What is to be known of how they were drawn.
    """

    submit: Floats
    run_time: Floats
    processors: Int64s
    user: Int64s
    group: Int64s
    executable: Int64s
    queue: Int64s
    requested_time: Floats
    bag: Int64s
    follows: Int64s
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.submit)

    def first(self, count: int) -> Self:
        """Return the first jobs."""
        cut: dict[str, Any] = {
            name: column[:count] for name, column in vars(self).items() if name != "notes"
        }
        return replace(self, **cut)

    @classmethod
    def of(cls, submit: Floats, run_time: Floats, processors: Int64s, **others: Any) -> Self:
        """Return jobs; what is not given is unknown.

        Parameters
        ----------
        submit, run_time, processors, **others
            As the attributes.
        """
        size = len(submit)
        unknown = {
            name: np.full(size, UNKNOWN, np.int64)
            for name in ("user", "group", "executable", "queue", "follows")
        }
        return cls(
            submit,
            run_time,
            processors,
            **{
                "requested_time": np.full(size, float(UNKNOWN)),
                "bag": np.arange(size),
                **unknown,
                **others,
            },
        )


class Numbers(BaseModel):
    """Named numbers that are checked and do not change; a field has a description with its unit."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Part(Numbers):
    """Named numbers of a model.

    Every field has a description with its unit; arrays are tuples. A subclass has a ``name``, and
    a ``source`` that says where its definition comes from.
    """

    #: What it is called in files and on the command line.
    name: ClassVar[str]

    #: What it is, in one line.
    title: ClassVar[str]

    #: Where its definition comes from: paper, section, equation.
    source: ClassVar[str]

    notes: tuple[str, ...] = Field((), description="what the fit has to tell, for people")

    @override
    def __eq__(self, other: object) -> bool:
        # Fields alone: arrays that were derived from them and kept do not compare.
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in type(self).model_fields)

    @override
    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in type(self).model_fields))


class ArrivalModel(Part):
    """How jobs arrive.

    A subclass writes :meth:`fit` and :meth:`times`.
    """

    @classmethod
    @abstractmethod
    def fit(cls, workload: Workload) -> ArrivalModel:
        """Return the model of the arrivals of a workload.

        What a name for fitting only returns is of another class.

        Raises
        ------
        ModelFitError
            When it cannot be fitted, with the parameter and the reason.
        """

    @abstractmethod
    def times(self, count: int, random: np.random.Generator) -> Floats:
        """Return arrival times, s from the beginning on, rising, shape (count,).

        Parameters
        ----------
        count
            How many; 1 or more.
        random
            The stream to draw from.
        """

    def times_and_kinds(
        self, count: int, random: np.random.Generator
    ) -> tuple[Floats, Int64s | None]:
        """Return :meth:`times`, and the kind of job that each arrival brings.

        What a number means is between arrivals and jobs; None where arrivals tell no kinds.
        """
        return self.times(count, random), None


class JobModel(Part):
    """What jobs are like.

    A subclass writes :meth:`fit` and :meth:`jobs`; one whose jobs decide about arrivals writes
    :meth:`draw` instead.
    """

    @classmethod
    @abstractmethod
    def fit(cls, workload: Workload) -> Self:
        """Return the model of a workload.

        Raises
        ------
        ModelFitError
            When it cannot be fitted, with the parameter and the reason.
        """

    @classmethod
    def arriving(cls, workload: Workload) -> Workload:
        """Return the jobs that arrivals are fitted to: all, unless jobs decide about some."""
        return workload

    @classmethod
    def published(cls, machine: int) -> Self:
        """Return the model with the parameters that its paper gives, for a machine of that size.

        Raises
        ------
        QuantityError
            When the paper gives none.
        """
        raise QuantityError(
            f"model {cls.name}: has no published parameters; fit it to a trace: "
            f"hpcrowd fit {cls.name} TRACE -o M.json"
        )

    def published_arrivals(self) -> ArrivalModel:
        """Return the arrivals that go with published parameters.

        Raises
        ------
        QuantityError
            When the paper gives none.
        """
        raise QuantityError(f"model {self.name}: no arrivals with published parameters")

    @abstractmethod
    def jobs(self, arrivals: Floats, machine: int, streams: Streams) -> Drawn:
        """Return a job for each arrival.

        Parameters
        ----------
        arrivals
            s, rising, shape (jobs,).
        machine
            Processors of the machine, which no job exceeds.
        streams
            Where randomness comes from, by name.
        """

    def draw(self, count: int, arrivals: ArrivalModel, machine: int, streams: Streams) -> Drawn:
        """Return ``count`` jobs in the order of their submission.

        Parameters
        ----------
        count
            How many; 1 or more.
        arrivals
            When they arrive.
        machine, streams
            As for :meth:`jobs`.
        """
        times, _ = arrivals.times_and_kinds(count, streams.generator("arrivals"))
        return self.jobs(times, machine, streams)
