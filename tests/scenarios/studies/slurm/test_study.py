"""The study of recorded runs: required figures, causes of differences, and the study's folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hpcrowd.environment.errors import TraceError
from hpcrowd.scenarios.studies.slurm.differences import by_cause, differences, parting
from hpcrowd.scenarios.studies.slurm.outcomes import Simulated, Waits, plans_of
from hpcrowd.scenarios.studies.slurm.records import Record, Submission, load
from hpcrowd.scenarios.studies.slurm.schedules import Schedule, schedule_of
from hpcrowd.scenarios.studies.slurm.study import (
    Slurm,
    compare_records,
    load_all,
    simulate_as_recorded,
)
from hpcrowd.scenarios.studies.slurm.tries import Key, Try

from tests.scenarios.studies.study_cases import rows_of_folder, shown

ONE, TWO, THREE = (Key(plan, -1) for plan in (1, 2, 3))


def line(plan: int, **more: object) -> Submission:
    """Return a submission of one core."""
    common = Submission(
        plan, 0, 0, 0, "ada", "physics", "main", "normal", -1, 1, -1, -1, -1, -1, False, "", 60,
        (), 0, None, -1, -1, -1, (60.0,),
    )  # fmt: skip
    return replace(common, **more)


def schedule(
    starts: dict[Key, int], node: str = "n1", how: str = "main", **more: object
) -> Schedule:
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
def test_differences_have_a_cause(
    cause: str, plan: dict[str, object], mine: dict[str, object], theirs: dict[str, object]
) -> None:
    """Job 2 starts 100 s later where job 1 does; what else is known says why."""
    here = schedule({ONE: 100, TWO: 200}, **mine)
    there = schedule({ONE: 0, TWO: 100}, **theirs)
    found = differences(here, there, [line(1), line(2, **plan)])
    causes = {one.key: one.cause for one in found}
    assert cause == causes[TWO]
    assert [100, 100] == [one.later for one in found]


def test_the_last_causes_are_the_pass_and_none() -> None:
    """Without anything else, the pass that started it is the cause; or nothing is known."""
    for how, cause in (("backfill", "pass"), ("main", "none")):
        here, there = schedule({TWO: 200}, how=how), schedule({TWO: 100})
        assert [cause] == [one.cause for one in differences(here, there, [line(2)])]


def test_an_array_waits_for_its_earlier_tasks() -> None:
    """With a throttle of 1, the second task starts when the first one ends."""
    keys = [Key(1, 0), Key(1, 1)]
    array = line(1, array=(0, 1), throttle=1, run=(100.0, 100.0))
    here = schedule(dict(zip(keys, (50, 150), strict=True)))
    there = schedule(dict(zip(keys, (0, 100), strict=True)))
    found = {one.key: one for one in differences(here, there, [array])}
    assert "array" == found[keys[1]].cause
    assert "room for it +50 s" == found[keys[1]].detail


def test_differences_are_sorted_by_size_and_by_time() -> None:
    """The largest comes first; schedules part where the earliest start differs."""
    here, there = schedule({ONE: 10, TWO: 900, THREE: 5}), schedule({ONE: 0, TWO: 100, THREE: 5})
    found = differences(here, there, [line(1), line(2), line(3)])
    assert [TWO, ONE] == [one.key for one in found]
    assert [ONE, TWO] == [one.key for one in parting(found)]
    assert 810 == sum(seconds for _, _, seconds in by_cause(found))


def test_ranges_of_waits_are_widened() -> None:
    """A tenth below the least and above the most of the recorded runs."""
    assert (90.0, 220.0) == pytest.approx(Waits(5.0, (100.0, 200.0)).range)


@pytest.fixture(scope="session")
def run_of(referee_runs: Path) -> Callable[[str], Record]:
    """Return a function that reads a recorded run, each only once."""
    return cache(lambda name: load(referee_runs / f"run{name}"))


def test_runs_are_found_and_grouped_by_plan(
    referee_runs: Path, run_of: Callable[[str], Record]
) -> None:
    """A folder of runs gives all of them; those with the same plan.csv belong together."""
    assert [["runA", "runB", "runF"], ["runC", "runD"]] == [
        [run.name for run in runs] for runs in plans_of(load_all([referee_runs]))
    ]
    assert ["runC"] == [run.name for run in load_all([referee_runs / "runC"] * 2)]


def test_a_folder_without_runs_is_one_line(tmp_path: Path) -> None:
    """An empty folder is refused with the rule."""
    with pytest.raises(TraceError, match="no recorded run in it"):
        load_all([tmp_path])
    with pytest.raises(TraceError, match="not a folder"):
        load_all([tmp_path / "none"])


def required(study: Slurm) -> dict[str, bool]:
    """Return which figures of a study's only plan are reached."""
    return {one.what: one.holds for one in study.requirements}


