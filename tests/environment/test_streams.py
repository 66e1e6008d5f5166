"""Random streams: one seed per run, found by name."""

import hashlib

import numpy as np
import pytest
from hpcrowd import JobTable, Simulation, Streams
from hpcrowd.errors import QuantityError


def draws(seed, *name):
    """The first numbers of a stream."""
    return Streams(seed).generator(*name).integers(0, 2**62, 4).tolist()


def test_a_stream_is_the_same_whenever_it_is_asked_for():
    """Other streams that are drawn from change nothing, nor does who asks."""
    streams = Streams(3)
    streams.generator("population").random(1000)
    for _ in range(2):
        found = streams.generator("user", 1).integers(0, 2**62, 4).tolist()
        assert draws(3, "user", 1) == found
    model = Simulation(JobTable(), 1, seed=3)
    assert found == model.streams.generator("user", 1).integers(0, 2**62, 4).tolist()


def test_numbers_are_the_same_everywhere():
    """A stream does not depend on the hash seed of the process: its seed sequence is known."""
    sequence = Streams(0).sequence("user", 17)
    assert 0 == sequence.entropy
    digest = hashlib.sha256(b"user\x0017").digest()
    assert tuple(np.frombuffer(digest[:16], "<u4").tolist()) == sequence.spawn_key


def test_names_have_streams_of_their_own():
    """Different names and seeds give different numbers, also if they look alike when joined."""
    names = [("user", 17), ("user", 1, 7), ("user", 18), ("user17",), ("cluster", 17), ()]
    seen = {tuple(draws(seed, *name)) for seed in (0, 1) for name in names}
    assert 2 * len(names) == len(seen)
    parts = [Streams(3).within("part", 1), Streams(3).within("part", 2), Streams(3)]
    drawn = [streams.generator("jobs").random() for streams in parts]
    assert 3 == len(set(drawn))
    assert drawn[0] == Streams(3).within("part", 1).generator("jobs").random()


def test_negative_seed():
    """A seed below 0 is reported with its value."""
    with pytest.raises(QuantityError, match="seed -1"):
        Streams(-1)
