"""Turns formulas over the queue into programs for compiled code.

A formula is called once with symbols instead of arrays. What it does with them becomes a list of
steps, which :mod:`hpcrowd.environment.engine.kernel.formula` computes before each pass. A formula
that needs values on the way, say for a branch, is called with arrays at each pass instead.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from hpcrowd.environment.engine.kernel import formula as F
from hpcrowd.environment.engine.passes.symbols import COLUMN, INTEGER, REAL, Node, Symbol, made
from hpcrowd.environment.jobs import Float64s, Int64Rows
from hpcrowd.environment.schedulers.policies.priority import ARRAYS, Queue

#: Steps that a program may have; each result takes room for all jobs.
MOST_STEPS = 500

#: Jobs in the queues on which a program is compared with its formula.
TRIALS = (1, 2, 7, 40)

#: Largest relative difference from the formula; scores are compared to twelve digits.
TOLERANCE = 1e-9


class Program(NamedTuple):
    """A formula for :func:`hpcrowd.environment.engine.kernel.formula.evaluate`."""

    steps: Int64Rows
    numbers: Float64s  #: the places for those of a pass, then constants
    rows: int  #: of the view, with the columns of the queue and room for results


def traced(formula: Callable[..., Any], options: Mapping[str, Any]) -> Program | None:
    """Return the program of a formula; None if there is none, or if it fails.

    Parameters
    ----------
    formula
        Takes an object with the options, and a :class:`Queue`; such as ``Priority.score``.
    options
        By name. They become constants.
    """
    given = SimpleNamespace(**options)
    with contextlib.suppress(Exception), np.errstate(all="ignore"):  # a formula may do anything
        columns = [Symbol(Node(COLUMN, (), True, REAL, place)) for place in range(len(ARRAYS))]
        passes = [Symbol(Node(F.NUMBER, (), False, INTEGER, at)) for at in range(F.COUNT)]
        result = formula(given, Queue._make((*columns, *passes)))
        if isinstance(result, Symbol) and result.node.wide:
            program = _assembled(result.node)
            if len(program.steps) <= MOST_STEPS and _agrees(program, partial(formula, given)):
                return program
    return None


def _assembled(result: Node) -> Program:
    """Return the steps for a node; operations that occur twice are done once."""
    steps: list[tuple[int, ...]] = []
    numbers = [0.0] * F.GIVEN
    rows: dict[Any, int] = {}  # by operation and rows of the operands
    done: dict[Node, int] = {}

    def row_of(node: Node) -> int:
        if node.operation == COLUMN:
            return node.place
        if node in done:
            return done[node]
        operands = [row_of(one) for one in node.operands]
        key = (node.operation, *operands, node.place, repr(node.value))
        if key not in rows:
            rows[key] = len(ARRAYS) + len(steps)
            if node.value is not None:
                operands = [len(numbers)]
                numbers.append(node.value)
            elif node.operation == F.NUMBER:
                operands = [node.place]
            padded = [*operands, 0, 0][:3]
            wide = [one.wide for one in (node, *node.operands)]
            steps.append((node.operation, rows[key], *padded, *[*wide, False, False, False][:4]))
        done[node] = rows[key]
        return rows[key]

    row_of(result if result.operation != COLUMN else made(F.MULTIPLY, Symbol(result), 1.0).node)
    return Program(np.array(steps, np.int64), np.array(numbers), len(ARRAYS) + len(steps))


def _agrees(program: Program, formula: Callable[[Queue], Any]) -> bool:
    """Return whether program and formula give the same scores of some queues."""
    random = np.random.default_rng(0)
    for count in TRIALS:
        columns = np.floor(10.0 ** random.uniform(0.0, 5.0, (len(ARRAYS), count)))
        columns[3:] -= 1.0  # what may be 0
        now, total, free = (
            int(one) for one in random.integers([200_000, 300, 1], [10**8, 900, 300])
        )
        view, scores = np.zeros((program.rows, count)), np.zeros(count)
        view[: len(ARRAYS)] = columns
        F.evaluate(program.steps, program.numbers, view, count, now, total, free, scores)
        expected = np.asarray(formula(Queue._make((*columns, now, total, free))), np.float64)
        if expected.shape != scores.shape:
            return False
        if not np.allclose(scores, expected, TOLERANCE, 0.0, equal_nan=True):
            return False
    return True
