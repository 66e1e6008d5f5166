"""The models of bags (Minh 2012, chapter 5), of locality and of groups of users (MUGM)."""

import numpy as np
import pytest
from hpcrowd import Streams, generate
from hpcrowd.analysis.features.bags import bags
from hpcrowd.analysis.features.jobs import is_power_of_two
from hpcrowd.analysis.features.locality import run_lengths
from hpcrowd.analysis.models.jobs.comprehensive import (
    BagSizes,
    Comprehensive,
    bag_places,
    user_bags,
)
from hpcrowd.analysis.models.jobs.locality import JobClasses, Locality, counted
from hpcrowd.analysis.models.jobs.mugm import Mixture, Mugm, UserGroup, nearest_power
from hpcrowd.analysis.models.jobs.placing import fill_runs
from hpcrowd.analysis.models.model import fit
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import QuantityError
from hpcrowd.features import Workload
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.features.feature_cases import bursty_workload, near


def two_classes(*processors):
    """Return classes of short and long jobs, which need what is given."""
    made = {"weights": (0.25, 0.75), "means_s": (5.0, 1000.0), "sds_s": (10.0, 50.0)}
    return JobClasses(**made, processors=processors)


def test_processors_are_drawn_by_class():
    """Each has its share of the jobs of the class: both steps of Algorithm 1 in one draw."""
    counts = ((0, 1, 64), (0, 2, 60), (0, 8, 3), (1, 1, 7), (1, 2, 1), (1, 64, 9))
    classes, of_class = two_classes(*counts), (127, 17)
    for label, processors, jobs in counts:
        drawn = classes.draw_processors(np.full(40_000, label), 64, np.random.default_rng(label))
        near(jobs / of_class[label], drawn == processors)


gaps = st.lists(st.integers(0, 250), min_size=1, max_size=100)


@given(gaps, st.sampled_from([0.0, 0.3, 1.0]), st.booleans(), st.integers(0, 99))
def test_bags_keep_sizes_and_gaps(gaps, leave, wait, seed):
    """No bag gets more jobs than its size, within the gap; of bags that wait none is cut."""
    arrivals = np.cumsum(gaps).astype(float)
    random = np.random.default_rng(seed)
    sizes = random.choice([1, 1, 3, 70], len(gaps))
    found = bag_places(arrivals, sizes, 100, random, leave=leave, wait=wait)
    become = np.bincount(found)
    assert len(gaps) == become.sum()
    assert (become >= 1).all()
    if not wait:
        assert (become <= sizes[np.unique(found, return_index=True)[1]]).all()
    elif leave == 0:
        assert {1, 3, 70} >= {*become.tolist()}
    assert (become == 70).sum() <= (sizes == 70).sum()
    order = np.argsort(found, kind="stable")
    same = np.diff(found[order]) == 0
    assert (np.diff(arrivals[order])[same] <= 100).all()


def test_what_classes_draw():
    """Whole seconds; mean of the class; where it reaches below 0, that of the part above."""
    random = np.random.default_rng(2)
    drawn = two_classes((0, 1, 1), (1, 1, 1)).draw_run_times(np.repeat([0, 1], 40_000), random)
    assert (drawn == np.floor(drawn)).all()
    assert 0 == drawn.min()
    short, long = drawn[:40_000], drawn[40_000:]
    assert pytest.approx(1000, abs=5 * 50 / 200) == long.mean()
    assert pytest.approx(50, rel=0.02) == long.std()
    # Mean of a normal distribution of 5 and 10 above -0.5: 5 + 10 f(0.55) / F(0.55).
    assert pytest.approx(5 + 10 * 0.342944 / 0.708840, abs=5 * 7 / 200) == short.mean()
    # What exceeds the machine is left out; a class of nothing else gets the whole machine.
    classes = two_classes((0, 1, 1), (0, 32, 99), (1, 64, 5))
    drawn = classes.draw_processors(np.array([0, 0, 1, 1]), 8, random)
    assert [1, 1, 8, 8] == drawn.tolist()
    assert "99 % of the jobs of the trace need more than 8 processors" in classes.notes_on(8)[0]
    assert [] == classes.notes_on(64)


