"""One word for one thing: options of commands, settings of files and arguments in Python."""

from __future__ import annotations

import inspect

import pytest
from hpcrowd.analysis.models.generation import generate
from hpcrowd.analysis.models.judgement import judge
from hpcrowd.analysis.models.model import fit
from hpcrowd.environment.traces.window import window
from hpcrowd.scenarios.cli import CommandFiles
from hpcrowd.scenarios.kinds.files import KINDS
from hpcrowd.scenarios.kinds.trace_settings import READING


def options():
    """Every option with its command and its help."""
    found = []

    def look(command, name):
        for parameter in command.params:
            found.extend(
                (option, name, " ".join((parameter.help or "").split()))
                for option in parameter.opts
                if option.startswith("--")
            )
        inside = getattr(command, "commands", {})
        for one in inside:
            look(inside[one], f"{name} {one}")

    for name, command in CommandFiles().items():
        look(command, name)
    return found


OPTIONS = options()


@pytest.mark.parametrize("kind", KINDS)
def test_settings_are_options_by_their_names(kind):
    """What a command takes of a kind of run has the name that a file and Python have for it."""
    words = {option for option, command, _ in OPTIONS if command == kind}
    wanted = {f"--{name.replace('_', '-')}" for name in KINDS[kind].settings()}
    own = {"--json", "--out", "--gantt", "--window", "--log-decisions", "--help", "--force"}
    assert words - own <= wanted
    if kind != "grid":  # whose clusters are in a file
        assert wanted <= words


@pytest.mark.parametrize(
    ("command", "function", "others"),
    [
        ("generate", generate, {"source", "out", "as_json"}),
        ("fit", fit, {"model", "traces", "seed", "out", "as_json", "which", *READING}),
        ("window", window, {"out", "as_json", *READING}),
        ("judge", judge, {"source", "workers", "which", "out", "as_json", *READING}),
    ],
)
def test_arguments_in_python_are_options(command, function, others):
    """A function and the command for it share the names of what both can be given."""
    parameters = {one.name for one in CommandFiles()[command].params} - others - {"help", "force"}
    assert parameters <= set(inspect.signature(function).parameters)
