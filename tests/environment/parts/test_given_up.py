"""Jobs that were given up in the queue: they wait, are in the way, and leave."""

import numpy as np
import pytest
from hpcrowd import State, parse_swf
from hpcrowd.analysis.results import read_results, write_results
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.parts.given_up import ALIKE, GivenUp, imputed_run_times
from hpcrowd.environment.traces.trace import Conversion, gave_up, jobs_from_trace
from hpcrowd.scenarios.kinds.replay import ReplayConfig, replay
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.patience import even_patience
from tests.support.simulations import Owner, both, recorded, simulation_of

POLICIES = ("fcfs", "easy", "conservative")


def given_up(jobs, scheduler, *, processors=8, stays=(), may_run=False, replaced_by=None, **how):
    """Run jobs of (submission, run time, processors, wait until it leaves; -1 for never).

    Those that leave never ran in the record, but for ``stays``.
    """
    submit, run, size, waits = map(np.array, zip(*jobs, strict=True))
    table = recorded(submit, run, processors=size, requested_time=np.maximum(run, 100))
    model, owner = simulation_of(table, processors, scheduler, **how), Owner()
    gone = (waits >= 0) & ~np.isin(np.arange(len(jobs)), stays)
    part = GivenUp(waits, np.where(gone, run, -1), run=may_run, replaced_by=replaced_by)
    model.attach(part)
    for row in range(len(table)):
        model.submit(owner, np.array([row]), submit[[row]])
    model.run()
    model.end()
    return table, owner, part.account()


#: Jobs; under FCFS, EASY and conservative: starts, and when the second one leaves.
STORIES = {
    # Nobody overtakes it under FCFS and conservative, until it leaves.
    "in the way": (
        [(0, 1000, 6, -1), (10, 0, 8, 300), (20, 50, 2, -1), (30, 2000, 2, -1)],
        {"fcfs": ([0, 310, 360], 310), "easy": ([0, 20, 310], 310),
         "conservative": ([0, 20, 310], 310)},
    ),
    # Its turn comes first: it has no run time, and the next one starts in the same second.
    "its turn": (
        [(0, 100, 8, -1), (10, 0, 8, 300), (20, 50, 8, -1), (30, 50, 8, -1)],
        dict.fromkeys(POLICIES, ([0, 100, 150], 100)),
    ),
    # A job arrives after others have left, so it leaves a second later.
    "at once": (
        [(0, 100, 8, -1), (10, 0, 8, 0), (20, 50, 8, -1), (30, 50, 8, -1)],
        dict.fromkeys(POLICIES, ([0, 100, 150], 11)),
    ),
}  # fmt: skip


@both
@pytest.mark.parametrize("scheduler", POLICIES)
@pytest.mark.parametrize("story", STORIES)
def test_a_story(story, scheduler, plain):
    """Starts of the others, and the second at which the job leaves and its user hears of it."""
    jobs, outcomes = STORIES[story]
    start, leaves = outcomes[scheduler]
    table, owner, account = given_up(jobs, scheduler, plain=plain)
    assert table.start.tolist() == [start[0], UNKNOWN, *start[1:]]
    assert table.state.tolist() == [1, State.CANCELLED, 1, 1]
    assert table.end[1] == leaves
    assert leaves in owner.heard
    assert account["jobs_given_up"] == 1
    assert account["jobs_at_their_turn"] == (story == "its turn")
    assert account["wait_mean_s"] == leaves - 10


C, X, R = State.COMPLETED, State.CANCELLED, State.RENOUNCED

