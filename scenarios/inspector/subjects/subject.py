"""What is inspected: a trace, a scenario in a TOML file, or a folder of results.

A setting comes from a browser, so it is accepted only if it is one of the choices that the page
offers, or a plain number: names of files cannot come in this way.
"""

from __future__ import annotations

import pickle
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, override

from hpcrowd.agents.behaviours.decisions import DecisionLog
from hpcrowd.agents.populations.openness import FORMULA_NAMES
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.grid.policies import GRID_POLICIES
from hpcrowd.environment.schedulers.names import POOL_SCHEDULERS, RECORDED
from hpcrowd.environment.traces.formats.registry import trace_path
from hpcrowd.scenarios.inspector.subjects.course import Control, Course, LiveCourse, PlayedBack
from hpcrowd.scenarios.kinds.base import Scenario, takes_settings
from hpcrowd.scenarios.kinds.files import SettingError, read_scenario, scenario_of
from hpcrowd.scenarios.kinds.populations.resample import DOING, NONE

#: Schedulers that the page offers: none of them needs a file.
OFFERED_SCHEDULERS = (*POOL_SCHEDULERS, "easy:backfill=sjbf", RECORDED)

#: Decisions that a page keeps; 55 bytes each.
KEPT_DECISIONS = 500_000


def controls_of(values: Mapping[str, Any]) -> tuple[Control, ...]:
    """Return the settings of a scenario that the page offers; ``values`` are its completed ones."""
    from hpcrowd.agents.presets import PRESETS

    users = tuple(PRESETS)
    offered = (
        Control("users", "Users", tuple(DOING) if values.get("kind") == "resample" else users),
        Control("population", "How many users"),
        Control("satisfaction", "Satisfaction", (NONE, *FORMULA_NAMES)),
        Control("scheduler", "Scheduler", OFFERED_SCHEDULERS),
        Control("broker", "Broker", tuple(GRID_POLICIES)),
        Control("processors", "Processors"),
        Control("speed", "Speed"),
        Control("seed", "Seed"),
    )
    found = []
    for control in offered:
        value = values.get(control.name)
        if isinstance(value, str | int | float):
            found.append(replace(control, value=str(value)))
    return tuple(found)


def settings_of(controls: tuple[Control, ...], given: Mapping[str, str]) -> dict[str, Any]:
    """Return the changes of a reader, checked, as settings of a scenario."""
    known = {control.name: control for control in controls}
    settings: dict[str, Any] = {}
    for name, text in given.items():
        if name not in known:
            raise QuantityError(
                f"{name[:40]!r}: no such setting here; there are {', '.join(known)}"
            )
        value = known[name].check(text)
        if value != known[name].value:
            settings[name] = int(value) if name == "seed" else value
    return settings


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
        """Return a course at its beginning, with settings from the reader, by name.

        An HpcrowdError says in one line why it cannot be run with these settings.
        """


class ScenarioSubject(Subject):
    """A scenario, simulated while the page is open.

    ``read`` returns it. It is called again whenever a course begins, so that a file may be edited
    while the page is open.
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
    """A finished run, played back from its folder of results."""

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
