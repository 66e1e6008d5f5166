"""The study of recorded runs over several draws of phases, and with mechanisms switched off."""

import math
from dataclasses import replace

import pytest
from hpcrowd.environment.machine.model import (
    Machine,
    NodeType,
    PrioritySettings,
    SchedulingSettings,
)
from hpcrowd.scenarios.studies.slurm.mechanisms import MECHANISMS, effect_rows, effects_of
from hpcrowd.scenarios.studies.slurm.outcomes import Simulated, Spread
from hpcrowd.scenarios.studies.slurm.recorded_logs import machine_of_log
from hpcrowd.scenarios.studies.slurm.records import load
from hpcrowd.scenarios.studies.slurm.schedules import schedule_of
from hpcrowd.scenarios.studies.slurm.simulated import replay
from hpcrowd.scenarios.studies.slurm.study import compare_records, reproduce_slurm
from hpcrowd.scenarios.studies.slurm.workload import drawn_phases

from tests.scenarios.studies.study_cases import CONF, shown


@pytest.fixture(scope="module")
def made(input_of):
    """Return a made-up run of 80 submissions."""
    return input_of("slurm")


def test_phases_are_anywhere_in_their_periods():
    """Seed and number alone decide; a spread is the median and the range of what is known."""
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
    found = Spread.of([3.0, 1.0, math.nan, 10.0])
    assert (3, 1, 10) == found
    assert "3 (1 to 10)" == found.text()
    assert "1.50" == Spread.of([1.5]).text(".2f")
    assert "nan" == Spread.of([]).text()


def test_every_figure_is_the_median_over_the_draws(small, made):
    """Draws differ, and are the same however many there are; another seed gives others."""
    (one,) = small.traces.values()
    apart = [pairs[0].starts.mean for pairs in one.draws]
    assert 5 == len(set(apart))
    assert 10 == len(one.among)
    assert max(pair.mean for pair in one.among) > 0
    assert sorted(apart)[2] == one.ours[0].starts.mean == one.spread(lambda p: p.starts.mean).median
    waits = one.partitions["main"]
    assert sorted(waits.draws)[2] == waits.ours
    needs = {need.what: need for need in small.requirements}
    assert waits.spread.text() + " s" == needs["mean wait in main"].ours
    assert " to " in needs["mean wait in main"].ours
    data = small.to_json()
    assert (5, 0) == (data["phases"], data["seed"])
    (plan,) = data["plans"].values()
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
    """One of three draws that is far away does not fail; two of three do."""
    run = schedule_of(load(made))

    def moved(by):
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
        "no latency at starts", "limits checked every second",
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
