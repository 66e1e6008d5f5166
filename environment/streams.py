"""Random numbers: one seed per run, one named stream per part of it.

A stream is found by its name alone, so that adding a user or a cluster does not change what the
others draw, and the same seed gives the same numbers on every machine.
"""

from __future__ import annotations

import hashlib

import numpy as np

from hpcrowd.environment.errors import QuantityError


class Streams:
    """Named random streams of one run.

    Parameters
    ----------
    seed
        A whole number, 0 or more; 0 is an ordinary seed.
    """

    def __init__(self, seed: int = 0) -> None:
        if seed < 0:
            raise QuantityError(f"seed {seed}: must be 0 or more")
        self.seed = seed

    def sequence(self, *name: object) -> np.random.SeedSequence:
        """Return the seed sequence called ``name``, for example ``("user", 17)``."""
        digest = hashlib.sha256("\0".join(map(str, name)).encode()).digest()
        key = tuple(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4))
        return np.random.SeedSequence(self.seed, spawn_key=key)

    def generator(self, *name: object) -> np.random.Generator:
        """Return a new generator at the beginning of the stream called ``name``."""
        return np.random.Generator(np.random.PCG64(self.sequence(*name)))

    def within(self, *name: object) -> Streams:
        """Return streams of their own, for a part of the run called ``name``."""
        return Streams(int(self.sequence(*name).generate_state(1, np.uint64)[0]))
