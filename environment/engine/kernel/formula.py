"""Computes formulas over the queue, as programs that ``engine/passes/formula.py`` makes of them.

A *step* of a program is a row: the operation, the row of the view for its result and those of up to
three operands, then for each of these 1 for a column, with a value for each job, and 0 for a single
number, which is the first of its row. Results are those of numpy with errors ignored.
"""

from __future__ import annotations

from math import (
    copysign,
    cos,
    exp,
    expm1,
    floor,
    fmod,
    inf,
    log,
    log1p,
    log2,
    log10,
    pow,  # noqa: A004
    sin,
    sqrt,
)

from hpcrowd.environment.jobs import Float64Rows, Float64s, Int64Rows

#: Operations on two operands; comparisons are 1 or 0.
(
    ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, FLOOR_DIVIDE, POWER, MINIMUM, MAXIMUM,
    EQUAL, LESS, LESS_EQUAL,
) = range(12)  # fmt: skip

#: Operations on one operand.
(
    ABSOLUTE, SQRT, EXP, EXPM1, LOG, LOG2, LOG10, LOG1P, FLOOR, RINT, SIN, COS,
) = range(12, 24)  # fmt: skip

#: A number of the program by its place; the second operand where the first is not 0, else the
#: third; and what makes a number of a column.
NUMBER, WHERE, SUM, SMALLEST, LARGEST = range(24, 29)

#: Places of numbers that differ from pass to pass; constants follow.
NOW, TOTAL, FREE, COUNT, GIVEN = range(5)

#: From here on all numbers are whole.
WHOLE = 2.0**52

#: Above this exp(x) is infinite.
LARGEST_EXPONENT = 709.782712893384


def evaluate(
    program: Int64Rows,
    numbers: Float64s,
    view: Float64Rows,
    count: int,
    now: int,
    total: int,
    free: int,
    scores: Float64s,
) -> None:
    """Write the scores of ``count`` jobs, whose columns are the first rows of the view.

    Its other rows are room for results. A program has at least one step; the last one computes the
    scores.
    """
    numbers[NOW], numbers[TOTAL], numbers[FREE], numbers[COUNT] = now, total, free, count
    target = 0
    for i in range(len(program)):
        operation, target, left = program[i, 0], program[i, 1], program[i, 2]
        right, third, n = program[i, 3], program[i, 4], count if program[i, 5] else 1
        a, b, c = program[i, 6], program[i, 7], program[i, 8]
        if operation == NUMBER:
            view[target, 0] = numbers[left]
        elif operation == WHERE:
            for k in range(n):
                if view[left, k * a] != 0.0:
                    view[target, k] = view[right, k * b]
                else:
                    view[target, k] = view[third, k * c]
        elif operation < ABSOLUTE:
            _combine(operation, view, target, left, right, a, b, n)
        elif operation < NUMBER:
            _apply(operation, view, target, left, a, n)
        else:
            view[target, 0] = _reduced(operation, view, left, count)
    for k in range(count):
        scores[k] = view[target, k]


def _combine(
    operation: int, view: Float64Rows, target: int, left: int, right: int, a: int, b: int, n: int
) -> None:
    if operation == ADD:
        for k in range(n):
            view[target, k] = float(view[left, k * a]) + float(view[right, k * b])
    elif operation == SUBTRACT:
        for k in range(n):
            view[target, k] = float(view[left, k * a]) - float(view[right, k * b])
    elif operation == MULTIPLY:
        for k in range(n):
            view[target, k] = float(view[left, k * a]) * float(view[right, k * b])
    elif operation == DIVIDE:
        for k in range(n):
            view[target, k] = _quotient(float(view[left, k * a]), float(view[right, k * b]))
    elif operation == REMAINDER:
        for k in range(n):
            view[target, k] = _remainder(float(view[left, k * a]), float(view[right, k * b]))
    elif operation == FLOOR_DIVIDE:
        for k in range(n):
            view[target, k] = _whole_quotient(float(view[left, k * a]), float(view[right, k * b]))
    elif operation == POWER:
        for k in range(n):
            view[target, k] = _power(float(view[left, k * a]), float(view[right, k * b]))
    elif operation == MINIMUM:
        for k in range(n):
            view[target, k] = _least(view[left, k * a], view[right, k * b])
    elif operation == MAXIMUM:
        for k in range(n):
            view[target, k] = -_least(-view[left, k * a], -view[right, k * b])
    elif operation == EQUAL:
        for k in range(n):
            view[target, k] = 1.0 if view[left, k * a] == view[right, k * b] else 0.0
    elif operation == LESS:
        for k in range(n):
            view[target, k] = 1.0 if view[left, k * a] < view[right, k * b] else 0.0
    else:
        for k in range(n):
            view[target, k] = 1.0 if view[left, k * a] <= view[right, k * b] else 0.0


