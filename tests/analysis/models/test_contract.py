"""What holds for every workload model: files, seeds, limits; tiny and degenerate traces."""

import sys
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hpcrowd import Streams, fit, generate, generate_swf, jobs_from_trace, parse_swf
from hpcrowd.analysis.models.jobs.comprehensive import BagSizes, Comprehensive
from hpcrowd.analysis.models.jobs.downey import Downey
from hpcrowd.analysis.models.jobs.feitelson import Feitelson1997
from hpcrowd.analysis.models.jobs.locality import JobClasses, Locality
from hpcrowd.analysis.models.jobs.lublin import TwoStage
from hpcrowd.analysis.models.jobs.mugm import Mixture
from hpcrowd.analysis.models.model import arrival_model, job_model
from hpcrowd.analysis.models.parts.base import Cycle, Poisson
from hpcrowd.analysis.models.parts.lublin import Lublin
from hpcrowd.analysis.models.parts.users import UserShares
from hpcrowd.analysis.models.parts.wavelet import WaveletZeros
from hpcrowd.environment.errors import HpcrowdError, ModelFitError, QuantityError
from hpcrowd.features import Workload
from hpcrowd.models import ARRIVALS, MODELS, published

from tests.analysis.features.feature_cases import bursty_workload, poisson_workload

#: Processors of the machine of the cases.
MACHINE = 64


def few(seed, **columns):
    """Return jobs at random, with some columns as given."""
    return poisson_workload(60, 300, seed, **{"machine": MACHINE} | columns)


#: Workloads to fit to, by what is special about them.
CASES: dict[str, Callable[[], Workload]] = {
    "bags": lambda: bursty_workload(300, 21),
    "random": lambda: poisson_workload(600, 300, 22, machine=MACHINE),
    "one job": lambda: Workload.of([5], [60], [2], user=1, machine=MACHINE),
    "two jobs": lambda: Workload.of([0, 1], [5, 900], [1, 2]),
    "three jobs": lambda: Workload.of([0, 50, 700], [60, 5, 9], [1, 2, 64], machine=MACHINE),
    "equal run times": lambda: few(23, run_time=60),
    "run times of 0": lambda: few(23, run_time=0),
    "run times of 0.5": lambda: few(23, run_time=0.5),
    "serial": lambda: few(24, processors=1),
    "serial and equal": lambda: few(24, processors=1, run_time=500),
    "whole machine": lambda: few(24, processors=MACHINE),
    "odd sizes": lambda: few(24, processors=MACHINE - 1),
    "one processor": lambda: few(24, processors=1, machine=1),
    "no machine": lambda: few(24, processors=3, machine=None),
    "larger than the machine": lambda: few(24, processors=100),
    "one second": lambda: Workload.of(np.zeros(60), np.arange(60), 2, user=1, machine=MACHINE),
    "no users": lambda: few(25, user=-1, wait=-1),
    "no requests": lambda: few(26, requested_time=-1),
    "one user": lambda: few(27, user=3, group=9),
    "users of one job": lambda: few(27, run_time=60, processors=4, user=np.arange(60)),
    "steady": lambda: Workload.of(np.arange(100) * 60, 30, 4, user=1, machine=MACHINE),
    "one bag": lambda: Workload.of(np.arange(60), 60, 2, user=np.arange(60) % 3 + 1),
    "no jobs": lambda: Workload.of([], [], machine=MACHINE),
}

#: Models whose papers give parameters.
PUBLISHED = ("feitelson96", "feitelson97", "lublin", "lublin-typeless", "downey")

models = pytest.mark.parametrize("name", MODELS)


def check(drawn, jobs, machine):
    """Fail unless generated jobs are sound."""
    assert jobs == len(drawn)
    assert (np.diff(drawn.submit) >= 0).all()
    for times in (drawn.submit, drawn.run_time):
        assert ((times >= 0) & np.isfinite(times)).all()
    for column in (drawn.processors, drawn.user, drawn.group):
        assert (column >= 1).all()
    assert (drawn.processors <= machine).all()
    assert (drawn.follows < np.arange(jobs)).all()
    for column in (drawn.processors, drawn.user, drawn.group, drawn.bag, drawn.follows):
        assert np.int64 == column.dtype


def check_trace(made, jobs, machine):
    """Fail unless a generated workload is sound, and its trace is read strictly."""
    check(made.drawn, jobs, machine)
    again = parse_swf(generate_swf(made.trace()))
    assert jobs == len(jobs_from_trace(again, strict=True).jobs)
    assert machine == again.processors


@pytest.fixture(scope="module")
def fitted():
    """Return a function that fits a model to jobs in bags, only once; arrivals are Poisson's."""
    return cache(lambda name: fit(name, CASES["bags"](), arrivals="poisson"))


