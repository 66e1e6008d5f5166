"""Predictors by name and in files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hpcrowd.environment.errors import ModelFileError, QuantityError
from hpcrowd.environment.schedulers.predictors.history import HistoryParameters, HistoryPredictor
from hpcrowd.environment.schedulers.predictors.last_two import LastTwo
from hpcrowd.environment.schedulers.predictors.models import (
    parse_predictor,
    read_predictor,
    write_predictor,
)
from hpcrowd.environment.schedulers.predictors.nearest import Nearest

MODELS = [
    LastTwo(cap=True, history="completion"),
    Nearest(n=7, k=3, weights=(0, 1, 2, 3, 4, 5, 6), bandwidth=0.25, bounds="seen"),
    HistoryPredictor(HistoryParameters.published("HPC2N04"), history="category"),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_written_models_are_read_back(model: LastTwo, tmp_path: Path) -> None:
    """A file gives the predictor back with all its settings, and keeps where they come from."""
    path = tmp_path / "model.json"
    write_predictor(model, path, {"trace": "made"})
    again = parse_predictor(str(path))
    assert (type(model), model.to_json()) == (type(again), again.to_json())
    assert {"trace": "made"} == json.loads(path.read_text())["provenance"]
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("last-two", {"jobs": 2, "cap": False, "history": "submission"}),
        ("last-two:cap=yes,jobs=3", {"jobs": 3, "cap": True}),
        ("nearest:n=10,k=2,bandwidth=0.5", {"n": 10, "k": 2, "bandwidth": 0.5}),
        ("history:SDSC04,history=category", {"history": "category", "bounds": "table"}),
    ],
)
def test_texts_make_predictors(text: str, settings: dict[str, object]) -> None:
    """What is not given has its default."""
    found = parse_predictor(text).to_json()
    assert settings == {key: found[key] for key in settings}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("last-three", "choose last-two, nearest, history, or a file"),
        ("nearest:m=3", "'m' is not an option of it; write nearest:option=value with n, k, bandw"),
        ("nearest:weights=3", "'weights' is not an option of it"),
        ("nearest:k=many", "k must be a whole number, got 'many'"),
        ("last-two:cap=1", "cap must be yes or no, got '1'"),
        ("history:KTH", "parameters 'KTH': not published; .*SDSC02, SDSC04, HPC2N04, HPC2N05"),
        ("history:SDSC04,HPC2N04", "'HPC2N04' is not an option of it; .* or SDSC02, SDSC04"),
        ("history:history=", "history '': not known; choose submission, completion, category"),
    ],
)
def test_wrong_texts_are_reported(text: str, told: str) -> None:
    """The message names the word and what there is instead."""
    with pytest.raises(QuantityError, match=told):
        parse_predictor(text)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot be read"),
        ("{", "damaged, not JSON"),
        ("[]", "not a model of a predictor"),
        (
            '{"format": "hpcrowd predictor", "version": 2}',
            "version 2, but this hpcrowd reads only up to 1",
        ),
        ('{"format": "hpcrowd predictor", "version": 1}', "not a complete model"),
        (
            '{"format": "hpcrowd predictor", "version": 1, "model": "nearest", '
            '"settings": {"k": 0}}',
            "k 0: not a whole number of at least 1",
        ),
    ],
)
def test_files_that_cannot_be_used(content: str | None, told: str, tmp_path: Path) -> None:
    """A missing, damaged or newer file is reported in one line that names it."""
    path = tmp_path / "model.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ModelFileError, match=told) as caught:
        read_predictor(path)
    assert str(path) in str(caught.value)
    assert 1 == len(str(caught.value).splitlines())


def test_places_that_cannot_be_written_are_reported(tmp_path: Path) -> None:
    """Nothing is left when a file cannot be written."""
    with pytest.raises(ModelFileError, match="cannot be written"):
        write_predictor(LastTwo(), tmp_path / "absent" / "model.json")
    assert [] == list(tmp_path.iterdir())
