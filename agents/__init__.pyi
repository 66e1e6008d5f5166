from .behaviours import (
    Rigid,
    ThinkTime,
)
from .graph import (
    Dependencies,
    find_dependencies,
    longest_paths,
    user_graph,
)
from .population import add_users
from .sessions import (
    SessionDefinition,
    Sessions,
    find_sessions,
)
from .user import (
    Behaviour,
    ReplayUser,
    User,
)
from .work import Work

__all__ = [
    "Behaviour",
    "Dependencies",
    "ReplayUser",
    "Rigid",
    "SessionDefinition",
    "Sessions",
    "ThinkTime",
    "User",
    "Work",
    "add_users",
    "find_dependencies",
    "find_sessions",
    "longest_paths",
    "user_graph",
]
