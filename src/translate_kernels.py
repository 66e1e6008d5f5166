"""Translates the modules of ``hpcrowd.kernels`` for Cython; see ``build_kernels.py``.

A module is ordinary Python in which functions and attributes of classes are annotated. Here

* annotations become types of C, in a ``.pxd`` file: ``int`` is int64_t, ``bool`` bint, ``float``
  double, ``Int64s`` and ``Float64s`` contiguous arrays of them (``Int64Rows``, ``Float64Rows`` of
  two dimensions), a tuple one of C, and a class of these modules itself. Local variables get the
  types of what is assigned to them;
* numbers that have a name in capital letters become literals, and functions of :mod:`math` those
  of C;
* a name that stands for an array of an object, or for a row of one (``Row`` in
  ``environment/engine/kernel/arrays.py``), is replaced by that, and small functions are put in the
  place of their calls.

Everything else is Cython. Functions and methods whose name begins with an underscore can be called
in these modules only, and are as fast as in C. Arithmetic and division are those of Python, but
integers have 64 bits, and indexes are not checked.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import math
from collections.abc import Iterator
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

#: Types of C by annotation; others are Python's.
TYPES = {
    "int": "int64_t", "bool": "bint", "float": "double", "None": "void",
    "Int64s": "int64_t[::1]", "Float64s": "double[::1]",
    "Int64Rows": "int64_t[:, ::1]", "Float64Rows": "double[:, ::1]",
    "Int64Blocks": "int64_t[:, :, ::1]", "Int64Steps": "int64_t[:]",
}  # fmt: skip

#: Types that numbers are cast to, by the function of Python that makes one.
CASTS = {"int": "int64_t", "float": "cython.double"}

#: What functions of Python return.
CALLS = {
    "int": "int64_t", "float": "double", "bool": "bint", "len": "int64_t", "floor": "int64_t",
    "ceil": "int64_t", "frexp": "(double, int64_t)",
    **dict.fromkeys(
        ("sqrt", "exp", "log", "log2", "log10", "cos", "sin", "ldexp", "rint", "pow"), "double"
    ),
}  # fmt: skip

#: How a function of C reports an exception, by type: by a number that it is not likely to return,
#: since after that number it is asked whether there was one.
RAISES = {
    "int64_t": "except? -9223372036854775807", "double": "except? -1.2345678901234567e300",
    "bint": "except -1", "int": "except -1",
}  # fmt: skip

#: Numbers of :mod:`math`.
MATHS = {"pi": math.pi, "inf": math.inf}

#: The fraction and the power of two of a number, as :func:`math.frexp` returns them.
FREXP = """cdef extern from "math.h":
    double frexp_of_c "frexp"(double, int*)
