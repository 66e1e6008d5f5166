"""Timers of Slurm's controller."""

from __future__ import annotations

from hpcrowd.environment.machine import model
from hpcrowd.environment.machine.model import Machine, NodeType, PrioritySettings
from hpcrowd.environment.schedulers.slurm.timers import drawn_timers


def test_timers_are_anywhere_in_their_periods():
    """Seed and number alone decide; what a machine sets itself stays."""
    site = Machine(
        nodes=(NodeType(name="n1", cores=1),),
        scheduling=model.SchedulingSettings(bf_interval=10, time_limit_period=7),
        priority=PrioritySettings(calculation_period=100),
    )
    draws = [drawn_timers(site, number) for number in range(300)]
    assert drawn_timers(site, 7) == draws[7]
    assert drawn_timers(site, 7, seed=1) != draws[7]
    assert {*range(7)} == {one.limit_check for one in draws}
    for name, least, most in (("backfill", -1, 1), ("calculation", 0, 100), ("full_pass", 0, 60)):
        values = [getattr(one, name) - least for one in draws]
        assert 0 <= min(values) < 0.05 * most
        assert 0.95 * most < max(values) < most
    scheduling = draws[3].on(site).scheduling
    assert draws[3].full_pass == scheduling.full_pass_phase
    assert draws[3][:3] == (
        scheduling.backfill_phase, scheduling.limit_check_phase, scheduling.calculation_phase,
    )  # fmt: skip
    known = site.scheduling.model_copy(update={"limit_check_phase": 2})
    known.model_fields_set.add("limit_check_phase")
    found = draws[3].on(site.model_copy(update={"scheduling": known})).scheduling
    assert (found.limit_check_phase, found.full_pass_phase) == (2, draws[3].full_pass)
