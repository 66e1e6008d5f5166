"""What is inspected: a trace, a scenario in a TOML file, or a folder of results."""

from __future__ import annotations

import pickle
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, override

from hpcrowd.agents.behaviours.decisions import DecisionLog
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.traces.formats.registry import trace_path
from hpcrowd.scenarios.inspector.subjects.course import Course, LiveCourse, PlayedBack
from hpcrowd.scenarios.inspector.subjects.settings import Control, controls_of, settings_of
from hpcrowd.scenarios.kinds.base import Scenario, takes_settings
from hpcrowd.scenarios.kinds.files import SettingError, read_scenario, scenario_of

#: Decisions that a page keeps; 55 bytes each.
KEPT_DECISIONS = 500_000


class Subject(ABC):
    """What is inspected. It is shared by all pages; each page has its own courses.

    Attributes
    ----------
    name
        A short name: that of the file or folder.
    controls
        Settings that a reader may change.
    """

    name: str
    controls: tuple[Control, ...] = ()

    @abstractmethod
    def begin(self, given: Mapping[str, str]) -> Course:
        """Return a course at its beginning.

        Parameters
        ----------
        given
            Settings from the reader, by name.

        Raises
        ------
        HpcrowdError
            When it cannot be run with these settings, in one line.
        """


class ScenarioSubject(Subject):
    """A scenario, simulated while the page is open.

    Parameters
    ----------
    read
        Returns the scenario. It is called again whenever a course begins, so that a file may be
        edited while the page is open.
    name
        A short name.

    Raises
    ------
    HpcrowdError
        When the scenario or its inputs cannot be read.
    """

    def __init__(self, read: Callable[[], Scenario], name: str) -> None:
        self.name = name
        self._read = read
        self._inputs: dict[str, bytes] = {}
        self._lock = threading.Lock()
        scenario = read()
        self.controls = controls_of(scenario.completed())
        self._prepared(scenario)

    @override
    def begin(self, given: Mapping[str, str]) -> Course:
        scenario = self._read()
        values = scenario.completed()
        self.controls = controls_of(values)
        settings = settings_of(self.controls, given)
        if settings:
            try:
                scenario = scenario_of(takes_settings(values, settings), scenario.folder)
            except SettingError as error:
                raise QuantityError(str(error)) from None
        log = DecisionLog(KEPT_DECISIONS)
        staged = scenario.stage(self._prepared(scenario), log)
        controls = controls_of(scenario.completed())
        course = LiveCourse(staged, scenario.title(), controls, scenario)
        course.notes = staged.notes
        return course

    def _prepared(self, scenario: Scenario) -> Any:
        """Return a copy of the inputs of a scenario; they are read once for all who share them."""
        key = repr(sorted(scenario.sharing().items()))
        with self._lock:  # two pages that open at once read once
            if key not in self._inputs:
                self._inputs = {key: pickle.dumps(scenario.prepare(), protocol=5)}
            inputs = self._inputs[key]
        return pickle.loads(inputs)


class ResultsSubject(Subject):
    """A finished run, played back from its folder of results.

    Parameters
    ----------
    folder
        The folder that ``--out`` of a run wrote.
    """

    def __init__(self, folder: Path) -> None:
        from hpcrowd.analysis.results import read_results
        from hpcrowd.analysis.views.moment import recover_work

        self.name = folder.name or str(folder)
        self.run = recover_work(read_results(folder))

    @override
    def begin(self, given: Mapping[str, str]) -> Course:
        settings_of(self.controls, given)
        return PlayedBack(self.run)


def subject_of(path: Path, how: Mapping[str, Any] | None = None) -> Subject:
    """Return the subject for a path on the command line.

    Parameters
    ----------
    path
        A trace, a scenario in a TOML file, or a folder of results.
    how
        How a trace is read: settings of a replay.

    Raises
    ------
    HpcrowdError
        When it does not exist, or cannot be inspected.
    """
    path = trace_path(path)
    if (how or {}).get("anonymise") and (path.is_dir() or path.suffix == ".toml"):
        raise QuantityError(
            f"--anonymise: {path} is not a trace; write anonymise = true into the scenario, or run "
            "it again so"
        )
    if path.is_dir():
        return ResultsSubject(path)
    if not path.exists():
        raise QuantityError(
            f"{path}: no such file; give a trace, a scenario in a TOML file, or a folder of results"
        )
    if path.suffix == ".toml":
        return ScenarioSubject(partial(read_scenario, path), path.name)
    settings = {"kind": "replay", "trace": path.name, **(how or {})}
    if "map" in settings:
        settings["map"] = str(Path(settings["map"]).absolute())
    return ScenarioSubject(partial(scenario_of, settings, path.parent), path.name)
