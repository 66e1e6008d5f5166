"""Random streams: one seed per run, found by name."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hpcrowd.environment import JobTable, QuantityError, Simulation, Streams


def draws(seed: int, *name: object) -> list[int]:
    """The first numbers of a stream."""
    return Streams(seed).generator(*name).integers(0, 2**62, 4).tolist()


def test_same_seed_and_name_give_the_same_numbers() -> None:
    """A stream starts again whenever it is asked for, and is the same in every run of a seed."""
    streams = Streams(5)
    assert draws(5, "user", 17) == streams.generator("user", 17).integers(0, 2**62, 4).tolist()
    assert draws(5, "user", 17) == streams.generator("user", 17).integers(0, 2**62, 4).tolist()


def test_numbers_are_the_same_everywhere() -> None:
    """A stream does not depend on the hash seed of the process: its seed sequence is known."""
    sequence = Streams(0).sequence("user", 17)
    assert 0 == sequence.entropy
    digest = hashlib.sha256(b"user\x0017").digest()
    expected = tuple(np.frombuffer(digest[:16], "<u4").tolist())
    assert expected == sequence.spawn_key


def test_seed_0_is_a_seed() -> None:
    """Seed 0 gives numbers of its own, always the same."""
    assert draws(0, "a") == draws(0, "a")
    assert draws(0, "a") != draws(1, "a")


def test_names_have_streams_of_their_own() -> None:
    """Different names and seeds give different numbers, also if they look alike when joined."""
    names = [("user", 17), ("user", 1, 7), ("user", 18), ("user17",), ("cluster", 17), ()]
    seen = {tuple(draws(seed, *name)) for seed in (0, 1) for name in names}
    assert 2 * len(names) == len(seen)


def test_order_of_asking_does_not_matter() -> None:
    """A stream drawn from or asked for does not change the others."""
    streams = Streams(3)
    streams.generator("population").random(1000)
    assert draws(3, "user", 1) == streams.generator("user", 1).integers(0, 2**62, 4).tolist()


def test_streams_leave_the_global_generator_alone() -> None:
    """Making streams and simulations neither reads nor seeds numpy's global generator."""
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    Simulation(JobTable(), 1, seed=4).streams.generator("x").random()
    assert before == np.random.get_state()[1].tolist()  # noqa: NPY002


def test_seed_of_a_simulation_is_that_of_its_streams() -> None:
    """A simulation hands its seed to its streams."""
    model = Simulation(JobTable(), 1, seed=9)
    assert draws(9, "u") == model.streams.generator("u").integers(0, 2**62, 4).tolist()


def test_negative_seed() -> None:
    """A seed below 0 is reported with its value."""
    with pytest.raises(QuantityError, match="seed -1"):
        Streams(-1)


def test_a_part_has_streams_of_its_own() -> None:
    """Streams within a part depend on its name and the seed, and differ from the run's own."""
    first, again, other, run = (
        streams.generator("jobs").random()
        for streams in (
            Streams(3).within("part", 1),
            Streams(3).within("part", 1),
            Streams(3).within("part", 2),
            Streams(3),
        )
    )
    assert first == again
    assert 3 == len({first, other, run})
