"""Metrics of small runs by hand, how numbers are shown, and what parts contribute to a run."""

import json
from dataclasses import fields
from typing import override

import numpy as np
import pytest
from hpcrowd import JobTable, State, summarize
from hpcrowd.analysis.comparison import report as compared
from hpcrowd.analysis.comparison.sweeps import scale_of
from hpcrowd.analysis.features.feature import Feature, Value
from hpcrowd.analysis.features.report import format_value
from hpcrowd.analysis.metrics import PER_USER, bounded_slowdown, format_metric, slowdown
from hpcrowd.analysis.numbers import amount_text, mean_of, number_text, share_text, time_text
from hpcrowd.analysis.paired import Difference, Estimate, UserDifference, t_interval
from hpcrowd.analysis.parts import PARTS, RunPart, RunParts
from hpcrowd.analysis.pictures.plots import shortened, wrapped
from hpcrowd.analysis.results import read_results, write_results
from hpcrowd.analysis.run import Run
from hpcrowd.environment.errors import QuantityError
from hpcrowd.metrics import METRICS, lateness, per_user

#: user, processors, recorded submission, submission, start, end, state; see the comments.
STORY = (
    (1, 2, 0, 0, 0, 100, State.COMPLETED),
    (1, 4, 40, 50, 100, 104, State.COMPLETED),  # waits 50 s, 10 s late
    (2, 9, 80, 60, -1, -1, State.REJECTED),  # 20 s early
    (2, 1, 90, 110, 120, 120, State.KILLED),  # no length, waits 10 s, 20 s late
    (3, 1, 200, -1, -1, -1, State.UNFINISHED),  # never submitted
)

#: Metrics of machines of nodes, of descriptions of power and of holds, which the story has not.
NOT_THERE = """eligible_wait_mean_s gpu_utilization memory_utilization runs_preempted energy_cost
    preempted_processor_h energy_kwh energy_wasted_kwh energy_idle_kwh power_peak_kw carbon_kg"""


def table(*rows):
    """Jobs of these rows."""
    names = ("user", "processors", "recorded_submit", "submit", "start", "end", "state")
    jobs = JobTable()
    for row in rows:
        jobs.append(1, **dict(zip(names, row, strict=True)))
    return jobs


def test_every_metric_of_a_story():
    """Each metric of a story with waits, a rejection and lateness is what a person computes."""
    found = summarize(table(*STORY), processors=4, dropped=6)
    people = found.pop("per_user")
    counts = {"in": 5, "completed": 2, "killed": 1, "rejected": 1, "unfinished": 1, "dropped": 6}
    counts |= dict.fromkeys(("cancelled", "renounced", "failed"), 0)
    expected = {
        **{f"jobs_{name}": number for name, number in counts.items()},
        "makespan_s": 120,
        "wait_mean_s": (0 + 50 + 10) / 3,
        "wait_max_s": 50,
        "response_mean_s": (100 + 54 + 10) / 3,
        "slowdown_mean": (1 + 54 / 4 + 10) / 3,
        "bounded_slowdown_mean": (1 + 54 / 10 + 10 / 10) / 3,
        "utilization": (2 * 100 + 4 * 4 + 0) / (4 * 120),
        "throughput_jobs_per_day": 3 * 86_400 / 120,
        "lateness_mean_s": (0 + 10 - 20 + 20) / 4,
        "relative_lateness": 1 + 2.5 / 90,
        "additional_lateness_s": 2 * 2.5 / 3,
        **dict.fromkeys(NOT_THERE.split()),
    }
    assert pytest.approx(expected) == found
    assert [metric.name for metric in METRICS] == list(found)
    assert list(PER_USER) == list(people)
    rows = [(user, 1, 0, 0, wait, wait + 1, 1) for user, wait in enumerate(range(0, 110, 10))]
    found = summarize(table(*rows), processors=11)["per_user"]
    assert {"p10": 10.0, "p50": 50.0, "p90": 90.0} == found["wait_mean_s"]


