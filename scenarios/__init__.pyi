from .config import ReplayConfig, configure
from .demo import run_demo
from .reaction_config import reaction_from
from .replay import replay
from .reproduce import reproduce_madon2024
from .whatif import compare

__all__ = [
    "ReplayConfig",
    "compare",
    "configure",
    "reaction_from",
    "replay",
    "reproduce_madon2024",
    "run_demo",
]
