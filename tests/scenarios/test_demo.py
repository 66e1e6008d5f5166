"""The demo: what it says is true, and what it leaves behind is whole."""

import pytest
from hpcrowd import State, read_swf
from hpcrowd.analysis.results import write_run
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.quantities import format_duration
from hpcrowd.errors import QuantityError
from hpcrowd.scenarios.demo import observations, run_demo

DAYS = 2
LABELS = ["oblivious, FCFS", "oblivious, EASY", "feedback, FCFS", "feedback, EASY"]

#: Files of a run that have the same bytes whenever the seed is the same.
SAME = ("jobs.parquet", "summary.json", "trace.swf.gz")


@pytest.fixture(scope="module")
def runs():
    """Return the four runs of a short demo."""
    return run_demo(days=DAYS)


def test_runs_are_the_four(runs):
    """Oblivious and feedback, FCFS and EASY; only with feedback do users mind the scheduler."""
    assert LABELS == [run.label for run in runs]
    for run in runs:
        kept = {key: run.configuration[key] for key in ("kind", "days", "seed")}
        assert {"kind": "demo", "days": DAYS, "seed": 0} == kept
        assert len(run.jobs) == run.jobs.count(State.COMPLETED) > 0
        assert run.jobs.submit.max() < DAYS * DAY
    oblivious_fcfs, oblivious_easy, fcfs, easy = (run.jobs.submit.tolist() for run in runs)
    assert oblivious_fcfs == oblivious_easy
    assert fcfs != easy
    assert [False, False, True, True] == [run.precedence.after is not None for run in runs]
    said = " ".join(observations(runs))
    words = [f" {len(run.jobs):,} " for run in runs]
    words += [format_duration(run.metrics["wait_mean_s"]) for run in runs]
    assert [] == [word for word in words if word not in said]
    turned = observations([runs[1], runs[0], runs[2], runs[2]])[-1]
    assert [] == [word for word in ("costs", "changes no wait", "0% more") if word not in turned]


def test_same_seed_same_bytes(runs, tmp_path):
    """Files of the same seed are the same byte for byte; another seed makes other jobs."""
    heard: list[str] = []
    again, other = run_demo(days=DAYS, progress=heard.append), run_demo(days=DAYS, seed=1)
    assert LABELS == heard
    for place, three in enumerate(zip(runs, again, other, strict=True)):
        folders = [tmp_path / f"{place}{which}" for which in "abc"]
        for folder, one in zip(folders, three, strict=True):
            folder.mkdir()
            write_run(one, folder, plots=False)
        for name in SAME:
            first, second, third = ((folder / name).read_bytes() for folder in folders)
            assert first == second != third
        trace = read_swf(folders[0] / "trace.swf.gz")
        assert sorted(three[0].jobs.submit.tolist()) == trace["submit"].tolist()


@pytest.mark.parametrize("given", [{"days": 0}, {"seed": -1}, {"processors": 0}])
def test_impossible_demos_are_refused(given):
    """Numbers that cannot be are refused."""
    with pytest.raises(QuantityError, match=r"days 0|seed -1|processors 0"):
        run_demo(**({"days": 1} | given))
