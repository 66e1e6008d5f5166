"""How far two schedules of a plan are apart; on recorded runs, the figures stored next to them."""

import math
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hpcrowd.analysis.features.series import pearson, spearman
from hpcrowd.scenarios.studies.slurm import measures
from hpcrowd.scenarios.studies.slurm.records import Key, Try, load
from hpcrowd.scenarios.studies.slurm.schedules import schedule_of

J = [Key(plan, -1) for plan in range(9)]


def tried(key, submit, start, nodes="n1", trial=0):
    """Return a try that runs for 100 s."""
    end = start + 100 if start >= 0 else -1
    return Try(key, trial, submit, submit, start, end, "COMPLETED", 1, (nodes,), "main")


@pytest.fixture(scope="session")
def recorded(referee_runs):
    """Return a function that reads a recorded run, each only once."""

    @cache
    def read(name):
        record = load(referee_runs / f"run{name}")
        return record, schedule_of(record)

    return read


def test_starts_are_compared_without_the_sign():
    """10 s earlier, as early, 61 s later: 23.7 s; nothing in common is nan; ties share ranks."""
    pairs = [
        (tried(J[0], 0, 110), tried(J[0], 0, 100)),
        (tried(J[1], 5, 200), tried(J[1], 5, 200, "n2")),
        (tried(J[2], 9, 300), tried(J[2], 8, 361)),
        (tried(J[3], 9, -1), tried(J[3], 9, 50)),
    ]
    found = measures.distance(pairs, 6)
    assert (3, 3) == (found.jobs, found.only)
    assert math.isclose(71 / 3, found.mean)
    assert (10, 10, 61) == (found.median, found.p90, found.most)
    assert (1 / 3, 2 / 3, 1) == pytest.approx(found.within)
    assert 17 == found.shift
    assert (110 + 195 + 291) / 3 == found.waits[0]
    assert (2 / 3, 1) == pytest.approx((found.nodes, found.states))
    assert 1 == pytest.approx(found.spearman)
    found = measures.distance([(tried(J[0], 0, -1), tried(J[0], 0, 5))])
    assert (0, 1) == (found.jobs, found.only)
    assert all(map(math.isnan, (found.mean, found.median, found.p90, found.pearson, found.nodes)))
    assert math.isnan(measures.or_nan(pearson, np.ones(5), np.arange(5.0)))
    assert math.isnan(measures.or_nan(spearman, np.ones(2), np.arange(2.0)))
    tied = measures.or_nan(spearman, [2.0, 9, 2, 5], [1.5, 4, 1.5, 3])
    assert 1 == pytest.approx(tied)


def test_reasons_priorities_and_the_order_of_users():
    """Samples within a minute; near within 1 % or 2 points; pairs on which the runs agree."""
    mine = {901: {J[0]: "Priority", J[1]: "Resources"}, 5000: {J[0]: "Priority"}}
    theirs = {900: {J[0]: "Priority", J[1]: "Priority", J[2]: "Priority"}, 1800: {J[0]: "Priority"}}
    found = measures.agreement(mine, theirs)
    assert (2, 1, 2, 0.5) == (found.compared, found.same, found.others, found.share)
    assert {("Priority", "Priority"): 1, ("Resources", "Priority"): 1} == found.pairs
    mine = {0: {Key(1, 3): {"AGE": 12.0}, Key(1, 4): {"AGE": 99.0}, J[2]: {"AGE": 1010.0},
                J[3]: {"AGE": 1011.0}}}  # fmt: skip
    theirs = {0: {J[1]: {"AGE": 10.0}, J[2]: {"AGE": 1000.0}, J[3]: {"AGE": 1000.0}}}
    found = measures.priorities(mine, theirs)["AGE"]
    assert (3, 11) == (found.compared, found.most)
    assert math.isclose(2 / 3, found.near)
    runs = [{"ada": 9.0, "bo": 5.0, "cy": 4.0}, {"ada": 9.0, "bo": 4.0, "cy": 5.0}]
    assert (2, 2, []) == measures.agreed_order({"ada": 7.0, "bo": 1.0, "cy": 2.0}, runs)
    assert (1, 2, [("ada", "cy")]) == measures.agreed_order(
        {"ada": 7.0, "bo": 1.0, "cy": 8.0}, runs
    )


