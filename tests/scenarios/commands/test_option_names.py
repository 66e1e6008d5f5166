"""One word for one thing: options of commands, settings of files and arguments in Python."""

import inspect
import re
from typing import Any

import pytest
import typer
from hpcrowd.analysis.models.generation import generate
from hpcrowd.analysis.models.judgement import judge
from hpcrowd.analysis.models.model import fit
from hpcrowd.environment.traces.window import window
from hpcrowd.scenarios.cli import CommandFiles, app
from hpcrowd.scenarios.kinds.files import KINDS
from hpcrowd.scenarios.kinds.trace_settings import READING

#: Options whose helps begin in several ways: a pattern that each has to match.
MEANING = {
    "--seed": r"(?i)^seed of",
    "--seeds": r"(?i)^(simulations|searches|seeds|workloads)\b",
    "--out": r"(?i)folder|file|trace",
    "--users": r"^How users behave|^Behaviours|^How many users",
    "--user": r"(?i)this user|name or number of the user",
    "--days": r"(?i)^(how many )?days",
    "--jobs": r"(?i)^(how many )?jobs( of a workload)?\b",
    "--window": r"^Time window\b",
    "--title": r"^Title\b",
    "--from": r"^(Beginning of the time span|Jobs submitted from then on)",
    "--to": r"^(End of the time span|Jobs submitted before)",
    "--load": r"(?i)^offered load",
    "--sessions": r"^How submissions form sessions|gap between two submissions of a session",
    "--list": r"^List .*exit\.$",
    "--train": r"^Train",
    "--loads": r"^System loads",
    "--traces": r"(?i)folder with",
}


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


@pytest.mark.parametrize("option", sorted({name for name, _, _ in OPTIONS}))
def test_an_option_means_the_same_everywhere(option):
    """In all commands that have it, its help begins with the same words, or as it says above."""
    texts = [text for name, _, text in OPTIONS if name == option]
    if option in MEANING:
        assert [] == [text for text in texts if not re.search(MEANING[option], text)]
    else:
        assert 1 == len({text[:17] for text in texts}), texts


def test_options_of_the_program():
    """The version, and completion in a shell; no option that is gone has a meaning."""
    program: Any = typer.main.get_command(app)
    names = {name for one in program.params for name in one.opts}
    assert {"--version", "-V", "--install-completion", "--show-completion"} <= names
    assert {*MEANING} <= {name for name, _, _ in OPTIONS}


@pytest.mark.parametrize("kind", KINDS)
def test_settings_are_options_by_their_names(kind):
    """What a command takes of a kind of run has the name that a file and Python have for it."""
    words = {option for option, command, _ in OPTIONS if command == kind}
    wanted = {f"--{name.replace('_', '-')}" for name in KINDS[kind].settings()}
    own = "json out gantt window seeds log-decisions help force trust"
    assert words - {f"--{name}" for name in own.split()} <= wanted
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
