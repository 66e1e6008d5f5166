"""Comparisons in numbers: exact on tiny runs, paired where user or seed is on both sides."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.analysis import METRICS, Comparison, Run, compare, write_results
from hpcrowd.analysis.comparison.numbers import ALL_METRICS
from hpcrowd.analysis.metrics import PER_USER
from hpcrowd.environment import HpcrowdError, JobTable, State, Trace
from hpcrowd.environment.traces.formats.swf import parse_swf
from hpcrowd.scenarios.kinds.power_files import PowerConfig
from hpcrowd.scenarios.kinds.replay import replay
from hypothesis import given
from hypothesis import strategies as st

#: (user, wait, state) of a job; None for a wait that is not over.
Row = tuple[int, int, State]


def made(*rows: Row, label: str = "made", seed: int | None = None, **configuration: str) -> Run:
    """Return a run of jobs that are recorded an hour apart, run 100 s each and come as recorded."""
    jobs = JobTable(len(rows))
    for row, (user, wait, state) in enumerate(rows):
        jobs.number[row], jobs.user[row], jobs.state[row] = row + 1, user, state
        jobs.processors[row] = jobs.group[row] = 1
        jobs.submit[row] = jobs.recorded_submit[row] = 3600 * row
        if state == State.COMPLETED:
            jobs.start[row] = 3600 * row + wait
            jobs.end[row] = jobs.start[row] + 100
    seeded = {} if seed is None else {"seed": seed}
    return Run(jobs, 4, label, {"kind": "made", **configuration, **seeded})


def waits(*values: int, label: str = "made", seed: int | None = None, **configuration: str) -> Run:
    """Return a run of one job per user with these waits."""
    rows = [(user, wait, State.COMPLETED) for user, wait in enumerate(values, 1)]
    return made(*rows, label=label, seed=seed, **configuration)


def test_differences_of_two_runs() -> None:
    """Mean waits of 15 and 40 s: 25 s more, 5/3 of the first; a single run has no interval."""
    found = compare([waits(10, 20, label="a"), waits(20, 60, label="b")])
    assert ["a", "b"] == [group.label for group in found.groups]
    assert [15, 40] == found.metrics.loc["wait_mean_s", "mean"].tolist()
    one = found.differences.loc[("wait_mean_s", "b")]
    assert (25, 25 / 15, "") == (one["difference"], one["relative"], one["by"])
    assert bool(one[["low", "high"]].isna().all())
    assert [metric.name for metric in ALL_METRICS] == list(found.estimates)


@pytest.mark.parametrize(("currency", "known"), [("EUR", True), ("SEK", False)])
def test_prices_in_another_currency_are_not_subtracted(currency: str, known: bool) -> None:
    """The energies are, and a note says why the prices are not; in one currency both are."""
    trace = parse_swf("1 0 0 3600 1 -1 -1 1 3600 -1 1 1 1 -1 1 -1 -1 -1", "log.swf")
    nodes = [{"idle": "0 W", "processor": "1 kW"}]
    first, other = (
        replay(trace, users="rigid", processors=1, power=PowerConfig.configure(
            nodes=nodes, tariff={"price": price, "currency": unit}
        ))
        for unit, price in (("EUR", 0.25), (currency, 2.5))
    )  # fmt: skip
    found = compare([first, other])
    assert [0.25, 2.5] == found.metrics.loc["energy_cost", "mean"].tolist()
    difference = found.differences["difference"]
    assert [0.0] == difference.loc["energy_kwh"].tolist()
    assert np.allclose([2.25 if known else np.nan], difference.loc["energy_cost"], equal_nan=True)
    notes = [one for one in found.notes if "Prices are in different currencies" in one]
    assert len(notes) == (0 if known else 1)
    assert all(f" in {unit}" in one for one in notes for unit in ("EUR", "SEK"))


def test_users_are_paired() -> None:
    """Users who wait 10 and 40 s longer: 25 s on average, each worse off.

    Two users drawn twice give means of 10, 25 and 40 s, the outer ones in a quarter each: they are
    the ends of the interval.
    """
    found = compare([waits(10, 20, label="a"), waits(20, 60, label="b")])
    one = found.users.loc[("wait_mean_s", "b")]
    expected = {"users": 2, "first": 15, "other": 40, "difference": 25, "low": 10, "high": 40}
    expected |= {"median": 25, "better": 0, "worse": 1, "only_first": 0, "only_other": 0}
    assert expected == one.to_dict()
    assert {"a": {1: 10, 2: 20}, "b": {1: 20, 2: 60}} == found.per_user("wait_mean_s").to_dict()


def test_shares_of_users() -> None:
    """Of four users two have less, one has more and one the same."""
    found = compare([waits(9, 9, 9, 9), waits(1, 8, 9, 99)])
    assert (0.5, 0.25) == tuple(found.users.loc["wait_mean_s"][["better", "worse"]].iloc[0])


def test_each_user_counts_once() -> None:
    """User 1 has three jobs, user 2 one: the mean is over users, not over jobs."""
    done = State.COMPLETED
    a = made((1, 10, done), (1, 10, done), (1, 10, done), (2, 10, done))
    b = made((1, 10, done), (1, 10, done), (1, 40, done), (2, 30, done))
    assert 15 == compare([a, b]).users.loc["wait_mean_s"]["difference"].iloc[0]


def test_users_without_a_partner_are_left_out() -> None:
    """Users who never got a job to run on one side are counted, not paired."""
    done, lost = State.COMPLETED, State.REJECTED
    a = made((1, 10, done), (2, 10, done), (3, 10, lost), (4, 10, done))
    b = made((1, 30, done), (2, 10, lost), (3, 10, done), (4, 10, State.UNFINISHED))
    found = compare([a, b])
    one = found.users.loc["wait_mean_s"].iloc[0]
    assert (1, 20, 2, 1) == tuple(one[["users", "difference", "only_first", "only_other"]])
    assert bool(one[["low", "high"]].isna().all())
    assert 4 == found.users.loc["lateness_mean_s"]["users"].iloc[0]
    assert ["made (2): 1 job of 1 user unfinished, not counted in waits."] == found.notes


def test_nobody_to_pair() -> None:
    """When no user has a wait on both sides, there is no row, and the rest is there."""
    a = made((1, 10, State.COMPLETED), (2, 0, State.REJECTED))
    b = made((1, 10, State.REJECTED), (2, 0, State.COMPLETED))
    found = compare([a, b])
    assert "wait_mean_s" not in found.users.index.get_level_values("metric")
    assert "lateness_mean_s" in found.users.index.get_level_values("metric")


def test_the_same_run_twice() -> None:
    """Every difference is 0, every user the same, and the labels tell the two apart."""
    run = waits(10, 20, 50, seed=3, label="a, seed 3")
    found = compare([run, run])
    assert ["a, seed 3 (1)", "a, seed 3 (2)"] == [group.label for group in found.groups]
    assert {0} == set(found.differences["difference"].dropna())
    users = found.users
    columns = ["difference", "low", "high", "better", "worse", "median"]
    assert {0} == set(users[columns].to_numpy().ravel().tolist())


def test_seeds_are_one_group() -> None:
    """Runs that differ only in their seed are one group, in any order; labels lose the seed."""
    runs = [
        waits(10, seed=0, label="a, easy", users="a"),
        waits(60, seed=1, label="b, easy, seed 1", users="b"),
        waits(20, seed=1, label="a, easy, seed 1", users="a"),
        waits(50, seed=0, label="b, easy", users="b"),
        waits(60, seed=2, label="a, easy, seed 2", users="a"),
    ]
    found = compare(runs)
    assert [("a, easy", [0, 1, 2]), ("b, easy", [1, 0])] == [
        (group.label, group.seeds) for group in found.groups
    ]
    assert 5 == len(found.runs)
    assert [30, 55] == found.metrics.loc["wait_mean_s", "mean"].tolist()
    assert [3, 2] == found.metrics.loc["wait_mean_s", "runs"].tolist()


def test_one_group_alone() -> None:
    """Several seeds of one configuration are worth a mean and its interval, without differences."""
    found = compare([waits(10, seed=0), waits(20, seed=1)])
    assert (1, 0, 0) == (len(found.groups), len(found.differences), len(found.users))
    assert [] == found.to_json()["differences"]


def test_user_values_are_means_over_seeds() -> None:
    """A user's value in a group is its mean over the seeds in which it has one."""
    done = State.COMPLETED
    a = [
        made((1, 10, done), (2, 10, done), seed=0),
        made((1, 20, done), (2, 1, State.REJECTED), seed=1),
    ]
    b = [made((1, 15, done), (2, 14, done), users="b")]
    found = compare([*a, *b])
    assert {1: 15, 2: 10} == found.per_user("wait_mean_s").iloc[:, 0].to_dict()
    assert 2 == found.users.loc["wait_mean_s"]["difference"].iloc[0]


