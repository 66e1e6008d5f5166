"""Fitted patience: what users know, what they draw, changed minds, and the file."""

import json

import numpy as np
import pytest
from hpcrowd.agents.patience.model import BANDS, LEVELS, FittedPatience, at_bins, bin_of
from hpcrowd.agents.patience.replaced import replacements
from hpcrowd.agents.patience.submissions import (
    AROUND,
    BINS,
    COVARIATES,
    EDGES,
    PRIOR,
    PRIOR_THEN,
    RATE,
    SOON,
    Submissions,
)
from hpcrowd.environment.errors import ModelFileError
from hpcrowd.environment.stops import FOREVER

#: Levels of covariates that nothing depends on.
NO_CUTS = np.zeros((len(COVARIATES), LEVELS - 1))

#: Nobody changes their mind.
NEVER = np.zeros(len(BANDS))


def submissions(jobs=1, **columns):
    """Jobs of one user, each waiting still when the next is submitted, unless given otherwise."""
    usual = {
        "user": 1, "processors": 4, "requested_time": 3600, "queue": 1, "submit": np.arange(jobs),
        "wait": 10**6, "gave_up": False,
    }  # fmt: skip
    return Submissions.of(
        **{name: np.broadcast_to(columns.get(name, one), jobs) for name, one in usual.items()}
    )


def flat(hazard):
    """Patience that gives up the same share in all bins."""
    level = np.full(BINS, np.log(-np.log1p(-hazard)))
    return FittedPatience(NO_CUTS, level, np.zeros((len(COVARIATES), BINS, LEVELS)), NEVER)


def test_a_user_knows_only_what_has_happened():
    """A job counts from the second after it left; one that waits still does not."""
    found = submissions(
        4, submit=[0, 50, 51, 52], wait=[50, -1, -1, -1], gave_up=[True, False, False, False]
    )
    rates = np.exp(found.covariates)
    seen = RATE * np.log1p(50 / SOON)
    everybody = (1 + PRIOR) / (seen + PRIOR)
    own = (1 + PRIOR * everybody) / (seen + PRIOR)
    assert rates[:2] == pytest.approx(1)
    assert rates[2:, 0] == pytest.approx(own)
    then, place = rates[2, 2 : 2 + BINS], bin_of(np.array([50]))[0]
    assert (then[place - AROUND : place + AROUND + 1] > own).all()  # it gave up at about that wait
    assert (then[: place - AROUND] < own).all()  # and not before
    assert then[place + AROUND + 1 :] == pytest.approx(own)  # nothing is known of longer waits


def test_new_users_are_like_everybody():
    """The first job of a user has the rate of the others until then."""
    found = submissions(2, user=[1, 2], submit=[0, 100], wait=[50, 0], gave_up=[True, False])
    everybody = (1 + PRIOR) / (RATE * np.log1p(50 / SOON) + PRIOR)
    assert np.exp(found.covariates[1]) == pytest.approx(everybody)


def test_patience_is_that_of_its_time():
    """A user who waited for an hour in vain before is not known to give up sooner."""
    found = submissions(3, submit=[0, 5000, 5001], wait=[4000, -1, -1], gave_up=[True, 0, 0])
    soon, late = (at_bins(found.take([2]), bin_of(np.array([at])))[0, 2] for at in (10, 4000))
    own = found.covariates[2, 0]
    seen = RATE * np.log1p(EDGES[bin_of(np.array([10]))[0] + 1 + AROUND] / SOON)
    once = PRIOR_THEN / (seen + PRIOR_THEN)  # of all its jobs, then of its latest
    assert np.exp(soon) == pytest.approx(once**2 * np.exp(own))
    assert soon < own < late


def test_habits_are_those_of_late():
    """Who always leaves after ten minutes does so again then; the latest 20 jobs weigh more."""
    waits = np.concatenate([np.full(20, 600), np.full(20, 4000)])
    habits = {}
    for name, order in (("then", waits[::-1]), ("before", waits)):
        columns = {"submit": np.arange(41) * 5000, "wait": [*order, -1]}
        found = submissions(41, **columns, gave_up=[*(order == 600), False])
        soon, then, late = bin_of(np.array([60, 600, 4000]))
        own_then = found.covariates[-1, 2 : 2 + BINS]
        habits[name] = own_then[then]
        assert own_then[then] > own_then[[soon, late]].max()
    assert habits["then"] > habits["before"] + np.log(2)


