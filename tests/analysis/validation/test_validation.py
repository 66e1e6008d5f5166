"""Models that have seen only the first part of a trace, on trace whose users are known."""

from dataclasses import replace

import numpy as np
import pytest
from hpcrowd import Clock, HpcrowdError, Recipe, Simulation, Work, add_users
from hpcrowd.agents.behaviours.when import BatchOrder, Reason, SessionGraph
from hpcrowd.agents.learned import heldout
from hpcrowd.analysis.validation import validation
from hpcrowd.analysis.validation.futures import MEASURES, questions, simulate_second
from hpcrowd.analysis.validation.models import BASELINES, POOLED, Parts, UserModel
from hpcrowd.analysis.validation.validation import FORECASTS, INSIDE, RANKED, Protocol
from hpcrowd.behaviours import PRESETS, Composed, Release
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import QuantityError
from hpcrowd.populations import Mixture, Part

#: One origin, all days after it, and few resamples: most tests do not look at intervals.
RULES = Protocol((0.5,), 10_000, 1, "recorded", 20, 30, 100)

#: Presets whose users submit what was recorded, and the pooled baseline.
REPLAYED = [*(name for name, recipe in PRESETS.items() if isinstance(recipe, Recipe)), POOLED]


def chain(make_jobs, pause, users=12, jobs=80):
    """Jobs of users who each wait for the job before and pause(random, end, run) s; none waits."""
    rows = []
    for user in range(1, users + 1):
        random = np.random.default_rng(user)
        at = int(random.integers(DAY))
        for _ in range(jobs):
            run = int(random.lognormal(8, 1)) + 1
            rows.append((at, run, 1, run, user))
            at += run + pause(random, at + run, run)
    return make_jobs(*sorted(rows))


def linear(random, end, run):
    """Half the response and ten minutes."""
    return run // 2 + 600


def whatever(random, end, run):
    """Says nothing about responses or hours; longer than what ends a session."""
    return int(random.lognormal(9, 1)) + 3700


def validate(jobs, *models, rules=RULES, **choices):
    """Validate models or presets, by default from one origin."""
    found = [UserModel.of(model) if isinstance(model, str) else model for model in models]
    return validation.validate(jobs, found, Clock(), rules, **choices)


def scores(found, measure):
    """The values of a measure by model."""
    each = {name: one[measure] for name, one in found.scores.items() if measure in one}
    return {name: one.statistics[RANKED[measure]].value for name, one in each.items()}


def test_linear_users_are_found_out(make_jobs):
    """Where think times are a line over responses, the line foresees them; else it is worse."""
    found = validate(chain(make_jobs, linear), "rigid", "adjusted", "linear")
    batch = scores(found, "next_batch")
    assert "linear" == min(batch, key=lambda name: batch[name])
    assert batch["linear"] < batch["similar"] < 0.05 < batch["adjusted"]
    judged = {name: each["next_batch"] for name, each in found.scores.items()}
    assert not any(judged[name].tied for name in ("rigid", "adjusted", POOLED))
    assert ["linear"] == [name for name, one in judged.items() if one.rank == 1]
    found = validate(chain(make_jobs, whatever), "adjusted", "linear")
    assert scores(found, "next_batch")["adjusted"] < scores(found, "next_batch")["linear"]
    assert not found.scores["linear"]["next_batch"].tied


@pytest.mark.parametrize("name", ["rigid", "think-time", "think-time-windows", "adjusted"])
def test_recorded_pauses_are_circular(make_jobs, name):
    """With recorded waits and pauses these models repeat the record: every distance is 0."""
    jobs = chain(make_jobs, whatever)
    found = validate(jobs, name, drawn=False)
    assert (True, 1.0) == (found.models[name].circular, found.volume[name])
    assert {0.0} == {scores(found, measure).get(name, 0.0) for measure in MEASURES}
    run = simulate_second(Parts.of(jobs, Clock()), found.models[name], drawn=False)
    assert run.recorded_submit.tolist() == run.submit.tolist()


