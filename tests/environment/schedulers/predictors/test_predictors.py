"""Predictors of run times: compiled equals plain, stories, names, files, and training."""

import json
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd.analysis.prediction import Search, evaluate, parameters_of, past_jobs, space, train
from hpcrowd.environment.errors import ModelFileError, PredictorError, QuantityError
from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.schedulers.estimates import ENDED, Events, Predictor
from hpcrowd.environment.schedulers.predictors.experience import LastTwo, Nearest
from hpcrowd.environment.schedulers.predictors.history import (
    Group,
    HistoryParameters,
    HistoryPredictor,
)
from hpcrowd.environment.schedulers.predictors.models import (
    parse_predictor,
    read_predictor,
    write_predictor,
)
from hpcrowd.predictors import parse_estimates
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.schedulers.predictors.plain_predictors import (
    PlainHistory,
    PlainLastTwo,
    PlainNearest,
)

few = settings(max_examples=25)

#: How each predictor is made from its settings in plain Python.
PLAIN: dict[type, Callable[[Any], Predictor]] = {
    LastTwo: PlainLastTwo,
    Nearest: PlainNearest,
    HistoryPredictor: PlainHistory,
}

groups = st.builds(
    Group,
    n=st.integers(1, 12),
    k=st.integers(1, 4),
    alpha=st.sampled_from([0.0, 0.5, 1.0]),
    beta=st.sampled_from([0.5, 0.9, 1.0]),
)
histories = st.sampled_from(["submission", "completion", "category"])
orders = st.sampled_from(["submission", "completion"])
bounds = st.sampled_from(["table", "seen"])
history_predictors = st.builds(
    HistoryPredictor,
    st.builds(
        HistoryParameters,
        template=st.sampled_from(["....", "u...", ".g..", "ug.j", "ugqj"]),
        pivot_s=st.integers(0, 100),
        small=groups,
        big=groups,
    ),
    history=histories,
    bounds=bounds,
)
nearest_predictors = st.builds(
    Nearest,
    n=st.integers(1, 12),
    k=st.integers(1, 4),
    weights=st.lists(st.sampled_from([0.0, 0.5, 2.0]), min_size=6, max_size=6).map(
        lambda weights: [*weights, 1.0]
    ),
    bandwidth=st.sampled_from([0.0, 0.01, 0.5]),
    cap=st.booleans(),
    history=orders,
    bounds=bounds,
)
last_two_predictors = st.builds(LastTwo, jobs=st.integers(1, 3), cap=st.booleans(), history=orders)
predictors = st.one_of(history_predictors, nearest_predictors, last_two_predictors)


@st.composite
def recorded(draw):
    """Return jobs with few different attributes, and when they arrive and end."""
    size = draw(st.integers(0, 40))
    few = st.lists(st.integers(-1, 2), min_size=size, max_size=size)
    jobs = JobTable(size)
    for column in (jobs.user, jobs.group, jobs.queue, jobs.executable):
        column[:] = draw(few)
    some = st.lists(st.integers(1, 100), min_size=size, max_size=size)
    jobs.processors[:], jobs.requested_memory[:] = draw(few), draw(few)
    jobs.requested_time[:] = draw(some)
    jobs.submit[:] = np.cumsum(draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)))
    jobs.start[:] = jobs.submit + np.maximum(draw(few), 0)
    run = np.array(draw(st.lists(st.integers(0, 60), min_size=size, max_size=size)), np.int64)
    return jobs, Events.of(jobs.submit, jobs.start + run)


def in_one_go(predictor, jobs, events):
    """Return the predictions along the events."""
    predictor.begin(jobs)
    return predictor.follow(events).tolist()


def one_by_one(predictor, jobs, events):
    """Return the same through the methods that a simulation calls."""
    predictor.begin(jobs)
    return Predictor.follow(predictor, events).tolist()


@few
@given(recorded(), predictors)
def test_compiled_equals_plain(work, predictor):
    """The compiled predictor says what the readable one says, second for second.

    It says the same when a simulation drives it and along a recorded trace.
    """
    expected = one_by_one(PLAIN[type(predictor)](predictor), *work)
    assert expected == in_one_go(predictor, *work)
    assert expected == one_by_one(predictor, *work)


@few
@given(recorded(), predictors)
def test_what_will_be_is_not_looked_at(work, predictor):
    """Run times and ends in the table change nothing: what counts is when its end is known."""
    jobs, events = work
    other = jobs.copy()
    other.run_time[:] = other.end[:] = other.recorded_end[:] = 123_456
    assert in_one_go(predictor, jobs, events) == in_one_go(predictor, other, events)


