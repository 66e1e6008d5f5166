"""The study of recorded runs: required figures, causes of differences, and the study's folder."""

import json
from dataclasses import replace
from functools import cache

import pytest
from hpcrowd.environment.errors import TraceError
from hpcrowd.scenarios.studies.slurm.differences import by_cause, differences, parting
from hpcrowd.scenarios.studies.slurm.measures import mean
from hpcrowd.scenarios.studies.slurm.mechanisms import MECHANISMS, effects_of
from hpcrowd.scenarios.studies.slurm.outcomes import Simulated, Waits, plans_of
from hpcrowd.scenarios.studies.slurm.records import Key, Submission, Try, load
from hpcrowd.scenarios.studies.slurm.schedules import Schedule, schedule_of
from hpcrowd.scenarios.studies.slurm.study import compare_records, load_all, reproduce_slurm

from tests.scenarios.studies.study_cases import shown

ONE, TWO, THREE = (Key(plan, -1) for plan in (1, 2, 3))


def simulate_as_recorded(other):
    """Return a simulation that says what another recorded run of the plan did."""

    def simulate(record, number):
        if not record.same_plan(other):
            raise TraceError(f"{other.folder}: not a run of the plan of {record.folder}")
        return Simulated(schedule_of(other))

    return simulate


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


@pytest.fixture(scope="session")
def run_of(referee_runs):
    """Return a function that reads a recorded run, each only once."""
    return cache(lambda name: load(referee_runs / f"run{name}"))


def test_runs_are_found_and_grouped_by_plan(referee_runs, run_of, tmp_path):
    """All of a folder, by plan.csv; what is no folder or of another plan is refused."""
    assert [["runA", "runB", "runF"], ["runC", "runD"]] == [
        [run.name for run in runs] for runs in plans_of(load_all([referee_runs]))
    ]
    assert ["runC"] == [run.name for run in load_all([referee_runs / "runC"] * 2)]
    with pytest.raises(TraceError, match="not a folder"):
        load_all([tmp_path / "none"])
    with pytest.raises(TraceError, match="not a run of the plan"):
        compare_records([referee_runs / "runA"], simulate_as_recorded(run_of("C")))


def required(study):
    """Return which figures of a study's only plan are reached."""
    return {one.what: one.holds for one in study.requirements}


def test_a_run_in_place_of_the_simulation(referee_runs, run_of):
    """Run B compared with A and F: the figures are those of the pairs."""
    study = compare_records(
        [referee_runs / "runA", referee_runs / "runF"], simulate_as_recorded(run_of("B"))
    )
    (one,) = study.traces.values()
    assert [605, 601] == [pair.starts.jobs for pair in one.ours]
    assert [605] == [pair.starts.jobs for pair in one.own]
    figures = {need.what: (need.ours, need.required) for need in study.requirements}
    # A tenth below the least and above the most of the recorded runs.
    assert (90.0, 220.0) == pytest.approx(Waits(5.0, (100.0, 200.0)).range)
    assert ("965 s", "at most 877 s") == figures["mean difference of starts"]
    assert ("1446 s", "1011 to 1618 s") == figures["mean wait in normal"]
    assert ("26 of 27 pairs", "27 pairs") == figures["users' mean waits in order"]
    text = shown(study)
    assert "Largest differences" in text
    assert "3 of 11 required figures reached" in text
    assert len(one.differences) == len([*study.rows()[1]])
    parts = study.page_parts()
    assert {"starts", "partitions", "users", "reasons", "priorities", "causes", "largest",
            "earliest", "required", "summary"} == parts.keys()  # fmt: skip
    assert json.dumps(study.to_json(), allow_nan=False)


@pytest.mark.slow
def test_a_run_compared_with_itself(referee_runs, run_of):
    """It reaches all; with starts 1,500 s later these and waits do not, the order of users does."""
    folders = [referee_runs / "runC", referee_runs / "runD"]
    found = required(compare_records(folders, lambda one, _: Simulated(*[schedule_of(one)] * 2)))
    assert {True} == set(found.values())
    assert "priorities reproduced" in found
    run = schedule_of(run_of("C"))
    later = tuple(
        replace(one, start=one.start + 1500, end=one.end + 1500) if one.started else one
        for one in run.tries
    )
    found = required(compare_records(folders, lambda *_: Simulated(replace(run, tries=later))))
    starts = ("mean difference of starts", "median difference of starts", "mean wait in normal")
    assert [False] * 3 == [found[what] for what in starts]
    assert found["users' mean waits in order"]
    assert found["Pearson of waits"]