#: Models with options beside the usual ones.
VARIANTS = [
    *((name, {}) for name in MODELS), ("feitelson97", {"repeats": "new"}),
    ("lublin", {"kinds": "one"}), ("comprehensive", {"bag_sizes": "heavy"}),
    ("comprehensive", {"interleave": True}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_any_jobs_give_a_model_or_a_reason(name, options, case):
    """A model that survives its file and draws sound jobs for any machine, or one line why not."""
    kind = job_model(name)
    if case == "no jobs" or (name, case) == ("mugm", "run times of 0"):
        with pytest.raises(ModelFitError, match=f"model {name}: .* jobs: "):
            kind.fit(CASES[case](), **options)
        return
    model = kind.fit(CASES[case](), **options)
    assert model == kind.model_validate(model.model_dump(mode="json"))
    for machine in (1, 4, MACHINE):
        check(model.draw(60, Poisson(mean_gap_s=70.0), machine, Streams(1)), 60, machine)


@models
def test_generated_workloads_meet_what_was_asked(name, fitted):
    """Load and days within a percent, or it is said; a sound trace on any machine."""
    model = fitted(name)
    made = generate(model, jobs=1500, load=0.7, seed=2)
    assert made.load == pytest.approx(0.7, rel=0.01) or any("load" in one for one in made.notes)
    check_trace(made, 1500, MACHINE)
    made = generate(model, days=3, seed=2)
    days = made.drawn.submit[-1] / 86400
    assert days <= 3
    assert days == pytest.approx(3, rel=0.01) or any("days" in one for one in made.notes)
    check_trace(generate(model, jobs=200, processors=8, seed=1), 200, 8)


@models
def test_seeds_decide(name, fitted):
    """The same seed, also 0, gives the same jobs; another one gives others."""
    made = [generate(fitted(name), jobs=300, seed=seed).drawn for seed in (0, 0, 1)]
    for column in ("submit", "run_time", "processors", "user"):
        assert getattr(made[0], column).tolist() == getattr(made[1], column).tolist()
    assert made[0].run_time.tolist() != made[2].run_time.tolist()


@models
def test_published_parameters_or_a_cure(name):
    """Where a paper gives parameters, they generate for any machine; else it says what to do."""
    if name not in PUBLISHED:
        with pytest.raises(QuantityError, match=f"hpcrowd fit {name} TRACE"):
            published(name, MACHINE)
        return
    for machine in (1, 2, 5, MACHINE, 4000):
        check_trace(generate(published(name, machine), jobs=300, seed=3), 300, machine)


@pytest.mark.parametrize(("name", "options", "words"), [
    ("feitelson96", {"repeats": "often"}, "repeats 'often': not known; choose same, new"),
    ("lublin", {"kinds": "soup"}, "kinds 'soup': not known; choose by-queue, one"),
    ("comprehensive", {"bag_sizes": "soup"}, "bag_sizes 'soup': choose zipf or heavy"),
    ("comprehensive", {"interleave": 3}, "interleave 3: must be yes or no"),
    ("mugm", {"groups": 0}, "groups 0: must be 1 or more"),
    ("mugm", {"clusters": 1.5}, "clusters 1.5: must be 1 or more"),
    ("mugm", {"least_variance": 0}, "least_variance 0: must be positive"),
    ("mugm", {"powers": "some"}, "powers 'some': choose met or paper"),
])  # fmt: skip
def test_options_that_make_no_sense(name, options, words):
    """Each is reported with its value."""
    with pytest.raises(QuantityError, match=words):
        job_model(name).fit(few(1), **options)


@pytest.mark.parametrize(("fit_model", "library"), [
    (job_model("mugm").fit, "kmedoids"), (job_model("mugm").fit, "sklearn.cluster"),
    (arrival_model("wavelet").fit, "pywt"),
])  # fmt: skip
def test_a_missing_library_is_one_line(fit_model, library, monkeypatch):
    """The cure is named."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(HpcrowdError, match=r'pip install "hpcrowd\[fits\]"'):
        fit_model(few(11))


def runs_in_turn(*lengths):
    """Return runs of jobs of 10 s and of 5,000 s, in turn."""
    long = np.repeat(np.arange(len(lengths)) % 2, lengths)
    return Workload.of(np.arange(len(long)) * 60, np.where(long, 5000, 10), machine=8)


#: Numbers of models as a file may have them.
FEITELSON = Feitelson1997.published(8).model_dump()
DOWNEY = Downey.published(8).model_dump()
LOCALITY = Locality.fit(runs_in_turn(3, 5, 3, 5)).model_dump()
BAGS = Comprehensive.fit(runs_in_turn(3, 5, 3, 5)).model_dump()
CLASSES = BAGS["classes"] | {"weights": (0.25, 0.75), "means_s": (5, 9), "sds_s": (1, 1)}
MIXTURE = {"weights": (1,), "means": ((0, 0),), "covariances": ((1, 0, 1),)}
SIZES = {"low": 1, "med_below_high": 2, "lower_probability": 0.8}
CURVE = {"aarr": 1, "barr": 1, "anum": 1, "bnum": 1}
ZEROS = {"time_scale_s": 900, "coarse": 4, "mean": 4, "sd": 1, "p": (5.0, 2.0)}


@pytest.mark.parametrize(("kind", "numbers", "words"), [
    (Feitelson1997, FEITELSON | {"means": (2.0, 1.0, 3.0)}, "must be rising"),
    (Feitelson1997, FEITELSON | {"shares_small": (0.5, 0.5)}, "2 shares for 3 means"),
    (Feitelson1997, FEITELSON | {"shares_large": (0.5, 0.5, 0.5)}, "add up to 1"),
    (TwoStage, SIZES | {"serial": 0.6, "power": 0.6}, "more than 1 together"),
    (Downey, DOWNEY | {"work_min": 5, "work_max": 4}, "work_min 5: must not be above work_max"),
    (Locality, LOCALITY | {"run_lengths": ((0, 3, 1),)}, "each of 2 classes"),
    (Locality, LOCALITY | {"run_lengths": ((0, 3, 0), (1, 1, 1))}, "count of 0"),
    (Locality, LOCALITY | {"run_lengths": ((0, 0, 1), (1, 1, 1))}, "at least 1 job"),
    (Locality, LOCALITY | {"next_classes": ((0, 1, 1), (1, 2, 1))}, "there are 2 classes"),
    (Locality, LOCALITY | {"least_s": (1.0,)}, "one of each is needed for 2"),
    (Locality, LOCALITY | {"most_s": (0.0, 0.0)}, "larger than most_s"),
    (JobClasses, CLASSES | {"weights": (0.5,)}, "1 weights, 2 means and 2 deviations"),
    (JobClasses, CLASSES | {"processors": ((0, 1, 3),)}, "each of 2 classes must have jobs"),
    (JobClasses, CLASSES | {"processors": ((0, 1, 3), (1, 0, 3))}, "jobs with processors"),
    (Comprehensive, BAGS | {"classes": CLASSES, "bags": {"single_of_class": (1.0,)}}, "for 2"),
    (BagSizes, {"zipf": 2.0, "single_of_class": (1.0,)}, "does not go with a largest bag of 1"),
    (BagSizes, {"single": 0.5, "single_of_class": (1.0,)}, "must be 1 without larger bags"),
    (Mixture, MIXTURE | {"covariances": ((1, 2, 1),)}, "covariance"),
    (Mixture, MIXTURE | {"weights": (0.5, 0.5)}, "weights|means"),
    (UserShares, {"weights": (1.0,), "groups": (1, 2)}, "groups"),
    (UserShares, {"weights": (1.0,), "groups": (0,)}, "groups"),
    (Lublin, CURVE | {"weights": (1.0,)}, "must be 48"),
    (Lublin, CURVE | {"aarr": 1e6}, "none is below the cap"),
    (Cycle, {"rates": (0.0,) * 168}, "at least one must be positive"),
    (Cycle, {"rates": (-1.0, *(1.0,) * 167)}, "at least one must be positive"),
    (WaveletZeros, ZEROS | {"zeros": (0.1,)}, "zeros: 1 scales"),
    (WaveletZeros, ZEROS | {"zeros": (0.9, 0.2)}, "add up to at most 1"),
    (WaveletZeros, ZEROS | {"zeros": (-0.1, 0.0)}, "add up to at most 1"),
])  # fmt: skip
def test_damaged_numbers_are_refused(kind, numbers, words):
    """Numbers that do not go together are no model; the rule is in the message."""
    with pytest.raises(ValueError, match=words):
        kind.model_validate(numbers)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ARRIVALS)
def test_arrivals_of_any_trace_or_a_reason(name, case):
    """Rising times from 0 on, as many as asked for; or one line that says what is wrong."""
    try:
        found = arrival_model(name).fit(CASES[case]())
    except ModelFitError:
        assert case not in ("bags", "random")
        return
    for count in (1, 700):
        times = found.times(count, np.random.default_rng(4))
        assert (count,) == times.shape
        assert (np.diff(times) >= 0).all()
        assert times[0] >= 0
        assert np.isfinite(times).all()