def with_new_jobs(predictor, jobs, events):
    """Return the predictions if each job is appended to the table when it arrives."""
    table, found = JobTable(), np.full(len(jobs), -1, np.int64)
    predictor.begin(table)
    for batch in events.batches():
        rows, now = events.row[batch], int(events.time[batch.start])
        if events.kind[batch.start] == ENDED:
            predictor.ended(rows, now)
            continue
        for row in rows:
            new = table.append(1)
            table.matrix[:, new] = jobs.matrix[:, [row]]
        predictor.arrived(rows, now)
        found[rows] = predictor.predict(rows, now)
    return found.tolist()


@few
@given(recorded(), history_predictors, st.sampled_from([1, 3, 256]))
def test_tables_may_grow(work, predictor, room):
    """Jobs that are appended later are predicted as if they had been there from the beginning."""
    predictor = HistoryPredictor(predictor.parameters, history=predictor.history, bounds="seen")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hpcrowd.environment.schedulers.predictors.experience.FIRST_ROOM", room)
        assert in_one_go(predictor, *work) == with_new_jobs(predictor, *work)


#: (submit, run, processors, requested, user)
USERS = [
    (0, 10, 1, 100, 1), (20, 30, 1, 100, 1),
    (60, 500, 1, 900, 1),  # has not ended when the next ones arrive
    (70, 5, 1, 7, 1), (70, 5, 1, 100, 2),
]  # fmt: skip
#: A long job that ends last was submitted first.
LONG = [(0, 90, 1, 99, 1), (1, 10, 1, 99, 1), (2, 20, 1, 99, 1), (100, 1, 1, 99, 1)]
SIZES = [(0, 10, 1, 100), (0, 50, 8, 100), (90, 1, 8, 100)]
#: Mean of 10 and 30 plus its sample deviation (14.14); small jobs have half the request.
DEVIATION = HistoryParameters("u...", 50, Group(10, 2, 1.0, 0.5), Group(10, 2, 1.0, 1.0))


@pytest.mark.parametrize(
    ("predictor", "jobs", "expected"),
    [
        (LastTwo(), USERS, [100, 10, 20, 20, 100]),
        (LastTwo(cap=True), USERS, [100, 10, 20, 7, 100]),
        (LastTwo(), LONG, [99, 99, 99, 15]),
        (LastTwo(history="completion"), LONG, [99, 99, 99, 55]),
        (HistoryPredictor(DEVIATION),
         [(0, 10, 1, 99), (10, 30, 1, 99), (50, 1, 1, 99), (60, 1, 1, 30)], [99, 10, 34, 15]),
        # With a narrow kernel the job that asks for the same counts alone, with a wide one both do.
        (Nearest(k=2, bandwidth=0.01), SIZES, [100, 100, 50]),
        (Nearest(k=2, bandwidth=1000.0), SIZES, [100, 100, 30]),
    ],
    ids=str,
)  # fmt: skip
def test_stories(make_jobs, predictor, jobs, expected):
    """The request at first, then what ended before of the same or similar jobs says."""
    table = make_jobs(*jobs)
    table.start[:] = table.submit[:] = table.recorded_submit
    events = Events.of(table.recorded_submit, table.recorded_end)
    assert expected == in_one_go(predictor, table, events)


def test_example_of_the_thesis():
    """Far back J6 finds J1, which has ended; J5 finds J2 there, and J4 nearby (section 8.3.3)."""
    columns = np.array(
        [  # user, group, executable, processors, requested, memory, submit, run
            (1, 1, 1, 10, 500, 10, 1, 450),
            (2, 2, 2, 4, 110, 2, 3, 100),
            (1, 1, 1, 11, 520, 10, 480, 500),
            (2, 2, 2, 5, 50, 3, 490, 40),
            (2, 2, 2, 4, 90, 2, 550, 30),
            (1, 1, 1, 11, 500, 12, 560, 480),
        ]
    ).T
    jobs = JobTable(6)
    jobs.user[:], jobs.group[:], jobs.executable[:], jobs.processors[:] = columns[:4]
    jobs.requested_time[:], jobs.requested_memory[:] = columns[4:6]
    jobs.start[:] = jobs.submit[:] = columns[6]
    found = {}
    for n in (2, 3, 5):
        group = Group(n=n, k=1, alpha=0.0, beta=2.0)
        predictor = HistoryPredictor(HistoryParameters("ugqj", 1000, group, group))
        found[n] = in_one_go(predictor, jobs, Events.of(columns[6], columns[6] + columns[7]))
    assert (40, 450) == (found[3][5], found[5][5])
    assert (40, 100) == (found[2][4], found[5][4])
    published = HistoryParameters.published("SDSC04")  # of Table 8.3
    assert Group(6268, 8, 0.976, 0.958) == published.small
    assert ("ug.j", 40931) == (published.template, published.pivot_s)


