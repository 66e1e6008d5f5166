"""What each response does to a job, and what users do afterwards: tiny stories, and any reactions.

Whatever the reactions: dependencies hold, jobs and work are conserved, and runs repeat themselves.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow.parquet as pq
import pytest
from hpcrowd import ClusterSpec, SessionDefinition, State, read_results, write_results
from hpcrowd.agents.behaviours.energy.sufficiency import Degrade, Reconfigure, Renounce
from hpcrowd.agents.behaviours.parts import Trigger
from hpcrowd.agents.behaviours.triggers import RecentWaits
from hpcrowd.analysis.accounts.reactions import MEANING, Reactions, account, notes_of
from hpcrowd.analysis.results import write_jobs
from hpcrowd.analysis.run import headline
from hpcrowd.behaviours import BatchOrder, Composed, Recorded, SessionGraph
from hpcrowd.environment.power.in_use import PowerInUse
from hpcrowd.environment.traces.formats.swf import parse_swf
from hpcrowd.errors import QuantityError, ResultsError
from hpcrowd.power import Signal
from hpcrowd.reactions import Budget, Cut, Delay, During, OnSignal, Reaction, Switch
from hpcrowd.scenarios.commands.options import summary_table
from hpcrowd.scenarios.kinds.replay import replay
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from tests.support.behaviours import EVERY_JOB, ONE_KILOWATT, broken, react
from tests.support.simulations import both

HOUR_LONG = SessionDefinition("arrival", 60)
SOON = During([(50, 100)])
THREE = ((0, 60, 1), (70, 20, 2, 40), (130, 10, 1))  # thinks for 10 s, then for 40 s

run = partial(react, when=BatchOrder)


def notes(users):
    """What was noted, without the names of reactions, waits and requests."""
    return [(note.row, *note[2:9], note.cluster) for user in users for note in user.notes]


AS_DUE: dict[str, Any] = {"when": Recorded}
STORIES: dict[str, tuple[Any, Reaction, dict[str, Any], list[int]]] = {
    "until the end": ([(0, 60, 1), (70, 10, 2), (120, 10, 1)], Delay(SOON), {}, [0, 100, 150]),
    "by a time": ([(40, 10, 1), (70, 10, 1)], Delay(SOON, by=7), AS_DUE, [40, 77]),
    # The first second of a period belongs to it, the last one does not.
    "edges": ([(at, 1, 1) for at in (49, 50, 99, 100)], Delay(SOON), AS_DUE, [49, 100, 100, 100]),
    # Each job of a batch is judged at its own second; the next batch follows the last of them.
    "batch": ([(40, 960, 1), (60, 5, 1), (110, 5, 1), (1010, 5, 1)],
              Delay(During([(50, 100), (105, 300)])), {"sessions": HOUR_LONG},
              [40, 100, 300, 1010]),
    # A batch that follows the submission of a delayed one keeps its distance from it.
    "distance": ([(40, 500, 1), (60, 5, 1), (160, 5, 1)], Delay(SOON), {}, [40, 100, 200]),
    # Renounced, it ends when it would have come, and the think time after it follows.
    "renounced batch": (THREE, Renounce(SOON), {}, [0, -1, 110]),
    "renounced session": (THREE, Renounce(SOON), {"when": SessionGraph}, [0, -1, 110]),
}  # fmt: skip


@both
@pytest.mark.parametrize("story", STORIES)
def test_when_jobs_come(make_jobs, plain, story):
    """Submissions of users who delay or renounce jobs that are due in a period."""
    rows, reaction, options, expected = STORIES[story]
    jobs = make_jobs(*rows)
    users = run(jobs, reaction, plain=plain, **options)
    assert expected == jobs.submit.tolist()
    assert [State.RENOUNCED if at < 0 else State.COMPLETED for at in expected] == list(jobs.state)
    if options is not AS_DUE:
        assert users[0].submitted == users[0].finished == len(users[0].units)


CHANGES: dict[str, tuple[Any, Reaction, list[int], list[Any]]] = {
    # Half the processors, halves rounded up, for the same time; single processors stay.
    "degrade": ([(60, 10, 4, 20), (60, 10, 3, 20), (60, 10, 1, 20), (40, 10, 4, 20)],
                Degrade(SOON), [20, 20, 20, 20],
                [(0, "degrade", 60, 4, 10, 2, 10, 0, ""), (1, "degrade", 60, 3, 10, 2, 10, 0, "")]),
    # A job that would be rejected can be small enough afterwards.
    "fits": ([(60, 10, 12)], Degrade(SOON), [10], [(0, "degrade", 60, 12, 10, 6, 10, 0, "")]),
    # Fewer processors for as much longer: 3 x 10 = 2 x 15, 10.5 rounded up to 11.
    "reconfigure": ([(60, 10, 3, 20), (60, 7, 3, 7), (60, 10, 1, 20)], Reconfigure(SOON),
                    [30, 11, 20], [(0, "reconfigure", 60, 3, 10, 2, 15, 0, ""),
                                   (1, "reconfigure", 60, 3, 7, 2, 11, 0, "")]),
    # At an efficiency of 0.8 a job needs a quarter more work than before.
    "efficiency": ([(60, 100, 4, 200)], Reconfigure(SOON, factor=0.25, efficiency=0.8), [1000],
                   [(0, "reconfigure", 60, 4, 100, 1, 500, 0, "")]),
    "renounce": ([(70, 20, 2)], Renounce(SOON), [20], [(0, "renounce", 70, 2, 20, 0, 0, 0, "")]),
    "delay": ([(70, 20, 2)], Delay(SOON), [20], [(0, "delay", 70, 2, 20, 2, 20, 30, "")]),
}  # fmt: skip


@both
@pytest.mark.parametrize("story", CHANGES)
def test_what_jobs_ask_for(make_jobs, plain, story):
    """Processors and times of jobs that were changed, and the notes of what they were."""
    rows, reaction, requested, noted = CHANGES[story]
    jobs, before = make_jobs(*rows), make_jobs(*rows).processors
    users = run(jobs, reaction, when=Recorded, plain=plain)
    assert noted == notes(users)
    assert requested == jobs.requested_time.tolist()
    after = {row: note[4] for row, *note in noted if note[4]}
    assert [after.get(row, asked) for row, asked in enumerate(before)] == jobs.processors.tolist()
    ran = jobs.state == State.COMPLETED
    assert jobs.run_time[ran].tolist() == (jobs.end - jobs.start)[ran].tolist()


@both
def test_switch_to_another_cluster(make_jobs, plain):
    """The job runs there, at its speed; its user hears of its end."""
    jobs = make_jobs(*THREE)
    backup = {"backup": ClusterSpec(2, speed=2.0)}
    users = run(jobs, Switch(SOON, "backup"), plain=plain, others=backup)
    assert [0, 1, 0] == jobs.cluster.tolist()
    assert ([0, 70, 120], [60, 80, 130]) == (jobs.start.tolist(), jobs.end.tolist())
    assert 20 == jobs.requested_time[1]
    assert [(1, "switch", 70, 2, 20, 2, 10, 0, "backup")] == notes(users)
    # A batch of which some jobs switch has ended when all of it has, wherever it ran.
    jobs = make_jobs((40, 100, 1), (60, 50, 1), (200, 10, 1))  # thinks for 60 s
    half = {"half": ClusterSpec(2, speed=0.5)}
    run(jobs, Switch(SOON, "half"), sessions=HOUR_LONG, plain=plain, others=half)
    assert ([0, 1, 0], [140, 160, 230]) == (jobs.cluster.tolist(), jobs.end.tolist())
    with pytest.raises(QuantityError, match="cluster 'cloud': not known; choose home"):
        run(jobs, Switch(SOON, "cloud"))


@both
def test_reactions_see_what_is_left(make_jobs, plain):
    """Each takes the job as the one before has left it; a renounced job is left alone."""
    jobs, later, last = make_jobs((60, 10, 8), (120, 10, 8)), During([(100, 110)]), (120, 130)
    reactions = Degrade(later), Degrade(later, name="again"), Renounce(During([last]))
    users = run(jobs, Delay(SOON), *reactions, Delay(During([last])), when=Recorded, plain=plain)
    assert [
        (0, "delay", 60, 8, 10, 8, 10, 40, ""),
        (0, "degrade", 60, 8, 10, 4, 10, 0, ""),
        (0, "degrade", 60, 4, 10, 2, 10, 0, ""),
        (1, "renounce", 120, 8, 10, 0, 0, 0, ""),
    ] == notes(users)
    assert [100, -1] == jobs.submit.tolist()


def test_share_of_users_and_of_jobs(make_jobs):
    """Shares of users and of their jobs react, by the name of the reaction, in every run alike."""
    rows = [(60, 10, 2, 10, user) for user in range(1, 401) for _ in range(5)]

    def found(plain=False, **chosen):
        users = run(make_jobs(*rows), Degrade(SOON, **chosen), plain=plain)
        return {(user.number, note.row) for user in users for note in user.notes}

    some = found(share=0.25, probability=0.5)
    assert some == found(share=0.25, probability=0.5, plain=True)
    assert some != found(share=0.25, probability=0.5, name="another")
    assert set() == found(share=0) == found(probability=0)
    # Of 400 users 100 are willing, and each then reacts at least once with 1 - 2^-5; the bounds are
    # four standard errors.
    assert abs(len({user for user, _ in some}) - 96.9) < 4 * 8.6
    assert abs(len(some) - 250) < 4 * 24.4


# ---- any reactions ----------------------------------------------------------------------------

TRIGGERS: tuple[Callable[[], Trigger], ...] = (
    lambda: During([(0, 15), (30, 45)]),
    lambda: During([(0, 10_000)]),
    lambda: OnSignal(Signal([0, 10, 20, 30], [1, 3, 1, 3]), above=2, outside="off"),
    lambda: RecentWaits(2, last=2),
    lambda: RecentWaits(times=0.5, last=1, memory=20),
    lambda: Budget(0.005, per="week"),
)
RESPONSES: tuple[Callable[..., Reaction], ...] = (
    lambda trigger, **more: Delay(trigger, by=None if trigger.ends else 7, **more),
    partial(Degrade, factor=0.4),
    partial(Degrade, factor=0.4, rebound=1.0, rebound_after=5, fatigue=0.5),
    partial(Renounce, rebound=0.6, rebound_after=20, fatigue=0.0, recovery=10),
    partial(Reconfigure, efficiency=0.7),
    partial(Reconfigure, efficiency=1.3),
    Renounce,
    partial(Switch, to="slow"),
    partial(Switch, to="fast"),
    partial(Cut, limit=5, overhead=1),
    partial(Cut, how="adaptive", limit=4, pause=2),
    partial(Cut, how="at-once", processors=3, most=2),
    partial(Cut, limit=7, time=7, overhead=2, pause=3, most=1),
)
CLUSTERS = {"slow": ClusterSpec(4, "fcfs", speed=0.7), "fast": ClusterSpec(3, speed=3.0)}

few, half = st.integers(0, 12), st.sampled_from([1.0, 0.5])
job = st.tuples(st.integers(0, 60), few, st.integers(1, 6), few, st.integers(1, 3))
jobs_of_a_run = st.lists(job, min_size=1, max_size=25)
reaction = st.tuples(st.sampled_from(RESPONSES), st.sampled_from(TRIGGERS), half, half)
reactions_of_users = st.lists(reaction, max_size=3)
mechanics = st.sampled_from([Recorded, SessionGraph, BatchOrder])
definitions = st.sampled_from([EVERY_JOB, SessionDefinition("max", 5)])


@settings(max_examples=80)
@given(jobs_of_a_run, reactions_of_users, mechanics, definitions)
def test_jobs_work_and_dependencies_are_kept(make_jobs, rows, chosen, when, definition):
    """All work is submitted, nothing before what it depends on, and adds up, with what comes back.

    Both engines have the same table and notes; so has a run with a reaction that never happens.
    """
    seen: list[Any] = []
    never = Renounce(During([(100_000, 100_001)]))
    for plain, more in ((False, ()), (True, ()), (False, (never,))):
        jobs = make_jobs(*rows)
        work = int((jobs.processors * jobs.run_time).sum())
        made = [
            respond(trigger(), share=share, probability=probability)
            for respond, trigger, share, probability in chosen
        ]
        how = {"when": when, "sessions": definition, "processors": 4, "others": CLUSTERS}
        users = run(jobs, *made, *more, plain=plain, acting=[PowerInUse(ONE_KILOWATT)], **how)
        seen.append((jobs.matrix[:, : len(jobs)].tolist(), notes_of(users)))
    assert seen[0] == seen[1] == seen[2]
    assert len(jobs) == sum(map(jobs.count, (State.COMPLETED, State.REJECTED, State.RENOUNCED)))
    assert len(jobs) == len(set(jobs.number.tolist()))
    accounts = account(jobs, notes_of(users))
    new = sum(note.request == "task" for note in notes_of(users))  # pieces
    assert len(jobs) == len(rows) + new + accounts["jobs_returned"]
    rejected = jobs.state == State.REJECTED
    done, lost, added, recorded, returned = (
        accounts[f"work_{one}_processor_s"]
        for one in ("done", "lost", "added", "recorded", "returned")
    )
    assert returned <= lost
    not_run = int((jobs.processors * jobs.run_time)[rejected].sum())
    assert work == recorded == done + not_run + lost - added - returned
    for name in ("work_lost", "work_moved", "work_switched", "work_added"):
        name += "_processor_s"
        assert accounts[name] == sum(each[name] for each in accounts["by_reaction"].values())
    assert [len(user.units) for user in users] == [user.submitted for user in users]
    if when is not Recorded:
        assert [len(user.units) for user in users] == [user.finished for user in users]
        recorded_work = users[0].work
        units = recorded_work.by_batch if when is BatchOrder else recorded_work.by_session
        assert [] == broken(jobs, units)


# ---- results of a run -------------------------------------------------------------------------

SMALL = """; MaxProcs: 8
1 0 0 60 4 -1 -1 4 60 -1 1 1 1 -1 1 -1 -1 -1
2 70 0 10 3 -1 -1 3 20 -1 1 1 1 -1 1 -1 -1 -1
3 90 0 10 1 -1 -1 1 20 -1 1 2 1 -1 1 -1 -1 -1"""


def reacting(*reactions):
    """Return a behaviour that submits as recorded and reacts."""
    return lambda work: Composed(Recorded(work), reactions=reactions)


def test_run_tells_its_accounts(tmp_path):
    """Summary, table and trace of a run hold what reactions did; without them there is nothing."""
    trace = parse_swf(SMALL)
    run = replay(trace, users=reacting(Degrade(During([(50, 80)])), Renounce(During([(80, 100)]))))
    summary = run.summary()["reactions"]
    assert (2, 2) == (summary["jobs"], summary["users"])
    work = [summary[f"work_{one}_processor_s"] for one in ("lost", "done", "recorded")]
    assert [10 + 10, 240 + 20, 240 + 30 + 10] == work
    assert ["degrade during", "renounce during"] == list(summary["by_reaction"])
    write_results(run, tmp_path / "out", plots=False)
    table = pq.read_table(tmp_path / "out" / "reactions.parquet")
    assert list(MEANING) == table.column_names
    told = {key.decode(): text.decode() for key, text in table.field("delay").metadata.items()}
    assert {"meaning": MEANING["delay"]} == told
    columns = "number", "user", "processors", "processors_after"
    found = [table.column(name).to_pylist() for name in columns]
    assert [[2, 3], [1, 2], [3, 1], [2, 0]] == found
    # Sorted by submission: the renounced job was never submitted.
    written = run.to_trace()
    asked = written["number"].tolist(), written["requested_processors"].tolist()
    assert {2: 2, 1: 4, 3: 1} == dict(zip(*asked, strict=True))
    without = replay(trace, users="rigid")
    assert "reactions" not in without.summary()
    write_results(without, tmp_path / "out", plots=False)
    assert not (tmp_path / "out" / "reactions.parquet").exists()
    assert () == tuple(read_results(tmp_path / "out").parts["reactions"].rows)


def test_broken_table_of_reactions(tmp_path):
    """What is not a table of reactions is reported in one line."""
    run, path = replay(parse_swf(SMALL), users="rigid"), tmp_path / "reactions.parquet"
    path.write_bytes(b"no")
    for _ in range(2):
        with pytest.raises(ResultsError, match=r"reactions.parquet: cannot be read as reactions"):
            Reactions.read_rows(path, run.jobs)
        write_jobs(run.jobs, path)  # another table


def test_terminal_tells_accounts(capsys):
    """Lines name the reactions; the table has the sums that are not 0, in processor-hours."""
    noon = Delay(During([(50, 80)]), name="wait for noon")
    run = replay(parse_swf(SMALL), users=reacting(noon, Renounce(During([(85, 100)]))))
    expected = ["  renounce during: 1 job of 1 user", "  wait for noon: 1 job of 1 user"]
    assert set(expected) <= set(headline(run))
    Console(width=100).print(summary_table(run))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    lines = [(line, line.index("(reactions)")) for line in lines if "(reactions)" in line]
    shown = {" ".join(line[:at]): " ".join(line[at + 1 :]) for line, at in lines}
    work = {"work lost": "0.00 processor-h", "work moved": "0.01 processor-h"}
    rest = {"jobs": "2", "users": "2", "delay mean": "10 s", "delay max": "10 s"}
    assert rest | work == shown
