"""Compiles the modules of ``hpcrowd.kernels``: with the package, or by ``python build_kernels.py``.

``translate_kernels.py`` makes of each what Cython reads, Cython makes C of it, and a compiler of C
an extension module.
"""

from __future__ import annotations

import hashlib
import os
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

#: Options of the C compiler. With -O3 the loops of the engine are slower by half.
FLAGS = (
    "-O2",
    "-g0",
    "-fPIC",
    "-fwrapv",
    "-ffp-contract=off",
    "-fno-semantic-interposition",
    "-DNDEBUG",
    "-w",
)

#: Runs Cython; views of arrays have three dimensions at most, since calls copy all of them.
CYTHON = """
from Cython.Compiler import Options
Options.buffer_max_dims = 4
from Cython.Compiler.Main import setuptools_main
setuptools_main()
"""

#: Options of Cython.
DIRECTIVES: dict[str, Any] = {
    "infer_types": True, "annotation_typing": False, "boundscheck": False,
    "wraparound": False, "cpow": True, "initializedcheck": False, "auto_pickle": False,
}  # fmt: skip

#: What translates a module.
TRANSLATION = runpy.run_path(str(Path(__file__).with_name("translate_kernels.py")))

#: Folders of the project in the package.
FLOORS = ("agents", "analysis", "environment", "scenarios")


def compiler() -> list[str]:
    """Return the command of a C compiler, empty if there is none."""
    given = shlex.split(os.environ.get("CC", ""))
    for words in (given, ["cc"], ["gcc"], ["clang"]):
        if words and shutil.which(words[0]):
            return words
    try:
        import ziglang  # type: ignore[import-not-found]  # where none is installed
    except ImportError:
        return []
    return [str(Path(ziglang.__file__).parent / "zig"), "cc"]


def build(root: Path = ROOT, say: Callable[[str], Any] = print) -> None:
    """Compile the modules that are not compiled yet into the folder ``compiled`` of the package.

    Parameters
    ----------
    root
        The folder of the project.
    say
        Takes a line that says what takes long.

    Raises
    ------
    RuntimeError
        If no compiler is found, or it fails.
    """
    import Cython

    about = runpy.run_path(str(root / "src" / "hpcrowd" / "kernels.py"))
    with tempfile.TemporaryDirectory() as name:
        folder, package = Path(name), Path(name) / "hpcrowd"
        package.mkdir()
        for floor in FLOORS:
            (package / floor).symlink_to(root / floor)
        modules, known = [], TRANSLATION["Declarations"]()
        for kernel in about["KERNELS"]:
            path = about["source_of"](kernel, package)
            released = about["RELEASED"].get(kernel)
            values = TRANSLATION["constants"](package, path)
            modules.append(TRANSLATION["Module"](kernel, path, values, known, released))
        shared = [Cython.__version__, sys.version, *FLAGS, repr(DIRECTIVES), *compiler()]
        declared = {module.name: module.declarations for module in modules}
        todo = []
        about["COMPILED"].mkdir(exist_ok=True)
        work = folder / "work"
        for kernel, text in [
            (about["SHARED"], ""),
            *((module.name, module.text) for module in modules),
        ]:
            source = work.joinpath(*kernel.split(".")).with_suffix(".py")
            source.parent.mkdir(parents=True, exist_ok=True)
            source.write_text(text)
            target = about["file_of"](kernel)
            parts = [*shared, text, *_needed(kernel, declared)]
            key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
            mark = target.with_suffix(".key")
            if not (target.exists() and mark.exists() and mark.read_text() == key):
                mark.unlink(missing_ok=True)
                todo.append((source, target, mark, key))
        for module in modules:
            path = work.joinpath(*module.name.split(".")).with_suffix(".pxd")
            path.write_text(module.declarations)
            for parent in path.relative_to(work).parents[:-1]:
                (work / parent / "__init__.py").touch()
        if todo:
            command = _found(compiler())
            say(f"Compiling {len(todo)} modules of the engine, which takes up to two minutes ...")
            todo.sort(key=lambda one: -one[0].stat().st_size)  # so that cores finish together
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                list(pool.map(lambda one: _compile(work, command, about["SHARED"], *one), todo))
        _write(about["sources_file"](), about["checksum"](package).encode())


def products(root: Path = ROOT) -> list[str]:
    """Return the files of the folder ``compiled`` that belong to this version of Python."""
    about = runpy.run_path(str(root / "src" / "hpcrowd" / "kernels.py"))
    made = [about["file_of"](name).name for name in (about["SHARED"], *about["KERNELS"])]
    return [*made, about["sources_file"]().name]


def _needed(name: str, declared: dict[str, str]) -> list[str]:
    """Return the declarations that a module depends on, its own first."""
    found, todo = dict[str, str](), [name]
    while todo:
        one = todo.pop()
        if one in declared and one not in found:
            found[one] = declared[one]
            words = [line.split() for line in declared[one].splitlines()]
            todo += [line[1] for line in words if line[:1] == ["from"] and "cimport" in line]
    return list(found.values())


def _found(command: list[str]) -> list[str]:
    if not command:
        raise RuntimeError(
            "hpcrowd's engine needs a C compiler to be installed: none of cc, gcc and clang is in "
            "PATH; install one, such as the package gcc"
        )
    return command


def _compile(
    folder: Path, command: list[str], shared: str, source: Path, target: Path, mark: Path, key: str
) -> None:
    """Translate a module into C, and compile it."""
    code = source.with_suffix(".c")
    if source.read_text():
        directives = [f"-X{name}={value}" for name, value in DIRECTIVES.items()]
        words = ["-3", "--shared", shared, *directives, "--output-file", str(code), str(source)]
    else:
        words = ["--generate-shared", str(code)]
    _run([sys.executable, "-c", CYTHON, *words], folder, f"{source.name} is not translated")
    library = [f"-I{sysconfig.get_paths()['include']}", "-shared"]
    if sys.platform == "darwin":
        library += ["-undefined", "dynamic_lookup"]
    made = code.with_suffix(".so")
    _run([*command, *FLAGS, *library, str(code), "-o", str(made)], folder, f"{code.name} fails")
    _write(target, made.read_bytes())
    _write(mark, key.encode())


def _run(words: list[str], folder: Path, what: str) -> None:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{what}: {(done.stderr or done.stdout).strip()[-2000:]}")


def _write(path: Path, content: bytes) -> None:
    """Write a file that appears only when it is complete."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(path)


if __name__ == "__main__":
    build()
