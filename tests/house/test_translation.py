"""What is compiled of a kernel does what its source does as Python."""

import importlib.util
import runpy
import sys

import numpy as np
import pytest

from tests.support.places import ROOT

BUILD = runpy.run_path(str(ROOT / "src" / "build_kernels.py"))
TRANSLATION = BUILD["TRANSLATION"]

SOURCE = '''
"""A kernel with what kernels are made of."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, frexp, inf, sqrt

from hpcrowd.environment.engine.kernel.arrays import Row, fields
from hpcrowd.environment.jobs import Float64s, Int64Rows, Int64s

HEAD, FOREVER = 0, 2**63 - 1
STEPS = (60, 300)


@dataclass(eq=False, slots=True)
class Table:
    """Rows, and a count."""

    rows: Int64Rows
    weights: Float64s
    count: int = 0

    start, end = fields("rows", 2)
    head = Row("rows", HEAD)


def share(part: int, whole: int) -> float:
    """Return a part of a whole."""
    return part / whole


def both(a: int, b: int) -> tuple[int, float]:
    """Return the quotient as Python has it, and a fraction of it."""
    return a // b, (a % b) * 0.5


def scan(table: Table, limit: int) -> int:
    """Go through the rows."""
    end, found, least = table.end, 0, FOREVER
    for i in range(len(table.rows)):
        lasts = end[i] - table.start[i]
        short = lasts < limit and table.start[i]
        if short:
            found += 1
        least = min(least, lasts)
        table.count += 1 if short else 0
    return least * 1000 + found


def move_head(table: Table, by: int) -> int:
    """Change the first row."""
    head = table.head
    head[1] += by
    table.head[0] = table.end[0] - 1
    return head[0]


def word(node: int) -> int:
    """Return a word with one bit."""
    bits = 0
    bits |= 1 << node
    return bits


def rounded(x: float) -> float:
    """Return a number by parts and steps."""
    part, power = frexp(x)
    total = floor(x) + ceil(part) + power
    for step in STEPS:
        total += step
    return float(total) + sqrt(abs(x)) if x < inf else -1.0


def heaviest(table: Table) -> int:
    """Return the place of the largest weight, -1 for none."""
    best, place = -inf, -1
    for i in range(len(table.weights)):
        place = i if table.weights[i] > best else place
        best = max(best, table.weights[i])
    count = 0
    for weight in table.weights:
        count += int(weight > 0.5)
    return place * 10 + count
'''


def translated(path):
    """Return the sample module as Cython reads it."""
    known = TRANSLATION["Declarations"]()
    values = TRANSLATION["constants"](ROOT, path)
    return TRANSLATION["Module"]("sample", path, values, known)


def answers(module):
    """Return what the functions of the sample give."""
    table = module.Table(np.array([[0, 50], [7, 30], [9, 1009]]), np.array([0.25, 4.0, 0.75]))
    return [
        module.share(3, 4), module.both(-7, 2), module.both(7, -2), module.scan(table, 100),
        table.count, module.move_head(table, 5), table.head.tolist(), table.end.tolist(),
        module.word(3), module.word(40), module.word(62), module.rounded(1234.75),
        module.rounded(-0.3), module.heaviest(table),
    ]  # fmt: skip


def loaded(path):
    """Import a module from a file."""
    spec = importlib.util.spec_from_file_location("sample", path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "sample", module)
        spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_compiled_code_does_what_python_does(tmp_path, monkeypatch):
    """Divisions, shifts, truths, rows, parts and loops give the same numbers in both forms."""
    path = tmp_path / "sample.py"
    path.write_text(SOURCE)
    expected = answers(loaded(path))
    module = translated(path)
    work = tmp_path / "work"
    work.mkdir()
    (work / "sample.py").write_text(module.text)
    (work / "sample.pxd").write_text(module.declarations)
    target = tmp_path / "sample.so"
    arguments = (BUILD["compiler"](), "hpcrowd.compiled.shared", work / "sample.py", target)
    BUILD["_compile"](work, *arguments, tmp_path / "sample.key", "key")
    assert answers(loaded(target)) == expected


def test_types_follow_from_what_is_assigned(tmp_path):
    """Local variables get types of C; names of arrays and of numbers are gone."""
    path = tmp_path / "sample.py"
    path.write_text(SOURCE)
    module = translated(path)
    for words in ("found=int64_t", "short=bint", "best=double", "power=int64_t"):
        assert words in module.declarations
    assert "table.rows[i, 1]" in module.text
    assert "int64_t, 1) << node" in module.text


@pytest.mark.parametrize("index", ["-1", "0, -2"])
def test_indexes_from_the_end_are_refused(tmp_path, index):
    """Compiled code would read something else, so building says where."""
    path = tmp_path / "sample.py"
    path.write_text(f"def last(array: Int64s) -> int:\n    return array[{index}]\n")
    with pytest.raises(RuntimeError, match="sample, line 2: an index below 0"):
        translated(path)


def test_a_wheel_holds_what_is_compiled_here():
    """Nothing of other versions of Python, and no module that is none any more."""
    compiled = ROOT / "src" / "hpcrowd" / "compiled"
    made = BUILD["products"]()
    assert all((compiled / name).is_file() for name in made)
    assert len(made) == len(set(made))