cdef inline (double, int64_t) frexp(double number) noexcept:
    cdef int power = 0
    cdef double part = frexp_of_c(number, &power)
    return part, power"""

#: Functions with at most this number of statements are put in the place of their calls, under names
#: with this ending, as calls copy the descriptions of arrays.
MOST_STATEMENTS = 24
INLINE = "_inline"

#: Largest literal that Cython takes as a number of C.
LARGEST_LITERAL = 2**31


class Declarations:
    """What the modules before declare: classes with their fields, and functions.

    Attributes
    ----------
    homes
        The modules of classes and functions, by name.
    fields
        The C types of the fields of each class, by the names of both.
    views
        The array and the row that other attributes of a class stand for, or the column, by the
        names of both.
    returns
        The C type of what a function returns, by its name, of a method after that of its class, and
        its module before it.
    small
        Functions that are put in the place of their calls, by module and name.
    """

    def __init__(self) -> None:
        self.homes: dict[str, set[str]] = {}
        self.returns: dict[tuple[str, str], str] = {}
        self.small: set[tuple[str, str]] = set()
        self.fields: dict[str, dict[str, str]] = {}
        self.views: dict[str, dict[str, tuple[str, int, bool]]] = {}

    def type_of(self, node: ast.expr | None) -> str:
        """Return the type of C for an annotation."""
        word = ast.unparse(node).strip("'\"") if node is not None else ""
        if word in TYPES or word in self.fields:
            return TYPES.get(word, word)
        if isinstance(node, ast.Subscript):
            kind = ast.unparse(node.value)
            if kind == "tuple":
                parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                return f"({', '.join(map(self.type_of, parts))})"
            return kind if kind == "list" else "object"
        return "object"


class Module(ast.NodeTransformer):
    """A module as Cython reads it.

    Parameters
    ----------
    name, path
        Its name and file.
    values
        Its numbers by name; of another module whose name is ``M`` here as ``M.NAME``.
    known
        Declarations of earlier modules; those of this one are added.
    released
        Functions that let other threads run; None if functions may need objects of Python.
    """

    def __init__(
        self,
        name: str,
        path: Path,
        values: dict[str, Any],
        known: Declarations,
        released: tuple[str, ...] | None = None,
    ) -> None:
        self.name = name
        self._released = released
        self._tree = ast.parse(path.read_text())
        self._values = values
        self._known = known
        self._class = ""
        self._views_of: dict[str, dict[str, tuple[str, Any]]] = {}
        self._void = False
        self._count: dict[str, int] = {}
        self._locals: dict[str, str] = {}
        self._aliases: dict[str, ast.expr] = {}
        self._from = dict[str, str]()  # the modules of names of other modules, and of this one
        for node in self._tree.body:
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if node.module in known.homes.get(alias.name, ()):
                        self._from[alias.name] = node.module
            elif isinstance(node, ast.ClassDef | ast.FunctionDef):
                known.homes.setdefault(node.name, set()).add(name)
                self._from[node.name] = name
                if isinstance(node, ast.ClassDef):
                    known.fields[node.name] = {}
        for node in self._tree.body:
            if isinstance(node, ast.FunctionDef):
                known.returns[name, node.name] = known.type_of(node.returns)
                kinds = [known.type_of(one.annotation) for one in node.args.args]
                kinds.append(known.type_of(node.returns))
                if "object" not in kinds and _size(node) <= MOST_STATEMENTS:
                    known.small.add((name, node.name))
            elif isinstance(node, ast.ClassDef):
                known.fields[node.name] |= {
                    field: known.type_of(item.annotation) for field, item in _fields(node)
                }
                known.views[node.name] = dict(self._views(node))
                for item in node.body:
                    if isinstance(item, ast.FunctionDef):
                        kind = known.type_of(item.returns)
                        known.returns[name, f"{node.name}.{item.name}"] = kind
        self.declarations = "\n".join(self._declared()) + "\n"
        self.text = self._translated()

    def _views(self, node: ast.ClassDef) -> Iterator[tuple[str, tuple[str, int, bool]]]:
        """Yield names for rows of arrays of a class: the array, the number, whether of a column."""
        for item in node.body:
            if isinstance(item, ast.Assign) and _is_field(item):
                assert isinstance(item.value, ast.Call)
                target, (array, number) = item.targets[0], item.value.args
                column = ast.unparse(item.value.func) == "fields"
                assert isinstance(array, ast.Constant)
                if isinstance(target, ast.Tuple):
                    for row, name in enumerate(target.elts):
                        yield ast.unparse(name), (array.value, row, column)
                else:
                    known = number.value if isinstance(number, ast.Constant) else None
                    row = self._values.get(ast.unparse(number), known)
                    yield ast.unparse(target), (array.value, row, column)

    def _declared(self) -> Iterator[str]:
        """Yield the lines of the .pxd file."""
        yield "cimport cython"
        yield "from libc.stdint cimport int64_t"
        for node in self._tree.body:
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    home = self._from.get(alias.name, "")
                    if home:
                        small = (home, alias.name) in self._known.small
                        yield f"from {home} cimport {alias.name}{INLINE if small else ''}"
                if node.module == "math":
                    used = [a.name for a in node.names if callable(getattr(math, a.name))]
                    if "frexp" in used:
                        used.remove("frexp")
                        yield FREXP
                    if used:
                        yield f"from libc.math cimport {', '.join(used)}"
        for node in self._tree.body:
            if isinstance(node, ast.ClassDef):
                yield "@cython.final"
                yield f"cdef class {node.name}:"
                yield from (
                    f"    cdef public {kind} {field}"
                    for field, kind in self._known.fields[node.name].items()
                )
                for item in node.body:
                    if isinstance(item, ast.FunctionDef) and not item.name.startswith("__"):
                        yield from (f"    {line}" for line in self._signature(item, node.name))
                yield "    pass"
            elif isinstance(node, ast.FunctionDef):
                yield from self._signature(node, "")
                if (self.name, node.name) in self._known.small:
                    yield from self._inlined(node)

    def _inlined(self, node: ast.FunctionDef) -> Iterator[str]:
        """Yield the whole of a small function for the .pxd file."""
        *_, signature = self._signature(node, "")
        how, rest = signature.split(f" {node.name}(", 1)
        yield f"cdef inline {how.split(maxsplit=1)[1]} {node.name}{INLINE}({rest}:"
        for name, kind in self._kinds_of(node, "").items():
            yield f"    cdef {kind} {name}"
        body = self.visit_FunctionDef(copy.deepcopy(node)).body
        for line in ast.unparse(ast.fix_missing_locations(ast.Module(body, []))).split("\n"):
            yield f"    {line}"

    def _kinds_of(self, node: ast.FunctionDef, class_name: str) -> dict[str, str]:
        """Return the types of the local variables of a function that have one of C."""
        self._class = class_name
        self.visit_FunctionDef(copy.deepcopy(node))
        left_out = {one.arg for one in node.args.args} | set(self._aliases)
        return {
            name: kind
            for name, kind in self._locals.items()
            if name not in left_out and kind not in ("", "object")
        }

    def _signature(self, node: ast.FunctionDef, class_name: str) -> Iterator[str]:
        kinds = self._kinds_of(node, class_name)
        if kinds:
            yield f"@cython.locals({', '.join(f'{name}={kind}' for name, kind in kinds.items())})"
        arguments = [
            one.arg if one.arg == "self" else f"{self._known.type_of(one.annotation)} {one.arg}"
            for one in node.args.args
        ]
        for place in range(len(arguments) - len(node.args.defaults), len(arguments)):
            arguments[place] += "=*"
        kind = self._known.type_of(node.returns)
        if kind == "void":
            kind = "int"
        raises = "except *" if kind.startswith("(") else RAISES.get(kind, "")
        how = "cdef" if node.name.startswith("_") else "cpdef"
        free = "" if self._released is None else "nogil"
        yield f"{how} {kind} {node.name}({', '.join(arguments)}) {raises} {free}".rstrip()

    def _translated(self) -> str:
        """Return the source of Cython."""
        tree = self.visit(self._tree)
        lines = ast.unparse(ast.fix_missing_locations(tree)).split("\n")
        views = [f"views_{name} = {places!r}" for name, places in self._views_of.items()]
        return "\n".join(["# cython: language_level=3", *lines, *views, *self._copying()])

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.AST] | None:
        """Leave out what the .pxd file imports."""
        if node.module == "__future__":
            return [node, ast.Import([ast.alias("cython")])]
        if node.module == "math":
            return None
        node.names = [
            alias for alias in node.names
            if alias.name not in self._from
        ]  # fmt: skip
        return node if node.names else None

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Give a dataclass its constructor; fields are in the .pxd file."""
        fields, self._class = list(_fields(node)), node.name
        if node.decorator_list:
            node.decorator_list = []
            arguments = [field for field, _ in fields]
            body = "; ".join(f"self.{field} = {field}" for field in arguments) or "pass"
            made = ast.parse(f"def __init__(self, {', '.join(arguments)}): {body}").body[0]
            assert isinstance(made, ast.FunctionDef)
            made.args.defaults = [item.value for _, item in fields if item.value is not None]
            node.body.append(made)
        node.body = [item for item in node.body if not _is_field(item)]
        self.generic_visit(node)
        views = self._known.views[node.name]
        if views:  # for callers in Python
            places = {
                name: (array, (..., row) if column else row)
                for name, (array, row, column) in views.items()
            }
            lines = (
                f"def __getattr__(self, name):\n"
                f"    if name not in views_{node.name}: raise AttributeError(name)\n"
                f"    array, at = views_{node.name}[name]\n"
                f"    return numpy.asarray(getattr(self, array))[at]\n"
            )
            node.body += ast.parse(lines).body
            self._views_of[node.name] = places
        return node

    def _kind_of_view(self, class_name: str, name: str) -> str:
        """Return the type of what a name for a row of an array stands for."""
        array, row, column = self._known.views[class_name][name]
        whole = ast.Attribute(_typed(class_name), array, ast.Load())
        if column:
            return f"{_element(self._kind(whole))}[:]"
        return self._part(whole, ast.Constant(row))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Translate a function; its arguments have types in the .pxd file."""
        self._check(node)
        self._locals_of(node)
        self._aliases = {}
        self._void = node.returns is not None and ast.unparse(node.returns) == "None"
        self._void &= not node.name.startswith("__")
        self._count = _assigned(node)
        node.body = self._block(node.body)
        if node.name in (self._released or ()):
            free = ast.parse("with cython.nogil: pass").body[0]
            assert isinstance(free, ast.With)
            free.body, node.body[1:] = node.body[1:], [free]  # after the docstring
        for one in node.args.args:
            one.annotation = None
        node.returns = None
        return node

    def _check(self, node: ast.FunctionDef) -> None:
        """Refuse indexes that count from the end, which compiled code does not know."""
        for one in ast.walk(node):
            if isinstance(one, ast.Subscript):
                places = one.slice.elts if isinstance(one.slice, ast.Tuple) else [one.slice]
                if any(ast.unparse(place).startswith("-") for place in places):
                    raise RuntimeError(f"{self.name}, line {one.lineno}: an index below 0")

    def _block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for one in statements:
            made = self.visit(one)
            found += made if isinstance(made, list) else [made] if made is not None else []
        return found or [ast.Pass()]

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        """Leave out names for arrays of an object, which stand for the array itself.

        A name of its own would count references to the array, which takes longer than most
        functions.
        """
        target = node.targets[0]
        pairs = [(target, node.value)]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(target.elts, node.value.elts, strict=True))
        kept: list[tuple[ast.expr, ast.expr]] = []
        for name, old in pairs:
            value = self.visit(old)
            kind = self._kind(value)
            stands = "[" in kind or kind in self._known.fields
            if isinstance(name, ast.Name) and stands and self._steady(value, name.id):
                self._aliases[name.id] = value
                continue
            kept.append((self.visit(name), value))
        if not kept:
            return None
        if len(kept) == len(pairs) == 1:
            return ast.Assign([self.visit(one) for one in node.targets], kept[0][1])
        if len(kept) == 1:
            return ast.Assign([kept[0][0]], kept[0][1])
        return ast.Assign(
            [ast.Tuple([name for name, _ in kept], ast.Store())],
            ast.Tuple([value for _, value in kept], ast.Load()),
        )

    def _steady(self, node: ast.expr, name: str) -> bool:
        """Return whether a name is always that of one attribute, or row of one, of one object."""
        if self._count[name] > 1 or not (isinstance(node, ast.Attribute) or hasattr(node, "view")):
            return False
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        return isinstance(node, ast.Name) and self._count.get(node.id, 0) <= 1

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        """Translate a local variable, whose type is in the .pxd file."""
        if node.value is None:
            return None
        value = self.visit(node.value)
        kind = self._known.type_of(node.annotation)
        if kind in self._known.fields:
            value = _call("cython.cast", ast.Name(kind, ast.Load()), value)
        return ast.Assign([node.target], value)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        """Let a function without a value return 0, which reports that nothing was raised."""
        self.generic_visit(node)
        return ast.Return(ast.Constant(0)) if self._void and node.value is None else node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Put arrays and numbers in the place of their names."""
        if not isinstance(node.ctx, ast.Load):
            return node
        if node.id in self._aliases:
            return self._aliases[node.id]
        return self._number(node.id) or node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """Let large numbers have 64 bits."""
        return _literal(node.value) if _is_whole(node.value) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Put numbers of other modules, and rows of arrays, in the place of their names."""
        if isinstance(node.value, ast.Name):
            found = self._number(f"{node.value.id}.{node.attr}")
            if found is not None:
                return found
        view = self._known.views.get(self._kind(node.value), {}).get(node.attr)
        self.generic_visit(node)
        if view is None:
            return node
        array, row, column = view
        whole = ast.Attribute(node.value, array, ast.Load())
        place: list[ast.expr] = [ast.Constant(row)]
        if column:
            place.insert(0, ast.Slice())
        made = ast.Subscript(whole, _index(place), node.ctx)
        made.view = row, column  # type: ignore[attr-defined]
        return made

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Let a place in a row be one index."""
        self.generic_visit(node)
        if not hasattr(node.value, "view"):
            return node
        row, column = node.value.view
        places = [*node.slice.elts] if isinstance(node.slice, ast.Tuple) else [node.slice]
        places.insert(len(places) if column else 0, ast.Constant(row))
        return ast.Subscript(node.value.value, _index(places), node.ctx)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Let numbers that are shifted have 64 bits; in C a literal has 32."""
        self.generic_visit(node)
        if isinstance(node.op, ast.LShift):
            node.left = _cast("int", node.left)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Let all parts be truths if one is, since Cython takes others for objects."""
        kinds = set(map(self._kind, node.values))
        self.generic_visit(node)
        if "bint" in kinds and len(kinds) > 1:
            node.values = [
                one if isinstance(one, ast.Compare | ast.BoolOp) else _truth(one)
                for one in node.values
            ]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Let a truth be a number if the other part is one."""
        kinds = self._kind(node.body), self._kind(node.orelse)
        self.generic_visit(node)
        if set(kinds) == {"bint", "int64_t"}:
            node.body, node.orelse = _cast("int", node.body), _cast("int", node.orelse)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Convert numbers as C does."""
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if (self._from.get(name, ""), name) in self._known.small:
            return ast.Call(ast.Name(name + INLINE, ast.Load()), node.args, [])
        if name in ("int", "float"):
            return _cast(name, node.args[0])
        if name in ("floor", "ceil"):
            return _cast("int", node)
        if name == "bool":
            return _truth(node.args[0])
        return node

    def _number(self, name: str) -> ast.expr | None:
        """Return the number that a name stands for, if it is one of those in capital letters."""
        value = self._values.get(name)
        if value is None or not (name.rpartition(".")[2].isupper() or name in MATHS):
            return None
        if isinstance(value, tuple):
            return ast.Tuple([_literal(one) for one in value], ast.Load())
        return _literal(value)

    def _locals_of(self, node: ast.FunctionDef) -> dict[str, str]:
        """Return the types of the local variables of a function, as far as they are known."""
        given = {one.arg: self._known.type_of(one.annotation) for one in node.args.args}
        if "self" in given:
            given["self"] = self._class
        for one in ast.walk(node):
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                given[one.target.id] = self._known.type_of(one.annotation)
        found = self._locals = dict(given)
        for _ in range(4):  # types of variables that depend on each other
            before = dict(found)
            for name, kind in self._assignments(node):
                if name not in given and kind:
                    found[name] = _joined(found.get(name, kind), kind)
            if found == before:
                break
        return found

    def _assignments(self, node: ast.AST) -> Iterator[tuple[str, str]]:
        """Yield names that get a value, each with the type of it."""
        for one in ast.walk(node):
            if isinstance(one, ast.Assign):
                for target in one.targets:
                    yield from self._unpacked(target, one.value)
            elif isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name):
                yield one.target.id, self._kind(ast.BinOp(one.target, one.op, one.value))
            elif isinstance(one, ast.For) and isinstance(one.target, ast.Name):
                kind = self._kind(one.iter)
                if isinstance(one.iter, ast.Call) or kind.startswith("("):
                    yield one.target.id, "int64_t"
                elif "[" in kind:
                    yield one.target.id, _element(kind)

    def _unpacked(self, target: ast.expr, value: ast.expr) -> Iterator[tuple[str, str]]:
        if isinstance(target, ast.Name):
            yield target.id, self._kind(value)
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, part in zip(target.elts, value.elts, strict=True):
                yield from self._unpacked(one, part)
        elif isinstance(target, ast.Tuple):
            parts = _parts(self._kind(value))
            for one, kind in zip(target.elts, parts, strict=False):
                if isinstance(one, ast.Name):
                    yield one.id, kind

    def _kind(self, node: ast.AST) -> str:
        """Return the type of an expression as far as it is known; empty otherwise."""
        match node:
            case ast.Constant(value=value):
                return {bool: "bint", int: "int64_t", float: "double"}.get(type(value), "")
            case ast.Name(id=name):
                known = getattr(node, "kind", "") or self._locals.get(name, "")
                return known or self._kind(ast.Constant(self._values.get(name)))
            case ast.Attribute(value=value, attr=name):
                if isinstance(value, ast.Name) and f"{value.id}.{name}" in self._values:
                    return "int64_t" if _is_whole(self._values[f"{value.id}.{name}"]) else "double"
                kind = self._kind(value)
                if name in self._known.views.get(kind, ()):
                    return self._kind_of_view(kind, name)
                return self._known.fields.get(kind, {}).get(name, "")
            case ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return "bint"
            case ast.UnaryOp(operand=operand):
                return _joined(self._kind(operand), "int64_t")
            case ast.BinOp(left=left, op=op, right=right):
                if isinstance(op, ast.Div):
                    return "double"
                kinds = self._kind(left), self._kind(right)
                return _joined(_joined(*kinds), "int64_t") if all(kinds) else ""
            case ast.BoolOp(values=values):
                kinds = tuple(map(self._kind, values))
                return kinds[0] if len(set(kinds)) == 1 else "bint" if all(kinds) else ""
            case ast.IfExp(body=body, orelse=other):
                kinds = self._kind(body), self._kind(other)
                return _joined(*kinds) if all(kinds) else ""
            case ast.Tuple(elts=parts):
                return f"({', '.join(map(self._kind, parts))})"
            case ast.Subscript(value=value, slice=place):
                return self._part(value, place)
            case ast.Call(func=function, args=arguments):
                return self._called(function, arguments)
        return ""

    def _part(self, value: ast.expr, place: ast.expr) -> str:
        """Return the type of what is at a place of an array, or of another thing."""
        if isinstance(value, ast.Attribute) and value.attr == "shape":
            return "int64_t"
        kind = self._kind(value)
        if kind.startswith("(") and isinstance(place, ast.Constant):
            return _parts(kind)[place.value]
        if "[" not in kind:
            return ""
        places = place.elts if isinstance(place, ast.Tuple) else [place]
        left = kind.count(",") + 1 - len(places)
        left += sum(isinstance(one, ast.Slice) for one in places)
        if not left:
            return _element(kind)
        last = places[-1]
        close = ("[:, ::1]" in kind and len(places) == 1) or isinstance(last, ast.Slice)
        close &= not (isinstance(last, ast.Slice) and last.step is not None)
        close &= "::1" in kind
        return f"{_element(kind)}[{', '.join([':'] * (left - 1) + ['::1' if close else ':'])}]"

    def _called(self, function: ast.expr, arguments: list[ast.expr]) -> str:
        """Return the type of what a function returns."""
        if isinstance(function, ast.Attribute):
            kind = self._kind(function.value)
            for home in self._known.homes.get(kind, ()):
                return self._known.returns.get((home, f"{kind}.{function.attr}"), "")
            return ""
        if not isinstance(function, ast.Name):
            return ""
        name = function.id
        if name in ("min", "max"):
            kinds = tuple(map(self._kind, arguments))
            return functools.reduce(_joined, kinds) if all(kinds) else ""
        if name == "abs":
            return self._kind(arguments[0])
        if name in self._known.fields:
            return name
        return CALLS.get(name) or self._known.returns.get((self._from.get(name, ""), name), "")

    def _copying(self) -> Iterator[str]:
        """Yield lines that let classes be pickled and copied, as those of Python are."""
        for name, fields in self._known.fields.items():
            if self._from.get(name, "") != self.name:
                continue
            values = [
                f"numpy.asarray(one.{field})" if "[" in kind else f"one.{field}"
                for field, kind in fields.items()
            ]
            yield "import copyreg, numpy"
            yield f"def made_{name}(*values):"
            yield f"    one = cython.cast({name}, {name}.__new__({name}))"
            yield f"    {', '.join(f'one.{field}' for field in fields)}, = values"
            yield "    return one"
            yield f"def parts_{name}(given):"
            yield f"    one = cython.cast({name}, given)"
            yield f"    return made_{name}, ({', '.join(values)},)"
            yield f"copyreg.pickle({name}, parts_{name})"


