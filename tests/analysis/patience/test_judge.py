"""Judging fitted patience: users who differ are recognised, and weeks are foreseen."""

import json

import numpy as np
import pytest
from hpcrowd.analysis.patience.fit import Waits
from hpcrowd.analysis.patience.judge import FITTED, OWN, OWN_SO_FAR, judge_patience
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.traces.formats.swf import write_swf

pytest.importorskip("sklearn", reason="no scikit-learn: pip install 'hpcrowd[fits]'")


@pytest.fixture(scope="module")
def trace(make_trace):
    """Ten weeks of 3,000 jobs: of ten users, five give up ten times as soon as the others."""
    generator, jobs = np.random.default_rng(0), 3000
    user = generator.integers(0, 10, jobs)
    patience = generator.exponential(np.where(user < 5, 3000, 30_000)).astype(int)
    starts = generator.exponential(2000, jobs).astype(int)
    submit = np.sort(generator.integers(0, 10 * WEEK, jobs))
    gone, wait = patience < starts, np.minimum(patience, starts)
    return make_trace(
        *(
            {
                "submit": submit[row], "wait": wait[row], "run": 0 if gone[row] else 60,
                "status": 5 if gone[row] else 1, "user": user[row] + 1, "queue": 1,
                "requested_processors": 4, "requested_time": 3600,
            }
            for row in range(jobs)
        )
    )  # fmt: skip


@pytest.fixture(scope="module")
def judged(trace):
    """The judgement of that log."""
    return judge_patience(Waits.of(trace))


def test_users_who_differ_are_told_apart(judged):
    """Concordance and likelihood are beyond the interval better than those of a constant rate."""
    constant, fitted = judged.models["constant rate"], judged.models[FITTED]
    assert constant.concordance == pytest.approx(0.5)
    assert all(gain.low > 0 for gain in constant.gain.values())
    # Of two jobs, of which one is given up: half are alike, of the rest 10 of 11 are of the hasty.
    assert fitted.concordance == pytest.approx(judged.models[OWN].concordance, abs=0.03)
    assert 0.6 < fitted.concordance < 0.8
    assert fitted.gain == {}


def test_weeks_are_foreseen(judged):
    """Where nothing changes, numbers of weeks are within chance, in intervals that hold them."""
    assert len(judged.weeks) in (4, 5)
    for name in judged.models:
        assert judged.ratio(name) == pytest.approx(1, abs=0.15)
    assert judged.error(FITTED) < 0.2
    assert judged.held(FITTED) >= 0.75
    fitted = judged.models[FITTED]
    assert fitted.by_wait.sum() == pytest.approx(judged.by_wait.sum(), rel=0.15)
    assert fitted.by_wait == pytest.approx(judged.by_wait, rel=0.5)
    assert judged.by_wait.sum() == judged.given_up


def test_the_same_seed_gives_the_same_bytes(trace, judged):
    """Nothing but the bootstrap is random, and that has its stream."""
    again = judge_patience(Waits.of(trace))
    assert json.dumps(again.to_json()) == json.dumps(judged.to_json())


def test_too_few_jobs_given_up(make_trace):
    """One line says that there are too few."""
    trace = make_trace(*({"submit": 10 * one, "wait": 5, "run": 5, "user": 1} for one in range(9)))
    with pytest.raises(QuantityError, match="patience: 0 jobs given up, too few"):
        judge_patience(Waits.of(trace))


def test_commands(trace, call, tmp_path):
    """Both commands print what they found; options that do not go with them are named."""
    log, out = tmp_path / "log.swf", tmp_path / "patience.json"
    write_swf(trace, log)
    code, printed, _ = call("validate", log, "--patience")
    assert 0 == code
    for part in ("concordance", "Given up in tenths of the waits", OWN_SO_FAR, "weeks"):
        assert part in " ".join(printed.split())
    code, _, err = call("validate", log, "--patience", "--users=rigid", "--month")
    assert (2, True) == (code, "--users, --month: not with --patience" in err)
    code, printed, _ = call("fit", "patience", log, "-o", out)
    assert (0, True) == (code, out.is_file())
    for part in ("given up (", "Given up, if none started", "own then", f"The model is {out}"):
        assert part in " ".join(printed.split())
    code, _, err = call("fit", "patience:x=1", log, "-o", tmp_path / "other.json")
    assert (2, True) == (code, "patience has no options" in err)
