"""Runs with users who make up their work: the table, the trace it leaves, mixtures, feedback."""

from dataclasses import replace

import numpy as np
import pytest
from hpcrowd import Recipe, Simulation, State, Work, add_users, read_swf, replay, write_results
from hpcrowd.agents.generative.shmueli import PUBLISHED
from hpcrowd.behaviours import PRESETS
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.errors import QuantityError
from hpcrowd.populations import ShmueliFeitelson
from hpcrowd.scenarios.kinds.population_files import PopulationConfig, UsersConfig

from tests.support.behaviours import EXTREMES, OUTCOME

#: Presets that make up their work; the contract of recipes is in tests/agents/behaviours.
GENERATIVE = [name for name, preset in PRESETS.items() if not isinstance(preset, Recipe)]


@pytest.fixture(scope="module")
def trace(make_trace):
    """Eight users of three groups, each with a session on ten of fourteen days."""
    stream, jobs = np.random.default_rng(11), []
    for user in range(1, 9):
        for day in (0, 1, 2, 3, 4, 7, 8, 9, 10, 11):
            at = day * DAY + int(stream.integers(9 * HOUR, 15 * HOUR))
            for _ in range(int(stream.integers(1, 5))):
                run = int(stream.integers(60, 2 * HOUR))
                size = int(stream.integers(1, 5))
                jobs.append(
                    {"submit": at, "wait": 0, "run": run, "requested_processors": size,
                     "allocated_processors": size, "requested_time": 4 * HOUR, "user": user,
                     "group": 1 + user % 3, "executable": user, "queue": 2, "memory": 99}
                )  # fmt: skip
                at += int(stream.choice([30, run + 300, run + 5000]))
    jobs.sort(key=lambda job: job["submit"])
    return make_trace(*jobs, header="; MaxProcs: 8\n; MaxJobs: 1")


def columns(jobs, which=None):
    """What users decide, and when, job by job."""
    which = np.ones(len(jobs), bool) if which is None else which
    names = ("user", "submit", "processors", "run_time", "requested_time", "executable")
    return sorted(zip(*(getattr(jobs, name)[which].tolist() for name in names), strict=True))


def bytes_of(jobs):
    """All that a run made and did."""
    return [getattr(jobs, name).tobytes() for name in ("user", "processors", "run_time", *OUTCOME)]


@pytest.mark.parametrize("users", GENERATIVE)
@pytest.mark.parametrize("case", EXTREMES)
def test_generative_contract(make_trace, users, case):
    """Same seed, same bytes; every job ends eventually, and users are those of the record."""
    rows, processors = EXTREMES[case]
    trace = make_trace(
        *(
            {"submit": submit, "wait": 0, "run": run, "requested_time": run,
             "allocated_processors": width, "requested_processors": width,
             "user": more[0] if more else 1, "status": 1}
            for submit, run, width, *more in rows
        ),
        header=f"; MaxProcs: {processors}",
    )  # fmt: skip
    first, again, other = (replay(trace, users=users, seed=seed).jobs for seed in (0, 0, 1))
    assert bytes_of(first) == bytes_of(again)
    for jobs in (first, other):
        ran = jobs.state == State.COMPLETED
        assert np.all(ran | (jobs.state == State.REJECTED))
        assert set(jobs.user.tolist()) <= set(trace["user"].astype(int).tolist())
        assert np.all(jobs.start[ran] >= jobs.submit[ran])


@pytest.mark.parametrize("users", GENERATIVE)
def test_generated_jobs_take_the_place_of_recorded_ones(trace, users):
    """The table holds copies of their users' recorded jobs, all of them over; nothing is late."""
    run = replay(trace, users=users)
    jobs = run.jobs
    assert len(jobs) == jobs.count(State.COMPLETED) == run.metrics["jobs_in"] > 0
    assert np.all(jobs.recorded_submit == -1)
    assert list(range(1, len(jobs) + 1)) == jobs.number.tolist()
    assert (run.work, run.metrics["lateness_mean_s"]) == (None, None)
    assert jobs.submit.max() <= trace["submit"].max()
    names = ("user", "group", "run", "allocated_processors", "requested_time", "executable")
    recorded = set(zip(*(trace[name].tolist() for name in names), strict=True))
    names = ("user", "group", "run_time", "processors", "requested_time", "executable")
    assert set(zip(*(getattr(jobs, name).tolist() for name in names), strict=True)) <= recorded
    assert set(range(1, 9)) == set(jobs.user.tolist())
    assert {2} == set(jobs.queue.tolist())
    assert columns(jobs) != columns(replay(trace, users=users, seed=6).jobs)


