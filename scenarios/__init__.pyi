from .config import ReplayConfig as ReplayConfig
from .config import configure as configure
from .replay import replay as replay

__all__ = [
    "ReplayConfig",
    "configure",
    "replay",
]