@pytest.mark.parametrize("name", REPLAYED)
def test_the_parts_are_kept_apart(make_jobs, name):
    """No model changes the first part, begins the second too early, or looks at its pauses."""
    parts = Parts.of(chain(make_jobs, linear, users=4, jobs=30), Clock())
    jobs = parts.work.jobs.copy()
    simulation = Simulation(jobs, 4, "recorded")
    add_users(simulation, parts.work, parts.users(UserModel.of(name)))
    simulation.run()
    first = np.setdiff1d(np.arange(len(jobs)), parts.second_jobs)
    assert jobs.recorded_submit[first].tolist() == jobs.submit[first].tolist()
    assert jobs.submit[parts.second_jobs].min() >= parts.since
    runs = [100 + 200 * (number // 2 % 3) for number in range(40)]
    rows = [(10_000 * n + 3 * runs[n - 2], run, 1, 9, 1 + n % 2) for n, run in enumerate(runs)]
    # The last of each user comes much later, and is the only one whose pause is another.
    changed = [*rows[:-2], *((row[0] + 500_000, *row[1:]) for row in rows[-2:])]
    told = [
        simulate_second(Parts.of(make_jobs(*each), Clock()), UserModel.of(name)).submit.tolist()
        for each in (rows, changed)
    ]
    assert told[0] == told[1]


@pytest.mark.parametrize("name", ["shmueli-feitelson", "generative"])
def test_made_up_work_belongs_to_the_second_part(make_jobs, name):
    """Users who make up their work do so in the second part only, and are asked for no forecast."""
    jobs = chain(make_jobs, linear, users=4, jobs=30)
    found, parts = validate(jobs, name), Parts.of(jobs, Clock())
    assert set(MEASURES) == set(found.scores[name])
    run = simulate_second(parts, found.models[name])
    sent = run.submit[run.submit >= 0]
    assert parts.since <= sent.min()
    within = int((sent <= parts.until).sum())
    assert pytest.approx(within / len(parts.second_jobs)) == found.volume[name]


@pytest.mark.parametrize("when", [BatchOrder, SessionGraph, heldout.OpenOrder])
@pytest.mark.parametrize("seed", range(5))
def test_releases_of_the_record(make_jobs, when, seed):
    """They are those that the mechanism comes to when it lives through the record."""
    noted: list[Release] = []

    class Spy(Composed):
        """Notes every release."""

        def arrival(self, user, release):
            """Note it."""
            noted.append(release)
            return super().arrival(user, release)

    random = np.random.default_rng(seed)
    rows = sorted(
        (int(random.integers(60)) * 500, int(random.integers(1, 40)) * 250, 1, 1, int(user))
        for user in random.integers(1, 4, size=60)
    )
    work = Work.of(make_jobs(*rows))
    model = Simulation(work.jobs, 60, "recorded")
    add_users(model, work, lambda work: Spy(when(work)))
    model.run()
    releases = heldout.recorded_releases(when(work))
    seen = {release.unit: release for release in noted}
    assert {unit: releases.of(unit)._replace(awaited=-1) for unit in seen} == {
        unit: release._replace(awaited=-1) for unit, release in seen.items()
    }
    ended = [unit for unit, release in seen.items() if release.reason == Reason.ENDED]
    assert [seen[unit].awaited for unit in ended] == [releases.awaited[unit] for unit in ended]
    assert len(releases.at) == len(seen)


@pytest.mark.parametrize(
    ("prior", "expected"), [(0.0, [{1000}, {2000}]), (float("inf"), [{1000, 2000}] * 2)]
)
def test_pauses_are_drawn_from_the_first_part(make_jobs, prior, expected):
    """Users draw their own pauses, with an infinite prior everybody's; what is known stays."""
    # Two users with pauses of 1,000 and 2,000 s in the first part, and of 9,000 s after it.
    at = [np.cumsum([0, *[100 + pause] * 3, 9100]).tolist() for pause in (1000, 2000)]
    rows = [(one, 100, 1, 1, user) for user, each in enumerate(at, 1) for one in each]
    work = Work.of(make_jobs(*sorted(rows)))
    releases = heldout.recorded_releases(BatchOrder(work))
    users = add_users(Simulation(work.jobs, 2, "recorded"), work, "adjusted")
    pool = heldout.PausePool(releases, work.by_batch.user, releases.pause < 5000, prior)
    for user, unit, pauses in zip(users, work.by_batch.user_first[1:] - 1, expected, strict=True):
        known = releases.of(int(unit))
        drawn = [pool.draw(user, known) for _ in range(60)]
        assert pauses == {one.pause for one in drawn}
        assert 3 == pool.own(user.place, Reason.ENDED)
        one = drawn[0]
        assert (known.at, known.reason, known.awaited) == (one.at, one.reason, one.awaited)
        assert one.pause == releases.pause[one.unit]


@pytest.mark.parametrize("run", [100, 1000, 1900])
def test_similar_pauses_follow_similar_responses(make_jobs, run):
    """Of pauses that grow with the response, those after the nearest responses are drawn."""
    lengths = np.array([*range(10, 2010, 10), run, 1])
    at = np.cumsum([0, *(5000 + 11 * lengths[:-1])])
    rows = [(int(a), int(one), 1, int(one), 1) for a, one in zip(at, lengths, strict=True)]
    work = Work.of(make_jobs(*rows))
    units, releases = work.by_batch, heldout.recorded_releases(BatchOrder(work))
    known = np.arange(len(units)) < len(units) - 1
    pool = heldout.SimilarPauses(releases, units.user, known, units.response, share=0.1)
    (user,) = add_users(Simulation(work.jobs, 1, "recorded"), work, "adjusted")
    work.jobs.submit[:], work.jobs.end[:] = work.jobs.recorded_submit, work.jobs.recorded_end
    drawn = {pool.draw(user, releases.of(len(units) - 1)).pause for _ in range(400)}
    # A tenth of 200 pauses: ten responses on either side, fewer at the ends.
    assert 15 < len(drawn) <= 20
    assert {pause for pause in drawn if abs(pause - 5000 - 10 * run) > 2000} == set()
    assert 5000 + 10 * run in drawn


@pytest.mark.parametrize(("split", "words"), [
    *((split, "between 0 and 1") for split in (0.0, 1.0, -2.0, float("nan"))),
    (0.2, "no session begins in the first part.*larger"),
    (0.9, "no session begins in the second part.*smaller"),
])  # fmt: skip
def test_both_parts_must_hold_sessions(make_jobs, split, words):
    """A session is in the part in which it begins; a share that leaves a part empty is refused."""
    with pytest.raises(HpcrowdError, match=words):
        Parts.of(make_jobs((0, 1, 1), (0, 1, 1), (9000, 1, 1), (9001, 1, 1)), Clock(), split)
    parts = Parts.of(make_jobs((0, 1, 1), (1000, 1, 1), (1900, 1, 1), (9000, 1, 1)), Clock(), 0.25)
    assert (1000, [3]) == (parts.since, parts.second_jobs.tolist())
    assert [0, 1000, 1900] == parts.first.jobs.recorded_submit.tolist()


def test_newcomers_get_what_fits_all(make_jobs):
    """Users who are not in the first part are counted, and every preset can foresee them."""
    runs = [500 * n % 3500 for n in range(12)]
    rows = [(20_000 * n + 3 * runs[n - 1], run, 1, 1, u) for n, run in enumerate(runs)
            for u in (1, 2)]  # fmt: skip
    jobs = make_jobs(*sorted(rows + [(150_000 + 20_000 * n, 300, 1, 1, 3) for n in range(8)]))
    found = validate(jobs, *PRESETS)
    assert 1 == found.origins[0].counts["users_second_not_seen_in_first"]
    assert {*PRESETS, *BASELINES} == set(found.scores)
    assert 2 in questions(Parts.of(jobs, Clock()), 0, 30)["next_batch"].user.tolist()
    assert {*MEASURES, "next_session"} - set(INSIDE) == set(found.scores["think-time"])
    assert {*MEASURES, *FORECASTS} == set(found.scores[POOLED])


def test_same_seed_same_scores(make_jobs):
    """Everything random follows the seed; a mixture of presets is validated like one model."""
    mixed = UserModel(
        "mixed", Mixture([Part("fluid", 0.5), Part(Recipe("batches", "linear"), 0.5)])
    )
    jobs, rules = chain(make_jobs, linear, users=6, jobs=30), replace(RULES, seeds=2)
    found = [validate(jobs, "adjusted", mixed, rules=rules, seed=seed) for seed in (0, 0, 1)]
    values = [[scores(one, measure) for measure in MEASURES] for one in found]
    assert values[0] == values[1] != values[2]
    assert {"adjusted", "mixed", *BASELINES} == set(found[0].scores)
    parts = Parts.of(jobs, Clock())
    users = parts.users(found[0].models["mixed"])
    kinds = {type(part.behaviour(parts.work)) for part in users.parts}
    assert [] == [kind for kind in kinds if not issubclass(kind, heldout.HeldOut)]


def test_models_that_cannot_be_fitted_are_told(make_jobs):
    """What the first part cannot be fitted with is named, before anything runs."""
    rows = [(10_000 * number, 100, 1, 100, 1) for number in range(20)]
    steps: list[str] = []
    with pytest.raises(QuantityError, match=r"linear, fitted to the first part.*leave it out"):
        validate(make_jobs(*rows), "linear", progress=lambda *s: steps.append(s[0]))
    assert [] == steps
    rows = [(start + 1000 * user, 10, 1, 1, user) for start in (0, 90_000) for user in range(1, 9)]
    with pytest.raises(QuantityError, match=r"no user submitted twice"):
        validate(make_jobs(*rows), "adjusted")