def group_of(waits_by_seed: dict[int, int], users: str) -> list[Run]:
    """Return runs of one user, by seed."""
    return [
        waits(wait, seed=seed, users=users, label=users) for seed, wait in waits_by_seed.items()
    ]


def test_groups_are_paired_by_seed() -> None:
    """Over the seeds 1 and 2, which both have: 5 and 10 s more, 7.5 on average, of 40."""
    found = compare([*group_of({0: 10, 1: 20, 2: 60}, "a"), *group_of({2: 70, 1: 25, 3: 0}, "b")])
    one = found.differences.loc[("wait_mean_s", "b")]
    half = 12.7062047362 * 2.5  # Student's quantile of one degree of freedom, standard error 2.5
    assert ("pairs", 7.5, 7.5 / 40) == (one["by"], one["difference"], one["relative"])
    assert pytest.approx([7.5 - half, 7.5 + half]) == one[["low", "high"]].tolist()


def test_groups_of_other_seeds_are_not_paired() -> None:
    """With at most one seed in common the difference of means has Welch's interval."""
    from scipy.stats import ttest_ind

    a, b = [10, 20, 60], [70, 25, 40, 30]
    found = compare(
        [*group_of(dict(enumerate(a)), "a"), *group_of(dict(enumerate(b, start=2)), "b")]
    )
    one = found.differences.loc[("wait_mean_s", "b")]
    expected = ttest_ind(b, a, equal_var=False).confidence_interval()
    assert ("groups", 41.25 - 30) == (one["by"], one["difference"])
    assert pytest.approx([expected.low, expected.high]) == one[["low", "high"]].tolist()