@pytest.mark.parametrize(("rows", "zero", "none", "late"), [
    ((), "jobs_in", "wait_mean_s makespan_s utilization", (None,) * 3),
    (((1, 9, 10, 30, -1, -1, State.REJECTED), (1, 9, 50, 60, -1, -1, State.REJECTED)),
     "jobs_completed", "wait_mean_s makespan_s utilization", (15, 1 + 15 / 40, 30)),
    (((1, 1, 5, 5, 5, 5, 1),), "makespan_s wait_mean_s wait_max_s",
     "utilization throughput_jobs_per_day", (0, None, None)),
    (((1, 1, -1, 5, 5, 9, 1),), "wait_mean_s", "lateness_mean_s", (None,) * 3),
], ids=["nothing", "all rejected", "of no length", "without a record"])  # fmt: skip
def test_runs_of_hardly_anything(rows, zero, none, late):
    """What is 0 and what has no value, fit for JSON; lateness, relative and additional."""
    jobs = table(*rows)
    found = summarize(jobs, processors=4)
    assert {0} == {found[name] for name in zero.split()}
    assert {None} == {found[name] for name in none.split()}
    names = ("lateness_mean_s", "relative_lateness", "additional_lateness_s")
    assert late == tuple(found[name] for name in names)
    assert (late[0] is None) == (lateness(jobs) is None)
    json.dumps(found, allow_nan=False)


def test_metrics_of_users_and_slowdowns():
    """Users are measured one by one; who has no span or a single job has no relative lateness."""
    found = {
        name: dict(zip(users.tolist(), values.tolist(), strict=True))
        for name, (users, values) in per_user(table(*STORY)).items()
    }
    expected = {
        "wait_mean_s": (25, 10), "wait_max_s": (50, 10), "response_mean_s": (77, 10),
        "slowdown_mean": ((1 + 13.5) / 2, 10), "bounded_slowdown_mean": ((1 + 5.4) / 2, 1),
        "lateness_mean_s": (5, 0), "relative_lateness": (1 + 5 / 40, 1),
        "additional_lateness_s": (10, 0),
    }  # fmt: skip
    assert {name: {1: one, 2: two} for name, (one, two) in expected.items()} == found
    other = per_user(table((1, 1, 5, 9, 9, 10, 1), *[(2, 1, 7, 9, 9, 10, 1)] * 2))
    assert [1, 2] == other["lateness_mean_s"][0].tolist()
    assert [] == other["relative_lateness"][0].tolist()
    assert ([2], [4.0]) == tuple(one.tolist() for one in other["additional_lateness_s"])
    # Slowdown counts run times from 1 s, bounded slowdown from 10 s and never below 1.
    response, run = np.array([0, 5, 5, 100]), np.array([0, 0, 5, 20])
    assert [0.0, 5.0, 1.0, 5.0] == slowdown(response, run).tolist()
    assert [1.0, 1.0, 1.0, 5.0] == bounded_slowdown(response, run).tolist()


#: Most public names of a run: fields, properties and methods.
MOST_NAMES = 20


class Moods(RunPart):
    """Moods of users; ``rows`` has one for each job."""

    name, key, file = "moods", "moods", "moods"
    meaning = {"number": "job number", "mood": "how its user felt"}  # noqa: RUF012

    @override
    def metrics(self, jobs, found):
        return {"wait_mean_s": found["jobs_in"] + self.account["good"]}

    @override
    def job_columns(self):
        return {"mood": dict(enumerate(self.rows)), "smiles": np.arange(len(self.rows))}

    @override
    def user_sums(self):
        return ["smiles"]

    @override
    def notes(self):
        return ["users have moods"]

    @override
    def columns(self, jobs):
        return {"number": jobs.number, "mood": self.rows}

    @override
    @classmethod
    def from_columns(cls, columns):
        return columns["mood"]


@pytest.fixture
def run(monkeypatch):
    """A run of two jobs with a part that no module of the library knows."""
    monkeypatch.setitem(PARTS, "moods", Moods)
    jobs = JobTable(2)
    jobs.number[:] = (1, 2)
    jobs.user[:] = 7
    return Run(jobs, 4, "moody", {}, parts=RunParts(Moods({"good": 1}, ["glad", "sad"])))


def test_a_part_contributes_without_being_known(run, tmp_path):
    """Its totals, metrics, columns and notes are those of the run, and its table is read back."""
    assert ({"good": 1}, 3) == (run.summary()["moods"], run.metrics["wait_mean_s"])
    assert ["glad", "sad"] == run.to_frame()["mood"].tolist()
    assert [1] == run.users()["smiles"].tolist()
    write_results(run, tmp_path / "run", plots=False)
    again = read_results(tmp_path / "run").parts["moods"]
    assert ({"good": 1}, ["glad", "sad"]) == (again.account, again.rows)


def test_parts_that_a_run_does_not_have(run):
    """They are empty, and not among its parts; a name that is not known has a cure."""
    assert ["moods"] == list(run.parts)
    assert ({}, ()) == (run.parts["power"].account, run.parts["power"].rows)
    with pytest.raises(QuantityError, match="part of a run 'powr': not known; did you mean power"):
        run.parts["powr"]
    # What belongs to a part is in its part: a run has few public names.
    names = {one.name for one in fields(Run)} | {name for name in vars(Run) if name[0] != "_"}
    assert len(names) <= MOST_NAMES