#: Jobs that run if their turn comes before their users lose patience; what replaced them; starts,
#: ends and states under FCFS, EASY and conservative; and what is counted.
PATIENCE = {
    # As long as it waits, it is in the way.
    "leaves": (
        [(0, 1000, 6, -1), (10, 500, 8, 300), (20, 50, 2, -1), (30, 2000, 2, -1)], None,
        {"fcfs": ([0, -1, 310, 360], [1000, 310, 360, 2360]),
         "easy": ([0, -1, 20, 310], [1000, 310, 70, 2310]),
         "conservative": ([0, -1, 20, 310], [1000, 310, 70, 2310])},
        [C, X, C, C], (1, 0, 0),
    ),
    "its turn comes": (
        [(0, 100, 8, -1), (10, 70, 8, 300), (20, 50, 8, -1)], None,
        dict.fromkeys(POLICIES, ([0, 100, 170], [100, 170, 220])), [C, C, C], (0, 1, 0),
    ),
    # It runs by the second at which it would have left.
    "in time": (
        [(0, 100, 8, -1), (10, 70, 8, 120)], None,
        dict.fromkeys(POLICIES, ([0, 100], [100, 170])), [C, C], (0, 1, 0),
    ),
    "another one waits longer than it once did": (
        [(0, 100, 8, -1), (10, 70, 8, 50), (20, 50, 8, -1)], None,
        dict.fromkeys(POLICIES, ([0, -1, 100], [100, 60, 150])), [C, X, C], (1, 0, 0),
    ),
    "runs, so that nothing replaces it": (
        [(0, 100, 8, -1), (10, 70, 8, 300), (320, 70, 8, -1), (330, 50, 8, -1)],
        [-1, 2, 3, -1], dict.fromkeys(POLICIES, ([0, 100, -1, -1], [100, 170, -1, -1])),
        [C, C, R, R], (0, 1, 2),
    ),
    "is replaced while it waits": (
        [(0, 1000, 8, -1), (10, 70, 8, 300), (200, 60, 8, -1)], [-1, 2, -1],
        dict.fromkeys(POLICIES, ([0, -1, 1000], [1000, 200, 1060])), [C, X, C], (1, 0, 0),
    ),
    "is replaced after it has left": (
        [(0, 1000, 8, -1), (10, 70, 8, 300), (400, 60, 8, -1)], [-1, 2, -1],
        dict.fromkeys(POLICIES, ([0, -1, 1000], [1000, 310, 1060])), [C, X, C], (1, 0, 0),
    ),
}  # fmt: skip


@both
@pytest.mark.parametrize("scheduler", POLICIES)
@pytest.mark.parametrize("story", PATIENCE)
def test_patience(story, scheduler, plain):
    """Jobs wait as long as their users have patience, and run if their turn comes before."""
    jobs, replaced_by, outcomes, states, counts = PATIENCE[story]
    known = (1,) if story.startswith("another") else ()
    table, owner, account = given_up(
        jobs, scheduler, plain=plain, may_run=True, stays=known,
        replaced_by=None if replaced_by is None else np.array(replaced_by),
    )  # fmt: skip
    assert (table.start.tolist(), table.end.tolist()) == outcomes[scheduler]
    assert table.state.tolist() == states
    assert len(owner.heard) == len(jobs)  # each user goes on
    names = ("jobs_given_up", "jobs_with_imputed_run_time", "jobs_not_replaced")
    assert tuple(account[name] for name in names) == counts


jobs_drawn = st.lists(
    st.tuples(st.integers(0, 400), st.integers(1, 200), st.integers(1, 8), st.integers(-1, 300)),
    min_size=1,
    max_size=30,
)


@given(jobs_drawn, st.sampled_from(POLICIES), st.booleans(), st.data())
@settings(max_examples=80)
def test_compiled_equals_plain(jobs, scheduler, may_run, data):
    """Both engines let the same jobs leave in the same seconds; nothing is lost."""
    jobs = sorted(jobs)
    if not may_run:
        jobs = [(at, 0 if waits >= 0 else run, size, waits) for at, run, size, waits in jobs]
    left = np.array([job[3] for job in jobs]) >= 0
    rows = st.integers(0, len(jobs) - 1)
    stays = data.draw(st.sets(rows)) if may_run else ()
    later = {row: data.draw(rows) for row in np.flatnonzero(left).tolist()} if may_run else {}
    replaced_by = np.array([max(later.get(row, -1), -1) for row in range(len(jobs))])
    replaced_by[replaced_by <= np.arange(len(jobs))] = UNKNOWN
    how = {"may_run": may_run, "replaced_by": replaced_by, "stays": list(stays)}
    (one, heard, account), (other, also, _) = (
        given_up(jobs, scheduler, plain=plain, **how) for plain in (False, True)
    )
    assert np.array_equal(one.matrix, other.matrix)
    assert heard.heard == also.heard
    assert len(heard.heard) == len(jobs)
    never = one.state == State.CANCELLED
    assert (one.start[never] == UNKNOWN).all()
    assert account["jobs_given_up"] == never.sum()
    assert never.sum() + one.count(C) + one.count(R) == len(jobs)
    waits = np.array([job[3] for job in jobs])
    assert (one.wait_ended - one.submit <= np.maximum(waits, 1))[left & (one.state != R)].all()
    if may_run:
        assert account["jobs_not_replaced"] <= one.count(R)
        for row in np.flatnonzero(replaced_by != UNKNOWN):  # of such a pair one runs
            assert not (one.state[row] == one.state[replaced_by[row]] == C)
    else:
        assert (never == left).all()


