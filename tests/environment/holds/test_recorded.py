"""Dependencies, throttles and eligible times of a log, in its replay."""

import pytest
from hpcrowd import State, read_trace
from hpcrowd.analysis.results import read_recorded, read_results, write_results
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.holds.recorded import recorded_rules
from hpcrowd.environment.holds.rules import Condition
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.traces.trace import Conversion, jobs_from_trace
from hpcrowd.formats import parse_sacct
from hpcrowd.scenarios.kinds.replay import ReplayConfig, replay

from tests.support.sacct import UTC, text

ANY, OK, NOT_OK = Condition


def at(second):
    """A time of day as sacct writes it."""
    return f"2024-01-31T12:{second // 60:02}:{second % 60:02}"


def job(number, submit, start, end, line="", **more):
    """A row of sacct, with its times in s after noon, and options of ``sbatch``."""
    return {
        "JobID": number, "Submit": at(submit), "Eligible": at(submit), "Start": at(start),
        "End": at(end), "ElapsedRaw": str(end - start), "SubmitLine": f"sbatch {line} x.sh",
    } | more  # fmt: skip


def rules_for(*rows):
    """Return the rules of a log."""
    trace = parse_sacct(text(*rows), options=UTC)
    made = jobs_from_trace(trace)
    rules = recorded_rules(trace, made.jobs, made.source_row)
    assert rules is not None
    return rules, trace


def parents(rules):
    """Return what each job waits for, as plain pairs."""
    return {row: [(one.row, one.condition) for one in of] for row, of in rules.parents.items()}


def test_conditions():
    """Each type of dependency, of jobs, tasks and arrays."""
    rules, trace = rules_for(
        job("1_0", 0, 0, 10),
        job("1_1", 0, 0, 20),
        job("2", 0, 0, 5, State="FAILED"),
        job("3", 1, 30, 40, "--dependency=afterok:1"),
        job("4", 2, 30, 40, "-d afterany:1_1,afternotok:2"),
        job("5", 3, 30, 40, "--dependency=afterok:1_0?afterok:2"),
        job("6_1", 4, 30, 40, "--dependency=aftercorr:1"),
        job("7", 5, 50, 60, "--dependency=afterany:1_7:3"),
    )
    assert {
        3: [(0, OK), (1, OK)],
        4: [(1, ANY), (2, NOT_OK)],
        5: [(0, OK), (2, ANY)],
        6: [(1, OK)],
        7: [(3, ANY)],
    } == parents(rules)
    assert frozenset({5}) == rules.either
    assert [False, False, True, *[False] * 5] == rules.failed.tolist()
    assert {
        "ran though a job that it depends on had not ended as it asked: its end is enough": 1,
        "depends on a job that is not replayed: eligible as long after its submission as then": 1,
    } == dict(rules.notes)
    # Fields 17 and 18: the other that ended last, and no time to think.
    assert [-1, -1, -1, 2, 2, 1, 2, 4] == trace["preceding"].tolist()
    assert [-1, -1, -1, 0, 0, 0, 0, 0] == trace["think_time"].tolist()


def test_what_cannot_be_taken():
    """Unknown types and jobs keep the recorded time; a job that had not ended is no reason."""
    rules, _ = rules_for(
        job("1", 0, 0, 100),
        job("2", 1, 5, 40, "-d afterok:1", Eligible=at(4)),
        job("3", 2, 40, 50, "-d after:1", Eligible=at(30)),
        job("4", 3, 40, 50, "-d afterok:99", Eligible=at(33)),
        job("5", 4, 40, 50, Eligible=at(20)),
        job("6", 5, 140, 150, "--begin=now+30 -d afterok:1", Eligible=at(100)),
    )
    assert {5: [(0, OK)]} == parents(rules)
    assert [0, 3, 28, 30, 16, 30] == rules.delay.tolist()
    assert 3 == rules.notes.total()


def given_up(number, submit, left, line=""):
    """A row of sacct of a job that its user cancelled while it waited."""
    never = {"State": "CANCELLED by 5", "Start": "Unknown", "End": at(left), "ElapsedRaw": "0"}
    return job(number, submit, left, left, line) | never