def test_single_run_against_seeds() -> None:
    """Against a single run the means differ, without an interval."""
    found = compare([*group_of({0: 10}, "a"), *group_of({0: 20, 1: 40}, "b")])
    one = found.differences.loc[("wait_mean_s", "b")]
    assert ("", 20, True) == (one["by"], one["difference"], np.isnan(one["low"]))


def test_other_work_is_not_paired() -> None:
    """Runs of different users are compared in their metrics; that users are not paired is said."""
    found = compare([waits(10, 20, label="a"), waits(10, 20, 30, label="b")])
    assert [True, False] == found.paired
    assert 5 == found.differences.loc[("wait_mean_s", "b"), "difference"]
    assert found.users.empty
    assert ["b uses generated users, a uses generated users: users are not paired."] == found.notes
    with pytest.raises(HpcrowdError, match="b: not the same work as a"):
        found.per_user("wait_mean_s")


def test_other_traces_are_distinguished(make_trace: Callable[..., Trace]) -> None:
    """Two traces replayed alike have the name of the trace in their labels, and no pairs."""
    runs = []
    for name, submit in (("one.swf", 0), ("two.swf", 5)):
        trace = make_trace({"submit": submit, "run": 9, "requested_processors": 1, "user": 1})
        trace.source = name
        runs.append(replay(trace, users="rigid", processors="4"))
    found = compare(runs)
    assert ["rigid, easy, processors 4 (one.swf)", "rigid, easy, processors 4 (two.swf)"] == [
        group.label for group in found.groups
    ]
    assert "one.swf" in found.notes[0]
    assert "users are not paired" in found.notes[0]


def test_made_up_work_has_the_record_of_its_trace(make_trace: Callable[..., Trace]) -> None:
    """Jobs that users made up have no record; that of another run of the same trace replaces it."""
    trace = make_trace(
        *({"submit": 3600 * n, "run": 60, "requested_processors": 1, "user": 1} for n in range(48))
    )
    plain, other = (replay(trace, users="rigid", processors="4", seed=seed) for seed in (0, 1))
    other.jobs.recorded_submit[:] = -1
    other.trace, other.configuration = None, {"users": "made up"}
    plain.stored = other.stored = {"trace": {"source": "a.swf", "sha256": "1"}, "versions": {}}
    found = compare([other, plain])
    assert [0, 0] == found.metrics.loc["week_distance", "mean"].tolist()
    assert "lateness_mean_s" not in found.users.index.get_level_values("metric")


@pytest.mark.parametrize("count", [0, 1])
def test_one_run_is_an_error(count: int) -> None:
    """There is nothing to compare a single run with."""
    with pytest.raises(HpcrowdError, match="give two or more"):
        compare([waits(10)] * count)


def test_users_have_not_every_metric() -> None:
    """A metric that users do not have is reported, with those that they have."""
    with pytest.raises(HpcrowdError, match=r"utilization.*wait_mean_s"):
        compare([waits(10), waits(10)]).per_user("utilization")


def test_runs_in_which_nothing_happened() -> None:
    """Empty and rejected runs are compared too; what cannot be said is null."""
    empty = Run(JobTable(), 4, "empty", {})
    found = compare([empty, made((1, 0, State.REJECTED)), waits(10)])
    text = json.dumps(found.to_json(), allow_nan=False)
    assert '"mean": null' in text
    assert found.differences.loc["wait_mean_s", "difference"].isna().all()


