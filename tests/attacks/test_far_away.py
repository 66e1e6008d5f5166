"""Whatever looks at days, hours or changes of clocks ends soon where a run ends far away.

It is bounded by what happens, or refused in one line. Processor time counts, as machines differ.
"""

import time
from functools import partial
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd import JobTable, Simulation
from hpcrowd.agents.behaviours.profiles import WeeklyProfile
from hpcrowd.analysis import curves
from hpcrowd.analysis.energy.record import account_of
from hpcrowd.analysis.pictures import over_time
from hpcrowd.analysis.pictures.density import density_of
from hpcrowd.analysis.pictures.gantt import busiest_day, fitting_style
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY, WEEK, Clock
from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.environment.power.description import NodePower, Power
from hpcrowd.environment.power.in_use import PowerInUse
from hpcrowd.environment.signals.signal import Signal
from hpcrowd.environment.signals.tariff import Tariff, TariffPeriod
from hpcrowd.scenarios.inspector.panels.overview import busy_hours, clock_of
from hpcrowd.views import Moment, load_table, submissions_table

from tests.environment.machine.machine_cases import Nobody

FAR = 2**40

CLOCKS = {
    "utc": Clock(10**9, known=True),
    "berlin": Clock(10**9, ZoneInfo("Europe/Berlin"), known=True),
    "unknown": Clock(),
}


def run_of(clock):
    """Return a run of three jobs, of which one runs for 2**40 s, with the simulation."""
    jobs = JobTable()
    jobs.append(
        3, processors=[1, 3, 4], run_time=[FAR, 3600, 60], requested_time=[FAR, 7200, 60],
        user=[1, 2, 2], recorded_submit=[0, 10, 7200], recorded_start=[0, 10, 7200],
        recorded_end=[FAR, 3610, 7260],
    )  # fmt: skip
    model = Simulation(jobs, 4, "easy", clock=clock)
    model.submit(Nobody(), np.arange(3), jobs.recorded_submit)
    return Run(model.run().jobs, 4, "far", {"kind": "replay"}, clock=clock), model


#: What looks at a run, and its moment.
LOOKS = {
    "busiest day": lambda run, now: busiest_day(run),
    "style": lambda run, now: fitting_style(run, 0, FAR),
    "density": lambda run, now: density_of(run, 0, FAR),
    "use": lambda run, now: over_time.use_data(run),
    "submissions": lambda run, now: over_time.submissions_data(run),
    "load": lambda run, now: load_table(now, None),
    "submissions of the page": lambda run, now: submissions_table(now, None),
    "busy hours": lambda run, now: busy_hours(now, whole=True),
    "clock of the page": lambda run, now: clock_of(run.clock, FAR),
    "ticks": lambda run, now: curves.time_ticks(run.clock, 0, FAR),
    "weekly rates": lambda run, now: curves.weekly_rates(np.array([0, FAR]), run.clock),
    "weekly profile": lambda run, now: curves.weekly_profile(np.array([0, FAR]), run.clock),
    "metrics": lambda run, now: (run.metrics, run.users()),
    "second of a local time": lambda run, now: run.clock.second_at(FAR),
    "active time": lambda run, now: WeeklyProfile(np.ones(168)).between(run.clock, 0, FAR),
    "time until active": lambda run, now: WeeklyProfile(np.ones(168)).after(
        run.clock, 0, float(FAR)
    ),
}


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("look", LOOKS)
def test_looks_end(look, clock):
    """They take less than three seconds, or say in a line why they do not."""
    run, _ = run_of(CLOCKS[clock])
    soon(partial(LOOKS[look], run, Moment.of_run(run)))


def soon(function):
    """Call a function, which may refuse, and check that it took less than 3 s."""
    began, said = time.process_time(), ""
    try:
        function()
    except HpcrowdError as error:
        said = str(error)
    assert time.process_time() - began < 3
    return said


WORKDAY = TariffPeriod(0.3, 7 * 3600, 20 * 3600)
WEEKLY = Signal(np.arange(7) * DAY, np.arange(7.0) + 1, repeat="week")

#: Powers that follow the clock, and whether a run that ends far away can have them.
POWERS = {
    "no prices": (Power((NodePower("n", 100, 100),)), True),
    "one price": (Power((NodePower("n", 100, 100),), tariff=Tariff(price=0.2)), True),
    "periods": (Power((NodePower("n", 100, 100),), tariff=Tariff((WORKDAY,))), False),
    "peaks": (Power((NodePower("n", 100, 100),), tariff=Tariff(peak_price=5)), False),
    "weekly": (Power((NodePower("n", 100, 100),), carbon=WEEKLY), False),
}


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("name", POWERS)
def test_prices_and_signals_are_refused_before_the_run(name, clock):
    """A record that ends in 34,865 years has no price of each hour; without prices it runs."""
    power, can = POWERS[name]
    jobs = run_of(CLOCKS[clock])[0].jobs
    jobs.erase_outcome()

    def simulated():
        model = Simulation(jobs, 4, "easy", clock=CLOCKS[clock], parts=[PowerInUse(power)])
        model.submit(Nobody(), np.arange(3), jobs.recorded_submit)
        account_of(model.run()).summary()

    found = soon(simulated)
    assert found == "" if can else "at most 115,740.7 days; correct the run times" in found


def test_the_busiest_day_is_that_of_all_days():
    """Looking at days with events, and the days after them, finds the same as looking at all."""
    clock = CLOCKS["berlin"]
    for seed in range(30):
        rng = np.random.default_rng(seed)
        jobs = JobTable()
        jobs.append(6, processors=rng.integers(1, 4, 6), user=1)
        jobs.start[:] = jobs.submit[:] = rng.integers(0, 6 * WEEK, 6)
        jobs.end[:] = jobs.start + rng.choice([60, DAY, 10 * DAY], 6)
        first, last = (clock.wall(at) // DAY for at in curves.span_of(jobs))
        edges = np.array([clock.second_at(day * DAY) for day in range(first, last + 2)])
        level = curves.processors_in_use(jobs, edges)
        place = int(np.argmax(level >= level.max() - 1e-9))
        expected = (edges[place], edges[place + 1])
        assert expected == busiest_day(Run(jobs, 20, "run", {}, clock=clock))
