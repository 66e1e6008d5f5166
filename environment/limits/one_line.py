"""Descriptions in pydantic whose mistakes are one line, however they are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from hpcrowd.environment.errors import QuantityError, first_mistake

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)


class OneLine(ModelMetaclass):
    """Makes a mistake in what a class is called with one line: its ``MISTAKE``, if it has one."""

    def __call__(cls, *args: Any, **values: Any) -> Any:
        """Return the object with these settings."""
        try:
            return super().__call__(*args, **values)
        except ValidationError as error:
            kind = getattr(cls, "MISTAKE", QuantityError)
            raise kind(first_mistake(error, getattr(cls, "model_fields", ()))) from None
