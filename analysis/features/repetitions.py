"""Repetitions in a workload: runs of similar run times and sizes of bags, with Zipf's law."""

from __future__ import annotations

from analysis.features.bags import bags
from analysis.features.locality import Classes, Zipf, classify, run_lengths, zipf_exponent
from analysis.features.workload import Workload
from environment.jobs import Int64s


def run_time_classes(workload: Workload) -> Classes:
    """Return the run times classified, found only once; Minh 2012, section 3.3.1.

    Raises
    ------
    Unavailable
        When there are no jobs, or scikit-learn is not installed.
    """
    return workload.once(
        "run time classes",
        lambda: classify(workload.run_time, most=workload.settings.components),
    )


def repetitions(workload: Workload, of: str) -> Int64s:
    """Return how often something repeats, shape (repetitions,).

    Parameters
    ----------
    workload
        Whose jobs.
    of
        ``runs``: jobs after each other whose run times are of one class (Fig. 3.2); ``bags``: jobs
        of each bag, single jobs among them (Fig. 3.5).
    """
    if of == "bags":
        return bags(workload).size
    return workload.once("run lengths", lambda: run_lengths(run_time_classes(workload).labels))


def repetition_law(workload: Workload, of: str) -> Zipf:
    """Return the Zipf distribution of :func:`repetitions`.

    Raises
    ------
    Unavailable
        When there are no repetitions, or nothing ever repeats.
    """
    what = "bag sizes" if of == "bags" else "run lengths"
    return workload.once(f"zipf of {of}", lambda: zipf_exponent(repetitions(workload, of), what))
