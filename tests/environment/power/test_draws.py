"""What jobs draw: by table, measured, and predicted from what was measured."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hpcrowd import JobTable, Simulation
from hpcrowd.environment.errors import ModelFitError, QuantityError
from hpcrowd.environment.power.description import NodePower, Power
from hpcrowd.environment.power.draws import (
    DrawTable,
    MeasuredDraw,
    fit_draws,
    measured_energy,
    measured_watts,
)
from hpcrowd.environment.power.in_use import PowerInUse
from hpcrowd.environment.signals.cooling import Cooling
from hpcrowd.environment.signals.signal import Signal
from hpcrowd.environment.traces.formats.slurm.accounting import generate_sacct, parse_sacct
from hpcrowd.environment.traces.formats.slurm.json_records import (
    generate_sacct_json,
    parse_sacct_json,
    row_of,
)
from hpcrowd.environment.traces.formats.slurm.values import parse_energy
from hpcrowd.environment.traces.formats.tables.columns import generate_csv, parse_csv
from hpcrowd.environment.traces.formats.tables.mapped import generate_mapped, parse_mapped
from hpcrowd.formats import FormatOptions, Losses, TableMapping
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.sacct import UTC, text

#: 2.5 W idle and 10 W more for each busy processor.
NODE = NodePower("node", idle=40.0, processor=10.0, processors=16)


def jobs_of(users, processors, run):
    """Jobs of some users, sizes and lengths."""
    jobs = JobTable(len(users))
    jobs.user[:], jobs.processors[:], jobs.run_time[:] = users, processors, run
    jobs.executable[:] = 1
    return jobs


def with_energy(trace, joules):
    """The same log with a measured energy."""
    return replace(trace, extra={"energy": np.array([str(one) for one in joules], np.object_)})


NAMED = jobs_of([1, 2, 3, 4, 5, 6], [1, 2, 8, 9, 64, 4000], [1] * 6)
NAMED.names = {"user": {1: "ada", 2: "bob"}}
NAMED.queue[:] = [5, 5, 5, 6, 6, 6]
SIZES = {"1": 30.0, "2-8": 20.0, "64-": 8.0}


@pytest.mark.parametrize(
    ("by", "watts", "expected"),
    [
        # Ranges include both ends; what is in none of them draws what the node's constants say.
        ("processors", SIZES, [30, 20, 20, 12.5, 8, 8]),
        # Users are given by name if the log has names, several at a time, and by their numbers.
        ("user", {"ada,bob": 7.0, "4": 9.0}, [7, 7, 12.5, 9, 12.5, 12.5]),
        ("user", {"2-4": 5.0}, [12.5, 5, 5, 5, 12.5, 12.5]),
        # Without a machine of nodes the queue is the partition.
        ("partition", {"6": 3.0}, [12.5, 12.5, 12.5, 3, 3, 3]),
    ],
)
def test_by_table(by, watts, expected):
    """W of a processor of each job, by its size, its user or its queue."""
    table = DrawTable(by, watts)
    assert expected == table.watts(NAMED, np.arange(6), NODE).tolist()
    assert expected[3::-3] == table.watts(NAMED, np.array([3, 0]), NODE).tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: DrawTable("size", {}), "by 'size': not known; did you mean processors? choose"),
        (lambda: DrawTable("processors", {"4-2": 1.0}), "'4-2': a range goes upwards"),
        (lambda: DrawTable("processors", {"few": 1.0}), "'few': not a range; write for"),
        (lambda: DrawTable("processors", {"1-8": 1.0, "8-": 2.0}), "8 is in two ranges"),
        (lambda: DrawTable("user", {"1": -1.0}), "draw of user 1: -1 W per processor: must be 0"),
        (lambda: DrawTable("user", {"eve": 1.0}).watts(NAMED, np.arange(6), NODE),
         "user 'eve': not known"),
        (lambda: MeasuredDraw(most=0.0), "draw: most 0 W: must be more than"),
        (lambda: MeasuredDraw().fitted(None), "no log with energy of jobs"),
    ],
)  # fmt: skip
def test_mistakes(call, message):
    """Are refused in one line."""
    with pytest.raises((QuantityError, ModelFitError), match=re.escape(message)):
        call()


def test_measured_of_a_log(make_trace):
    """Energy by processors and run time; nothing where it is unknown, not plausible or short."""
    job = {"submit": 0, "run": 100, "wait": 0, "allocated_processors": 2}
    trace = make_trace(job, job, job, job | {"run": 59}, job)
    trace = with_energy(trace, [4000, "", 0, 4000, 10**9])
    assert [20, -1, -1, -1, -1] == measured_watts(trace).tolist()
    assert [4000, -1, -1, 4000, 1e9] == measured_energy(trace).tolist()
    batsim = replace(trace, extra={"consumed_energy": np.array(["-1", "nan", "3.5", "", "x"], "O")})
    assert [-1, -1, 3.5, -1, -1] == measured_energy(batsim).tolist()
    assert [-1.0] * 5 == measured_watts(replace(trace, extra={})).tolist()


def test_effects_by_hand():
    """One size, two users, jobs of equal weight: each effect is shrunk by n / (n + strength)."""
    jobs = jobs_of([1] * 4 + [2] * 4, [1] * 8, [3600] * 8)
    watts = np.array([10.0] * 4 + [40.0] * 4)
    model = fit_draws(jobs, watts, strength=4.0)
    # Half of the distance to the mean logarithm, then half of the rest twice for the finer levels.
    expected = np.log(20) + np.log(2) * (1 - 1 / 8) * np.array([-1, 1])
    found = model.watts(jobs, np.array([0, 7])) / model.scale
    assert expected == pytest.approx(np.log(found))
    assert 25 == model.mean
    new = jobs_of([9], [64], [60])
    assert 20 == pytest.approx(float(model.watts(new, np.array([0]))[0]) / model.scale)


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.integers(1, 4), st.integers(1, 40), st.integers(1, 9999), st.floats(1, 500)),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from([0.0, 5.0]),
)
def test_energy_of_all_is_kept(given, strength):
    """What is predicted for the jobs it is fitted to has the energy that was measured in total."""
    users, processors, run, watts = zip(*given, strict=True)
    jobs, measured = jobs_of([*users], [*processors], [*run]), np.array(watts)
    predicted = fit_draws(jobs, measured, strength).watts(jobs, np.arange(len(jobs)))
    work = jobs.processors * jobs.run_time
    assert predicted @ work == pytest.approx(measured @ work)
    assert (predicted > 0).all()


def test_users_are_learned(make_trace):
    """Later jobs of users who differ are predicted better than by the mean; noise is not."""
    rng = np.random.default_rng(5)
    users = rng.integers(0, 12, 400)
    level = rng.uniform(5, 50, 12)
    for watts, better in ((level[users], True), (rng.permutation(level[users]), False)):
        noisy = watts * rng.lognormal(0, 0.05, 400)
        trace = make_trace(*(
            {"submit": 100 * i, "wait": 0, "run": 1000, "allocated_processors": 4, "user": user,
             "requested_processors": 4, "requested_time": 2000}
            for i, user in enumerate(users.tolist())
        ))  # fmt: skip
        trace = with_energy(trace, (noisy * 4 * 1000).round().astype(int).tolist())
        score = MeasuredDraw().judged(trace)
        assert 100 == score.jobs
        assert better == (score.error < 0.5 * score.error_of_mean) == (score.energy < 0.1)
        model = MeasuredDraw().fitted(trace)
        assert 400 == model.jobs
    few = make_trace({"submit": 0, "run": 100, "wait": 0, "allocated_processors": 2})
    with pytest.raises(ModelFitError, match=r"0 jobs of .* with a plausible energy, at least 10"):
        MeasuredDraw().fitted(few)


def attached(in_use, jobs):
    """The power of jobs on a pool of equal processors."""
    Simulation(jobs, 8, parts=[in_use])
    return in_use


def test_energy_of_jobs_as_they_are_now():
    """Processors x W x run time x PUE, by what was measured first; jobs may be added later."""
    jobs = jobs_of([1, 1], [2, 4], [3600, 1800])
    jobs.requested_time[:] = 7200
    in_use = attached(PowerInUse(Power((NODE,), pue=1.2), np.array([-1.0, 100.0])), jobs)
    assert [12.5, 100] == in_use.watts([0, 1]).tolist()
    assert [0.03, 0.24] == pytest.approx(in_use.energy([0, 1]).tolist())
    assert [0.06, 0.96] == pytest.approx(in_use.requested_energy([0, 1]).tolist())
    (new,) = jobs.append(1, user=1, processors=1, run_time=-1, requested_time=-1)
    assert ([12.5], [0]) == (in_use.watts(new).tolist(), in_use.energy(new).tolist())
    jobs.processors[0] = 1  # its user asks for less
    assert [0.015] == pytest.approx(in_use.energy(0).tolist())
    few = attached(PowerInUse(Power((NODE,), draw=DrawTable("processors", {"1": 30.0}))), jobs)
    assert [30, 12.5] == few.watts([0, 1]).tolist()


DAY = 86400


@pytest.mark.parametrize(
    ("times", "degrees", "submit", "end", "mean"),
    [
        ([0, DAY, 2 * DAY], [0.0, 20.0, 20.0], 0, 2 * DAY, 1.2),
        ([0, DAY], [0.0, 20.0], 3600, 4 * DAY, (1.0 + 3 * 1.4) / 4),  # its last value goes on
        ([1800, 3600], [0.0, 20.0], 3600, 4 * DAY, 1.4),  # from the first submission on
    ],
)
def test_mean_of_cooling(times, degrees, submit, end, mean):
    """Cooling counts with its mean over the record; of several types the one without names."""
    cooling = Cooling(Signal(np.array(times), np.array(degrees)), ((0, 1.0), (20, 1.4)))
    jobs = jobs_of([1], [1], [3600])
    jobs.recorded_submit[:], jobs.recorded_end[:] = submit, end
    large = replace(NODE, name="large", idle=800.0, nodes="l[1-2]")
    in_use = attached(PowerInUse(Power((large, NODE), pue=cooling)), jobs)
    assert mean == pytest.approx(in_use.mean_pue)
    assert [0.0125 * mean] == pytest.approx(in_use.energy([0]).tolist())
    named = replace(NODE, nodes="n1")
    assert large is attached(PowerInUse(Power((large, named))), jobs).node


@pytest.mark.parametrize(
    ("word", "joules"),
    [("4290000", 4290000), ("4.29M", 4290000), ("532K", 532000), ("1.5G", 1500000000), ("0", -1),
     ("", -1), ("18446744073709551614", -1), ("4294967294", -1), ("0.5", 1)],
)  # fmt: skip
def test_energy_as_slurm_writes_it(word, joules):
    """Units are decimal; 0 and what Slurm writes for no value mean that nothing was measured."""
    assert joules == parse_energy(word.encode())


def test_energy_of_rows_and_steps():
    """The row of the job counts, else its step extern, else the sum of its steps."""
    names, moment = ("JobID", "ConsumedEnergyRaw", "ConsumedEnergy"), "2024-01-31T12:00:0"
    rows = [
        ("1", "500", "0.5K"), ("1.batch", "900", ""),
        ("2", "0", "0"), ("2.batch", "100", ""), ("2.0", "18446744073709551614", ""),
        ("2.1", "7", ""),
        ("3", "", ""), ("3.batch", "100", ""), ("3.extern", "120", ""),
        ("4", "4294967294", ""), ("5+0", "30", ""), ("5+1", "40", ""), ("6+0", "30", ""),
        ("6+1", "", ""),
    ]  # fmt: skip
    cells = [
        dict(zip(names, row, strict=True)) | {"Submit": f"{moment}{row[0][0]}"} for row in rows
    ]
    trace = parse_sacct(text(*cells), options=UTC)
    assert ["500", "107", "120", "", "70", ""] == trace.extra["energy"].tolist()
    assert ("ConsumedEnergy",) == trace.not_read
    only = [{"JobID": "1", "ConsumedEnergy": "1.25M"}]
    assert ["1250000"] == parse_sacct(text(*only)).extra["energy"].tolist()
    tres = [{"JobID": "1", "AllocTRES": "billing=1,cpu=1,energy=77,node=1"}]
    assert ["77"] == parse_sacct(text(*tres)).extra["energy"].tolist()
    with pytest.raises(ValueError, match="field ConsumedEnergyRaw: 'much': not an energy in J"):
        parse_sacct(
            text({"JobID": "1", "ConsumedEnergyRaw": "much"}), options=FormatOptions(strict=True)
        )


def test_energy_is_written_and_read():
    """By all formats that hold columns beyond the fields, and by a mapped table in its unit."""
    rows = [{"JobID": "1", "ConsumedEnergyRaw": "7200000"}, {"JobID": "2", "ConsumedEnergyRaw": ""}]
    trace = parse_sacct(text(*rows), options=UTC)
    columns = {
        "submit": {"column": "at"}, "run": {"column": "took"},
        "energy": {"column": "used", "unit": "kWh"},
    }  # fmt: skip
    mapping = FormatOptions(mapping=TableMapping(columns=columns, delimiter=";"))
    for generate, parse, options in (
        (generate_sacct, parse_sacct, UTC),
        (generate_sacct_json, parse_sacct_json, UTC),
        (generate_csv, parse_csv, UTC),
        (generate_mapped, parse_mapped, mapping),
    ):
        lost = Losses()
        data = generate(trace, lost, options)
        assert ["7200000", ""] == parse(data, "mine", options).extra["energy"].tolist()
        assert "energy" not in str(lost)
    assert b"at;took;used\n0;600;2\n" in data


def test_energy_of_steps_in_json():
    """Records of steps count where that of the job has no energy."""

    def step(name, joules):
        used = {"total": [{"type": "energy", "name": None, "count": joules}]}
        return {"step": {"name": name}, "tres": {"requested": used}}

    def energy(steps, own=None):
        record = {"steps": steps, "tres": {"allocated": [{"type": "energy", "count": own}]}}
        return row_of(record)["ConsumedEnergyRaw"]

    assert "12" == energy([step("batch", 5), step("0", 7), step("1", None)])
    assert "9" == energy([step("batch", 5), step("extern", 9)])
    assert "3" == energy([step("batch", 5)], 3)
    older = {"step": {"name": "0"}, "statistics": {"energy": {"consumed": 4}}}
    assert "4" == energy([older])
    older["statistics"] = {"energy": {"consumed": 2**32 - 2}}
    assert "" == energy([older, {}])
