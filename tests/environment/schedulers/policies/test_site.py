"""The rules of a site: what each holds back, and compiled against plain."""

import numpy as np
import pytest
from hpcrowd import JobTable
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.jobs import Column
from hpcrowd.errors import QuantityError
from hpcrowd.policies import parse_scheduler

from tests.environment.schedulers.pool_cases import ran
from tests.support.simulations import simulation_of

#: Processors of the machine.
SIZE = 16


def table(rows):
    """Jobs from (submission, run time, processors, requested time, user, queue)."""
    jobs = JobTable(len(rows))
    jobs.number[:] = np.arange(len(rows)) + 1
    (
        jobs.recorded_submit[:], jobs.run_time[:], jobs.processors[:], jobs.requested_time[:],
        jobs.user[:], jobs.queue[:],
    ) = np.array(rows).T  # fmt: skip
    return jobs


def starts(rows, scheduler, size=SIZE):
    """When these jobs start."""
    return ran(table(rows), size, scheduler).jobs.start.tolist()


def test_long_jobs_wait_for_the_evening():
    """The origin is a Monday at midnight: from 8 to 17 only short jobs start."""
    rows = [(9 * HOUR, 60, 1, 3 * HOUR, 1, 1), (9 * HOUR, 60, 1, HOUR, 1, 1)]
    assert [17 * HOUR, 9 * HOUR] == starts(rows, "site:hours=2h:8-17")


def test_weekends_are_open():
    """On Saturday at nine a long job starts at once."""
    at = 5 * 24 * HOUR + 9 * HOUR
    assert [at] == starts([(at, 60, 1, 3 * HOUR, 1, 1)], "site:hours=2h:8-17")


def test_hours_of_a_queue_over_midnight():
    """Jobs of queue 2 do not start at night, others do."""
    rows = [(HOUR, 60, 1, 60, 1, 2), (HOUR, 60, 1, 60, 1, 1)]
    assert [7 * HOUR, HOUR] == starts(rows, "site:hours=queue 2:19-7")


def test_partitions_are_machines_of_their_own():
    """A full partition does not keep jobs of other queues, nor does its head."""
    rows = [(0, 100, 4, 100, 1, 2), (1, 100, 4, 100, 1, 2), (2, 100, 12, 100, 1, 1)]
    assert [0, 100, 2] == starts(rows, "site:partitions=2:4,processors=12")


def test_partitions_by_size():
    """Jobs of 8 processors or more run one at a time, unless their queue has a partition."""
    rows = [(0, 100, 8, 100, 1, 1), (1, 100, 8, 100, 2, 1), (2, 50, 7, 50, 3, 1)]
    assert [0, 1, 100] == starts(rows, "site")
    assert [0, 100, 2] == starts(rows, "site:partitions=size 8:8")
    assert [0, 1, 100] == starts(rows, "site:partitions=size 8:8/1:16")


def test_a_size_goes_up_to_the_next_one():
    """With 4 and 8 named, a job of 6 is in the partition of 4, and one of 9 in that of 8."""
    site = parse_scheduler("site:partitions=size 8:9/size 4:6")
    assert [0, 2, 2, 1, 1] == [site.part_of(1, size) for size in (3, 4, 6, 8, 9)]


def test_a_job_larger_than_its_partition():
    """It waits until nothing runs there, and nobody overtakes it for long."""
    rows = [(0, 100, 2, 100, 1, 2), (1, 50, 8, 50, 2, 2), (2, 500, 1, 500, 3, 2)]
    assert [0, 100, 150] == starts(rows, "site:partitions=2:4")


def test_only_the_first_jobs_of_a_user_are_considered():
    """The second job of a user would fit, and is not looked at while the first waits."""
    rows = [(0, 100, 10, 100, 2, 1), (1, 100, 10, 100, 1, 1), (2, 50, 1, 50, 1, 1)]
    assert [0, 100, 2] == starts(rows, "site")
    assert [0, 100, 100] == starts(rows, "site:user-queued=1")


def test_limits_of_a_user():
    """A user has one job at a time, or as many processors, unless a job alone has more."""
    rows = [(0, 100, 6, 100, 1, 1), (1, 100, 4, 100, 1, 1), (2, 10, 1, 10, 2, 1)]
    assert [0, 100, 2] == starts(rows, "site:user-jobs=1")
    assert [0, 100, 2] == starts(rows, "site:user-processors=5")
    assert [0, 1, 2] == starts(rows, "site:user-processors=10")