def numbers(text):
    """Return the numbers in a text, percentages as shares."""
    found = re.findall(r"(-?\d+(?:\.\d+)?)(%?)", text)
    return [float(number) / (100 if percent else 1) for number, percent in found]


@pytest.mark.parametrize("pair", ["A-B", "C-D", "A-F", "B-F"])
def test_recorded_runs_give_their_stored_statistics(referee_runs, recorded, pair):
    """Every figure of statistics.txt comes out, to all digits printed there."""
    text = (referee_runs / "statistics.txt").read_text().partition(f"== {pair}: ")[2]
    lines = text.partition("\n==")[0].splitlines()
    one, other = pair.split("-")
    record, schedule = recorded(one)
    found = measures.compare(schedule, recorded(other)[1], record.plan)
    starts = found.starts
    jobs, only, again, mean, median, _, p90, most, *within = numbers(lines[0])
    assert (jobs, only, jobs) == (starts.jobs, starts.only, again)
    assert [mean, median, p90, most] == pytest.approx(
        [starts.mean, starts.median, starts.p90, starts.most], abs=0.501
    )
    assert within[1::2] == pytest.approx(starts.within, abs=0.000501)
    wait, middle, wait2, middle2, pearson, spearman, shift = numbers(lines[1])
    assert [wait, wait2, middle, middle2, shift] == pytest.approx(
        [*starts.waits, *starts.median_waits, starts.shift], abs=0.501
    )
    assert [pearson, spearman] == pytest.approx([starts.pearson, starts.spearman], abs=0.000501)
    for line in lines[2:-1]:
        part = found.partitions[line.split()[0]]
        jobs, mean, median, wait, wait2, pearson = numbers(line)
        assert jobs == part.jobs
        assert [mean, median, wait, wait2] == pytest.approx(
            [part.mean, part.median, *part.waits], abs=0.501
        )
        assert pearson == pytest.approx(part.pearson, abs=0.000501)
    assert numbers(lines[-1]) == pytest.approx([starts.nodes, starts.states], abs=0.000501)


def test_a_run_agrees_with_itself(recorded):
    """The distance of a run to itself is zero in every measure; a job left out is counted."""
    record, schedule = recorded("C")
    found = measures.compare(schedule, schedule, record.plan)
    assert (0, 0, 0) == (found.starts.mean, found.tries.most, found.starts.shift)
    assert 1 == pytest.approx(found.starts.pearson)
    assert (1, 0) == (found.reasons.share, found.reasons.others)
    parts = measures.priorities(schedule.priorities, schedule.priorities)
    assert {1.0} == {one.near for one in parts.values()}
    assert {"PRIORITY", "AGE", "FAIRSHARE", "JOBSIZE", "PARTITION", "QOS"} <= parts.keys()
    one = measures.shares(schedule.shares, schedule.shares)
    assert (405, 1, 0) == (one.compared, one.near, one.most)
    fewer = replace(schedule, tries=schedule.tries[5:])
    gone = len(schedule.jobs) - len(fewer.jobs)
    assert gone > 0
    assert found.starts.jobs - gone == measures.compare(fewer, schedule, record.plan).starts.jobs


def test_what_a_recorded_run_holds(recorded):
    """Parts of a priority add up within rounding; preempted tries have a reason; waits by group."""
    record, schedule = recorded("A")
    sampled = [one for jobs in schedule.priorities.values() for one in jobs.values()]
    assert sampled
    for parts in sampled:
        assert 4 >= abs(parts["PRIORITY"] - sum(v for k, v in parts.items() if k != "PRIORITY"))
    found = measures.priorities(schedule.priorities, recorded("B")[1].priorities)
    assert [1, 1, 1] == [found[name].near for name in ("JOBSIZE", "PARTITION", "QOS")]
    assert 0.9 > found["FAIRSHARE"].near
    preempted = {(one.key, one.trial) for one in schedule.tries if one.state == "PREEMPTED"}
    assert preempted == set(schedule.preempted_for)
    assert 34 == len(preempted)
    waits = measures.waits_by(schedule, record.plan, "partition")
    expected = {"normal": 1471, "debug": 636, "gpu": 4656, "long": 5641, "scavenger": 2181}
    assert expected == {name: round(value) for name, value in waits.items()}
