"""Symbols that stand for the arrays and numbers of a queue, and note what a formula does with them.

They know the operators, functions and methods of numpy that are listed at the end. Whatever needs
a value raises an exception, such as a branch, a loop over jobs, or printing one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from hpcrowd.environment.engine.kernel import formula as F

#: What stands for the operation of a column.
COLUMN = -1

# Kinds of values. Of truth values + is *or*, and whole numbers are not divided as others are.
TRUTH, INTEGER, REAL = range(3)


class UntraceableError(Exception):
    """The formula cannot be turned into a program."""


@dataclass(eq=False, frozen=True)
class Node:
    """A column of the queue, a number, or the result of an operation."""

    operation: int
    operands: tuple[Node, ...]
    wide: bool  # a value for each job
    kind: int
    place: int = 0  # of a column or a number
    value: float | None = None  # of a constant


class Symbol(NDArrayOperatorsMixin):
    """Stands for an array or a number in a formula."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **keywords: Any) -> Any:
        out = keywords.pop("out", None)
        if method != "__call__" or keywords:
            raise UntraceableError
        node = _OPERATIONS[ufunc](*given).node
        if out is None or not out[0].node.wide:  # numbers do not change in place
            return Symbol(node)
        out[0].node = node
        return out[0]

    def __array_function__(self, function: Any, _: Any, given: Any, keywords: Any) -> Any:
        return _FUNCTIONS[function.__name__](*given, **keywords)

    def __getattr__(self, name: str) -> Any:
        if name == "size":
            return _size(self)
        if name in _FUNCTIONS and not name.startswith("_"):
            return partial(_FUNCTIONS[name], self)
        raise AttributeError(name)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise UntraceableError

    __bool__ = __array__ = __repr__ = _refuse


def _node(value: Any) -> Node:
    if isinstance(value, Symbol):
        return value.node
    if not isinstance(value, bool | int | float | np.number | np.bool):
        raise UntraceableError
    whole = INTEGER if isinstance(value, int | np.integer) else REAL
    kind = TRUTH if isinstance(value, bool | np.bool) else whole
    return Node(F.NUMBER, (), False, kind, value=float(value))


def made(operation: int, *given: Any) -> Symbol:
    """Return the result of an operation on symbols and numbers."""
    nodes = tuple(map(_node, given))
    wide, kind = any(node.wide for node in nodes), max(node.kind for node in nodes[-2:])
    if kind == TRUTH and operation in (F.ADD, F.MULTIPLY):
        operation = F.MAXIMUM if operation == F.ADD else F.MINIMUM
    elif operation in (F.REMAINDER, F.FLOOR_DIVIDE, F.POWER):
        if kind < REAL and not (nodes[1].value or 0) > 0:
            raise UntraceableError
        kind = max(kind, INTEGER)
    elif operation in (F.EQUAL, F.LESS, F.LESS_EQUAL):
        kind = TRUTH
    elif operation == F.DIVIDE or F.SQRT <= operation <= F.COS:
        kind = REAL
    return Symbol(Node(operation, nodes, wide, kind))


def _power(x: Any, y: Any) -> Any:
    value = _node(y).value
    if value in (1.0, 2.0, 3.0):
        return x if value == 1.0 else x * x if value == 2.0 else x * x * x
    return np.sqrt(x) if value == 0.5 else made(F.POWER, x, y)


def _true(x: Any) -> Any:
    return x if _node(x).kind == TRUTH else x != 0


def _of_truths(operation: int, *given: Any) -> Any:
    if any(_node(one).kind != TRUTH for one in given):
        raise UntraceableError
    return made(operation, *given)


def _tanh(x: Any) -> Any:
    part = np.expm1(-2.0 * abs(x))
    return -np.sign(x) * part / (part + 2.0)