def test_the_order():
    """Priorities of queues come before the order, which may be that of the latest."""
    rows = [(0, 100, 16, 100, 1, 1), (1, 100, 16, 100, 1, 1), (2, 100, 16, 100, 1, 2)]
    assert [0, 100, 200] == starts(rows, "site")
    assert [0, 200, 100] == starts(rows, "site:order=-submit")
    assert [0, 200, 100] == starts(rows, "site:priorities=2:1")


@pytest.mark.parametrize(
    "wrong",
    ["hours=8-17", "hours=4h:8-8", "hours=4h:8-25", "partitions=2", "partitions=2:0", "order=user",
     "user-jobs=0", "backfill=sjbf"],
)  # fmt: skip
def test_wrong_options(wrong):
    """One line says which option is wrong."""
    with pytest.raises(QuantityError, match=wrong.partition("=")[0].replace("-", ".")):
        parse_scheduler(f"site:{wrong}")


OPTIONS = (
    ("order=submit", "order=-submit", "order=requested", "order=-processors", "order=area"),
    ("", "backfill=none"), ("", "partitions=1:5/2+3:9", "partitions=1:5/size 4:9/size 2+size 7:6"),
    ("", "processors=9"),
    ("", "user-jobs=1", "user-jobs=3"), ("", "user-processors=5"),
    ("", "user-queued=1", "user-queued=3"), ("", "hours=2h:8-17+queue 2:19-7"),
    ("", "priorities=1:3+2:-1"),
)  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_compiled_like_plain(seed):
    """Random options and jobs come to the same schedule in the compiled engine and in the plain."""
    random = np.random.default_rng(seed)
    count = 120
    times = np.sort(random.integers(0, 72 * HOUR, count))
    lengths = random.integers(1, 30_000, count)
    asked = np.maximum((lengths * random.uniform(0.7, 3, count)).astype(int), 1)
    rows = np.column_stack(
        [times, lengths, random.integers(1, 9, count), asked, random.integers(0, 5, count),
         random.integers(0, 4, count)]
    )  # fmt: skip
    words = [word for some in OPTIONS if (word := str(random.choice(some)))]
    scheduler = f"site:{','.join(words)}"
    kill = {"overrun": "kill" if seed % 2 else "keep"}
    plain, compiled = (
        ran(table(rows), SIZE, scheduler, plain=which, **kill).jobs.start for which in (True, False)
    )
    assert plain.tolist() == compiled.tolist(), scheduler


def test_hours_are_local_after_a_switch():
    """A site's rules that come later have the clock of the log, too."""
    from zoneinfo import ZoneInfo

    from hpcrowd.environment.clock import Clock
    from hpcrowd.platform import SwitchPolicy

    clock = Clock(1_704_672_000, ZoneInfo("Etc/GMT-2"), known=True)  # Monday, 02:00 there
    jobs = table([(9 * HOUR, 60, 1, 3 * HOUR, 1, 1)])
    changes = [SwitchPolicy(HOUR, "site:hours=2h:8-17")]
    simulation = simulation_of(jobs, SIZE, "easy", clock=clock, platform=changes)
    simulation.cluster.submit(np.arange(1), jobs.recorded_submit)
    assert [15 * HOUR] == simulation.run().jobs.start.tolist()


def test_jobs_that_come_one_by_one():
    """They are in the partitions, and start when, all together are and do."""
    random = np.random.default_rng(5)
    rows = np.column_stack(
        [np.arange(60) * 900, random.integers(1, 9000, 60), random.integers(1, 9, 60),
         np.full(60, 9000), random.integers(0, 5, 60), random.integers(0, 4, 60)]
    )  # fmt: skip
    rules = "site:partitions=1:5/size 4:9,user-jobs=2,order=area"
    policy = parse_scheduler(rules)
    queues, sizes = rows[:, 5], rows[:, 2]
    single = [policy.parts_of(queues[one : one + 1], sizes[one : one + 1]) for one in range(60)]
    assert policy.parts_of(queues, sizes).tolist() == np.concatenate(single).tolist()
    whole = ran(table(rows), SIZE, rules, plain=False).jobs.start
    later = simulation_of(JobTable(), SIZE, rules)
    for row in table(rows).matrix.T:
        later.run(until=int(row[Column.RECORDED_SUBMIT]) - 1)
        mine = later.jobs.append(1)
        later.jobs.matrix[:, mine[0]] = row
        later.cluster.submit(mine, row[Column.RECORDED_SUBMIT])
    assert whole.tolist() == later.run().jobs.start.tolist()
