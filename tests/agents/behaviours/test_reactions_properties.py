"""What holds for any reactions: dependencies, conservation of jobs and of work, repeatability."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hpcrowd.agents import (
    BatchOrder,
    Composed,
    Cut,
    Degrade,
    Delay,
    During,
    OnSignal,
    Reaction,
    RecentWaits,
    Reconfigure,
    Recorded,
    Renounce,
    ReplayUser,
    SessionDefinition,
    SessionGraph,
    Switch,
    Trigger,
    Work,
    add_users,
)
from hpcrowd.agents.work.units import Units
from hpcrowd.analysis import account, notes_of
from hpcrowd.environment import (
    ClusterSpec,
    JobTable,
    ResultsError,
    Signal,
    Simulation,
    State,
    Trace,
)
from hpcrowd.environment.traces.formats.swf import parse_swf
from hpcrowd.scenarios.kinds.replay import replay
from hypothesis import given
from hypothesis import strategies as st

MakeJobs = Callable[..., JobTable]

TRIGGERS: tuple[Callable[[], Trigger], ...] = (
    lambda: During([(0, 15), (30, 45)]),
    lambda: During([(0, 10_000)]),
    lambda: OnSignal(Signal([0, 10, 20, 30], [1, 3, 1, 3]), above=2, outside="off"),
    lambda: RecentWaits(2, last=2),
    lambda: RecentWaits(times=0.5, last=1, memory=20),
)
RESPONSES: tuple[Callable[..., Reaction], ...] = (
    lambda trigger, **more: Delay(trigger, by=None if trigger.ends else 7, **more),
    lambda trigger, **more: Degrade(trigger, factor=0.4, **more),
    lambda trigger, **more: Reconfigure(trigger, efficiency=0.7, **more),
    lambda trigger, **more: Reconfigure(trigger, efficiency=1.3, **more),
    Renounce,
    lambda trigger, **more: Switch(trigger, "slow", **more),
    lambda trigger, **more: Switch(trigger, "fast", **more),
    lambda trigger, **more: Cut(trigger, limit=5, overhead=1, **more),
    lambda trigger, **more: Cut(trigger, how="adaptive", limit=4, pause=2, **more),
    lambda trigger, **more: Cut(trigger, how="at-once", processors=3, most=2, **more),
)
CLUSTERS = {"slow": ClusterSpec(4, "fcfs", speed=0.7), "fast": ClusterSpec(3, speed=3.0)}

jobs_of_a_run = st.lists(
    st.tuples(
        st.integers(0, 60),
        st.integers(0, 12),
        st.integers(1, 6),
        st.integers(0, 12),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=25,
)
reactions_of_users = st.lists(
    st.tuples(
        st.sampled_from(RESPONSES),
        st.sampled_from(TRIGGERS),
        st.sampled_from([1.0, 0.5]),
        st.sampled_from([1.0, 0.5]),
    ),
    min_size=1,
    max_size=3,
)
mechanics = st.sampled_from([Recorded, SessionGraph, BatchOrder])
definitions = st.sampled_from([SessionDefinition("arrival", None), SessionDefinition("max", 5)])


def simulate(
    jobs: JobTable,
    reactions: list[Any],
    when: Any,
    definition: SessionDefinition,
    plain: bool = False,
) -> tuple[list[ReplayUser], Work]:
    """Replay jobs on three clusters with users who react."""
    model = Simulation(jobs, 4, plain=plain, others=CLUSTERS)
    work = Work.of(jobs, definition)
    made = [
        respond(trigger(), share=share, probability=probability)
        for respond, trigger, share, probability in reactions
    ]
    users = add_users(model, work, lambda work: Composed(when(work), reactions=made))
    model.run()
    return users, work


def broken(jobs: JobTable, units: Units) -> list[tuple[int, int]]:
    """Dependencies whose second unit was submitted before the first one had ended."""
    found = []
    edges = units.dependencies
    for before, after in zip(edges.predecessor.tolist(), edges.successor.tolist(), strict=True):
        rows = [units.rows[units.first[u] : units.first[u + 1]] for u in (before, after)]
        submit = jobs.submit[rows[1]]
        submit = submit[submit >= 0]
        if len(submit) and submit.min() < jobs.end[rows[0]].max():
            found.append((before, after))
    return found


@given(jobs_of_a_run, reactions_of_users, mechanics, definitions)
def test_jobs_and_work_are_conserved(
    make_jobs: MakeJobs,
    rows: list[Any],
    reactions: list[Any],
    when: Any,
    definition: SessionDefinition,
) -> None:
    """Every job ends, is rejected or renounced; recorded work = done + not run + lost - added."""
    jobs = make_jobs(*rows)
    recorded = int((jobs.processors * jobs.run_time).sum())
    users, _ = simulate(jobs, reactions, when, definition)
    accounts = account(jobs, notes_of(users))
    rejected = jobs.state == State.REJECTED
    not_run = int((jobs.processors * jobs.run_time)[rejected].sum())
    done = accounts["work_done_processor_s"]
    assert len(jobs) == sum(map(jobs.count, (State.COMPLETED, State.REJECTED, State.RENOUNCED)))
    assert recorded == (
        done + not_run + accounts["work_lost_processor_s"] - accounts["work_added_processor_s"]
    )
    assert recorded == accounts["work_recorded_processor_s"]
    for name in ("work_lost", "work_moved", "work_switched", "work_added"):
        name += "_processor_s"
        assert accounts[name] == sum(each[name] for each in accounts["by_reaction"].values())


@given(jobs_of_a_run, reactions_of_users, mechanics, definitions)
def test_nobody_goes_before_what_it_waits_for(
    make_jobs: MakeJobs,
    rows: list[Any],
    reactions: list[Any],
    when: Any,
    definition: SessionDefinition,
) -> None:
    """Users submit all their work, and nothing before what it depends on has ended."""
    jobs = make_jobs(*rows)
    users, work = simulate(jobs, reactions, when, definition)
    assert [len(user.units) for user in users] == [user.submitted for user in users]
    if when is Recorded:
        return
    assert [len(user.units) for user in users] == [user.finished for user in users]
    assert [] == broken(jobs, work.by_batch if when is BatchOrder else work.by_session)


@given(jobs_of_a_run, reactions_of_users, mechanics, definitions)
def test_engines_agree_and_repeat(
    make_jobs: MakeJobs,
    rows: list[Any],
    reactions: list[Any],
    when: Any,
    definition: SessionDefinition,
) -> None:
    """Compiled, plain, and compiled again: the same table and the same notes."""
    seen = []
    for plain in (False, True, False):
        jobs = make_jobs(*rows)
        users, _ = simulate(jobs, reactions, when, definition, plain)
        seen.append((jobs.matrix.tolist(), notes_of(users)))
    assert seen[0] == seen[1] == seen[2]


@given(jobs_of_a_run, mechanics, definitions)
def test_reactions_that_never_happen_change_nothing(
    make_jobs: MakeJobs, rows: list[Any], when: Any, definition: SessionDefinition
) -> None:
    """With a trigger that is never active users do exactly what they do without reactions."""
    never = [(Renounce, lambda: During([(100_000, 100_001)]), 1.0, 1.0)]
    seen = []
    for reactions in ([], never):
        jobs = make_jobs(*rows)
        simulate(jobs, reactions, when, definition)
        seen.append(jobs.matrix.tolist())
    assert seen[0] == seen[1]


@pytest.mark.traces
@pytest.mark.parametrize("when", [Recorded, BatchOrder], ids=["rigid", "adjusted"])
@pytest.mark.parametrize("response", [Delay, Degrade, Reconfigure, Renounce])
def test_work_of_kth_is_conserved(kth: Trace, when: Any, response: Callable[..., Reaction]) -> None:
    """On a real trace, to the processor-second: recorded work = done + lost - added."""
    week = During([(100 * 86400, 107 * 86400)])
    plain = replay(kth, users="rigid").metrics
    run = replay(kth, users=lambda work: Composed(when(work), reactions=[response(week)]))
    accounts, jobs = run.accounts, run.jobs
    assert plain["jobs_in"] == jobs.count(State.COMPLETED) + jobs.count(State.RENOUNCED)
    ran = replay(kth, users="rigid").jobs
    assert int((ran.processors * ran.run_time).sum()) == (
        accounts["work_done_processor_s"]
        + accounts["work_lost_processor_s"]
        - accounts["work_added_processor_s"]
    )
    assert accounts["jobs"] > 0


SMALL = "\n".join(
    [
        "; MaxProcs: 8",
        "1 0 0 60 4 -1 -1 4 60 -1 1 1 1 -1 1 -1 -1 -1",
        "2 70 0 10 3 -1 -1 3 20 -1 1 1 1 -1 1 -1 -1 -1",
        "3 90 0 10 1 -1 -1 1 20 -1 1 2 1 -1 1 -1 -1 -1",
    ]
)


def test_run_tells_its_accounts(tmp_path: Path) -> None:
    """Summary, table and trace of a run hold what reactions did; without them there is nothing."""
    import pyarrow.parquet as pq
    from hpcrowd.analysis import read_results, write_results
    from hpcrowd.analysis.accounts.reactions import MEANING

    trace = parse_swf(SMALL)
    reactions = [Degrade(During([(50, 80)])), Renounce(During([(80, 100)]))]
    run = replay(trace, users=lambda work: Composed(Recorded(work), reactions=reactions))
    summary = run.summary()["reactions"]
    assert (2, 2) == (summary["jobs"], summary["users"])
    assert 10 + 10 == summary["work_lost_processor_s"]
    assert 240 + 20 == summary["work_done_processor_s"]
    assert 240 + 30 + 10 == summary["work_recorded_processor_s"]
    assert ["degrade during", "renounce during"] == list(summary["by_reaction"])
    write_results(run, tmp_path / "out", plots=False)
    table = pq.read_table(tmp_path / "out" / "reactions.parquet")
    assert list(MEANING) == table.column_names
    assert {"meaning": MEANING["delay"]} == {
        key.decode(): value.decode() for key, value in table.field("delay").metadata.items()
    }
    assert {"number": [2, 3], "user": [1, 2], "processors": [3, 1], "processors_after": [2, 0]} == {
        name: table.column(name).to_pylist()
        for name in ("number", "user", "processors", "processors_after")
    }
    # Sorted by submission: the renounced job was never submitted.
    assert {2: 2, 1: 4, 3: 1} == dict(
        zip(run.to_trace()["number"].tolist(), run.to_trace()["requested_processors"].tolist(),
            strict=True)
    )  # fmt: skip
    again = read_results(tmp_path / "out")
    assert run.reactions == again.reactions
    assert run.summary() == again.summary()
    without = replay(trace, users="rigid")
    assert "reactions" not in without.summary()
    write_results(without, tmp_path / "out", plots=False)
    assert not (tmp_path / "out" / "reactions.parquet").exists()
    assert () == tuple(read_results(tmp_path / "out").reactions)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda path: path.write_bytes(b"no"), "reactions.parquet: cannot be read as reactions"),
        (lambda path: path.with_name("jobs.parquet").rename(path), "cannot be read as reactions"),
    ],
)
def test_broken_table_of_reactions(
    tmp_path: Path, change: Callable[[Path], Any], told: str
) -> None:
    """What is not a table of reactions is reported in one line."""
    from hpcrowd.analysis.tables import read_reactions, write_jobs

    run = replay(parse_swf(SMALL), users="rigid")
    write_jobs(run.jobs, tmp_path / "jobs.parquet")
    change(tmp_path / "reactions.parquet")
    with pytest.raises(ResultsError, match=told):
        read_reactions(tmp_path / "reactions.parquet", run.jobs)


def test_terminal_tells_accounts(capsys: pytest.CaptureFixture[str]) -> None:
    """Lines name the reactions; the table has the sums that are not 0, in processor-hours."""
    from hpcrowd.analysis.report.words import headline
    from hpcrowd.scenarios.commands.summary import summary_table
    from rich.console import Console

    reactions = [Delay(During([(50, 80)]), name="wait for noon"), Renounce(During([(85, 100)]))]
    run = replay(parse_swf(SMALL), users=lambda work: Composed(Recorded(work), reactions=reactions))
    told = headline(run)
    assert "  renounce during: 1 job of 1 user" in told
    assert "  wait for noon: 1 job of 1 user" in told
    Console(width=100).print(summary_table(run))
    found = [line.split() for line in capsys.readouterr().out.splitlines() if "reactions." in line]
    assert [
        ["reactions.jobs", "2"],
        ["reactions.users", "2"],
        ["reactions.work_lost_processor_s", "0.00", "processor-h"],
        ["reactions.work_moved_processor_s", "0.01", "processor-h"],
        ["reactions.delay_mean_s", "10", "s"],
        ["reactions.delay_max_s", "10", "s"],
    ] == found
