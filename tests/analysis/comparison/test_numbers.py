"""Comparisons in numbers: exact on tiny runs, paired where user or seed is on both sides."""

import json

import numpy as np
import pytest
from hpcrowd import HpcrowdError, JobTable, Run, State, compare
from hpcrowd.analysis.comparison.numbers import ALL_METRICS
from hpcrowd.analysis.comparison.report import comparison_tables, given_up_cells
from hpcrowd.analysis.metrics import PER_USER
from hpcrowd.environment.traces.formats.swf import parse_swf
from hpcrowd.scenarios.commands.look.compare import tables
from hpcrowd.scenarios.kinds.power_files import PowerConfig
from hpcrowd.scenarios.kinds.replay import replay
from scipy.stats import ttest_ind

DONE, LOST = State.COMPLETED, State.REJECTED
JOB = {"run": 60, "requested_processors": 1, "user": 1}


def made(*rows, label="made", seed=None, **setup):
    """Return a run of jobs by user, wait and state, recorded an hour apart, of 100 s each."""
    jobs = JobTable(len(rows))
    for row, (user, wait, state) in enumerate(rows):
        jobs.number[row], jobs.user[row], jobs.state[row] = row + 1, user, state
        jobs.processors[row] = jobs.group[row] = 1
        jobs.submit[row] = jobs.recorded_submit[row] = 3600 * row
        if state == DONE:
            jobs.start[row] = 3600 * row + wait
            jobs.end[row] = jobs.start[row] + 100
    seeded = {} if seed is None else {"seed": seed}
    return Run(jobs, 4, label, {"kind": "made", **setup, **seeded})


def waits(*values, label="made", seed=None, **setup):
    """Return a run of one job per user with these waits."""
    rows = [(user, wait, DONE) for user, wait in enumerate(values, 1)]
    return made(*rows, label=label, seed=seed, **setup)


def group_of(waits_by_seed, users):
    """Return runs of one user, by seed."""
    return [waits(one, seed=s, users=users, label=users) for s, one in waits_by_seed.items()]


LEFT = State.CANCELLED


def test_jobs_given_up():
    """How many jobs were given up, whose work is recovered or lost, and which users stay."""
    first = made((1, 0, LEFT), (1, 0, LEFT), (2, 5, DONE), (2, 0, LEFT), (3, 5, DONE), label="a")
    other = made((1, 5, DONE), (1, 0, LEFT), (2, 5, DONE), (2, 5, DONE), (3, 0, LEFT), label="b")
    for run in (first, other):
        run.jobs.run_time[:] = 1800
    found = compare([first, other])
    means = {name: [one and one.mean for one in ones] for name, ones in found.given_up.items()}
    assert {
        "jobs_given_up": [3, 2],
        "given_up_processor_h": [1.5, 1],
        "users_giving_up": [2, 2],
        "jobs_recovered": [None, 2],
        "recovered_processor_h": [None, 2 * 100 / 3600],
        "jobs_lost": [None, 1],
        "users_staying": [None, 1],
        "users_leaving": [None, 1],
    } == means
    wire = found.to_json()["groups"]
    assert 3 == wire[0]["given_up"]["jobs_given_up"]["mean"]
    shown = dict(given_up_cells(found))
    assert ["-", "2"] == shown["jobs_recovered"]
    assert ["1.50", "1.00"] == shown["given_up_processor_h"]
    assert "given-up" in [section.name for section in comparison_tables(found)]
    assert "jobs recovered (given up in A)" in [
        cell for table in tables(found) for cell in table.columns[0].cells
    ]
    without = compare([waits(10), waits(20, label="b")])
    assert {} == without.given_up
    assert "given-up" not in [section.name for section in comparison_tables(without)]
    assert "given_up" not in without.to_json()["groups"][0]


def test_jobs_given_up_by_seed():
    """Runs of the same seed are compared with each other, and then averaged."""
    runs = [
        made((1, 0, one), (2, 0, two), label=label, seed=seed, size=label)
        for label, states in {"a": ((LEFT, DONE), (DONE, LEFT)), "b": ((DONE, DONE),) * 2}.items()
        for seed, (one, two) in enumerate(states)
    ]
    found = compare(runs).given_up
    assert [1, 0] == [one.mean for one in found["jobs_given_up"]]
    assert (1, 1, 1, 2) == tuple(vars(found["jobs_recovered"][1]).values())