@pytest.mark.slow
def test_a_single_run_takes_the_pairs_of_other_plans(referee_runs, run_of):
    """Run A alone has no pair; with C and D given, their difference is what is allowed."""
    alone = compare_records([referee_runs / "runA"], simulate_as_recorded(run_of("B")))
    assert "mean difference of starts" not in required(alone)
    folders = [referee_runs / f"run{name}" for name in "ACD"]
    study = compare_records(folders, lambda record, _: Simulated(schedule_of(record)))
    first = study.traces["runA"]
    assert first.borrowed
    assert ["runD"] == [pair.second for pair in first.own]
    assert not study.traces["runC, runD"].borrowed


def test_the_log_has_limits_of_its_own(slurm_dumps, tmp_path):
    """The log of eight nodes is compared on its plain jobs, by correlation and median."""
    for path in (slurm_dumps, slurm_dumps.parent / "truth-a.csv"):
        (tmp_path / path.name).symlink_to(path)
    study = compare_records([tmp_path], lambda record, _: Simulated(schedule_of(record)))
    (one,) = study.traces.values()
    assert 297 == one.ours[0].starts.jobs
    assert {"Pearson of waits": True, "median difference of starts": True} == required(study)


def test_a_run_without_samples_is_compared_by_its_starts(referee_runs, run_of, tmp_path):
    """Without samples and log, nothing is required of reasons; all other figures are there."""
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("plan.csv", "submitted.csv", "clock.txt", "schedule.csv"):
        (folder / name).symlink_to(referee_runs / "runC" / name)
    study = compare_records([folder], simulate_as_recorded(run_of("D")))
    (one,) = study.traces.values()
    assert (579, 0) == (one.ours[0].starts.jobs, one.ours[0].reasons.compared)
    assert "same pending reasons" not in required(study)
    assert "mean wait in normal" in required(study)
    study.write(tmp_path / "study")
    assert json.loads((tmp_path / "study" / "slurm.json").read_text())["plans"]["run"]


# ---- simulations of the recorded runs ---------------------------------------------------------


@pytest.mark.slow
def test_simulations_are_as_near_as_the_page_says(referee_runs):
    """Starts, waits, order of users and priorities, with two draws and loose bounds."""
    study = reproduce_slurm(referee_runs, phases=2, seed=3)
    assert ["runA, runB, runF", "runC, runD"] == list(study.traces)
    for one, apart, correlated in zip(
        study.traces.values(), (1200, 480), (0.70, 0.90), strict=True
    ):
        assert one.spread(lambda pair: pair.starts.mean).median < apart
        assert one.spread(lambda pair: pair.starts.pearson).median > correlated
        assert one.spread(lambda pair: pair.reasons.share).median > 0.78
        assert one.parts["PRIORITY"].near >= 0.95
        right, counted, _ = one.order
        assert right >= counted - 3
        # Phases alone lead as far apart as recorded runs are.
        assert mean([pair.mean for pair in one.among]) > 0.4 * mean(
            [pair.starts.mean for pair in one.own]
        )
        for name, waits in one.partitions.items():
            low, high = waits.range
            assert 0.6 * low < waits.ours < 1.5 * high, name


@pytest.mark.slow
def test_the_log_of_eight_nodes_is_replayed(slurm_dumps, tmp_path):
    """With its own machine, starts are a few seconds apart, and waits correlate well."""
    for name in ("dumps", "truth-a.csv", "slurm.conf.in"):
        (tmp_path / name).symlink_to(slurm_dumps.parent / name)
    (one,) = reproduce_slurm(tmp_path, phases=3).traces.values()
    assert one.log
    assert 297 == one.ours[0].starts.jobs
    assert one.spread(lambda pair: pair.starts.pearson).median > 0.92
    assert one.spread(lambda pair: pair.starts.median).median < 8
    assert ["Pearson of waits", "median difference of starts"] == [
        need.what for need in one.requirements
    ]


@pytest.mark.slow
def test_backfilling_is_needed(referee_runs):
    """Without backfilling, the simulation of plan 2 is much farther away."""
    few = [one for one in MECHANISMS if one.name in ("as recorded", "no backfilling")]
    runs = [load(referee_runs / f"run{name}") for name in "CD"]
    with_it, without = effects_of(runs, 1, mechanisms=few)
    assert without.mean.median > 1.5 * with_it.mean.median
    assert without.pearson.median < with_it.pearson.median
