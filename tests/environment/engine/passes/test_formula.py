"""Formulas as programs for compiled code, compared with numpy."""

import numpy as np
import pytest
from hpcrowd.environment.engine.kernel.formula import evaluate
from hpcrowd.environment.engine.passes.formula import traced
from hpcrowd.environment.schedulers.policies.priority import ARRAYS, Queue
from hypothesis import example, given
from hypothesis import strategies as st

NUMBERS = {"now": 5000, "total": 64, "free": 3}


def computed(program, columns):
    """Return the scores of a program for a queue."""
    count = columns.shape[1]
    view, scores = np.zeros((program.rows, count + 2)), np.zeros(count + 2)
    view[: len(ARRAYS), :count] = columns
    evaluate(program.steps, program.numbers, view, count, *NUMBERS.values(), scores)
    return scores[:count]


def queue_of(columns):
    """Return the queue with these columns."""
    return Queue._make((*columns.copy(), *NUMBERS.values()))


def columns_of(seed, count):
    """Random columns with many ones and zeros."""
    columns = np.random.default_rng(seed).integers(0, [[6]] * 4 + [[9999]] * 5, (9, count))
    columns[:3] += 1
    return columns.astype(float)


def check(program, formula, columns):
    """Check the scores of a program against numpy."""
    with np.errstate(all="ignore"):
        expected = formula(None, queue_of(columns)).astype(float)
    assert np.allclose(computed(program, columns), expected, 1e-9, 0.0, equal_nan=True)


COLUMNS = [f"j.{name}" for name in ARRAYS]
UNARY = (
    "-{}", "abs({})", "np.sqrt({})", "np.exp({})", "np.expm1({})", "np.exp2({})", "np.log({})",
    "np.log2({})", "np.log10({})", "np.log1p({})", "np.floor({})", "np.ceil({})", "np.trunc({})",
    "np.rint({})", "np.sign({})", "np.square({})", "np.reciprocal({})", "np.cbrt({})",
    "np.tanh({})", "({}) ** 2", "({}) ** 0.5", "({} > 2.0) * 3", "np.isnan({}) * 1.0",
    "np.isfinite({}) * 1.0", "np.isinf({}) * 1.0", "np.clip({}, 0, 7.5)", "np.where({} >= 2, 1, 0)",
)  # fmt: skip
BINARY = (
    "{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} // {}", "{} % {}", "{} ** {}",
    "np.minimum({}, {})", "np.maximum({}, {})", "np.where({} < {}, 2.0, j.waited)",
    "np.where(({} <= 3) & ~({} != 1), j.user, -1)", "np.logical_or({}, {}) * 1.0",
    "np.logical_and({}, {}) * j.queue",
)  # fmt: skip
REDUCTIONS = (
    "np.sum({})", "({}).mean()", "np.max({})", "({}).min()", "({}).std()", "({}).size",
    "np.any({})", "({}).all()",
)  # fmt: skip


def combined(inner):
    """Expressions of columns that are made of smaller ones."""
    smaller = inner.map(lambda one: f"({one})")
    return st.one_of(
        st.builds(str.format, st.sampled_from(UNARY), smaller),
        st.builds(str.format, st.sampled_from(BINARY), smaller, smaller),
        st.builds(
            "{} * {}".format,
            smaller,
            st.sampled_from(REDUCTIONS).map(lambda r: r.format("j.waited")),
        ),
        st.builds(
            "{} - {}".format, smaller, st.sampled_from(["j.now", "j.total", "2.5", "-1", "0"])
        ),
        st.builds("{} / {}".format, st.sampled_from(["j.free", "j.now % 7", "1"]), smaller),
    )


formulas = st.recursive(st.sampled_from(COLUMNS), combined, max_leaves=6)


@given(text=formulas, seed=st.integers(0, 99), count=st.sampled_from([1, 2, 30]))
@example(text="j.waited // j.processors", seed=0, count=30)
def test_programs_agree_with_numpy(text, seed, count):
    """Random formulas give what numpy gives, also where the result is not finite."""
    formula = eval(f"lambda self, j: {text}", {"np": np})
    program = traced(formula, {})
    if program is not None:  # else rounding decides, as where a difference is 0 or nearly so
        check(program, formula, columns_of(seed, count))


