"""Runs with users who make up their work: the table, the trace it leaves, mixtures, feedback."""

from dataclasses import replace

import numpy as np
import pytest
from hpcrowd import Recipe, Simulation, State, Work, add_users, read_swf, replay, write_results
from hpcrowd.agents.generative.shmueli import PUBLISHED
from hpcrowd.behaviours import PRESETS
from hpcrowd.environment.clock import DAY
from hpcrowd.errors import QuantityError
from hpcrowd.populations import ShmueliFeitelson
from hpcrowd.scenarios.kinds.population_files import PopulationConfig, UsersConfig

from tests.support.behaviours import EXTREMES, OUTCOME
from tests.support.populations import small_log

#: Presets that make up their work; the contract of recipes is in tests/agents/behaviours.
GENERATIVE = [name for name, preset in PRESETS.items() if not isinstance(preset, Recipe)]


@pytest.fixture(scope="module")
def trace(make_trace):
    """Twelve users of three groups over eight weeks."""
    return small_log(make_trace)


def columns(jobs):
    """What users decide, and when, job by job."""
    names = ("user", "submit", "processors", "run_time", "requested_time", "executable")
    return sorted(zip(*(getattr(jobs, name).tolist() for name in names), strict=True))


def bytes_of(jobs):
    """All that a run made and did."""
    return [getattr(jobs, name).tobytes() for name in ("user", "processors", "run_time", *OUTCOME)]


@pytest.mark.parametrize("users", GENERATIVE)
@pytest.mark.parametrize("case", EXTREMES)
def test_generative_contract(make_trace, users, case):
    """Same seed, same bytes; all end, and are copies of recorded jobs of their users."""
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
    names = ("user", "run", "allocated_processors", "requested_time")
    recorded = set(zip(*(trace[name].tolist() for name in names), strict=True))
    names = ("user", "run_time", "processors", "requested_time")
    for jobs in (first, other):
        ran = jobs.state == State.COMPLETED
        assert np.all(ran | (jobs.state == State.REJECTED))
        assert set(zip(*(getattr(jobs, name).tolist() for name in names), strict=True)) <= recorded
        assert np.all(jobs.start[ran] >= jobs.submit[ran])
        assert np.all(jobs.recorded_submit == -1)
        assert list(range(1, len(jobs) + 1)) == jobs.number.tolist()


def test_run_leaves_a_trace_to_replay(trace, tmp_path):
    """Think times are in fields 17 and 18, and the trace can be written, read and replayed."""
    run = replay(trace, users="generative")
    assert columns(run.jobs) != columns(replay(trace, users="generative", seed=6).jobs)
    left = run.to_trace()
    waited = left["preceding"] > 0
    assert np.count_nonzero(run.precedence.after >= 0) == np.count_nonzero(waited) > 0
    end = dict(zip(left["number"], left["submit"] + left["wait"] + left["run"], strict=True))
    ends = [end[number] for number in left["preceding"][waited]]
    assert (left["submit"][waited] - ends).tolist() == left["think_time"][waited].tolist()
    assert np.all(left["think_time"][waited] >= 0)
    sizes = left["requested_processors"][np.argsort(left["number"])]
    assert run.jobs.processors.tolist() == sizes.tolist()
    write_results(run, tmp_path / "out", plots=False)
    again = replay(read_swf(tmp_path / "out" / "trace.swf.gz"), users="rigid")
    assert columns(run.jobs) == columns(again.jobs)
    assert run.jobs.start.tolist() == again.jobs.start[np.argsort(again.jobs.number)].tolist()


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
    assert {0, 1} == set(jobs.group[recorded].tolist())
    assert trace["number"][trace["group"] != 2].tolist() == jobs.number[recorded].tolist()
    assert len(jobs) == jobs.count(State.COMPLETED)
    assert np.all(np.diff(jobs.number) > 0)
    left = run.to_trace()
    kept = left["group"] != 2
    assert np.count_nonzero(recorded) == np.count_nonzero(kept)
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
