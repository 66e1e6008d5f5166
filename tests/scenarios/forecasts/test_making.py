"""Making futures: in this process, in others, and from what is kept in a folder."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hpcrowd.analysis.forecast.futures import Asked, Outset
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.engines import Inline, engine_of
from hpcrowd.scenarios.forecasts.making import _kept, key_of, make_futures

from tests.scenarios.forecasts.forecast_cases import contents, state_at


@pytest.fixture(scope="module")
def outset():
    """A day of the site, with users who react."""
    return Outset(state_at(), DAY, users="think-time", asked=[Asked(2, HOUR)])


@pytest.fixture(scope="module")
def alone(outset):
    """The first futures, one after the other."""
    return contents([outset.simulate(number, 3) for number in range(12)])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["processes", "dask"])
def test_futures_are_the_same_in_other_processes(outset, alone, name):
    """As in this one, in order, with progress up to all of them; one at least."""
    if name == "dask":
        pytest.importorskip("distributed")
    seen: list[tuple[int, int]] = []
    engine = engine_of(name, workers=2)
    try:
        found = make_futures(
            outset, 12, 3, engine=engine, progress=lambda *done: seen.append(done)
        )  # fmt: skip
    finally:
        engine.close()
    assert alone == contents(found)
    assert ((0, 12), (12, 12)) == (seen[0], seen[-1])


def test_what_is_kept_is_not_made_again(outset, alone, tmp_path, monkeypatch, capsys):
    """Files that are missing or damaged are; the futures are the same bytes."""
    assert alone[:3] == contents(make_futures(outset, 3, 3, folder=tmp_path, engine=Inline()))
    assert alone == contents(make_futures(outset, 12, 3, folder=tmp_path))
    files = sorted(tmp_path.iterdir())
    assert 3 == len(files)
    numbers: list[int] = []
    simulate = Outset.simulate
    monkeypatch.setattr(
        Outset, "simulate",
        lambda self, number, *rest: numbers.append(number) or simulate(self, number, *rest),
    )  # fmt: skip
    assert alone[:4] == contents(make_futures(outset, 4, 3, folder=tmp_path))
    assert [] == numbers
    files[0].unlink()
    files[1].write_bytes(files[1].read_bytes()[:-9])
    capsys.readouterr()
    assert alone == contents(make_futures(outset, 12, 3, folder=tmp_path))
    assert {0, 1, 2} <= set(numbers)
    assert f"{files[1]}: damaged; it is done again\n" == capsys.readouterr().err
    assert [] == [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_damaged_files_are_never_mistaken(outset, tmp_path):
    """Whatever is changed in a file, it is as it was or not taken."""
    expected = contents(make_futures(outset, 2, 3, folder=tmp_path))
    (path,) = tmp_path.iterdir()
    text, key = path.read_bytes(), key_of(outset, 3)
    draw, half = np.random.default_rng(0), len(text) // 2
    broken = [b"", b"PK", text[:half], text[:-9], b"x" * len(text),
              text[:200] + bytes(40) + text[240:],
              text[:half] + b"\xff" * 64 + text[half + 64 :]]  # fmt: skip
    for at in draw.integers(0, len(text), 60).tolist():
        broken.append(text[:at] + bytes([text[at] ^ int(draw.integers(1, 256))]) + text[at + 1 :])
    for damaged in broken:
        path.write_bytes(damaged)
        assert [] == _kept(tmp_path, key)
    path.write_bytes(text)
    assert expected == contents(_kept(tmp_path, key))


def test_kept_futures_of_others_are_not_taken(outset):
    """Whatever differs, the names of the files differ; names of users count in some rules."""
    other, named = outset.state.jobs.copy(), outset.state.jobs.copy()
    other.requested_time[0] += 1
    named.names = {"user": {1: "ada"}}
    changes: list[dict[str, Any]] = [
        {}, {"users": "rigid"}, {"horizon": 2 * DAY}, {"processors": 20}, {"scheduler": "fcfs"},
        {"asked": ()}, {"overrun": "kill"}, {"estimates": "exact"},
        *({"state": replace(outset.state, jobs=jobs)} for jobs in (other, named)),
    ]  # fmt: skip
    found = [key_of(replace(outset, **change), 3) for change in changes]
    assert key_of(outset, 3) == found[0]
    assert 11 == len({*found, key_of(outset, 4)})
    with pytest.raises(QuantityError, match="futures 0"):
        make_futures(outset, 0)