@pytest.mark.parametrize("predictor", [LastTwo(), Nearest(), PlainLastTwo(LastTwo())])
def test_asked_too_early(predictor, make_jobs):
    """Before it has begun, or about a job that has not arrived, a predictor says so."""
    with pytest.raises(PredictorError, match=r"used before it has begun; call begin\(jobs\)"):
        predictor.predict(np.array([0]), 0)
    predictor = LastTwo() if isinstance(predictor, PlainLastTwo) else predictor
    predictor.begin(make_jobs((0, 1, 1), (5, 1, 1)))
    predictor.arrived(np.array([0]), 0)
    with pytest.raises(PredictorError, match="job 2 has not arrived"):
        predictor.predict(np.array([0, 1]), 0)


def test_jobs_that_come_again_keep_their_place(make_jobs):
    """A requeued job is known once, by its first end; the end of a job that never came is none."""
    jobs = make_jobs((0, 10, 1, 99), (1, 20, 1, 99), (2, 1, 1, 99))
    jobs.start[:] = 0
    predictor = LastTwo(history="completion")
    predictor.begin(jobs)
    for now, row in ((10, 0), (20, 0)):
        predictor.arrived(np.array([row]), 0)
        predictor.ended(np.array([row]), now)
    predictor.ended(np.array([1]), 50)
    predictor.arrived(np.array([2]), 60)
    assert [10] == predictor.predict(np.array([2]), 60).tolist()


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: LastTwo(jobs=0), "jobs 0: not a whole number of at least 1"),
    (lambda: LastTwo(history="category"), "history 'category': not known; choose submission"),
    (lambda: Nearest(weights=(1, 2)), "2 of them; give 7"),
    (lambda: Nearest(weights=(0,) * 7), "all are 0"),
    (lambda: Nearest(bandwidth=-1), "bandwidth -1: not a number of at least 0"),
    (lambda: Nearest(bounds="none"), "bounds 'none': not known; choose table, seen"),
    (lambda: HistoryParameters("ux", 1, Group(1, 1, 0, 1), Group(1, 1, 0, 1)), "'ux': not"),
    (lambda: Group(n=1, k=2.5, alpha=0, beta=1), "k 2.5: not a whole number"),
    (lambda: Group(n=1, k=2, alpha=float("nan"), beta=1), "alpha nan: not a number"),
    (lambda: HistoryPredictor().begin(JobTable()), "used before it was trained; name "),
    (lambda: parse_estimates("history"), "used before it was trained; name "),
    (lambda: Events.of(np.array([0, 4]), np.array([0, 3])),
     "row 1: ends at 3 s, before its submission at 4 s"),
    *((lambda text=text: parse_predictor(text), told) for text, told in (
        ("last-three", "choose last-two, nearest, history, or a file"),
        ("nearest:m=3", "'m' is not an option of it; write nearest:option=value with n, k"),
        ("nearest:weights=3", "weights takes a Sequence, which a text cannot say"),
        ("nearest:k=many", "k must be a whole number, got 'many'"),
        ("last-two:cap=1", "cap must be yes or no, got '1'"),
        ("history:KTH", "parameters 'KTH': not published; .*SDSC02, SDSC04, HPC2N04, HPC2N05"),
        ("history:SDSC04,HPC2N04", "'HPC2N04' is not an option of it; .* or SDSC02, SDSC04"),
        ("history:history=", "history '': not known; choose submission, completion, category"),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("make", "told"), WRONG)
def test_what_cannot_be_is_told(make, told):
    """Wrong values are named with their rule, and what there is instead."""
    with pytest.raises((QuantityError, PredictorError), match=told):
        make()


MODELS = [
    LastTwo(cap=True, history="completion"),
    Nearest(n=7, k=3, weights=(0, 1, 2, 3, 4, 5, 6), bandwidth=0.25, bounds="seen"),
    HistoryPredictor(HistoryParameters.published("HPC2N04"), history="category"),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_written_models_are_read_back(model, tmp_path):
    """A file gives the predictor back with all its settings, and keeps where they come from."""
    path = tmp_path / "model.json"
    write_predictor(model, path, {"trace": "made"})
    again = parse_predictor(str(path))
    assert (type(model), model.to_json()) == (type(again), again.to_json())
    assert {"trace": "made"} == json.loads(path.read_text())["provenance"]
    assert [path] == list(tmp_path.iterdir())


HEAD = '{"format": "hpcrowd predictor", '


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot be read"),
        ("{", "damaged, not JSON"),
        ("[]", "not a model of a predictor"),
        (HEAD + '"version": 2}', "version 2, but this hpcrowd reads only up to 1"),
        (HEAD + '"version": 1}', "not a complete model"),
        (HEAD + '"version": 1, "model": "nearest", "settings": {"k": 0}}', "k 0: not a whole"),
    ],
)
def test_files_that_cannot_be_used(content, told, tmp_path):
    """A missing, damaged or newer file is reported in one line that names it."""
    path = tmp_path / "model.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ModelFileError, match=told) as caught:
        read_predictor(path)
    assert str(path) in str(caught.value)