def test_of_jobs_that_were_given_up():
    """What depends on the success of a job that left never starts; what asks for its end does."""
    rows = (
        job("1", 0, 0, 600),
        given_up("2", 1, 50),
        given_up("3", 2, 60, "-d afterok:2"),  # never ran, and waited for success
        given_up("4", 3, 500, "-d afterok:1"),  # left before the job ended that it waited for
        job("5", 4, 700, 710, "-d afterany:3"),
        job("6", 5, 800, 810, "-d afternotok:2"),
    )
    each = [row | {"User": f"u{row['JobID']}", "UID": row["JobID"]} for row in rows]
    trace = parse_sacct(text(*each), options=UTC)
    made = jobs_from_trace(trace, Conversion(given_up="recorded"))
    rules = recorded_rules(trace, made.jobs, made.source_row)
    assert rules is not None
    assert {2: [(1, OK)], 3: [(0, OK)], 4: [(2, ANY)], 5: [(1, NOT_OK)]} == parents(rules)
    jobs = replay(trace, scheduler="fcfs", users="rigid", processors="8").jobs
    states = [State(state).name.lower() for state in jobs.state]
    assert ["completed", "cancelled", "cancelled", "cancelled", "completed", "completed"] == states
    assert [0, UNKNOWN, UNKNOWN, UNKNOWN, 4, 5] == jobs.start.tolist()
    assert [600, 1, 2, 500, 14, 15] == jobs.end.tolist()
    # Where users have patience, the job in row 1 runs, and that is a success.
    jobs = replay(trace, users="rigid", processors="8", given_up="patience").jobs
    assert jobs.start[1] == 1
    assert jobs.start[2] == jobs.end[1]
    assert jobs.state[5] == State.CANCELLED


def test_arrays_and_singletons():
    """Tasks share the throttle of their array; a name is that of one user."""
    throttled = "--array=0-2%1"
    rules, _ = rules_for(
        job("8_0", 0, 0, 10, throttled),
        job("8_1", 0, 10, 20, throttled, Eligible=at(10)),
        job("8_2", 0, 20, 30, throttled, Eligible=at(20)),
        job("9", 1, 1, 10, JobName="ring"),
        job("10", 2, 10, 20, "-d singleton", JobName="ring", Eligible=at(10)),
        job("11", 3, 3, 10, JobName="ring", User="bob"),
    )
    assert {0: 0, 1: 0, 2: 0} == rules.array
    assert {0: 1} == rules.throttle
    assert {3, 4} == set(rules.name_of)
    assert frozenset({4}) == rules.singletons
    assert not rules.delay.any()


def test_nothing_held():
    """Logs without such columns, and logs in which nobody was held, have no rules."""
    for rows in (job("1", 0, 0, 10),), ({"JobID": "1"},):
        trace = parse_sacct(text(*rows), options=UTC)
        made = jobs_from_trace(trace)
        assert recorded_rules(trace, made.jobs, made.source_row) is None
    run = replay(trace)
    assert ({}, None) == (run.parts["holds"].account, run.metrics["eligible_wait_mean_s"])
    assert "holds" not in run.summary()


CHAIN = (
    job("1", 0, 0, 60),
    job("2", 1, 60, 90, "-d afterok:1", Eligible=at(60)),
    job("3", 2, 90, 100, "-d afterany:2", Eligible=at(90)),
    job("4", 3, 33, 43, Eligible=at(33)),
)


@pytest.mark.parametrize("users", ["rigid", "think-time", "think-time-windows"])
def test_replays(users, tmp_path):
    """Users of all kinds have their jobs held; reports, results and traces tell of it."""
    trace = parse_sacct(text(*CHAIN), options=UTC)
    run = replay(trace, users=users, processors="8")
    assert [0, 60, 90, 33] == run.jobs.start.tolist()
    assert {"dependency": 2, "earliest start or hold": 1} == run.parts["holds"].account["causes"]
    assert 0 == run.metrics["eligible_wait_mean_s"]
    assert (59 + 88 + 30) / 4 == run.metrics["wait_mean_s"]
    write_results(run, tmp_path / "out")
    again = read_results(tmp_path / "out")
    assert run.parts["holds"].account == again.parts["holds"].account
    assert run.metrics == again.metrics
    made = run.to_trace()
    assert [-1, 1, 2, -1] == made["preceding"].tolist()
    assert [-1, 0, 0, -1] == made["think_time"].tolist()
    free = replay(trace, users=users, processors="8", holds="none")
    assert [0, 1, 2, 3] == free.jobs.start.tolist()


def test_what_the_controller_of_slurm_does_itself(tmp_path):
    """It stops jobs at limits, keeps earliest starts, and preempts: nothing of it is replayed."""
    again = {"Submit": at(70), "Eligible": at(70)}
    trace = parse_sacct(
        text(
            job("1", 0, 0, 65, TimelimitRaw="1", State="TIMEOUT"),
            job("2", 1, 1, 60, State="PREEMPTED"),
            job("2", 1, 190, 200) | again,
            job("3", 2, 2, 60, State="NODE_FAIL"),
            job("3", 2, 80, 90) | again,
            job("4", 3, 123, 130, "--begin=now+120", Eligible=at(123)),
        ),
        options=UTC,
    )
    conf = tmp_path / "slurm.conf"
    conf.write_text("NodeName=n1 CPUs=4 RealMemory=64000\nPartitionName=long Nodes=n1\n")
    settings = {"machine": str(conf), "users": "rigid"}
    runs = [replay(trace, scheduler="slurm", seed=seed, **settings) for seed in range(4)]
    for run in runs:
        assert (1, 3) == tuple(run.metrics[f"jobs_{how}"] for how in ("killed", "completed"))
        assert [2] == [one.row for one in run.attempts]
        assert 123 <= run.jobs.start[3] < 200
    ends = [run.jobs.end[0] - run.jobs.start[0] for run in runs]
    assert 60 <= min(ends) < max(ends) < 90  # limits are checked every 30 s, from any second on
    other = replay(trace, scheduler="easy", **settings)
    assert 0 == other.metrics["jobs_killed"]
    assert [1, 2] == [one.row for one in other.attempts]


