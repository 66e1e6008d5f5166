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
from .population import (
    Work,
    add_users,
)
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
