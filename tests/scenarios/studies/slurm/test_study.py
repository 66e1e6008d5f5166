"""The study of recorded runs: measures, required figures, causes, draws, mechanisms left out."""

import json
import math
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hpcrowd.analysis.features.series import pearson, spearman
from hpcrowd.environment.errors import TraceError
from hpcrowd.scenarios.kinds.replay import replay as replay_log
from hpcrowd.scenarios.studies.slurm import measures
from hpcrowd.scenarios.studies.slurm.measures import by_cause, differences, mean, parting
from hpcrowd.scenarios.studies.slurm.outcomes import (
    MECHANISMS,
    Spread,
    Waits,
    effect_rows,
    effects_of,
    plans_of,
)
from hpcrowd.scenarios.studies.slurm.recorded_logs import machine_of_log
from hpcrowd.scenarios.studies.slurm.records import Key, Submission, Try, load
from hpcrowd.scenarios.studies.slurm.schedules import Schedule, Simulated, schedule_of
from hpcrowd.scenarios.studies.slurm.simulated import replay
from hpcrowd.scenarios.studies.slurm.study import compare_records, load_all, reproduce_slurm

from tests.scenarios.studies.study_cases import CONF, shown

ONE, TWO, THREE = (Key(plan, -1) for plan in (1, 2, 3))


def simulate_as_recorded(other):
    """Return a simulation that says what another recorded run of the plan did."""
    return lambda record, number: Simulated(schedule_of(other))


def line(plan, **more):
    """Return a submission of one core."""
    common = Submission(
        plan, 0, 0, 0, "ada", "physics", "main", "normal", -1, 1, -1, -1, -1, -1, False, "", 60,
        (), 0, None, -1, -1, -1, (60.0,),
    )  # fmt: skip
    return replace(common, **more)


def schedule(starts, node="n1", how="main", **more):
    """Return a schedule of jobs that run for 100 s."""
    tries = tuple(
        Try(key, 0, 0, 0, start, start + 100, "COMPLETED", 1, (node,), how)
        for key, start in starts.items()
    )
    return replace(Schedule("one", tries), **more)


@pytest.mark.parametrize(
    ("cause", "plan", "mine", "theirs"),
    [
        ("parent", {"condition": "afterok", "parent": 1}, {}, {}),
        ("priority", {}, {"priorities": {0: {TWO: {"PRIORITY": 9.0, "AGE": 9.0}}}},
         {"priorities": {0: {TWO: {"PRIORITY": 90.0, "AGE": 90.0}}}}),
        ("limit", {}, {"reasons": {0: {TWO: "QOSMaxJobsPerUserLimit"}}}, {}),
        ("preemption", {}, {"preempted_for": {(ONE, 0): TWO}}, {}),
        ("order", {}, {"reasons": {0: {TWO: "Resources"}}}, {}),
        ("nodes", {}, {}, {}),
    ],
)  # fmt: skip
def test_differences_have_a_cause(cause, plan, mine, theirs):
    """Job 2 starts 100 s later where job 1 does; what else is known says why."""
    here = schedule({ONE: 100, TWO: 200}, **mine)
    there = schedule({ONE: 0, TWO: 100}, **theirs)
    found = differences(here, there, [line(1), line(2, **plan)])
    causes = {one.key: one.cause for one in found}
    assert cause == causes[TWO]
    assert [100, 100] == [one.later for one in found]


def test_other_causes():
    """The pass that started it, nothing known, the task before; sorted by size and by time."""
    for how, cause in (("backfill", "pass"), ("main", "none")):
        here, there = schedule({TWO: 200}, how=how), schedule({TWO: 100})
        assert [cause] == [one.cause for one in differences(here, there, [line(2)])]
    first, second = Key(1, 0), Key(1, 1)
    array = line(1, array=(0, 1), throttle=1, run=(100.0, 100.0))
    here, there = schedule({first: 50, second: 150}), schedule({first: 0, second: 100})
    found = {one.key: one for one in differences(here, there, [array])}
    assert ("array", "room for it +50 s") == (found[second].cause, found[second].detail)
    here, there = schedule({ONE: 10, TWO: 900, THREE: 5}), schedule({ONE: 0, TWO: 100, THREE: 5})
    found = differences(here, there, [line(1), line(2), line(3)])
    assert [TWO, ONE] == [one.key for one in found]
    assert [ONE, TWO] == [one.key for one in parting(found)]
    assert 810 == sum(seconds for _, _, seconds in by_cause(found))