def _apply(operation: int, view: Float64Rows, target: int, left: int, a: int, n: int) -> None:
    if operation == ABSOLUTE:
        for k in range(n):
            view[target, k] = abs(view[left, k * a])
    elif operation == SQRT:
        for k in range(n):
            view[target, k] = sqrt(view[left, k * a]) if view[left, k * a] >= 0.0 else inf - inf
    elif operation == EXP:
        for k in range(n):
            view[target, k] = _exp(view[left, k * a])
    elif operation == EXPM1:
        for k in range(n):
            x = float(view[left, k * a])
            view[target, k] = expm1(x) if x <= LARGEST_EXPONENT else x * inf
    elif operation == LOG:
        for k in range(n):
            x = float(view[left, k * a])
            view[target, k] = log(x) if x > 0.0 else _no_log(x)
    elif operation == LOG2:
        for k in range(n):
            x = float(view[left, k * a])
            view[target, k] = log2(x) if x > 0.0 else _no_log(x)
    elif operation == LOG10:
        for k in range(n):
            x = float(view[left, k * a])
            view[target, k] = log10(x) if x > 0.0 else _no_log(x)
    elif operation == LOG1P:
        for k in range(n):
            x = float(view[left, k * a])
            view[target, k] = log1p(x) if x > -1.0 else _no_log(x + 1.0)
    elif operation == FLOOR:
        for k in range(n):
            view[target, k] = _floor(view[left, k * a])
    elif operation == RINT:
        for k in range(n):
            view[target, k] = _rint(float(view[left, k * a]))
    elif operation == SIN:
        for k in range(n):
            x = float(view[left, k * a])
            view[target, k] = sin(x) if abs(x) < inf else inf - inf
    else:
        for k in range(n):
            x = float(view[left, k * a])
            view[target, k] = cos(x) if abs(x) < inf else inf - inf


def _reduced(operation: int, view: Float64Rows, left: int, count: int) -> float:
    result = float(view[left, 0])
    for k in range(1, count):
        x = float(view[left, k])
        if operation == SUM:
            result += x
        else:
            result = _least(result, x) if operation == SMALLEST else -_least(-result, -x)
    return result


def _quotient(x: float, y: float) -> float:
    return x / y if y != 0.0 else x * copysign(inf, y)


def _remainder(x: float, y: float) -> float:
    if y == 0.0 or abs(x) == inf:
        return inf - inf
    rest = fmod(x, y)
    if rest == 0.0:
        return copysign(rest, y)
    return rest + y if (rest < 0.0) != (y < 0.0) else rest


def _whole_quotient(x: float, y: float) -> float:
    if y == 0.0 or abs(x) == inf:
        return _quotient(x, y) if y == 0.0 else inf - inf
    rest = fmod(x, y)
    whole = (x - rest) / y
    if rest != 0.0 and (rest < 0.0) != (y < 0.0):
        whole -= 1.0
    low = _floor(whole)
    return low + 1.0 if whole - low > 0.5 else low


def _power(x: float, y: float) -> float:
    try:
        return pow(x, y)
    except (OverflowError, ValueError):
        if _floor(y) != y:
            return inf if x >= 0.0 else inf - inf
        return copysign(inf, x) if fmod(y, 2.0) != 0.0 else inf


def _least(x: float, y: float) -> float:
    """Return the smaller one, or what is not a number."""
    return x if x < y or x != x else y


def _exp(x: float) -> float:
    return exp(x) if x <= LARGEST_EXPONENT else x * inf


def _no_log(x: float) -> float:
    return -inf if x == 0.0 else inf - inf


def _floor(x: float) -> float:
    return copysign(float(floor(x)), x) if abs(x) < WHOLE else x


def _rint(x: float) -> float:
    return copysign(abs(x) + WHOLE - WHOLE, x) if abs(x) < WHOLE else x
