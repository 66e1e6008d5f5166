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

#: What each option means, wherever it is: a pattern that its help has to match.
MEANING = {
    "--json": r"One JSON object",
    "--seed": r"(?i)^seed of",
    "--seeds": r"(?i)^(simulations|searches|seeds|workloads)\b",
    "--workers": r"^Processes that share the work",
    "--out": r"(?i)folder|file|trace",
    "--users": r"^How users behave|^Behaviours|^How many users",
    "--user": r"(?i)this user|name or number of the user",
    "--processors": r"^Size of the machine",
    "--job-processors": r"^Which processors field",
    "--days": r"(?i)^(how many )?days",
    "--jobs": r"(?i)^(how many )?jobs( of a workload)?\b",
    "--which": r"^Jobs of the trace that count",
    "--window": r"^Time window\b",
    "--title": r"^Title\b",
    "--from": r"^(Beginning of the time span|Jobs submitted from then on)",
    "--to": r"^(End of the time span|Jobs submitted before)",
    "--load": r"(?i)^offered load",
    "--sessions": r"^How submissions form sessions|gap between two submissions of a session",
    "--scheduler": r"^Scheduling policy",
    "--platform": r"^TOML file of changes of the (machine|clusters) during the run",
    "--log-decisions": r"^Log what each user decided",
    "--force": r"^Replace other results, and a file named here that hpcrowd did not write;",
    "--trust": r"^Load all code that the files name",
    "--list": r"^List .*exit\.$",
    "--show": r"^Print the completed",
    "--strict": r"^Fail instead of repairing",
    "--estimates": r"^Run times that the scheduler assumes",
    "--speed": r"^Speed of the processors",
    "--power": r"^TOML file of what the machine draws",
    "--machine": r"^Nodes, partitions and rules of the machine",
    "--requested": r"^Requested times",
    "--overrun": r"^Whether jobs that exceed their requested time",
    "--train": r"^Train",
    "--budget": r"^How long to train",
    "--loads": r"^System loads",
    "--traces": r"(?i)folder with",
    "--anonymise": r"^Replace names of users, groups and programs",
    "--zone": r"^Time zone of local times (in the trace|of reservations)",
    "--queue": r"^What of Slurm is the queue of a job",
    "--map": r"^TOML file that maps the columns of your own table",
    "--executor": r"(?i)^what (runs them|makes futures): processes, dask, or inline",
    "--address": r"^Address of (the scheduler of )?a running Dask cluster",
    "--input-format": r"^Format of the trace",
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


@pytest.mark.parametrize("option", MEANING)
def test_an_option_means_the_same_everywhere(option):
    """Whatever command has it; and there is one that has it."""
    texts = {command: text for name, command, text in OPTIONS if name == option}
    assert texts
    odd = {command: text for command, text in texts.items() if not re.search(MEANING[option], text)}
    assert {} == odd


def test_every_shared_option_is_listed_here():
    """Options of several commands have one meaning; the program offers completion."""
    commands: dict[str, set[str]] = {}
    for option, command, _ in OPTIONS:
        commands.setdefault(option, set()).add(command)
    assert [] == [name for name, some in commands.items() if len(some) > 1 and name not in MEANING]
    program: Any = typer.main.get_command(app)
    names = {name for one in program.params for name in one.opts}
    assert {"--version", "-V", "--install-completion", "--show-completion"} <= names


@pytest.mark.parametrize("kind", KINDS)
def test_settings_are_options_by_their_names(kind):
    """What a command takes of a kind of run has the name that a file and Python have for it."""
    words = {option for option, command, _ in OPTIONS if command == kind}
    wanted = {f"--{name.replace('_', '-')}" for name in KINDS[kind].settings()}
    own = "json out gantt window log-decisions help force trust"
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