def test_runs_are_found_and_grouped_by_plan(referee_runs, tmp_path):
    """All of a folder, by plan.csv; anything else is refused."""
    assert [["runA", "runB", "runF"], ["runC", "runD"]] == [
        [run.name for run in runs] for runs in plans_of(load_all([referee_runs]))
    ]
    assert ["runC"] == [run.name for run in load_all([referee_runs / "runC"] * 2)]
    with pytest.raises(TraceError, match="not a folder"):
        load_all([tmp_path / "none"])


def required(study, run=""):
    """Return which figures are reached, of a run if there are several."""
    return {one.what: one.holds for one in study.requirements if run in ("", one.setting)}


def test_a_run_in_place_of_the_simulation(referee_runs, recorded):
    """Run B in the place of A's replays: the figures are those of the pair A and B."""
    study = compare_records(
        [referee_runs / "runA", referee_runs / "runF"], simulate_as_recorded(recorded("B")[0])
    )
    one, other = study.traces.values()
    assert (605, 601) == (one.ours.starts.jobs, other.ours.starts.jobs)
    assert [605] == [pair.starts.jobs for pair in one.own]
    figures = {
        need.what: (need.ours, need.required)
        for need in study.requirements
        if need.setting == "runA"
    }
    assert ("932 s", "at most 877 s") == figures["mean difference of starts"]
    assert ("1446 s", "1471 s, runs 348 s apart") == figures["mean wait in normal"]
    assert ("26 of 27 pairs", "27 pairs") == figures["users' mean waits in order"]
    near = Waits((5.0, 8.0), (9.0, 6.0))
    assert near.near  # 2.5 s apart, recorded runs 3 s
    assert not Waits((5.0, 8.0), (9.0, 8.0)).near
    assert Waits((5.0, 10.0), (9.0,)).near
    text = shown(study)
    assert "Largest differences" in text
    assert "of 22 required figures reached" in text
    assert len(one.differences) + len(other.differences) == len([*study.rows()[1]])
    parts = study.page_parts()
    assert {"starts", "partitions", "users", "reasons", "priorities", "causes", "largest",
            "earliest", "required", "summary"} == parts.keys()  # fmt: skip
    assert json.dumps(study.to_json(), allow_nan=False)


@pytest.mark.slow
def test_a_run_compared_with_itself(referee_runs, recorded):
    """It reaches all; with starts 1,500 s later these and waits do not, the order of users does."""
    folders = [referee_runs / "runC", referee_runs / "runD"]
    found = required(compare_records(folders, lambda one, _: Simulated(*[schedule_of(one)] * 2)))
    assert {True} == set(found.values())
    assert "priorities reproduced" in found
    run = recorded("C")[1]
    later = tuple(
        replace(one, start=one.start + 1500, end=one.end + 1500) if one.started else one
        for one in run.tries
    )
    found = required(
        compare_records(folders, lambda *_: Simulated(replace(run, tries=later))), "runC"
    )
    starts = ("mean difference of starts", "median difference of starts", "mean wait in normal")
    assert [False] * 3 == [found[what] for what in starts]
    assert found["users' mean waits in order"]
    assert found["Pearson of waits"]


@pytest.mark.slow
def test_a_single_run_takes_the_pairs_of_other_plans(referee_runs, recorded):
    """Run A alone has no pair; with C and D given, their difference is what is allowed."""
    alone = compare_records([referee_runs / "runA"], simulate_as_recorded(recorded("B")[0]))
    assert "mean difference of starts" not in required(alone)
    folders = [referee_runs / f"run{name}" for name in "ACD"]
    study = compare_records(folders, lambda record, _: Simulated(schedule_of(record)))
    first = study.traces["runA"]
    assert first.borrowed
    assert ["runD"] == [pair.second for pair in first.own]
    assert not study.traces["runC"].borrowed


def test_the_log_has_limits_of_its_own(slurm_dumps, tmp_path):
    """The log of eight nodes is compared on its plain jobs, by correlation and median."""
    for path in (slurm_dumps, slurm_dumps.parent / "truth-a.csv"):
        (tmp_path / path.name).symlink_to(path)
    study = compare_records([tmp_path], lambda record, _: Simulated(schedule_of(record)))
    (one,) = study.traces.values()
    assert 297 == one.ours.starts.jobs
    assert {"Pearson of waits": True, "median difference of starts": True} == required(study)


