from .replay import (
    ReplayConfig,
    configure,
    replay,
)

__all__ = [
    "ReplayConfig",
    "configure",
    "replay",
]