@given(gaps, st.lists(st.integers(1, 5), min_size=100, max_size=100))
def test_bags_are_those_of_algorithm_1(gaps, sizes):
    """Compiled, bags are those of the loop as printed."""
    arrivals = np.cumsum(gaps).astype(float)
    places, jobs, bag, size = [0], 1, 0, sizes[0]
    for j in range(1, len(arrivals)):
        if arrivals[j] - arrivals[j - 1] <= 100 and jobs < size:
            jobs += 1
        else:
            jobs, bag, size = 1, bag + 1, sizes[j]
        places.append(bag)
    found = bag_places(arrivals, np.array(sizes), 100, np.random.default_rng(0))
    assert places == found.tolist()


def test_the_largest_bag_that_fits_is_next():
    """A bag of three waits for three jobs in time; bags left take turns, the oldest are closed."""
    arrivals, random = np.array([0.0, 500, 1000, 1001, 1002, 1003, 2000]), np.random.default_rng(0)
    found = bag_places(arrivals, np.array([3, 1, 2, 9, 9, 1, 1]), 100, random, wait=True)
    assert [0, 1, 2, 2, 2, 3, 4] == found.tolist()
    turns = bag_places(np.zeros(4), np.array([2, 2, 2, 9]), 100, random, leave=1.0)
    assert [0, 1, 0, 1] == turns.tolist()
    many = bag_places(np.zeros(3000), np.full(3000, 50), 100, random, leave=0.9)
    assert np.bincount(many).max() <= 50


def bag_sizes_of(size):
    """Return the fit to bags of one class of jobs."""
    return BagSizes.fit(size, np.repeat(size, size), np.zeros(size.sum(), int))


def test_heavier_sizes_have_mean_and_largest():
    """Single jobs, mean, largest and exponent are those of the bags; draws follow the shares."""
    size = np.random.default_rng(5).zipf(2.1, 5000)
    found = bag_sizes_of(size)
    assert pytest.approx(2.1, abs=0.07) == found.zipf
    assert size.max() == len(found.shares)
    assert pytest.approx(np.mean(size == 1)) == found.shares[0]
    assert pytest.approx(size.mean()) == found.shares @ np.arange(1, size.max() + 1)
    drawn = found.draw(40_000, "heavy", np.random.default_rng(6))
    below = np.searchsorted(np.sort(drawn), np.arange(1, size.max() + 1), side="right") / 40_000
    assert np.abs(below - np.cumsum(found.shares)).max() < 2 / 200  # five of its deviations
    for sizes in ([1, 1, 1], [3, 3, 3], [2], [5000], [1, 2]):  # Few bags: just these sizes.
        found = bag_sizes_of(np.array(sizes))
        assert {*sizes} == {*found.draw(800, "heavy", np.random.default_rng(6)).tolist()}
        assert found.draw(50, "zipf", np.random.default_rng(6)).max() <= 50


def test_single_jobs_and_bags():
    """a_k p_k and (1 - a_k) p_k, each over its sum (section 5.1.2); what is missing is all."""
    sizes = BagSizes(zipf=2.0, single=0.5, largest=9, single_of_class=(0.2, 0.6))
    single, real = sizes.classes(np.array([0.4, 0.6]))
    assert pytest.approx([0.08 / 0.44, 0.36 / 0.44]) == single
    assert pytest.approx([0.32 / 0.56, 0.24 / 0.56]) == real
    never = BagSizes(single_of_class=(1.0, 1.0))
    assert [[0.4, 0.6]] * 2 == [part.tolist() for part in never.classes(np.array([0.4, 0.6]))]
    # Jobs 1, 2 and 4 of one user are a bag of three, one of whose two steps is not a neighbour.
    workload = Workload.of([0, 10, 20, 30, 500], 60, user=[1, 1, 2, 1, 1])
    size, size_of_job, leave = user_bags(workload)
    assert ([3, 1, 1], [3, 3, 1, 3, 1], 0.5) == (size.tolist(), size_of_job.tolist(), leave)
    assert [2, 1, 1, 1] == bags(workload).size.tolist()


def assert_alike(model, bursts, *names):
    """Check that all jobs of a bag have one value in each column; and what small machines get."""
    drawn = model.jobs(bursts.submit, 64, Streams(1))
    assert np.bincount(drawn.bag).max() > 1
    assert [] == drawn.notes
    first = np.unique(drawn.bag, return_index=True)[1]
    for name in ("user", "group", "executable", *names):
        column = getattr(drawn, name)
        assert column[first][drawn.bag].tolist() == column.tolist(), name
    small = model.jobs(bursts.submit, 2, Streams(1))
    assert 2 == small.processors.max()
    assert "of the trace need more than 2 processors" in small.notes[0]


