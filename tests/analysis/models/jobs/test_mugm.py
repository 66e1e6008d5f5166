"""MUGM as a model: what it generates, what it keeps of users, and traces that are hardly any."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.analysis.features import Workload
from hpcrowd.analysis.features.sizes import is_power_of_two
from hpcrowd.analysis.models import generate, read_model, write_model
from hpcrowd.analysis.models.jobs.mugm import Mixture, Mugm, UserGroup, nearest_power
from hpcrowd.analysis.models.model import fit
from hpcrowd.environment import Streams
from hpcrowd.environment.errors import ModelFitError, QuantityError
from hpcrowd.environment.traces.trace import Trace
from pydantic import ValidationError

from tests.analysis.features.feature_cases import poisson_workload


def two_kinds(jobs: int, seed: int, **columns: object) -> Workload:
    """Return short serial jobs of users 1 to 8, and long parallel ones of users 11 to 18."""
    random = np.random.default_rng(seed)
    large = random.random(jobs) < 0.3
    made = {
        "run_time": np.exp2(np.where(large, 14, 5) + random.normal(0, 0.5, jobs)),
        "processors": np.where(large, random.integers(12, 21, jobs), 1),
        "user": np.where(large, 10, 0) + random.integers(1, 9, jobs),
        "machine": 64,
    } | columns
    return Workload.of(np.sort(random.uniform(0, 1e6, jobs)), **made)


def group(**changes: object) -> UserGroup:
    """Return a group of jobs around 16 processors and an hour."""
    mixture = Mixture(weights=(1.0,), means=((4.0, 12.0),), covariances=((0.5, 0.1, 1.0),))
    made = {"jobs": (3, 1), "area": 1.0, "mixture": mixture, "powers": 0.5, "powers_drawn": 0.2}
    return UserGroup(**(made | changes))


def model(*groups: UserGroup, **changes: object) -> Mugm:
    """Return a model on 64 processors."""
    made = {"groups": groups, "run_time_medoids": (12.0,), "machine": 64, "longest_s": 1e5}
    return Mugm(**(made | changes))


def test_users_who_submit_alike_are_a_group() -> None:
    """Two kinds of users are two groups, the one with more area first, with their jobs."""
    workload = two_kinds(4000, 1)
    found = Mugm.fit(workload, groups=2, clusters=2)
    large = workload.user > 10
    area = workload.run_time * workload.processors
    assert [int(large.sum()), int((~large).sum())] == [one.size for one in found.groups]
    assert [8, 8] == [len(one.jobs) for one in found.groups]
    assert found.groups[0].area == pytest.approx(area[large].sum() / area.sum())
    assert found.groups[0].powers == is_power_of_two(workload.processors[large]).mean()
    np.testing.assert_allclose(found.run_time_medoids, [5, 14], atol=0.1)
    assert [list(range(1, 9)), list(range(9, 17))] == [one.tolist() for one in found.users]


def test_what_is_generated_is_like_the_trace() -> None:
    """Shares of groups and users, run times and powers of two come out, within chance."""
    workload = two_kinds(4000, 2)
    fitted = fit("mugm", workload, arrivals="poisson", options={"groups": 2})
    drawn = generate(fitted, jobs=40_000, seed=3).drawn
    parts = fitted.jobs
    assert isinstance(parts, Mugm)
    shares = np.bincount(drawn.group)[1:] / 40_000
    expected = np.array([one.size for one in parts.groups]) / 4000
    np.testing.assert_allclose(shares, expected, atol=4 * 0.5 / np.sqrt(40_000))
    counts = np.concatenate([one.jobs for one in parts.groups])
    np.testing.assert_allclose(
        np.bincount(drawn.user)[1:] / 40_000, counts / 4000, atol=4 * 0.5 / np.sqrt(40_000)
    )
    for number, one in enumerate(parts.groups, 1):
        mine = drawn.group == number
        assert {*parts.users[number - 1].tolist()} == {*drawn.user[mine].tolist()}
        assert is_power_of_two(drawn.processors[mine]).mean() == pytest.approx(one.powers, abs=0.02)
    logs = np.log2(drawn.run_time)
    assert logs[drawn.group == 1].mean() == pytest.approx(14, abs=0.1)
    assert logs[drawn.group == 2].mean() == pytest.approx(5, abs=0.1)
    assert (drawn.run_time >= 1).all()
    assert drawn.run_time.max() <= np.ceil(workload.run_time.max())


def test_the_share_of_powers_of_two_is_met_or_overshoots() -> None:
    """(f - h) / (1 - h) meets f; the probability f of the paper gives h + (1 - h) f."""
    base = group()
    random = np.random.default_rng(4)
    _, sizes = base.mixture.draw(200_000, random, machine=64, longest_s=1e5)
    one = group(powers_drawn=float(is_power_of_two(sizes).mean()))
    before = one.powers_drawn
    assert 0 < before < one.powers
    for rule, expected in (("met", one.powers), ("paper", before + (1 - before) * one.powers)):
        _, drawn = model(one, powers_of_two=rule).draw_group(1, 100_000, random)
        # Two shares with chance errors: the one drawn, and the one measured before.
        assert is_power_of_two(drawn).mean() == pytest.approx(
            expected, abs=6 * 0.5 / np.sqrt(100_000)
        )
    assert 0 == group(powers=0.1, powers_drawn=0.4).rounded_share("met")
    assert 0 == group(powers=1.0, powers_drawn=1.0).rounded_share("met")


def test_powers_of_two_are_the_nearest_in_log2_within_the_machine() -> None:
    """3 goes to 4, 11 to 8, 12 to 16; 96 of a machine of 100 goes to 64."""
    sizes = np.array([1, 2, 3, 5, 11, 12, 90, 96, 100])
    assert [1, 2, 4, 4, 8, 16, 64, 64, 64] == nearest_power(sizes, 100).tolist()
    assert [1] == nearest_power(np.array([1]), 1).tolist()
    assert [True, True, False, True, False] == is_power_of_two(np.array([1, 2, 3, 64, 96])).tolist()


def test_a_group_is_drawn_alone() -> None:
    """Run times and processors of one group, the same for the same stream; others are refused."""
    found = model(group(), group(mixture=group().mixture.model_copy(update={"weights": (1.0,)})))
    first, second = (found.draw_group(2, 50, np.random.default_rng(5)) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert (50,) == one.shape
        assert one.tolist() == other.tolist()
    _, processors = found.draw_group(1, 2000, np.random.default_rng(5), machine=10)
    assert processors.max() <= 10
    assert (0,) == found.draw_group(1, 0, np.random.default_rng(5))[0].shape
    for wrong in (0, 3):
        with pytest.raises(QuantityError, match=f"group {wrong}: choose 1 to 2"):
            found.draw_group(wrong, 1, np.random.default_rng(5))


def test_a_smaller_machine_bounds_every_job() -> None:
    """Jobs that the machine cannot hold are drawn again, or moved to its size."""
    fitted = fit("mugm", two_kinds(500, 6), arrivals="poisson", options={"groups": 2})
    for machine in (1, 3, 17):
        drawn = generate(fitted, jobs=1000, processors=machine).drawn
        assert (1, machine) >= (drawn.processors.min(), drawn.processors.max())
        assert 1 <= drawn.processors.min() <= drawn.processors.max() <= machine


def test_a_file_keeps_it_and_a_seed_repeats_it(tmp_path: Path) -> None:
    """Written and read it generates the same; fitted again it is the same."""
    workload = two_kinds(600, 7)
    fitted = fit("mugm", workload, arrivals="poisson")
    write_model(fitted, tmp_path / "m.json")
    again = read_model(tmp_path / "m.json")
    assert fitted == again == fit("mugm", workload, arrivals="poisson")
    first, second = (generate(one, jobs=300, seed=0).drawn for one in (fitted, again))
    assert first.run_time.tolist() == second.run_time.tolist()
    assert first.user.tolist() == second.user.tolist()


@pytest.mark.parametrize(
    "columns",
    [
        {"run_time": 60.0},
        {"processors": 1},
        {"user": -1},
        {"user": 5},
        {"run_time": 60.0, "processors": 4, "user": np.arange(200)},
        {"run_time": 0.5},
        {"processors": 100, "machine": 64},
        {"machine": None},
    ],
)
def test_hardly_different_jobs_are_a_model_too(columns: dict[str, object]) -> None:
    """Equal run times, all serial, no users, all alike: fitted, and generated without a word."""
    fitted = fit("mugm", two_kinds(200, 8, **columns), arrivals="poisson")
    drawn = generate(fitted, jobs=100).drawn
    assert (drawn.user >= 1).all()
    assert (drawn.group >= 1).all()
    assert (drawn.run_time >= 1).all()
    assert (drawn.processors <= fitted.machine).all()


@pytest.mark.parametrize("jobs", [1, 2, 3, 5])
def test_a_few_jobs_are_a_model(jobs: int) -> None:
    """As many groups as users at most, which a note tells."""
    workload = Workload.of(np.arange(jobs), np.arange(1, jobs + 1) * 10.0, 2, user=1, machine=8)
    found = Mugm.fit(workload)
    assert 1 == len(found.groups)
    assert ("1 groups of users instead of 4: too few differ",) == found.notes
    run_time, _ = found.draw_group(1, 100, np.random.default_rng(9))
    assert run_time.max() <= 10 * jobs


def test_what_counts_is_reported() -> None:
    """Jobs with a run time of 0 and without a user are listed; none with a run time is an error."""
    run_time = np.array([0, 5, 9, 7.0])
    user = [1, -1, 2, 3]
    found = Mugm.fit(Workload.of(range(4), run_time, user=user), groups=3)
    assert 3 == sum(one.size for one in found.groups)
    assert "1 jobs with a run time of 0 left out" in found.notes
    assert "1 jobs without a user: count as one user's" in found.notes
    with pytest.raises(ModelFitError, match="model mugm: 4 jobs: none has a run time above 0"):
        Mugm.fit(Workload.of(range(4), 0.0))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"groups": 0}, "groups 0: must be 1 or more"),
        ({"clusters": 1.5}, "clusters 1.5: must be 1 or more"),
        ({"least_variance": 0}, "least_variance 0: must be positive"),
        ({"powers": "some"}, "powers 'some': choose met or paper"),
    ],
)
def test_options_that_make_no_sense(option: dict[str, object], message: str) -> None:
    """Each is reported with its value."""
    with pytest.raises(QuantityError, match=message):
        Mugm.fit(two_kinds(20, 10), **option)


@pytest.mark.parametrize("library", ["kmedoids", "sklearn.cluster"])
def test_a_missing_library_is_one_line(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cure is named."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ModelFitError, match=r'pip install "hpcrowd\[fits\]"') as caught:
        Mugm.fit(two_kinds(100, 11))
    assert "\n" not in str(caught.value)


def test_files_that_make_no_sense_are_refused() -> None:
    """Mixtures with too large a covariance, or as many means as they like."""
    for wrong in (
        {"weights": (1.0,), "means": ((0, 0),), "covariances": ((1.0, 2.0, 1.0),)},
        {"weights": (0.5, 0.5), "means": ((0, 0),), "covariances": ((1.0, 0.0, 1.0),)},
        {"weights": (), "means": (), "covariances": ()},
    ):
        with pytest.raises(ValidationError):
            Mixture(**wrong)


@pytest.mark.slow
@pytest.mark.traces
def test_kth_is_met(kth: Trace) -> None:
    """Distances of distributions stay below those of the paper, 0.05 and 0.07, and 0.05."""
    workload = Workload.from_trace(kth, "all")
    made = Mugm.fit(workload).jobs(np.arange(len(workload)) * 1.0, 100, Streams(0))
    for ours, theirs in (
        (made.run_time, workload.run_time),
        (made.processors, workload.processors),
    ):
        assert distance(ours, theirs) <= 0.05


def distance(first: np.ndarray, second: np.ndarray) -> float:
    """Return the largest distance of two distribution functions."""
    at = np.union1d(first, second)
    shares = [np.searchsorted(np.sort(one), at, side="right") / len(one) for one in (first, second)]
    return float(np.abs(shares[0] - shares[1]).max())


def test_random_jobs_are_fitted_without_a_warning() -> None:
    """Jobs without any structure give a model like any others."""
    found = Mugm.fit(poisson_workload(2000, 300, 1))
    assert 4 == len(found.groups)