def test_run_leaves_a_trace_to_replay(trace, tmp_path):
    """Think times are in fields 17 and 18, and the trace can be written, read and replayed."""
    run = replay(trace, users="generative")
    left = run.to_trace()
    waited = left["preceding"] > 0
    assert np.count_nonzero(run.precedence.after >= 0) == np.count_nonzero(waited) > 0
    end = dict(zip(left["number"], left["submit"] + left["wait"] + left["run"], strict=True))
    ends = [end[number] for number in left["preceding"][waited]]
    assert (left["submit"][waited] - ends).tolist() == left["think_time"][waited].tolist()
    assert np.all(left["think_time"][waited] >= 0)
    assert {-1} == set(left["memory"].tolist())
    assert run.jobs.processors.tolist() == left["requested_processors"].tolist()
    write_results(run, tmp_path / "out", plots=False)
    again = replay(read_swf(tmp_path / "out" / "trace.swf.gz"), users="rigid")
    assert columns(run.jobs) == columns(again.jobs)
    assert run.jobs.start.tolist() == again.jobs.start[np.argsort(again.jobs.number)].tolist()


@pytest.mark.parametrize("users", GENERATIVE)
def test_slower_machine_gets_fewer_jobs(trace, users):
    """Users who wait longer submit less: at half the speed clearly fewer jobs."""
    slow, same, fast = (
        np.mean([len(replay(trace, users=users, speed=speed, seed=seed).jobs) for seed in (0, 1)])
        for speed in ("0.5x", "1x", "2x")
    )
    assert slow < 0.9 * same < 0.9 * 0.95 * fast


def population(**others):
    """Group 2 generates, the rest as ``others`` say."""
    generating = UsersConfig(behaviour="generative", groups=(2,))
    return PopulationConfig(users=(generating, UsersConfig(share=1.0, **others)))


@pytest.mark.parametrize("behaviour", ["rigid", "think-time", "fluid"])
def test_mixture_of_replay_and_generation(trace, behaviour):
    """Who replays keeps its jobs and numbers; the others add theirs after them."""
    run = replay(trace, users=population(behaviour=behaviour))
    jobs = run.jobs
    recorded = jobs.recorded_submit >= 0
    assert {2} == set(jobs.group[~recorded].tolist())
    assert {1, 3} == set(jobs.group[recorded].tolist())
    assert trace["number"][trace["group"] != 2].tolist() == jobs.number[recorded].tolist()
    assert len(jobs) == jobs.count(State.COMPLETED)
    assert np.all(np.diff(jobs.number) > 0)
    assert len(trace) < jobs.number[~recorded].min() + np.count_nonzero(trace["group"] == 2)
    left = run.to_trace()
    kept = left["memory"] == 99
    assert np.count_nonzero(recorded) == np.count_nonzero(kept)
    assert {2} == set(left["group"][~kept].tolist())
    assert np.any(left["preceding"][~kept] > 0)
    assert (behaviour != "rigid") == bool(np.any(left["preceding"][kept] > 0))
    assert (behaviour == "rigid") == (run.metrics["lateness_mean_s"] == 0)


def test_what_can_be_changed(trace):
    """Law, shifts, horizon and class, but no part that such users do not have."""
    entry = UsersConfig(behaviour="generative", law={"limit": 0.5}, shifts={"day_share": 1.0})
    assert (0.5, 1.0) == (entry.recipe().law.limit, entry.recipe().shifts.day_share)
    with pytest.raises(QuantityError, match=r"think: generative users .* leave it out"):
        UsersConfig(behaviour="generative", think="own").recipe()
    work = Work.of(replay(trace, users="rigid").jobs)
    with pytest.raises(QuantityError, match=r"ShmueliFeitelson: they generate their work.*Casting"):
        add_users(Simulation(work.jobs, 8), work, "generative")
    by_class = replay(trace, users=ShmueliFeitelson).jobs
    assert columns(replay(trace, users="shmueli-feitelson").jobs) == columns(by_class)
    short = replay(trace, users=replace(PUBLISHED, horizon=3 * DAY)).jobs
    assert short.submit.max() < 3 * DAY
