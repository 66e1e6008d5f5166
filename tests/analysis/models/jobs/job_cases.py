"""What tests of models of jobs share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

#: Standard errors that a mean may be off.
FAR = 5


def near(expected: float, values: Any) -> None:
    """Check that a mean is as expected, within its standard error."""
    values = np.asarray(values, np.float64)
    error = float(values.std()) / np.sqrt(len(values))
    assert expected == pytest.approx(values.mean(), abs=FAR * error)
