"""What a command loads before it runs: what it runs, and nothing of any other command."""

import subprocess
import sys

import pytest
from hpcrowd.agents.behaviours import parts
from hpcrowd.environment.registry import Registry
from hpcrowd.environment.schedulers.names import SCHEDULERS
from hpcrowd.environment.traces.formats.registry import FORMATS
from hpcrowd.scenarios.kinds.files import KINDS

from tests.support.places import ROOT

LOG = "1 0 5 60 4 -1 -1 4 90 -1 1 1 3 -1 -1 -1 -1 -1\n"

#: Folders and modules of hpcrowd that a replay without options has no use for.
NOT_OF_A_REPLAY = (
    *("environment.grid", "environment.platform", "environment.engine.plain"),
    *("environment.schedulers.policies.conservative", "environment.traces.formats.tables"),
    *("agents.generative", "agents.behaviours.reactions", "agents.populations.semi_open"),
    *("analysis.results", "analysis.features", "analysis.models", "analysis.pictures"),
    *("scenarios.kinds.grids.grid", "scenarios.kinds.population_files", "scenarios.inspector"),
)

#: Modules of hpcrowd that a replay loads, with room for a few more.
MOST_MODULES = 110

#: Libraries that no help needs.
HEAVY = (
    "mesa", "pandas", "pyarrow", "scipy", "matplotlib", "networkx", "sklearn", "kmedoids",
    "pywt", "dask", "distributed", "bokeh", "starlette", "uvicorn", "tomlkit",
)  # fmt: skip

RUN = """
import sys
{first}
before = set(sys.modules)
sys.argv = {words!r}
from hpcrowd.__main__ import main
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
print(*sorted(set(sys.modules) - before), file=sys.stderr)
"""


def loaded(*words, cwd, first=""):
    """Return the modules that a command loads after the line ``first``."""
    code = RUN.format(first=first, words=["hpcrowd", *words])
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=True
    )
    return done.stderr.splitlines()[-1].split()


def within(module, place):
    """Whether a module is a place or in it."""
    return module == place or module.startswith(f"{place}.")


def test_a_replay_loads_what_it_runs(tmp_path):
    """No grid, population, platform or other command; of other libraries only what Mesa loads."""
    (tmp_path / "log.swf").write_text(LOG)
    modules = loaded("replay", "log.swf", "--json", cwd=tmp_path, first="import mesa")
    own = [module for module in modules if within(module, "hpcrowd")]
    for place in NOT_OF_A_REPLAY:
        path = ROOT.joinpath(*place.split("."))
        assert path.is_dir() or path.with_suffix(".py").is_file(), place
        assert [] == [one for one in own if within(one, f"hpcrowd.{place}")]
    assert len(own) <= MOST_MODULES
    libraries = ("pandas", "pyarrow", "scipy", "matplotlib", "networkx", "rich", "tomlkit")
    assert [] == [one for one in modules if any(within(one, library) for library in libraries)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [path.stem.replace("_", "-") for path in sorted(ROOT.glob("scenarios/commands/*/[!_]*.py"))],
)
def test_help_is_light(command, tmp_path):
    """The help of a command loads no Mesa, and nothing that computes or draws."""
    modules = loaded(command, "--help", cwd=tmp_path)
    assert [] == [name for name in HEAVY if name in modules]


def test_importing_is_light(tmp_path):
    """Importing hpcrowd loads nothing else of it, and to list all names none of these libraries."""
    code = (
        "import sys, hpcrowd as hc; print(sorted(n for n in sys.modules if 'hpcrowd' in n))\n"
        "dir(hc); [dir(hc.names.import_module(place)) for place in hc.names.namespaces()]\n"
        f"print([n for n in {HEAVY} if n in sys.modules])"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    printed = subprocess.check_output(command, cwd=tmp_path, text=True)
    assert ["['hpcrowd', 'hpcrowd.kernels', 'hpcrowd.names']", "[]"] == printed.splitlines()


def test_help_of_all_loads_no_command(tmp_path):
    """The list of commands is made without any of them, nor numpy, nor settings of runs."""
    modules = loaded("--help", cwd=tmp_path)
    assert [] == [one for one in modules if within(one, "hpcrowd.scenarios.commands")]
    assert [] == [one for one in (*HEAVY, "numpy", "hpcrowd.scenarios.kinds") if one in modules]


# ---- registries -------------------------------------------------------------------------------


def test_a_registry_imports_what_is_looked_up(tmp_path, monkeypatch):
    """Names, their order and their number need no import; an entry may also be a thing."""
    (tmp_path / "place_of_two.py").write_text("ONE, TWO = 1, 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    numbers: Registry[int] = Registry({"two": "place_of_two:TWO", "one": "place_of_two:ONE"})
    numbers["three"] = 3
    assert (["two", "one", "three"], 3) == (list(numbers), len(numbers))
    assert "four" not in numbers
    assert 3 == numbers["three"]
    assert "place_of_two" not in sys.modules
    assert (1, 2) == (numbers["one"], numbers["two"])
    assert [("two", 2), ("one", 1), ("three", 3)] == list(numbers.items())
    del numbers["one"]
    assert numbers.get("one") is None
    sys.modules.pop("place_of_two")


def test_entries_are_called_as_they_call_themselves():
    """A policy, a format, a part and a kind have the name of their entry."""
    for registry in (SCHEDULERS, FORMATS, parts.WHEN, parts.THINK, parts.WINDOWS):
        assert list(registry) == [thing.name for thing in registry.values()]
    assert list(parts.RESPONSES) == [response.response for response in parts.RESPONSES.values()]
    for name, forms in parts.TRIGGERS.items():
        assert {name} == {form.when for form in forms}
    assert list(KINDS) == [kind.model_fields["kind"].default for kind in KINDS.values()]