LOG = """; MaxProcs: 8
1 0 0 10000 8 -1 -1 8 10000 -1 1 1 1 -1 1 -1 -1 -1
2 10 3000 0 0 -1 -1 8 20000 -1 5 2 1 -1 1 -1 -1 -1
3 20 9980 100 4 -1 -1 4 100 -1 1 3 1 -1 1 -1 -1 -1
4 30 -1 -1 -1 -1 -1 4 100 -1 5 4 1 -1 1 -1 -1 -1
5 40 500 -1 -1 -1 -1 -1 100 -1 5 2 1 -1 1 -1 -1 -1
6 50 60 30 4 -1 -1 4 100 -1 5 4 1 -1 1 -1 -1 -1
"""


def test_which_jobs_were_given_up():
    """Status 5, no run, a known wait; jobs that ran were stopped, not given up."""
    trace = parse_swf(LOG)
    assert gave_up(trace).tolist() == [False, True, False, False, True, False]
    assert jobs_from_trace(trace).jobs.number.tolist() == [1, 2, 3, 6]
    found = jobs_from_trace(trace, Conversion(given_up="recorded"))
    assert found.jobs.number.tolist() == [1, 2, 3, 5, 6]
    assert found.jobs.processors.tolist() == [8, 8, 4, 1, 4]
    assert found.repaired["given up, no processors: 1 assumed"] == 1
    assert found.dropped == {"no run time (never ran)": 1}


@pytest.mark.parametrize("users", ["rigid", "think-time", "adjusted"])
def test_the_recorded_queue(users):
    """Under the recorded schedule the queue is that of the log, second by second."""
    trace = parse_swf(LOG)
    jobs = replay(trace, users=users, scheduler="recorded").jobs
    kept = np.isin(trace["number"], jobs.number)
    assert jobs.submit.tolist() == trace["submit"][kept].tolist()
    assert jobs.wait_ended.tolist() == (trace["submit"] + trace["wait"])[kept].tolist()
    assert jobs.count(State.CANCELLED) == 2


def test_users_go_on_when_it_leaves():
    """A user who thinks after a job that was given up goes on as long after it has left."""
    trace = parse_swf(
        "; MaxProcs: 8\n"
        "1 0 0 9000 8 -1 -1 8 9000 -1 1 1 1 -1 1 -1 -1 -1\n"
        "2 10 90 -1 -1 -1 -1 8 100 -1 5 2 1 -1 1 -1 -1 -1\n"
        "3 130 9000 50 4 -1 -1 4 100 -1 1 2 1 -1 1 -1 -1 -1\n"
    )
    run = replay(trace, users="adjusted", scheduler="fcfs")
    assert run.jobs.submit.tolist() == [0, 10, 130]
    assert run.jobs.end.tolist() == [9000, 100, 9050]
    assert run.summary()["given_up"]["jobs_given_up"] == 1
    assert "1 job given up in the queue" in run.parts["given up"].lines({})[0]
    dropped = replay(trace, users="adjusted", scheduler="fcfs", given_up="drop")
    assert dropped.metrics["jobs_in"] == 2
    assert "given_up" not in dropped.summary()


def test_logs_without_such_jobs():
    """Nothing acts in a run of a log in which nobody gave up."""
    trace = parse_swf(LOG.splitlines()[1])
    assert "given_up" not in replay(trace).summary()