def test_later_jobs_change_nothing():
    """What is known at a submission is the same if the log goes on."""
    generator, jobs = np.random.default_rng(1), 200
    columns = {
        "user": generator.integers(0, 5, jobs), "processors": generator.integers(1, 9, jobs),
        "submit": np.sort(generator.integers(0, 10**5, jobs)),
        "wait": generator.integers(0, 10**4, jobs), "gave_up": generator.random(jobs) < 0.3,
    }  # fmt: skip
    whole = submissions(jobs, **columns)
    half = submissions(100, **{name: column[:100] for name, column in columns.items()})
    assert whole.covariates[:100] == pytest.approx(half.covariates)


def test_draws_have_the_hazard():
    """In each bin the expected share of those that wait is given up; late users never give up."""
    found, generator = submissions(20_000), np.random.default_rng(0)
    waits = flat(0.05).draw(found, generator)
    assert waits.min() >= 1
    for place in range(10):
        waiting = waits > EDGES[place]
        share = (waits[waiting] <= EDGES[place + 1]).mean()
        assert share == pytest.approx(0.05, abs=4 * np.sqrt(0.05 / waiting.sum()))
    assert (waits == FOREVER).mean() == pytest.approx(0.95**BINS, abs=0.005)


def test_patience_lasts_longer_than_is_known():
    """Conditional draws are later than the wait that was seen, and have its hazard from there."""
    after = np.full(20_000, 50)  # half of the bin from 40 to 60 s
    waits = flat(0.2).draw(submissions(20_000), np.random.default_rng(0), after)
    assert waits.min() == 51
    assert (waits <= 60).mean() == pytest.approx(1 - 0.8**0.5, abs=0.01)
    late = np.full(20_000, EDGES[-1])
    assert (flat(0.2).draw(submissions(20_000), np.random.default_rng(0), late) == FOREVER).all()


def test_each_covariate_has_its_table():
    """The level of what is known picks the column, the bin the row."""
    cuts, tables = NO_CUTS.copy(), np.zeros((len(COVARIATES), BINS, LEVELS))
    cuts[0] = np.linspace(0.5, 1, LEVELS - 1)
    tables[0, 3, -1], tables[0, 3, 0] = 2.0, -1.0
    model, found = FittedPatience(cuts, np.zeros(BINS), tables, NEVER), submissions(3)
    found.covariates[:, 0] = [1.5, 0.0, 1.5]
    hazards = model.hazards(found, np.array([3, 3, 4]))
    assert hazards == pytest.approx(np.exp([2.0, -1.0, 0.0]))


def test_files(tmp_path):
    """A file brings back the same model; a damaged one is refused in one line."""
    path = tmp_path / "patience.json"
    generator = np.random.default_rng(0)
    model = FittedPatience(
        np.sort(generator.normal(size=(len(COVARIATES), LEVELS - 1))),
        generator.normal(size=BINS) - 4,
        generator.normal(size=(len(COVARIATES), BINS, LEVELS)),
        np.linspace(0, 1, len(BANDS)),
        {"logs": []},
    )
    model.save(path)
    found, jobs = FittedPatience.load(path), submissions(50)
    draws = [each.draw(jobs, np.random.default_rng(0)) for each in (model, found)]
    assert draws[0].tolist() == draws[1].tolist()
    assert np.linspace(0, 1, len(BANDS)).tolist() == found.changed.tolist()
    wire = json.loads(path.read_text())
    for change in ({"level": [0.0]}, {"covariates": ["other"]}, {"cuts": ["x"]}):
        path.write_text(json.dumps(wire | change))
        with pytest.raises(ModelFileError, match=r"patience\.json: damaged; fit it again"):
            FittedPatience.load(path)


def test_a_changed_mind_submits_another():
    """The first job like it, shortly after it left, takes the place of one that left."""
    columns = {
        "user": [1, 1, 1, 1, 1, 2], "processors": [4, 4, 8, 4, 2, 4],
        "executable": [7, -1, -1, -1, 7, 7], "requested_time": [100, 300, 900, 200, 500, 100],
        "submit": [0, 10, 1000, 1090, 1100, 1000], "wait": [1000, 1020, 5, 5, 5, 5],
        "gave_up": [True, True, False, False, False, False],
    }  # fmt: skip
    assert replacements(**columns).tolist() == [3, -1, -1, -1, -1, -1]  # taken by the other
    columns["processors"][0] = 3
    assert replacements(**columns).tolist() == [4, 3, -1, -1, -1, -1]  # the same executable
    assert replacements(**columns, within=60).tolist() == [-1, 3, -1, -1, -1, -1]