def test_json_holds_every_number() -> None:
    """The object has the metrics of each group, and differences of each later one to the first."""
    wire = compare([waits(10, 20, label="a"), waits(20, 60, label="b")]).to_json()
    names = [metric.name for metric in ALL_METRICS]
    assert [m.name for m in METRICS] == names[: len(METRICS)]
    assert [names, names] == [list(group["metrics"]) for group in wire["groups"]]
    assert ["b"] == [one["group"] for one in wire["differences"]]
    one = wire["differences"][0]
    assert (names, list(PER_USER)) == (list(one["metrics"]), list(one["users"]))
    assert (
        25 == one["metrics"]["wait_mean_s"]["difference"] == one["users"]["wait_mean_s"]["median"]
    )


lists = st.lists(st.integers(0, 10**6), min_size=1, max_size=12)


@given(lists, lists)
def test_comparing_is_symmetric(first: list[int], other: list[int]) -> None:
    """Comparing B with A mirrors comparing A with B: signs turn, better and worse change places."""
    size = min(len(first), len(other))
    a, b = waits(*first[:size], label="a"), waits(*other[:size], label="b")
    there, back = compare([a, b]), compare([b, a])
    assert _numbers(there.differences, "difference", 1) == _numbers(
        back.differences, "difference", -1
    )
    assert _numbers(there.users, "difference", 1) == _numbers(back.users, "difference", -1)
    assert _numbers(there.users, "median", 1) == _numbers(back.users, "median", -1)
    assert _numbers(there.users, "better", 1) == _numbers(back.users, "worse", 1)
    assert _numbers(there.users, "first", 1) == _numbers(back.users, "other", 1)
    for one, mirrored in (("low", "high"), ("high", "low")):
        expected = _numbers(there.users, one, 1)
        assert pytest.approx(expected, nan_ok=True) == _numbers(back.users, mirrored, -1)


def _numbers(frame: object, column: str, sign: int) -> list[float]:
    """Return a column as numbers that can be compared; what is missing counts as 10^18."""
    values = frame[column].astype(float)  # type: ignore[index]
    return (sign * values).fillna(1e18).tolist()


def test_bootstrap_is_as_wide_as_theory_says() -> None:
    """Of 400 normal differences the interval is 1.96 standard errors wide on each side."""
    values = np.random.default_rng(1).normal(10_000, 1000, 400).round().astype(int)
    a, b = waits(*[0] * 400, label="a"), waits(*values.tolist(), label="b")
    one = compare([a, b]).users.loc[("wait_mean_s", "b")]
    error = values.std(ddof=1) / 20
    assert pytest.approx(1.96 * error, rel=0.1) == (one["high"] - one["low"]) / 2
    assert pytest.approx(values.mean(), abs=0.3 * error) == (one["high"] + one["low"]) / 2


def test_same_seed_same_interval() -> None:
    """The bootstrap draws from its own stream: the same seed, the same interval."""
    pair = [waits(*range(30)), waits(*range(0, 60, 2))]
    first, again, other = (compare(pair, seed=seed).users for seed in (0, 0, 1))
    assert first.equals(again)
    assert not first.equals(other)


def test_written_runs_compare_alike(make_trace: Callable[..., Trace], tmp_path: Path) -> None:
    """Folders of results give the same comparison as the runs themselves."""
    trace = make_trace(
        *(
            {"submit": 600 * n, "wait": 0, "run": 900, "requested_processors": 1, "user": n % 2}
            for n in range(9)
        ),
        header="; MaxProcs: 1",
    )
    trace.sha256 = "0"
    runs = [replay(trace, users=users) for users in ("rigid", "adjusted")]
    for run in runs:
        write_results(run, tmp_path / run.label, plots=False)
    found: Comparison = compare([tmp_path / run.label for run in runs])
    assert compare(runs).to_json() == found.to_json()


@pytest.mark.traces
def test_kth(kth: Trace) -> None:
    """On KTH-SP2 fluid users keep the week that adjusted ones lose, and wait less."""
    found = compare([replay(kth, users=users) for users in ("adjusted", "fluid")])
    assert 214 == found.users.loc[("wait_mean_s", "fluid, easy"), "users"]
    difference = found.differences["difference"].unstack()["fluid, easy"]
    assert difference["wait_mean_s"] < 0
    assert difference["week_distance"] < -0.1
    means = [group.first.metrics["wait_mean_s"] for group in found.groups]
    assert means[1] - means[0] == difference["wait_mean_s"]
