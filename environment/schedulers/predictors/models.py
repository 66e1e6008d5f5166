"""Predictors by name, as on the command line and in configurations, and in small files.

``last-two``, ``last-two:cap=yes``, ``nearest:n=2000,k=5``, ``history:SDSC04`` (published
parameters), ``history:SDSC04,history=completion``, or the path of a file of a trained model.

A file is JSON with the keys ``format``, ``version``, ``model``, ``settings`` and ``provenance``;
the version increases when older programs cannot read the file any more.
"""

from __future__ import annotations

import os
from typing import Any

from hpcrowd.environment.errors import HpcrowdError, ModelFileError, QuantityError, not_one_of
from hpcrowd.environment.files import ModelFormat
from hpcrowd.environment.options import parse_options
from hpcrowd.environment.schedulers.estimates import PREDICTORS
from hpcrowd.environment.schedulers.predictors.experience import LastTwo, Nearest
from hpcrowd.environment.schedulers.predictors.history import (
    Group,
    HistoryParameters,
    HistoryPredictor,
    published_names,
)

#: Predictors whose settings can be written and read.
Shipped = LastTwo | Nearest | HistoryPredictor

#: Format and version of model files.
FILES = ModelFormat(
    "hpcrowd predictor",
    1,
    "a model of a predictor",
    "hpcrowd predict --out",
    "train the model again, or fetch the file again",
)


def parse_predictor(text: str) -> Shipped:
    """Return the predictor described by ``text``, see :mod:`predictors.models`.

    Raises
    ------
    QuantityError
        When there is no such predictor or option.
    ModelFileError
        When it names a file that cannot be used.
    """
    if text.endswith(".json"):
        return read_predictor(text)
    name, _, rest = text.partition(":")
    if name not in PREDICTORS:
        raise QuantityError(
            f"predictor {text!r}: {not_one_of(text, PREDICTORS)}, or a file of a "
            "trained model (.json)"
        )
    parts = [part for part in rest.split(",") if part]
    given: dict[str, Any] = {}
    also = ""
    if name == "history":
        also = f", or {', '.join(published_names())}"
        published = next((part for part in parts if "=" not in part), None)
        if published is not None:
            parts.remove(published)
            given["parameters"] = HistoryParameters.published(published)
    kind: Any = PREDICTORS[name]
    made: Shipped = kind(**given, **parse_options("predictor", text, kind, parts, also))
    return made


def predictor_from(model: str, settings: dict[str, Any]) -> Shipped:
    """Return the predictor of these settings, as :meth:`to_json` gives them."""
    settings = dict(settings)
    if model == "history":
        found = dict(settings.pop("parameters"))
        small, big = (Group(**found.pop(name)) for name in ("small", "big"))
        settings["parameters"] = HistoryParameters(**found, small=small, big=big)
    kind: Any = PREDICTORS[model]
    made: Shipped = kind(**settings)
    return made


def write_predictor(
    predictor: Shipped,
    path: str | os.PathLike[str],
    provenance: dict[str, Any] | None = None,
) -> None:
    """Write a predictor to a file, which is complete or absent.

    Parameters
    ----------
    predictor
        The predictor; only its settings are written, not the jobs that it knows.
    path
        The file; its name should end in ``.json``.
    provenance
        The origin of the settings, plain data.

    Raises
    ------
    ModelFileError
        When it cannot be written.
    """
    content = {
        "model": predictor.name,
        "settings": predictor.to_json(),
        "provenance": provenance or {},
    }
    FILES.write(content, path)


def read_predictor(path: str | os.PathLike[str]) -> Shipped:
    """Return the predictor of a file.

    Raises
    ------
    ModelFileError
        When the file is missing, damaged, or of a newer version.
    """
    wire = FILES.read(path)
    try:
        return predictor_from(wire["model"], wire["settings"])
    except (KeyError, TypeError, ValueError, HpcrowdError) as error:
        raise ModelFileError(
            f"{os.fspath(path)}: not a complete model of a predictor ({error}); train it again"
        ) from None
