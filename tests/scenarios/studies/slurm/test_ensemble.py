"""The study of recorded runs over several draws of phases, and with mechanisms switched off."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.machine.model import (
    Machine,
    NodeType,
    PrioritySettings,
    SchedulingSettings,
)
from hpcrowd.scenarios.studies.slurm.mechanisms import MECHANISMS, effect_rows, effects_of
from hpcrowd.scenarios.studies.slurm.outcomes import Simulated, Spread
from hpcrowd.scenarios.studies.slurm.phases import drawn_phases
from hpcrowd.scenarios.studies.slurm.recorded_logs import machine_of_log
from hpcrowd.scenarios.studies.slurm.records import load
from hpcrowd.scenarios.studies.slurm.schedules import schedule_of
from hpcrowd.scenarios.studies.slurm.simulated import replay
from hpcrowd.scenarios.studies.slurm.study import Slurm, compare_records, reproduce_slurm

from tests.scenarios.studies.study_cases import rows_of_folder, shown

#: Two nodes of four cores, in two partitions of different tiers.
CONF = """ClusterName=made
SlurmctldHost=made
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=30
PriorityType=priority/multifactor
PriorityWeightAge=1000
NodeName=n[1-2] CPUs=4 RealMemory=4000
PartitionName=main Nodes=n[1-2] Default=YES MaxTime=60 PriorityTier=1
PartitionName=fast Nodes=n1 MaxTime=60 PriorityTier=2
"""

PLAN_HEAD = "id,t,user,account,partition,qos,nodes,ntasks,cpus_per_task,ntasks_per_node,mem,gres," \
    "exclusive,constraint,limit_min,array,throttle,dep,dep_on,begin,cancel,run"  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a made-up run of 80 submissions, with an array, a chain and jobs over their limit."""
    folder = tmp_path_factory.mktemp("made")
    random = np.random.default_rng(1)
    plan, submitted, schedule = [PLAN_HEAD], ["id,jobid,before,after,error,command"], []
    at = 0.0
    for number in range(1, 81):
        at += float(random.exponential(40))
        run, limit = int(random.integers(20, 600)), int(random.integers(2, 10))
        user, cores = (
            f"u{random.integers(1, 4)}",
            int(random.choice([1, 2, 4, 8], p=[0.4, 0.3, 0.2, 0.1])),
        )
        place = "fast" if cores == 1 and number % 5 == 0 else "main"
        array, throttle, runs = ("0-1", "1", f"{run} {run}") if number == 10 else ("", "", f"{run}")
        depends = ("afterany", "10") if number == 11 else ("", "")
        plan.append(
            f"{number},{at:.1f},{user},lab,{place},,,{cores},,,,,,,{limit},{array},{throttle},"
            f"{','.join(depends)},,,{runs}"
        )
        submitted.append(f"{number},{number},{at:.1f},{at + 0.8:.1f},,sbatch -J p{number}")
        for task in ("0", "1") if array else ("",):
            start = int(at) + int(random.integers(0, 900))
            schedule.append(
                f"{number},{task},{number},{int(at)},{int(at)},{start},{start + run},COMPLETED,n1,"
                f"{cores},SchedMain"
            )
    head = "plan_id,task,jobid,submit,eligible,start,end,state,nodes,cpus,flags"
    for name, lines in (
        ("plan.csv", plan), ("submitted.csv", submitted), ("schedule.csv", [head, *schedule]),
        ("clock.txt", ["plan starts (t=0) at 1970-01-01T00:16:40 UTC = 1000"]),
        ("slurm.conf", [CONF]),
    ):  # fmt: skip
        (folder / name).write_text("\n".join([*lines, ""]))
    return folder


@pytest.fixture(scope="module")
def study(made: Path) -> Slurm:
    """Return the study of the made-up run with five draws."""
    return reproduce_slurm(made, phases=5)


def test_phases_are_anywhere_in_their_periods() -> None:
    """Each draw has its own, within the periods; seed and number alone decide."""
    site = Machine(
        nodes=(NodeType(name="n1", cores=1),),
        scheduling=SchedulingSettings(bf_interval=10, time_limit_period=7),
        priority=PrioritySettings(calculation_period=100),
    )
    draws = [drawn_phases(site, number) for number in range(300)]
    assert drawn_phases(site, 7) == draws[7]
    assert drawn_phases(site, 7, seed=1) != draws[7]
    assert {*range(7)} == {one.limit_check for one in draws}
    for name, most in (("backfill", 1), ("calculation", 100), ("full_pass", 60)):
        values = [getattr(one, name) for one in draws]
        assert 0 <= min(values) < 0.05 * most
        assert 0.95 * most < max(values) < most
    assert 0.4 <= min(one.arrived for one in draws) < 0.45
    assert 0.95 < max(one.arrived for one in draws) <= 1
    scheduling = draws[3].on(site).scheduling
    assert draws[3].full_pass == scheduling.full_pass_phase
    assert draws[3][:3] == (
        scheduling.backfill_phase, scheduling.limit_check_phase, scheduling.calculation_phase,
    )  # fmt: skip