#: What functions of numpy do with symbols, by the function; operators are functions, too.
_OPERATIONS: dict[Any, Callable[..., Any]] = {
    getattr(np, name): partial(made, getattr(F, name.upper()))
    for name in (
        "add", "subtract", "multiply", "divide", "remainder", "floor_divide", "minimum", "maximum",
        "equal", "less", "less_equal", "absolute", "sqrt", "exp", "expm1", "log", "log2", "log10",
        "log1p", "floor", "rint", "sin", "cos",
    )
} | {
    np.power: _power,
    np.negative: lambda x: x * -1,
    np.positive: lambda x: x,
    np.greater: lambda x, y: made(F.LESS, y, x),
    np.greater_equal: lambda x, y: made(F.LESS_EQUAL, y, x),
    np.not_equal: lambda x, y: made(F.EQUAL, made(F.EQUAL, x, y), 0),
    np.logical_not: lambda x: made(F.EQUAL, x, 0),
    np.logical_and: lambda x, y: made(F.MINIMUM, _true(x), _true(y)),
    np.logical_or: lambda x, y: made(F.MAXIMUM, _true(x), _true(y)),
    np.bitwise_and: partial(_of_truths, F.MINIMUM),
    np.bitwise_or: partial(_of_truths, F.MAXIMUM),
    np.invert: lambda x: made(F.EQUAL, _of_truths(F.MAXIMUM, x, x), 0),
    np.isnan: lambda x: x != x,
    np.isfinite: lambda x: abs(x) < np.inf,
    np.isinf: lambda x: abs(x) == np.inf,
    np.fabs: lambda x: abs(x) * 1.0,
    np.square: lambda x: x * x,
    np.reciprocal: lambda x: 1.0 / x,
    np.exp2: lambda x: made(F.POWER, 2.0, x),
    np.cbrt: lambda x: np.sign(x) * abs(x) ** (1 / 3),
    np.sign: lambda x: _where(x != x, x, (x > 0) * 1 - (x < 0) * 1),
    np.ceil: lambda x: -np.floor(-x),
    np.trunc: lambda x: _where(x < 0, np.ceil(x), np.floor(x)),
    np.tanh: _tanh,
}  # fmt: skip


def _where(condition: Any, x: Any, y: Any) -> Any:
    return made(F.WHERE, condition, x, y)


def _clip(a: Any, a_min: Any = None, a_max: Any = None) -> Any:
    above = a if a_min is None else made(F.MAXIMUM, a, a_min)
    return above if a_max is None else made(F.MINIMUM, above, a_max)


def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = _where(condition, choice, result)
    return result


def _reduced(operation: int, a: Any) -> Any:
    node = _node(a)
    if not node.wide:
        raise UntraceableError
    kind = max(node.kind, INTEGER) if operation == F.SUM else node.kind
    return Symbol(Node(operation, (node,), False, kind))


def _size(a: Any) -> Any:
    if not _node(a).wide:
        raise UntraceableError
    return Symbol(Node(F.NUMBER, (), False, INTEGER, F.COUNT))


def _mean(a: Any) -> Any:
    return _reduced(F.SUM, a) / _size(a)


def _var(a: Any) -> Any:
    return _mean(np.square(a - _mean(a)))


#: The same for other functions and for methods, by name.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": _where,
    "clip": _clip,
    "select": _select,
    "sum": partial(_reduced, F.SUM),
    "min": partial(_reduced, F.SMALLEST),
    "max": partial(_reduced, F.LARGEST),
    "amin": partial(_reduced, F.SMALLEST),
    "amax": partial(_reduced, F.LARGEST),
    "any": lambda a: _reduced(F.LARGEST, _true(a)),
    "all": lambda a: _reduced(F.SMALLEST, _true(a)),
    "size": _size,
    "mean": _mean,
    "var": _var,
    "std": lambda a: np.sqrt(_var(a)),
    "copy": lambda a: Symbol(_node(a)),
    "zeros_like": lambda a: _where(a == a, 0.0, 0.0),
    "ones_like": lambda a: _where(a == a, 1.0, 1.0),
}