def estimate(name, *values):
    """Return a mean with its interval as text."""
    return compared.format_estimate(name, Estimate(*values, 3))


def difference(name, value, relative=None):
    """Return a difference as text."""
    return compared.format_difference(name, Difference(Estimate(value, None, None, 3), relative))


def users(*values):
    """Return a difference of waits of users as text; a quarter are better off, half worse."""
    found = UserDifference(0, 0, Estimate(*values, 3), 0, 0.25, 0.5, 0, 0)
    return compared.format_users("wait_mean_s", found)


def feature(name, unit, number):
    """Return the value of a feature as text."""
    return format_value(Feature(name, name, "", "", lambda w: 0.0, unit), Value(number, "because"))


@pytest.mark.parametrize(("shown", "values", "expected"), [
    *((form, (None,), "-") for form in (number_text, share_text, time_text)),
    *((mean_of, (np.array(values),), mean) for values, mean in (([1, 3], 2), ([], None))),
    (number_text, (0.0,), "0.00"),
    (number_text, (-9.99,), "-9.99"),
    (number_text, (10,), "10.0"),
    (number_text, (1234.4,), "1,234"),
    (amount_text, (0.25, "kWh", "MWh"), "0.250 kWh"),
    (format_metric, ("jobs_in", 12345), "12,345"),
    (format_metric, ("wait_mean_s", 7200.0), "2.0 h"),
    (format_metric, ("utilization", 0.7512), "75.1 %"),
    (scale_of, ("wait_mean_s", [-60, 0.0]), (1, "s")),
    (scale_of, ("wait_mean_s", [119]), (1, "s")),
    (scale_of, ("wait_mean_s", [120]), (60, "min")),
    (scale_of, ("wait_mean_s_users_p90", [7200]), (3600, "h")),
    (scale_of, ("makespan_s", [-900_000, 0.0]), (86400, "days")),
    (scale_of, ("utilization", [0.7]), (0.01, "%")),
    (scale_of, ("slowdown_mean", [7000]), (1, "")),
    (t_interval((0.5, 0.7)).text, (0, 0.01), "60 ± 127"),
    (t_interval((-0.001,)).text, (2,), "0.00"),
    (t_interval((1234.0,)).text, (), "1,234.0"),
    (estimate, ("wait_mean_s", 4740, 4500, 4980), "79.0 ± 4.0 min"),
    (estimate, ("wait_mean_s", 4740, None, None), "79.0 min"),
    (estimate, ("utilization", 0.5, 0.49, 0.51), "50.0 ± 1.0 %"),
    (estimate, ("jobs_in", 1000, 1000, 1000), "1,000"),
    (difference, ("wait_mean_s", -1800, -0.25), "-30.0 min (-25.0 %)"),
    (difference, ("wait_mean_s", 0, 0), "0 s"),
    (difference, ("utilization", 0.05, 0.1), "+5.0 points (+10.0 %)"),
    (difference, ("lateness_mean_s", -259_200, 4), "-3.0 days"),
    (difference, ("jobs_in", 5, 12.345), "+5 (+1,234 %)"),
    (difference, ("wait_mean_s", -0.2, -1e-4), "0 s (0.0 %)"),
    (compared.format_difference, ("wait_mean_s", None), "-"),
    # Both ends of an interval are in the unit of the larger one.
    (users, (5400, -600, 14400), ("+90.0 min", "-0.2 to +4.0 h", "25 %", "50 %")),
    (feature, ("jobs", "", 202871), "202,871"),
    (feature, ("span_s", "s", 110_000_000.0), "1,273.1 days"),
    (feature, ("interarrival_mean_s", "s", 0.25), "0.25 s"),
    (feature, ("bag_interarrival_weibull_scale_s", "s", 0.00021), "0.00021 s"),
    (feature, ("jobs_per_hour", "1/h", 6.604), "6.60 per h"),
    (feature, ("weekend_share", "", 0.2034), "20.3 %"),
    (feature, ("weekend_share", "", 0.000002), "0.0002 %"),
    (feature, ("run_time_processors_spearman", "", -0.2293), "-0.229"),
    (feature, ("hurst_sd", "", None), "not available: because"),
    (shortened, ("short", 5), "short"),
    (shortened, ("abc, defg", 5), "abc…"),
    (wrapped, ("one two three four five", 8, 2), "one two\nthree f…"),
])  # fmt: skip
def test_numbers_for_people(shown, values, expected):
    """Sign, unit and digits; half an interval; what rounds to 0 has no sign, an unknown is "-"."""
    assert expected == shown(*values)