def test_a_spread_is_the_median_and_the_range() -> None:
    """Unknown values do not count; without a range there is none in the text."""
    found = Spread.of([3.0, 1.0, math.nan, 10.0])
    assert (3, 1, 10) == found
    assert "3 (1 to 10)" == found.text()
    assert "1.50" == Spread.of([1.5]).text(".2f")
    assert "nan" == Spread.of([]).text()


def test_every_figure_is_the_median_over_the_draws(study: Slurm) -> None:
    """Five draws differ from each other; figures and verdicts are those of the middle one."""
    (one,) = study.traces.values()
    apart = [pairs[0].starts.mean for pairs in one.draws]
    assert 5 == len(set(apart))
    assert 10 == len(one.among)
    assert max(pair.mean for pair in one.among) > 0
    assert sorted(apart)[2] == one.ours[0].starts.mean == one.spread(lambda p: p.starts.mean).median
    waits = one.partitions["main"]
    assert sorted(waits.draws)[2] == waits.ours
    needs = {need.what: need for need in study.requirements}
    assert waits.spread.text() + " s" == needs["mean wait in main"].ours
    assert " to " in needs["mean wait in main"].ours
    assert "medians of 5 simulations" in shown(study)


def test_a_draw_is_the_same_however_many_there_are(study: Slurm, made: Path) -> None:
    """The first two draws of two are those of five; another seed gives others."""
    few = reproduce_slurm(made, phases=2)
    (mine,), (theirs,) = few.traces.values(), study.traces.values()
    assert mine.draws == theirs.draws[:2]
    (other,) = reproduce_slurm(made, phases=2, seed=5).traces.values()
    assert other.draws != mine.draws


@pytest.mark.slow
def test_processes_do_not_change_the_draws(study: Slurm, made: Path) -> None:
    """Two processes give what one gives."""
    again = reproduce_slurm(made, phases=5, workers=2)
    assert study.to_json() == again.to_json()


def test_verdicts_are_on_the_median(made: Path) -> None:
    """One of three draws that is far away does not fail; two of three do."""
    run = schedule_of(load(made))

    def moved(by: tuple[int, ...]) -> Callable[..., Simulated]:
        return lambda _, number: Simulated(
            replace(run, tries=tuple(
                replace(one, start=one.start + by[number], end=one.end + by[number])
                for one in run.tries
            ))
        )  # fmt: skip

    found = []
    for by in ((9000, 0, 3), (9000, 0, 8000)):
        study = compare_records([made], moved(by), 3)
        (one,) = study.traces.values()
        needs = {need.what: need.holds for need in study.requirements}
        found.append((one.ours[0].starts.mean, needs["mean wait in main"]))
    assert [(3, True), (8000, False)] == found


def test_the_folder_holds_all_draws(study: Slurm, tmp_path: Path) -> None:
    """Data, table, pictures and provenance; the data has every draw."""
    rows_of_folder(study, tmp_path)
    data = json.loads((tmp_path / "study" / "slurm.json").read_text())
    assert (5, 0) == (data["phases"], data["seed"])
    (plan,) = data["plans"].values()
    assert 5 == len(plan["simulated"]) == len(plan["users"]["u1"]["draws"])


def test_mechanisms_are_switched_off_one_by_one(made: Path) -> None:
    """Each has figures; nothing switched off is the study itself; backfilling shortens waits."""
    record = load(made)
    found = {one.mechanism: one for one in effects_of([record], 2)}
    assert [one.name for one in MECHANISMS] == list(found)
    (same,) = reproduce_slurm(made, phases=2).traces.values()
    assert same.spread(lambda pair: pair.starts.mean) == found["as recorded"].mean
    base = found["as recorded"].wait.median
    assert found["no backfilling"].wait.median > 1.02 * base
    for name in (
        "no tiers of partitions", "no dependencies", "no throttles of arrays",
        "no latency at starts", "limits checked every second",
    ):  # fmt: skip
        assert base != found[name].wait.median, name
    # The machine has no GPUs, limits or QOS, and nothing preempts.
    for name in ("no preemption", "no limits of users and QOS", "no QOS in priorities"):
        assert base == found[name].wait.median, name
    rows = effect_rows(list(found.values()))
    assert [made.name, "as recorded"] == rows[0][:2]


def test_the_table_of_mechanisms_is_an_option(study: Slurm, made: Path) -> None:
    """It is on terminal and page if asked for, and else left out."""
    assert "mechanisms" not in study.page_parts()
    more = reproduce_slurm(made, phases=1, mechanisms=1)
    assert "no backfilling" in more.page_parts()["mechanisms"]
    assert "no backfilling" in shown(more)
    assert len(MECHANISMS) == len(more.to_json()["effects"])


@pytest.mark.parametrize("numbers", [{"phases": 0}, {"mechanisms": -1}])
def test_wrong_numbers_are_refused(made: Path, numbers: dict[str, int]) -> None:
    """At least one draw; a negative number of draws is none."""
    with pytest.raises(QuantityError, match="must be from"):
        reproduce_slurm(made, **numbers)


def test_an_accounting_has_its_machine_with_it(tmp_path: Path) -> None:
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


def test_phases_matter_only_where_recorded_runs_differ_too(made: Path) -> None:
    """A simulation is repeatable: the same draw gives the same schedule."""
    record = load(made)
    one, other = replay(record, 1), replay(record, 1)
    assert one.schedule.tries == other.schedule.tries