def test_a_run_without_samples_is_compared_by_its_starts(referee_runs, recorded, tmp_path):
    """Without samples and log, nothing is required of reasons; all other figures are there."""
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("plan.csv", "submitted.csv", "clock.txt", "schedule.csv"):
        (folder / name).symlink_to(referee_runs / "runC" / name)
    study = compare_records([folder], simulate_as_recorded(recorded("D")[0]))
    (one,) = study.traces.values()
    assert (579, 0) == (one.ours.starts.jobs, one.ours.reasons.compared)
    assert "same pending reasons" not in required(study)
    assert "mean wait in normal" in required(study)
    study.write(tmp_path / "study")
    assert json.loads((tmp_path / "study" / "slurm.json").read_text())["runs"]["run"]


@pytest.mark.slow
def test_simulations_are_as_near_as_the_page_says(referee_runs):
    """Starts, waits, order of users and priorities, with two draws and loose bounds."""
    study = reproduce_slurm(referee_runs, phases=2, seed=3)
    assert ["runA", "runB", "runF", "runC", "runD"] == list(study.traces)
    among = []
    for name, one in study.traces.items():
        apart, correlated = (350, 0.90) if name in ("runC", "runD") else (1200, 0.70)
        assert one.spread(lambda pair: pair.starts.mean).median < apart
        assert one.spread(lambda pair: pair.starts.pearson).median > correlated
        assert one.spread(lambda pair: pair.reasons.share).median > 0.78
        assert one.parts["PRIORITY"].near >= 0.95
        right, counted, _ = one.order
        assert right >= counted - 3
        own = mean([pair.starts.mean for pair in one.own])
        among.append(mean([pair.mean for pair in one.among]) / own)
        for waits in one.partitions.values():
            assert 0.6 * 0.9 * min(waits.runs) < waits.ours < 1.5 * 1.1 * max(waits.runs)
    assert mean(among) > 0.4  # timers alone lead as far apart as recorded runs are


def test_it_is_the_ordinary_replay(made):
    """What ``hpcrowd replay`` says of each job, to the second, and with each seed."""
    settings = {"machine": str(made), "scheduler": "slurm", "users": "rigid"}
    found = []
    for seed in range(3):
        jobs = replay_log(made / "sacct-all.txt", seed=seed, **settings).jobs
        schedule = replay(load(made), seed).schedule
        expected = {one.job - 1: one.start for one in schedule.first.values()}
        shift = int(jobs.recorded_submit[0]) - schedule.first[Key(1, -1)].submit
        assert expected == {row: int(jobs.start[row]) - shift for row in expected}
        found.append(expected)
    assert 3 == len({tuple(one.values()) for one in found})


@pytest.mark.slow
def test_the_log_of_eight_nodes_is_replayed(slurm_dumps, tmp_path):
    """With its own machine, starts are a few seconds apart, and waits correlate well."""
    for name in ("dumps", "truth-a.csv", "slurm.conf.in"):
        (tmp_path / name).symlink_to(slurm_dumps.parent / name)
    (one,) = reproduce_slurm(tmp_path, phases=3).traces.values()
    assert one.log
    assert 297 == one.ours.starts.jobs
    assert one.spread(lambda pair: pair.starts.pearson).median > 0.92
    assert one.spread(lambda pair: pair.starts.median).median < 8
    assert ["Pearson of waits", "median difference of starts"] == [
        need.what for need in one.requirements
    ]


@pytest.fixture(scope="module")
def made(input_of):
    """Return a made-up run of 80 submissions."""
    return input_of("slurm")


def test_a_spread_is_the_median_and_the_range_of_what_is_known():
    """Of what is known; the median first."""
    found = Spread.of([3.0, 1.0, math.nan, 10.0])
    assert (3, 1, 10) == found
    assert "3 (1 to 10)" == found.text()
    assert "1.50" == Spread.of([1.5]).text(".2f")
    assert "nan" == Spread.of([]).text()


def test_every_figure_is_the_median_over_the_draws(small, made):
    """Draws differ, and are the same however many there are; another seed gives others."""
    (one,) = small.traces.values()
    apart = [pair.starts.mean for pair in one.draws]
    assert 4 == len(set(apart))  # two are the same in whole seconds
    assert max(pair.mean for pair in one.among) > 0
    assert 10 == len(one.among)
    assert sorted(apart)[2] == one.ours.starts.mean == one.spread(lambda p: p.starts.mean).median
    waits = one.partitions["main"]
    assert sorted(waits.draws)[2] == waits.ours
    needs = {need.what: need for need in small.requirements}
    assert waits.spread.text() + " s" == needs["mean wait in main"].ours
    assert " to " in needs["mean wait in main"].ours
    data = small.to_json()
    assert (5, 0) == (data["phases"], data["seed"])
    (plan,) = data["runs"].values()
    assert 5 == len(plan["simulated"]) == len(plan["users"]["u1"]["draws"])
    assert "medians of 5 simulations" in shown(small)
    record = load(made)
    one, again = replay(record, 1), replay(record, 1)
    assert one.schedule.tries == again.schedule.tries
    few = reproduce_slurm(made, phases=2)
    (mine,), (theirs,) = few.traces.values(), small.traces.values()
    assert mine.draws == theirs.draws[:2]
    (other,) = reproduce_slurm(made, phases=2, seed=5).traces.values()
    assert other.draws != mine.draws


