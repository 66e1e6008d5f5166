from . import agents as agents
from . import analysis as analysis
from . import environment as environment
from . import scenarios as scenarios
from .agents import *
from .analysis import *
from .environment import *
from .scenarios import *

__version__: str