def test_places_that_cannot_be_written_are_reported(tmp_path):
    """Nothing is left when a file cannot be written."""
    with pytest.raises(ModelFileError, match="cannot be written"):
        write_predictor(LastTwo(), tmp_path / "absent" / "model.json")
    assert [] == list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def past(make_trace):
    """Return 200 jobs whose run time follows from their executable, of users who do not matter."""
    random = np.random.default_rng(0)
    jobs = [
        {"submit": 1_000 * number, "wait": 0, "run": 100 * executable, "requested_processors": 1,
         "requested_time": 900, "status": 1, "user": user, "executable": executable}
        for number, (executable, user) in enumerate(
            zip(random.integers(1, 6, 200), random.integers(1, 4, 200), strict=True)
        )
    ]  # fmt: skip
    return past_jobs(make_trace(*jobs))


def test_what_matters_is_found(past):
    """The best template has the executable, which decides the run time, but not the user."""
    found = train(past, evaluations=150, seeds=2)
    assert "j" in found.parameters.template
    users = HistoryParameters("u...", 500.0, Group(100, 5, 0.0, 1.0), Group(100, 5, 0.0, 1.0))
    assert found.fitness > evaluate(past, HistoryPredictor(users)).fitness
    assert found.fitness == evaluate(past, HistoryPredictor(found.parameters)).fitness


def test_same_seeds_find_the_same(past):
    """With a budget of evaluations one worker and two find the same; the best of all seeds."""
    one = train(past, evaluations=40, seeds=2, workers=1)
    two = train(past, evaluations=40, seeds=2, workers=2)
    assert (one.parameters, one.each) == (two.parameters, two.each)
    assert 80 == one.evaluations
    other = train(past, evaluations=40, seeds=3, seed=4)
    assert {4, 5, 6} == set(other.each)
    assert max(other.each.values()) == other.fitness == other.each[other.seed]
    assert set(one.each.values()) != set(other.each.values())


def test_a_budget_of_time_is_kept(past):
    """The search ends when its time is up, and reports its progress meanwhile."""
    told: list[tuple[str, int, int]] = []
    found = train(past, budget_s=1.0, seeds=2, progress=lambda *news: told.append(news))
    assert found.evaluations > 1
    assert {1} == {total for _, _, total in told}


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_what_goes_wrong_is_passed_on(past, monkeypatch, error):
    """Ctrl-C, and mistakes in a thread, end all searches, and none continues behind."""

    def fail(*arguments):
        raise error

    before = threading.active_count()
    if error is ZeroDivisionError:
        monkeypatch.setattr(Search, "try_out", fail)
    with pytest.raises(error):
        train(past, budget_s=600, seeds=3, progress=fail)
    assert before == threading.active_count()


def test_individuals_are_read_in_the_order_of_the_thesis():
    """(x1, x2, x3, x4, Pivot, N1, K1, alpha1, beta1, N2, K2, alpha2, beta2), section 8.3.3."""
    bounds, whole = space()
    assert (13, 13) == (len(bounds), len(whole))
    individual = np.array([1, 0, 0, 1, 0.5, 200, 3, 0.1, 0.9, 300, 4, 0.2, 0.8])
    expected = HistoryParameters("u..j", 60.0, Group(200, 3, 0.1, 0.9), Group(300, 4, 0.2, 0.8))
    assert expected == parameters_of(individual, 20, 100)


WRONG_BUDGETS: list[tuple[dict[str, Any], str]] = [
    ({"budget_s": 0.0}, "budget 0.0: must be more than 0"), ({"budget_s": None}, "no budget"),
    ({"evaluations": 0}, "evaluations 0"), ({"seeds": 0}, "seeds 0"),
    ({"history": "whole"}, "history 'whole': not known"),
]  # fmt: skip


@pytest.mark.parametrize(("choice", "told"), WRONG_BUDGETS)
def test_wrong_budgets_are_reported(past, choice, told):
    """A search that could not begin or end is refused with the value."""
    with pytest.raises(QuantityError, match=told):
        train(past, **choice)
    with pytest.raises(QuantityError, match="no job to train with"):
        train(past.first(0))
