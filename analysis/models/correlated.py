"""Generated jobs with another correlation of run times and processors (Minh 2012, section 7.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from analysis.correlation import control_correlation
from analysis.models.part import ArrivalModel, Drawn, JobModel
from environment.quantities import round_half_up
from environment.streams import Streams


def with_correlation(drawn: Drawn, degree: float, random: np.random.Generator) -> Drawn:
    """Return the same jobs with their processors dealt out anew by Control_Correlation.

    Spearman's correlation becomes the largest possible one times the degree. Run times and their
    order, arrivals, users and bags stay; jobs of a bag no longer need the same number of
    processors.

    Parameters
    ----------
    drawn
        The jobs.
    degree
        From -1 to 1.
    random
        The stream to draw from.

    Raises
    ------
    QuantityError
        When the degree is not from -1 to 1.
    """
    whole = np.asarray(round_half_up(drawn.run_time))
    (dealt,) = control_correlation(whole, drawn.processors, [degree], random)
    note = f"processors are dealt out anew to {degree:+g} times the largest correlation"
    return replace(drawn, processors=dealt, notes=[*drawn.notes, note])


@dataclass(frozen=True)
class Correlated:
    """Jobs of a model with another correlation; it stands in for the model when it draws."""

    jobs: JobModel
    degree: float

    def draw(self, count: int, arrivals: ArrivalModel, machine: int, streams: Streams) -> Drawn:
        """Return the jobs; see :meth:`analysis.models.part.JobModel.draw`."""
        drawn = self.jobs.draw(count, arrivals, machine, streams)
        return with_correlation(drawn, self.degree, streams.generator("correlation"))