SPECIAL = [
    0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 710.0, 1e17, -1e300, 5e-324, np.inf, -np.inf, np.nan,
]  # fmt: skip


@pytest.mark.parametrize("text", [*UNARY, *BINARY])
def test_special_values(text):
    """Each operation of numbers that are huge, tiny, infinite, none, or zeros with a sign."""
    columns = np.ones((9, len(SPECIAL) ** 2))
    columns[0], columns[1] = np.repeat(SPECIAL, len(SPECIAL)), np.tile(SPECIAL, len(SPECIAL))
    formula = eval(f"lambda self, j: {text.format('j.processors', 'j.requested')}", {"np": np})
    check(traced(formula, {}), formula, columns)


def in_place(self, j):
    """Change an array that has two names."""
    score = same = j.waited / j.requested
    score += j.processors
    other = score**1
    other -= 5
    score *= 2
    return other + score - same / 3


def with_parts(self, j):
    """Collect terms in a dictionary and a loop."""
    terms = {"wait": j.waited, "size": -j.processors}
    for power in (1, 2):
        terms[power] = j.usage**power
    return sum(terms.values())


@pytest.mark.parametrize(
    "formula",
    [
        in_place,
        with_parts,
        lambda self, j: j.waited,
        lambda self, j: (j.waited > 2) + (j.group > 50) + 1.0,
        lambda self, j: np.float64(2) * j.waited + np.int64(3) * np.mean(j.usage),
        lambda self, j: (
            np.select([j.user < 9, j.user < 99], [j.usage, 5], 1) + np.ones_like(j.user)
        ),
        lambda self, j: (j.waited > 1).sum() / j.usage.size + np.var(j.group) * j.waited.copy(),
        lambda self, j: j.now // 3600 % 24 / j.total + 0 * j.waited,
    ],
)
def test_what_programs_can_do(formula):
    """Changes in place, containers, truth values, numbers of numpy, and other functions."""
    check(traced(formula, {}), formula, columns_of(2, 30))


def test_options_are_constants():
    """A formula may branch on an option, and each value of it makes a program."""

    def formula(self, j):
        return j.waited * self.weight if self.mode == "wait" else -j.processors

    columns = columns_of(3, 5)
    for weight in (2.0, 3):
        program = traced(formula, {"weight": weight, "mode": "wait"})
        assert np.array_equal(columns[3] * weight, computed(program, columns))
    program = traced(formula, {"weight": 2.0, "mode": "size"})
    assert np.array_equal(-columns[0], computed(program, columns))


CALLS = []


def stateful(self, j):
    """Count the calls."""
    CALLS.append(1)
    return j.waited * len(CALLS)


def loop(self, j):
    """Compute the score of each job."""
    return np.array([one + 1 for one in j.waited])


@pytest.mark.parametrize(
    "formula",
    [
        stateful,
        loop,
        lambda self, j: j.waited if j.free > 10 else j.usage,
        lambda self, j: j.waited if j.waited.mean() > 10 else j.usage,
        lambda self, j: j.waited / max(j.usage.mean(), 1.0),
        lambda self, j: j.waited + np.random.default_rng().random(),
        lambda self, j: j.waited * len(j.waited),
        lambda self, j: np.sort(j.waited),
        lambda self, j: j.waited[::-1],
        lambda self, j: j.waited + np.arange(3.0),
        lambda self, j: j.waited - ((j.group > 5) * 1) // ((j.user > 5) * 1),
        lambda self, j: (j.waited > 5) - (j.user > 5),
        lambda self, j: j.waited.mean(),
        lambda self, j: j.waited * self.weight,
        lambda self, j: j.width,
        lambda self, j: None,
    ],
)
def test_what_is_called_with_arrays(formula):
    """A formula that needs values, or is wrong, has no program."""
    assert traced(formula, {}) is None
