"""Every study at a small size, run once for all tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.studies.registry import study_entry

from tests.scenarios.studies.study_cases import CASES, Ran, write_input


@pytest.fixture(scope="session")
def input_of(
    make_trace: Callable[..., Trace], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Return a function that returns the folder that a study reads at a small size."""

    @cache
    def made(name: str) -> Path:
        folder = tmp_path_factory.mktemp("study") / name
        folder.mkdir()
        write_input(name, make_trace, folder)
        return folder

    return made


@pytest.fixture(scope="session")
def ran_of(input_of: Callable[[str], Path]) -> Callable[[str], Ran]:
    """Return a function that runs a study at a small size."""

    @cache
    def ran(name: str) -> Ran:
        steps: list[tuple[str, int, int]] = []
        folder = None if name == "minh2012-arrivals" else input_of(name)
        study = study_entry(name).run(
            folder, lambda *step: steps.append(step), **CASES[name].arguments
        )
        return Ran(study, steps)

    return ran
