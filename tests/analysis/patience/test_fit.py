"""Fitting patience: what is known of waits, and known hazards found again."""

import numpy as np
import pytest
from hpcrowd.agents.patience.submissions import EDGES
from hpcrowd.analysis.patience.fit import Waits, fit_patience
from hpcrowd.environment.errors import TraceError

pytest.importorskip("sklearn", reason="no scikit-learn: pip install 'hpcrowd[fits]'")


def made(make_trace, patience, starts, users=20):
    """A log of jobs that leave after their patience, or start before."""
    gone = patience < starts
    return make_trace(
        *(
            {
                "submit": 600 * place, "wait": wait, "run": 0 if left else 60,
                "status": 5 if left else 1, "user": place % users, "requested_processors": 4,
                "requested_time": 3600, "queue": 1,
            }
            for place, (wait, left) in enumerate(
                zip(np.minimum(patience, starts), gone, strict=True)
            )
        )
    )  # fmt: skip


@pytest.fixture(scope="module")
def log(make_trace):
    """4,000 jobs that are given up after 10,000 s on average, unless they start in 5,000 s."""
    generator = np.random.default_rng(0)
    return made(
        make_trace, *(generator.exponential(mean, 4000).astype(int) for mean in (10_000, 5000))
    )


def test_known_patience_is_found(log):
    """Draws have the median of the distribution that the log was made of, although most start."""
    model, waits = fit_patience([log]), Waits.of(log)
    found = model.draw(waits.found, np.random.default_rng(0))
    assert np.median(found) == pytest.approx(10_000 * np.log(2), rel=0.1)
    (about,) = model.provenance["logs"]
    assert (about["jobs"], about["given_up"]) == (4000, waits.gone.sum())


def test_each_bin_seen_is_a_row(make_trace):
    """A job that left is an event in its last bin; one that started, and a later one, is none."""
    patience, starts = np.array([15, 100, EDGES[-1] + 5]), np.array([20, 30, EDGES[-1] + 9])
    waits = Waits.of(made(make_trace, patience, starts))
    seen = waits.seen()
    assert seen.job[:5].tolist() == [0, 0, 1, 1, 1]
    assert seen.place[:5].tolist() == [0, 1, 0, 1, 2]
    assert np.flatnonzero(seen.gone).tolist() == [1]
    before = waits.seen(before=615)  # the second job was submitted at 600 s
    assert before.job.tolist() == [0, 0, 1, 1]
    assert np.flatnonzero(before.gone).tolist() == [1]


def test_without_jobs_given_up_there_is_nothing_to_fit(make_trace):
    """One line says so."""
    patience = np.full(5, 100)
    with pytest.raises(TraceError, match="no job was given up in the queue"):
        fit_patience([made(make_trace, patience, patience)])