def _index(places: list[ast.expr]) -> ast.expr:
    """Return what is between the brackets of an index."""
    return ast.Tuple(places, ast.Load()) if len(places) > 1 else places[0]


def _typed(kind: str) -> ast.Name:
    """Return a name that stands for something of a type."""
    name = ast.Name("one", ast.Load())
    name.kind = kind  # type: ignore[attr-defined]
    return name


def _size(node: ast.AST) -> int:
    """Return how many statements there are in a function."""
    return sum(isinstance(one, ast.stmt) for one in ast.walk(node))


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, ast.AnnAssign]]:
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            yield item.target.id, item


def _is_field(item: ast.stmt) -> bool:
    """Return whether a statement of a class says what attributes it has."""
    if isinstance(item, ast.Assign) and isinstance(item.value, ast.Call):
        return ast.unparse(item.value.func) in ("Row", "rows", "fields")
    return isinstance(item, ast.AnnAssign)


def _assigned(node: ast.FunctionDef) -> dict[str, int]:
    """Return how often each name gets a value in a function."""
    found = dict.fromkeys((one.arg for one in node.args.args), 1)
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            found[one.id] = found.get(one.id, 0) + 1
    return found


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _literal(value: float) -> ast.expr:
    """Return a number as an expression; whole numbers have 64 bits, and fractions may be inf."""
    if not _is_whole(value):
        return ast.Constant(value)
    number = int(value)
    sign: ast.expr = ast.Constant(abs(number))
    if number < 0:
        sign = ast.UnaryOp(ast.USub(), sign)
    return sign if abs(number) < LARGEST_LITERAL else _cast("int", sign)


