"""The models of bags (Minh 2012, chapter 5) and of locality: classes, bags, runs, and draws."""

import math

import numpy as np
import pytest
from hpcrowd import Streams, fit, generate
from hpcrowd.analysis.features.bags import bags
from hpcrowd.analysis.features.locality import run_lengths
from hpcrowd.analysis.models.jobs.classes import JobClasses
from hpcrowd.analysis.models.jobs.comprehensive import (
    BagSizes,
    Comprehensive,
    bag_places,
    user_bags,
)
from hpcrowd.analysis.models.jobs.locality import Locality, Table, runs_of
from hpcrowd.environment.clock import DAY
from hpcrowd.features import Workload
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.features.feature_cases import bursty_workload


def two_classes(*processors):
    """Return classes of short and long jobs, which need what is given."""
    return JobClasses(
        weights=(0.25, 0.75), means_s=(5.0, 1000.0), sds_s=(10.0, 50.0), processors=processors
    )


#: Class of run time, processors, and how many jobs there are of both.
Rows = tuple[tuple[int, int, int], ...]


def parallelism(counts):
    """Return the class of parallelism of each number of processors (section 5.1.3)."""
    jobs = {p: sum(n for _, other, n in counts if other == p) for _, p, _ in counts}
    return {p: math.floor(math.log2(n) + 0.5) + 1 for p, n in jobs.items()}


def conditional(counts):
    """Return Pr(c, l) of Algorithm 1, shape (classes from 1 on, classes of run time)."""
    label = parallelism(counts)
    table = np.zeros((max(label.values()), 1 + max(k for k, _, _ in counts)))
    for k, p, n in counts:
        table[label[p] - 1, k] += n
    return table / table.sum(axis=0)


def test_one_draw_of_processors_stands_for_two():
    """Pr(c, l) times the share in the multiset of both labels is the share of what is drawn."""
    assert {4: 9, 10: 9, 7: 1} == parallelism(((0, 4, 200), (1, 4, 50), (1, 10, 300), (0, 7, 1)))
    counts = ((0, 1, 64), (0, 2, 60), (0, 8, 3), (1, 1, 7), (1, 2, 1), (1, 64, 9))
    classes = two_classes(*counts)
    kinds, size = parallelism(counts), 40_000
    for label, processors, jobs in counts:
        c = kinds[processors]
        same = [n for k, p, n in counts if k == label and kinds[p] == c]
        in_two_steps = conditional(counts)[c - 1, label] * jobs / sum(same)
        of_label = sum(n for k, _, n in counts if k == label)
        assert pytest.approx(jobs / of_label) == in_two_steps
        drawn = classes.draw_processors(np.full(size, label), 64, np.random.default_rng(label))
        error = (in_two_steps * (1 - in_two_steps) / size) ** 0.5
        assert pytest.approx(in_two_steps, abs=5 * error) == np.mean(drawn == processors)


@given(
    st.lists(st.integers(0, 250), min_size=1, max_size=200),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.booleans(),
    st.integers(0, 99),
)
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


def test_run_times_are_normal_and_not_negative():
    """Whole seconds; mean of the class; where it reaches below 0, that of the part above."""
    classes = two_classes((0, 1, 1), (1, 1, 1))
    drawn = classes.draw_run_times(np.repeat([0, 1], 40_000), np.random.default_rng(2))
    assert (drawn == np.floor(drawn)).all()
    assert 0 == drawn.min()
    short, long = drawn[:40_000], drawn[40_000:]
    assert pytest.approx(1000, abs=5 * 50 / 200) == long.mean()
    assert pytest.approx(50, rel=0.02) == long.std()
    # Mean of a normal distribution of 5 and 10 above -0.5: 5 + 10 f(0.55) / F(0.55).
    assert pytest.approx(5 + 10 * 0.342944 / 0.708840, abs=5 * 7 / 200) == short.mean()


@given(
    st.lists(st.integers(0, 250), min_size=1, max_size=40),
    st.lists(st.integers(1, 5), min_size=40, max_size=40),
)
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
    """A bag of three waits for three jobs that come in time, and then comes before a smaller one.

    Where not even a waiting one fits, a single job begins. Bags that are left take turns; of
    thousands the oldest are closed.
    """
    arrivals = np.array([0.0, 500, 1000, 1001, 1002, 1003, 2000])
    sizes = np.array([3, 1, 2, 9, 9, 1, 1])
    random = np.random.default_rng(0)
    found = bag_places(arrivals, sizes, 100, random, wait=True)
    assert [0, 1, 2, 2, 2, 3, 4] == found.tolist()
    cut = bag_places(arrivals, sizes, 100, random)
    assert [0, 1, 2, 2, 3, 3, 4] == cut.tolist()
    sizes = np.array([2, 2, 2, 9])
    assert [0, 1, 0, 1] == bag_places(np.zeros(4), sizes, 100, random, leave=1.0).tolist()
    assert [0, 0, 1, 1] == bag_places(np.zeros(4), sizes, 100, random).tolist()
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