@pytest.mark.parametrize("options", [{}, {"bag_sizes": "heavy", "interleave": True}])
def test_jobs_of_a_bag_are_alike(options):
    """All jobs of a bag have one user, run time, number of processors and executable."""
    bursts = bursty_workload(600, 8)
    model = Comprehensive.fit(bursts, **options)
    assert_alike(model, bursts, "run_time", "processors")
    # Where jobs arrive an hour apart, every bag is a single job.
    assert list(range(99)) == model.jobs(3600.0 * np.arange(99), 64, Streams(1)).bag.tolist()
    # A load and a number of days are met.
    fitted = fit("comprehensive", bursts, arrivals="poisson", options=options)
    made = generate(fitted, days=40, load=0.6)
    assert (0.6, 40 * DAY) == pytest.approx((made.load, made.drawn.submit[-1]), rel=0.01)


def test_runs_are_as_long_as_in_the_table():
    """Each class has its own lengths, with their shares; which is next goes by the table."""
    lengths = counted([(0, 1, 3), (0, 4, 1), (1, 2, 7), (2, 1, 1)])
    follows = counted([(0, 1, 9), (0, 2, 1), (1, 0, 1), (2, 0, 1)])
    label, run = np.zeros((2, 30_000), np.int64)
    fill_runs(np.random.default_rng(1).random((3, 30_000)), lengths, follows, label, run)
    found = run_lengths(label)[:-1]
    of_run = label[np.cumsum(found) - 1]
    assert {0, 1, 2} == {*of_run.tolist()}
    assert ({2}, {1}) == ({*found[of_run == 1].tolist()}, {*found[of_run == 2].tolist()})
    short, after = found[of_run == 0], of_run[1:][of_run[:-1] == 0]
    assert {1, 4} == {*short.tolist()}
    assert pytest.approx(0.75, abs=5 * (0.1875 / len(short)) ** 0.5) == np.mean(short == 1)
    assert {0} == {*of_run[1:][of_run[:-1] > 0].tolist()}
    assert pytest.approx(0.9, abs=5 * (0.09 / len(after)) ** 0.5) == np.mean(after == 1)
    assert run_lengths(run).tolist() == run_lengths(label).tolist()


def test_two_kinds_of_jobs_come_back_in_runs():
    """Run times, their runs and their processors are those of the workload."""
    long = np.repeat(np.arange(8) % 2, [3, 5, 3, 1, 3, 5, 3, 5])
    times, sizes = np.where(long, 5000, 10), np.where(long, 4, 1)
    model = Locality.fit(Workload.of(np.arange(len(long)) * 60, times, sizes, user=1, machine=8))
    assert ((0, 3, 4), (1, 1, 1), (1, 5, 3)) == model.run_lengths
    assert ((0, 1, 4), (1, 0, 4)) == model.next_classes
    made = model.jobs(np.arange(3000) * 60.0, 8, Streams(0))
    assert {(10, 1), (5000, 4)} == {*zip(made.run_time, made.processors, strict=True)}
    assert {3, 1, 5} == {*run_lengths(made.run_time)[:-1].tolist()}
    # A run is a bag: user, group and executable are those of all its jobs.
    recorded = bursty_workload(400, 3)
    assert_alike(Locality.fit(recorded), recorded)


def two_kinds(jobs, seed):
    """Return short serial jobs of users 1 to 8, and long parallel ones of users 11 to 18."""
    random = np.random.default_rng(seed)
    large = random.random(jobs) < 0.3
    made = {
        "run_time": np.exp2(np.where(large, 14, 5) + random.normal(0, 0.5, jobs)),
        "processors": np.where(large, random.integers(12, 21, jobs), 1),
        "user": np.where(large, 10, 0) + random.integers(1, 9, jobs),
    }
    return Workload.of(np.sort(random.uniform(0, 1e6, jobs)), **made, machine=64)


def group(**changes):
    """Return a group of jobs around 16 processors and an hour."""
    mixture = Mixture(weights=(1.0,), means=((4.0, 12.0),), covariances=((0.5, 0.1, 1.0),))
    made = {"jobs": (3, 1), "area": 1.0, "mixture": mixture, "powers": 0.5, "powers_drawn": 0.2}
    return UserGroup(**(made | changes))