def _cast(kind: str, node: ast.expr) -> ast.expr:
    return _call("cython.cast", ast.parse(CASTS[kind], mode="eval").body, node)


def _truth(node: ast.expr) -> ast.expr:
    return ast.Compare(node, [ast.NotEq()], [ast.Constant(0)])


def _joined(one: str, other: str) -> str:
    """Return the type of a variable that has values of two."""
    numbers = ("bint", "int64_t", "double")
    if one in numbers and other in numbers:
        return numbers[max(numbers.index(one), numbers.index(other))]
    return one if one == other else ""


def _element(kind: str) -> str:
    return kind.partition("[")[0]


def _parts(kind: str) -> list[str]:
    """Return the types of the parts of a tuple."""
    return kind[1:-1].split(", ") if kind.startswith("(") else []


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.parse(name, mode="eval").body, list(arguments), [])


def constants(package: Path, path: Path) -> dict[str, Any]:
    """Return the numbers of a module, and tuples of them, by their names in it."""
    found = dict[str, Any]()
    for name, value in _names(package, path).items():
        if isinstance(value, type):
            found |= (
                {f"{name}.{one.name}": int(one) for one in value}
                if issubclass(value, IntEnum)
                else {}
            )
        else:
            found[name] = value
    return found


@cache
def _names(package: Path, path: Path) -> dict[str, Any]:
    """Return the numbers of a module, and its classes of numbers, by their names in it."""
    found: dict[str, Any] = {
        "__builtins__": {"range": range, "int": int, "__build_class__": __build_class__},
        "__name__": path.stem, "IntEnum": IntEnum, **MATHS,
    }  # fmt: skip
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hpcrowd."):
            source = package.joinpath(*str(node.module).split(".")[1:])
            for alias in node.names:
                within, name = source / f"{alias.name}.py", alias.asname or alias.name
                if within.exists():
                    others = _names(package, within)
                    found |= {f"{name}.{key}": value for key, value in others.items()}
                elif source.with_suffix(".py").exists() and not alias.name.islower():
                    others = _names(package, source.with_suffix(".py"))
                    if alias.name in others:
                        found[name] = others[alias.name]
        elif isinstance(node, ast.Assign | ast.ClassDef):
            with contextlib.suppress(Exception):  # made of something that is not a number
                exec(compile(ast.Module([node], []), str(path), "exec"), found)
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, int | float)
        or (isinstance(value, type) and name != "IntEnum")
        or (isinstance(value, tuple) and all(isinstance(one, int | float) for one in value))
    }
