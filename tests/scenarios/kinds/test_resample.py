"""The scenario and the command: one configuration, one run, one folder; and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from hpcrowd.analysis.results import read_results
from hpcrowd.environment import JobTable, State, read_swf, write_swf
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.commands.setting_options import named_numbers
from hpcrowd.scenarios.kinds.resample import ResampleConfig, resample

from tests.support.populations import small_log

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def log(make_trace: Callable[..., Trace]) -> Trace:
    """Return a log of 12 users, half of them long-term."""
    return small_log(make_trace)


@pytest.fixture
def log_file(log: Trace, tmp_path: Path) -> Path:
    """Return the path of the log."""
    write_swf(log, tmp_path / "log.swf")
    return tmp_path / "log.swf"


@pytest.mark.parametrize("doing", ["rigid", "think-time", "think-time-windows", "generative"])
def test_every_job_is_accounted_for(log: Trace, doing: str) -> None:
    """What is submitted ends, and nobody submits after the last week."""
    run = resample(log, users=doing, days=42, population="2x")
    assert 0 < len(run.jobs) == run.jobs.count(State.COMPLETED)
    assert run.jobs.submit.max() < 6 * WEEK
    assert run.metrics["jobs_in"] == round(6 * run.population["jobs_per_week_mean"])
    assert run.clock.local(0).isoformat().startswith("1996-12-30T00:00:00")


def test_units_may_be_batches(log: Trace) -> None:
    """The same population in smaller pieces, which wait for each other within sessions, too."""
    choices = {"users": "think-time", "scheduler": "recorded", "sessions": "arrival:10h"}
    sessions, batches = (resample(log, unit=unit, **choices) for unit in ("sessions", "batches"))
    assert len(batches.jobs) == len(sessions.jobs)
    assert batches.jobs.unit.max() > sessions.jobs.unit.max()


def test_users_of_groups_are_made_from_a_model(log: Trace) -> None:
    """Batches of its groups; a model that is handed over is not fitted again."""
    pytest.importorskip("kmedoids")
    from hpcrowd.analysis.features import Workload
    from hpcrowd.analysis.models import fit

    model = fit("mugm", Workload.from_trace(log), options={"groups": 2})
    run = resample(log, users="mugm", model=model, days=42, pool={"least": 1}, population="2x")
    assert 0 < len(run.jobs) == run.jobs.count(State.COMPLETED)
    assert set(run.jobs.group.tolist()) <= {1, 2}
    again = resample(log, users="mugm", model=model, days=42, pool={"least": 1}, population="2x")
    assert run.jobs.submit.tolist() == again.jobs.submit.tolist()


def test_think_times_are_in_the_trace_that_it_leaves(log: Trace) -> None:
    """Fields 17 and 18 say which job let a session come; rigid users wait for none."""
    waiting = resample(log, users="think-time").to_trace()
    known = waiting["preceding"] > 0
    assert known.sum() > 50
    assert (waiting["think_time"][known] >= 0).all()
    assert (resample(log, users="rigid").to_trace()["preceding"] == -1).all()


def test_results_can_be_read_repeated_and_compared(
    log: Trace, log_file: Path, tmp_path: Path, call: Call
) -> None:
    """The folder holds what it was drawn from, and runs of several seeds are one line.

    The configuration in it, without what names the trace, makes the same jobs.
    """
    options = ("--satisfaction", "alea", "--consequences", "leave=0.5", "--pool", "edge=0.0")
    for seed in ("1", "2"):
        code, _, _ = call("resample", log_file, *options, "--seed", seed, "--out", tmp_path / seed)
        assert 0 == code
    run = read_results(tmp_path / "1")
    visits = pd.read_parquet(tmp_path / "1" / "visits.parquet")
    assert run.population["users_there"] == (visits["what"] == "there").sum()
    assert visits["at"].is_monotonic_increasing
    assert 8 == run.population["pool"]["weeks"]
    assert len(read_swf(tmp_path / "1" / "trace.swf.gz")) == len(run.jobs)
    code, text, _ = call("compare", tmp_path / "1", tmp_path / "2")
    assert 0 == code
    assert "resampled think-time-windows with satisfaction alea, easy, 2 seeds" in text
    stored = json.loads((tmp_path / "1" / "provenance.json").read_text())["configuration"]
    assert ("resample", 64) == (stored.pop("kind"), len(stored.pop("files_sha256")["log.swf"]))
    del stored["trace"]
    again = resample(read_swf(log_file), ResampleConfig.configure(**stored))
    assert run.jobs.submit.tolist() == again.jobs.submit.tolist()


def test_the_summary_tells_who_came_and_went(log_file: Path, call: Call) -> None:
    """Lines for people; one JSON object for programs."""
    code, text, _ = call("resample", log_file, "--satisfaction", "habit", "--population", "1.5x")
    assert 0 == code
    for words in ("pool: 6 long-term users, 6 temporary (0.75 arrive per week)", "users: ",
                  "throughput per week, without the first 4 weeks: "):  # fmt: skip
        assert words in text
    found = json.loads(call("resample", log_file, "--users", "rigid", "--json")[1])
    assert 0 == found["population"]["users_gave_up"]
    assert "resample" == found["configuration"]["kind"]


def test_a_formula_of_ones_own_is_handed_over(log: Trace) -> None:
    """It takes the place of one with a name, and its name is kept."""

    def always_bad(jobs: JobTable, rows: Int64s) -> float:
        return 3.0

    run = resample(log, formula=always_bad, consequences={"leave": 1.0, "returns": 0.0})
    assert "always_bad" in run.configuration["formula"]
    assert run.population["users_gave_up"] > 6
    with pytest.raises(QuantityError, match="formula: has no effect on rigid users"):
        resample(log, formula=always_bad, users="rigid")


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--population", "0x"], "population '0x': not a positive number and an x"),
        (["--population", "0"], "population '0': at least 1"),
        (["--users", "rigid", "--satisfaction", "alea"], "alea: has no effect on rigid users"),
        (["--users", "mugm", "--satisfaction", "habit"], "mugm users generate their work"),
        (["--users", "mugm", "--scheduler", "recorded"], "no recorded waits of mugm users"),
        (["--satisfaction", "x"], "'x': not known; choose none, habit, requested, alea"),
        (["--days", "28"], "warm_up 28d: must be shorter than the run, 28 days"),
        (["--warm-up", "56d"], "warm_up 56d: must be shorter than the run, 56 days, as long as"),
        (["--consequences", "leave"], "cannot read 'leave'; write NAME=NUMBER"),
        (["--pool", "away=0"], "no setting 'away'; there are edge, long_term, least"),
        (["--consequences", "away=0"], "away 0: at least 1"),
        (["--pool", "least=50"], "a pool of 12 users; at least 50 are needed"),
        (["--users", "x"], "users 'x': "),
    ],
)
def test_what_is_wrong_gives_one_line(
    log_file: Path, call: Call, options: list[str], what: str
) -> None:
    """What, its value, the rule and the cure; exit code 2, nothing on standard output."""
    code, text, error = call("resample", log_file, *options)
    assert (2, "") == (code, text)
    assert 1 == len(error.splitlines())
    assert what in error


@pytest.mark.parametrize(
    ("text", "message"),
    [("leave=x", "read"), ("=1", "read"), ("leave=1,leave=2", "read"), (",", "read"),
     ("x=1", "no setting 'x'; there are leave, away")],
)  # fmt: skip
def test_settings_are_names_and_numbers(text: str, message: str) -> None:
    """Whole numbers stay whole; each name once."""
    names = ("leave", "away")
    assert {"leave": 0.1, "away": 2} == named_numbers("consequences", "leave=0.1, away=2", names)
    assert {} == named_numbers("pool", None, names)
    with pytest.raises(QuantityError, match=message):
        named_numbers("consequences", text, names)