def test_two_runs():
    """Mean waits of 15 and 40 s: 25 s more, 5/3 of the first; a single run has no interval."""
    found = compare([waits(10, 20, label="a"), waits(20, 60, label="b")])
    assert ["a", "b"] == [group.label for group in found.groups]
    assert [15, 40] == found.metrics.loc["wait_mean_s", "mean"].tolist()
    one = found.differences.loc[("wait_mean_s", "b")]
    assert (25, 25 / 15, "") == (one["difference"], one["relative"], one["by"])
    assert bool(one[["low", "high"]].isna().all())
    expected = {"users": 2, "first": 15, "other": 40, "difference": 25, "low": 10, "high": 40}
    # Two users drawn twice: means of 10 and 40 s in a quarter each are the ends of the interval.
    expected |= {"median": 25, "better": 0, "worse": 1, "only_first": 0, "only_other": 0}
    assert expected == found.users.loc[("wait_mean_s", "b")].to_dict()
    wire = found.to_json()
    names = [metric.name for metric in ALL_METRICS]
    assert [names, names] == [list(group["metrics"]) for group in wire["groups"]]
    (one,) = wire["differences"]
    assert ("b", names, list(PER_USER)) == (one["group"], list(one["metrics"]), list(one["users"]))
    assert 25 == one["users"]["wait_mean_s"]["median"]


@pytest.mark.parametrize(("currency", "known"), [("EUR", True), ("SEK", False)])
def test_prices_in_another_currency_are_not_subtracted(currency, known):
    """The energies are, and a note says why the prices are not; in one currency both are."""
    trace = parse_swf("1 0 0 3600 1 -1 -1 1 3600 -1 1 1 1 -1 1 -1 -1 -1", "log.swf")
    runs = []
    for unit, price in (("EUR", 0.25), (currency, 2.5)):
        tariff = {"price": price, "currency": unit}
        nodes = [{"idle": "0 W", "processor": "1 kW"}]
        power = PowerConfig.configure(nodes=nodes, tariff=tariff)
        runs.append(replay(trace, users="rigid", processors=1, power=power))
    found = compare(runs)
    assert [0.25, 2.5] == found.metrics.loc["energy_cost", "mean"].tolist()
    difference = found.differences["difference"]
    assert [0.0] == difference.loc["energy_kwh"].tolist()
    assert np.allclose([2.25 if known else np.nan], difference.loc["energy_cost"], equal_nan=True)
    notes = [one for one in found.notes if "Prices are in different currencies" in one]
    assert [] == notes if known else " in EUR" in notes[0] and " in SEK" in notes[0]


def test_each_user_with_a_partner_counts_once():
    """The mean is over users, not over jobs; of four users two have less and one has more."""
    a = made((1, 10, DONE), (1, 10, DONE), (1, 10, DONE), (2, 10, DONE))
    b = made((1, 10, DONE), (1, 10, DONE), (1, 40, DONE), (2, 30, DONE))
    assert 15 == compare([a, b]).users.loc["wait_mean_s"]["difference"].iloc[0]
    found = compare([waits(9, 9, 9, 9), waits(1, 8, 9, 99)])
    assert (0.5, 0.25) == tuple(found.users.loc["wait_mean_s"][["better", "worse"]].iloc[0])
    # Users who never got a job to run on one side are counted, not paired; nobody has no row.
    a = made((1, 10, DONE), (2, 10, DONE), (3, 10, LOST), (4, 10, DONE))
    b = made((1, 30, DONE), (2, 10, LOST), (3, 10, DONE), (4, 10, State.UNFINISHED))
    found = compare([a, b])
    one = found.users.loc["wait_mean_s"].iloc[0]
    assert (1, 20, 2, 1) == tuple(one[["users", "difference", "only_first", "only_other"]])
    assert ["made (2): 1 job of 1 user unfinished, not counted in waits."] == found.notes
    found = compare([made((1, 1, DONE), (2, 0, LOST)), made((1, 1, LOST), (2, 0, DONE))])
    shown = set(found.users.index.get_level_values("metric"))
    assert ({"lateness_mean_s"}, set()) == (shown & {"lateness_mean_s"}, shown & {"wait_mean_s"})


