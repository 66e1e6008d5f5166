"""Features of temporal locality: how often similar run times follow each other.

Definitions of Minh 2012, sections 2.3.2 and 3.3; the classification is that of
:mod:`hpcrowd.analysis.features.locality`.
"""

from __future__ import annotations

import numpy as np

from hpcrowd.analysis.features.bags import bags
from hpcrowd.analysis.features.feature import Feature, Group
from hpcrowd.analysis.features.locality import Classes, Zipf, classify, run_lengths, zipf_exponent
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.environment.errors import UnavailableError
from hpcrowd.environment.jobs import Int64s


def run_time_classes(workload: Workload) -> Classes:
    """Return the classes of run times, in the order of submission.

    Raises
    ------
    UnavailableError
        When scikit-learn is not installed, or there are no jobs.
    """

    def find() -> Classes:
        scales = workload.settings
        found = classify(workload.run_time, most=scales.components, resolution=scales.resolution_s)
        workload.remarks.append(found.note)
        return found

    return workload.once("classes", find)


def repetitions(workload: Workload) -> Int64s:
    """Return the lengths of repetitions of similar run times, the run lengths."""
    if len(workload) < 2:
        raise UnavailableError("fewer than 2 jobs")
    return workload.once("runs", lambda: run_lengths(run_time_classes(workload).labels))


def repetition_zipf(workload: Workload) -> Zipf:
    """Return the Zipf distribution of run lengths; Table 3.5."""
    return workload.once("run zipf", lambda: zipf_exponent(repetitions(workload), "run lengths"))


def bag_zipf(workload: Workload) -> Zipf:
    """Return the Zipf distribution of the sizes of bags, single jobs among them; Fig. 3.5."""
    return workload.once("bag zipf", lambda: zipf_exponent(bags(workload).size, "bag sizes"))


GROUP = Group(
    "locality",
    "Temporal locality",
    (
        Feature(
            "run_time_classes",
            "classes of run times",
            "components of the mixture of normal distributions that BIC chooses, on run times in s",
            "Minh 2012, section 3.3.1",
            lambda w: run_time_classes(w).components,
        ),
        Feature(
            "run_length_mean",
            "run length, mean",
            "jobs in sequence whose run times are of the same class",
            "Minh 2012, section 2.3.2",
            lambda w: float(np.mean(repetitions(w))),
            by_order=True,
        ),
        Feature(
            "run_length_max",
            "run length, longest",
            "the longest repetition",
            "Minh 2012, section 2.3.2",
            lambda w: int(repetitions(w).max()),
            by_order=True,
        ),
        Feature(
            "run_length_zipf_exponent",
            "Zipf exponent of run lengths",
            "by maximum likelihood: the smaller, the more locality",
            "Minh 2012, Eq. 3.1, Table 3.5",
            lambda w: repetition_zipf(w).exponent,
            by_order=True,
        ),
        Feature(
            "bag_size_zipf_exponent",
            "Zipf exponent of bag sizes",
            "by maximum likelihood, single jobs among the bags",
            "Minh 2012, section 3.4, Fig. 3.5",
            lambda w: bag_zipf(w).exponent,
            by_order=True,
        ),
    ),
)