def test_imputed_run_times():
    """Each has that of a job of the same user: alike in processors and request, and near in time.

    Without jobs of the user it is that of all others; never more than requested.
    """
    count, far = 3 * ALIKE, 10_000
    table = recorded(
        np.arange(count + 3), np.zeros(count + 3, np.int64),
        user=np.array([1] * count + [1, 2, 1]),
        processors=np.repeat([4, 4, 64, 4, 4, 2], [ALIKE, ALIKE, ALIKE, 1, 1, 1]),
        requested_time=np.repeat([100, far, 100, 100, far, 100], [ALIKE, ALIKE, ALIKE, 1, 1, 1]),
    )  # fmt: skip
    run_time = np.repeat([7, 500, 70, 0], [ALIKE, ALIKE, ALIKE, 3])
    rows = np.arange(count, count + 3)
    drawn = [
        imputed_run_times(table, rows, run_time, np.random.default_rng(seed)).tolist()
        for seed in range(5)
    ]
    assert drawn == [[7, 500, 7]] * 5
    run_time[:ALIKE] = np.arange(1, ALIKE + 1) * 20
    stream = np.random.default_rng(1)
    drawn = [imputed_run_times(table, rows, run_time, stream)[0] for _ in range(200)]
    assert set(drawn) == {20, 40, 60, 80, 100}  # no longer than requested
    alone = table.take(rows)
    assert imputed_run_times(alone, np.arange(3), alone.run_time, stream).tolist() == [
        100,
        far,
        100,
    ]


@pytest.fixture(scope="module")
def impatient(tmp_path_factory):
    """The file of a patience of minutes, whoever waits."""
    return even_patience(tmp_path_factory.mktemp("patience"), -1.0)


def line(number, submit, wait, run, size, status=1, user=1, asked=100):
    """A line of SWF; run is -1 for a job that was given up."""
    fields = (number, submit, wait, run, size, -1, -1, size, asked, -1, status, user)
    return " ".join(map(str, (*fields, 1, 1, -1, 1, -1, -1)))


def log_of(*jobs):
    """A log of such lines on 8 processors."""
    return parse_swf("; MaxProcs: 8\n" + "\n".join(line(*job) for job in jobs) + "\n")


#: Logs, and the starts, -1 for none, in each mode under FCFS, EASY and conservative.
MODES = {
    # Its turn comes before its user has given up, as long as nobody else comes too late.
    "its turn": (
        [(1, 0, 0, 100, 8, 1, 2), (2, 10, 150, -1, 8, 5, 2, 60), (3, 20, 200, 50, 8)],
        {"recorded": dict.fromkeys(POLICIES, (0, -1, 100)),
         "patience": dict.fromkeys(POLICIES, (0, 100, 160)),
         "drop": dict.fromkeys(POLICIES, (0, 100))},
    ),
    "in the way": (
        [(1, 0, 0, 1000, 6, 1, 1, 1000), (2, 10, 300, -1, 8, 5, 2), (3, 20, 900, 50, 2)],
        {"recorded": {"fcfs": (0, -1, 310), "easy": (0, -1, 20), "conservative": (0, -1, 20)},
         "patience": {"fcfs": (0, -1, 310), "easy": (0, -1, 20), "conservative": (0, -1, 20)},
         "drop": dict.fromkeys(POLICIES, (0, 20))},
    ),
    # Half a minute after it left, its user submitted it again.
    "changed mind": (
        [(1, 0, 0, 100, 8, 1, 2), (2, 10, 150, -1, 8, 5, 2, 60), (3, 190, 900, 50, 8, 1, 2, 60)],
        {"recorded": dict.fromkeys(POLICIES, (0, -1, 190)),
         "patience": dict.fromkeys(POLICIES, (0, 100, -1)),
         "drop": dict.fromkeys(POLICIES, (0, 190))},
    ),
}  # fmt: skip


@pytest.mark.parametrize("scheduler", POLICIES)
@pytest.mark.parametrize("mode", ["recorded", "patience", "drop"])
@pytest.mark.parametrize("story", MODES)
def test_modes(story, mode, scheduler, impatient):
    """What each mode makes of a log, under each policy."""
    jobs, starts = MODES[story]
    asked = f"patience:{impatient}" if mode == "patience" else mode
    run = replay(log_of(*jobs), users="rigid", scheduler=scheduler, given_up=asked)
    assert tuple(run.jobs.start.tolist()) == starts[mode][scheduler]


