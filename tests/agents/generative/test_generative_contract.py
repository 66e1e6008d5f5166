"""The contract of presets that make up their work: they repeat themselves, end, and survive."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hpcrowd.agents import PRESETS, Recipe
from hpcrowd.environment import JobTable, State, Trace
from hpcrowd.scenarios import replay

from tests.support.behaviours import EXTREMES, OUTCOME

GENERATIVE = [name for name, preset in PRESETS.items() if not isinstance(preset, Recipe)]


def bytes_of(jobs: JobTable) -> list[bytes]:
    """All that a run made and did."""
    return [getattr(jobs, name).tobytes() for name in ("user", "processors", "run_time", *OUTCOME)]


@pytest.mark.parametrize("users", GENERATIVE)
@pytest.mark.parametrize("case", EXTREMES)
def test_generative_contract(make_trace: Callable[..., Trace], users: str, case: str) -> None:
    """Same seed, same bytes; every job ends eventually, and users are those of the record."""
    rows, processors = EXTREMES[case]
    trace = make_trace(
        *(
            {
                "submit": submit, "wait": 0, "run": run, "requested_time": run,
                "allocated_processors": width, "requested_processors": width,
                "user": more[0] if more else 1, "status": 1,
            }
            for submit, run, width, *more in rows
        ),
        header=f"; MaxProcs: {processors}",
    )  # fmt: skip
    first, again, other = (replay(trace, users=users, seed=seed).jobs for seed in (0, 0, 1))
    assert bytes_of(first) == bytes_of(again)
    for jobs in (first, other):
        over = (jobs.state == State.COMPLETED) | (jobs.state == State.REJECTED)
        assert np.all(over)
        assert set(jobs.user.tolist()) <= set(trace["user"].astype(int).tolist())
        ran = jobs.state == State.COMPLETED
        assert np.all(jobs.start[ran] >= jobs.submit[ran])


def test_every_preset_is_held_to_a_contract() -> None:
    """Presets are recipes, which the other file is about, or make up their work."""
    assert {"shmueli-feitelson", "generative"} <= set(GENERATIVE)
