"""The rules of the house: who imports whom, how long files are, what an import costs."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

#: Each may import itself and those before it.
PACKAGES = ("environment", "agents", "analysis", "scenarios")
LONGEST_FILE = 400  #: lines
HEAVY = (
    "mesa", "numba", "pandas", "matplotlib", "sklearn", "kmedoids", "pywt", "dask", "distributed",
    "tomlkit",
)  # fmt: skip


def files(root: Path) -> Iterator[Path]:
    """Python files of the four packages."""
    for package in PACKAGES:
        yield from sorted((root / package).rglob("*.py*"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and top-level package of every import, also inside functions and for type checking."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.lineno, (node.module or "").split(".")[0]


def python(root: Path, code: str, *places: Path) -> str:
    """Output of another Python that finds ``places``, then the checkout."""
    path = os.pathsep.join(str(place) for place in (*places, root))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=os.environ | {"PYTHONPATH": path},
        cwd=root / "tests",
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() + done.stderr.strip()


def test_imports_run_one_way(root: Path) -> None:
    """Imports run scenarios -> analysis -> agents -> environment, and never back."""
    wrong, right = [], 0
    for path in files(root):
        if path.suffix in (".py", ".pyi"):
            package = path.relative_to(root).parts[0]
            for line, imported in imports(path):
                if imported in PACKAGES:
                    right += 1
                    if PACKAGES.index(imported) > PACKAGES.index(package):
                        wrong.append(f"{path.relative_to(root)}:{line} imports {imported}")
    assert [] == wrong
    assert right > 20


def test_imports_are_found_wherever_they_stand(tmp_path: Path) -> None:
    """The rule sees imports inside functions, under TYPE_CHECKING and of submodules."""
    path = tmp_path / "a.py"
    path.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n"
        "    from hpcrowd.analysis.run import Run\n"
        "def f():\n"
        "    import hpcrowd.scenarios.kinds.replay as r\n"
        "    from . import agents\n"
    )
    assert [(1, "typing"), (3, "analysis"), (5, "scenarios")] == sorted(imports(path))


def test_packages_do_not_import_tests(root: Path) -> None:
    """No package imports the tests."""
    found = [
        f"{path.relative_to(root)}:{line}"
        for path in files(root)
        if path.suffix == ".py"
        for line, imported in imports(path)
        if imported in ("tests", "conftest", "pytest", "hypothesis")
    ]
    assert [] == found


def test_files_are_short(root: Path) -> None:
    """No file of the packages or their tests is longer than 400 lines."""
    lengths = {
        str(path.relative_to(root)): len(path.read_text().splitlines())
        for path in (*files(root), *(root / "tests").glob("*.py"))
        if path.suffix == ".py"
    }
    assert len(lengths) > 20
    assert {} == {name: length for name, length in lengths.items() if length > LONGEST_FILE}


def test_importing_the_packages_is_light(root: Path) -> None:
    """Importing the four packages loads neither Mesa, numba, pandas nor matplotlib."""
    code = (
        f"import sys, {', '.join(PACKAGES)}\n"
        f"print(*[name for name in {HEAVY} if name in sys.modules] or ['light'])"
    )
    assert "light" == python(root, code)


@pytest.mark.parametrize(
    "package", [*PACKAGES, "hpcrowd.analysis.features", "hpcrowd.analysis.models"]
)
def test_public_names_resolve(root: Path, package: str) -> None:
    """Every name in the stub of a package can be had from it, and is in its ``__all__``."""
    module = import_module(package)
    tree = ast.parse((root / package.replace(".", "/") / "__init__.pyi").read_text())
    imported = [
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    listed = next(
        ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign)
    )
    assert set(imported) == set(listed)
    assert len(imported) == len(set(imported))
    assert set(listed) <= set(module.__all__)
    for name in listed:
        assert getattr(module, name).__doc__ is not None


def test_init_files_hold_only_public_names(root: Path) -> None:
    """``__init__.py`` of a package defines no function or class."""
    for package in PACKAGES:
        tree = ast.parse((root / package / "__init__.py").read_text())
        defined = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        assert [] == defined


def test_nothing_is_shadowed(root: Path) -> None:
    """In a clean environment all packages are the project's own."""
    assert "None" == python(root, "import hpcrowd; print(hpcrowd.shadowed())")


@pytest.mark.parametrize("form", ["package", "module"])
def test_shadowing_package_is_named(root: Path, tmp_path: Path, form: str) -> None:
    """Another ``agents`` earlier on the path is told in one line, also by the command itself."""
    if form == "package":
        (tmp_path / "agents").mkdir()
        other = tmp_path / "agents" / "__init__.py"
    else:
        other = tmp_path / "agents.py"
    other.write_text("")
    told = python(root, "import hpcrowd; print(hpcrowd.shadowed())", tmp_path)
    assert 1 == len(told.splitlines())
    assert "'agents'" in told
    assert str(tmp_path) in told
    assert str(root / "agents") in told
    assert f"hpcrowd: {told}" == python(root, "import hpcrowd; hpcrowd.main()", tmp_path)
