"""Resampled populations: one configuration, one run, one folder; requests; what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from hpcrowd import ResampleConfig, read_results, read_swf, read_trace, replay, resample, write_swf
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.jobs import UNKNOWN, State
from hpcrowd.environment.requests import Ask, Requests
from hpcrowd.errors import QuantityError
from hpcrowd.scenarios.commands.options import named_numbers
from hpcrowd.scenarios.kinds.populations.resample import pool_of
from hpcrowd.scenarios.studies.rebound.run import SHUFFLED, draws_of
from hpcrowd.scenarios.whatif.machine import made_up

from tests.support.populations import small_log


@pytest.fixture(scope="module")
def log(make_trace):
    """Return a log of 12 users, half of them long-term."""
    return small_log(make_trace)


@pytest.fixture
def log_file(log, tmp_path):
    """Return the path of the log."""
    write_swf(log, tmp_path / "log.swf")
    return tmp_path / "log.swf"


@pytest.mark.parametrize("doing", ["rigid", "think-time", "think-time-windows", "generative"])
def test_every_job_is_accounted_for(log, doing):
    """What is submitted ends, and nobody submits after the last week."""
    run = resample(log, users=doing, days=42, population="2x")
    assert 0 < len(run.jobs) == run.jobs.count(State.COMPLETED)
    assert run.jobs.submit.max() < 6 * WEEK
    assert run.metrics["jobs_in"] == round(
        6 * run.parts["population"].account["jobs_per_week_mean"]
    )
    assert run.clock.local(0).isoformat().startswith("1996-12-30T00:00:00")


def test_units_and_think_times(log):
    """Units may be batches; fields 17 and 18 say which job let a session come."""
    choices = {"users": "think-time", "scheduler": "recorded", "sessions": "arrival:10h"}
    sessions, batches = (resample(log, unit=unit, **choices) for unit in ("sessions", "batches"))
    assert len(batches.jobs) == len(sessions.jobs)
    assert batches.jobs.unit.max() > sessions.jobs.unit.max()
    waiting = resample(log, users="think-time").to_trace()
    known = waiting["preceding"] > 0
    assert known.sum() > 50
    assert (waiting["think_time"][known] >= 0).all()
    assert (resample(log, users="rigid").to_trace()["preceding"] == -1).all()
    twice, count = (resample(log, population=of, scheduler="recorded") for of in ("2x", "24"))
    assert twice.jobs.submit.tolist() == count.jobs.submit.tolist()


def test_users_of_groups_are_made_from_a_model(log):
    """Batches of its groups; a model that is handed over is not fitted again."""
    pytest.importorskip("kmedoids")
    from hpcrowd import fit
    from hpcrowd.features import Workload

    model = fit("mugm", Workload.from_trace(log), options={"groups": 2})
    run = resample(log, users="mugm", model=model, days=42, pool={"least": 1}, population="2x")
    assert 0 < len(run.jobs) == run.jobs.count(State.COMPLETED)
    assert set(run.jobs.group.tolist()) <= {1, 2}
    again = resample(log, users="mugm", model=model, days=42, pool={"least": 1}, population="2x")
    assert run.jobs.submit.tolist() == again.jobs.submit.tolist()


def test_results_can_be_read_repeated_and_compared(log, log_file, tmp_path, call):
    """The folder holds what it was drawn from, and runs of several seeds are one line."""
    options = ("--satisfaction", "alea", "--consequences", "leave=0.5", "--pool", "edge=0.0")
    for seed in ("1", "2"):
        line = ("resample", log_file, *options, "--seed", seed, "--out", tmp_path / seed)
        code, text, _ = call(*line)
        assert 0 == code
        assert "pool: 6 long-term users, 6 temporary (0.75 arrive per week)" in text
        assert "throughput per week, without the first 4 weeks: " in text
    run = read_results(tmp_path / "1")
    visits = pd.read_parquet(tmp_path / "1" / "visits.parquet")
    assert run.parts["population"].account["users_there"] == (visits["what"] == "there").sum()
    assert visits["at"].is_monotonic_increasing
    assert 8 == run.parts["population"].account["pool"]["weeks"]
    assert len(read_swf(tmp_path / "1" / "trace.swf.gz")) == len(run.jobs)
    code, text, _ = call("compare", tmp_path / "1", tmp_path / "2")
    assert 0 == code
    assert "resampled think-time-windows with satisfaction alea, easy, other cons" in text
    stored = json.loads((tmp_path / "1" / "provenance.json").read_text())["configuration"]
    assert ("resample", 64) == (stored.pop("kind"), len(stored.pop("files_sha256")["log.swf"]))
    del stored["trace"]
    again = resample(read_swf(log_file), ResampleConfig.configure(**stored))
    assert run.jobs.submit.tolist() == again.jobs.submit.tolist()


def test_a_formula_of_ones_own_is_handed_over(log):
    """It takes the place of one with a name, and its name is kept."""

    def always_bad(jobs, rows):
        return 3.0

    run = resample(log, formula=always_bad, consequences={"leave": 1.0, "returns": 0.0})
    assert "always_bad" in run.configuration["formula"]
    assert run.parts["population"].account["users_gave_up"] > 6
    with pytest.raises(QuantityError, match="formula: has no effect on rigid users"):
        resample(log, formula=always_bad, users="rigid")


@pytest.mark.parametrize(
    ("text", "message"),
    [("leave=x", "read"), ("=1", "read"), ("leave=1,leave=2", "read"), (",", "read"),
     ("x=1", "no setting 'x'; there are leave, away")],
)  # fmt: skip
def test_settings_are_names_and_numbers(text, message):
    """Whole numbers stay whole; each name once."""
    names = ("leave", "away")
    assert {"leave": 0.1, "away": 2} == named_numbers("consequences", "leave=0.1, away=2", names)
    assert {} == named_numbers("pool", None, names)
    with pytest.raises(QuantityError, match=message):
        named_numbers("consequences", text, names)


@pytest.fixture(scope="module")
def site_log(tmp_path_factory):
    """Return three weeks of a third of the made-up site's users, without waits."""
    kinds = tuple(kind._replace(users=-(-kind.users // 3)) for kind in made_up.KINDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made_up, "KINDS", kinds)
        patch.setattr(made_up, "DAYS", 21)
        jobs = made_up.made_up_jobs()
    path = tmp_path_factory.mktemp("site") / "jobs.txt"
    path.write_text(made_up.accounting(jobs, np.array([job.submit for job in jobs])))
    return read_trace(path)


def kinds_of(jobs):
    """Return the combinations of what jobs ask for: processors, partition, account and so on."""
    asked = jobs.requests
    assert asked is not None
    gpus = np.maximum(asked[Ask.GPUS], asked[Ask.GPUS_PER_NODE])
    columns = (
        jobs.processors, asked.texts(Ask.PARTITIONS), asked.texts(Ask.ACCOUNT), asked[Ask.NODES],
        np.maximum(gpus, 0), asked[Ask.MEMORY_PER_CORE],
    )  # fmt: skip
    return set(zip(*(np.array(column).tolist() for column in columns), strict=True))


def test_repeated_jobs_ask_for_the_same_in_their_own_words():
    """Words keep their texts, arrays get a number of their own, and dates are left out."""
    record, mine = Requests(4), Requests(6)
    record.set_texts(Ask.PARTITIONS, ["b", "a", "", "b"])
    record[Ask.ARRAY][:] = [7, UNKNOWN, 8, 7]
    record[Ask.TASK][:] = [1, UNKNOWN, 5, 2]
    record[Ask.BEGIN][0] = 100
    record.set(0, Ask.RESERVATION, "monday")
    mine.set(0, Ask.PARTITIONS, "a")
    mine.repeat(2, record)
    assert ["a", "", "b", "a", "", "b"] == mine.texts(Ask.PARTITIONS)
    assert [UNKNOWN, UNKNOWN, 2, UNKNOWN, 4, 2] == mine[Ask.ARRAY].tolist()
    assert [1, UNKNOWN, 5, 2] == mine[Ask.TASK][2:].tolist()
    assert UNKNOWN == mine[Ask.BEGIN].max() == mine[Ask.RESERVATION].max()
    assert 100 == record[Ask.BEGIN][0]


@pytest.mark.parametrize("users", ["rigid", "think-time", "generative"])
def test_a_resampled_population_asks_for_what_was_recorded(site_log, users):
    """Every combination of size, partition, GPUs and memory is one of the log; all jobs run."""
    machine = made_up.made_up_machine()
    run = resample(site_log, users=users, machine=machine, scheduler="slurm", days=14, warm_up="7d")
    assert {"normal", "long", "gpu"} <= {one[1] for one in kinds_of(run.jobs)}
    recorded = replay(site_log, users="rigid", machine=machine, scheduler="fcfs").jobs
    assert kinds_of(run.jobs) <= kinds_of(recorded)
    assert len(run.jobs) == run.jobs.count(State.COMPLETED) > 100


@pytest.mark.traces
@pytest.mark.slow
def test_draws_are_like_the_log(kth):
    """188 of 214 users, 72 long-term; jobs per week are within 15 % of the log's in each draw."""
    pool, _ = pool_of(kth, ResampleConfig())
    assert (72, 116, 48) == (len(pool.long_term), len(pool.temporary), pool.weeks)
    assert (26, 176) == (pool.dropped_users.total(), pool.dropped_jobs.total())
    draws = draws_of(kth, {"draw": {"users": "rigid", "scheduler": "recorded"}}, seeds=10)
    made, shuffled = draws.kinds["draw"], draws.kinds[SHUFFLED]
    jobs = np.array([draw.jobs_per_week for draw in made])
    assert pytest.approx(draws.jobs_per_week, rel=0.1) == jobs.mean()
    assert (abs(jobs / draws.jobs_per_week - 1) < 0.15).all()
    assert jobs.std(ddof=1) > 0
    pairs = zip(made, shuffled, strict=True)
    assert [True] * 10 == [draw.week < other.week / 2 for draw, other in pairs]
    assert max(draw.think for draw in made) < 0.03