def test_logs_as_runs(call, tmp_path):
    """Recorded schedules have both waits too; the command says how many, how long and why."""
    file = tmp_path / "sacct.txt"
    file.write_bytes(text(*CHAIN))
    trace = parse_sacct(text(*CHAIN), options=UTC)
    for run in (replay(trace, scheduler="recorded"), read_recorded(file)):
        assert [0, 60, 90, 33] == run.jobs.enqueued.tolist()
        account = run.parts["holds"].account
        assert (3, 59.0) == (account["jobs_held"], account["held_mean_s"])
        assert 0 == run.metrics["eligible_wait_mean_s"]
    _, told, _ = call("replay", file, "--zone", "UTC")
    assert "3 jobs held after submission, 59 s on average (2 by dependency, 1 by earliest" in told
    assert "mean wait once eligible" in told


SESSIONS = (
    job("1", 0, 0, 60),
    job("2", 200, 200, 230),
    job("3", 400, 400, 410, "-d afterok:1"),
    job("4", 400, 400, 410, "-d afterok:2", Eligible=at(400)),
)


def staged(**options):
    """A run that has not begun, with each job a session; job 2 takes long."""
    trace = parse_sacct(text(*SESSIONS), options=UTC)
    config = ReplayConfig.configure(sessions="arrival:1s", processors="8", **options)
    return config.stage(trace)


def test_graphs_show_dependencies():
    """An edge says which jobs depend on which; it holds a job and not the session."""
    graph = staged().users[0].graph
    assert "ended and dependency" == graph.edges[1, 2]["reason"]
    assert [(1, 3)] == graph.edges[1, 2]["dependency"]
    assert "dependency" == graph.edges[0, 2]["reason"]
    assert [(0, 2)] == graph.edges[0, 2]["dependency"]
    with pytest.raises(QuantityError, match="comes from the log"):
        graph.edges[1, 2]["dependency"] = []
    with pytest.raises(QuantityError, match="comes from the log"):
        graph.add_edge(0, 1, dependency=[])


@pytest.mark.parametrize(
    ("keep", "leave", "start"),
    [
        # Without the think time the session comes at once, and its job waits for the other one.
        (True, False, [0, 500, 60, 530]),
        (False, False, [0, 500, 60, 0]),
        # Jobs do not wait for a session that was left out.
        (True, True, [0, -1, 60, 30]),
    ],
)
def test_graphs_that_change(keep, leave, start):
    """An edge that is kept holds its job, however users come to their sessions."""
    one = staged()
    graph = one.users[0].graph
    if keep:
        del graph.edges[1, 2]["think_time"]
    else:
        graph.remove_edge(1, 2)
    graph.nodes[2]["start"] = 0
    if leave:
        one.model.run(until=30)
        graph.remove_node(1)
    else:
        graph.remove_edge(0, 1)
        graph.nodes[1]["start"] = 500
    assert start == one.run(None).jobs.start.tolist()


@pytest.fixture(scope="session")
def real(slurm_dumps):
    """The real cluster, with all columns."""
    return read_trace(slurm_dumps / "all-D.txt.gz")


def test_rules_are_those_of_a_real_slurm(real):
    """Its jobs became eligible when the rules say, give or take a round of its scheduler."""
    made = jobs_from_trace(real)
    rules, jobs = recorded_rules(real, made.jobs, made.source_row), made.jobs
    assert rules is not None
    assert not rules.notes
    ids = real.extra["job_id"][made.source_row].tolist()
    later = [int(text or 0) for text in real.extra["eligible"][made.source_row].tolist()]
    eligible = jobs.recorded_submit + later
    place = {one: row for row, one in enumerate(ids)}
    assert {"274", "275", "278"} == {ids[row] for row in rules.parents}
    for row, others in rules.parents.items():
        over = max(int(jobs.recorded_end[one.row]) for one in others)
        assert 0 <= eligible[row] - over <= 15, ids[row]
    assert {ids[row] for row in rules.singletons} == {"279", "280"}
    assert 0 <= eligible[place["280"]] - jobs.recorded_end[place["279"]] <= 15
    for which, most in rules.throttle.items():
        tasks = [row for row, one in rules.array.items() if one == which]
        start, end = jobs.recorded_start[tasks], jobs.recorded_end[tasks]
        assert most == max(int(((start <= now) & (end > now)).sum()) for now in start)