def test_a_run_in_place_of_the_simulation(
    referee_runs: Path, run_of: Callable[[str], Record], tmp_path: Path
) -> None:
    """Run B compared with A and F: the folder is whole, its figures are those of the pairs."""
    study = compare_records(
        [referee_runs / "runA", referee_runs / "runF"], simulate_as_recorded(run_of("B"))
    )
    (one,) = study.traces.values()
    assert [605, 601] == [pair.starts.jobs for pair in one.ours]
    assert [605] == [pair.starts.jobs for pair in one.own]
    figures = {need.what: (need.ours, need.required) for need in study.requirements}
    assert ("965 s", "at most 877 s") == figures["mean difference of starts"]
    assert ("1446 s", "1011 to 1618 s") == figures["mean wait in normal"]
    assert ("26 of 27 pairs", "27 pairs") == figures["users' mean waits in order"]
    text = shown(study)
    assert "Largest differences" in text
    assert "3 of 11 required figures reached" in text
    rows = rows_of_folder(study, tmp_path)
    assert len(one.differences) == len(rows)
    parts = study.page_parts()
    assert {"starts", "partitions", "users", "reasons", "priorities", "causes", "largest",
            "earliest", "required", "summary"} == parts.keys()  # fmt: skip
    assert json.loads(json.dumps(study.to_json(), allow_nan=False))


def test_a_run_reaches_everything_compared_with_itself(
    referee_runs: Path, run_of: Callable[[str], Record]
) -> None:
    """Taken as the simulation of its own plan, a run reaches every required figure."""
    folders = [referee_runs / "runC", referee_runs / "runD"]
    study = compare_records(
        folders, lambda record, _: Simulated(schedule_of(record), schedule_of(record))
    )
    assert {True} == set(required(study).values())
    assert "priorities reproduced" in required(study)


def test_a_later_schedule_is_refused(referee_runs: Path, run_of: Callable[[str], Record]) -> None:
    """All starts 1,500 s later: starts and waits are out of range, the order of users is not."""
    run = schedule_of(run_of("C"))
    later = tuple(
        replace(one, start=one.start + 1500, end=one.end + 1500) if one.started else one
        for one in run.tries
    )
    folders = [referee_runs / "runC", referee_runs / "runD"]
    found = required(compare_records(folders, lambda *_: Simulated(replace(run, tries=later))))
    assert not found["mean difference of starts"]
    assert not found["median difference of starts"]
    assert not found["mean wait in normal"]
    assert found["users' mean waits in order"]
    assert found["Pearson of waits"]


def test_a_single_run_takes_the_pairs_of_other_plans(
    referee_runs: Path, run_of: Callable[[str], Record]
) -> None:
    """Run A alone has no pair; with C and D given, their difference is what is allowed."""
    alone = compare_records([referee_runs / "runA"], simulate_as_recorded(run_of("B")))
    assert "mean difference of starts" not in required(alone)
    folders = [referee_runs / f"run{name}" for name in "ACD"]
    study = compare_records(folders, lambda record, _: Simulated(schedule_of(record)))
    first = study.traces["runA"]
    assert first.borrowed
    assert ["runD"] == [pair.second for pair in first.own]
    assert not study.traces["runC, runD"].borrowed


def test_the_log_has_limits_of_its_own(slurm_dumps: Path, tmp_path: Path) -> None:
    """The log of eight nodes is compared on its plain jobs, by correlation and median."""
    for path in (slurm_dumps, slurm_dumps.parent / "truth-a.csv"):
        (tmp_path / path.name).symlink_to(path)
    study = compare_records([tmp_path], lambda record, _: Simulated(schedule_of(record)))
    (one,) = study.traces.values()
    assert 297 == one.ours[0].starts.jobs
    assert {"Pearson of waits": True, "median difference of starts": True} == required(study)


def test_a_run_of_another_plan_cannot_be_the_simulation(
    referee_runs: Path, run_of: Callable[[str], Record]
) -> None:
    """Run C is not of the plan of run A."""
    with pytest.raises(TraceError, match="not a run of the plan"):
        compare_records([referee_runs / "runA"], simulate_as_recorded(run_of("C")))


def test_a_run_without_samples_is_compared_by_its_starts(
    referee_runs: Path, run_of: Callable[[str], Record], tmp_path: Path
) -> None:
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