def test_single_jobs_and_bags_have_their_own_run_times():
    """a_k p_k and (1 - a_k) p_k, each over its sum (section 5.1.2); what is missing is all."""
    sizes = BagSizes(zipf=2.0, single=0.5, largest=9, single_of_class=(0.2, 0.6))
    single, real = sizes.classes(np.array([0.4, 0.6]))
    assert pytest.approx([0.08 / 0.44, 0.36 / 0.44]) == single
    assert pytest.approx([0.32 / 0.56, 0.24 / 0.56]) == real
    never = BagSizes(single_of_class=(1.0, 1.0))
    assert [[0.4, 0.6]] * 2 == [part.tolist() for part in never.classes(np.array([0.4, 0.6]))]


def test_bags_of_users_skip_what_others_submit():
    """Jobs 1, 2 and 4 of one user are a bag of three, one of whose two steps is not a neighbour."""
    workload = Workload.of([0, 10, 20, 30, 500], 60, user=[1, 1, 2, 1, 1])
    size, size_of_job, leave = user_bags(workload)
    assert ([3, 1, 1], [3, 3, 1, 3, 1], 0.5) == (size.tolist(), size_of_job.tolist(), leave)
    assert [2, 1, 1, 1] == bags(workload).size.tolist()


def test_small_machines_get_what_fits():
    """What exceeds the machine is left out; a class of nothing else gets the whole machine."""
    classes = two_classes((0, 1, 1), (0, 32, 99), (1, 64, 5))
    drawn = classes.draw_processors(np.array([0, 0, 1, 1]), 8, np.random.default_rng(1))
    assert [1, 1, 8, 8] == drawn.tolist()
    assert "99 % of the jobs of the trace need more than 8 processors" in classes.notes_on(8)[0]
    assert [] == classes.notes_on(64)


@pytest.mark.parametrize("options", [{}, {"bag_sizes": "heavy", "interleave": True}])
def test_jobs_of_a_bag_are_alike(options):
    """All jobs of a bag have one user, run time, number of processors and executable."""
    bursts = bursty_workload(600, 8)
    model = Comprehensive.fit(bursts, **options)
    drawn = model.jobs(bursts.submit, 64, Streams(1))
    assert np.bincount(drawn.bag).max() > 1
    first = np.unique(drawn.bag, return_index=True)[1]
    for name in ("user", "group", "executable", "run_time", "processors"):
        column = getattr(drawn, name)
        assert column[first][drawn.bag].tolist() == column.tolist(), name
    assert [] == drawn.notes
    small = model.jobs(bursts.submit, 4, Streams(1))
    assert "of the trace need more than 4 processors" in small.notes[0]
    # Where jobs arrive an hour apart, every bag is a single job.
    assert list(range(99)) == model.jobs(3600.0 * np.arange(99), 64, Streams(1)).bag.tolist()
    # A load and a number of days are met.
    fitted = fit("comprehensive", bursts, arrivals="poisson", options=options)
    made = generate(fitted, days=40, load=0.6)
    assert pytest.approx(0.6, rel=0.01) == made.load
    assert pytest.approx(40 * DAY, rel=0.01) == made.drawn.submit[-1]


def test_runs_are_as_long_as_in_the_table():
    """Each class has its own lengths, with their shares; which is next goes by the table."""
    lengths = Table.of([(0, 1, 3), (0, 4, 1), (1, 2, 7), (2, 1, 1)])
    follows = Table.of([(0, 1, 9), (0, 2, 1), (1, 0, 1), (2, 0, 1)])
    label, run = runs_of(30_000, lengths, follows, np.random.default_rng(1))
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
    columns = {"user": 1, "machine": 8}
    recorded = Workload.of(
        np.arange(len(long)) * 60, np.where(long, 5000, 10), np.where(long, 4, 1), **columns
    )
    model = Locality.fit(recorded)
    assert ((0, 3, 4), (1, 1, 1), (1, 5, 3)) == model.run_lengths
    assert ((0, 1, 4), (1, 0, 4)) == model.next_classes
    made = model.jobs(np.arange(3000) * 60.0, 8, Streams(0))
    assert {(10, 1), (5000, 4)} == {*zip(made.run_time, made.processors, strict=True)}
    assert {3, 1, 5} == {*run_lengths(made.run_time)[:-1].tolist()}


def test_jobs_of_a_run_have_one_user():
    """A run is a bag: user, group and executable are those of all its jobs."""
    recorded = bursty_workload(400, 3)
    drawn = Locality.fit(recorded).jobs(recorded.submit, 64, Streams(1))
    first = np.unique(drawn.bag, return_index=True)[1]
    for name in ("user", "group", "executable"):
        column = getattr(drawn, name)
        assert column[first][drawn.bag].tolist() == column.tolist(), name
        assert column.min() >= 1
    small = Locality.fit(recorded).jobs(recorded.submit, 2, Streams(1))
    assert 2 == small.processors.max()
    assert "need more than 2 processors" in small.notes[0]
