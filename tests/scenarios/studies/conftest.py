"""Every study at a small size, run once for all tests."""

from functools import cache

import pytest
from hpcrowd.scenarios.studies.options import study_entry
from hpcrowd.scenarios.studies.published import study_name
from hpcrowd.scenarios.studies.refresh import page_of

from tests.scenarios.studies.study_cases import CASES, Ran, write_input


@pytest.fixture(scope="session")
def input_of(make_trace, tmp_path_factory):
    """Return a function that returns the folder that a study reads at a small size."""

    @cache
    def made(name):
        folder = tmp_path_factory.mktemp("study") / name
        folder.mkdir()
        write_input(name, make_trace, folder)
        return folder

    return made


@pytest.fixture(scope="session")
def ran_of(input_of):
    """Return a function that runs a study at a small size."""

    @cache
    def ran(name):
        steps: list[tuple[str, int, int]] = []
        folder = None if name == "minh2012-arrivals" else input_of(name)
        study = study_entry(name).run(
            folder, lambda *step: steps.append(step), **CASES[name].arguments
        )
        return Ran(study, steps)

    return ran


@pytest.fixture(scope="module")
def small(request, ran_of):
    """Return the study of the folder of tests, at a small size."""
    return ran_of(study_of(request)).study


@pytest.fixture(scope="module")
def page(request):
    """Return the page of that study."""
    return page_of(study_of(request)).read_text()


def study_of(request):
    """Return the name of the study of a file of tests."""
    file = request.path.with_stem(request.path.stem.removeprefix("test_"))
    return study_name(file)