def test_verdicts_are_on_the_median(made):
    """One of three draws that is far away does not fail; two of three do; waits have a range."""
    run = schedule_of(load(made))

    def moved(by):
        return lambda _, number: Simulated(
            replace(run, tries=tuple(
                replace(one, start=one.start + by[number], end=one.end + by[number])
                for one in run.tries
            ))
        )  # fmt: skip

    found = []
    for by in ((9000, 0, 3), (9000, 5, 8000)):
        study = compare_records([made], moved(by), 3)
        (one,) = study.traces.values()
        needs = {need.what: need.holds for need in study.requirements}
        found.append((one.ours.starts.mean, needs["mean wait in main"]))
    assert [(3, True), (8000, False)] == found


def test_mechanisms_are_switched_off_one_by_one(made):
    """Each has figures, shown if asked for; with all on it is the study; backfilling helps."""
    record = load(made)
    found = {one.mechanism: one for one in effects_of([record], 2)}
    assert [one.name for one in MECHANISMS] == list(found)
    (same,) = reproduce_slurm(made, phases=2).traces.values()
    assert same.spread(lambda pair: pair.starts.mean) == found["as recorded"].mean
    base = found["as recorded"].wait.median
    assert found["no backfilling"].wait.median > 1.02 * base
    for name in (
        "no tiers of partitions", "no dependencies", "no throttles of arrays",
        "limits checked every second",
    ):  # fmt: skip
        assert base != found[name].wait.median, name
    # The machine has no GPUs, limits or QOS, and nothing preempts.
    for name in ("no preemption", "no limits of users and QOS", "no QOS in priorities"):
        assert base == found[name].wait.median, name
    assert [made.name, "as recorded"] == effect_rows(list(found.values()))[0][:2]
    more = reproduce_slurm(made, phases=1, mechanisms=1)
    for text in (more.page_parts()["mechanisms"], shown(more)):
        assert "no backfilling" in text
    assert len(MECHANISMS) == len(more.to_json()["effects"])


def test_an_accounting_has_its_machine_with_it(tmp_path):
    """The template of slurm.conf, limits, shares, and the tree of accounts as sshare shows it."""
    (tmp_path / "slurm.conf.in").write_text(CONF)
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    (dumps / "assoc.txt").write_text(
        "Cluster|Account|User|Partition|Share|QOS\nmade|root|||1|\nmade|root|root||1|\n"
        "made|top|||5|\nmade|lab|||20|\nmade|lab|u1||1|\nmade|lab|u2||1|\nmade|other|||7|\n"
    )
    rule = "-" * 20
    rows = ["root", " root   root  1", " top   5", "  lab   20", "   lab  u1  1", "   lab  u2  1",
            " other   7"]  # fmt: skip
    (dumps / "sshare.txt").write_text("\n".join(["Account  User", rule, *rows, ""]))
    accounts = machine_of_log(tmp_path).accounts
    assert {"root": "root", "top": "root", "lab": "top", "other": "root"} == {
        one.account: one.parent for one in accounts if not one.user
    }
    assert {"lab", "root"} == {one.parent for one in accounts if one.user}


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
    assert {"PRIORITY", "AGE", "FAIRSHARE", "JOBSIZE", "PARTITION", "QOS"} <= found.keys()
    same = measures.shares(schedule.shares, schedule.shares)
    assert (405, 1, 0) == (same.compared, same.near, same.most)
    preempted = {(one.key, one.trial) for one in schedule.tries if one.state == "PREEMPTED"}
    assert preempted == set(schedule.preempted_for)
    assert 34 == len(preempted)
    waits = measures.waits_by(schedule, record.plan, "partition")
    expected = {"normal": 1471, "debug": 636, "gpu": 4656, "long": 5641, "scavenger": 2181}
    assert expected == {name: round(value) for name, value in waits.items()}