def test_patience_is_fitted_to_the_log(tmp_path):
    """Without a file it is that of the log itself; nobody gives up before he did in the record."""
    jobs = [(n, 10 * n, 300, *((-1, 8, 5) if n % 3 == 0 else (50, 8, 1)), n % 4) for n in range(40)]
    trace = log_of(*jobs)
    runs = [replay(trace, users="rigid", scheduler="fcfs", given_up="patience") for _ in range(2)]
    assert np.array_equal(runs[0].jobs.matrix, runs[1].jobs.matrix)
    jobs, gone = runs[0].jobs, gave_up(trace)
    left = jobs.state == State.CANCELLED
    assert left.any()
    assert ((jobs.end - jobs.submit)[left & gone] <= 300).all()  # less if one takes its place
    assert ((jobs.end - jobs.submit)[left & ~gone] > 300).all()
    assert (jobs.start[gone] != UNKNOWN).any()
    frame = runs[0].to_frame()
    marked = frame.imputed_run_time.notna()
    assert marked.tolist() == (gone & (jobs.start != UNKNOWN)).tolist()
    assert (frame.imputed_run_time == frame.run_time)[marked].all()
    write_results(runs[0], tmp_path / "out", plots=False)
    again = read_results(tmp_path / "out").parts["given up"]
    assert again.account == runs[0].parts["given up"].account
    assert again.rows == runs[0].parts["given up"].rows
    assert "ran that had been given up" in runs[0].parts["given up"].lines({})[1]


def test_patience_from_another_log(impatient):
    """It counts where nobody gave up in the record, too; there is none to fit to such a log."""
    trace = log_of((1, 0, 0, 10**7, 8), *((n, 10, 5, 60, 8) for n in range(2, 30)))
    run = replay(trace, users="rigid", scheduler="fcfs", given_up=f"patience:{impatient}")
    account = run.summary()["given_up"]
    assert account["jobs_given_up"] == run.metrics["jobs_cancelled"] > 20
    assert account["given_up_processor_h"] == account["jobs_given_up"] * 8 * 60 / 3600
    with pytest.raises(TraceError, match="no job was given up"):
        replay(trace, given_up="patience")
    recorded = replay(trace, users="rigid", scheduler="recorded", given_up=f"patience:{impatient}")
    assert recorded.jobs.wait_ended.tolist() == (trace["submit"] + trace["wait"]).tolist()


def test_the_file_counts(impatient):
    """Its path is relative to the folder of a scenario; what it holds decides what a run is."""
    config = ReplayConfig.configure(given_up=f"patience:{impatient.name}", folder=impatient.parent)
    assert config.completed()["given_up"] == f"patience:{impatient}"
    (sums,) = {config.identity()["given_up"], config.sums()[impatient.name]}
    assert len(sums) == 64
    assert config.label().endswith(f"given_up patience:{impatient.name}, easy")
    assert config.conversion().given_up == "recorded"


def test_wrong_modes(tmp_path):
    """An unknown mode and a missing file are errors of one line."""
    trace = log_of((1, 0, 0, 100, 8))
    with pytest.raises(QuantityError, match=r"given-up 'dropped': .*drop"):
        replay(trace, given_up="dropped")
    with pytest.raises(QuantityError, match="no such file; make one with `hpcrowd fit patience"):
        replay(trace, given_up=f"patience:{tmp_path / 'none.json'}")


lines_drawn = st.lists(
    st.tuples(
        st.integers(0, 2000), st.integers(-1, 900), st.integers(-1, 400), st.integers(-1, 10),
        st.sampled_from([0, 1, 5]), st.integers(1, 3), st.integers(-1, 500),
    ),
    min_size=1,
    max_size=25,
)  # fmt: skip


@given(
    lines_drawn,
    st.sampled_from(POLICIES),
    st.sampled_from(["rigid", "think-time", "adjusted"]),
    st.sampled_from(["recorded", "patience", "drop"]),
    st.sampled_from(["keep", "kill"]),
)
@settings(max_examples=100)
def test_no_job_is_lost(impatient, lines, scheduler, users, mode, overrun):
    """Each job of a log was dropped, or has one end; those that left the queue were given up."""
    trace = log_of(*((number, *one) for number, one in enumerate(sorted(lines), 1)))
    asked = f"patience:{impatient}" if mode == "patience" else mode
    try:
        run = replay(trace, users=users, scheduler=scheduler, given_up=asked, overrun=overrun)
    except TraceError:  # none of its jobs can be simulated
        return
    found = run.metrics
    ends = ("completed", "killed", "rejected", "cancelled", "renounced")
    assert sum(found[f"jobs_{end}"] for end in ends) == found["jobs_in"]
    assert found["jobs_in"] + found["jobs_dropped"] == len(trace)
    account = run.summary().get("given_up", {"jobs_given_up": 0})
    assert account["jobs_given_up"] == found["jobs_cancelled"]
    if mode != "patience":
        assert found["jobs_renounced"] == 0
