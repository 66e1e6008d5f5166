"""Compiles the modules of ``hpcrowd.kernels``: with the package, or by ``python build_kernels.py``.

A module is ordinary Python in which functions and attributes of classes are annotated. Here

* annotations become types of C, in a ``.pxd`` file: ``int`` is int64_t, ``bool`` bint, ``float``
  double, ``Int64s`` and ``Float64s`` contiguous arrays of them (``Int64Rows``, ``Float64Rows`` of
  two dimensions), a tuple one of C, and a class of these modules itself. Types of local variables
  follow from what is assigned to them;
* numbers that have a name in capital letters become literals, and functions of :mod:`math` those
  of C.

Everything else is Cython. Functions and methods whose name begins with an underscore can be called
in these modules only, and are as fast as in C. Arithmetic and division are those of Python, but
integers have 64 bits, and indexes are not checked.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import math
import os
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
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

#: Options of Cython.
DIRECTIVES: dict[str, Any] = {
    "infer_types": True, "annotation_typing": False, "boundscheck": False,
    "wraparound": False, "initializedcheck": False, "auto_pickle": False,
}  # fmt: skip

#: Types of C by annotation; others are Python's.
TYPES = {
    "int": "int64_t", "bool": "bint", "float": "double", "None": "void",
    "Int64s": "int64_t[::1]", "Float64s": "double[::1]",
    "Int64Rows": "int64_t[:, ::1]", "Float64Rows": "double[:, ::1]",
}  # fmt: skip

#: Types that numbers are cast to, by the function of Python that makes one.
CASTS = {"int": "cython.longlong", "float": "cython.double"}

#: How a function of C reports an exception, by type.
RAISES = {"int64_t": "except? -1", "bint": "except -1", "double": "except? -1", "int": "except -1"}

#: Folders of the project in the package.
FLOORS = ("agents", "analysis", "environment", "scenarios")

#: Largest literal that Cython takes as a number of C.
LARGEST_LITERAL = 2**31


class Module:
    """A module as Cython reads it.

    Parameters
    ----------
    name, path
        Its name and file.
    values
        Its global names.
    homes
        Modules of the classes of earlier modules, by name; those of this one are added.
    """

    def __init__(
        self, name: str, path: Path, values: dict[str, Any], homes: dict[str, str]
    ) -> None:
        self.name = name
        self._text = path.read_text()
        self._tree = ast.parse(self._text)
        self._values = values
        self._homes = homes
        self._edits: list[tuple[int, int, int, str]] = []
        homes |= {n.name: name for n in self._tree.body if isinstance(n, ast.ClassDef)}
        self.declarations = "\n".join(self._declared()) + "\n"
        self.text = self._translated()

    def _declared(self) -> Iterator[str]:
        """Yield the lines of the .pxd file."""
        yield "cimport cython"
        yield "from libc.stdint cimport int64_t"
        for node in self._tree.body:
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    home = self._homes.get(alias.name)
                    if home:
                        yield f"from {home} cimport {alias.name}"
                if node.module == "math":
                    used = [a.name for a in node.names if callable(getattr(math, a.name))]
                    if used:
                        yield f"from libc.math cimport {', '.join(used)}"
        for name in sorted(self._large()):
            yield f"cdef int64_t {name}"
        for node in self._tree.body:
            if isinstance(node, ast.ClassDef):
                yield "@cython.final"
                yield f"cdef class {node.name}:"
                yield from self._members(node)
            elif isinstance(node, ast.FunctionDef):
                yield self._signature(node)

    def _large(self) -> set[str]:
        """Return names of numbers that are too large for a literal."""
        found = {n.id for n in ast.walk(self._tree) if isinstance(n, ast.Name)}
        return {n for n in found if _is_whole(self._values.get(n)) and n.isupper()} - {
            n for n in found if self._literal(n)
        }

    def _members(self, node: ast.ClassDef) -> Iterator[str]:
        for item in node.body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                kind = self._type(item.annotation)
                yield f"    cdef readonly {kind} {item.target.id}"
            elif isinstance(item, ast.FunctionDef) and not item.name.startswith("__"):
                yield f"    {self._signature(item)}"

    def _signature(self, node: ast.FunctionDef) -> str:
        arguments = [
            one.arg if one.arg == "self" else f"{self._type(one.annotation)} {one.arg}"
            for one in node.args.args
        ]
        kind = self._type(node.returns)
        if kind == "void":
            kind = "int"
            for one in ast.walk(node):
                if isinstance(one, ast.Return):
                    self._edits.append((one.lineno, one.end_col_offset or 0, 0, " 0"))
        raises = "except *" if kind.startswith("(") else RAISES.get(kind, "")
        how = "cdef inline" if node.name.startswith("_") else "cpdef"
        if node.name.startswith("_") and node.args.args and node.args.args[0].arg == "self":
            how = "cdef"
        return f"{how} {kind} {node.name}({', '.join(arguments)}) {raises}".rstrip()

    def _type(self, node: ast.expr | None) -> str:
        word = ast.unparse(node) if node is not None else ""
        if word in TYPES or word in self._homes:
            return TYPES.get(word, word)
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "tuple":
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return f"({', '.join(map(self._type, parts))})"
        return "object"

    def _literal(self, name: str) -> str:
        """Return the number that a name stands for, as a literal; nothing if it is none."""
        value = self._values.get(name)
        if isinstance(value, float) and (name.isupper() or name in ("pi",)):
            return repr(value) if math.isfinite(value) else ""
        if name.isupper() and _is_whole(value) and abs(value) < LARGEST_LITERAL:
            return str(int(value))
        return ""

    def _translated(self) -> str:
        """Return the source with the edits made; lines keep their numbers."""
        edits = self._edits
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                literal = self._literal(node.id)
                if literal:
                    edits.append((node.lineno, node.col_offset, node.end_col_offset or 0, literal))
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("int", "float"):
                end = node.args[0].col_offset
                cast = f"cython.cast({CASTS[ast.unparse(node.func)]}, "
                edits.append((node.lineno, node.col_offset, end, cast))
            elif isinstance(node, ast.ImportFrom) and node.module == "__future__":
                end = node.end_col_offset or 0
                edits.append((node.lineno, end, end, "; import cython"))
            elif isinstance(node, ast.ImportFrom) and node.module == "math":
                edits.append((node.lineno, 0, node.end_col_offset or 0, ""))
        rows = self._text.split("\n")
        for line, begin, end, new in sorted(set(edits), reverse=True):
            row = rows[line - 1].encode()  # columns of nodes count bytes
            rows[line - 1] = (row[:begin] + new.encode() + row[max(begin, end) :]).decode()
        return "\n".join([*rows, *self._copying()])

    def _copying(self) -> Iterator[str]:
        """Yield lines that let classes be pickled and copied, as those of Python are."""
        for node in self._tree.body:
            if not isinstance(node, ast.ClassDef):
                continue
            name, values = node.name, []
            for item in node.body:
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                    kind, field = self._type(item.annotation), item.target.id
                    array = "[" in kind and kind in TYPES.values()
                    values.append(
                        (field, f"numpy.asarray(one.{field})" if array else f"one.{field}")
                    )
            yield "import copyreg, numpy"
            yield f"def made_{name}(*values):"
            yield f"    one = cython.cast({name}, {name}.__new__({name}))"
            yield f"    {', '.join(f'one.{field}' for field, _ in values)}, = values"
            yield "    return one"
            yield f"def parts_{name}(given):"
            yield f"    one = cython.cast({name}, given)"
            yield f"    return made_{name}, ({', '.join(value for _, value in values)},)"
            yield f"copyreg.pickle({name}, parts_{name})"


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


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
        modules, homes = [], dict[str, str]()
        for kernel in about["KERNELS"]:
            path = about["source_of"](kernel, package)
            modules.append(Module(kernel, path, _constants(package, path), homes))
        shared = [Cython.__version__, sys.version, *FLAGS, repr(DIRECTIVES), *compiler()]
        shared += [module.declarations for module in modules]
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
            key = hashlib.sha256("\0".join([*shared, text]).encode()).hexdigest()
            mark = target.with_suffix(".key")
            if not (target.exists() and mark.exists() and mark.read_text() == key):
                mark.unlink(missing_ok=True)
                todo.append((source, target, mark, key))
        for module in modules:
            declared = work.joinpath(*module.name.split(".")).with_suffix(".pxd")
            declared.write_text(module.declarations)
            for parent in declared.relative_to(work).parents[:-1]:
                (work / parent / "__init__.py").touch()
        if todo:
            command = _found(compiler())
            say(f"Compiling {len(todo)} modules of the engine, which takes up to a minute ...")
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                list(pool.map(lambda one: _compile(work, command, about["SHARED"], *one), todo))
        _write(about["sources_file"](), about["checksum"](package).encode())


def _found(command: list[str]) -> list[str]:
    if not command:
        raise RuntimeError(
            "hpcrowd's engine needs a C compiler to be installed: none of cc, gcc and clang is in "
            "PATH; install one, such as the package gcc"
        )
    return command


@cache
def _constants(package: Path, path: Path) -> dict[str, Any]:
    """Return the names in capital letters of a module, as far as they are numbers."""
    found: dict[str, Any] = {"__builtins__": {"range": range, "int": int}, "pi": math.pi}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hpcrowd."):
            source = package.joinpath(*str(node.module).split(".")[1:]).with_suffix(".py")
            wanted = {alias.name for alias in node.names if alias.name.isupper()}
            if wanted:
                others = _constants(package, source)
                found |= {name: others[name] for name in wanted if name in others}
        elif isinstance(node, ast.Assign):
            with contextlib.suppress(Exception):  # made of something that is not a number
                exec(compile(ast.Module([node], []), str(path), "exec"), found)
    return {name: v for name, v in found.items() if isinstance(v, int | float)}


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
    _run([sys.executable, "-m", "cython", *words], folder, f"{source.name} is not translated")
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