def test_seeds_are_one_group():
    """Runs that differ only in their seed are one group; values of users are means over seeds."""
    told = "a, easy", "b, easy, seed 1", "a, easy, seed 1", "b, easy", "a, easy, seed 2"
    given = (10, 0), (60, 1), (20, 1), (50, 0), (60, 2)
    runs = [
        waits(wait, seed=seed, label=label, users=label[0])
        for label, (wait, seed) in zip(told, given, strict=True)
    ]
    found = compare(runs)
    groups = [(group.label, group.seeds) for group in found.groups]
    assert [("a, easy", [0, 1, 2]), ("b, easy", [1, 0])] == groups
    assert [30, 55] == found.metrics.loc["wait_mean_s", "mean"].tolist()
    found = compare([runs[0], runs[2]])
    assert (1, 0, []) == (len(found.groups), len(found.users), found.to_json()["differences"])
    a = [made((1, 10, DONE), (2, 10, DONE), seed=0), made((1, 20, DONE), (2, 1, LOST), seed=1)]
    found = compare([*a, made((1, 15, DONE), (2, 14, DONE), users="b")])
    assert {1: 15, 2: 10} == found.per_user("wait_mean_s").iloc[:, 0].to_dict()
    assert 2 == found.users.loc["wait_mean_s"]["difference"].iloc[0]


@pytest.mark.parametrize(("first", "other", "expected"), [
    # Over the seeds 1 and 2, which both have: 5 and 10 s more, of 40. The half width is
    # Student's quantile of one degree of freedom times a standard error of 2.5.
    ({0: 10, 1: 20, 2: 60}, {2: 70, 1: 25, 3: 0}, ("pairs", 7.5, 40, 12.7062047362 * 2.5)),
    # With at most one seed in common the difference of means has Welch's interval.
    ({0: 10, 1: 20, 2: 60}, {2: 70, 3: 25, 4: 40, 5: 30}, ("groups", 11.25, 30, None)),
    # Against a single run the means differ, without an interval.
    ({0: 10}, {0: 20, 1: 40}, ("", 20, 10, np.nan)),
], ids=["pairs", "groups", "single"])  # fmt: skip
def test_groups_are_paired_by_seed(first, other, expected):
    """Differences and intervals are over common seeds, or else over all."""
    found = compare([*group_of(first, "a"), *group_of(other, "b")])
    one = found.differences.loc[("wait_mean_s", "b")]
    by, difference, base, half = expected
    assert (by, difference, difference / base) == (one["by"], one["difference"], one["relative"])
    low, high = difference - (half or 0), difference + (half or 0)
    if half is None:
        sides = list(other.values()), list(first.values())
        low, high = ttest_ind(*sides, equal_var=False).confidence_interval()
    assert pytest.approx([low, high], nan_ok=True) == one[["low", "high"]].tolist()


def test_other_work_is_not_paired(make_trace):
    """Runs of other users or traces are compared in metrics only, which a note says."""
    found = compare([waits(10, 20, label="a"), waits(10, 20, 30, label="b")])
    assert found.users.empty
    assert ["b uses generated users, a uses generated users: users are not paired."] == found.notes
    with pytest.raises(HpcrowdError, match="b: not the same work as a"):
        found.per_user("wait_mean_s")
    runs, labels = [], [f"rigid, easy, processors 4 ({name}.swf)" for name in ("one", "two")]
    for name, submit in (("one.swf", 0), ("two.swf", 5)):
        trace = make_trace(JOB | {"submit": submit})
        trace.source = name
        runs.append(replay(trace, users="rigid", processors="4"))
    found = compare(runs)
    assert labels == [group.label for group in found.groups]
    assert "users are not paired" in found.notes[0]


def test_made_up_work_has_the_record_of_its_trace(make_trace):
    """Jobs that users made up have no record; that of another run of the same trace replaces it."""
    trace = make_trace(*(JOB | {"submit": 3600 * n} for n in range(48)))
    plain, other = (replay(trace, users="rigid", processors="4", seed=seed) for seed in (0, 1))
    other.jobs.recorded_submit[:] = -1
    other.reading.trace, other.configuration = None, {"users": "made up"}
    stored = {"trace": {"source": "a.swf", "sha256": "1"}, "versions": {}}
    plain.reading.stored = other.reading.stored = stored
    found = compare([other, plain])
    assert [0, 0] == found.metrics.loc["week_distance", "mean"].tolist()
    assert "lateness_mean_s" not in found.users.index.get_level_values("metric")


def test_what_cannot_be_compared():
    """A single run, and a metric that users do not have; empty runs are, with null."""
    for runs in ([], [waits(10)]):
        with pytest.raises(HpcrowdError, match="give two or more"):
            compare(runs)
    with pytest.raises(HpcrowdError, match=r"utilization.*wait_mean_s"):
        compare([waits(10), waits(10)]).per_user("utilization")
    found = compare([Run(JobTable(), 4, "empty", {}), made((1, 0, LOST)), waits(10)])
    assert '"mean": null' in json.dumps(found.to_json(), allow_nan=False)
    assert found.differences.loc["wait_mean_s", "difference"].isna().all()