def model(*groups, **changes):
    """Return a model on 64 processors."""
    made = {"groups": groups, "run_time_medoids": (12.0,), "machine": 64, "longest_s": 1e5}
    return Mugm(**(made | changes))


def test_users_who_submit_alike_are_a_group():
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


def test_the_share_of_powers_of_two_is_met_or_overshoots():
    """(f - h) / (1 - h) meets f; the probability f of the paper gives h + (1 - h) f."""
    random = np.random.default_rng(4)
    _, sizes = group().mixture.draw(200_000, random, machine=64, longest_s=1e5)
    one = group(powers_drawn=float(is_power_of_two(sizes).mean()))
    before = one.powers_drawn
    assert 0 < before < one.powers
    for rule, expected in (("met", one.powers), ("paper", before + (1 - before) * one.powers)):
        _, drawn = model(one, powers_of_two=rule).draw_group(1, 100_000, random)
        # Two shares with chance errors: the one drawn, and the one measured before.
        error = 0.5 / np.sqrt(100_000)
        assert is_power_of_two(drawn).mean() == pytest.approx(expected, abs=6 * error)
    for powers, drawn in ((0.1, 0.4), (1.0, 1.0)):
        assert 0 == group(powers=powers, powers_drawn=drawn).rounded_share("met")
    sizes = np.array([1, 2, 3, 5, 11, 12, 90, 96, 100])
    assert [1, 2, 4, 4, 8, 16, 64, 64, 64] == nearest_power(sizes, 100).tolist()
    assert [1] == nearest_power(np.array([1]), 1).tolist()


def test_what_is_generated_is_like_the_trace():
    """Shares of groups and users, run times and powers of two come out, within chance."""
    workload = two_kinds(4000, 2)
    fitted = fit("mugm", workload, arrivals="poisson", options={"groups": 2})
    drawn, parts = generate(fitted, jobs=40_000, seed=3).drawn, fitted.jobs
    sizes, jobs = ([one.size for one in parts.groups], [one.jobs for one in parts.groups])
    for found, expected in ((drawn.group, sizes), (drawn.user, np.concatenate(jobs))):
        shares = np.bincount(found)[1:] / 40_000
        np.testing.assert_allclose(shares, np.array(expected) / 4000, atol=4 * 0.5 / 200)
    for number, one in enumerate(parts.groups, 1):
        mine = drawn.group == number
        assert {*parts.users[number - 1].tolist()} == {*drawn.user[mine].tolist()}
        assert is_power_of_two(drawn.processors[mine]).mean() == pytest.approx(one.powers, abs=0.02)
        log = np.log2(drawn.run_time[mine]).mean()
        assert log == pytest.approx({1: 14, 2: 5}[number], abs=0.1)


def test_a_group_is_drawn_alone():
    """Run times and processors of one group, the same for the same stream; others are refused."""
    found = model(group(), group(jobs=(2,)))
    first, second = (found.draw_group(2, 50, np.random.default_rng(5)) for _ in range(2))
    assert ([50, 50], True) == ([len(one) for one in first], np.array_equal(first, second))
    assert found.draw_group(1, 2000, np.random.default_rng(5), machine=10)[1].max() <= 10
    assert (0,) == found.draw_group(1, 0, np.random.default_rng(5))[0].shape
    for wrong in (0, 3):
        with pytest.raises(QuantityError, match=f"group {wrong}: choose 1 to 2"):
            found.draw_group(wrong, 1, np.random.default_rng(5))


def test_what_counts_is_reported():
    """Jobs with a run time of 0 and without a user are listed, and too few groups."""
    found = Mugm.fit(Workload.of(range(4), [0, 5, 9, 7], user=[1, -1, 2, 3]), groups=3)
    assert 3 == sum(one.size for one in found.groups)
    assert "1 jobs with a run time of 0 left out" in found.notes
    assert "1 jobs without a user: count as one user's" in found.notes
    found = Mugm.fit(Workload.of(range(5), np.arange(1, 6) * 10.0, 2, user=1, machine=8))
    assert ("1 groups of users instead of 4: too few differ",) == found.notes
    assert found.draw_group(1, 100, np.random.default_rng(9))[0].max() <= 50
